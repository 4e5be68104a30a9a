"""The rows that a table of keys must have for the records of a log, and the rows that it has.

A row's key is an hour, a text that names topic, kind, key and message, and the record's position
(docs/rocketmq.md#index-rocksdb). Text and position are reduced to one digest, so that rows of millions of records are
compared as numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import BYTES, I64, INTS, TABLE, function, native
from gapless.traces.sources.rocketmq.columns.bytes import (
    Bytes,
    Ints,
    copied,
    digest,
    hash_on,
    i64,
    place_of,
    u32,
)
from gapless.traces.sources.rocketmq.columns.property_spans import S_KEY, S_TAGS, S_WORDS, spans_of
from gapless.traces.sources.rocketmq.layouts.message_database import TAIL, Pairs, TableCodec
from gapless.traces.sources.rocketmq.log.record_pass import AT_ONCE, LONGEST, record_blocks
from gapless.traces.sources.rocketmq.log.records import MAGIC_V2, SYS_TRANSACTION, RecordParts, parts
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import FARTHEST

HOUR = 3_600_000  # ms
LAST, LAST_TIME = b"lastOffsetPy", b"lastStoreTimeStamp"  # keys that are no rows: how far the table was written
SHORTEST = 8 + len("@t@U@u@") + 8  # bytes of a row's key
_ROWS = TableCodec(SHORTEST, ">i8,", (LAST, LAST_TIME), between=True)

# Kinds of expectation: a row; none; unknown, because a text of it is not one that the broker writes.
ROW, NONE, UNSURE = range(3)
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
def _put(
    b: Bytes, r: RecordParts, unique: int, unique_end: int, position: int, kind: int, p: int, e: int, room: Ints,
    count: int, scratch: Bytes
) -> int:  # fmt: skip
    """Appends one row of a record at a log position; returns the new number, or -1 if its text is no broker's.

    `unique:unique_end`: the record's unique key · `kind`: K, T or U · `p:e`: the key, or nothing for the unique key.
    """
    size = r.topic_end - r.topic + unique_end - unique + e - p + 14
    if count < 0 or size > LONGEST or place_of(b, p, e, 1) != e or not hash_on(b, p, e, 0)[1]:
        return -1
    scratch[0] = _AT
    n = copied(b, r.topic, r.topic_end, scratch, 1)
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
    room[0, count], room[1, count] = position, i64(b, r.time)
    room[2, count], room[3, count] = digest(scratch, 0, n), ROW
    return count + 1


@native(lambda _b, _base, places, *_: len(places), kinds=(BYTES, I64, INTS, TABLE, TABLE, BYTES))
def _find(b: Bytes, base: int, places: Ints, spans: Ints, room: Ints, scratch: Bytes) -> int:
    """Fills `room` with the rows of the records at `places` of `b`, which lies at `base`; returns their number."""
    count = 0
    for i in range(len(places)):
        position = base + places[i]
        r = parts(b, places[i], u32(b, places[i] + 4) == MAGIC_V2)
        unique, unique_end, tags, tags_end = (
            spans[i, S_KEY],
            spans[i, S_KEY + 1],
            spans[i, S_TAGS],
            spans[i, S_TAGS + 1],
        )
        k, words_end = spans[i, S_WORDS], spans[i, S_WORDS + 1]
        after, kind = -1, NONE
        if r.flags & SYS_TRANSACTION != SYS_TRANSACTION and unique < unique_end:  # what is rolled back is not indexed
            kind = UNSURE
            sure = hash_on(b, r.topic, r.topic_end, 0)[1] and hash_on(b, unique, unique_end, 0)[1]
            if sure and place_of(b, unique, unique_end, 1) == unique_end:
                after = _put(b, r, unique, unique_end, position, _U, 0, 0, room, count, scratch)
            if tags < tags_end:
                after = _put(b, r, unique, unique_end, position, _T, tags, tags_end, room, after, scratch)
            while k < words_end:
                w = place_of(b, k, words_end, _SPACE)
                if k < w:
                    after = _put(b, r, unique, unique_end, position, _K, k, w, room, after, scratch)
                k = w + 1
        if after < 0:
            room[0, count], room[1, count], room[2, count], room[3, count] = position, i64(b, r.time), 0, kind
            after = count + 1
        count = after
    return int(count)


def wanted_rows(store: StoreDirectory, end: int) -> Iterator[tuple[int, int, WantedRows]]:
    """Yields stretches of the log up to `end`, with their bounds and the expected rows of their records.

    They end early where records cannot be followed.
    """
    scratch = np.zeros(LONGEST, np.uint8)
    for block in record_blocks(store, end):
        spans, found, low = spans_of(block.data, block.places), [np.zeros((COLUMNS, 0), np.int64)], 0
        most = np.cumsum((spans[:, S_WORDS + 1] - spans[:, S_WORDS]) // 2 + 4)  # rows, with those of the records before
        while low < len(most):
            before = int(most[low - 1]) if low else 0
            high = max(int(most.searchsorted(before + AT_ONCE, "right")), low + 1)
            room = np.empty((COLUMNS, int(most[high - 1]) - before), np.int64)
            count = _find(block.data, block.base, block.places[low:high], spans[low:high], room, scratch)
            found.append(_once(room[:, :count].copy()))
            low = high
        if block.end > block.begin:
            yield block.begin, block.end, WantedRows(*np.concatenate(found, axis=1))


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


def index_table(stretches: Iterator[Pairs]) -> IndexTable:
    """Builds the table from stretches of keys and values."""
    columns, marks, odd = _ROWS.read(stretches)
    hour, text, position, time = columns[:, np.argsort(columns[TAIL], kind="stable")]
    (nowhere,) = np.nonzero((position < 0) | (position >= FARTHEST))
    if len(nowhere):
        odd = odd or f"a row for position {position[nowhere[0]]:,}"
    return IndexTable(position, text, time, hour, marks.get(LAST), marks.get(LAST_TIME), odd)


class RowNames(NamedTuple):
    """The text of a row for people: its hour and time in ms, and topic, kind, key and message after an @ each."""

    hour: int
    text: str
    time: int


def names_of(stretches: Iterator[Pairs], positions: set[int]) -> dict[int, list[RowNames]]:
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
