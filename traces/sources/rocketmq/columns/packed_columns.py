"""Columns of numbers that are kept for later, each as narrow as its values are near to one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.rocketmq.columns.bytes import Ints

WIDTHS = (np.uint8, np.uint16, np.uint32)


class PackedColumns(NamedTuple):
    """Packed columns of `length` rows: each column's least value, and the differences; None if all are 0."""

    length: int
    least: tuple[int, ...]
    more: tuple[npt.NDArray[Any] | None, ...]

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return sum(column.nbytes for column in self.more if column is not None)

    def column(self, which: int) -> Ints:
        """One of the columns."""
        more = self.more[which]
        return np.full(self.length, self.least[which]) if more is None else more + np.int64(self.least[which])

    def fill(self, room: Ints, which: Iterable[int] | None = None) -> None:
        """Write the numbers into room for them, int64 [columns, rows]: all, or those of the columns that are wanted."""
        for n in range(len(self.least)) if which is None else which:
            more, least = self.more[n], self.least[n]
            if more is None:
                room[n] = least
            else:
                np.add(more, np.int64(least), out=room[n])


def pack_columns(columns: Ints | Sequence[Ints]) -> PackedColumns:
    """The columns, int64 [columns, rows] or one array for each, narrow."""
    rows = len(columns[0])
    if not rows:
        return PackedColumns(0, (0,) * len(columns), (None,) * len(columns))
    found = [_narrow(column, int(column.min()), int(column.max())) for column in columns]
    return PackedColumns(rows, tuple(least for least, _ in found), tuple(more for _, more in found))


def _narrow(column: Ints, least: int, most: int) -> tuple[int, npt.NDArray[Any] | None]:
    """A column less its least value, which it has from here on."""
    if least == most:
        return least, None
    for width in WIDTHS:
        if most - least <= np.iinfo(width).max:
            return least, np.subtract(column, least, out=np.empty(len(column), width), casting="unsafe", dtype=np.int64)
    return 0, column.copy()
