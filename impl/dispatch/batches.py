"""A batch: a stretch of the log that one worker is to build, and who is told of its steps."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gapless.impl.dispatch.scan_kernel import NUMBER, POSITION, QUEUE, ROW, RUN, SIZE
from gapless.impl.native.kernels import Bytes, Ints


class Recorder(Protocol):
    """Who is told of steps, as they take effect. `runs`: int64 [m, 3] with queue index, low and high of the numbers."""

    def scanned(self, runs: Ints) -> None:
        """Numbers were given."""

    def taken(self, runs: Ints) -> None:
        """A worker came to write these entries. Where it is alone at a queue, it takes each as the last is written."""

    def wrote(self, runs: Ints) -> None:
        """Entries were written."""

    def committed(self, queue_index: int, to: int) -> None:
        """Readers see the entries before `to`."""

    def queue_flushed(self, queue_index: int, to: int) -> None:
        """The entries before `to` are on disk."""


WAITING, TAKEN, WRITTEN = range(3)  # what has become of a batch


class Batch:
    """A stretch of the log that one worker is to build. Columns have a row for each entry, in log order.

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
        return f"Batch({self.low}:{self.high}, {len(self.rows)} entries of {len(self.runs)} queues)"

    @property
    def queue(self) -> Ints:
        """Of each entry, the index of its queue."""
        return self.rows[:, QUEUE]

    @property
    def number(self) -> Ints:
        """Of each entry, its number in its queue."""
        return self.rows[:, NUMBER]

    @property
    def position(self) -> Ints:
        """Of each entry, where its record lies in the log."""
        return self.rows[:, POSITION]

    @property
    def size(self) -> Ints:
        """Of each entry, the bytes of its record."""
        return self.rows[:, SIZE]


def columns(count: int) -> tuple[Ints, Ints, Ints]:
    """Room for the rows, slots and runs of a batch with so many entries."""
    return np.empty((count, ROW), np.int64), np.empty(count, np.int64), np.empty((count, RUN), np.int64)
