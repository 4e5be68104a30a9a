"""Finds the records of transactions among scanned ones: halves, finals, ops, and parked halves.

Each becomes a row of integers, in the order of the log; an op also gives a row for each half that it names. Sizes,
digests and numbers are all that is kept. Nothing is judged here. Byte layout: docs/rocketmq.md#record,
#property-names; fields: docs/rocketmq-transactions.md.
"""

# ruff: noqa: C901, PLR0912
# A kernel is one pass over the bytes.

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gapless.native import BYTES, I64, INTS, TABLE, by_library, by_python, function, int64, native, uint64
from gapless.traces.sources.rocketmq.columns.bytes import (
    REMEMBERED,
    SHORT,
    Bytes,
    Ints,
    digest,
    i32,
    i64,
    is_name,
    key_of,
    number_in,
    place_of,
    readable,
    u32,
)
from gapless.traces.sources.rocketmq.columns.property_walk import ends_in, next_end
from gapless.traces.sources.rocketmq.log.records import (
    MAGIC_V2,
    SYS_COMMITTED,
    SYS_TRANSACTION,
    RecordParts,
    parts,
    value_end,
)
from gapless.traces.sources.rocketmq.store import names
from gapless.traces.sources.rocketmq.store.names import as_bytes

HALF, FINAL, PARKED, OP, MARK, COPY = range(6)

# Columns of a row. KEY: digest of UNIQ_KEY, or of the content where there is none; of an op, its queue. NUMBER: a
# half's or op's own; of a mark, its op's. NAMES: the position of the half that a final names, or the number of the half
# that a mark names. TIMES: the counter, or -1 where there is none; of a mark, its op's queue. CONTENT: digest of all
# that a half keeps for life, EXTRA of what only its first version has. TARGET: topic and queue that the message is for.
# FIRST: the number of the version that was put back first while immune, or -1. IMMUNE: the age up to which no check
# about the half, in ms, or -1. SIZE: of an op's body, or a mark's entry, in bytes. COUNT: entries of an op, or -1 where
# it cannot be read; of a mark, its place among them. LIST: the numbers of an op end in a comma; a half
# carries its marker; a copy is a half itself, which waits among delayed messages. SHOWN: one more than the number of an
# entry that leads consumers to a record, or 0; `segments/visible_records.py` writes it. A COPY is one of a half
# which is no half and not parked: consumers sent it back, or it is delayed.
(
    KIND, KEY, PLACE, NUMBER, NAMES, TIMES, CONTENT, EXTRA, TARGET, BORN, TIME, FIRST, IMMUNE, SIZE, COUNT, LIST,
    SHOWN, COLUMNS,
) = range(18)  # fmt: skip

BY_PLACE = 1 << 60
"""Where a table in RocksDB tells of halves, ops name them by position (docs/rocketmq-transactions.md#half-table).
The number of such a half is this more than its position: no half of the other kind has such a number."""

_HALF_TOPIC = as_bytes(names.HALF_TOPIC)
_OP_TOPIC = as_bytes(names.OP_TOPIC)
_TABLE_HALF_TOPIC = as_bytes(names.TABLE_HALF_TOPIC)
_TABLE_OP_TOPIC = as_bytes(names.TABLE_OP_TOPIC)
_PARKED_TOPIC = as_bytes(names.PARKED_TOPIC)
_SCHEDULE_TOPIC = as_bytes(names.SCHEDULE_TOPIC)
_TIMER_TOPIC = as_bytes(names.TIMER_TOPIC)
_UNIQ_KEY = as_bytes(names.UNIQ_KEY)
_TIMES = as_bytes(names.CHECK_TIMES)
_FIRST = as_bytes(names.FIRST_PUT_BACK)
_REAL_TOPIC = as_bytes(names.REAL_TOPIC)
_REAL_QUEUE = as_bytes(names.REAL_QUEUE)
_HALF_MARKER = as_bytes(names.HALF_MARKER)
_CRC = as_bytes(names.PROPERTY_CRC)
_MULTI_OFFSET = as_bytes(names.MULTI_OFFSET)
_WAIT = as_bytes(names.WAIT)
_TRUE = as_bytes("true")
_GROUP = as_bytes("PGROUP")
_ID = as_bytes("__transactionId__")
_IMMUNITY = as_bytes("CHECK_IMMUNITY_TIME_IN_SECONDS")
_TAGS = as_bytes("TAGS")
_NAMED = as_bytes("TRANS_OFFSET")
_IN_HALVES, _IN_TABLE_HALVES = (key_of(topic) for topic in names.HALF_TOPICS)


_GOLDEN, _HALF_A_WORD, _ONE = np.uint64(0x9E3779B97F4A7C15), np.uint64(32), np.uint64(1)


@function(inline=True)
def _mixed(h: int, x: int) -> Any:
    """`h` with `x` mixed into it."""
    made: Any = (uint64(h) ^ uint64(x)) * _GOLDEN
    return made ^ (made >> _HALF_A_WORD)


@by_library(_mixed)
def _mixed_by_library(h: int, x: int) -> Any:
    mixed = ((int(h) ^ int(x)) & 0xFFFF_FFFF_FFFF_FFFF) * int(_GOLDEN) & 0xFFFF_FFFF_FFFF_FFFF
    return np.uint64(mixed ^ (mixed >> 32))


@function(inline=True)
def _property(b: Bytes, name: int, value: int, end: int) -> Any:
    """Returns the hash of a property: its name from `name` on, and its value behind the byte at `value`."""
    return _mixed(uint64(digest(b, name, value)), uint64(digest(b, value + 1, end)))


@by_library(_property)
def _property_by_library(b: Bytes, name: int, value: int, end: int) -> Any:
    text = bytes(b[name:end])
    return (_property_of if len(text) <= SHORT else _property_of.__wrapped__)(text, int(value - name))


@lru_cache(maxsize=REMEMBERED)
def _property_of(text: bytes, value: int) -> Any:
    digest_of = by_python(digest)
    return _mixed_by_library(digest_of(text, 0, value), digest_of(text, value + 1, len(text)))


@function(inline=True)
def _target(topic: int, queue: int) -> int:
    """Returns the hash of a queue and a topic, given by its digest."""
    return int64(_mixed(uint64(topic), uint64(queue) + _ONE))


class _TransactionProperties(NamedTuple):
    """The properties of a record about a transaction: missing numbers are -1, missing digests 0."""

    key: int
    times: int
    first: int
    real_topic: int  # digest
    real_queue: int
    immune: int  # s
    marked: bool  # it has a property that only halves and their copies have
    half: bool  # it carries the marker of a half
    grouped: bool  # it names a group of producers
    tagged: bool  # its tag is that of an op
    named: int  # the position of the half that the op of a table names, or -1
    total: int  # digest of those that a half keeps for life


@native(lambda _b, _base, places, *_: len(places), kinds=(BYTES, I64, INTS, TABLE, I64))
def find_rows(b: Bytes, base: int, places: Ints, rows: Ints, filled: int) -> tuple[int, int]:
    """Appends the rows of the records at `places` of `b`, and returns the number of rows.

    `b[0]` lies at log position `base`. Says too how many records have the flags of a final and are none. The first
    number is negative where `rows` is too small: nothing else counts then.
    """
    n, others, b = filled, 0, readable(b)
    for p in places:
        r = parts(b, p, u32(b, p + 4) == MAGIC_V2)
        kind = _kind(b, r)
        if kind < 0:
            continue
        properties = _properties(b, r)
        names_half = i64(b, r.body - 12) if kind == FINAL else (-1)
        if kind == FINAL and not _is_final(b, r, properties, names_half):
            others += 1
            continue
        if n >= rows.shape[1]:
            return -1, others
        _put(b, base, p, r, kind, properties, names_half, rows, n)
        n += 1
        if kind == OP and _is_of_table(b, r):
            n = _mark_of_table(base + p, i64(b, p + 20), properties, rows, n - 1)
        elif kind == OP:
            n = _marks(b, r, properties, rows, n - 1)
            if n < 0:
                return -1, others
    return n, others


@function(inline=True)
def _kind(b: Bytes, r: RecordParts) -> int:
    """Returns the kind of a record, by its flags and its topic; -1 outside of transactions."""
    kind = -1
    if (r.flags & SYS_TRANSACTION) == SYS_COMMITTED:
        kind = FINAL
    elif r.topic < r.topic_end and b[r.topic] == 82:  # R
        table = _is_of_table(b, r)
        if is_name(b, r.topic, r.topic_end, _TABLE_HALF_TOPIC if table else _HALF_TOPIC):
            kind = HALF
        elif is_name(b, r.topic, r.topic_end, _TABLE_OP_TOPIC if table else _OP_TOPIC):
            kind = OP
    elif is_name(b, r.topic, r.topic_end, _PARKED_TOPIC):
        kind = PARKED
    elif (b[r.topic] == 37 or _is_waiting(b, r)) and _is_marked(b, r):  # %: of retries, and of dead letters
        kind = COPY
    return kind


@function(inline=True)
def _is_marked(b: Bytes, r: RecordParts) -> bool:
    """True if a record carries the marker of a half."""
    k = at = r.low
    marked, ends = False, ends_in(b, at, r.high)
    while k < r.high and not marked:
        w, at, ends = next_end(b, k, at, ends, r.high)
        marked = w - k == 13 and is_name(b, k, k + 8, _HALF_MARKER) and is_name(b, k + 9, w, _TRUE)
        k = w + 1
    return marked


@function(inline=True)
def _is_of_table(b: Bytes, r: RecordParts) -> bool:
    """True if a half or an op is in the input of a table, by its topic: RMQ_SYS_R."""
    return r.topic_end - r.topic > 8 and b[r.topic + 8] == 82


@function(inline=True)
def _is_final(b: Bytes, r: RecordParts, properties: _TransactionProperties, names_half: int) -> bool:
    """True if a record with the flags of a final is one: clients and brokers may copy the flags."""
    if not properties.marked and not (properties.grouped and names_half > 0):
        return False  # no half of it was ever here
    return not (
        names_half == 0
        and (
            b[r.topic] == 37  # %: the broker's copy of a final for a consumer that failed, flags and all
            or _is_waiting(b, r)
        )
    )


@function(inline=True)
def _is_waiting(b: Bytes, r: RecordParts) -> bool:
    """True if a record waits among delayed messages."""
    return is_name(b, r.topic, r.topic_end, _SCHEDULE_TOPIC) or is_name(b, r.topic, r.topic_end, _TIMER_TOPIC)


@function(inline=True)
def _properties(b: Bytes, r: RecordParts) -> _TransactionProperties:
    key, times, first = 0, -1, -1
    real_topic, real_queue, immune, named = 0, -1, -1, -1
    marked, half, grouped, tagged, total = False, False, False, False, uint64(0)
    k, e = r.low, r.high
    at = k
    ends = ends_in(b, at, e)
    while k < e:
        w, at, ends = next_end(b, k, at, ends, e)
        v = place_of(b, k, w, 1)
        if k < v < w - 1:
            kept = False
            length = v - k
            if length == 4 and (is_name(b, k, v, _TAGS) or is_name(b, k, v, _WAIT)):
                kept = b[k] == 84  # T
                tagged = tagged or (kept and w == v + 2 and b[v + 1] == 100)  # d
            elif length == 6 and is_name(b, k, v, _GROUP):
                kept = grouped = True
            elif length == 8 and is_name(b, k, v, _UNIQ_KEY):
                key = digest(b, v + 1, value_end(b, v + 1, w))
                kept = True
            elif length == 8 and is_name(b, k, v, _REAL_QUEUE):
                real_queue = number_in(b, v + 1, w)
            elif length == 8 and is_name(b, k, v, _HALF_MARKER):
                marked = True
                half = is_name(b, v + 1, w, _TRUE)
            elif length == 10 and is_name(b, k, v, _REAL_TOPIC):
                real_topic = digest(b, v + 1, w)
            elif length == 12 and is_name(b, k, v, _NAMED):
                named = number_in(b, v + 1, w)
                kept = True
            elif length == 17 and is_name(b, k, v, _ID):
                kept = marked = True
            elif length == 23 and is_name(b, k, v, _TIMES):
                times = number_in(b, v + 1, w)
            elif length == 26 and is_name(b, k, v, _FIRST):
                first = number_in(b, v + 1, w)
            elif length == 30 and is_name(b, k, v, _IMMUNITY):
                immune = number_in(b, v + 1, w)
                kept = True
            elif not ((length == 8 and is_name(b, k, v, _CRC)) or (length == 24 and is_name(b, k, v, _MULTI_OFFSET))):
                kept = True
            if kept:  # a sum, for the order of properties is the order of a hash table
                total += _property(b, k, v, w)
        k = w + 1
    return _TransactionProperties(
        key, times, first, real_topic, real_queue, immune, marked, half, grouped, tagged, named, total
    )


@function(inline=True)
def _put(
    b: Bytes, base: int, p: int, r: RecordParts, kind: int, properties: _TransactionProperties, names_half: int,
    rows: Ints, n: int
) -> None:  # fmt: skip
    """Write the row of one record."""
    body = i32(b, r.body - 4)
    mixed = _mixed(properties.total, uint64(u32(b, p + 8)))
    mixed = _mixed(mixed, uint64(body))
    mixed = _mixed(mixed, uint64(digest(b, p + 40, r.time)))  # when and where it was born
    mixed = _mixed(mixed, uint64(digest(b, r.time + 8, r.body - 16)))  # the host that stored it
    content = int64(_mixed(mixed, uint64(r.flags & ~SYS_TRANSACTION)))
    rows[KIND, n] = kind
    # Where no client gave it a key, all its versions have the same content. The key of an op is its queue.
    rows[KEY, n] = i32(b, p + 12) if kind == OP else properties.key if properties.key != 0 else content | 1
    rows[PLACE, n] = base + p
    rows[NUMBER, n] = i64(b, p + 20)
    rows[NAMES, n] = names_half
    rows[TIMES, n] = properties.times
    rows[CONTENT, n] = content
    rows[EXTRA, n] = int64(_mixed(uint64(i32(b, p + 16)), uint64(i32(b, r.body - 16))))
    if kind == FINAL:
        rows[TARGET, n] = _target(digest(b, r.topic, r.topic_end), i32(b, p + 12))
    else:
        rows[TARGET, n] = _target(properties.real_topic, properties.real_queue)
    rows[BORN, n] = i64(b, p + 40)
    rows[TIME, n] = i64(b, r.time)
    rows[FIRST, n] = properties.first
    rows[IMMUNE, n] = properties.immune * 1000 if 0 <= properties.immune < 2**31 else -1
    rows[SIZE, n] = body
    rows[COUNT, n] = 0
    rows[LIST, n] = int(kind != HALF or properties.half)
    rows[SHOWN, n] = 0
    if kind == COPY:
        rows[LIST, n] = int(properties.real_topic in (_IN_HALVES, _IN_TABLE_HALVES))
    if kind == HALF and _is_of_table(b, r):
        rows[NUMBER, n] = BY_PLACE + base + p


@function(inline=True)
def _mark_of_table(place: int, number: int, properties: _TransactionProperties, rows: Ints, n: int) -> int:
    """Makes row `n` the mark of a table's op; the broker skips one that names nothing."""
    if properties.named < 0:
        return n
    time = rows[TIME, n]
    for column in range(COLUMNS):
        rows[column, n] = 0
    rows[KIND, n], rows[PLACE, n], rows[NUMBER, n], rows[TIME, n] = MARK, place, number, time
    rows[NAMES, n] = BY_PLACE + properties.named
    return n + 1


@function(inline=True)
def _marks(b: Bytes, r: RecordParts, properties: _TransactionProperties, rows: Ints, op: int) -> int:
    """Writes a row for each entry of the op in row `op`. Returns the new number of rows, or -1 without room."""
    q, stop = r.body, r.body + rows[SIZE, op]
    legible = properties.tagged and q < stop
    rows[LIST, op] = int(q < stop and b[stop - 1] == 44)
    n = op + 1
    while q < stop and legible:
        w = q
        while w < stop and b[w] != 44:
            w += 1
        number = number_in(b, q, w)
        if number < 0:
            legible = False
            break
        if n >= rows.shape[1]:
            return -1
        for column in range(COLUMNS):
            rows[column, n] = 0
        rows[KIND, n] = MARK
        rows[PLACE, n] = rows[PLACE, op]
        rows[NUMBER, n] = rows[NUMBER, op]
        rows[NAMES, n] = number
        rows[TIMES, n] = rows[KEY, op]
        rows[TIME, n] = rows[TIME, op]
        rows[SIZE, n] = min(w + 1, stop) - q
        rows[COUNT, n] = n - op - 1
        n += 1
        q = w + 1
    rows[COUNT, op] = n - op - 1 if legible else -1
    return n if legible else op + 1
