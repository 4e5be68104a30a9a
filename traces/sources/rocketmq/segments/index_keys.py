"""The keys of a segment's records, held against the items of the hash index that point into it.

Items lie in the order of the log, so a worker finds those of its records by itself: nothing is shuffled. What it says
of them are flags; what follows from them, the spec says, in `joining/hash_index.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.traces.sources.rocketmq.segments.matching import (
    FILE,
    ITEM,
    ITEM_ROWS,
    OWNED,
    POINTS_BY,
    POSITION,
    SECONDS,
    SINCE,
    TIMELY,
    Bits,
    match,
)
from gapless.traces.sources.rocketmq.segments.splits import Columns
from gapless.traces.sources.rocketmq.store import scan
from gapless.traces.sources.rocketmq.store.bytes import Ints
from gapless.traces.sources.rocketmq.store.index_files import AT_ONCE, Index
from gapless.traces.sources.rocketmq.store.record_keys import KIND, MUST, RECORD

TOLD = 1 << 16  # items and records of a segment that are remembered one by one

# Rows of stretches of records of which no key is found: positions of the first and the last, records, keys.
FIRST, LAST, RECORDS, KEYS, RUN_ROWS = range(5)


class Indexed(NamedTuple):
    """What the index has of the records of one segment.

    `keys`, `found`: how many keys are to be found, and are · `first`, `last`: positions of the first and the last
    record that has any, or -1 · `runs`: [4, runs], stretches of records without any ·
    `partly`: log positions of records of which some keys are found, and not all; `parts` counts them · `odd`: items
    that are not owned, or not timely, as [file, item, position, bits]; `odds` counts them.
    """

    keys: int
    found: int
    first: int
    last: int
    runs: Ints
    partly: Ints
    parts: int
    odd: Ints
    odds: int


def indexed(index: Index, columns: Columns, start: int, end: int) -> Indexed:
    """Hold the keys of a segment from log position `start` to `end` against the index. Raises Unreadable."""
    keys, items, found, bits = _matched(index, columns, start, end)
    must = keys[KIND] == MUST
    positions, records = columns.log[scan.POSITION], keys[RECORD][must]
    runs, partly = _lacking(positions, records, found[must])
    (odd,) = np.nonzero(bits != OWNED | TIMELY)
    told = items[[FILE, ITEM, POSITION]][:, odd[:TOLD]]
    return Indexed(
        keys=int(must.sum()),
        found=int(found[must].sum()),
        first=int(positions[records[0]]) if len(records) else -1,
        last=int(positions[records[-1]]) if len(records) else -1,
        runs=runs,
        partly=partly[:TOLD],
        parts=len(partly),
        odd=np.concatenate([told, bits[odd[:TOLD]][None].astype(np.int64)]),
        odds=len(odd),
    )


def found_keys(index: Index, columns: Columns, start: int, end: int) -> Ints:
    """The log positions of the records of a segment, once for each of their keys that is found. Raises Unreadable."""
    keys, _, found, _ = _matched(index, columns, start, end)
    positions: Ints = columns.log[scan.POSITION][keys[RECORD][(keys[KIND] == MUST) & (found != 0)]]
    return positions


def _matched(index: Index, columns: Columns, start: int, end: int) -> tuple[Ints, Ints, Bits, Bits]:
    """Keys and items, and of each what the other says of it: see `match`."""
    items, keys = _items(index, start, end), columns.index_keys
    found, bits = np.zeros(keys.shape[1], np.int8), np.zeros(items.shape[1], np.int8)
    match(columns.log[scan.POSITION], columns.log[scan.TIME], keys, items, found, bits)
    return keys, items, found, bits


def _items(index: Index, start: int, end: int) -> Ints:
    """All items that point to `start:end`, by position, then by file and number."""
    blocks = [np.zeros((ITEM_ROWS, 0), np.int64)]
    for at, file in enumerate(index.files):
        for stretch in np.flatnonzero((file.lows < end) & (file.highs >= start)).tolist():
            low = 1 + stretch * AT_ONCE
            read = file.read(low, min(low + AT_ONCE, file.items))
            position = read["position"].astype(np.int64)
            (inside,) = np.nonzero((position >= start) & (position < end))
            block = np.empty((ITEM_ROWS, len(inside)), np.int64)
            block[POSITION] = position[inside]
            block[POINTS_BY], block[SECONDS] = read["hash"][inside], read["seconds"][inside]
            block[SINCE], block[FILE], block[ITEM] = file.began, at, low + inside
            blocks.append(block)
    items = np.concatenate(blocks, axis=1)
    rising = items[POSITION]
    if (rising[1:] < rising[:-1]).any():
        items = np.ascontiguousarray(items[:, np.argsort(rising, kind="stable")])
    return items


def _lacking(positions: Ints, records: Ints, found: Ints) -> tuple[Ints, Ints]:
    """Stretches of records without any of their keys, and records with some of them. `records`: of each key."""
    if not len(records):
        return np.zeros((RUN_ROWS, 0), np.int64), np.zeros(0, np.int64)
    begins = np.flatnonzero(np.concatenate([[True], records[1:] != records[:-1]]))
    keys = np.diff(np.append(begins, len(records)))
    there = np.add.reduceat(found.astype(np.int64), begins)
    places = positions[records[begins]]
    partly = places[(there > 0) & (there < keys)]
    edges = np.diff(np.concatenate([[0], (there == 0).astype(np.int64), [0]]))
    low, high = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    sums = np.concatenate([[0], np.cumsum(keys)])
    runs = np.array([places[low], places[high - 1], high - low, sums[high] - sums[low]], np.int64)
    return runs.reshape(RUN_ROWS, -1), partly
