"""Faults in how queues are built: the scanner, workers, the commit position, what is flushed, and starting again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
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
    LOW,
    NEWEST,
    ROOM,
    RUN_QUEUE,
    SCANNED,
    SKIPPED,
    TOLD,
)
from gapless.impl.dispatch.scanner import Scanner
from gapless.impl.files.queues import address
from gapless.impl.records.errors import StoreError
from gapless.impl.records.record import ENTRY_BYTES
from gapless.impl.store import core
from gapless.properties.faults.implementation import Fault, replacing

if TYPE_CHECKING:
    from gapless.impl.files.queues import ConsumeQueue
    from gapless.impl.records.record import Bytes, Ints


# -- the commit position -----------------------------------------------------------------------------------------------


Planted = Callable[[], AbstractContextManager[None]]


class _PassesOneGap(Dispatch):
    def _gapless_ends(self, of: Ints) -> Ints:
        ends: Ints = np.minimum(super()._gapless_ends(of) + 1, self._table.columns[of, SCANNED])
        return ends


class _TakesTheHighestWritten(Dispatch):
    def _gapless_ends(self, of: Ints) -> Ints:
        ends = super()._gapless_ends(of)
        for i, index in enumerate(of.tolist()):
            ends[i] = max([int(ends[i]) - 1, *self.written(self._queues.all[index])]) + 1
        return ends


class _TakesOneAtATime(Dispatch):
    def _gapless_ends(self, of: Ints) -> Ints:
        ends: Ints = np.minimum(super()._gapless_ends(of), self._table.columns[of, COMMITTED] + 1)
        return ends


class _SetsBitsTooEarly(Dispatch):
    def take(self, batch: DispatchBatch | None = None) -> DispatchBatch | None:
        taken = super().take(batch)
        if taken is not None:
            set_bits(self._table.bits, self._table.columns, taken.runs)
        return taken


# -- workers -----------------------------------------------------------------------------------------------------------


class _SkipsWhatFailed(Dispatch):
    def failed(self, batch: DispatchBatch, error: BaseException) -> bool:
        again = super().failed(batch, error)
        if again:
            self._waiting.remove(batch)
            batch.state = WRITTEN
            set_bits(self._table.bits, self._table.columns, batch.runs)
        return again


class _ForgetsWhatFailed(Dispatch):
    def failed(self, batch: DispatchBatch, error: BaseException) -> bool:
        again = super().failed(batch, error)
        if again:
            self._waiting.remove(batch)
        return again


class _TriesForEver(Dispatch):
    def failed(self, batch: DispatchBatch, error: BaseException) -> bool:
        batch.attempts = 0
        return super().failed(batch, error)


class _BuildsAllButTheLast(Dispatch):
    def build(self, batch: DispatchBatch) -> None:
        short = DispatchBatch(
            batch.low, batch.high, batch.rows[:-1], batch.slots[:-1], batch.runs, batch.data, batch.base
        )
        super().build(short)


class _MixesUpSlots(Dispatch):
    def build(self, batch: DispatchBatch) -> None:
        slots = np.ascontiguousarray(batch.slots[::-1]) if batch.attempts else batch.slots
        super().build(DispatchBatch(batch.low, batch.high, batch.rows, slots, batch.runs, batch.data, batch.base))


class _LetsWorkersMeet(Dispatch):
    def _may_take(self, batch: DispatchBatch) -> bool:
        return batch.state == WAITING


# -- the scanner -------------------------------------------------------------------------------------------------------


class _GivesNumbersTwice(Dispatch):
    def scan(self, limit: int) -> DispatchBatch | None:
        batch = super().scan(limit)
        if self.full and self._flying:
            again = self._flying[-1]
            self._table.columns[again.runs[:, RUN_QUEUE], SCANNED] = again.runs[:, LOW]
            self.scanned = again.low
        return batch


class _DropsWhatFindsNoRoom(Dispatch):
    def scan(self, limit: int) -> DispatchBatch | None:
        batch = super().scan(limit)
        if batch is not None and len(self._flying) == self._in_flight:
            self._waiting.remove(batch)
        return batch


class _StaysFull(Dispatch):
    def scan(self, limit: int) -> DispatchBatch | None:
        return None if self.full else super().scan(limit)


class _ScansPastTheLimit(Dispatch):
    def scan(self, limit: int) -> DispatchBatch | None:
        return super().scan(max(limit, self._log.end))


class _TellsScannedForDispatched(Dispatch):
    def scan(self, limit: int) -> DispatchBatch | None:
        batch = super().scan(limit)
        self.dispatched = self.scanned
        return batch


class _DispatchesAgain(QueueTable):
    def begin(self, queue: ConsumeQueue, number: int) -> None:
        super().begin(queue, number)
        self.columns[queue.index, SCANNED] = 0

    def meet(self, topic: bytes, queue_id: int) -> None:
        super().meet(topic, queue_id)
        self.columns[:, NEWEST] = -1


# -- what is safe ------------------------------------------------------------------------------------------------------


class _FlushesTooMuch(Dispatch):
    def flushable(self, queue: ConsumeQueue, safe: int) -> int:
        return super().flushable(queue, max(safe, self._log.end))


class _SwallowsWhatTheDiskSays(Dispatch):
    def flush(self, queue: ConsumeQueue, safe: int) -> int:
        to = self.flushable(queue, safe)
        try:
            super().flush(queue, safe)
        except StoreError:
            self.error = None
            queue.flushed = to
        return queue.flushed


class _FlushesInMemoryOnly(Dispatch):
    def flush(self, queue: ConsumeQueue, safe: int) -> int:
        queue.flushed = self.flushable(queue, safe)
        if self.recorder is not None:
            self.recorder.queue_flushed(queue.index, queue.flushed)
        return queue.flushed


# -- bitmaps, slots, and what is done with -----------------------------------------------------------------------------


class _LooksAtNoOrder(Dispatch):
    def _settle(self) -> None:
        for batch in [batch for batch in self._flying if self._is_visible(batch)]:
            self._flying.remove(batch)
            self.dispatched = max(self.dispatched, batch.high)


class _TakesOnWhatever(Dispatch):
    def scan(self, limit: int) -> DispatchBatch | None:
        self._in_flight, most = 1 << 30, self._in_flight
        try:
            return super().scan(limit)
        finally:
            self._in_flight = most


class _GivesUpInSilence(Dispatch):
    def stop(self, _error: BaseException) -> None:
        for batch in [batch for batch in self._waiting if batch.attempts > self.retries]:
            self._waiting.remove(batch)


class _BelievesAnyNumber(Scanner):
    def _help(self, why: int, data: Bytes, base: int, p: int, *, may_begin: bool) -> bool:
        if why != SKIPPED:
            return super()._help(why, data, base, p, may_begin=may_begin)
        queue, number = (int(told) for told in self._found[TOLD : TOLD + 2])
        self.table.begin(self.table.queues.all[queue], number)
        return True


class _BeginsAgainWhereItScanned(QueueTable):
    def _adopt(self, queue: ConsumeQueue) -> None:
        super()._adopt(queue)
        self.begin(queue, max(queue.next, queue.committed))


class _WritesIntoFileBefore(QueueTable):
    def reserve(self, queue: ConsumeQueue, number: int) -> None:
        super().reserve(queue, number)
        if number and number % queue.per_file == 0:
            self.columns[queue.index, ADDRESS] = address(queue.segments.file((number - 1) * ENTRY_BYTES, write=True))


def _forget_bits(_bits: Bytes, queue: Ints, at: int, room: int) -> None:
    queue[BITS], queue[ROOM] = at, room


def _keep_bits(_bits: Bytes, queues: Ints, of: Ints, ends: Ints) -> None:
    queues[of, COMMITTED] = ends


def a(kind: type[Dispatch]) -> Planted:
    """Every store gets such a dispatch."""
    return partial(replacing, core, "Dispatch", kind)


def of(kind: type[QueueTable]) -> Planted:
    """Every dispatch knows its queues so."""
    return partial(replacing, dispatch_module, "QueueTable", kind)


ANY: Planted = partial(replacing, dispatch_module, "Scanner", _BelievesAnyNumber)
EMPTY: Planted = partial(replacing, queue_table, "widen", _forget_bits)
KEPT: Planted = partial(replacing, dispatch_module, "move_on", _keep_bits)

OF_STEPS: tuple[Fault, ...] = (
    Fault("the commit position passes a gap of one", "a hole is visible", "G02", a(_PassesOneGap)),
    Fault("the commit position is the highest written", "a hole is visible", "G02", a(_TakesTheHighestWritten)),
    Fault("a commit takes one entry", "messages wait for nothing", None, a(_TakesOneAtATime)),
    Fault("the bit is set before the entry is written", "a hole is visible", None, a(_SetsBitsTooEarly)),
    Fault("a batch that failed counts as written", "a hole is visible", "C33", a(_SkipsWhatFailed)),
    Fault("a batch that failed is never tried again", "the queue stands still", "C33", a(_ForgetsWhatFailed)),
    Fault("what always fails is tried for ever", "the queue stands still, unnoticed", "C08", a(_TriesForEver)),
    Fault("the last entry of a batch is not written", "a hole is visible", None, a(_BuildsAllButTheLast)),
    Fault("a second try mixes up slots", "consumers read other messages", None, a(_MixesUpSlots)),
    Fault("two workers at a queue for one", "the proposal forbids it", "C13", a(_LetsWorkersMeet)),
    Fault("numbers are given again after a full room", "entries are written twice", "C05", a(_GivesNumbersTwice)),
    Fault("a batch that fills the room is dropped", "the queue stands still", "C30", a(_DropsWhatFindsNoRoom)),
    Fault("the room stays full", "dispatch stands still", "C28", a(_StaysFull)),
    Fault("what may be lost is scanned", "a crash takes what consumers saw", "C09", a(_ScansPastTheLimit)),
    Fault("what is scanned counts as dispatched", "files expire too early", "C03", a(_TellsScannedForDispatched)),
    Fault("what is visible is dispatched again", "entries change while they are read", "C05", of(_DispatchesAgain)),
    Fault("entries are flushed before their records", "entries outlive their messages", "C09", a(_FlushesTooMuch)),
    Fault("a flush that failed counts", "entries are lost that were safe", "C25", a(_SwallowsWhatTheDiskSays)),
    Fault("a flush touches no disk", "entries are lost that were safe", "C25", a(_FlushesInMemoryOnly)),
)  # fmt: skip
"""Those that schedules of dispatch alone find, too (`tests/impl/test_dispatch.py`)."""

FAULTS: tuple[Fault, ...] = (
    *OF_STEPS,
    Fault("what failed too often is dropped", "the queue stands still, unnoticed", "C33", a(_GivesUpInSilence)),
    Fault("the room is never full", "memory grows with the log", None, a(_TakesOnWhatever)),
    Fault("any number is believed", "a hole, or an entry that changes", "C16", ANY),
    Fault("what is dispatched leaves gaps", "a restart begins too late", "C39", a(_LooksAtNoOrder)),
    Fault("a restart is where appending is", "a hole is visible", "C03", of(_BeginsAgainWhereItScanned)),
    Fault("entries go into the file before theirs", "consumers read other messages", "C26", of(_WritesIntoFileBefore)),
    Fault("a wider bitmap is empty", "the queue stands still", None, EMPTY),
    Fault("bits stay when they are passed", "a hole is visible", "C30", KEPT),
)  # fmt: skip
