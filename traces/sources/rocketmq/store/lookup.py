"""Columns of integers, looked up: what numpy offers for it goes through all of them, or makes a hash table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gapless.traces.native import njit
from gapless.traces.sources.rocketmq.store.bytes import Ints


def distinct(values: Ints) -> Ints:
    """The values, rising, each once. Of a million, `np.unique` makes a hash table, and takes twenty times as long."""
    rising = np.sort(values)
    first = np.ones(len(rising), np.bool_)
    first[1:] = rising[1:] != rising[:-1]
    return rising[first]


def among(values: Ints, known: Ints) -> npt.NDArray[np.bool_]:
    """Whether each value is among the known ones, which rise: `np.isin` goes through all of these every time."""
    if not len(known):
        return np.zeros(len(values), np.bool_)
    order = np.argsort(values)  # a search goes on where the last one ended: half the time on a million
    rising = values[order]
    found = np.empty(len(values), np.bool_)
    found[order] = known[np.minimum(np.searchsorted(known, rising), len(known) - 1)] == rising
    return found


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
