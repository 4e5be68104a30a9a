"""Compares the keys of a segment's records with the items of the hash index that point into it.

Items are in the order of the log, so a worker finds those of its records by itself: nothing is shuffled. The results
are flags; the spec judges them, in `judge.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.traces.options import Options
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import AT_ONCE, FOLDER, Index, index_in
from gapless.traces.sources.rocketmq.layouts.hash_index.matching import (
    C_FIRST,
    C_FOUND,
    C_KEYS,
    C_LAST,
    C_ODDS,
    C_PARTS,
    C_RUNS,
    ENTRIES,
    ITEM_COLUMNS,
    POSITION,
    ItemRange,
    MatchResult,
    gather,
    match,
    match_in_order,
    room_for,
)
from gapless.traces.sources.rocketmq.layouts.hash_index.record_keys import KEY_ROWS, KIND, MUST, RECORD, find_index_keys
from gapless.traces.sources.rocketmq.layouts.layout import SegmentView, WorkerSide
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.segments.splits import Columns, Sought
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory

INDEX_KEYS = Sought(
    "index keys",
    KEY_ROWS,
    lambda seen, rows, filled: find_index_keys(seen.data, seen.places, seen.first, rows, filled),
    room=3,
)
"""The keys of records that the index must have."""
MOST_MISFITS = 1 << 16  # items and records of a segment that are remembered one by one


class IndexMatches(NamedTuple):
    """The matches of one segment's records with the index.

    `keys`, `found`: the number of keys that must be found, and that are · `first`, `last`: positions of the first and
    the last record with a key, or -1 · `runs`: [4, runs], stretches of records without any match · `partly`: log
    positions of records with some of their keys; `parts` counts them · `odd`: items that are not owned, or not timely,
    as [file, item, position, bits]; `odds` counts them.
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


def includes_hash_index(store: StoreDirectory, options: Options) -> bool:
    """True if the hash index was selected: it belongs to no topic, and is skipped while a broker runs."""
    if index_in(store) is None or store.live or options.topic is not None:
        return False
    return options.trace is None or options.trace.startswith(f"{FOLDER}/")


def indexed(index: Index, columns: Columns, start: int, end: int) -> IndexMatches:
    """Compares the keys of a segment, from log position `start` to `end`, with the index. Raises Unreadable."""
    result = _in_order(index, columns, start, end) or _matched(index, columns, start, end, MOST_MISFITS)
    counts = result.counts.tolist()
    return IndexMatches(
        keys=counts[C_KEYS],
        found=counts[C_FOUND],
        first=counts[C_FIRST],
        last=counts[C_LAST],
        runs=result.runs[:, : counts[C_RUNS]].copy(),
        partly=result.partly[: counts[C_PARTS]].copy(),
        parts=counts[C_PARTS],
        odd=result.odd[:, : counts[C_ODDS]].copy(),
        odds=counts[C_ODDS],
    )


def _in_order(index: Index, columns: Columns, start: int, end: int) -> MatchResult | None:
    """Matches a segment without departures: its items are consecutive in one file, in its keys' order.

    None if it is otherwise.
    """
    stretches = _stretches(index, start, end)
    if not stretches or stretches[-1] != (stretches[0][0], stretches[0][1] + AT_ONCE * (len(stretches) - 1)):
        return None
    (at, low), (_, last) = stretches[0], stretches[-1]
    file, result = index.files[at], room_for(0, 0, 0)
    high = min(last + AT_ONCE, file.items)
    room = columns.space.array("items as read", (file.item_at(high) - file.item_at(low),), np.uint8)
    items, wanted = file.read_bytes(low, high, room), ItemRange(start, end, low, file.began)
    fit = match_in_order(
        columns.log[scan.POSITION], columns.log[scan.TIME], columns.found[INDEX_KEYS.name], items, wanted, result.counts
    )
    return result if fit else None


def found_keys(index: Index, columns: Columns, start: int, end: int) -> Ints:
    """Returns the log positions of records, once for each of their keys in the index. Raises Unreadable."""
    keys, found = columns.found[INDEX_KEYS.name], _matched(index, columns, start, end, 0).found
    positions: Ints = columns.log[scan.POSITION][keys[RECORD][(keys[KIND] == MUST) & (found != 0)]]
    return positions


def _matched(index: Index, columns: Columns, start: int, end: int, most: int) -> MatchResult:
    """Matches records with the items that point to them: see `match`. `most`: of misfits listed one by one."""
    result = room_for(columns.count, columns.found[INDEX_KEYS.name].shape[1], most)
    items = _items(index, columns, start, end)
    match(columns.log[scan.POSITION], columns.log[scan.TIME], columns.found[INDEX_KEYS.name], items, result)
    return result


def _stretches(index: Index, start: int, end: int) -> list[tuple[int, int]]:
    """Yields the stretches that may have items pointing to `start:end`: file and first number."""
    at, low = index.spans[:2, (index.spans[2] < end) & (index.spans[3] >= start)].tolist()
    return list(zip(at, low, strict=True))


def _items(index: Index, columns: Columns, start: int, end: int) -> Ints:
    """Returns all items that point to `start:end`, by position, then by file and number."""
    stretches = _stretches(index, start, end)
    items: Ints = columns.space.array("items", (AT_ONCE * len(stretches), ITEM_COLUMNS), np.int64)
    count = 0
    for at, low in stretches:
        file = index.files[at]
        read = file.read_bytes(low, min(low + AT_ONCE, file.items))
        count = gather(read, low, at, (start, end, file.began), items, count)
    items = items[:count]
    rising = items[:, POSITION]
    return items if (rising[1:] >= rising[:-1]).all() else items[np.argsort(rising, kind="stable")]


def sought(store: StoreDirectory, options: Options) -> tuple[Sought, ...]:
    """Asks for the keys of records, if the index is judged."""
    return (INDEX_KEYS,) if includes_hash_index(store, options) else ()


def prepare(store: StoreDirectory, options: Options) -> None:
    """Compiles the search for keys and their items, if the index is judged."""
    if includes_hash_index(store, options):
        for entry in (find_index_keys, *ENTRIES):
            entry.prepare()
        kernel("hash_index", options.ignored)


def examine(view: SegmentView, options: Options) -> IndexMatches | None:
    """Compares the keys of a segment with the index, if that is judged. Raises Unreadable."""
    store, columns = view.store, view.columns
    index = index_in(store)
    if index is None or not columns.count or not includes_hash_index(store, options):
        return None
    return indexed(index, columns, view.start, view.end)


WORKER = WorkerSide(sought=sought, prepare=prepare, examine=examine)
