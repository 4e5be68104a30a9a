"""A client that remembers all it sent and all it was told, and beside it the states of the model.

It predicts: where each record will lie, how long it is and which number it takes follow from the specs alone, so that
what a store says and what is found in it are held against this, and never against the store's own word. What was asked
and has not returned is *begun*: any of the states it leads through may be found after a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gapless.impl.records.record import Record
from gapless.spec import log as log_spec
from gapless.spec import queue as queue_spec
from gapless.spec.language import Number, Position, Refused, replace

HEADER = 91  # bytes of a record with neither body, topic nor properties (reference A.2)
MAPS = ("positions", "sizes", "tags", "entry_positions", "entry_sizes", "entry_tags")

Name = tuple[str, int]
"""A topic and the number of one of its queues."""


class Broken(Exception):  # noqa: N818 - it names a finding.
    """The implementation is not what the specs say, or not what it told its client."""


class Wanted(NamedTuple):
    """A message that is to be sent."""

    queue: Name
    body: bytes
    properties: dict[str, str]
    tag: int  # the code of the tag among its properties

    @property
    def packed(self) -> bytes:
        """The properties as they lie in a record."""
        return "".join(f"{name}\x01{value}\x02" for name, value in self.properties.items()).encode()


class Sent(NamedTuple):
    """A message and where the specs say that it lies."""

    wanted: Wanted
    position: int
    size: int
    number: int
    time: int  # ms


class Way(NamedTuple):
    """A state that what was begun leads through, and how many of its messages are in the log by then."""

    state: log_spec.State
    written: int


class Witness:
    """What a client knows of a store.

    `log`, `queues`: the model's states · `sent`: what is in the log, in order, what has expired too · `shown`: of every
    queue, the exclusive end of what consumers saw.
    """

    def __init__(self, file_size: int) -> None:
        self.log = log_spec.open(log_spec.INITIAL, Position(0), file_size)
        self.queues: dict[Name, queue_spec.State] = {}
        self.sent: list[Sent] = []
        self.shown: dict[Name, int] = {}
        self._begun: list[Way] = []
        self._coming: list[Sent] = []  # of what was begun
        self._start = Position(0)  # the log may begin here by now, where deleting was begun

    # -- append ------------------------------------------------------------------------------------------------------

    def begin(self, messages: Sequence[Wanted], now: int) -> bool:
        """These messages are about to be appended; False where one fits into no file, and all must be refused."""
        sizes = [HEADER + len(m.queue[0].encode()) + len(m.body) + len(m.packed) for m in messages]
        if any(size + log_spec.BLANK > self.log.file_size for size in sizes):
            return False
        numbers: dict[Name, int] = {}
        s, time = self.log, max(now, self.log.newest)
        self._begun, self._coming = [Way(s, 0)], []
        for message, size in zip(messages, sizes, strict=True):
            if s.end + size + log_spec.BLANK > s.base + s.file_size:
                following = Position(s.base + s.file_size)
                s = log_spec.roll(s, s.end, following - s.end, marked=True)
                self._begun.append(Way(s, len(self._coming)))
                s = log_spec.flush(s, following)
            number = numbers.get(message.queue, self.queue(message.queue).end)
            numbers[message.queue] = number + 1
            self._coming.append(Sent(message, s.end, size, number, time))
            s = log_spec.append(
                s, s.end, size, claimed=s.end, known=True, fits=True, intact=True, sealed=True, time=time
            )
            self._begun.append(Way(s, len(self._coming)))
        return True

    def appended(self, told: Sequence[tuple[int, int, int]]) -> None:
        """The store says: appended, with these positions, sizes and numbers."""
        expected = [(sent.position, sent.size, sent.number) for sent in self._coming]
        if list(told) != expected:
            raise Broken(f"the messages were to be at (position, size, number) {expected}, the store says {told}")
        self._go(self._begun[-1])

    def failed(self, end: int, *, stopped: bool) -> None:
        """The store could not append all; it says that the log ends at `end`.

        Where it has `stopped`, it may have written more than that, and it goes on nevermore.
        """
        ways, coming = self._begun, self._coming
        found = next((way for way in ways if way.state.end == end), None)
        if found is None:
            raise Broken(f"after an append that failed, the log ends at {end}, which is no end of a record")
        self._go(found)
        if stopped:
            self._begun = [Way(way.state, way.written - found.written) for way in ways if way.written >= found.written]
            self._coming = coming[found.written :]

    def _go(self, way: Way) -> None:
        for sent in self._coming[: way.written]:
            self._append(sent)
        self.log = way.state
        self._begun, self._coming = [], []

    def _append(self, sent: Sent) -> None:
        name, before = sent.wanted.queue, self.queue(sent.wanted.queue)
        self.queues[name] = queue_spec.append(
            before, Number(sent.number), 1, Position(sent.position), sent.size, sent.wanted.tag
        )
        self.sent.append(sent)

    def queue(self, name: Name) -> queue_spec.State:
        """The model's state of a queue; of a new one where nothing was sent to it."""
        return self.queues.get(name) or queue_spec.open(queue_spec.INITIAL, Number(0), Position(0))

    # -- what the store says besides ---------------------------------------------------------------------------------

    def flushed(self, to: int) -> None:
        """The store says: all before `to` is on disk. All that there is was asked for."""
        if to != self.log.end:
            raise Broken(f"a flush ended at {to}, and the log ends at {self.log.end}")
        self.log = log_spec.flush(self.log, Position(to))

    def acknowledged(self, to: int) -> None:
        """The store lets producers be told that all before `to` is safe."""
        self.log = log_spec.acknowledge(self.log, Position(to))

    def checkpointed(self, time: int) -> None:
        """The checkpoint says that all stored up to `time` is on disk."""
        self.log = log_spec.checkpoint(self.log, time)
        late = next((sent for sent in self.sent if sent.position >= self.log.flushed and sent.time < time), None)
        if late is not None:
            raise Broken(f"the checkpoint says {time} ms, and the record of {late.time} ms is not on disk")

    def entries(self, name: Name, upto: int, entries: Sequence[tuple[int, int, int]], *, safe: bool) -> None:
        """Readers see the queue up to `upto`; `entries`: (position, size, tag) of those that are new to them.

        `safe`: consumers of this store see nothing that a crash can take away.
        """
        s = self.queue(name)
        if upto < s.indexed:
            raise Broken(f"readers of {name} saw {s.indexed} entries, and see {upto} now")
        for number, (position, size, tag) in enumerate(entries, s.indexed):
            s = queue_spec.index(s, Number(number), Position(position), size, tag)
            if safe and position + size > self.log.flushed:
                raise Broken(f"readers of {name} see number {number}, whose record a crash may take away")
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
            raise Broken(f"the log begins at {start}, and what lay from {self._start} on was not to expire")
        for name, s in self.queues.items():
            number = next((n for n in range(s.first, s.end) if s.positions[Number(n)] >= start), s.end)
            self.queues[name] = queue_spec.expire(s, Number(number), Position(start))
        self.start = start

    start = 0  # where the log begins; its own spec knows no expiry

    # -- after a crash -----------------------------------------------------------------------------------------------

    def lost(self, kept: int, start: int, *, power: bool) -> list[Sent]:
        """A crash, after which the log is found from `start` to `kept`; returns what must be found in it.

        `power`: it was lost, and not just the process, which loses nothing.
        """
        way = self._after(kept, power=power)
        for sent in self._coming[: way.written]:
            self._append(sent)
        self._begun, self._coming = [], []
        self.sent = [sent for sent in self.sent if sent.position < kept]
        newest = max((sent.time for sent in self.sent), default=0)
        self.log = replace(log_spec.crash(way.state, Position(kept)), clock=newest, newest=newest)
        for name in list(self.queues):
            self._cut(name, kept)
        if start != self.start:
            self.expired(start)
        return [sent for sent in self.sent if sent.position >= start]

    def _after(self, kept: int, *, power: bool) -> Way:
        """The first of the states that what was begun leads through from which a crash leads here."""
        ways = self._begun or [Way(self.log, 0)]
        reasons = []
        for way in ways:
            try:
                log_spec.crash(way.state, Position(kept))
            except Refused as refused:
                reasons.append(refused)
            else:
                if power or kept == way.state.end:
                    return way
        s = self.log
        if not reasons:
            raise Broken(f"the process died and the log ends at {kept}, though it was written up to {s.end}")
        raise Broken(
            f"the log is found up to {kept}: acknowledged {s.acknowledged}, flushed {s.flushed}, end {s.end}; "
            f"crash needs: {reasons[0]}"
        ) from reasons[0]

    def _cut(self, name: Name, kept: int) -> None:
        s = self.queues[name]
        end = next((n for n in range(s.first, s.end) if s.positions[Number(n)] >= kept), s.end)
        if end < self.shown.get(name, 0):
            raise Broken(f"consumers of {name} saw {self.shown[name]} messages, and a crash left {end}")
        maps = {field: getattr(s, field).forget_from(end) for field in MAPS}
        self.queues[name] = replace(s, end=Number(end), indexed=Number(min(s.indexed, end)), **maps)

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, sent: Sent, found: Record) -> None:
        """A reader was given this for a message that was sent."""
        told = (found.topic, found.queue, found.number, found.position, found.size, found.store_time)
        if told != (*sent.wanted.queue, sent.number, sent.position, sent.size, sent.time):
            raise Broken(f"expected {sent}, found (topic, queue, number, position, size, time) {told}")
        if found.body != sent.wanted.body or found.properties != sent.wanted.properties or found.sys_flag:
            raise Broken(f"at {sent.position} lies another message than was sent: {found}")
