"""The client's oracle: it remembers requests and answers, and predicts the content of a store.

The position, size and number of each record follow from the specs alone. What a store says and what is found in it are
compared with these predictions, never with the store's own word. An append that was called and has not returned is
*begun*: after a crash, any state that it passes through may be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.subject import MessagePlace, NewMessage, QueueEntry, QueueName, StoredMessage, Subject
from gapless.spec import log as log_spec
from gapless.spec import queue as queue_spec
from gapless.spec.catalog import SPECS
from gapless.spec.language import Number, Position, Refused, replace
from gapless.traces.replay.notation import breach


class SentMessage(NamedTuple):
    """A message that was sent, and where the specs say that it lies."""

    wanted: NewMessage
    position: int
    size: int
    number: int
    time: int  # ms


class AppendStage(NamedTuple):
    """A state that a begun append passes through, and how many of its messages are in the log by then."""

    state: log_spec.State
    written: int


class ClientOracle:
    """A client's knowledge of a store.

    `log`, `queues`: the model's states · `sent`: the messages in the log, in order, with those that have expired ·
    `shown`: of every queue, the exclusive end of what consumers saw.
    """

    def __init__(self, subject: Subject, file_size: int) -> None:
        self.size, self.tag_code = subject.size, subject.tag_code
        self.log = log_spec.open(log_spec.INITIAL, Position(0), file_size)
        self.queues: dict[QueueName, queue_spec.State] = {}
        self.sent: list[SentMessage] = []
        self.shown: dict[QueueName, int] = {}
        self._begun: list[AppendStage] = []
        self._coming: list[SentMessage] = []  # the messages of the append that was begun
        self._start = Position(0)  # the log may begin here once deleting was begun

    # -- append ------------------------------------------------------------------------------------------------------

    def begin(self, messages: Sequence[NewMessage], now: int) -> bool:
        """These messages are about to be appended; False if one fits into no file: then all must be refused."""
        sizes = [self.size(message) for message in messages]
        if any(size + log_spec.BLANK > self.log.file_size for size in sizes):
            return False
        numbers: dict[QueueName, int] = {}
        s, time = self.log, max(now, self.log.newest)
        self._begun, self._coming = [AppendStage(s, 0)], []
        for message, size in zip(messages, sizes, strict=True):
            if s.end + size + log_spec.BLANK > s.base + s.file_size:
                following = Position(s.base + s.file_size)
                s = log_spec.roll(s, s.end, following - s.end, marked=True)
                self._begun.append(AppendStage(s, len(self._coming)))
                s = log_spec.flush(s, following)
                self._begun.append(AppendStage(s, len(self._coming)))
            number = numbers.get(message.queue, self.queue(message.queue).end)
            numbers[message.queue] = number + 1
            self._coming.append(SentMessage(message, s.end, size, number, time))
            s = log_spec.append(
                s, s.end, size, claimed=s.end, known=True, fits=True, intact=True, sealed=True, time=time
            )
            self._begun.append(AppendStage(s, len(self._coming)))
        return True

    def appended(self, reported: Sequence[MessagePlace]) -> None:
        """The store says that it has appended, and where."""
        expected = [(sent.position, sent.size, sent.number) for sent in self._coming]
        places = [(*placed,) for placed in reported]
        if places != expected:
            raise Mismatch(f"the messages were to be at (position, size, number) {expected}, the store says {places}")
        self._go(self._begun[-1])

    def failed(self, end: int, flushed: int, *, stopped: bool) -> None:
        """The store could not append all; it says that the log ends at `end`, and is on disk up to `flushed`.

        If it has `stopped`, it may have written more than that, and never appends again.
        """
        stages, coming = self._begun, self._coming
        likely = [stage for stage in stages if stage.state.end == end]
        found = next((stage for stage in likely if stage.state.flushed == flushed), next(iter(likely), None))
        if found is None:
            raise Mismatch(f"after an append that failed, the log ends at {end}, which is no end of a record")
        self._go(found)
        if stopped:
            later = [stage for stage in stages if stage.written >= found.written]
            self._begun = [AppendStage(stage.state, stage.written - found.written) for stage in later]
            self._coming = coming[found.written :]

    def _go(self, stage: AppendStage) -> None:
        for sent in self._coming[: stage.written]:
            self._append(sent)
        self.log = stage.state
        self._begun, self._coming = [], []

    def _append(self, sent: SentMessage) -> None:
        name, before = sent.wanted.queue, self.queue(sent.wanted.queue)
        self.queues[name] = queue_spec.append(
            before, Number(sent.number), 1, Position(sent.position), sent.size, self.tag_code(sent.wanted.tag)
        )
        self.sent.append(sent)

    def queue(self, name: QueueName) -> queue_spec.State:
        """The model's state of a queue; of a new one where nothing was sent to it."""
        return self.queues.get(name) or queue_spec.open(queue_spec.INITIAL, Number(0), Position(0))

    # -- what else the store says ------------------------------------------------------------------------------------

    def flushed(self, to: int) -> None:
        """The store says that all before `to` is on disk. It was asked to flush all there is."""
        if to != self.log.end:
            raise Mismatch(f"a flush ended at {to}, and the log ends at {self.log.end}")
        self.log = log_spec.flush(self.log, Position(to))

    def acknowledged(self, to: int) -> None:
        """The store may report to producers that all before `to` is safe."""
        self.log = log_spec.acknowledge(self.log, Position(to))

    def checkpointed(self, time: int) -> None:
        """The checkpoint says that all stored up to `time` is on disk."""
        self.log = log_spec.checkpoint(self.log, time)
        late = next((sent for sent in self.sent if sent.position >= self.log.flushed and sent.time < time), None)
        if late is not None:
            raise Mismatch(f"the checkpoint says {time} ms, and the record of {late.time} ms is not on disk")

    def entries(self, name: QueueName, upto: int, entries: Sequence[QueueEntry], *, safe: bool) -> None:
        """Readers see the queue up to `upto`; `entries`: (position, size, tag) of those they had not seen.

        `safe`: consumers of this store see nothing that a crash can take away.
        """
        s = self.queue(name)
        if upto < s.indexed:
            raise Mismatch(f"readers of {name} saw {s.indexed} entries, and see {upto} now")
        for number, (position, size, tag) in enumerate(entries, s.indexed):
            s = queue_spec.index(s, Number(number), Position(position), size, tag)
            if safe and position + size > self.log.flushed:
                raise Mismatch(f"readers of {name} see number {number}, whose record a crash may take away")
        self.queues[name] = s
        self.shown[name] = upto if safe else 0

    # -- expiry ------------------------------------------------------------------------------------------------------

    def expiring(self, before: int) -> None:
        """Files whose records were all stored before that time, in ms, are about to be deleted."""
        kept = next((sent.position for sent in self.sent if sent.time >= before), self.log.end)
        upto = min(kept, self.log.flushed) // self.log.file_size * self.log.file_size
        self._start = Position(max(self._start, upto))

    def expired(self, start: int) -> None:
        """The log begins at `start` now."""
        if start % self.log.file_size or start > self._start:
            raise Mismatch(f"the log begins at {start}, and what lay from {self._start} on was not to expire")
        for name, s in self.queues.items():
            number = next((n for n in range(s.first, s.end) if s.positions[Number(n)] >= start), s.end)
            self.queues[name] = queue_spec.expire(s, Number(number), Position(start))
        self.start = start

    start = 0  # where the log begins; its own spec knows no expiry

    # -- after a crash -----------------------------------------------------------------------------------------------

    def lost(self, kept: int, start: int, *, power: bool) -> list[SentMessage]:
        """A crash, after which the log is found from `start` to `kept`; returns what must be found in it.

        `power`: the power was lost, not only the process; the death of a process loses nothing.
        """
        stage = self._after(kept, power=power)
        self._go(stage)
        self.sent = [sent for sent in self.sent if sent.position < kept]
        newest = max((sent.time for sent in self.sent), default=0)
        self.log = replace(log_spec.crash(stage.state, Position(kept)), clock=newest, newest=newest)
        for name in list(self.queues):
            self._cut(name, kept)
        if start != self.start:
            self.expired(start)
        return [sent for sent in self.sent if sent.position >= start]

    def _after(self, kept: int, *, power: bool) -> AppendStage:
        """The first stage of the append that was begun from which a crash leads here."""
        reasons = []
        for stage in self._begun or [AppendStage(self.log, 0)]:
            try:
                log_spec.crash(stage.state, Position(kept))
            except Refused as refused:
                reasons.append(refused)
            else:
                if power or kept == stage.state.end:
                    return stage
        s = self.log
        if not reasons:
            raise Mismatch(f"the process died and the log ends at {kept}, though it was written up to {s.end}")
        raise Mismatch(
            f"the log is found up to {kept}: acknowledged {s.acknowledged}, flushed {s.flushed}, end {s.end}; "
            f"{breach('crash', reasons[0].because)}"
        ) from reasons[0]

    def _cut(self, name: QueueName, kept: int) -> None:
        s = self.queues[name]
        end = next((n for n in range(s.first, s.end) if s.positions[Number(n)] >= kept), s.end)
        if end < self.shown.get(name, 0):
            raise Mismatch(f"consumers of {name} saw {self.shown[name]} messages, and a crash left {end}")
        maps = {field: getattr(s, field).forget_from(end) for field in SPECS["queue"].maps}
        self.queues[name] = replace(s, end=Number(end), indexed=Number(min(s.indexed, end)), **maps)

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, sent: SentMessage, found: StoredMessage) -> None:
        """A reader found this record for a message that was sent."""
        reported = (found.message.queue, found.number, found.position, found.size, found.time)
        if reported != (sent.wanted.queue, sent.number, sent.position, sent.size, sent.time):
            raise Mismatch(f"expected {sent}, found (queue, number, position, size, time) {reported}")
        if found.message != sent.wanted:
            raise Mismatch(f"at {sent.position} lies another message than was sent: {found}")
