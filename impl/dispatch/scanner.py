"""The scanner: walks the log, numbers records, and cuts batches. It raises what keeps a record from being next."""

from __future__ import annotations

import numpy as np

from gapless.impl.dispatch import scan_kernel
from gapless.impl.dispatch.batches import DispatchBatch, columns
from gapless.impl.dispatch.queue_table import QueueTable, read_only
from gapless.impl.dispatch.scan_kernel import ROWS, RUNS, SCANNED
from gapless.impl.files.log import CommitLog
from gapless.impl.records.errors import Damaged, NotAStore, Refused, StoreError
from gapless.impl.records.record import Bytes, Ints

ENDS = (scan_kernel.DONE, scan_kernel.FULL, scan_kernel.ROLLED, scan_kernel.CROWDED)  # of a batch
SPARE = 64  # rows for a record with many entries
ADVICE = "run `gapless check` on the store, and take the log from a copy"


class Scanner:
    """`position`: where the log is scanned from · the rest: as in `Dispatch`.

    `blocked`: the next record waits for what is in flight: its queue begins again, or too many queues are in memory.
    """

    def __init__(
        self, log: CommitLog, table: QueueTable, position: int, *, batch_bytes: int, batch_records: int, lmq: bool
    ) -> None:
        self.log = log
        self.table = table
        self.blocked = False
        self._batch_bytes, self._batch_records, self._lmq = batch_bytes, batch_records, lmq
        # Walked from its start, a log whose older files have expired holds queues that do not begin at 0.
        self._headless = position == log.start > 0
        self._cuts = 0
        self._found: Ints = np.zeros(scan_kernel.ANSWERS, np.int64)

    def cut(self, low: int, limit: int, *, idle: bool) -> DispatchBatch | None:
        """The batch that begins at `low`, of records that end at or before `limit`; None where there is none.

        `idle`: nothing is in flight. Raises, with nothing changed, what is amiss with the first record.
        """
        log, table, found = self.log, self.table, self._found
        if low < log.start:
            raise Damaged(
                f"commitlog: dispatch is at position {low}, and the log begins at {log.start}: files were deleted "
                "before their messages were in a queue; open the store again, which builds what is left"
            )
        data, base = log.view(low)
        data = read_only(data)
        upto, end = min(limit - base, len(data)), min(log.end - base, len(data))
        stop = min(low - base + self._batch_bytes, upto)
        self._cuts += 1
        self.blocked = False
        found[ROWS] = found[RUNS] = 0
        rows, slots, runs = columns(self._batch_records + SPARE)
        p = low - base
        while True:
            why, p = scan_kernel.scan(
                data, base, p, stop, upto, end, self._batch_records, self._cuts, self._lmq, rows, slots, runs,
                table.columns, table.places, table.subjects, table.names, found,
            )  # fmt: skip
            first = base + p == low
            if why == scan_kernel.CROWDED and not found[ROWS]:
                rows, slots, runs = columns(int(found[scan_kernel.FIRST]) + self._batch_records)
            elif why in ENDS or not self._cleared(why, data, base, p, first=first, idle=idle):
                break
        n, m = int(found[ROWS]), int(found[RUNS])
        return DispatchBatch(low, base + p, rows[:n], slots[:n], runs[:m], data, base) if base + p > low else None

    def _cleared(self, why: int, data: Bytes, base: int, p: int, *, first: bool, idle: bool) -> bool:
        """Remove the obstacle of the record at byte `p`.

        If it is not: where that is the batch's first record, raises the error; else it ends the batch.
        """
        try:
            return self._help(why, data, base, p, may_begin=first and idle)
        except StoreError:
            if first:
                raise
            return False

    def _help(self, why: int, data: Bytes, base: int, p: int, *, may_begin: bool) -> bool:
        table, place = self.table, place_of(base, p)
        one, two, three = (int(value) for value in self._found[scan_kernel.FIRST : scan_kernel.FIRST + 3])
        if why == scan_kernel.UNKNOWN:
            try:
                table.meet(data[one : one + two].tobytes(), three)
            except Refused as error:
                message = f"{place}: expected a topic that can be a folder's name: {error}; {ADVICE}"
                raise Damaged(message) from error
            return True
        if why not in (scan_kernel.AWAY, scan_kernel.NARROW, scan_kernel.SKIPPED, scan_kernel.RESTART):
            raise _damage(why, data, base, p)
        queue = table.queues.all[one]
        if why == scan_kernel.AWAY:
            self.blocked = not table.reserve(queue, two)
            return not self.blocked
        if why == scan_kernel.NARROW:
            table.widen(queue)
        elif why == scan_kernel.SKIPPED and self._headless and queue.scanned == 0 < two:
            queue.first = queue.flushed = two
            table.begin(queue, two)
        elif why == scan_kernel.RESTART and may_begin:
            queue.restart()
            table.begin(queue, 0)
        elif why == scan_kernel.RESTART:
            self.blocked = True
            return False
        else:
            raise Damaged(
                f"{place}: the record has number {two} of queue {queue.name}, expected {table.columns[one, SCANNED]}; "
                f"the log has lost messages, or has them twice: {ADVICE}"
            )
        return True


def place_of(base: int, at: int) -> str:
    """Byte `at` of a log file, for people."""
    return f"commitlog/{base:020d}+{at}"


def _damage(why: int, data: Bytes, base: int, at: int) -> StoreError:
    """The error for the record at byte `at` of a file."""
    place = place_of(base, at)
    head = data[at : at + 36].tobytes()
    if why == scan_kernel.INNER:
        return NotAStore(f"{place}: the record is an inner batch, and batch consume queues are not built here")
    if why == scan_kernel.TWICE:
        return Damaged(f"{place}: expected a record that names each light queue once; {ADVICE}")
    if why == scan_kernel.ELSEWHERE:
        claimed = int.from_bytes(head[28:36], "big", signed=True)
        return Damaged(f"{place}: expected a record of position {base + at}, found one of {claimed}; {ADVICE}")
    if why == scan_kernel.PARTS:
        return Damaged(f"{place}: expected a record whose parts are as long as it is; {ADVICE}")
    size = int.from_bytes(head[:4], "big", signed=True)
    if why == scan_kernel.BEYOND:
        return Damaged(f"{place}: expected a record that ends before the log does, found {size} bytes; {ADVICE}")
    return Damaged(f"{place}: expected a record or a blank, found magic number {head[4:8].hex()}; {ADVICE}")
