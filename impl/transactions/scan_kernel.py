"""Native code that finds transactions in a log: halves, finals, ops and what they name, copies that were set aside.

Each becomes a column of integers, in the order of the log, and an op one for every half that it names. Byte layout:
docs/rocketmq.md#record; what they say: docs/rocketmq-transactions.md.
"""

from __future__ import annotations

import numpy as np

from gapless.impl.records.kernels import V1, V2, digits, parts_of, property_end, starts_with
from gapless.impl.records.record import BLANK, BORN_V6, Bytes, Ints
from gapless.impl.transactions import names
from gapless.native import BYTES, I64, TABLE, function, int64, uint64
from gapless.native.intrinsics import address_of, i32_at, i64_at

HALF, FINAL, COPY, OP, MARK = range(5)

# Rows of what is found. NUMBER: the record's own, in its queue; of a mark, its op's. NAMES: of a final, the position of
# its half; of a mark, the number of the half; of an op, -1 if it cannot be read. TIMES: the counter of a half.
# LINEAGE: a digest that all versions of one half share, its final and its copy. GROUP, GROUP_AT, GROUP_SIZE: a digest
# of the group of the half's producer, and where its name lies in the log; 0 where it has none. USABLE: whether a half
# says for which queue it is.
(
    KIND, NUMBER, POSITION, SIZE, TIME, TIMES, NAMES, LINEAGE, GROUP, GROUP_AT, GROUP_SIZE, USABLE, ROWS,
) = range(13)  # fmt: skip


def as_bytes(text: str) -> Bytes:
    """A text as kernels compare it."""
    return np.frombuffer(text.encode(), np.uint8)


_HALF_TOPIC, _OP_TOPIC, _PARKED_TOPIC = (
    as_bytes(topic) for topic in (names.HALF_TOPIC, names.OP_TOPIC, names.PARKED_TOPIC)
)
KEY, TIMES_NAME, REAL_TOPIC, REAL_QUEUE, _GROUP, _MARKER = (
    as_bytes(f"{name}\x01")
    for name in (
        names.KEY, names.CHECK_TIMES, names.REAL_TOPIC, names.REAL_QUEUE, names.PRODUCER_GROUP, names.MARKER,
    )
)  # fmt: skip
_TRUE, _OP_TAG = as_bytes("true"), as_bytes("TAGS\x01d")
_COMMA = 44


@function
def mixed(h: int, x: int) -> int:
    """`h` with `x` mixed into it."""
    made = (uint64(h) ^ uint64(x)) * uint64(0x9E3779B97F4A7C15)
    return made ^ (made >> uint64(32))


@function(apart=True)
def digest(b: Bytes, p: int, e: int) -> int:
    """A digest of the bytes `p:e`, of 64 bits."""
    h = uint64(0xCBF29CE484222325)
    for k in range(p, e):
        h = (h ^ uint64(b[k])) * uint64(0x100000001B3)
    return int64(mixed(h, e - p))


@function(kinds=(BYTES, I64, I64, I64, TABLE, I64))
def find(b: Bytes, base: int, at: int, end: int, rows: Ints, filled: int) -> tuple[int, int]:
    """Fill in what the records from byte `at` of a file to its byte `end` say of transactions.

    `base`: where the file begins in the log · `rows`: int64 [ROWS, …], of which `filled` columns are taken. Returns
    how many are taken then, and the byte at which it stopped: before `end` where there is no room for a record's rows.
    """
    n, a = filled, address_of(b)
    while at + BLANK <= end:
        size, magic = i32_at(a + at), i32_at(a + at + 4)
        if magic not in (V1, V2):
            return n, end  # a blank: the next file follows
        body, topic, topic_end = parts_of(b, at, size)
        flags = i32_at(a + at + 36)
        kind = -1
        if (flags & 12) == 8:
            kind = FINAL
        elif _is(b, topic, topic_end, _HALF_TOPIC):
            kind = HALF
        elif _is(b, topic, topic_end, _OP_TOPIC):
            kind = OP
        elif _is(b, topic, topic_end, _PARKED_TOPIC):
            kind = COPY
        if kind < 0 or (kind != FINAL and i32_at(a + at + 12) != 0):
            at += size
            continue
        length = i32_at(a + body - 4)
        if n + 1 + (length // 2 + 1 if kind == OP else 0) > rows.shape[1]:
            return n, at
        rows[:, n] = 0
        rows[KIND, n] = kind
        rows[NUMBER, n] = i64_at(a + at + 20)
        rows[POSITION, n] = base + at
        rows[SIZE, n] = size
        rows[TIME, n] = i64_at(a + at + (68 if flags & BORN_V6 else 56))
        rows[NAMES, n] = i64_at(a + body - 12)
        _read_properties(b, base, at, topic_end + 2, at + size, rows, n)
        n += 1
        if kind == OP:
            n = _marks(b, body, body + length, rows, n - 1)
        at += size
    return n, end


@function
def _is(b: Bytes, p: int, e: int, name: Bytes) -> bool:
    """True if the bytes `p:e` are `name`."""
    return e - p == len(name) and starts_with(b, p, e, name)


@function(apart=True)
def _begins(b: Bytes, p: int, e: int, name: Bytes) -> bool:
    """True if the bytes `p:e` begin with `name`. Compiled once for all names: there are many."""
    return starts_with(b, p, e, name)


@function
def _read_properties(b: Bytes, base: int, record: int, p: int, e: int, rows: Ints, n: int) -> None:
    """The transaction in the properties `p:e` of a record. Without a key for its lineage, it has its own."""
    key, topic, queue, marked, tagged = 0, False, False, False, False
    while p < e:
        q = property_end(b, p, e)
        if _begins(b, p, q, KEY):
            key = digest(b, p, q)
        elif _begins(b, p, q, TIMES_NAME):
            rows[TIMES, n] = max(digits(b, p + len(TIMES_NAME), q), 0)
        elif _begins(b, p, q, _GROUP):
            low = p + len(_GROUP)
            rows[GROUP, n] = digest(b, low, q)
            rows[GROUP_AT, n] = base + low
            rows[GROUP_SIZE, n] = q - low
        elif _begins(b, p, q, REAL_TOPIC):
            topic = q > p + len(REAL_TOPIC)
        elif _begins(b, p, q, REAL_QUEUE):
            queue = 0 <= digits(b, p + len(REAL_QUEUE), q) < 1 << 31
        elif _begins(b, p, q, _MARKER):
            marked = _is(b, p + len(_MARKER), q, _TRUE)
        elif _is(b, p, q, _OP_TAG):
            tagged = True
        p = q + 1
    rows[USABLE, n] = int(topic and queue and marked)
    host = 20 if i32_at(address_of(b) + record + 36) & BORN_V6 else 8
    born = digest(b, record + 40, record + 48 + host)
    rows[LINEAGE, n] = int64(mixed(key, born)) if key else base + record
    if rows[KIND, n] == OP:
        rows[NAMES, n] = 0 if tagged else -1


@function
def _marks(b: Bytes, p: int, e: int, rows: Ints, op: int) -> int:
    """A row for every half that the body `p:e` of an op names. Returns how many rows there are then."""
    n = op + 1
    while p < e and rows[NAMES, op] == 0:
        q = p
        while q < e and b[q] != _COMMA:
            q += 1
        number = digits(b, p, q)
        if number >= 0:
            for row in range(len(rows)):  # as a slice it would be an array
                rows[row, n] = rows[row, op]
            rows[KIND, n] = MARK
            rows[NAMES, n] = number
            n += 1
        p = q + 1
    return n
