"""Merges records, their keys and the items of the hash index that point to them, in log order."""

# ruff: noqa: C901, FBT001, PLR0912
# A kernel is one pass over the bytes; kernels are called by position.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import BYTES, I64, INTS, INTS8, TABLE, TupleKind, function, native, record
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints, i32, i64
from gapless.traces.sources.rocketmq.columns.lookup import first_from
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import ITEM_BYTES, ITEM_POSITION
from gapless.traces.sources.rocketmq.layouts.hash_index.record_keys import (
    HASH,
    KIND,
    MAY,
    MUST,
    RECORD,
    UNSURE,
)

Found = npt.NDArray[np.int8]

# Rows of stretches of records of which no key is found: positions of the first and the last, records, keys.
FIRST, LAST, RECORDS, KEYS, RUN_ROWS = range(5)
# Columns of items: where one points, its hash and time, since when that counts, its file and number.
POSITION, POINTS_BY, SECONDS, SINCE, FILE, ITEM, ITEM_COLUMNS = range(7)
# Rows of odd items.
ODD_FILE, ODD_ITEM, ODD_POSITION, ODD_BITS, ODD_ROWS = range(5)
OWNED, TIMELY = 1, 2  # bits of what is found out about an item
LONGEST = 2**31 - 1  # seconds, the most that an item holds

# Indexes of `counts`.
C_KEYS, C_FOUND, C_FIRST, C_LAST, C_RUNS, C_PARTS, C_ODDS, COUNTS = range(8)


class MatchResult(NamedTuple):
    """The buffers for records and items that do not match, with the number of each.

    `found`: mask of keys with an item of their hash · `runs`: stretches of records without any of their keys, [4,
    runs] · `partly`: positions of records with some of their keys · `odd`: items that are not owned, or not timely,
    [4, items] · `counts`: keys that must be found, and those that are; positions of the first and the last record with
    a key, or -1; runs; and the number of the other two, even beyond their room.
    """

    found: Found
    runs: Ints
    partly: Ints
    odd: Ints
    counts: Ints


def room_for(records: int, keys: int, misfits: int) -> MatchResult:
    """Room for results of so many records and keys; `misfits`: room for each of the other two lists."""
    counts = np.zeros(COUNTS, np.int64)
    counts[[C_FIRST, C_LAST]] = -1
    return MatchResult(
        found=np.zeros(keys, np.int8),
        runs=np.empty((RUN_ROWS, records // 2 + 1), np.int64),
        partly=np.empty(misfits, np.int64),
        odd=np.empty((ODD_ROWS, misfits), np.int64),
        counts=counts,
    )


@native(lambda b, *_: len(b) // ITEM_BYTES, kinds=(BYTES, I64, I64, TupleKind((I64, I64, I64)), TABLE, I64))
def gather(b: Bytes, first: int, file: int, wanted: tuple[int, int, int], items: Ints, filled: int) -> int:
    """Appends the items in `b` that point into the `wanted` range, and returns their number.

    `first`: the number of the first item · `file`: that of their file · `wanted`: the range of log positions, and the
    time from which the file counts.
    """
    start, end, since = wanted
    n = filled
    for k in range(len(b) // ITEM_BYTES):
        p = k * ITEM_BYTES
        position = i64(b, p + ITEM_POSITION)
        if start <= position < end:
            items[n, POSITION] = position
            items[n, POINTS_BY] = i32(b, p)
            items[n, SECONDS] = i32(b, p + 12)
            items[n, SINCE] = since
            items[n, FILE] = file
            items[n, ITEM] = first + k
            n += 1
    return n


class PutArguments(NamedTuple):
    """Rows of the arguments of an item in `hash_index`."""

    slot: int
    previous: int
    position: int
    owned: int
    timely: int


@native(lambda b, *_: len(b) // ITEM_BYTES, kinds=(BYTES, I64, TABLE, I64, record(PutArguments)))
def write_items(b: Bytes, slots: int, args: Ints, begin: int, into: PutArguments) -> None:
    """Writes the items in `b` as arguments of `put`, from column `begin` on, as owned and timely ones."""
    for k in range(len(b) // ITEM_BYTES):
        p, n = k * ITEM_BYTES, begin + k
        code = i32(b, p)
        args[into.slot, n] = code % slots
        args[into.previous, n] = i32(b, p + 16)
        args[into.position, n] = i64(b, p + ITEM_POSITION)
        args[into.owned, n] = int(code >= 0)
        args[into.timely, n] = 1


class ItemRange(NamedTuple):
    """The range of items that point to log positions from `start` on, below `end`.

    They begin with number `first` of a file, in which times count from `since` on.
    """

    start: int
    end: int
    first: int
    since: int


@native(lambda positions, *_: len(positions), kinds=(INTS, INTS, TABLE.strided, BYTES, record(ItemRange), INTS))
def match_in_order(positions: Ints, times: Ints, keys: Ints, b: Bytes, wanted: ItemRange, counts: Ints) -> bool:
    """True if the wanted items in `b` are those of the keys, in the same order, one each, and timely.

    A key has one item or, if it need not be found, none. It is so in a complete index, and then `match` would report
    nothing except `counts`, which are filled; otherwise these mean nothing.
    """
    count, i, k = len(b) // ITEM_BYTES, 0, 0
    while i < count and i64(b, i * ITEM_BYTES + ITEM_POSITION) < wanted.start:
        i += 1
    for r in range(len(positions)):
        must = 0
        while k < keys.shape[1] and keys[RECORD, k] == r:
            p = i * ITEM_BYTES
            if i < count and i64(b, p + ITEM_POSITION) == positions[r] and i32(b, p) == keys[HASH, k]:
                if not is_timely(times[r], i32(b, p + 12), wanted.first + i, wanted.since):
                    return False
                i += 1
            elif keys[KIND, k] != MAY:
                return False
            must += int(keys[KIND, k] == MUST)
            k += 1
        if must > 0:
            counts[C_KEYS] += must
            counts[C_FIRST] = positions[r] if counts[C_FIRST] < 0 else counts[C_FIRST]
            counts[C_LAST] = positions[r]
    while i < count and i64(b, i * ITEM_BYTES + ITEM_POSITION) >= wanted.end:
        i += 1
    counts[C_FOUND] = counts[C_KEYS]
    return bool(i == count)


def match(positions: Ints, times: Ints, keys: Ints, items: Ints, result: MatchResult) -> None:
    """Calls `_match` with its memory."""
    _match(positions, times, keys, items, result, np.empty(keys.shape[1], np.int64), np.empty(len(items), np.int64))


@native(
    lambda positions, *_: len(positions),
    kinds=(INTS, INTS, TABLE.strided, TABLE, record(MatchResult, INTS8, TABLE, INTS, TABLE, INTS), INTS, INTS),
)
def _match(
    positions: Ints, times: Ints, keys: Ints, items: Ints, result: MatchResult, of_keys: Ints, of_items: Ints
) -> None:  # fmt: skip
    """Merges records, their keys, and the items that point to them, all in the order of the log."""
    found, counts = result.found, result.counts
    i, k, none = 0, 0, False
    for r in range(len(positions)):
        while i < len(items) and items[i, POSITION] < positions[r]:
            _put_odd(items, i, 0, result.odd, counts)
            i += 1
        first, begin = i, k
        while i < len(items) and items[i, POSITION] == positions[r]:
            i += 1
        unsure, must = False, 0
        while k < keys.shape[1] and keys[RECORD, k] == r:
            unsure = unsure or keys[KIND, k] == UNSURE
            must += int(keys[KIND, k] == MUST)
            k += 1
        many = (i - first) * (k - begin) > 1024
        if many:
            _sort_both(keys, items, found, begin, k, first, i, of_keys, of_items)
        for j in range(first, i):
            bits = OWNED if unsure else 0
            if many:
                bits |= OWNED if _is_among(of_keys, k - begin, items[j, POINTS_BY]) else 0
            else:
                for x in range(begin, k):
                    if items[j, POINTS_BY] == keys[HASH, x]:
                        found[x] = 1
                        bits |= OWNED
            bits |= TIMELY if is_timely(times[r], items[j, SECONDS], items[j, ITEM], items[j, SINCE]) else 0
            if bits != OWNED | TIMELY:
                _put_odd(items, j, bits, result.odd, counts)
        if must > 0:
            none = _of_record(positions[r], keys, found, begin, k, must, none, result.runs, result.partly, counts)
    while i < len(items):
        _put_odd(items, i, 0, result.odd, counts)
        i += 1


@function(inline=True)
def _of_record(
    position: int, keys: Ints, found: Found, begin: int, end: int, must: int, none: bool, runs: Ints, partly: Ints,
    counts: Ints,
) -> bool:  # fmt: skip
    """Records one record's result. `none`: the record before has no match; returns the same for this one."""
    there = 0
    for x in range(begin, end):
        if keys[KIND, x] == MUST:
            there += int(found[x])
    counts[C_KEYS] += must
    counts[C_FOUND] += there
    counts[C_FIRST] = position if counts[C_FIRST] < 0 else counts[C_FIRST]
    counts[C_LAST] = position
    if there == 0:
        if not none:
            runs[FIRST, counts[C_RUNS]] = position
            runs[RECORDS, counts[C_RUNS]] = 0
            runs[KEYS, counts[C_RUNS]] = 0
            counts[C_RUNS] += 1
        runs[LAST, counts[C_RUNS] - 1] = position
        runs[RECORDS, counts[C_RUNS] - 1] += 1
        runs[KEYS, counts[C_RUNS] - 1] += must
    elif there < must:
        if counts[C_PARTS] < len(partly):
            partly[counts[C_PARTS]] = position
        counts[C_PARTS] += 1
    return bool(there == 0)


@function(inline=True)
def _put_odd(items: Ints, i: int, bits: int, odd: Ints, counts: Ints) -> None:
    """Records one item that is not owned, or not timely."""
    n = counts[C_ODDS]
    if n < odd.shape[1]:
        odd[ODD_FILE, n], odd[ODD_ITEM, n] = items[i, FILE], items[i, ITEM]
        odd[ODD_POSITION, n], odd[ODD_BITS, n] = items[i, POSITION], bits
    counts[C_ODDS] = n + 1


@function(inline=True)
def is_timely(time: int, seconds: int, item: int, since: int) -> bool:
    """True if an item has the time of its record; a file's first item counts from the end of the file before."""
    if item == 1:
        return bool(seconds >= 0)
    passed = (time - since) // 1000 if since > 0 and time > since else 0
    return bool(seconds == min(passed, LONGEST))


@function
def _sort_both(
    keys: Ints, items: Ints, found: Found, begin: int, k: int, first: int, i: int, of_keys: Ints, of_items: Ints
) -> None:
    """Finds the very many keys of one record by sorting, in the buffers `of_keys` and `of_items`.

    They stay sorted.
    """
    for x in range(begin, k):
        of_keys[x - begin] = keys[HASH, x]
    for j in range(first, i):
        of_items[j - first] = items[j, POINTS_BY]
    _sort(of_keys, k - begin)
    _sort(of_items, i - first)
    for x in range(begin, k):
        if _is_among(of_items, i - first, keys[HASH, x]):
            found[x] = 1


@function
def _sort(values: Ints, count: int) -> None:
    """Sorts the first `count` values with a heap, because no array can be allocated here."""
    for number in range(2 * count - 1, 0, -1):
        top, end = (number - count, count) if number >= count else (0, number)
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


@function
def _is_among(values: Ints, count: int, value: int) -> bool:
    """True if a value is one of the first `count`, which rise."""
    at = first_from(values, count, value)
    return bool(at < count and values[at] == value)


ENTRIES = (gather, write_items, match_in_order, _match)
"""All that is compiled of it."""
