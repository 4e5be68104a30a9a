"""One more pass over a log, for records that few stores have: a kernel of theirs finds them, file by file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gapless.traces.sources.rocketmq.store.bytes import Bytes, Ints
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import mapped

AT_ONCE = 1 << 16  # records that are found before there is more room
LONGEST = 1 << 16  # bytes of a topic and a key together: what a kernel has room for to join them

Finds = Callable[[Bytes, Ints, Ints, Bytes], None]
"""Fills room for columns with what lies within bounds of a file's bytes, which lies at the third of them.

The last argument is room to join texts. Behind a call, the first bound says where the next one begins, and the fourth,
how many were found.
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
    reached, scratch = store.start if begin is None else begin, np.zeros(LONGEST, np.uint8)
    room = np.empty((columns, AT_ONCE), np.int64)
    for file in store.files:
        if reached >= file.base + file.length:
            continue
        if not file.base <= reached < end or (begin is None and file.base != reached):
            break
        data, at = mapped(file), reached - file.base
        stop = min(len(data), file.length, end - file.base)
        while True:
            bounds = np.array([at, stop, file.base, 0], np.int64)
            find(data, bounds, room, scratch)
            at, _, _, count = bounds.tolist()
            take(room[:, :count])
            if count < AT_ONCE:
                break
        reached = file.base + at
    return reached
