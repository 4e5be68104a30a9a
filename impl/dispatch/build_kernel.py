"""A worker's pass over its batch: every record is read and verified, and its entries are written into their slots.

Slots lie in memory that no reader looks at yet, so workers write them in any order. No interpreter lock is held. What a
record says of its own lengths is believed only as far as it adds up. Formats: docs/rocketmq.md#record, #entry.
"""

# ruff: noqa: FBT001
# Kernels are called by position.

from __future__ import annotations

from gapless.impl.dispatch.scan_kernel import POSITION, SIZE
from gapless.impl.records import kernels
from gapless.impl.records.record import ENTRY_BYTES, FIXED, Bytes, Ints
from gapless.native import BOOL, BYTES, I64, INTS, TABLE, WORD32_TABLE, function
from gapless.native.intrinsics import address_of, i32_at, i64_at, put_i32, put_i64

BUILT, NO_RECORD, CHECKSUM = range(3)  # how a build ends

T, D = 84, 68


@function
def _tag_of(b: Bytes, p: int, topic: int, topic_end: int, end: int, delays: Ints) -> int:
    """The tag code for the entry of the record `p:end`: its tag's hash, or the due time of a delayed message.

    Source: docs/rocketmq.md#entry.
    """
    tags, tags_end, level = 0, 0, 0
    k = topic_end + 2
    while k < end:
        w = kernels.property_end(b, k, end)
        first = b[k]
        if first == T and w - k > len(kernels.TAGS) and kernels.starts_with(b, k, w, kernels.TAGS):
            tags, tags_end = k + len(kernels.TAGS), w
        elif first == D and w - k > len(kernels.DELAY) and kernels.starts_with(b, k, w, kernels.DELAY):
            level = kernels.digits(b, k + len(kernels.DELAY), w)
        k = w + 1
    if level > 0 and kernels.is_delayed(b, topic, topic_end):
        last = len(delays)
        return kernels.time_of(b, p) + int(delays[min(level, last) - 1])
    return kernels.java_hash(b, tags, tags_end)


@function(kinds=(BYTES, I64, TABLE, INTS, INTS, WORD32_TABLE, BOOL))
def build(
    b: Bytes, base: int, rows: Ints, slots: Ints, delays: Ints, tables: kernels.Tables, verify: bool
) -> tuple[int, int]:  # fmt: skip
    """Write the entry of each row into its slot, in the order of rows. Returns how it ended, and at which row.

    `b` is the file that begins at log position `base`. `delays`: ms per delay level. `verify`: the checksums of bodies
    and of records are computed. Rows of one record follow one another.
    """
    a = address_of(b)
    before, tag = -1, 0
    for i in range(len(slots)):
        position, size = rows[i, POSITION], rows[i, SIZE]
        if position != before:
            p = position - base
            if size < FIXED or p < 0 or p + size > len(b) or i32_at(a + p) != size:
                return NO_RECORD, i
            if i64_at(a + p + 28) != position or i32_at(a + p + 4) not in (kernels.V1, kernels.V2):
                return NO_RECORD, i
            body, topic, topic_end = kernels.parts_of(b, p, size)
            if body == 0:
                return NO_RECORD, i
            if verify and kernels.judge(b, base, p, tables) not in (kernels.WHOLE, kernels.UNSEALED):
                return CHECKSUM, i
            tag = _tag_of(b, p, topic, topic_end, p + size, delays)
            before = position
        put_i64(slots[i], position)
        put_i32(slots[i] + 8, size)
        put_i64(slots[i] + 12, tag)
    return BUILT, len(slots)


@function(kinds=(I64, I64, I64, I64))
def safe_end(address: int, low: int, high: int, safe: int) -> int:
    """The exclusive end of the entries of `low:high` with records before the log position `safe`.

    Entry `low` lies at `address`, and the others behind it; positions rise from one to the next.
    """
    first = low
    while low < high:
        middle = (low + high) // 2
        slot = address + ENTRY_BYTES * (middle - first)
        if i64_at(slot) + i32_at(slot + 8) <= safe:
            low = middle + 1
        else:
            high = middle
    return low
