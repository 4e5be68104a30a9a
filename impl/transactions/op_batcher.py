"""The op batcher: decided halves wait in memory, and many are named by one op (docs/proposals.md#batched-ops).

What `spec/op_batch.py` says of it: an op takes all that waits, nothing joins a batch that is full, and no half waits
longer than the interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapless.impl.records.record import Ints

_POWERS = 10 ** np.arange(1, 19)


class OpBatcher:
    """The halves that wait for their op, in the order in which they came.

    `limit`: bytes of a body that is full · `interval`: ms that a half waits at most · `since`: ms, when the first that
    waits came · `ops`, `named`: how many were written, and how many halves these name; they are counters.
    """

    def __init__(self, limit: int, interval: int) -> None:
        self.limit = limit
        self.interval = interval
        self.since = 0
        self.ops = self.named = 0
        self._waiting: dict[int, int] = {}  # the halves, and the bytes of each
        self._size = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def size(self) -> int:
        """Bytes of the body that names all that waits."""
        return self._size

    @property
    def is_full(self) -> bool:
        """Nothing joins it: it is to be written."""
        return self._size >= self.limit

    def is_due(self, now: int) -> bool:
        """True if an op is to be written."""
        return bool(self._waiting) and (self.is_full or now - self.since >= self.interval)

    def enter(self, numbers: Sequence[int], now: int) -> None:
        """Decided halves wait for their op. A second call for the same halves changes nothing."""
        if not self._waiting:
            self.since = now
        for number in numbers:
            if number not in self._waiting:
                length = len(str(number)) + 1
                self._size += length  # first: an interrupt in between fills the batch a little early, and never late
                self._waiting[number] = length

    def batch(self) -> tuple[list[int], bytes]:
        """All that waits, and the body that names it: each number in decimal, and a comma behind it.

        Where more waits than one body takes, as after a start: those that came first, until the body is full.
        """
        numbers, size = [], 0
        for number, length in self._waiting.items():
            if size >= self.limit:
                break
            numbers.append(number)
            size += length
        return numbers, b"".join(b"%d," % number for number in numbers)

    def written(self, numbers: Sequence[int]) -> None:
        """An op names these: they wait no more."""
        for number in numbers:
            if self._waiting.pop(number, None) is not None:
                self.named += 1
        self.ops += 1
        self._size = sum(self._waiting.values())

    def fitting(self, numbers: Ints) -> int:
        """The number of these, in their order, that may join before the batch is full: the last fills it."""
        ends = np.cumsum(np.searchsorted(_POWERS, numbers, side="right") + 2)
        return min(int(np.searchsorted(ends, self.limit - self._size)) + 1, len(numbers))
