"""The ground truth: what was appended, and therefore what must be found in queues and on the disk.

It knows no model; `dispatch_refinement.py` adds that of dispatch. Throughout, `q` is the number of a queue, from 0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from gapless.properties.machines.mismatch import expect
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.properties.subject import (
    NewMessage,
    QueueEntry,
    QueueName,
    Subject,
    SubjectBatch,
    SubjectLayout,
    path_of,
    require_all_verbs,
)

TOPIC = "T"
FIRST_TIME = 1_700_000_000_000  # ms


class AppendedMessage(NamedTuple):
    """A message that was appended, and the entry that its queue must have for it."""

    queue: int
    number: int
    position: int
    size: int
    entry: QueueEntry

    @property
    def end(self) -> int:
        """The end of its record in the log."""
        return self.position + self.size


class GroundTruth:
    """A store on a simulated disk, and what was appended to it.

    `names`: of its queues, all of one topic · `log`: every message that is in the log, in order; `by_queue`: the same
    for each queue · `tally`: how often the situations occurred that runs should come upon, and how often something
    was left out since the subject has no such verb.
    """

    def __init__(self, subject: Subject, layout: SubjectLayout, queues: int) -> None:
        require_all_verbs(subject)
        self.subject = subject
        self.names: list[QueueName] = [(TOPIC, q) for q in range(queues)]
        self.numbers = {name: q for q, name in enumerate(self.names)}
        self.tally: Counter[str] = Counter()
        overlap = layout.overlap and self.has("overlap")
        self.layout = replace(layout, queues=tuple(self.names), overlap=overlap)
        self.disk = SimulatedDisk()
        self.subject.open(self.disk, self.layout)
        self.log: list[AppendedMessage] = []
        self.by_queue: list[list[AppendedMessage]] = [[] for _ in range(queues)]
        self._appended = 0

    def has(self, verb: str) -> bool:
        """True if the subject has an optional verb; that one was missed is counted."""
        why = self.subject.absent.get(verb)
        if why is not None:
            self.tally[f"left out: {verb}, for {type(self.subject).__name__} has none: {why}"] += 1
        return why is None

    # -- the log -----------------------------------------------------------------------------------------------------

    def append(self, q: int) -> AppendedMessage:
        """Append a message to a queue; its tag and its length differ from its neighbours'."""
        self._appended += 1
        return self._append(q, f"tag{self._appended}" if self._appended % 3 else "")

    def _append(self, q: int, tag: str, number: int | None = None) -> AppendedMessage:
        body, time = bytes(self._appended * 7 % 23), FIRST_TIME + self._appended
        placed = self.subject.append(NewMessage(self.names[q], body, tag), time, number)
        due = len(self.by_queue[q]) if number is None else number
        expect(placed.number == due, f"append: {self.label(q)} gives number {placed.number}, and {due} is due")
        entry = (placed.position, placed.size, self.subject.tag_code(tag))
        message = AppendedMessage(q, placed.number, placed.position, placed.size, entry)
        self.log.append(message)
        self.by_queue[q].append(message)
        return message

    def claim(self, q: int, number: int) -> AppendedMessage:
        """Append a message whose record claims this number, whatever number is due."""
        return self._append(q, "", number)

    def take_back(self, message: AppendedMessage, due: int) -> None:
        """Remove the last message from the log without a trace; `due`: its queue's next number."""
        self.subject.take_back(due)
        self.log.pop()
        self.by_queue[message.queue].pop()

    def flush_log(self) -> None:
        """Flush all that was appended."""
        self.subject.flush()

    @property
    def safe(self) -> int:
        """The end of the log on disk."""
        return self.subject.as_log().flushed

    @property
    def limit(self) -> int:
        """The limit of dispatch: consumers of a synchronous store see nothing that a crash can take away."""
        s = self.subject.as_log()
        return s.flushed if self.layout.synchronous else s.end

    def ends_before(self, q: int, position: int) -> int:
        """The number of messages of a queue that end before a position."""
        return sum(message.end <= position for message in self.by_queue[q])

    # -- the queues --------------------------------------------------------------------------------------------------

    def label(self, q: int) -> str:
        """The name of a queue in reports."""
        return path_of(self.names[q])

    def committed(self, q: int) -> int:
        """Consumers see the entries before this number."""
        return self.subject.reach(self.names[q]).committed

    def rows(self, batch: SubjectBatch) -> list[tuple[int, int, int, int]]:
        """The entries of a batch: our number of its queue, its own number, position, size."""
        return [(self.numbers[name], *rest) for name, *rest in batch.entries]  # type: ignore[misc]

    def read(self, q: int, upto: int) -> None:
        """A consumer reads the entries before a commit position that it got in this life."""
        found = self.subject.entries(self.names[q], 0, upto)
        sent = [message.entry for message in self.by_queue[q][:upto]]
        if found == sent:
            return
        for number, (there, entry) in enumerate(zip(found, sent, strict=False)):
            expect(
                tuple(there) == entry,
                f"{self.label(q)}: consumers find {there} as entry {number} (position, size, tag code), and "
                f"the message is {entry}",
            )
        expect(len(found) == len(sent), f"{self.label(q)}: consumers find {len(found)} of {len(sent)} entries")

    def look(self) -> None:
        """Consumers see the messages: checked after steps that write into queue files, or make entries visible."""
        for q, sent in enumerate(self.by_queue):
            committed = self.committed(q)
            expect(committed <= len(sent), f"{self.label(q)}: consumers see more than was appended")
            self.read(q, committed)

    def look_at_the_disk(self) -> None:
        """The disk itself holds the entries that count as flushed."""
        if not self.has("on_disk"):
            return
        for q, name in enumerate(self.names):
            high = self.subject.reach(name).flushed
            found = [tuple(entry) for entry in self.subject.on_disk(name, 0, high)]
            safe = found == [message.entry for message in self.by_queue[q][:high]]
            expect(safe, f"{self.label(q)}: entries 0 to {high} count as safe, and are not on disk")

    # -- another life ------------------------------------------------------------------------------------------------

    def open_again(self, disk: SimulatedDisk, *, at_least: int) -> None:
        """Open the store from what was left of its disk: all before `at_least` must be in the log."""
        self.subject.die()
        self.disk = disk
        self.subject.open(disk, self.layout)
        end = self.subject.as_log().end
        expect(end >= at_least, f"the log was safe up to {at_least}, and ends at {end} when it is opened again")
        self.log = [message for message in self.log if message.end <= end]
        for q, name in enumerate(self.names):
            self.by_queue[q] = [message for message in self.by_queue[q] if message.end <= end]
            due = self.subject.reach(name).next
            expect(due == len(self.by_queue[q]), f"{self.label(q)}: the next message gets number {due}")
