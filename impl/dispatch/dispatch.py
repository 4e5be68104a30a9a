"""Ordered parallel dispatch: queues are built from the log by many workers, and readers see them grow in order.

A scanner walks the log and gives each record its number in its queue; workers write the entries, in any order; a bitmap
per queue says which are there; the commit position moves to the largest number before which none is missing, and
readers look no further. This is a stepper: each verb is one event, with no thread, no clock and no waiting inside.
The caller (`pool.py`, or a test) chooses which step comes next, and calls one at a time; `build` alone may run
at the same time as all others.

Source: docs/proposals.md#parallel-dispatch. Upstream has less: its workers decode, and one thread writes
(docs/rocketmq.md#parallel-dispatch).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from gapless.impl.dispatch import build_kernel
from gapless.impl.dispatch.batches import TAKEN, WAITING, WRITTEN, DispatchBatch
from gapless.impl.dispatch.bitmap import gapless_ends, move_on, set_bits
from gapless.impl.dispatch.queue_table import ROOM_AT_FIRST, QueueTable
from gapless.impl.dispatch.scan_kernel import BITS, BUSY, COMMITTED, HIGH, POSITION, ROOM, RUN_QUEUE, SCANNED
from gapless.impl.dispatch.scanner import ADVICE, Scanner, place_of
from gapless.impl.files.log import CommitLog
from gapless.impl.files.observer import DispatchObserver
from gapless.impl.files.queues import MAPPED, ConsumeQueue, ConsumeQueues
from gapless.impl.records.errors import Damaged, Refused, Stopped, StoreError
from gapless.impl.records.kernels import CRC_TABLES
from gapless.impl.records.record import DELAYS, Ints


class Dispatch:
    """The steps by which queues are built, from `position` of the log on.

    `scanned`, `dispatched`: exclusive ends, in the log, of what was scanned, and of what is in its queue and visible,
    with all before it · `full`: the last scan gave nothing because too much is in flight · `error`: why dispatch has
    stopped.

    Every verb raises Stopped once a batch has failed too often, or the disk has: a hole is never passed.
    """

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        *,
        position: int,
        batch_bytes: int = 4 << 20,
        batch_records: int = 16384,
        in_flight: int = 8,
        overlap: bool = True,
        verify: bool = False,
        retries: int = 3,
        recorder: DispatchObserver | None = None,
        delays: Sequence[int] = DELAYS,
        lmq: bool = False,
        room: int = ROOM_AT_FIRST,
    ) -> None:
        """Settings of dispatch.

        `batch_bytes`, `batch_records`: where a batch is cut · `in_flight`: batches cut and not yet visible, at most ·
        `overlap`: several workers may be at one queue at a time · `verify`: workers compute the checksums of bodies ·
        `retries`: how often a batch that failed is tried again · `delays`: ms of each delay level · `lmq`: light queues
        are built, too · `room`: numbers of a queue's bitmap at first, a power of 2.
        """
        self.scanned = self.dispatched = position
        self.full = False
        self.error: BaseException | None = None
        self.overlap = overlap
        self.verify = verify
        self.retries = retries
        self.recorder = recorder
        self._log = log
        self._queues = queues
        self._table = QueueTable(queues, room)
        self._scanner = Scanner(
            log, self._table, position, batch_bytes=batch_bytes, batch_records=batch_records, lmq=lmq
        )
        self._in_flight = in_flight
        self._delays: Ints = np.array(delays, np.int64)
        self._flying: deque[DispatchBatch] = deque()  # cut and not yet visible, in log order
        self._waiting: list[DispatchBatch] = []  # of these, not taken, in log order

    @property
    def idle(self) -> bool:
        """Nothing is in flight."""
        return not self._flying

    def has_more(self, limit: int) -> bool:
        """True if workers have to look: a batch waits, the log has more before `limit`, or all is over."""
        return bool(self._waiting) or self.scanned < limit or self.error is not None

    # -- scan --------------------------------------------------------------------------------------------------------

    def scan(self, limit: int) -> DispatchBatch | None:
        """Cut the next batch from the log before `limit`: its records get their numbers.

        None where there is nothing more, or where too much is in flight: then `full` says so. What is amiss with a
        record is raised when it is the next one, and nothing has changed then: Damaged; DiskFull and StoreError where
        its queue gets no file; NotAStore for an inner batch.
        """
        self._must_run()
        self.full = len(self._flying) >= self._in_flight
        if self.full or self.scanned >= limit:
            return None
        batch = self._scanner.cut(self.scanned, min(limit, self._log.end), idle=self.idle)
        if batch is None:
            self.full = self._scanner.blocked
            return None
        for index, high in zip(batch.runs[:, RUN_QUEUE].tolist(), batch.runs[:, HIGH].tolist(), strict=True):
            self._queues.all[index].scanned = high
        self.scanned = batch.high
        self._flying.append(batch)
        self._waiting.append(batch)
        if self.recorder is not None:
            self.recorder.scanned(batch.runs)
        return batch

    # -- build -------------------------------------------------------------------------------------------------------

    def take(self, batch: DispatchBatch | None = None) -> DispatchBatch | None:
        """A worker takes a batch: the given one, or the oldest that may be taken; None where there is none.

        Where workers may not overlap, a batch waits as long as one of its queues is being written to. Raises Refused
        where the given one is not waiting, or may not be taken.
        """
        self._must_run()
        if batch is None:
            batch = next((waiting for waiting in self._waiting if self._may_take(waiting)), None)
            if batch is None:
                return None
        elif batch.state != WAITING or batch not in self._waiting:
            raise Refused(f"{batch}: it is not waiting for a worker")
        elif not self._may_take(batch):
            raise Refused(f"{batch}: another worker is at one of its queues")
        self._waiting.remove(batch)
        batch.state = TAKEN
        self._table.columns[batch.runs[:, RUN_QUEUE], BUSY] = 1
        if self.recorder is not None and not batch.attempts:
            self.recorder.taken(batch.runs)
        return batch

    def _may_take(self, batch: DispatchBatch) -> bool:
        return self.overlap or batch.attempts > 0 or not self._table.columns[batch.runs[:, RUN_QUEUE], BUSY].any()

    def build(self, batch: DispatchBatch) -> None:
        """Read the records of a batch, and write their entries into their slots. May run during every other step.

        Raises Damaged.
        """
        why, row = build_kernel.build(
            batch.data, batch.base, batch.rows, batch.slots, self._delays, CRC_TABLES, self.verify
        )  # fmt: skip
        if why != build_kernel.BUILT:
            place = place_of(batch.base, int(batch.rows[row, POSITION]) - batch.base)
            expected = (
                "a record that has its checksums"
                if why == build_kernel.CHECKSUM
                else "the record that was scanned here"
            )
            raise Damaged(f"{place}: expected {expected}; {ADVICE}")

    def wrote(self, batch: DispatchBatch) -> None:
        """The entries of a batch are in their slots: their bits are set. Raises Refused where no worker has it."""
        self._must_run()
        self._require_taken(batch)
        batch.state = WRITTEN
        self._table.columns[batch.runs[:, RUN_QUEUE], BUSY] = 0
        set_bits(self._table.bits, self._table.columns, batch.runs)
        if self.recorder is not None:
            self.recorder.wrote(batch.runs)
        self._settle()

    def failed(self, batch: DispatchBatch, error: BaseException) -> bool:
        """A worker could not build its batch. True: it waits for another try, and its entries are invisible.

        False: that was the last try, and dispatch has stopped. Raises Refused where no worker has it.
        """
        self._must_run()
        self._require_taken(batch)
        batch.attempts += 1  # and its queues stay busy: no other batch comes to them before it is written
        batch.state = WAITING
        self._waiting.append(batch)
        self._waiting.sort(key=lambda waiting: waiting.low)
        if batch.attempts > self.retries:
            self.stop(error)
        return self.error is None

    def _require_taken(self, batch: DispatchBatch) -> None:
        if batch.state != TAKEN or batch not in self._flying:
            raise Refused(f"{batch}: no worker has it")

    # -- commit ------------------------------------------------------------------------------------------------------

    def commit(self, queue: ConsumeQueue) -> int:
        """Readers see the queue's entries up to the first that is not written; returns the commit position."""
        self._must_run()
        if self._table.has(queue):
            self._commit(np.array([queue.index]))
        return queue.committed

    def commit_all(self, batch: DispatchBatch) -> None:
        """Commit, as `commit` does, every queue that a batch has entries of."""
        self._must_run()
        self._commit(batch.runs[:, RUN_QUEUE].copy())  # of one layout, whatever their number: one version of kernels

    def _commit(self, which: Ints) -> None:
        columns = self._table.columns
        ends = self._gapless_ends(which)
        moved = columns[which, COMMITTED] < ends
        move_on(self._table.bits, columns, which, ends)
        for index, end in zip(which[moved].tolist(), ends[moved].tolist(), strict=True):
            if self.recorder is not None:  # before anybody can act on it
                self.recorder.committed(index, end)
            self._queues.all[index].committed = end
        self._settle()

    def _settle(self) -> None:
        """Release the batches that are visible, with all before them."""
        while self._flying and self._is_visible(self._flying[0]):
            self.dispatched = self._flying.popleft().high

    def _gapless_ends(self, which: Ints) -> Ints:
        """The commit position of each queue: the largest number before which all entries are written."""
        ends = np.empty(len(which), np.int64)
        gapless_ends(self._table.bits, self._table.columns, which, ends)
        return ends

    def _is_visible(self, batch: DispatchBatch) -> bool:
        runs = batch.runs
        return batch.state == WRITTEN and bool(
            (runs[:, HIGH] <= self._table.columns[runs[:, RUN_QUEUE], COMMITTED]).all()
        )

    # -- flush -------------------------------------------------------------------------------------------------------

    def flush(self, queue: ConsumeQueue, safe: int) -> int:
        """Flush one queue, as `flush_all` does; returns the exclusive end of its durable entries."""
        self.flush_all([queue], safe)
        return queue.flushed

    def flush_all(self, queues: Sequence[ConsumeQueue], safe: int) -> None:
        """Group flush: the visible entries whose records end at or before `safe` are durable.

        `safe`: how far the log is flushed; an entry must not outlive its record. Raises StoreError where the disk
        refuses, and dispatch has stopped then: the content of the disk is unknown, and a second try could succeed and
        write nothing.
        """
        self._must_run()
        for at in range(0, len(queues), MAPPED):
            self._flush_some([(queue, self.flushable(queue, safe)) for queue in queues[at : at + MAPPED]])

    def _flush_some(self, ends: Sequence[tuple[ConsumeQueue, int]]) -> None:
        due = [(queue, to) for queue, to in ends if queue.flushed < to]
        try:
            self._queues.disk.sync([file for queue, to in due for file in queue.files(queue.flushed, to)])
        except (OSError, StoreError) as error:
            self.stop(error)
            first, others = due[0][0], f" and those of {len(due) - 1} other queues" if len(due) > 1 else ""
            raise StoreError(
                f"consumequeue/{first.name}: entries from {first.flushed} on{others} were flushed: {error}"
            ) from error
        for queue, to in due:
            queue.flushed = to
            if self.recorder is not None:
                self.recorder.queue_flushed(queue.index, to)

    def flushable(self, queue: ConsumeQueue, safe: int) -> int:
        """The exclusive end of the visible entries whose records end at or before log position `safe`."""
        low, high = queue.flushed, queue.committed
        while low < high:
            slots, end = queue.reserve(low)
            to: int = build_kernel.safe_end(slots.ctypes.data, low, min(end, high), safe)
            if to < min(end, high):
                return to
            low = to
        return low

    # -- stop --------------------------------------------------------------------------------------------------------

    def stop(self, error: BaseException) -> None:
        """No step is taken any more, because of `error`. What is visible stays so."""
        self.error = self.error or error

    def _must_run(self) -> None:
        if self.error is not None:
            raise Stopped(f"dispatch has stopped: {self.error}") from self.error

    # -- for tests and machines -------------------------------------------------------------------------------------

    def taken(self, queue: ConsumeQueue) -> list[int]:
        """The numbers from the commit position on that a worker took in this session, whatever became of it."""
        return self._numbers(queue, lambda batch: batch.state != WAITING or batch.attempts > 0)

    def being_written(self, queue: ConsumeQueue) -> list[int]:
        """The numbers of the queue that workers are writing now."""
        return self._numbers(queue, lambda batch: batch.state == TAKEN)

    def written(self, queue: ConsumeQueue) -> list[int]:
        """The numbers from the commit position on whose entries are written: those with a bit."""
        table = self._table
        if not table.has(queue):
            return []
        row = table.columns[queue.index]
        numbers = np.arange(row[COMMITTED], row[SCANNED])
        found: list[int] = numbers[table.bits[row[BITS] + (numbers & (row[ROOM] - 1))] == 1].tolist()
        return found

    def _numbers(self, queue: ConsumeQueue, which: Callable[[DispatchBatch], bool]) -> list[int]:
        found: list[int] = []
        for batch in self._flying:
            if which(batch):
                for index, low, high in batch.runs.tolist():
                    if index == queue.index:
                        found += range(max(low, queue.committed), high)
        return found
