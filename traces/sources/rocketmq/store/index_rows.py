"""The rows that a table of keys must have for the records of a log, and the rows that it has.

A row's key is an hour, a text that names topic, kind, key and message, and the record's position
(docs/rocketmq.md#index-rocksdb). Text and position are reduced to one digest, so that rows of millions of records are
compared as numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import BYTES, INTS, TABLE, function, native
from gapless.traces.sources.rocketmq.store.bytes import (
    Bytes,
    Ints,
    copied,
    digest,
    digests_between,
    hash_on,
    i64,
    is_name,
    place_of,
    u32,
)
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import FARTHEST, mapped
from gapless.traces.sources.rocketmq.store.names import UNIQ_KEY, as_bytes
from gapless.traces.sources.rocketmq.store.record_pass import AT_ONCE, LONGEST, work
from gapless.traces.sources.rocketmq.store.records import (
    MAGIC_V2,
    SYS_TRANSACTION,
    parts,
    whole_size,
)

HOUR = 3_600_000  # ms
LAST, LAST_TIME = b"lastOffsetPy", b"lastStoreTimeStamp"  # keys that are no rows: how far the table was written
SHORTEST = 8 + len("@t@U@u@") + 8  # bytes of a row's key

# Kinds of expectation: a row; none; unknown, because a text of it is not one that the broker writes.
ROW, NONE, UNSURE = range(3)
_UNIQUE, _KEYS, _TAGS = as_bytes(UNIQ_KEY), as_bytes("KEYS"), as_bytes("TAGS")
_SPACE, _AT, _K, _T, _U = 32, 64, 75, 84, 85  # bytes: what parts words, and texts; kinds of rows


class WantedRows(NamedTuple):
    """The rows that records are to have, a column for each field, in the order of the log.

    `position`, `time` (ms): of the record · `text`: digest of the row's key behind its hour · `kind`: ROW; a record
    without rows has one place of kind NONE or UNSURE.
    """

    position: Ints
    time: Ints
    text: Ints
    kind: Ints


COLUMNS = len(WantedRows._fields)
Truths = npt.NDArray[np.bool_]


@function(inline=True)
def _put(b: Bytes, bounds: Ints, room: Ints, scratch: Bytes, kind: int, p: int, e: int) -> bool:
    """Appends one row of the record with topic and unique key in `bounds`. True if its text is a broker's.

    `kind`: K, T or U · `p:e`: the key, or nothing for the unique key.
    """
    topic, topic_end, unique, unique_end, time, position = (
        bounds[4],
        bounds[5],
        bounds[6],
        bounds[7],
        bounds[8],
        bounds[9],
    )
    size = topic_end - topic + unique_end - unique + e - p + 14
    if size > LONGEST or place_of(b, p, e, 1) != e or not hash_on(b, p, e, 0)[1]:
        return False
    n = 0
    scratch[n] = _AT
    n += 1
    n = copied(b, topic, topic_end, scratch, n)
    scratch[n], scratch[n + 1], scratch[n + 2] = _AT, kind, _AT
    n += 3
    if p < e:
        n = copied(b, p, e, scratch, n)
        scratch[n] = _AT
        n += 1
    n = copied(b, unique, unique_end, scratch, n)
    scratch[n] = _AT
    n += 1
    for i in range(8):
        scratch[n] = (position >> (56 - 8 * i)) & 255
        n += 1
    count = bounds[3]
    room[0, count], room[1, count] = position, time
    room[2, count], room[3, count] = digest(scratch, 0, n), ROW
    bounds[3] = count + 1
    return True


@native(work, kinds=(BYTES, INTS, TABLE, BYTES))
def _find(b: Bytes, bounds: Ints, room: Ints, scratch: Bytes) -> None:  # noqa: C901, PLR0912 - of each, all
    """Fills `room` with the rows of `b` within `bounds`, whose third number is the position of `b`.

    The first bound becomes the begin of the next call, and the fourth counts the rows. The others are for `_put`:
    topic and unique key, time, and position.
    """
    p, stop, base = bounds[0], bounds[1], bounds[2]
    while p + 8 <= stop:
        size = whole_size(b, p, stop)
        if size <= 0:
            p = len(b) if size < 0 else p
            break
        v2 = u32(b, p + 4) == MAGIC_V2
        r = parts(b, p, v2)
        unique, unique_end, words, words_end, tags, tags_end = (
            0, 0, 0, 0, 0, 0,
        )  # fmt: skip
        k = r.low
        while k < r.high:
            w = place_of(b, k, r.high, 2)
            m = place_of(b, k, w, 1)
            if m + 1 < w:
                if is_name(b, k, m, _UNIQUE):
                    unique, unique_end = m + 1, w
                elif is_name(b, k, m, _KEYS):
                    words, words_end = m + 1, w
                elif is_name(b, k, m, _TAGS):
                    tags, tags_end = m + 1, w
            k = w + 1
        if bounds[3] + (words_end - words) // 2 + 4 > room.shape[1]:
            break
        before = bounds[3]
        kind = NONE
        if r.flags & SYS_TRANSACTION != SYS_TRANSACTION and unique < unique_end:  # what is rolled back is not indexed
            bounds[4], bounds[5], bounds[6], bounds[7] = r.topic, r.topic_end, unique, unique_end
            bounds[8], bounds[9] = i64(b, r.time), base + p
            sure = hash_on(b, r.topic, r.topic_end, 0)[1] and hash_on(b, unique, unique_end, 0)[1]
            sure = sure and place_of(b, unique, unique_end, 1) == unique_end
            sure = sure and _put(b, bounds, room, scratch, _U, 0, 0)
            if tags < tags_end:
                sure = sure and _put(b, bounds, room, scratch, _T, tags, tags_end)
            k = words
            while k < words_end:
                w = place_of(b, k, words_end, _SPACE)
                if k < w:
                    sure = sure and _put(b, bounds, room, scratch, _K, k, w)
                k = w + 1
            kind = ROW if sure else UNSURE
        if kind != ROW:
            room[0, before], room[1, before], room[2, before], room[3, before] = base + p, i64(b, r.time), 0, kind
            bounds[3] = before + 1
        p += size
    bounds[0] = p


def wanted_rows(store: StoreDirectory, end: int) -> Iterator[tuple[int, int, WantedRows]]:
    """Yields stretches of the log up to `end`, with their bounds and the expected rows of their records.

    They end early where records cannot be followed.
    """
    scratch, reached = np.zeros(LONGEST, np.uint8), store.start
    for file in store.files:
        if file.base != reached or reached >= end:
            break
        data, at = mapped(file), 0
        stop = min(len(data), file.length, end - file.base)
        while True:
            room, bounds = np.zeros((COLUMNS, AT_ONCE), np.int64), np.zeros(10, np.int64)
            bounds[:3] = at, stop, file.base
            _find(data, bounds, room, scratch)
            begun, at = at, int(bounds[0])
            if at > begun:
                yield file.base + begun, file.base + at, WantedRows(*_once(room[:, : bounds[3]]))
            if at == begun:
                break
        reached = file.base + at


def _once(rows: Ints) -> Ints:
    """Returns rows without repetitions: a word may occur twice in a record, which then has three of them."""
    counts = np.diff(np.flatnonzero(np.diff(rows[0], prepend=-1, append=-1)))  # of each record, in the order of the log
    mine = np.flatnonzero((np.repeat(counts, counts) > 2) & (rows[3] == ROW))
    _, first = np.unique(rows[2, mine], return_index=True)
    if len(first) == len(mine):
        return rows
    kept = np.ones(rows.shape[1], np.bool_)
    kept[mine] = False
    kept[mine[first]] = True
    return rows[:, kept]


@dataclass(frozen=True)
class IndexTable:
    """The rows of a table of keys, a column for each field, by position; and its recorded end.

    `text` as in `WantedRows` · `time`, `hour`: ms · `last`, `last_time`: None where the table does not say it · `odd`:
    a row that no broker writes, or nothing.
    """

    position: Ints
    text: Ints
    time: Ints
    hour: Ints
    last: int | None
    last_time: int | None
    odd: str = ""

    def between(self, low: int, high: int) -> slice:
        """Selects the rows of records between two log positions."""
        begin, end = self.position.searchsorted([low, high]).tolist()
        return slice(begin, end)


def index_table(stretches: Iterator[list[tuple[bytes, bytes]]]) -> IndexTable:
    """Builds the table from stretches of keys and values."""
    found, numbers, odd = [np.zeros((4, 0), np.int64)], dict[bytes, int](), ""
    for pairs in stretches:
        columns, are_rows = _columns(pairs)
        if not are_rows.all():
            for at in np.flatnonzero(~are_rows).tolist():
                key, value = pairs[at]
                if key in (LAST, LAST_TIME) and len(value) == 8:
                    numbers[key] = int.from_bytes(value, "big", signed=True)
                else:
                    odd = odd or f"{key.hex()}: {value.hex()}"
            columns, _ = _columns(list(compress(pairs, are_rows)))
        found.append(columns)
    columns = np.concatenate(found, axis=1)
    columns = columns[:, np.argsort(columns[0], kind="stable")]
    position, text, time, hour = columns
    (nowhere,) = np.nonzero((position < 0) | (position >= FARTHEST))
    if len(nowhere):
        odd = odd or f"a row for position {position[nowhere[0]]:,}"
    return IndexTable(position, text, time, hour, numbers.get(LAST), numbers.get(LAST_TIME), odd)


def _columns(pairs: list[tuple[bytes, bytes]]) -> tuple[Ints, Truths]:
    """The fields of rows, and whether each is one; if any is none, the fields are nothing."""
    keys, values = list(map(itemgetter(0), pairs)), list(map(itemgetter(1), pairs))
    data = np.frombuffer(b"".join(keys), np.uint8)
    stops = np.cumsum(np.fromiter(map(len, keys), np.int64, len(keys)))
    begins = np.concatenate([np.zeros(1, np.int64), stops])[:-1]
    are_rows = (stops - begins >= SHORTEST) & (np.fromiter(map(len, values), np.int64, len(values)) == 8)
    if are_rows.all():
        are_rows = (data[begins + 8] == _AT) & (data[stops - 9] == _AT)
    columns = np.zeros((4, len(pairs)), np.int64)
    if len(pairs) and are_rows.all():
        columns[0] = _numbers(data, stops - 8)
        columns[1] = digests_between(data, begins + 8, stops)
        columns[2] = np.frombuffer(b"".join(values), ">i8")
        columns[3] = _numbers(data, begins)
    elif len(pairs):
        at = np.minimum(begins + 8, len(data) - 1)
        are_rows &= (data[at] == _AT) & (data[np.maximum(stops - 9, 0)] == _AT)
    return columns, are_rows


def _numbers(data: Bytes, places: Ints) -> Ints:
    """The numbers of eight bytes at some places."""
    windows = np.lib.stride_tricks.sliding_window_view(data, 8)[places]
    return np.ascontiguousarray(windows).view(">i8").reshape(-1).astype(np.int64)


class RowNames(NamedTuple):
    """The text of a row for people: its hour and time in ms, and topic, kind, key and message after an @ each."""

    hour: int
    text: str
    time: int


def names_of(stretches: Iterator[list[tuple[bytes, bytes]]], positions: set[int]) -> dict[int, list[RowNames]]:
    """Returns the texts of the rows that point to these log positions."""
    found: dict[int, list[RowNames]] = {}
    for pairs in stretches:
        for key, value in pairs:
            position = int.from_bytes(key[-8:], "big", signed=True)
            if position in positions and len(key) >= SHORTEST:
                text = key[8:-9].decode(errors="backslashreplace")
                hour, time = (int.from_bytes(number, "big", signed=True) for number in (key[:8], value))
                found.setdefault(position, []).append(RowNames(hour, text, time))
    return found
