"""One more pass over a log, for records that few stores have: a kernel of theirs finds them, file by file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from gapless.native import BYTES, INTS, native
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints
from gapless.traces.sources.rocketmq.columns.property_spans import MESSAGE, PropertyNames, find_spans, spans_of
from gapless.traces.sources.rocketmq.log.records import whole_size
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import mapped

AT_ONCE = 1 << 16  # records that are found before there is more room
LONGEST = 1 << 16  # bytes of a topic and a key together: what a kernel has room for to join them

Finds = Callable[[Bytes, int, Ints, Ints, Ints, Ints, int, Bytes], int]
"""Appends to columns what it finds among the records at places of a file's bytes; returns the new number of rows.

Called with the bytes, their log position, the places, sizes and property spans of records, the columns, which have room
for each of the records, the rows that are filled already, and room to join texts.
"""


class RecordBlock(NamedTuple):
    """Adjacent records of a log file.

    `base`: the log position of its bytes `data` · `places`, `sizes`: of the records in them · `begin`, `end`: the log
    positions between which they lie, with the blank behind the last one of a file.
    """

    data: Bytes
    base: int
    places: Ints
    sizes: Ints
    begin: int
    end: int


def record_blocks(store: StoreDirectory, end: int, begin: int | None = None) -> Iterator[RecordBlock]:
    """Yields the records up to log position `end`, as far as they follow one another; each block is overwritten.

    `begin`: the position of a record; by default the log's start.
    """
    places, sizes = np.empty((2, AT_ONCE), np.int64)
    reached = store.start if begin is None else begin
    for file in store.files:
        if reached >= file.base + file.length:
            continue
        if not file.base <= reached < end or (begin is None and file.base != reached):
            break
        data, count = mapped(file), AT_ONCE
        stop = min(len(data), file.length, end - file.base)
        while count == AT_ONCE:
            bounds = np.array([reached - file.base, stop, 0], np.int64)
            _find_records(data, bounds, places, sizes)
            at, _, count = bounds.tolist()
            yield RecordBlock(data, file.base, places[:count], sizes[:count], reached, file.base + at)
            reached = file.base + at


def each_among(
    store: StoreDirectory, end: int, find: Finds, columns: int, take: Callable[[Ints], object],
    begin: int | None = None, names: PropertyNames = MESSAGE,
) -> int:  # fmt: skip
    """Calls back with what is found among the records of each block. Returns the end of the readable records.

    It is overwritten. `end`, `begin`: as in `record_blocks` · `names`: of the properties that `find` needs.
    """
    room, scratch = np.empty((columns, AT_ONCE), np.int64), np.zeros(LONGEST, np.uint8)
    spans, reached = np.empty((AT_ONCE, 2 * len(names.words)), np.int64), store.start if begin is None else begin
    for block in record_blocks(store, end, begin):
        spans_of(block.data, block.places, names, spans)
        take(room[:, : find(*block[:4], spans[: len(block.places)], room, 0, scratch)])
        reached = block.end
    return reached


@native(lambda b, bounds, *_: min(len(b), int(bounds[1] - bounds[0])) >> 8, kinds=(BYTES, INTS, INTS, INTS))
def _find_records(b: Bytes, bounds: Ints, places: Ints, sizes: Ints) -> None:
    """Finds the records of `b` within `bounds`, as many as there is room for.

    The first bound becomes the begin of the next call, and the third counts the records.
    """
    p, stop, count = bounds
    while p + 8 <= stop and count < len(places):
        size = whole_size(b, p, stop)
        if size <= 0:
            p = len(b) if size < 0 else p
            break
        places[count], sizes[count] = p, size
        count += 1
        p += size
    bounds[0], bounds[2] = p, count


ENTRIES = (_find_records, find_spans)
"""All that is compiled of it."""
