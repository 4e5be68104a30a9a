"""Tables of whole numbers, whose rows have names: what native passes write, and judges read in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class NumberTable:
    """One number a row and a column: a column for each batch, say."""

    table: Ints

    def __len__(self) -> int:
        return int(self.table.shape[1])


class Row:
    """A row of a table, read by name."""

    def __init__(self, row: int) -> None:
        self.row = row

    def __get__(self, of: NumberTable, owner: type) -> Ints:
        """The row's numbers."""
        found: Ints = of.table[self.row]
        return found


class FlagRow(Row):
    """A row of conditions."""

    def __get__(self, of: NumberTable, owner: type) -> Flags:  # type: ignore[override] # numbers are read as conditions
        """True where the number is not 0."""
        found: Flags = of.table[self.row] != 0
        return found


class BitRow(Row):
    """A bit of a row of numbers."""

    def __init__(self, row: int, bit: int) -> None:
        super().__init__(row)
        self.bit = bit

    def __get__(self, of: NumberTable, owner: type) -> Flags:  # type: ignore[override] # as above
        """True where the bit is set."""
        found: Flags = of.table[self.row] & self.bit != 0
        return found


def put_together(count: int, pieces: Sequence[tuple[Ints, ...]]) -> list[Ints]:
    """Put pieces of so many columns one behind the other; the columns are empty where there are no pieces."""
    if len(pieces) == 1:
        return list(pieces[0])
    return [np.concatenate(column) for column in zip(*pieces, strict=True)] or [np.zeros(0, np.int64)] * count


def different(*columns: Ints) -> tuple[Ints, Ints]:
    """Return the different rows of some columns, and of each row its number among them.

    They are in order: int64 [columns, rows].
    """
    found, number = np.unique(np.stack(columns), axis=1, return_inverse=True)
    return found, number.reshape(-1)


def each(counts: Ints) -> tuple[Ints, Ints]:
    """Return each row as often as it counts, and how often it came before."""
    rows = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return rows, np.arange(len(rows)) - begins[rows]


def numbers(data: Bytes, at: Ints, width: int) -> Ints:
    """Return the signed numbers of so many bytes at these places; -1 where there is none."""
    there = at >= 0
    places = at[there][:, None] + np.arange(width)
    found: Ints = np.full(len(at), -1, np.int64)
    big = np.ascontiguousarray(data[places]).view(f">i{width}").reshape(-1)
    found[there] = big
    return found
