"""Records, their keys and the items of the hash index that point to them, gone through side by side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gapless.traces.native import native, njit
from gapless.traces.sources.rocketmq.store.bytes import Ints
from gapless.traces.sources.rocketmq.store.lookup import first_from
from gapless.traces.sources.rocketmq.store.record_keys import HASH, KEY_ROWS, KIND, RECORD, UNSURE, find_index_keys

Bits = npt.NDArray[np.int8]

# Rows of what is matched: where an item points, its hash and time, since when that counts, its file and number.
POSITION, POINTS_BY, SECONDS, SINCE, FILE, ITEM, ITEM_ROWS = range(7)
OWNED, TIMELY = 1, 2  # bits of what is found out about an item
LONGEST = 2**31 - 1  # seconds, the most that an item holds


def load_kernels() -> None:
    """Compile what finds keys and matches them, or load it, by running it on nothing."""
    nothing = np.zeros(0, np.int64)
    none: Bits = np.zeros(0, np.int8)
    items, keys = np.zeros((ITEM_ROWS, 0), np.int64), np.zeros((KEY_ROWS, 2), np.int64)
    for some in (keys[:, :1], keys):  # keys are what was filled of a room, as a rule not all of it
        match(nothing, nothing, some, items, none, none)
    find_index_keys(np.zeros(1, np.uint8), nothing, 0, keys, 0)


def match(positions: Ints, times: Ints, keys: Ints, items: Ints, found: Bits, bits: Bits) -> None:
    """As `_match` says."""
    _match(
        positions,
        times,
        keys,
        items,
        found,
        bits,
        np.empty(keys.shape[1], np.int64),
        np.empty(items.shape[1], np.int64),
    )


@native(lambda positions, *_: len(positions))
def _match(
    positions: Ints, times: Ints, keys: Ints, items: Ints, found: Bits, bits: Bits, of_keys: Ints, of_items: Ints
) -> None:  # fmt: skip
    """Go through records, their keys, and the items that point to them, all in the order of the log.

    `found`: of each key, whether an item has its hash · `bits`: of each item, `OWNED` and `TIMELY`, or none of both
    where it points at no record.
    """
    i, k = 0, 0
    for r in range(len(positions)):
        while i < items.shape[1] and items[POSITION, i] < positions[r]:
            i += 1
        first, begin = i, k
        while i < items.shape[1] and items[POSITION, i] == positions[r]:
            i += 1
        unsure = False
        while k < keys.shape[1] and keys[RECORD, k] == r:
            unsure = unsure or keys[KIND, k] == UNSURE
            k += 1
        if first == i:
            continue
        if (i - first) * (k - begin) > 1024:
            _match_many(keys, items, found, bits, begin, k, first, i, of_keys, of_items)
        else:
            for x in range(begin, k):
                for j in range(first, i):
                    if items[POINTS_BY, j] == keys[HASH, x]:
                        found[x] = 1
                        bits[j] |= OWNED
        for j in range(first, i):
            if unsure:
                bits[j] |= OWNED
            if _is_timely(times[r], items, j):
                bits[j] |= TIMELY


@njit(inline="always")
def _is_timely(time: int, items: Ints, j: int) -> bool:
    """Whether an item has the time of its record. That of a file's first item counts since the file before it ended."""
    seconds = items[SECONDS, j]
    if items[ITEM, j] == 1:
        return bool(seconds >= 0)
    since = items[SINCE, j]
    passed = (time - since) // 1000 if since > 0 and time > since else np.int64(0)
    return bool(seconds == min(passed, np.int64(LONGEST)))


@njit
def _match_many(
    keys: Ints, items: Ints, found: Bits, bits: Bits, begin: int, k: int, first: int, i: int, of_keys: Ints,
    of_items: Ints,
) -> None:  # fmt: skip
    """The same for one record with very many keys: by sorting, in the room `of_keys` and `of_items`."""
    for x in range(begin, k):
        of_keys[x - begin] = keys[HASH, x]
    for j in range(first, i):
        of_items[j - first] = items[POINTS_BY, j]
    _sort(of_keys, k - begin)
    _sort(of_items, i - first)
    for x in range(begin, k):
        if _is_among(of_items, i - first, keys[HASH, x]):
            found[x] = 1
    for j in range(first, i):
        if _is_among(of_keys, k - begin, items[POINTS_BY, j]):
            bits[j] |= OWNED


@njit
def _sort(values: Ints, count: int) -> None:
    """Put the first `count` values into order: a heap, for nothing here may make an array."""
    for number in range(2 * count - 1, 0, -1):
        top, end = (number - count, count) if number >= count else (np.int64(0), number)
        if number < count:
            values[0], values[number] = values[number], values[0]
        while 2 * top + 1 < end:
            below = 2 * top + 1
            if below + 1 < end and values[below + 1] > values[below]:
                below += 1
            if values[top] >= values[below]:
                break
            values[top], values[below] = values[below], values[top]
            top = below


@njit
def _is_among(values: Ints, count: int, value: int) -> bool:
    """Whether a value is one of the first `count`, which rise."""
    at = first_from(values, count, value)
    return bool(at < count and values[at] == value)
