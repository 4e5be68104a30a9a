"""The ledger of a store from outside: messages sent, messages acknowledged, and therefore to be found.

Nothing is predicted that no answer implies. A message is *there* once that was answered, *absent* once it was refused
or never begun, and *open* where the answer did not come or does not tell: then it may be there whole, or not at all.

Events are counted as they are heard. A call begins when it is sent, or when its client's call before it is answered; so
of two messages of a queue, if one was answered before the other was begun, its number is lower.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from gapless.properties.machines.blackbox.subject_process import QueueName, SentBody
from gapless.properties.machines.mismatch import Mismatch, expect

NEVER = 1 << 62
"""An event that has not come."""

Fate = Literal["there", "absent", "open"]


class FoundMessage(NamedTuple):
    """A message as a subject reads it: number, bytes of the body, its checksum, and how it begins."""

    number: int
    size: int
    checksum: int
    head: str


@dataclass(slots=True, eq=False)
class SentEntry:
    """A message that was sent. `number`: in its queue, once that is known · `is_safe`: no crash may take it."""

    sent: SentBody
    begun: int = NEVER
    answered: int = NEVER
    fate: Fate = "open"
    number: int = -1
    is_safe: bool = False


@dataclass(slots=True)
class QueueLedger:
    """A queue.

    `sent`: by checksum and size · `places`: by number · `begun`: messages whose append was begun · `first`: the number
    at which it began when the store was opened · `visible`: consumers were seen to see all below.
    """

    sent: dict[tuple[int, int], SentEntry] = field(default_factory=dict)
    places: dict[int, SentEntry] = field(default_factory=dict)
    begun: int = 0
    first: int = 0
    visible: int = 0

    def number(self, chance: random.Random) -> int:
        """A number from which it can be followed: often near the end."""
        return chance.randint(max(self.first, self.visible - chance.choice((0, 20, self.visible))), self.visible)


class ClientLedger:
    """All messages of a store, by queue. `clock`: events that were counted · `is_lasting`: what is there outlives it.

    `expirable`: what had been begun by that event may have expired · `followers`: by client, the number that it is to
    get next of each queue that it follows.
    """

    def __init__(self) -> None:
        self.queues: defaultdict[QueueName, QueueLedger] = defaultdict(QueueLedger)
        self.clock = 0
        self.expirable = -1
        self.is_lasting = False
        self.acknowledged = 0
        self.followers: defaultdict[int, dict[QueueName, int]] = defaultdict(dict)
        self._open: list[list[SentEntry]] = []  # appends whose progress is unknown

    def tick(self) -> int:
        """An event has come."""
        self.clock += 1
        return self.clock

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def ask(self, bodies: Iterable[SentBody]) -> list[SentEntry]:
        """Messages are to be appended by one call, in this order."""
        entries = [SentEntry(body) for body in bodies]
        for entry in entries:
            self.queues[entry.sent.queue].sent[entry.sent.checksum, entry.sent.size] = entry
        return entries

    def begin(self, entries: Iterable[SentEntry]) -> None:
        """From now on they may be there."""
        for entry in entries:
            entry.begun = self.clock
            self.queues[entry.sent.queue].begun += 1

    def acknowledge(self, entries: Sequence[SentEntry], numbers: Sequence[int], *, safe: bool) -> None:
        """They are there, with these numbers. `safe`: no crash may take them."""
        expect(len(entries) == len(numbers), f"{len(numbers)} numbers for {len(entries)} messages")
        for entry, number in zip(entries, numbers, strict=True):
            self._place(entry, number)
            self.know(entry, safe=safe)
        self.acknowledged += len(entries)

    def keep_first(self, entries: Sequence[SentEntry], kept: int, *, safe: bool) -> None:
        """An error says so: the first of them are there, the others are not."""
        for entry in entries[:kept]:
            self.know(entry, safe=safe)
        for entry in entries[kept:]:
            self._require_not_seen(entry, "it was refused")
            entry.fate = "absent"

    def leave_open(self, entries: list[SentEntry], *, answered: bool) -> None:
        """Mark an append whose progress is unknown. `answered`: the call has ended."""
        for entry in entries:
            if answered:
                entry.answered = min(entry.answered, self.clock)
        self._open.append(entries)

    def never_begun(self, entries: Sequence[SentEntry]) -> None:
        """The process died before it came to them."""
        for entry in entries:
            self._require_not_seen(entry, "no client had begun to append it")
            entry.fate = "absent"

    def flushed(self, since: int) -> None:
        """Mark as safe what had been acknowledged by event `since`."""
        for queue in self.queues.values():
            for entry in queue.sent.values():
                entry.is_safe |= entry.fate == "there" and entry.answered <= since

    def expired(self, until: int) -> None:
        """Allow that messages begun by event `until` are gone, from the beginnings of queues on."""
        self.expirable = max(self.expirable, until)

    # -- what is read ------------------------------------------------------------------------------------------------

    def see(self, queue: QueueName, asked: int, rows: Sequence[FoundMessage], *, safe: bool) -> None:
        """A consumer has read these, from number `asked` on. `safe`: consumers see nothing that a crash may take."""
        _require_sequence(queue, asked, rows)
        for row in rows:
            entry = self._identify(queue, row)
            self._place(entry, row.number)
            self.know(entry, safe=safe)
        self.queues[queue].visible = max(self.queues[queue].visible, asked + len(rows))

    def watch(self, queue: QueueName, asked: int, rows: Sequence[FoundMessage]) -> None:
        """Another process has read these: maybe before consumers see them, and before a crash spares them."""
        _require_sequence(queue, asked, rows)
        for row in rows:
            entry, there = self._identify(queue, row), self.queues[queue].places.get(row.number)
            expect(there in {None, entry}, f"{entry.sent} has number {row.number}, which {there and there.sent} has")
            expect(entry.number in {-1, row.number}, f"{entry.sent} has number {row.number}, and had {entry.number}")

    def find(self, queue: QueueName, low: int, high: int, rows: Sequence[FoundMessage]) -> None:
        """After a crash or a stop, these are the queue's messages, from `low` to `high`. All else is judged by it."""
        numbers = [row.number for row in rows]
        expect(
            numbers == list(range(low, high)), f"{_named(queue)} has {low} to {high}, and reads as {_ranges(numbers)}"
        )
        known, found = self.queues[queue], set[int]()
        for row in rows:
            entry = self._identify(queue, row)
            if (other := known.places.get(row.number)) is not None and not self._may_be_lost(other):
                expect(other is entry, f"{_named(queue)}: number {row.number} is {entry.sent}, and was {other.sent}")
            expect(entry.number in {-1, row.number}, f"{entry.sent} has number {row.number}, and had {entry.number}")
            expect(id(entry) not in found, f"{entry.sent} is there twice, the second time as number {row.number}")
            found.add(id(entry))
        for entry in known.sent.values():
            if id(entry) in found:
                continue
            if entry.fate == "there":
                gone = max(0, entry.number) < low and entry.begun <= self.expirable
                expect(
                    gone or self._may_be_lost(entry),
                    f"{entry.sent} was acknowledged as number {entry.number} and is lost",
                )
        known.places = {number: entry for number, entry in known.places.items() if number < low}
        for row in rows:
            entry = self._identify(queue, row)
            known.places[row.number] = entry
            entry.number = row.number
            self.know(entry, safe=True)
        self._require_order(queue, [known.places[number] for number in range(low, high)])
        could = sum(entry.fate != "absent" and entry.begun <= self.expirable for entry in known.sent.values())
        expect(low <= could, f"{_named(queue)} begins at {low}, and only {could} of its messages could expire")
        known.first, known.visible = low, high
        for positions in self.followers.values():
            if queue in positions:
                positions[queue] = min(positions[queue], high)

    def settle(self) -> None:
        """Check that of each append with unknown progress the first messages are there, and no others."""
        for entries in self._open:
            reported = [e for e in entries if e.fate == "there" or e.begun > self.expirable]  # others may have expired
            kept = [entry for entry in reported if entry.fate == "there"]
            expect(
                kept == reported[: len(kept)],
                f"{kept[-1].sent if kept else ''} is there, and another before it in its batch is not",
            )
            for queue in {entry.sent.queue for entry in kept}:
                numbers = [entry.number for entry in kept if entry.sent.queue == queue]
                expect(numbers == sorted(numbers), f"{_named(queue)}: a batch has the numbers {numbers}")
        self._open.clear()
        for known in self.queues.values():
            for entry in known.sent.values():
                if entry.fate != "absent" and known.places.get(entry.number) is not entry:
                    entry.fate = "absent" if entry.begun > self.expirable else "open"

    # -- contradictions ----------------------------------------------------------------------------------------------

    def know(self, entry: SentEntry, *, safe: bool) -> None:
        """It is there, as of now."""
        entry.fate, entry.answered = "there", min(entry.answered, self.clock)
        entry.is_safe |= safe or self.is_lasting

    def _identify(self, queue: QueueName, row: FoundMessage) -> SentEntry:
        """The message that was read. Raises Mismatch if it was not sent, or cannot be there."""
        entry = self.queues[queue].sent.get((row.checksum, row.size))
        shown = f"{_named(queue)}: number {row.number} is {row.head!r}, {row.size} bytes"
        if entry is None:
            raise Mismatch(f"{shown}: no message that was sent to the queue is like that")
        expect(entry.begun < NEVER and entry.fate != "absent", f"{shown}: it was refused, lost, or never begun")
        return entry

    def _place(self, entry: SentEntry, number: int) -> None:
        queue = self.queues[entry.sent.queue]
        there = queue.places.setdefault(number, entry)
        expect(there is entry, f"{entry.sent} has number {number}, which {there.sent} has")
        expect(entry.number in {-1, number}, f"{entry.sent} has number {number}, and had {entry.number}")
        entry.number = number
        expect(number < queue.begun, f"{entry.sent} has number {number}, and only {queue.begun} messages were sent")

    def _may_be_lost(self, entry: SentEntry) -> bool:
        return not entry.is_safe

    def _require_not_seen(self, entry: SentEntry, why: str) -> None:
        expect(entry.number < 0, f"{entry.sent} has number {entry.number}, and {why}")

    def _require_order(self, queue: QueueName, entries: Sequence[SentEntry]) -> None:
        """Numbers rise in the order in which messages were acknowledged and begun."""
        first_answer, of = NEVER, None
        for entry in reversed(entries):
            if of is not None and first_answer < entry.begun:
                raise Mismatch(
                    f"{_named(queue)}: {entry.sent} has number {entry.number}, and {of.sent} has {of.number}, which "
                    "was acknowledged before the other was asked for"
                )
            if entry.answered < first_answer:
                first_answer, of = entry.answered, entry


def _named(queue: QueueName) -> str:
    return f"{queue[0]}/{queue[1]}"


def _require_sequence(queue: QueueName, asked: int, rows: Sequence[FoundMessage]) -> None:
    """Each once, and in order. Raises Mismatch."""
    numbers = [row.number for row in rows]
    expected = list(range(asked, asked + len(rows)))
    if numbers != expected:
        wrong = next(at for at, number in enumerate(numbers) if number != expected[at])
        seen = ", ".join(map(str, numbers[max(0, wrong - 3) : wrong + 3]))
        raise Mismatch(f"{_named(queue)}: asked for {asked} and what follows, read … {seen} …")


def _ranges(numbers: Sequence[int]) -> str:
    return f"{len(numbers)} messages, {numbers[0]} to {numbers[-1]}" if numbers else "no messages"
