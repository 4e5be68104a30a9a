"""A client of a store on a disk that may fail: each call is one step of the store.

Every step is compared with the client's oracle at once: both step, or the store refuses because the disk has failed.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from gapless.impl.dispatch.batches import DispatchBatch
from gapless.impl.dispatch.pool import rebuild
from gapless.impl.recorder.recorder import Recorder
from gapless.impl.records.errors import Refused as NotTaken
from gapless.impl.records.errors import Stopped, StoreError
from gapless.impl.records.record import Messages, properties_bytes, tag_code
from gapless.impl.store.core import Core, Settings
from gapless.properties.machines import as_spec
from gapless.properties.machines.crashes.client_oracle import ClientOracle, Name, NewMessage
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.simulation.choices import Choose
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.spec.language import replace

QUEUES: tuple[Name, ...] = (("orders", 0), ("orders", 1), ("bills", 0), ("Ünïcode", 7))
BODIES = (0, 7, 60, 200, 450, 900, 1700)  # bytes
TAGS = ("", "new", "paid", "Ärger")
TICKS = (1, 0, 4000, 60_000, 1000, -2500)  # ms that pass between two steps; a clock may be set back


class DiskFault(NamedTuple):
    """A way in which a disk is made to fail."""

    error: int
    verb: str
    path: str
    forget: bool = False


DISK_FAULTS = (
    DiskFault(errno.ENOSPC, "create", "commitlog/*"),
    DiskFault(errno.ENOSPC, "create", "consumequeue/*"),
    DiskFault(errno.ENOSPC, "write", "*"),
    DiskFault(errno.EIO, "sync", "commitlog/*"),
    DiskFault(errno.EIO, "sync", "commitlog/*", forget=True),
    DiskFault(errno.EIO, "sync", "consumequeue/*"),
    DiskFault(errno.EIO, "sync", "consumequeue/*", forget=True),
    DiskFault(errno.EIO, "create", "*"),
    DiskFault(errno.EIO, "delete", "*"),
    DiskFault(errno.EIO, "write", "*"),
    DiskFault(errno.EIO, "open", "*"),
)


@dataclass
class CrashTally:
    """What was tried.

    `ends`: how lives ended · `uses`: during which use of the disk the power failed · `replayed`: what recordings gave.
    """

    cases: int = 0
    points: int = 0  # crashes; each was followed by a recovery that was checked, or that crashed itself
    records: int = 0  # records that were found after a crash and compared
    steps: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    uses: Counter[str] = field(default_factory=Counter)
    replayed: Counter[str] = field(default_factory=Counter)

    def add(self, other: CrashTally) -> None:
        """Add what another one counted."""
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))


class StoreClient:
    """The client of a store.

    `armed`: the disk was told to fail in this life · `stopped`: the store said that it has stopped · `forgotten`: the
    kernel may take for safe what is not · `batches`: built and not committed · `recorder`: records every life.
    """

    settings: Settings
    disk: SimulatedDisk
    oracle: ClientOracle
    core: Core
    alike: bool  # all messages are of one size: what was lost could come back in its place
    busy: tuple[Name, ...]  # the queues that messages are sent to

    def __init__(
        self, choose: Choose, tell: Callable[[str], object] | None = None, recorder: Recorder | None = None
    ) -> None:
        self.choose = choose
        self.told = tell
        self.recorder = recorder
        self.tally = CrashTally(cases=1)
        self.now = 1_700_000_000_000
        self.serial = 0
        self.batches: list[DispatchBatch] = []
        self.armed = self.stopped = self.forgotten = False

    def tell(self, line: str, *parts: object) -> None:
        """One line of the story."""
        if self.told is not None:
            self.told(line.format(*parts))

    def pick(self, ways: Sequence[object]) -> int:
        """The index of one of these."""
        return self.choose(len(ways))

    def _favour(self) -> None:
        """Choose the queues that messages are sent to from now on."""
        low = self.pick(QUEUES)
        self.busy = QUEUES[low : low + 1 + self.pick(QUEUES)]

    def _message(self) -> NewMessage:
        self.serial += 1
        if self.alike:
            return NewMessage(QUEUES[self.pick(self.busy) % 2], self.serial.to_bytes(4, "big") * 40, {}, 0)
        size = BODIES[self.pick(BODIES)]
        body = (self.serial.to_bytes(4, "big") + bytes(range(256)) * 8)[:size] if size else b""
        tag = TAGS[self.pick(TAGS)]
        properties = {"TAGS": tag, "n": str(self.serial)} if tag else {}
        return NewMessage(self.busy[self.pick(self.busy)], body, properties, tag_code(tag))

    # -- asking ------------------------------------------------------------------------------------------------------

    def append(self) -> None:
        """One message."""
        message = self._message()
        core, properties = self.core, properties_bytes(message.properties)
        queue = core.queues.named(*message.queue)
        self._appending([message], lambda: [(*core.append(queue, message.body, properties, self.now), queue.next - 1)])

    def append_many(self) -> None:
        """A batch, which may reach over the end of a file."""
        messages = [self._message() for _ in range(2 + self.choose(12))]
        columns = Messages.of_list([(*m.queue, m.body, m.properties) for m in messages])
        self._appending(
            messages,
            lambda: [(p, size, n) for p, size, _, n in self.core.append_many(columns, self.now).T.tolist()],
        )

    def _appending(self, messages: list[NewMessage], ask: Callable[[], list[tuple[int, int, int]]]) -> None:
        if self.stopped:
            ask()
            raise Mismatch(f"a flush failed, and the store takes {messages}")
        fits = self.oracle.begin(messages, self.now)
        try:
            told = ask()
        except NotTaken:
            if fits:
                raise
            self.tally.refused["append"] += 1
            return
        except StoreError as error:
            self.oracle.failed(self.core.log.end, stopped=isinstance(error, Stopped))
            self.stopped |= isinstance(error, Stopped)
            raise
        self.tell("append {} messages: (position, size, number) {}", len(messages), told)
        if not fits:
            raise Mismatch(f"the store takes {messages}, of which one fits into no file")
        self.oracle.appended(told)

    def flush(self) -> None:
        """All that is in the log is on disk."""
        try:
            to = self.core.flush()
        except Stopped:
            self.stopped = True
            raise
        if self.stopped and to > self.oracle.log.flushed:
            raise Mismatch(f"a flush failed, and another one says that all before {to} is on disk")
        self.tell("flush to {}", to)
        self.oracle.flushed(to)

    def acknowledge(self) -> None:
        """Producers are told what is safe; they must not be told more."""
        to = (self.core.log.flushed, self.core.log.end)[self.choose(2)]
        try:
            self.core.acknowledge(to)
        except NotTaken:
            if to <= self.oracle.log.flushed:
                raise
            self.tally.refused["acknowledge"] += 1
            return
        self.tell("acknowledge to {}", to)
        if to > self.oracle.log.acknowledged:
            self.oracle.acknowledged(to)

    def dispatch(self) -> None:
        """Every entry that may be visible is built and committed."""
        self._finish_batches()
        rebuild(self.core.dispatch, self.core.limit, 1)
        self.tell("dispatch to {}", self.core.dispatch.dispatched)
        self._see_all()

    def build(self) -> None:
        """One more batch is built and not committed yet."""
        dispatch = self.core.dispatch
        if self.core.scan() is not None and (batch := dispatch.take()) is not None:
            dispatch.build(batch)
            dispatch.wrote(batch)
            self.batches.append(batch)
            self.tell("build {}", batch)

    def commit(self) -> None:
        """What was built of one queue becomes visible."""
        queues = self.core.queues.all
        if queues:
            queue = queues[self.pick(queues)]
            self.tell("commit {} to {}", queue.name, self.core.dispatch.commit(queue))
            self._see(queue.index)

    def _finish_batches(self) -> None:
        while self.batches:
            self.core.dispatch.commit_all(self.batches.pop())
        self._see_all()

    def _see_all(self) -> None:
        for queue in self.core.queues.all:
            self._see(queue.index)

    def flush_queues(self) -> None:
        """Entries are on disk, as far as their records are."""
        self.core.flush_queues()
        self.tell("flush queues: {}", [(queue.name, queue.flushed) for queue in self.core.queues.all])

    def checkpoint(self) -> None:
        """The checkpoint file says what is safe."""
        self.core.write_checkpoint(self.now)
        self.tell("checkpoint: log {}, queues {}", self.core.checkpoint.log, self.core.checkpoint.queues)
        self.oracle.checkpointed(self.core.checkpoint.log)

    def make_ready(self) -> None:
        """The next file is created in advance."""
        self.core.log.make_ready()
        self.tell("the log has files {}", self.core.log.segments.bases)

    def write_back(self) -> None:
        """The kernel writes some pages out by itself."""
        self.disk.write_back(self.choose)
        self.tell("the kernel writes back")

    def tick(self) -> None:
        """Time passes, or the clock is set back."""
        self.now += TICKS[self.pick(TICKS)]
        self._favour()
        self.tell("it is {}", self.now)

    def expire(self) -> None:
        """Old files are deleted."""
        self._see_all()  # a dispatch that was refused may have committed some
        sent = self.oracle.sent
        before = sent[-1 - self.pick(sent)].time + self.choose(2) if sent else 0
        self.oracle.expiring(before)
        start = self.core.expire(before)
        self.tell("expire what is older than {}: the log begins at {}", before, start)
        self.oracle.expired(start)

    def fail(self) -> None:
        """The next use of the disk, of a certain kind, fails."""
        fault = DISK_FAULTS[self.pick(DISK_FAULTS)]
        self.disk.fail(fault.error, verb=fault.verb, path=fault.path, forget=fault.forget, times=1 + self.choose(3))
        self.armed = True
        self.forgotten |= fault.forget
        self.tell("the disk fails: {}", fault)

    # -- comparing ---------------------------------------------------------------------------------------------------

    def _compare_log(self) -> None:
        found, expected = as_spec.log(self.core), self.oracle.log
        if replace(found, start=expected.start) != expected:
            raise Mismatch(f"the log is {found}, expected {expected}")

    def _see(self, index: int) -> None:
        """Readers look at a queue."""
        queue = self.core.queues.all[index]
        name = queue.topic, queue.id
        new = queue.entries(self.oracle.queue(name).indexed, queue.committed).tolist()
        self.oracle.entries(name, queue.committed, new, safe=bool(self.settings.synchronous))

    def _must_be_armed(self, error: StoreError) -> None:
        if not self.armed:
            raise Mismatch(
                f"nothing is wrong with the disk, and the store says {type(error).__name__}: {error}"
            ) from error
