"""One more pass over a log, for records that few stores have: a kernel of theirs finds them, file by file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gapless.native import BYTES, INTS, native
from gapless.traces.sources.rocketmq.store.bytes import Bytes, Ints
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import mapped
from gapless.traces.sources.rocketmq.store.records import whole_size

AT_ONCE = 1 << 16  # records that are found before there is more room
LONGEST = 1 << 16  # bytes of a topic and a key together: what a kernel has room for to join them

Finds = Callable[[Bytes, Ints, Ints, Bytes], None]
"""Fills room for columns with what lies within bounds of a file's bytes, which lies at the third of them.

The last argument is room to join texts. Behind a call, the first bound says where the next one begins, and the fourth,
how many were found.
"""

FindsAmong = Callable[[Bytes, int, Ints, Ints, Ints, int, Bytes], int]
"""Appends to columns what it finds among the records at places of a file's bytes; returns the new number of rows.

Called with the bytes, their log position, the places and sizes of records, the columns, which have room for each of
the records, the rows that are filled already, and room to join texts.
"""


def work(b: Bytes, bounds: Ints, room: Ints, scratch: Bytes) -> int:  # noqa: ARG001 - as `Finds` is called
    """About how many records a call looks at."""
    return min(len(b), int(bounds[1] - bounds[0])) >> 8


def found_up_to(
    store: StoreDirectory, end: int, find: Finds, columns: int, begin: int | None = None
) -> tuple[Ints, int]:
    """Returns the results up to log position `end`, and the end of the readable records.

    The results are int64 [columns, …]. `begin`: the position of a record; by default the log's start.
    """
    found: list[Ints] = [np.zeros((columns, 0), np.int64)]
    reached = each_up_to(store, end, find, columns, lambda some: found.append(some.copy()), begin)
    return np.concatenate(found, axis=1), reached


def each_up_to(
    store: StoreDirectory, end: int, find: Finds, columns: int, take: Callable[[Ints], object], begin: int | None = None
) -> int:
    """Calls back with the results block by block; each is overwritten. Returns the end of the readable records."""
    room, scratch = np.empty((columns, AT_ONCE), np.int64), np.zeros(LONGEST, np.uint8)

    def look(data: Bytes, at: int, stop: int, base: int) -> int:
        while True:
            bounds = np.array([at, stop, base, 0], np.int64)
            find(data, bounds, room, scratch)
            at, _, _, count = bounds.tolist()
            take(room[:, :count])
            if count < AT_ONCE:
                return int(at)

    return _each_file(store, end, look, begin)


def each_among(
    store: StoreDirectory, end: int, find: FindsAmong, columns: int, take: Callable[[Ints], object]
) -> int:  # fmt: skip
    """Calls back with what is found among the records up to log position `end`, as `each_up_to` does."""
    room, scratch = np.empty((columns, AT_ONCE), np.int64), np.zeros(LONGEST, np.uint8)
    places, sizes = np.empty((2, AT_ONCE), np.int64)

    def look(data: Bytes, at: int, stop: int, base: int) -> int:
        while True:
            bounds = np.array([at, stop, 0], np.int64)
            _find_records(data, bounds, places, sizes)
            at, _, count = bounds.tolist()
            take(room[:, : find(data, base, places[:count], sizes[:count], room, 0, scratch)])
            if count < AT_ONCE:
                return int(at)

    return _each_file(store, end, look, None)


def _each_file(
    store: StoreDirectory, end: int, look: Callable[[Bytes, int, int, int], int], begin: int | None
) -> int:  # fmt: skip
    """Looks through the files that follow one another; returns the end of the readable records.

    `look`: called with the bytes of a file, where the first record begins in them, where they stop, and their log
    position; returns where the last record ends in them.
    """
    reached = store.start if begin is None else begin
    for file in store.files:
        if reached >= file.base + file.length:
            continue
        if not file.base <= reached < end or (begin is None and file.base != reached):
            break
        data = mapped(file)
        reached = file.base + look(data, reached - file.base, min(len(data), file.length, end - file.base), file.base)
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


ENTRIES = (_find_records,)
"""All that is compiled of it."""
