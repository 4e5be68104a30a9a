"""The entries of a DLedger log, and the units of its index: 32 bytes for each (docs/rocketmq.md#dledger-index)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import BYTES, INTS, TABLE, native
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints, i32, i64, u32
from gapless.traces.sources.rocketmq.log.dledger import Dledger
from gapless.traces.sources.rocketmq.log.dledger_entries import DLEDGER_MAGIC, ENTRY_HEADER
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import LogFile, files_in, mapped, read_exactly

UNIT = np.dtype([("magic", ">i4"), ("position", ">i8"), ("size", ">i4"), ("number", ">i8"), ("term", ">i8")])
INDEX_FILE = 5 * 1024 * 1024 * UNIT.itemsize  # bytes of every file of the index: no setting of a broker changes it
AT_ONCE = 1 << 16  # entries that are looked at before there is more room


class EntryColumns(NamedTuple):
    """Consecutive entries, a column for each field of their headers; `position`: the begin of each."""

    position: Ints
    size: Ints
    number: Ints
    term: Ints


@native(lambda b, bounds, *_: min(len(b), int(bounds[1] - bounds[0])) >> 8, kinds=(BYTES, INTS, TABLE))
def _find(b: Bytes, bounds: Ints, room: Ints) -> None:
    """Fill `room` with the entries within `bounds` of `b`, which itself lies at the third of them.

    The first of them is where the next call begins, then, and the fourth, how many entries there are.
    """
    p, stop, base, count = bounds
    while p + ENTRY_HEADER <= stop and count < room.shape[1]:
        size = i32(b, p + 4)
        if u32(b, p) != DLEDGER_MAGIC or size <= ENTRY_HEADER or p + size > stop:
            break
        room[0, count], room[1, count] = base + p, size
        room[2, count], room[3, count] = i64(b, p + 8), i64(b, p + 16)
        count += 1
        p += size
    bounds[0], bounds[3] = p, count


def entries_between(store: StoreDirectory, begin: int, end: int) -> Iterator[EntryColumns]:
    """Yields the entries of a DLedger log from `begin`, where one begins, up to `end`, many at once."""
    for file in store.files:
        if not file.wrapped or not begin - file.length < file.base < end:
            continue
        data, at = mapped(file), max(begin - file.base, 0)
        stop = min(len(data), file.length, end - file.base)
        while True:
            room = np.zeros((4, AT_ONCE), np.int64)
            bounds = np.array([at, stop, file.base, 0], np.int64)
            _find(data, bounds, room)
            at, _, _, count = bounds.tolist()
            if count:
                yield EntryColumns(*room[:, :count].copy())
            if count < AT_ONCE:
                break


def index_files(dledger: Dledger) -> list[LogFile]:
    """The files of the index, by the place of their first unit among all."""
    found = files_in(str(dledger.index)) if dledger.index.is_dir() else ()
    return [LogFile(str(dledger.index / f"{file.base:020d}"), file.base, file.length) for file in found]


def units_of(files: list[LogFile], low: int, high: int) -> npt.NDArray[np.void]:
    """The units of the entries from index `low` to `high`; zeros where no file has them. Raises Unreadable."""
    data = np.zeros((high - low) * UNIT.itemsize, np.uint8)
    first = low * UNIT.itemsize
    for file in files:
        begin, stop = max(first, file.base), min(high * UNIT.itemsize, file.base + file.length)
        if begin < stop:
            read_exactly(file, begin - file.base, data[begin - first : stop - first].data)
    return data.view(UNIT)


def place_of_unit(files: list[LogFile], number: int) -> tuple[int, int]:
    """The base of the file that holds the unit of an entry, and the offset in it."""
    at = number * UNIT.itemsize
    base = max((file.base for file in files if file.base <= at), default=0)
    return base, at - base
