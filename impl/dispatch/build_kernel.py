"""A worker's pass over its batch: every record is read and verified, and its entries are written into their slots.

Slots lie in memory that no reader looks at yet, so workers write them in any order. No interpreter lock is held. What a
record says of its own lengths is believed only as far as it adds up. Formats: reference A.2, A.5.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from gapless.impl.dispatch.scan_kernel import (
    MAGIC_V1,
    MAGIC_V2,
    POSITION,
    SIZE,
    digits,
    starts_with,
    topic_of,
)
from gapless.impl.native.kernels import Bytes, Ints, Tables, crc32, java_hash
from gapless.impl.native.memory import i32_at, i64_at, lowest_bit, put_i32, put_i64, word_at
from gapless.impl.store.records import BORN_V6, FIXED, STORE_V6

BUILT, NO_RECORD, CHECKSUM = range(3)  # how a build ends

SCHEDULE_TOPIC = np.frombuffer(b"SCHEDULE_TOPIC_XXXX", np.uint8)
TAGS = np.frombuffer(b"TAGS\x01", np.uint8)
DELAY = np.frombuffer(b"DELAY\x01", np.uint8)
T, D = 84, 68


@njit(cache=True)
def _end_of(b: Bytes, p: int, e: int) -> int:
    """Where the property that begins at `p` ends, in properties that end at `e`: eight bytes at a time."""
    a = b.ctypes.data
    while p + 8 <= len(b) and p < e:
        x = word_at(a + p) ^ uint64(0x0202020202020202)
        found = (x - uint64(0x0101010101010101)) & ~x & uint64(0x8080808080808080)  # the lowest is the first 2
        if found:
            return min(p + (lowest_bit(found) >> 3), e)
        p += 8
    while p < e and b[uint64(p)] != 2:
        p += 1
    return min(p, e)


@njit(cache=True)
def _tag_of(b: Bytes, p: int, topic: int, topic_end: int, end: int, delays: Ints) -> int:
    """What the entry of the record `p:end` says of its tag: its hash, or when a delayed message is due (A.5)."""
    tags, tags_end, level = 0, 0, np.int64(0)
    k = topic_end + 2
    while k < end:
        w = _end_of(b, k, end)
        first = b[uint64(k)]
        if first == T and w - k > len(TAGS) and starts_with(b, k, w, TAGS):
            tags, tags_end = k + len(TAGS), w
        elif first == D and w - k > len(DELAY) and starts_with(b, k, w, DELAY):
            level = digits(b, k + len(DELAY), w)
        k = w + 1
    if level > 0 and topic_end - topic == len(SCHEDULE_TOPIC) and starts_with(b, topic, topic_end, SCHEDULE_TOPIC):
        born_v6 = i32_at(b.ctypes.data + p + 36) & BORN_V6
        stored = i64_at(b.ctypes.data + p + (68 if born_v6 else 56))
        return stored + delays[(level if level < len(delays) else len(delays)) - 1]  # noqa: FURB136 - as numba reads it
    return java_hash(b, tags, tags_end)


@njit(nogil=True, cache=True)
def build(
    b: Bytes, base: int, rows: Ints, slots: Ints, delays: Ints, tables: Tables, verify: bool
) -> tuple[int, int]:  # fmt: skip
    """Write the entry of each row into its slot, in the order of rows. Returns how it ended, and at which row.

    `b` is the file that begins at log position `base`. `delays`: ms per delay level. `verify`: the checksums of bodies
    are computed. Rows of one record follow one another.
    """
    a = b.ctypes.data
    before, tag = np.int64(-1), np.int64(0)
    for i in range(len(slots)):
        position, size = rows[i, POSITION], rows[i, SIZE]
        if position != before:
            p = position - base
            if size < FIXED or p < 0 or p + size > len(b) or i32_at(a + p) != size:
                return NO_RECORD, i
            if i64_at(a + p + 28) != position or i32_at(a + p + 4) not in (MAGIC_V1, MAGIC_V2):
                return NO_RECORD, i
            topic, topic_end = topic_of(b, p, size)
            if topic == 0:
                return NO_RECORD, i
            if verify:
                flags = i32_at(a + p + 36)
                body = a + p + 88 + (12 if flags & BORN_V6 else 0) + (12 if flags & STORE_V6 else 0)
                if crc32(b, body - a, i32_at(body - 4), tables) != i32_at(a + p + 8):
                    return CHECKSUM, i
            tag = _tag_of(b, p, topic, topic_end, p + size, delays)
            before = position
        put_i64(slots[i], position)
        put_i32(slots[i] + 8, size)
        put_i64(slots[i] + 12, tag)
    return BUILT, len(slots)


@njit(nogil=True, cache=True)
def safe_end(address: int, low: int, high: int, safe: int) -> int:
    """The exclusive end of those of the entries `low:high` whose records end at or before log position `safe`.

    Entry `low` lies at `address`, and the others behind it; positions rise from one to the next.
    """
    first = low
    while low < high:
        middle = (low + high) // 2
        slot = address + 20 * (middle - first)
        if i64_at(slot) + i32_at(slot + 8) <= safe:
            low = middle + 1
        else:
            high = middle
    return low
