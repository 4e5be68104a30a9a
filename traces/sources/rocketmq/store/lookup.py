"""Columns of integers, looked up: what numpy offers for it goes through all of them, or makes a hash table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gapless.traces.native import njit
from gapless.traces.sources.rocketmq.store.bytes import Ints


def distinct(values: Ints) -> Ints:
    """The values, rising, each once. Of a million, `np.unique` makes a hash table, and takes twenty times as long.

    Many are like the one before them: those are left out before they are sorted.
    """
    return _changes(np.sort(_changes(values)))


def _changes(values: Ints) -> Ints:
    """The values without those that are like the one before them."""
    changes = np.ones(len(values), np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return values[changes]


def among(values: Ints, known: Ints) -> npt.NDArray[np.bool_]:
    """Whether each value is among the known ones, which rise: `np.isin` goes through all of these every time."""
    if not len(known):
        return np.zeros(len(values), np.bool_)
    order = np.argsort(values)  # a search goes on where the last one ended: half the time on a million
    rising = values[order]
    found = np.empty(len(values), np.bool_)
    found[order] = known[np.minimum(np.searchsorted(known, rising), len(known) - 1)] == rising
    return found


_GOLDEN, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


def numbered(columns: Sequence[Ints]) -> Ints:
    """A number for each row, from 0 on: the same for two rows if all of their columns are alike.

    Rows are sorted by a word in which as many bits as that needs name the row, and the others stand for its columns: to
    sort numbers takes an eighth of sorting rows by their columns. Where these bits are alike and columns are not, those
    few are sorted by them.
    """
    count = len(columns[0])
    mixed = np.zeros(count, np.uint64)
    for column in columns:
        mixed = (mixed ^ column.view(np.uint64)) * _GOLDEN
        mixed ^= mixed >> _HALF
    named = np.uint64((1 << count.bit_length()) - 1)
    mixed &= ~named
    mixed |= np.arange(count, dtype=np.uint64)
    mixed.sort()
    order = (mixed & named).astype(np.int64)
    bits = mixed & ~named
    alike = np.zeros(count, np.bool_)
    alike[1:] = bits[1:] == bits[:-1]
    differ = _differ(columns, order)
    odd = alike & differ
    if odd.any():
        stretch = np.cumsum(~alike)
        (mine,) = np.nonzero(np.bincount(stretch, odd)[stretch])
        some = order[mine]
        order[mine] = some[np.lexsort((*(column[some] for column in columns), stretch[mine]))]
        differ = _differ(columns, order)
    found = np.empty(count, np.int64)
    found[order] = np.cumsum(differ)
    return found


def _differ(columns: Sequence[Ints], order: Ints) -> npt.NDArray[np.bool_]:
    """Which rows, in this order, differ from the one before them."""
    differ = np.zeros(len(order), np.bool_)
    for column in columns:
        rows = column[order]
        differ[1:] |= rows[1:] != rows[:-1]
    return differ


@njit
def first_from(values: Ints, count: int, value: int) -> int:
    """Where the first that is no less than this value is, among the first `count`, which rise; `count` if none is."""
    low, high = np.int64(0), np.int64(count)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return int(low)
