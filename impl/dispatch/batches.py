"""A batch: the part of the log that one worker builds."""

from __future__ import annotations

import numpy as np

from gapless.impl.dispatch.scan_kernel import ROW, RUN
from gapless.impl.records.record import Bytes, Ints

WAITING, TAKEN, WRITTEN = range(3)  # what has become of a batch


class DispatchBatch:
    """The part of the log that one worker builds. Columns have a row for each entry, in log order.

    `low`, `high`: the positions that it covers · `rows`: int64 [n, 4] with queue index, number, position, size ·
    `slots`: int64 [n], the addresses of the entries · `runs`: int64 [m, 3] with queue index, low and high of the
    numbers that each queue has in it · `data`, `base`: the bytes of the log's file, and where it begins · `attempts`:
    how often it failed.
    """

    __slots__ = ("attempts", "base", "data", "high", "low", "rows", "runs", "slots", "state")

    def __init__(self, low: int, high: int, rows: Ints, slots: Ints, runs: Ints, data: Bytes, base: int) -> None:
        self.low, self.high = low, high
        self.rows, self.slots, self.runs = rows, slots, runs
        self.data, self.base = data, base
        self.attempts, self.state = 0, WAITING

    def __repr__(self) -> str:
        return f"DispatchBatch({self.low}:{self.high}, {len(self.rows)} entries of {len(self.runs)} queues)"


def columns(count: int) -> tuple[Ints, Ints, Ints]:
    """Room for the rows, slots and runs of a batch with so many entries."""
    return np.empty((count, ROW), np.int64), np.empty(count, np.int64), np.empty((count, RUN), np.int64)
