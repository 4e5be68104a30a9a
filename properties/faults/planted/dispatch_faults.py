"""Faults in how queues are built: the scanner, workers, the commit position, what is flushed, and starting again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gapless.impl.dispatch import dispatch as dispatch_module
from gapless.impl.dispatch import queue_table
from gapless.impl.dispatch.batches import WAITING, WRITTEN, DispatchBatch
from gapless.impl.dispatch.bitmap import set_bits
from gapless.impl.dispatch.dispatch import Dispatch
from gapless.impl.dispatch.queue_table import QueueTable
from gapless.impl.dispatch.scan_kernel import (
    ADDRESS,
    BITS,
    COMMITTED,
    FIRST,
    LOW,
    NEWEST,
    ROOM,
    RUN_QUEUE,
    SCANNED,
    SKIPPED,
)
from gapless.impl.dispatch.scanner import Scanner
from gapless.impl.records.errors import StoreError
from gapless.impl.records.record import ENTRY_BYTES
from gapless.impl.store import core
from gapless.properties.faults.planted.fault_injection import Faults

if TYPE_CHECKING:
    from gapless.impl.files.queues import ConsumeQueue
    from gapless.impl.records.record import Bytes, Ints

FAULTS = Faults()
fault = FAULTS.plant


# -- the commit position -----------------------------------------------------------------------------------------------


@fault("the commit position passes a gap of one", core, "Dispatch", "G02")
class _PassesOneGap(Dispatch):
    """A hole is visible."""

    def _gapless_ends(self, queues: Ints) -> Ints:
        ends: Ints = np.minimum(super()._gapless_ends(queues) + 1, self._table.columns[queues, SCANNED])
        return ends


@fault("the commit position is the highest written", core, "Dispatch", "G02")
class _TakesTheHighestSlot(Dispatch):
    """A hole is visible."""

    def _gapless_ends(self, queues: Ints) -> Ints:
        ends = super()._gapless_ends(queues)
        for i, index in enumerate(queues.tolist()):
            ends[i] = max([int(ends[i]) - 1, *self.written(self._queues.all[index])]) + 1
        return ends


@fault("a commit takes one entry", core, "Dispatch")
class _TakesOneAtATime(Dispatch):
    """Messages wait for nothing."""

    def _gapless_ends(self, queues: Ints) -> Ints:
        ends: Ints = np.minimum(super()._gapless_ends(queues), self._table.columns[queues, COMMITTED] + 1)
        return ends


@fault("the bit is set before the entry is written", core, "Dispatch")
class _SetsBitsTooEarly(Dispatch):
    """A hole is visible."""

    def take(self, batch: DispatchBatch | None = None) -> DispatchBatch | None:
        taken = super().take(batch)
        if taken is not None:
            set_bits(self._table.bits, self._table.columns, taken.runs)
        return taken


# -- workers -----------------------------------------------------------------------------------------------------------


@fault("a batch that failed counts as written", core, "Dispatch", "C33")
class _SkipsFailures(Dispatch):
    """A hole is visible."""

    def failed(self, batch: DispatchBatch, error: BaseException) -> bool:
        again = super().failed(batch, error)
        if again:
            self._waiting.remove(batch)
            batch.state = WRITTEN
            set_bits(self._table.bits, self._table.columns, batch.runs)
        return again


@fault("a batch that failed is never tried again", core, "Dispatch", "C33")
class _ForgetsFailures(Dispatch):
    """The queue stands still."""

    def failed(self, batch: DispatchBatch, error: BaseException) -> bool:
        again = super().failed(batch, error)
        if again:
            self._waiting.remove(batch)
        return again


@fault("what always fails is tried for ever", core, "Dispatch", "C08")
class _TriesForEver(Dispatch):
    """The queue stands still, unnoticed."""

    def failed(self, batch: DispatchBatch, error: BaseException) -> bool:
        batch.attempts = 0
        return super().failed(batch, error)


@fault("the last entry of a batch is not written", core, "Dispatch")
class _BuildsAllButTheLast(Dispatch):
    """A hole is visible."""

    def build(self, batch: DispatchBatch) -> None:
        short = DispatchBatch(
            batch.low, batch.high, batch.rows[:-1], batch.slots[:-1], batch.runs, batch.data, batch.base
        )
        super().build(short)


@fault("a second try mixes up slots", core, "Dispatch")
class _MixesUpSlots(Dispatch):
    """Consumers read other messages."""

    def build(self, batch: DispatchBatch) -> None:
        slots = np.ascontiguousarray(batch.slots[::-1]) if batch.attempts else batch.slots
        super().build(DispatchBatch(batch.low, batch.high, batch.rows, slots, batch.runs, batch.data, batch.base))


@fault("two workers at a queue for one", core, "Dispatch", "C13")
class _LetsWorkersMeet(Dispatch):
    """The proposal forbids it."""

    def _may_take(self, batch: DispatchBatch) -> bool:
        return batch.state == WAITING


# -- the scanner -------------------------------------------------------------------------------------------------------


@fault("numbers are given again after a full room", core, "Dispatch", "C05")
class _GivesNumbersTwice(Dispatch):
    """Entries are written twice."""

    def scan(self, limit: int) -> DispatchBatch | None:
        batch = super().scan(limit)
        if self.full and self._flying:
            again = self._flying[-1]
            self._table.columns[again.runs[:, RUN_QUEUE], SCANNED] = again.runs[:, LOW]
            self.scanned = again.low
        return batch


@fault("a batch that fills the room is dropped", core, "Dispatch", "C30")
class _DropsWhatFindsNoRoom(Dispatch):
    """The queue stands still."""

    def scan(self, limit: int) -> DispatchBatch | None:
        batch = super().scan(limit)
        if batch is not None and len(self._flying) == self._in_flight:
            self._waiting.remove(batch)
        return batch


@fault("the room stays full", core, "Dispatch", "C28")
class _StaysFull(Dispatch):
    """Dispatch stands still."""

    def scan(self, limit: int) -> DispatchBatch | None:
        return None if self.full else super().scan(limit)


@fault("what may be lost is scanned", core, "Dispatch", "C09")
class _ScansPastTheLimit(Dispatch):
    """A crash takes what consumers saw."""

    def scan(self, limit: int) -> DispatchBatch | None:
        return super().scan(max(limit, self._log.end))


@fault("what is scanned counts as dispatched", core, "Dispatch", "C03")
class _ReportsScanAsDispatch(Dispatch):
    """Files expire too early."""

    def scan(self, limit: int) -> DispatchBatch | None:
        batch = super().scan(limit)
        self.dispatched = self.scanned
        return batch


@fault("what is visible is dispatched again", dispatch_module, "QueueTable", "C05")
class _DispatchesAgain(QueueTable):
    """Entries change while they are read."""

    def begin(self, queue: ConsumeQueue, number: int) -> None:
        super().begin(queue, number)
        self.columns[queue.index, SCANNED] = 0

    def meet(self, topic: bytes, queue_id: int) -> None:
        super().meet(topic, queue_id)
        self.columns[:, NEWEST] = -1


# -- what is safe ------------------------------------------------------------------------------------------------------


@fault("entries are flushed before their records", core, "Dispatch", "C09")
class _FlushesTooMuch(Dispatch):
    """Entries outlive their messages."""

    def flushable(self, queue: ConsumeQueue, safe: int) -> int:
        return super().flushable(queue, max(safe, self._log.end))


@fault("a flush that failed counts", core, "Dispatch", "C25")
class _SwallowsWhatTheDiskSays(Dispatch):
    """Entries are lost that were safe."""

    def flush_all(self, queues: Sequence[ConsumeQueue], safe: int) -> None:
        ends = [self.flushable(queue, safe) for queue in queues]
        try:
            super().flush_all(queues, safe)
        except StoreError:
            self.error = None
            for queue, to in zip(queues, ends, strict=True):
                queue.flushed = to


@fault("a flush touches no disk", core, "Dispatch", "C25")
class _FlushesInMemoryOnly(Dispatch):
    """Entries are lost that were safe."""

    def flush_all(self, queues: Sequence[ConsumeQueue], safe: int) -> None:
        for queue in queues:
            queue.flushed = self.flushable(queue, safe)
            if self.recorder is not None:
                self.recorder.queue_flushed(queue.index, queue.flushed)


STEP_FAULTS = tuple(FAULTS)
"""Schedules of dispatch alone find these, too (`tests/impl/test_dispatch.py`)."""


# -- bitmaps, slots, and what is done with -----------------------------------------------------------------------------


@fault("what is dispatched leaves gaps", core, "Dispatch", "C39")
class _LooksAtNoOrder(Dispatch):
    """A restart begins too late."""

    def _settle(self) -> None:
        for batch in [batch for batch in self._flying if self._is_visible(batch)]:
            self._flying.remove(batch)
            self.dispatched = max(self.dispatched, batch.high)


@fault("the room is never full", core, "Dispatch")
class _TakesOnWhatever(Dispatch):
    """Memory grows with the log."""

    def scan(self, limit: int) -> DispatchBatch | None:
        self._in_flight, most = 1 << 30, self._in_flight
        try:
            return super().scan(limit)
        finally:
            self._in_flight = most


@fault("what failed too often is dropped", core, "Dispatch", "C33")
class _GivesUpInSilence(Dispatch):
    """The queue stands still, unnoticed."""

    def stop(self, _error: BaseException) -> None:
        for batch in [batch for batch in self._waiting if batch.attempts > self.retries]:
            self._waiting.remove(batch)


@fault("any number is believed", dispatch_module, "Scanner", "C16")
class _BelievesAnyNumber(Scanner):
    """A hole, or an entry that changes."""

    def _help(self, why: int, data: Bytes, base: int, p: int, *, may_begin: bool) -> bool:
        if why != SKIPPED:
            return super()._help(why, data, base, p, may_begin=may_begin)
        queue, number = (int(value) for value in self._found[FIRST : FIRST + 2])
        self.table.begin(self.table.queues.all[queue], number)
        return True


@fault("a restart is where appending is", dispatch_module, "QueueTable", "C03")
class _RestartsAtScanPosition(QueueTable):
    """A hole is visible."""

    def _adopt(self, queue: ConsumeQueue) -> None:
        super()._adopt(queue)
        self.begin(queue, max(queue.next, queue.committed))


@fault("entries go into the file before theirs", dispatch_module, "QueueTable", "C26")
class _WritesIntoFileBefore(QueueTable):
    """Consumers read other messages."""

    def reserve(self, queue: ConsumeQueue, number: int) -> bool:
        there_are = super().reserve(queue, number)
        if number and number % queue.per_file == 0:
            before = queue.segments.file((number - 1) * ENTRY_BYTES, write=True)
            self.columns[queue.index, ADDRESS] = before.data.ctypes.data
        return there_are


@fault("a wider bitmap is empty", queue_table, "widen")
def _forget_bits(_bits: Bytes, queue: Ints, at: int, room: int) -> None:
    """The queue stands still."""
    queue[BITS], queue[ROOM] = at, room


@fault("bits stay when they are passed", dispatch_module, "move_on", "C30")
def _keep_bits(_bits: Bytes, columns: Ints, queues: Ints, ends: Ints) -> None:
    """A hole is visible."""
    columns[queues, COMMITTED] = ends
