"""A client of a store on a disk that may fail: each call is one step of the store, a subject.

Every step is compared with the client's oracle at once: both step, or the store refuses because the disk has failed.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gapless.properties.campaign import CaseTally
from gapless.properties.machines.crashes.client_oracle import ClientOracle
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.machines.spec_refinement import require_same
from gapless.properties.simulation.choices import Choose
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.properties.subject import (
    MessagePlace,
    NewMessage,
    QueueName,
    Subject,
    SubjectBatch,
    SubjectLayout,
    path_of,
    require_all_verbs,
)
from gapless.spec.language import replace

QUEUES: tuple[QueueName, ...] = (("orders", 0), ("orders", 1), ("bills", 0), ("Ünïcode", 7))
BODIES = (0, 7, 60, 200, 450, 900, 1700)  # bytes
TAGS = ("", "new", "paid", "Ärger")
TICKS = (1, 0, 4000, 60_000, 1000, -2500)  # ms that pass between two steps; a clock may be set back


class DiskFault(NamedTuple):
    """A way in which a disk is made to fail. `path`: a pattern, or files of the subject by what they are for."""

    error: int
    verb: str
    path: str
    forget: bool = False


DISK_FAULTS = (
    DiskFault(errno.ENOSPC, "create", "log"),
    DiskFault(errno.ENOSPC, "create", "queues"),
    DiskFault(errno.ENOSPC, "write", "*"),
    DiskFault(errno.EIO, "sync", "log"),
    DiskFault(errno.EIO, "sync", "log", forget=True),
    DiskFault(errno.EIO, "sync", "queues"),
    DiskFault(errno.EIO, "sync", "queues", forget=True),
    DiskFault(errno.EIO, "create", "*"),
    DiskFault(errno.EIO, "delete", "*"),
    DiskFault(errno.EIO, "write", "*"),
    DiskFault(errno.EIO, "open", "*"),
)


@dataclass
class CrashTally(CaseTally):
    """The tally of what was tried.

    `ends`: how lives ended · `uses`: during which use of the disk the power failed · `replayed`: what recordings gave ·
    `absent`: which steps were left out of how many lives, and why.
    """

    points: int = 0  # crashes; each was followed by a recovery that was checked, or that crashed itself
    records: int = 0  # records that were found after a crash and compared
    steps: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    uses: Counter[str] = field(default_factory=Counter)
    replayed: Counter[str] = field(default_factory=Counter)
    absent: Counter[str] = field(default_factory=Counter)

    @property
    def done(self) -> int:
        """Count crashes."""
        return self.points


class StoreClient:
    """The client of a store.

    `armed`: the disk is to fail in this life · `stopped`: the store has reported that it stopped · `forgotten`: the
    kernel may take for safe what is not · `batches`: built and not committed.
    """

    layout: SubjectLayout
    disk: SimulatedDisk
    oracle: ClientOracle
    alike: bool  # all messages are of one size: what was lost could come back in its place
    busy: tuple[QueueName, ...]  # the queues that messages are sent to

    def __init__(self, subject: Subject, choose: Choose, tell: Callable[[str], object] | None = None) -> None:
        require_all_verbs(subject)
        self.subject = subject
        self.choose = choose
        self.report = tell
        self.tally = CrashTally(cases=1)
        self.now = 1_700_000_000_000
        self.serial = 0
        self.batches: list[SubjectBatch] = []
        self.armed = self.stopped = self.forgotten = False

    def tell(self, line: str, *parts: object) -> None:
        """One line of the story."""
        if self.report is not None:
            self.report(line.format(*parts))

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
            return NewMessage(QUEUES[self.pick(self.busy) % 2], self.serial.to_bytes(4, "big") * 40)
        size = BODIES[self.pick(BODIES)]
        body = (self.serial.to_bytes(4, "big") + bytes(range(256)) * 8)[:size] if size else b""
        tag = TAGS[self.pick(TAGS)]
        return NewMessage(self.busy[self.pick(self.busy)], body, tag, {"n": str(self.serial)} if tag else {})

    # -- asking ------------------------------------------------------------------------------------------------------

    def append(self) -> None:
        """One message."""
        message = self._message()
        self._appending([message], lambda: [self.subject.append(message, self.now)])

    def append_many(self) -> None:
        """A batch, which may reach over the end of a file."""
        messages = [self._message() for _ in range(2 + self.choose(12))]
        self._appending(messages, lambda: self.subject.append_many(messages, self.now))

    def _appending(self, messages: list[NewMessage], ask: Callable[[], list[MessagePlace]]) -> None:
        if self.stopped:
            ask()
            raise Mismatch(f"a flush failed, and the store takes {messages}")
        fits = self.oracle.begin(messages, self.now)
        try:
            places = ask()
        except self.subject.errors.refused:
            if fits:
                raise
            self.tally.refused["append"] += 1
            return
        except self.subject.errors.any as error:
            stopped = isinstance(error, self.subject.errors.stopped)
            s = self.subject.as_log()
            self.oracle.failed(s.end, s.flushed, stopped=stopped)
            self.stopped |= stopped
            raise
        self.tell("append {} messages: (position, size, number) {}", len(messages), [(*one,) for one in places])
        if not fits:
            raise Mismatch(f"the store takes {messages}, of which one fits into no file")
        self.oracle.appended(places)

    def flush(self) -> None:
        """All that is in the log is on disk."""
        try:
            to = self.subject.flush()
        except self.subject.errors.stopped:
            self.stopped = True
            raise
        if self.stopped and to > self.oracle.log.flushed:
            raise Mismatch(f"a flush failed, and another one says that all before {to} is on disk")
        self.tell("flush to {}", to)
        self.oracle.flushed(to)

    def acknowledge(self) -> None:
        """Report safe messages to producers, and no more."""
        s = self.subject.as_log()
        to = (s.flushed, s.end)[self.choose(2)]
        try:
            self.subject.acknowledge(to)
        except self.subject.errors.refused:
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
        subject = self.subject
        while batch := subject.take() or (subject.scan() and subject.take()):
            try:
                subject.build(batch)
            except Exception as error:
                if "failed" in subject.absent or not subject.failed(batch, error):
                    raise
            else:
                subject.wrote(batch)
                subject.commit_all(batch)
        self.tell("dispatch to {}", subject.progress().dispatched)
        self._see_all()

    def build(self) -> None:
        """One more batch is built and not committed yet."""
        subject = self.subject
        if subject.scan() is not None and (batch := subject.take()) is not None:
            subject.build(batch)
            subject.wrote(batch)
            self.batches.append(batch)
            self.tell("build {}", batch)

    def commit(self) -> None:
        """Make the built entries of one queue visible."""
        queues = self.subject.queues()
        if queues:
            queue = queues[self.pick(queues)]
            self.tell("commit {} to {}", path_of(queue), self.subject.commit(queue))
            self._see(queue)

    def _finish_batches(self) -> None:
        while self.batches:
            self.subject.commit_all(self.batches.pop())
        self._see_all()

    def _see_all(self) -> None:
        for queue in self.subject.queues():
            self._see(queue)

    def flush_queues(self) -> None:
        """Entries are on disk, as far as their records are."""
        subject = self.subject
        subject.flush_queues()
        self.tell("flush queues: {}", [(path_of(queue), subject.reach(queue).flushed) for queue in subject.queues()])

    def checkpoint(self) -> None:
        """The checkpoint file says what is safe."""
        checkpoint = self.subject.checkpoint(self.now)
        self.tell("checkpoint: what was stored up to {} is on disk", checkpoint)
        self.oracle.checkpointed(checkpoint)

    def make_ready(self) -> None:
        """The next file is created in advance."""
        self.subject.make_ready()
        self.tell("the next file is there")

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
        start = self.subject.expire(before)
        self.tell("expire what is older than {}: the log begins at {}", before, start)
        self.oracle.expired(start)

    def fail(self) -> None:
        """The next use of the disk, of a certain kind, fails."""
        fault = DISK_FAULTS[self.pick(DISK_FAULTS)]
        path = self.subject.files.get(fault.path, fault.path)
        self.disk.fail(fault.error, verb=fault.verb, path=path, forget=fault.forget, times=1 + self.choose(3))
        self.armed = True
        self.forgotten |= fault.forget
        self.tell("the disk fails: {}", fault)

    # -- comparing ---------------------------------------------------------------------------------------------------

    def _compare_log(self) -> None:
        expected = self.oracle.log
        require_same(replace(self.subject.as_log(), start=expected.start), expected, "the log: ")

    def _see(self, name: QueueName) -> None:
        """Readers look at a queue."""
        committed = self.subject.reach(name).committed
        new = self.subject.entries(name, self.oracle.queue(name).indexed, committed)
        self.oracle.entries(name, committed, new, safe=self.layout.synchronous)

    def _must_be_armed(self, error: Exception) -> None:
        if not self.armed:
            raise Mismatch(
                f"nothing is wrong with the disk, and the store says {type(error).__name__}: {error}"
            ) from error
