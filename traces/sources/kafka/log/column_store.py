"""Columns of whole numbers by bucket: in memory while they are few, in a temporary file from then on.

What is added to a bucket comes back in the order in which it was added, and only as much as is asked for is in memory.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from gapless.traces.problems import laid_down
from gapless.traces.sources.kafka.log.tables import Ints

BUCKETS = 256
"""Buckets of a store, so that the bucket of a row takes a byte."""
ROWS = 1 << 18
"""Rows that are in memory; more are laid down."""

Block = npt.NDArray[np.void]


class ColumnStore:
    """Rows of columns in `BUCKETS` buckets. `widths`: of each column its name, and the bytes that a number takes."""

    def __init__(self, widths: Mapping[str, int], what: str) -> None:
        """`what`: its rows, for the message of a full disk."""
        self.kind = np.dtype([(name, f"<i{width}") for name, width in widths.items()])
        self.what = what
        self.count = 0
        self._recent: list[tuple[npt.NDArray[np.uint8], Block]] = []
        self._recent_rows = 0
        self._file: IO[bytes] | None = None
        self._begins: list[Ints] = []  # of each block that is laid down: the row at which each bucket begins, and ends

    def add(self, bucket: Ints, columns: Sequence[Ints | int]) -> None:
        """Add rows. Raises OSError."""
        if not len(bucket):
            return
        block = np.empty(len(bucket), self.kind)
        for name, column in zip(self.kind.names or (), columns, strict=True):
            block[name] = column
        self._recent.append((bucket.astype(np.uint8), block))
        self.count += len(bucket)
        self._recent_rows += len(bucket)
        if self._recent_rows > ROWS:
            self._lay_down()

    def _lay_down(self) -> None:
        (bucket, block), *more = self._recent
        if more:
            bucket, block = (np.concatenate(some) for some in zip(*self._recent, strict=True))
        self._recent, self._recent_rows = [], 0
        begin = int(self._begins[-1][-1]) if self._begins else 0
        ends = np.cumsum(np.bincount(bucket, minlength=BUCKETS))
        with laid_down(self.what):
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="gapless-")  # noqa: SIM115 - it lives as long as the store
                weakref.finalize(self, self._file.close)
            self._file.seek(begin * self.kind.itemsize)
            self._file.write(block[np.argsort(bucket, kind="stable")].data)
        self._begins.append(begin + np.concatenate([np.zeros(1, np.int64), ends]))

    def ranges(self, most: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of buckets, that together are all: each has about so many rows, if no bucket has more."""
        count = min(-(-self.count // most), BUCKETS)
        for number in range(count):
            yield number * BUCKETS // count, (number + 1) * BUCKETS // count

    def of(self, low: int, high: int) -> list[Ints]:
        """Return the columns of the rows in some buckets. Raises OSError."""
        found: list[Any] = list(self._laid_down(low, high))
        for bucket, block in self._recent:
            found.append(block if high - low == BUCKETS else block[(bucket >= low) & (bucket < high)])
        return [
            np.concatenate([block[name] for block in found], dtype=np.int64) if found else np.zeros(0, np.int64)
            for name in self.kind.names or ()
        ]

    def _laid_down(self, low: int, high: int) -> Iterator[Block]:
        for begins in self._begins:
            if (count := int(begins[high] - begins[low])) and self._file is not None:
                block = np.empty(count, self.kind)
                self._file.seek(int(begins[low]) * self.kind.itemsize)
                self._file.readinto(block)  # type: ignore[attr-defined] # typeshed does not know it of temporary files
                yield block
