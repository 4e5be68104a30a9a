"""Many messages of a queue in one native pass: what its entries point at, copied out of a log file and verified.

A record is believed once it was copied: another process may write to the file meanwhile, and what is handed out is what
was looked at. No interpreter lock is held. Formats: docs/rocketmq.md#record, #entry.
"""

# ruff: noqa: C901, FBT001, PLR0911
# A kernel is one pass over the bytes; kernels are called by position.

from __future__ import annotations

import numpy as np

from gapless.impl.records import kernels
from gapless.impl.records.record import BORN_V6, ENTRY_BYTES, FIXED, LONGEST_PROPERTIES, STORE_V6, Bytes, Ints
from gapless.native import BOOL, BYTE_TABLE, BYTES, I64, INTS, TABLE, WORD32_TABLE, function, int64
from gapless.native import intrinsics as o
from gapless.native.intrinsics import PAYLOAD, address_of, bytes_at, copy_bytes, fetch, i32_at, i64_at, word_at

# The rows that a pass fills. Those that say where texts end have one place more, and begin with a 0.
BODY_END, REST_END, TAG_END, NUMBER, POSITION, TIME, TAG_CODE, ROWS = range(8)

BEFORE_BODY = 88  # bytes of a record whose hosts are IPv4
AHEAD, FETCHED, LINE = 4, 1024, 64  # records, and bytes of each and of a cache's line: what is fetched beforehand
BLANK_SLOT = 0x7FFFFFFF  # the size in slots before a queue's first entry
PROPERTY_END, SPACE = 2, 32  # bytes: no tag has the first, no key the second
KEYS = np.frombuffer(b"KEYS\x01", np.uint8)


@function(kinds=(BYTE_TABLE, I64, I64))
def extent(slots: Bytes, base: int, size: int) -> tuple[int, int]:
    """Bytes of the records at which entries point, as these say, and how many of them count.

    The first whose record lies outside of the log file, of `size` bytes, that begins at `base`, does not, nor does what
    follows it.
    """
    total, start = 0, address_of(slots)
    for i in range(len(slots)):
        slot = start + i * ENTRY_BYTES
        at, length = i64_at(slot) - base, i32_at(slot + 8)
        if length < FIXED or at < 0 or at + length > size:
            return total, i
        total += length
    return total, len(slots)


@function(kinds=(BYTES, I64, BYTE_TABLE, I64, BYTES, BOOL, I64, WORD32_TABLE, TABLE, BYTES, BYTES, BYTES))
def gather(
    b: Bytes, base: int, slots: Bytes, queue: int, prefix: Bytes, light: bool, sealed: int, tables: kernels.Tables,
    rows: Ints, bodies: Bytes, rests: Bytes, tags: Bytes,
) -> int:  # fmt: skip
    """Copy the messages at which entries point, up to one that is not sound; returns how many are.

    `b`: the log file that begins at `base` · `queue`, `prefix`: the queue's id and topic, as its records have them ·
    `light`: records may be other queues' · `sealed`: a record from this position on is not sound without a checksum of
    itself · `rows`: int64 [ROWS, n + 1]; in it, the entries' numbers stand already ·
    `bodies`, `rests`, `tags`: room for all; a rest is a record without its body, and each tag ends with `PROPERTY_END`.
    """
    a, start = address_of(b), address_of(slots)
    body_end, rest_end, tag_end = 0, 0, 0
    for k in range(len(slots)):
        slot = start + k * ENTRY_BYTES
        if k + AHEAD < len(slots):
            _fetch(a - base, slot + AHEAD * ENTRY_BYTES)
        position, size = i64_at(slot), i32_at(slot + 8)
        p = position - base
        if size < FIXED or p < 0 or p + size > len(b):
            return k
        body, topic, topic_end = kernels.parts_of(b, p, size)
        if body == 0:
            return k
        after = topic - (2 if i32_at(a + p + 4) == kernels.V2 else 1)  # where the body ends
        head, length, tail = body - p, after - body, p + size - after
        rest = address_of(rests) + rest_end
        copy_bytes(address_of(bodies) + body_end, a + body, length)
        copy_bytes(rest, a + p, head)
        copy_bytes(rest + head, a + after, tail)
        if i32_at(rest) != size or i64_at(rest + 28) != position or i32_at(rest + head - 4) != length:
            return k
        if i32_at(rest + 4) not in (kernels.V1, kernels.V2):
            return k
        if not light and (i32_at(rest + 12) != queue or i64_at(rest + 20) != rows[NUMBER, k]):
            return k
        if not light and not kernels.starts_with(rests, rest_end + head, rest_end + head + tail, prefix):
            return k
        crc = kernels.crc_from(0, bodies, body_end, length, tables)
        if crc & 0x7FFFFFFF != i32_at(rest + 8):
            return k
        properties, stop = rest_end + head + topic_end + 2 - after, rest_end + head + tail
        seal = kernels.seal_of(rests, rest_end, properties, stop, rest_end + head, rest_end + head, length, crc, tables)
        if seal == kernels.BROKEN or (position >= sealed and seal == kernels.NO_SEAL):
            return k
        from_tag, to_tag = value_of(rests, properties, stop, kernels.TAGS)
        copy_bytes(address_of(tags) + tag_end, address_of(rests) + from_tag, to_tag - from_tag)
        tag_end += to_tag - from_tag
        tags[tag_end] = PROPERTY_END
        tag_end += 1
        body_end += length
        rows[POSITION, k] = position
        rows[TIME, k] = kernels.time_of(rests, rest_end)
        rows[TAG_CODE, k] = i64_at(slot + 12)
        rest_end += head + tail
        rows[BODY_END, k + 1] = body_end
        rows[REST_END, k + 1] = rest_end
        rows[TAG_END, k + 1] = tag_end
    return len(slots)


@function
def _fetch(log: int, slot: int) -> None:
    """The record of an entry comes into the processor's cache, or as much of it as is worth while."""
    begin = log + i64_at(slot)
    for address in range(begin, begin + min(i32_at(slot + 8), FETCHED), LINE):
        fetch(address)


# What `read_one` knows of a queue, one int64 each: where its prefix lies, and how long that is; `queue` and `sealed` as
# in `gather`; the lowest number of the entries at hand, and where these lie.
PREFIX, PREFIX_LENGTH, QUEUE, LEAST_SEALED, LOW, SLOTS = range(6)
# What it knows of each log file at hand: its first position, its exclusive end, and where its bytes lie.
FILE_BASE, FILE_END, FILE_BYTES, FILE_FACTS = range(4)


@function(keeps_lock=True, kinds=(I64, I64, I64, I64))
def read_one(facts: int, files: int, count: int, number: int) -> tuple[int, int, Bytes, int, Bytes, None]:
    """The message of a number, as the fields of `Record`; with a position of -1 where it is to be read otherwise.

    That is where its record is not sound, of a rarer kind, or in none of the log files at hand. `facts`, `files`,
    `count`: where the facts above lie, and of how many files. The entry of `number` is at hand. The
    interpreter lock is held.
    """
    slot = _fact(facts, SLOTS) + (number - _fact(facts, LOW)) * ENTRY_BYTES
    position, size = i64_at(slot), i32_at(slot + 8)
    at = 0
    for k in range(count):
        file = files + 8 * FILE_FACTS * k
        if _fact(file, FILE_BASE) <= position and position + size <= _fact(file, FILE_END):
            at = _fact(file, FILE_BYTES) + position - _fact(file, FILE_BASE)
    if at == 0 or size < FIXED:
        return _nothing()
    length = i32_at(at + BEFORE_BODY - 4)
    if not 0 <= length <= size - FIXED:
        return _nothing()
    body, rest = o.new_bytes(0, length), o.new_bytes(0, size - length)
    if body != 0 and rest != 0:
        copy_bytes(body + PAYLOAD, at + BEFORE_BODY, length)
        copy_bytes(rest + PAYLOAD, at, BEFORE_BODY)
        copy_bytes(rest + PAYLOAD + BEFORE_BODY, at + BEFORE_BODY + length, size - length - BEFORE_BODY)
        if _is_sound(
            bytes_at(body + PAYLOAD, length), bytes_at(rest + PAYLOAD, size - length), number, position, facts
        ):
            time = i64_at(rest + PAYLOAD + 56)
            return number, position, o.handed_over(body), time, o.handed_over(rest), None
    o.clear_error()
    o.let_go(body)
    o.let_go(rest)
    return _nothing()


@function
def _nothing() -> tuple[int, int, Bytes, int, Bytes, None]:
    none = o.handed_over(o.new_bytes(0, 0)), o.handed_over(o.new_bytes(0, 0))
    return 0, -1, none[0], 0, none[1], None


@function
def _fact(address: int, which: int) -> int:
    return int64(word_at(address + 8 * which))


@function
def _is_sound(body: Bytes, rest: Bytes, number: int, position: int, facts: int) -> bool:
    """True if this is the message of that number and position, in its queue, intact and of the usual kind.

    `body`, `rest`: copies, which no other thread writes. The usual kind has a short topic and hosts that are IPv4.
    """
    a, topic = address_of(rest), BEFORE_BODY
    properties = topic + _fact(facts, PREFIX_LENGTH) + 2
    if i32_at(a) != len(rest) + len(body) or i32_at(a + 4) != kernels.V1 or i32_at(a + 36) & (BORN_V6 | STORE_V6):
        return False
    if i64_at(a + 28) != position or i64_at(a + 20) != number or i32_at(a + 12) != _fact(facts, QUEUE):
        return False
    if i32_at(a + BEFORE_BODY - 4) != len(body) or properties > len(rest):
        return False
    if not kernels.starts_with(rest, topic, len(rest), bytes_at(_fact(facts, PREFIX), _fact(facts, PREFIX_LENGTH))):
        return False
    more = (np.int64(rest[properties - 2]) << 8) | np.int64(rest[properties - 1])
    if more > LONGEST_PROPERTIES or properties + more != len(rest):
        return False
    crc = kernels.crc_from(0, body, 0, len(body), kernels.CRC_TABLES)
    seal = kernels.seal_of(rest, 0, properties, len(rest), BEFORE_BODY, BEFORE_BODY, len(body), crc, kernels.CRC_TABLES)
    if seal == kernels.NO_SEAL and position >= _fact(facts, LEAST_SEALED):
        return False
    return seal != kernels.BROKEN and crc & 0x7FFFFFFF == i32_at(a + 8)


@function(kinds=(BYTES, I64, I64, BYTE_TABLE, I64, I64, BYTES, BOOL))
def visible(
    b: Bytes, base: int, start: int, slots: Bytes, number: int, queue: int, prefix: Bytes, light: bool
) -> int:  # fmt: skip
    """The number of written entries, from that of `number` on, that point at records of this log file.

    An entry is written once it says what its record does; another process may be at it. `b`: the log file that begins
    at `base` · `start`: where the log does; what was before it has expired, and counts · `queue`, `prefix`, `light`: as
    in `gather`. No checksum is looked at.
    """
    a, first = address_of(b), address_of(slots)
    for k in range(len(slots)):
        slot = first + k * ENTRY_BYTES
        position, size, code = i64_at(slot), i32_at(slot + 8), i64_at(slot + 12)
        if size == BLANK_SLOT or (size > 0 and position < start):
            continue
        p = position - base
        if size < FIXED or p < 0 or p + size > len(b):
            return k
        body, topic, topic_end = kernels.parts_of(b, p, size)
        if body == 0 or i32_at(a + p) != size or i64_at(a + p + 28) != position:
            return k
        if not light:
            after = topic - (2 if i32_at(a + p + 4) == kernels.V2 else 1)
            if i32_at(a + p + 12) != queue or i64_at(a + p + 20) != number + k:
                return k
            if not kernels.starts_with(b, after, topic_end, prefix):
                return k
        low, high = value_of(b, topic_end + 2, p + size, kernels.TAGS)
        if code != kernels.java_hash(b, low, high) and not kernels.is_delayed(b, topic, topic_end):
            return k
    return len(slots)


@function
def value_of(b: Bytes, at: int, end: int, name: Bytes) -> tuple[int, int]:
    """The range of a property's value in the properties `at:end`; `name` ends with the separator.

    Of several, the last one counts, as for a reader of them all.
    """
    low, high = end, end
    while at < end:
        stop = kernels.property_end(b, at, end)
        if stop - at > len(name) and kernels.starts_with(b, at, stop, name):
            low, high = at + len(name), stop
        at = stop + 1
    return low, high


@function(kinds=(BYTES, INTS, I64, BYTES))
def with_key(rests: Bytes, ends: Ints, low: int, key: Bytes) -> int:
    """The first of the messages from `low` on that has this key; where none has, how many there are.

    Keys are what stands in the property KEYS, separated by spaces. `rests`, `ends`: as `gather` fills them.
    """
    for i in range(low, len(ends) - 1):
        at, end = value_of(rests, _properties(rests, ends[i]), ends[i + 1], KEYS)
        while at < end:
            stop = at
            while stop < end and rests[stop] != SPACE:
                stop += 1
            if stop - at == len(key) and kernels.starts_with(rests, at, stop, key):
                return i
            at = stop + 1
    return len(ends) - 1


@function
def _properties(b: Bytes, at: int) -> int:
    """The begin of the properties of the record whose rest lies at `at`."""
    a = address_of(b) + at
    flags = i32_at(a + 36)
    p = at + 88 + (12 if flags & BORN_V6 else 0) + (12 if flags & STORE_V6 else 0)
    if i32_at(a + 4) == kernels.V2:
        return p + 4 + ((int(b[p]) << 8) | int(b[p + 1]))
    return p + 3 + int(b[p])
