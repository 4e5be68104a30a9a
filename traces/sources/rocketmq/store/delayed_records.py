"""Finds the messages of a log that wait in a delay level, or came out of one, in one pass.

What a broker delivers has body, time of birth, number of tries and properties of the message that waited, `REAL_TOPIC`
among them: it lies in the topic that it names. Source: docs/rocketmq.md#delayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gapless.native import BYTES, I64, INTS, TABLE, function, native
from gapless.native.swar import are_same
from gapless.traces.sources.rocketmq.store.bytes import Bytes, Ints, copied, digest, i32, i64, is_name, place_of, u32
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import HALF_TOPICS, REAL_TOPIC, UNIQ_KEY, as_bytes
from gapless.traces.sources.rocketmq.store.record_pass import LONGEST, each_among
from gapless.traces.sources.rocketmq.store.records import MAGIC_V2, SCHEDULE, parts

OUT, WAITS, LOST = range(3)
_REAL, _KEY = map(as_bytes, (REAL_TOPIC, UNIQ_KEY))
_HALF, _TABLE_HALF = map(as_bytes, HALF_TOPICS)


class DelayedRows(NamedTuple):
    """Records of delayed messages, a column for each field.

    `kind`: WAITS in a level, OUT in its own topic, or LOST: it waits, and names no topic into which messages are put ·
    `queue`, `number`: of the record · `who`: one number for the message, in the level and behind it · `time`: when the
    record was stored, in ms
    """

    position: Ints
    kind: Ints
    queue: Ints
    number: Ints
    who: Ints
    time: Ints


COLUMNS = len(DelayedRows._fields)


@function(inline=True)
def _put(b: Bytes, p: int, base: int, room: Ints, count: int, scratch: Bytes) -> int:
    """Appends the record at `p` if it waits in a level or came out of one; returns the new number."""
    r = parts(b, p, u32(b, p + 4) == MAGIC_V2)
    waits = is_name(b, r.topic, r.topic_end, SCHEDULE)
    key, key_end, real, real_end = 0, 0, 0, 0
    k = r.low
    while k < r.high:
        w = place_of(b, k, r.high, 2)
        if b[k] == 82 or b[k] == 85:  # R or U: no other name is looked for
            m = place_of(b, k, w, 1)
            if is_name(b, k, m, _KEY):
                key, key_end = m + 1, w
            elif is_name(b, k, m, _REAL):
                real, real_end = m + 1, w
        k = w + 1
    length = real_end - real
    out = length > 0 and length == r.topic_end - r.topic and are_same(b, real, b, r.topic, length)
    if (waits or out) and length + key_end - key < LONGEST - 32:
        none = length <= 0 or is_name(b, real, real_end, _HALF) or is_name(b, real, real_end, _TABLE_HALF)
        room[0, count], room[1, count] = base + p, (LOST if none else WAITS) if waits else OUT
        room[2, count], room[3, count], room[5, count] = i32(b, p + 12), i64(b, p + 20), i64(b, r.time)
        at = copied(b, p + 8, p + 12, scratch, 0)  # the CRC of its body
        at = copied(b, p + 40, p + 48, scratch, at)  # when it was born
        at = copied(b, r.body - 16, r.body - 12, scratch, at)  # how often it was tried again
        at = copied(b, real, real_end, scratch, at)
        scratch[at] = 1  # which is in no property
        at = copied(b, key, key_end, scratch, at + 1)
        room[4, count] = digest(scratch, 0, at)
        count += 1
    return int(count)


@native(lambda b, base, places, *_: len(places), kinds=(BYTES, I64, INTS, INTS, TABLE, I64, BYTES))  # noqa: ARG005 - as it is called
def find_delayed(
    b: Bytes, base: int, places: Ints, sizes: Ints, delayed: Ints, filled: int, scratch: Bytes  # noqa: ARG001 - as all of a pass
) -> int:  # fmt: skip
    """Appends the delayed messages among the records at `places` of `b`; returns their number.

    `base`: the log position of `b`. There is room in `delayed` for each record.
    """
    count = filled
    for i in range(len(places)):
        count = _put(b, places[i], base, delayed, count, scratch)
    return int(count)


def each_delayed_block(store: StoreDirectory, end: int, take: Callable[[Ints], object]) -> int:
    """Take the delayed messages up to log position `end`, as `each_among` does."""
    return each_among(store, end, find_delayed, COLUMNS, take)


ENTRIES = (find_delayed,)
"""All that is compiled of it."""
