"""Finds the messages of a log that wait in the timer wheel or came out of it, in one pass.

Source: docs/rocketmq.md#timers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gapless.native import BYTES, I64, INTS, TABLE, function, native
from gapless.traces.sources.rocketmq.store.bytes import (
    Bytes,
    Ints,
    copied,
    digest,
    hash_on,
    i64,
    is_name,
    number_in,
    place_of,
    u32,
)
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import REAL_TOPIC, TIMER_TOPIC, UNIQ_KEY, as_bytes
from gapless.traces.sources.rocketmq.store.record_pass import LONGEST, each_among
from gapless.traces.sources.rocketmq.store.records import MAGIC_V2, parts

DUE, CANCELLED = "TIMER_OUT_MS", "TIMER_DEL_UNIQKEY"
_TOPIC, _REAL, _KEY, _DUE, _CANCELLED = map(as_bytes, (TIMER_TOPIC, REAL_TOPIC, UNIQ_KEY, DUE, CANCELLED))


class TimerRows(NamedTuple):
    """Messages with a time, a column for each field.

    `waits`: it lies in the broker's own topic, where `number` is its · `due`: ms, or -1 · digests: of the `topic` it
    is sent to, of its `key` (0 where that is no UTF-8), of both together as a cancellation names them, and of what it
    `cancels` itself, or 0; `undone`: the same without a topic · `time`: when it was stored, in ms
    """

    position: Ints
    size: Ints
    waits: Ints
    number: Ints
    due: Ints
    topic: Ints
    key: Ints
    named: Ints
    cancels: Ints
    undone: Ints
    time: Ints


COLUMNS = len(TimerRows._fields)


@function(inline=True)
def _put(b: Bytes, p: int, size: int, base: int, room: Ints, count: int, scratch: Bytes) -> int:
    """Appends the record at `p` if it has a delivery time or waits for one; returns the new number."""
    r = parts(b, p, u32(b, p + 4) == MAGIC_V2)
    waits = is_name(b, r.topic, r.topic_end, _TOPIC)
    due, key, key_end, real, real_end = -1, 0, 0, r.topic, r.topic_end
    cancels, undone, has = 0, 0, False
    k = r.low
    while k < r.high:
        w = place_of(b, k, r.high, 2)
        if b[k] == 82 or b[k] == 84 or b[k] == 85:  # R, T or U: no other name is looked for
            m = place_of(b, k, w, 1)
            if is_name(b, k, m, _DUE):
                due, has = number_in(b, m + 1, w), True
            elif is_name(b, k, m, _KEY):
                key, key_end = m + 1, w
            elif waits and is_name(b, k, m, _REAL):
                real, real_end = m + 1, w
            elif is_name(b, k, m, _CANCELLED):
                cancels = digest(b, m + 1, w)
                plus = place_of(b, m + 1, w, 43) + 1
                undone = digest(b, plus, w) if plus <= w else cancels
        k = w + 1
    if waits or has:
        length = 0
        if real_end - real + key_end - key < LONGEST - 1:
            length = copied(b, real, real_end, scratch, length)
            scratch[length] = 43  # +
            length = copied(b, key, key_end, scratch, length + 1)
        room[0, count], room[1, count], room[2, count] = base + p, size, int(waits)
        room[3, count], room[4, count] = i64(b, p + 20), due
        room[5, count], room[6, count] = digest(b, real, real_end), 0
        if hash_on(b, key, key_end, 0)[1]:
            room[6, count] = digest(b, key, key_end)
        room[7, count], room[8, count] = digest(scratch, 0, length), cancels
        room[9, count], room[10, count] = undone, i64(b, r.time)
        count += 1
    return int(count)


@native(lambda b, base, places, *_: len(places), kinds=(BYTES, I64, INTS, INTS, TABLE, I64, BYTES))  # noqa: ARG005 - as it is called
def find_timers(
    b: Bytes, base: int, places: Ints, sizes: Ints, timers: Ints, filled: int, scratch: Bytes
) -> int:  # fmt: skip
    """Appends the messages with a delivery time among the records at `places` of `b`; returns their number.

    `base`: the log position of `b`. There is room in `timers` for each record.
    """
    count = filled
    for i in range(len(places)):
        count = _put(b, places[i], sizes[i], base, timers, count, scratch)
    return int(count)


def each_timer_block(store: StoreDirectory, end: int, take: Callable[[Ints], object]) -> int:
    """Take the messages with a time up to log position `end`, as `each_among` does."""
    return each_among(store, end, find_timers, COLUMNS, take)


ENTRIES = (find_timers,)
"""All that is compiled of it."""
