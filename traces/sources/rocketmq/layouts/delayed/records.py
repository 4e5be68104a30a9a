"""Finds the messages of a log that wait in a delay level, or came out of one, in one pass.

What a broker delivers has body, time of birth, number of tries and properties of the message that waited, `REAL_TOPIC`
among them: it lies in the topic that it names. Source: docs/rocketmq.md#delayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gapless.native import BYTES, I64, INTS, TABLE, native
from gapless.native.swar import are_same
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints, copied, digest, i32, i64, is_name, u32
from gapless.traces.sources.rocketmq.columns.property_spans import S_KEY, S_REAL, find_spans
from gapless.traces.sources.rocketmq.log.record_pass import LONGEST, each_among
from gapless.traces.sources.rocketmq.log.records import MAGIC_V2, SCHEDULE, parts
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import HALF_TOPICS, as_bytes

OUT, WAITS, LOST = range(3)
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


@native(lambda b, base, places, *_: len(places), kinds=(BYTES, I64, INTS, INTS, TABLE, TABLE, I64, BYTES))  # noqa: ARG005 - as it is called
def find_delayed(
    b: Bytes, base: int, places: Ints, sizes: Ints, spans: Ints, room: Ints, filled: int, scratch: Bytes  # noqa: ARG001 - as all of a pass
) -> int:  # fmt: skip
    """Appends the records at `places` of `b` that wait in a level or came out of one; returns the new number.

    As `Finds` is called.
    """
    n = filled
    for i in range(len(places)):
        p = places[i]
        r = parts(b, p, u32(b, p + 4) == MAGIC_V2)
        waits = is_name(b, r.topic, r.topic_end, SCHEDULE)
        key, key_end, real, real_end = spans[i, S_KEY], spans[i, S_KEY + 1], spans[i, S_REAL], spans[i, S_REAL + 1]
        length = real_end - real
        out = length > 0 and length == r.topic_end - r.topic and are_same(b, real, b, r.topic, length)
        if not (waits or out) or length + key_end - key >= LONGEST - 32:
            continue
        none = length <= 0 or is_name(b, real, real_end, _HALF) or is_name(b, real, real_end, _TABLE_HALF)
        room[0, n], room[1, n] = base + p, (LOST if none else WAITS) if waits else OUT
        room[2, n], room[3, n], room[5, n] = i32(b, p + 12), i64(b, p + 20), i64(b, r.time)
        at = copied(b, p + 8, p + 12, scratch, 0)  # the CRC of its body
        at = copied(b, p + 40, p + 48, scratch, at)  # when it was born
        at = copied(b, r.body - 16, r.body - 12, scratch, at)  # how often it was tried again
        at = copied(b, real, real_end, scratch, at)
        scratch[at] = 1  # which is in no property
        room[4, n] = digest(scratch, 0, copied(b, key, key_end, scratch, at + 1))
        n += 1
    return int(n)


def each_delayed_block(store: StoreDirectory, end: int, take: Callable[[Ints], object]) -> int:
    """Take the delayed messages up to log position `end`, as `each_among` does."""
    return each_among(store, end, find_delayed, COLUMNS, take)


ENTRIES = (find_spans, find_delayed)
"""All that is compiled of it."""
