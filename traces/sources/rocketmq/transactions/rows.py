"""The records of transactions, found in what a scan has read: halves, finals, ops, and what was set aside.

Each becomes a row of integers, in the order of the log; an op also gives a row for each half that it names. Sizes,
digests and numbers are all that is kept. Nothing is judged here. Byte layout: reference A.2, A.9; fields: D.1 to D.5.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from gapless.traces.sources.rocketmq.store.layout import HALF_TOPIC, OP_TOPIC, PARKED_TOPIC
from gapless.traces.sources.rocketmq.store.scan import (
    MAGIC_V2,
    SYS_BORN_V6,
    SYS_STORE_V6,
    Bytes,
    Ints,
    _named,
    digest,
    i32,
    i64,
    u32,
)

HALF, FINAL, PARKED, OP, MARK = range(5)

# Columns of a row. KEY: digest of UNIQ_KEY, or of the content where there is none; of an op, its queue. NUMBER: a
# half's or op's own; of a mark, its op's. NAMES: the position of the half that a final names, or the number of the half
# that a mark names. TIMES: the counter, or -1 where there is none; of a mark, its op's queue. CONTENT: digest of all
# that a half keeps for life, EXTRA of what only its first version has. TARGET: topic and queue that the message is for.
# FIRST: the number of the version that was put back first while immune, or -1. IMMUNE: up to which age nobody is asked
# about the half, in ms, or -1. SIZE: of an op's body, or a mark's entry, in bytes. COUNT: entries of an op, or -1 where
# it cannot be read; of a mark, its place among them. LIST: the numbers of an op end in a comma.
(
    KIND, KEY, PLACE, NUMBER, NAMES, TIMES, CONTENT, EXTRA, TARGET, BORN, TIME, FIRST, IMMUNE, SIZE, COUNT, LIST,
    COLUMNS,
) = range(17)  # fmt: skip

SYS_COMMITTED = 0x8
SYS_TRANSACTION = 0xC

# Names of properties, and words, as bytes.
_HALF_TOPIC = np.frombuffer(HALF_TOPIC.encode(), np.uint8)
_OP_TOPIC = np.frombuffer(OP_TOPIC.encode(), np.uint8)
_PARKED_TOPIC = np.frombuffer(PARKED_TOPIC.encode(), np.uint8)
_SCHEDULE_TOPIC = np.frombuffer(b"SCHEDULE_TOPIC_XXXX", np.uint8)
_TIMER_TOPIC = np.frombuffer(b"rmq_sys_wheel_timer", np.uint8)
_UNIQ_KEY = np.frombuffer(b"UNIQ_KEY", np.uint8)
_TIMES = np.frombuffer(b"TRANSACTION_CHECK_TIMES", np.uint8)
_FIRST = np.frombuffer(b"TRAN_PREPARED_QUEUE_OFFSET", np.uint8)
_REAL_TOPIC = np.frombuffer(b"REAL_TOPIC", np.uint8)
_REAL_QUEUE = np.frombuffer(b"REAL_QID", np.uint8)
_HALF_MARKER = np.frombuffer(b"TRAN_MSG", np.uint8)
_GROUP = np.frombuffer(b"PGROUP", np.uint8)
_ID = np.frombuffer(b"__transactionId__", np.uint8)
_WAIT = np.frombuffer(b"WAIT", np.uint8)
_CRC = np.frombuffer(b"__CRC32#", np.uint8)
_IMMUNITY = np.frombuffer(b"CHECK_IMMUNITY_TIME_IN_SECONDS", np.uint8)
_MULTI_OFFSET = np.frombuffer(b"INNER_MULTI_QUEUE_OFFSET", np.uint8)
_TAGS = np.frombuffer(b"TAGS", np.uint8)


@njit(inline="always")
def _mixed(h: int, x: int) -> int:
    """`h` with `x` mixed into it."""
    h = (uint64(h) ^ uint64(x)) * uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> uint64(32))


@njit(inline="always")
def _integer(b: Bytes, p: int, e: int) -> int:
    """The decimal number `p:e`, or -1 where it is none, or has more than 18 digits."""
    if not p < e <= p + 18:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(p, e):
        if not 48 <= b[i] <= 57:
            return np.int64(-1)
        value = value * 10 + np.int64(b[i] - 48)
    return value


@njit(inline="always")
def _target(topic: int, queue: int) -> int:
    """What stands for a topic, given by its digest, and a queue of it."""
    return np.int64(_mixed(uint64(topic), uint64(queue) + uint64(1)))


@njit(nogil=True, cache=True)
def find_rows(b: Bytes, base: int, log: Ints, begin: int, end: int, position: int, rows: Ints, filled: int) -> int:
    """Append the rows of records `begin:end` of the column block `log`, and say how many rows there are then.

    `b[0]` lies at log position `base`, and `log[position]` holds where each record begins. Returns -1 - n where row n
    has no room: nothing counts then but that the room was too small.
    """
    n = filled
    for record in range(begin, end):
        p = log[position, record] - base
        flags = i32(b, p + 36)
        at = p + 48 + (20 if flags & SYS_BORN_V6 else 8)
        time_at = at
        at += 8 + (20 if flags & SYS_STORE_V6 else 8) + 12
        body = i32(b, at)
        body_at = at + 4
        at = body_at + body
        if u32(b, p + 4) == MAGIC_V2:
            topic = at + 2
            topic_end = topic + ((np.int64(b[at]) << 8) | np.int64(b[at + 1]))
        else:
            topic = at + 1
            topic_end = topic + np.int64(b[at])
        if (flags & SYS_TRANSACTION) == SYS_COMMITTED:
            kind = FINAL
        elif topic < topic_end and b[topic] == 82:  # R
            if _named(b, topic, topic_end, _HALF_TOPIC):
                kind = HALF
            elif _named(b, topic, topic_end, _OP_TOPIC):
                kind = OP
            else:
                continue
        elif topic_end - topic == len(_PARKED_TOPIC) and _named(b, topic, topic_end, _PARKED_TOPIC):
            kind = PARKED
        else:
            continue

        key, times, first, names = np.int64(0), np.int64(-1), np.int64(-1), np.int64(-1)
        real_topic, real_queue, immune = np.int64(0), np.int64(-1), np.int64(-1)
        marked, grouped, tagged, total = False, False, False, uint64(0)
        k = topic_end + 2
        e = k + ((np.int64(b[topic_end]) << 8) | np.int64(b[topic_end + 1]))
        while k < e:
            w = k
            v = np.int64(-1)
            while w < e and b[w] != 2:
                if v < 0 and b[w] == 1:
                    v = w
                w += 1
            if k < v < w - 1:
                kept = False
                length = v - k
                if length == 4 and (_named(b, k, v, _TAGS) or _named(b, k, v, _WAIT)):
                    kept = b[k] == 84  # T
                    tagged = tagged or (kept and w == v + 2 and b[v + 1] == 100)  # d
                elif length == 6 and _named(b, k, v, _GROUP):
                    kept = grouped = True
                elif length == 8 and _named(b, k, v, _UNIQ_KEY):
                    key = digest(b, v + 1, w)
                    kept = True
                elif length == 8 and _named(b, k, v, _REAL_QUEUE):
                    real_queue = _integer(b, v + 1, w)
                elif length == 8 and _named(b, k, v, _HALF_MARKER):
                    marked = True
                elif length == 10 and _named(b, k, v, _REAL_TOPIC):
                    real_topic = digest(b, v + 1, w)
                elif length == 17 and _named(b, k, v, _ID):
                    kept = marked = True
                elif length == 23 and _named(b, k, v, _TIMES):
                    times = _integer(b, v + 1, w)
                elif length == 26 and _named(b, k, v, _FIRST):
                    first = _integer(b, v + 1, w)
                elif length == 30 and _named(b, k, v, _IMMUNITY):
                    immune = _integer(b, v + 1, w)
                    kept = True
                elif not ((length == 8 and _named(b, k, v, _CRC)) or (length == 24 and _named(b, k, v, _MULTI_OFFSET))):
                    kept = True
                if kept:  # a sum, for the order of properties is the order of a hash table
                    total += _mixed(uint64(digest(b, k, v)), uint64(digest(b, v + 1, w)))
            k = w + 1
        if kind == FINAL:
            names = i64(b, body_at - 12)
            if not marked and not (grouped and names > 0):
                continue  # a client set the flag itself: no half of it was ever here
            if names == 0 and (
                b[topic] == 37  # %: the broker's copy of a final for a consumer that failed, flags and all
                or _named(b, topic, topic_end, _SCHEDULE_TOPIC)
                or _named(b, topic, topic_end, _TIMER_TOPIC)
            ):
                continue
        if n >= rows.shape[1]:
            return -1 - n

        rows[KIND, n] = kind
        rows[KEY, n] = key
        rows[PLACE, n] = base + p
        rows[NUMBER, n] = i64(b, p + 20)
        rows[NAMES, n] = names
        rows[TIMES, n] = times
        content = _mixed(total, uint64(u32(b, p + 8)))
        content = _mixed(content, uint64(body))
        content = _mixed(content, uint64(digest(b, p + 40, time_at)))  # when and where it was born
        content = _mixed(content, uint64(digest(b, time_at + 8, body_at - 16)))  # the host that stored it
        rows[CONTENT, n] = np.int64(_mixed(content, uint64(flags & ~SYS_TRANSACTION)))
        if key == 0:  # no client gave it one: all its versions have the same content
            rows[KEY, n] = rows[CONTENT, n] | 1
        rows[EXTRA, n] = np.int64(_mixed(uint64(i32(b, p + 16)), uint64(i32(b, body_at - 16))))
        if kind == FINAL:
            rows[TARGET, n] = _target(digest(b, topic, topic_end), i32(b, p + 12))
        else:
            rows[TARGET, n] = _target(real_topic, real_queue)
        rows[BORN, n] = i64(b, p + 40)
        rows[TIME, n] = i64(b, time_at)
        rows[FIRST, n] = first
        rows[IMMUNE, n] = immune * 1000 if 0 <= immune < 2**31 else -1
        rows[SIZE, n] = body
        rows[COUNT, n] = 0
        rows[LIST, n] = 1
        n += 1
        if kind != OP:
            continue

        op = n - 1
        rows[KEY, op] = i32(b, p + 12)  # of an op, its queue
        legible = tagged and body > 0
        rows[LIST, op] = np.int64(body > 0 and b[body_at + body - 1] == 44)
        q, stop = body_at, body_at + body
        while q < stop and legible:
            w = q
            while w < stop and b[w] != 44:
                w += 1
            number = _integer(b, q, w)
            if number < 0:
                legible = False
                break
            if n >= rows.shape[1]:
                return -1 - n
            for column in range(COLUMNS):
                rows[column, n] = 0
            rows[KIND, n] = MARK
            rows[PLACE, n] = base + p
            rows[NUMBER, n] = rows[NUMBER, op]
            rows[NAMES, n] = number
            rows[TIMES, n] = rows[KEY, op]  # of a mark, the queue of its op
            rows[TIME, n] = rows[TIME, op]
            rows[SIZE, n] = min(w + 1, stop) - q
            rows[COUNT, n] = rows[COUNT, op]
            rows[COUNT, op] += 1
            n += 1
            q = w + 1
        if not legible:
            n = op + 1
            rows[COUNT, op] = -1
    return n


@njit(inline="always")
def _unique_key(b: Bytes, p: int) -> tuple[int, int, int, int]:
    """Of the record at `p`: where its UNIQ_KEY begins and ends, CRC and length of its body. No key is empty."""
    flags = i32(b, p + 36)
    at = p + 48 + (20 if flags & SYS_BORN_V6 else 8) + 8 + (20 if flags & SYS_STORE_V6 else 8) + 12
    body = i32(b, at)
    at += 4 + body
    if u32(b, p + 4) == MAGIC_V2:
        at += 2 + ((np.int64(b[at]) << 8) | np.int64(b[at + 1]))
    else:
        at += 1 + np.int64(b[at])
    k = at + 2
    e = k + ((np.int64(b[at]) << 8) | np.int64(b[at + 1]))
    begin, end = np.int64(0), np.int64(0)
    while k < e:
        w = k
        while w < e and b[w] != 2:
            w += 1
        if w - k > 9 and b[k] == 85 and _named(b, k, k + 8, _UNIQ_KEY) and b[k + 8] == 1:  # U
            begin, end = np.int64(k + 9), np.int64(w)
        k = w + 1
    return begin, end, np.int64(u32(b, p + 8)), np.int64(body)


@njit(nogil=True, cache=True)
def find_keys(b: Bytes, base: int, log: Ints, begin: int, end: int, position: int, keys: Ints) -> None:
    """Of records `begin:end`, as in `find_rows`: digest of UNIQ_KEY, CRC and length of the body, into `keys` [3, …]."""
    for record in range(begin, end):
        low, high, crc, length = _unique_key(b, log[position, record] - base)
        keys[0, record], keys[1, record], keys[2, record] = digest(b, low, high), crc, length


@njit(nogil=True, cache=True)
def find_names(b: Bytes, places: Ints, spans: Ints) -> None:
    """Where the UNIQ_KEY of each record at `places` of `b` lies, as begin and end, into `spans` [2, places]."""
    for i in range(len(places)):
        spans[0, i], spans[1, i], _crc, _length = _unique_key(b, places[i])
