"""Finds the messages of a log that wait in the timer wheel or came out of it, in one pass.

Source: docs/rocketmq.md#timers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gapless.native import BYTES, I64, INTS, TABLE, native
from gapless.traces.sources.rocketmq.columns.bytes import (
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
from gapless.traces.sources.rocketmq.columns.property_spans import S_CANCELLED, S_DUE, S_KEY, S_REAL, find_spans
from gapless.traces.sources.rocketmq.log.record_pass import LONGEST, each_among
from gapless.traces.sources.rocketmq.log.records import MAGIC_V2, parts
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import TIMER_TOPIC, as_bytes

_TOPIC, _PLUS = as_bytes(TIMER_TOPIC), 43


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


@native(lambda b, base, places, *_: len(places), kinds=(BYTES, I64, INTS, INTS, TABLE, TABLE, I64, BYTES))  # noqa: ARG005 - as it is called
def find_timers(
    b: Bytes, base: int, places: Ints, sizes: Ints, spans: Ints, room: Ints, filled: int, scratch: Bytes
) -> int:  # fmt: skip
    """Appends the records at `places` of `b` that have a delivery time or wait for one; returns the new number.

    As `Finds` is called.
    """
    n = filled
    for i in range(len(places)):
        p = places[i]
        r = parts(b, p, u32(b, p + 4) == MAGIC_V2)
        waits = is_name(b, r.topic, r.topic_end, _TOPIC)
        if not waits and spans[i, S_DUE] == 0:
            continue
        key, key_end, real, real_end = spans[i, S_KEY], spans[i, S_KEY + 1], r.topic, r.topic_end
        if waits and spans[i, S_REAL] > 0:
            real, real_end = spans[i, S_REAL], spans[i, S_REAL + 1]
        cancel, cancel_end = spans[i, S_CANCELLED], spans[i, S_CANCELLED + 1]
        plus = place_of(b, cancel, cancel_end, _PLUS) + 1
        length = 0
        if real_end - real + key_end - key < LONGEST - 1:
            length = copied(b, real, real_end, scratch, length)
            scratch[length] = _PLUS
            length = copied(b, key, key_end, scratch, length + 1)
        room[0, n], room[1, n], room[2, n], room[3, n] = base + p, sizes[i], int(waits), i64(b, p + 20)
        room[4, n], room[5, n] = number_in(b, spans[i, S_DUE], spans[i, S_DUE + 1]), digest(b, real, real_end)
        room[6, n] = digest(b, key, key_end) if hash_on(b, key, key_end, 0)[1] else 0
        room[7, n], room[8, n] = digest(scratch, 0, length), digest(b, cancel, cancel_end)
        room[9, n], room[10, n] = digest(b, plus if plus <= cancel_end else cancel, cancel_end), i64(b, r.time)
        n += 1
    return int(n)


def each_timer_block(store: StoreDirectory, end: int, take: Callable[[Ints], object]) -> int:
    """Take the messages with a time up to log position `end`, as `each_among` does."""
    return each_among(store, end, find_timers, COLUMNS, take)


ENTRIES = (find_spans, find_timers)
"""All that is compiled of it."""
