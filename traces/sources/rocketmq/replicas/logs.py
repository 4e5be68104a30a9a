"""Two logs, compared byte for byte as far as both reach."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gapless.traces.problems import shown
from gapless.traces.sources.rocketmq.columns.bytes import Bytes
from gapless.traces.sources.rocketmq.log import records, scan
from gapless.traces.sources.rocketmq.replicas.side import Side
from gapless.traces.sources.rocketmq.replicas.values import LogFork, LogGap, RecordCopy
from gapless.traces.sources.rocketmq.segments.splits import SPLIT, Split, SplitReader
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import LARGEST, FileWindow, header_at
from gapless.traces.sources.rocketmq.store.files import LogFile, read_exactly
from gapless.traces.sources.rocketmq.store.names import UNIQ_KEY

BLOCK = 4 << 20  # bytes of either log in memory


class LogComparison(NamedTuple):
    """The result of comparing two logs."""

    low: int
    high: int
    fork: LogFork | None
    gaps: list[LogGap]  # stretches in between of which one has no file
    blanks: int  # blanks that differ behind their first eight bytes, which are never read


def compare_logs(one: Side, other: Side, block: int = BLOCK) -> LogComparison:
    """Compares the common part of both logs. Raises Unreadable if a file changes meanwhile."""
    low, high = max(one.start, other.start), min(one.end, other.end)
    stores = one.store, other.store
    edges = sorted({edge for store in stores for file in store.files for edge in (file.base, file.base + file.length)})
    first = last = -1
    gaps: list[LogGap] = []
    apart = blanks = 0
    at = low
    while at < high:
        following = bisect_right(edges, at)
        stop = min(at + block, high, *edges[following : following + 1])  # so that it is within one file of each
        mine, theirs = (_read(store, at, stop) for store in stores)
        if mine is None or theirs is None:
            _add_gap(gaps, one, other, at, stop)
        elif not np.array_equal(mine, theirs):
            places = np.flatnonzero(mine != theirs)
            if first < 0 and _is_in_the_rest_of_a_blank(one, other, at + int(places[0])):
                blanks += 1
            else:
                first, last = first if first >= 0 else at + int(places[0]), at + int(places[-1])
                apart += len(places)
        at = stop
    return LogComparison(
        low, max(low, high), _fork(one, other, first, last, apart, high) if first >= 0 else None, gaps, blanks
    )


def _add_gap(gaps: list[LogGap], one: Side, other: Side, low: int, high: int) -> None:
    """Adds a stretch that was not compared, or extends the last one if it is of the same file."""
    lacking = [side for side in (one, other) if _file_at(side.store, low) is None]
    roles, file = [side.role for side in lacking], Path(lacking[0].store.log_file_at(low)[0]).name
    if gaps and (gaps[-1].high, gaps[-1].roles, gaps[-1].file) == (low, roles, file):
        low = gaps.pop().low
    gaps.append(LogGap(low=low, high=high, roles=roles, file=file))


def _file_at(store: StoreDirectory, position: int) -> LogFile | None:
    return next((file for file in store.files if file.base <= position < file.base + file.length), None)


def _read(store: StoreDirectory, low: int, high: int) -> Bytes | None:
    """Reads the bytes of a stretch; None without a file."""
    file = _file_at(store, low)
    if file is None:
        return None
    data = np.empty(high - low, np.uint8)
    read_exactly(file, low - file.base, data.data)
    return data


def _is_in_the_rest_of_a_blank(one: Side, other: Side, position: int) -> bool:
    """True if a byte is behind the first eight of a blank, in both: it is never read.

    Source: docs/rocketmq.md#blank.
    """
    at = max(_record_start(one.store, position), _record_start(other.store, position))
    for file in (_file_at(one.store, at), _file_at(other.store, at)):
        if file is None:
            return False
        header = header_at(file, at - file.base)
        if header.magic != records.MAGIC_BLANK or header.size != file.base + file.length - at:
            return False
    return position >= at + records.BLANK


# -- the record that differs ---------------------------------------------------------------------------------------


def _record_start(store: StoreDirectory, position: int) -> int:
    """Returns the start of the record or blank that contains `position`, as the scan reads this log."""
    file = _file_at(store, position)
    if file is None:
        return -1
    offset = position - file.base
    low = offset - offset % SPLIT
    found = -1
    while found < 0 and low >= 0:
        split = Split(file, low, min(low + SPLIT, file.length), exact=low == 0)
        for columns, begin, end, *_ in SplitReader(store, split).segments():
            starts = columns.log[scan.POSITION] - file.wrapped
            before = int(starts.searchsorted(position, side="right")) - 1
            candidates = [at for at in (begin, end, int(starts[before]) if before >= 0 else -1) if at <= position]
            found = max([found, *candidates])
        low -= SPLIT
    return found if found >= 0 else file.base


def _fork(one: Side, other: Side, byte: int, last: int, apart: int, high: int) -> LogFork:
    """Describes the first record that differs."""
    at = max(_record_start(one.store, byte), _record_start(other.store, byte))
    ending = min(
        _record_start(side.store, high - 1) for side in (one, other)
    )  # logs that forked may end in the same byte
    there = [_LogPlace.of(side, at) for side in (one, other)]
    return LogFork(
        position=at,
        byte=byte,
        differs=_differing(there[0].data, there[1].data),
        there=[read.copy for read in there],
        bytes_apart=apart,
        last=last,
        again=last + 1 if last < ending else None,
    )


class _LogPlace(NamedTuple):
    """The content of one log at a position: for a reader, and in bytes."""

    copy: RecordCopy
    data: bytes  # no more than one record

    @classmethod
    def of(cls, side: Side, position: int) -> _LogPlace:
        """Read it."""
        file = _file_at(side.store, position)
        name, offset = side.store.log_file_at(position)
        if file is None:
            return cls(RecordCopy(role=side.role, file=name, offset=offset, what="no file"), b"")
        header = header_at(file, offset)
        whole = records.SMALLEST <= header.size - file.wrapped <= min(LARGEST, file.length - offset)
        window = FileWindow(file)
        window.read(offset + file.wrapped, offset + (header.size if whole else file.wrapped + records.HEADER))
        data = window.data.tobytes()
        record = records.plain(data) if header.known and whole else None
        if record is None:
            what = "a blank" if header.magic == records.MAGIC_BLANK else "no record"
            return cls(RecordCopy(role=side.role, file=name, offset=offset, what=what), data)
        copy = RecordCopy(
            role=side.role,
            file=name,
            offset=offset,
            what="a record",
            topic=shown(record.topic),
            queue=record.queue,
            number=record.number,
            key=shown(record.properties[UNIQ_KEY]) if UNIQ_KEY in record.properties else None,
            intact=zlib.crc32(record.body) & 0x7FFFFFFF == int.from_bytes(data[8:12], "big"),
        )
        return cls(copy, data)


FIELDS = (("size", 4), ("magic number", 4), ("checksum of the body", 4), ("queue", 4), ("flag", 4), ("number", 8))
"""The first fields of a record, with their bytes (docs/rocketmq.md#record)."""


def fields(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields the fields of the record that begins `data`, with their names; fewer of a torn one."""
    rest, flags = data, int.from_bytes(data[36:40], "big")
    born, stored = (20 if flags & bit else 8 for bit in (records.SYS_BORN_V6, records.SYS_STORE_V6))
    v2 = data[4:8] == records.MAGIC_V2.to_bytes(4, "big")
    plain = (
        *(*FIELDS, ("position", 8), ("system flags", 4), ("time of birth", 8), ("host of birth", born)),
        *(("store time", 8), ("host of the store", stored), ("reconsume times", 4), ("half", 8)),
    )
    for name, size in plain:
        yield name, rest[:size]
        rest = rest[size:]
    for name, width in (("body", 4), ("topic", 2 if v2 else 1), ("properties", 2)):
        size = width + int.from_bytes(rest[:width], "big")
        yield name, rest[:size]
        rest = rest[size:]


def _differing(one: bytes, other: bytes) -> list[str]:
    """The names of the fields in which two records differ, in the order in which they lie."""
    return [name for (name, mine), (_, theirs) in zip(fields(one), fields(other), strict=True) if mine != theirs]
