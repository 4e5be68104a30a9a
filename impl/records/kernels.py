"""Native code for the bytes of records: checksums, parts, writing many records in one pass, finding where a log ends.

Kernels are called with whole files and columns, take no interpreter lock, and allocate nothing per record. Nothing
outside of the bytes they were given is read, whatever those contain. Formats: docs/rocketmq.md#record.
"""

# ruff: noqa: FBT001, SIM110
# Kernels are called by position; the language has no generators.

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from gapless.impl.records.crc32_pclmul import LEAST, has_pclmul, register_behind
from gapless.impl.records.record import (
    BLANK,
    BORN_V6,
    FIXED,
    LONGEST_PROPERTIES,
    LONGEST_V1_TOPIC,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    STORE_V6,
    Bytes,
    Ints,
)
from gapless.native import function, int32, int64, uint32, uint64
from gapless.native.intrinsics import address_of, copy_bytes, i32_at, i64_at, lowest_bit, put_i32, put_i64, word_at
from gapless.native.kinds import BOOL, BYTE_TABLE, BYTES, I64, INTS, INTS32, TABLE, WORD32_TABLE

Tables = npt.NDArray[np.uint32]

V1, V2, BLANK_MARK = (magic - 2**32 for magic in (MAGIC_V1, MAGIC_V2, MAGIC_BLANK))  # signed, as kernels read them

SCHEDULE_TOPIC = np.frombuffer(b"SCHEDULE_TOPIC_XXXX", np.uint8)
TAGS = np.frombuffer(b"TAGS\x01", np.uint8)
DELAY = np.frombuffer(b"DELAY\x01", np.uint8)
SEAL_NAME = np.frombuffer(b"__CRC32#\x01", np.uint8)
SEAL = 20  # bytes of the checksum that properties may end with: its name, ten digits, and the separator


# -- checksums and hashes --------------------------------------------------------------------------------------------


LONGEST = 31  # bits of a length: no array that a checksum is of has 2 GiB


def _crc_tables() -> Tables:
    """Tables of the zlib CRC, from zlib itself, 256 words each.

    The first 16 are for slicing: table k moves a byte past k zero bytes. Then come four for every power of two, one for
    each byte of a checksum: together they move a checksum past so many zero bytes.
    """
    tables = np.zeros((16 + 4 * LONGEST, 256), np.uint32)
    for byte in range(256):
        for k in range(16):
            tables[k, byte] = zlib.crc32(bytes([byte]) + bytes(k)) ^ zlib.crc32(bytes(k + 1))
    bits, past = np.arange(32), np.uint32(0xFFFFFFFF)
    moved = np.array([zlib.crc32(b"\0", 1 << bit ^ 0xFFFFFFFF) for bit in range(32)], np.uint32) ^ past
    for k in range(16, len(tables), 4):  # `moved`: what becomes of each bit of a checksum
        for byte in range(4):
            values = np.arange(256)[:, None] << 8 * byte
            tables[k + byte] = np.bitwise_xor.reduce(np.where(values >> bits & 1, moved, np.uint32(0)), axis=1)
        parts = [tables[k + byte, moved >> np.uint32(8 * byte) & np.uint32(255)] for byte in range(4)]
        moved = np.bitwise_xor.reduce(np.array(parts), axis=0)
    return tables


CRC_TABLES = _crc_tables()


@function
def _sliced(c: int, low: int, high: int, t: Tables) -> int:
    """The register behind sixteen bytes, which are two words."""
    m = uint32(255)
    w, x, y, z = c ^ uint32(low), uint32(low >> uint64(32)), uint32(high), uint32(high >> uint64(32))
    return int(
        t[15, w & m] ^ t[14, (w >> uint32(8)) & m] ^ t[13, (w >> uint32(16)) & m] ^ t[12, w >> uint32(24)]
        ^ t[11, x & m] ^ t[10, (x >> uint32(8)) & m] ^ t[9, (x >> uint32(16)) & m] ^ t[8, x >> uint32(24)]
        ^ t[7, y & m] ^ t[6, (y >> uint32(8)) & m] ^ t[5, (y >> uint32(16)) & m] ^ t[4, y >> uint32(24)]
        ^ t[3, z & m] ^ t[2, (z >> uint32(8)) & m] ^ t[1, (z >> uint32(16)) & m] ^ t[0, z >> uint32(24)]
    )  # fmt: skip


@function
def crc_from(before: int, b: Bytes, p: int, n: int, t: Tables) -> int:
    """The zlib CRC of what came before, of which it is `before`, and of `n` bytes at `p` behind that."""
    c = uint32(before) ^ uint32(0xFFFFFFFF)
    e = p + n
    m = uint32(255)
    a = address_of(b)
    if n >= LEAST and has_pclmul():
        c = uint32(register_behind(a + p, n, c))
        p = e
    while p + 16 <= e:
        c = _sliced(c, word_at(a + p), word_at(a + p + 8), t)
        p += 16
    if p + 8 <= e:
        low = word_at(a + p)
        w, x = c ^ uint32(low), uint32(low >> uint64(32))
        c = (
            t[7, w & m] ^ t[6, (w >> uint32(8)) & m] ^ t[5, (w >> uint32(16)) & m] ^ t[4, w >> uint32(24)]
            ^ t[3, x & m] ^ t[2, (x >> uint32(8)) & m] ^ t[1, (x >> uint32(16)) & m] ^ t[0, x >> uint32(24)]
        )  # fmt: skip
        p += 8
    if p + 4 <= e:
        w = (
            c
            ^ int(b[p])
            ^ uint32(b[p + 1]) << uint32(8)
            ^ uint32(b[p + 2]) << uint32(16)
            ^ uint32(b[p + 3]) << uint32(24)
        )
        c = t[3, w & m] ^ t[2, (w >> uint32(8)) & m] ^ t[1, (w >> uint32(16)) & m] ^ t[0, w >> uint32(24)]
        p += 4
    while p < e:
        c = t[0, (c ^ int(b[p])) & m] ^ (c >> uint32(8))
        p += 1
    return c ^ uint32(0xFFFFFFFF)


@function
def crc32(b: Bytes, p: int, n: int, t: Tables) -> int:
    """The zlib CRC of `n` bytes at `p`, its top bit dropped, as records carry it."""
    return crc_from(0, b, p, n, t) & 0x7FFFFFFF


@function(kinds=(I64, I64, I64, WORD32_TABLE))
def joined(first: int, second: int, length: int, t: Tables) -> int:
    """The zlib CRC of two runs of bytes, from the CRCs of the two; `length`: how many bytes the second one has.

    A checksum is linear in the bytes: that of the first is moved past as many zeros (zlib's crc32_combine).
    """
    c, m, k = uint32(first), uint32(255), 16
    while length > 0:
        if length & 1:
            c = t[k, c & m] ^ t[k + 1, (c >> 8) & m] ^ t[k + 2, (c >> 16) & m] ^ t[k + 3, c >> 24]
        length >>= 1
        k += 4
    return c ^ uint32(second)


@function
def java_hash(b: Bytes, p: int, e: int) -> int:
    """Java's String.hashCode of the UTF-8 bytes `p:e`; what is no UTF-8 counts as U+FFFD, byte by byte."""
    h = 0
    while p < e:
        c = int(b[p])
        more = 0 if c < 0x80 else 1 if 0xC2 <= c < 0xE0 else 2 if 0xE0 <= c < 0xF0 else 3 if 0xF0 <= c < 0xF5 else -1
        point = c if more == 0 else 0xFFFD
        if more > 0 and p + more < e:
            sound = True
            point = int32(c & int32(0x3F >> more))
            for k in range(1, more + 1):
                sound = sound and (b[p + k] & 0xC0) == 0x80
                point = int32((point << 6) | (int(b[p + k]) & 0x3F))
            if not sound:
                more, point = -1, 0xFFFD
        elif more > 0:
            more, point = -1, 0xFFFD
        if point >= 0x10000:  # two UTF-16 units
            rest = int32(point - 0x10000)
            h = int32(h * 31 + int32(0xD800 + (rest >> 10)))
            h = int32(h * 31 + int32(0xDC00 + (rest & 0x3FF)))
        else:
            h = int32(h * 31 + point)
        p += 1 if more < 0 else more + 1
    return h


# -- texts -----------------------------------------------------------------------------------------------------------


@function
def starts_with(b: Bytes, p: int, e: int, name: Bytes) -> bool:
    """True if the bytes `p:e` begin with `name`."""
    if e - p < len(name):
        return False
    for i in range(len(name)):
        if b[p + i] != name[i]:
            return False
    return True


@function(apart=True)
def digits(b: Bytes, p: int, e: int) -> int:
    """A decimal number without sign, or -1 where the bytes are none, or too many."""
    if p >= e or e - p > 18:
        return -1
    value = 0
    for i in range(p, e):
        if not 48 <= b[i] <= 57:
            return -1
        value = value * 10 + (b[i] - 48)
    return value


@function
def property_end(b: Bytes, p: int, e: int) -> int:
    """The end of the property that begins at `p`, in properties that end at `e`: eight bytes at a time."""
    a = address_of(b)
    while p + 8 <= len(b) and p < e:
        x = word_at(a + p) ^ uint64(0x0202020202020202)
        found = (x - uint64(0x0101010101010101)) & ~x & uint64(0x8080808080808080)  # the lowest is the first 2
        if found:
            return min(p + (lowest_bit(found) >> 3), e)
        p += 8
    while p < e and b[p] != 2:
        p += 1
    return min(p, e)


# -- the parts of a record -------------------------------------------------------------------------------------------


@function
def parts_of(b: Bytes, p: int, size: int) -> tuple[int, int, int]:
    """The begins of body and topic of the record `p:p + size`, and the topic's end; properties are 2 behind.

    All are 0 where the parts do not add up to the size. The record lies within `b`, and is at least `FIXED` bytes long.
    """
    a = address_of(b)
    flags = i32_at(a + p + 36)
    body = p + 88 + (12 if flags & BORN_V6 else 0) + (12 if flags & STORE_V6 else 0)
    end = p + size
    wide = int(i32_at(a + p + 4) == V2)
    if body + 3 + wide > end:
        return 0, 0, 0
    length = i32_at(a + body - 4)
    if length < 0 or body + length + 3 + wide > end:
        return 0, 0, 0
    at = body + length
    length = int(b[at])
    if wide:
        length = (length << 8) | int(b[at + 1])
    at += 1 + wide
    if at + length + 2 > end:
        return 0, 0, 0
    properties = (int(b[at + length]) << 8) | int(b[at + length + 1])
    if properties > LONGEST_PROPERTIES or at + length + 2 + properties != end:
        return 0, 0, 0
    return body, at, at + length


@function
def is_delayed(b: Bytes, topic: int, topic_end: int) -> bool:
    """True if the topic of a record is the one in which delayed messages wait (docs/rocketmq.md#entry)."""
    return topic_end - topic == len(SCHEDULE_TOPIC) and starts_with(b, topic, topic_end, SCHEDULE_TOPIC)


@function
def time_of(b: Bytes, p: int) -> int:
    """The store time of the record at `p`, in ms."""
    a = address_of(b) + p
    return i64_at(a + (68 if i32_at(a + 36) & BORN_V6 else 56))


@function
def has_checksum(b: Bytes, p: int, body: int, tables: Tables) -> bool:
    """True if the body of the record at `p`, which begins at `body`, has the checksum of the record."""
    a = address_of(b)
    return crc32(b, body, i32_at(a + body - 4), tables) == i32_at(a + p + 8)


@function
def eight_digits(word: int) -> int:
    """The number whose decimal digits are these eight bytes, the least significant one first; -1 if one is none.

    Neighbours are added up at once: digits to pairs, pairs to fours, fours to the whole.
    """
    high, six = uint64(0xF0F0F0F0F0F0F0F0), uint64(0x0606060606060606)
    zeros = uint64(0x3030303030303030)
    if word & high != zeros or (word + six) & high != zeros:
        return -1
    word -= zeros
    word = (word & uint64(0x00FF00FF00FF00FF)) + uint64(10) * (word >> uint64(8) & uint64(0x00FF00FF00FF00FF))
    word = (word & uint64(0x0000FFFF0000FFFF)) + uint64(100) * (word >> uint64(16) & uint64(0x0000FFFF0000FFFF))
    return int64((word & uint64(0xFFFFFFFF)) + uint64(10_000) * (word >> uint64(32)))


NO_SEAL, SEALED, BROKEN = range(3)


@function
def seal_of(
    b: Bytes, p: int, properties: int, end: int, body: int, after: int, length: int, body_crc: int, tables: Tables
) -> int:
    """True if the record at `p` has the checksum in its properties, or they have none.

    `properties`, `end`: where these begin and end · `body`, `after`: where what is before the body ends, and where what
    follows it begins, which is at once where the body was left out · `length`, `body_crc`: how many bytes the body has,
    and the whole CRC of them, so that nothing is read twice. The ten digits stand with the least significant first, and
    cover all that lies before the property (docs/rocketmq.md#property-crc).
    """
    seal = end - SEAL
    if seal < properties or not starts_with(b, seal, end, SEAL_NAME):
        return NO_SEAL
    low = eight_digits(word_at(address_of(b) + seal + len(SEAL_NAME)))
    ninth, tenth = int(b[end - 3]) - 48, int(b[end - 2]) - 48
    if low < 0 or not (0 <= ninth <= 9 and 0 <= tenth <= 9):
        return BROKEN
    value = low + 10**8 * (ninth + 10 * tenth)
    # It is nearly always 88 bytes: code for a length that is known beforehand is faster.
    crc = crc_from(0, b, p, 88, tables) if body - p == 88 else crc_from(0, b, p, body - p, tables)
    crc = joined(crc, body_crc, length, tables)
    crc = crc_from(crc, b, after, seal - after, tables)
    return SEALED if b[end - 1] == 2 and value == crc & 0x7FFFFFFF else BROKEN


@function
def is_sealed(b: Bytes, p: int, properties: int, end: int, tables: Tables) -> bool:
    """True if the record `p:end` has the checksum in its properties, or they have none."""
    body = parts_of(b, p, end - p)[0]
    length = i32_at(address_of(b) + body - 4)
    crc = crc_from(0, b, body, length, tables)
    return seal_of(b, p, properties, end, body, body + length, length, crc, tables) != BROKEN


# -- writing ---------------------------------------------------------------------------------------------------------


_SEAL_WORD = int.from_bytes(SEAL_NAME[:8].tobytes(), "big")


@function
def _put_seal(to: int, value: int) -> None:
    """The property that says a record's checksum is written at the address `to`."""
    put_i64(to, _SEAL_WORD)
    high, low = uint64(value) // uint64(100000), uint64(value) % uint64(100000)
    first, second = uint64(0), uint64(0)  # digits, the last one on top
    for _ in range(5):
        first = first << uint64(8) | uint64(48) + low % uint64(10)
        second = second << uint64(8) | uint64(48) + high % uint64(10)
        low //= uint64(10)
        high //= uint64(10)
    put_i32(to + 8, int64(uint64(1) << uint64(24) | first >> uint64(16)))
    put_i64(to + 12, int64(first << uint64(48) | second << uint64(8) | uint64(2)))


@function(kinds=(
    BYTES, I64, I64, I64, INTS32, BYTES, INTS, INTS, INTS, BYTES, INTS, BYTES, INTS, BYTE_TABLE, I64, WORD32_TABLE,
    TABLE, BOOL
))  # fmt: skip
def encode_many(
    out: Bytes, base: int, at: int, low: int, queues: npt.NDArray[np.int32], topics: Bytes, topic_ends: Ints, ids: Ints,
    numbers: Ints, bodies: Bytes, body_ends: Ints, properties: Bytes, property_ends: Ints, heads: Bytes,
    time: int, tables: Tables, placed: Ints, sealing: bool,
) -> tuple[int, int]:  # fmt: skip
    """Write messages `low…` into a file, until one finds no room; returns the next message and the next free byte.

    `out`: the file's bytes, which begins at `base` in the log; `at`: its first free byte · `queues`: `queue_index`
    of `Messages`; bodies and properties as there · `topics`, `topic_ends`, `ids`: of every queue · `numbers`: of every
    queue, the number that its next message takes; raised here · `heads`: uint8 [1, 88], a header with what all have in
    common; or [n, 88], one for each · `placed`: int64 [4, n]: each record's position, size, queue and number ·
    `sealing`: every record carries a checksum of itself as its last property.
    """
    i, start, seal = low, address_of(out), SEAL if sealing else 0
    step = 88 if len(heads) > 1 else 0
    while i < len(queues):
        q = queues[i]
        body, body_end = body_ends[i], body_ends[i + 1]
        topic, topic_end = topic_ends[q], topic_ends[q + 1]
        extra, extra_end = property_ends[i], property_ends[i + 1]
        wide = topic_end - topic > LONGEST_V1_TOPIC
        size = FIXED + (body_end - body) + (topic_end - topic) + (extra_end - extra) + seal + (1 if wide else 0)
        if at + size + BLANK > len(out):
            break
        to = start + at
        copy_bytes(to, address_of(heads) + i * step, 88)
        put_i32(to, size)
        put_i32(to + 4, V2 if wide else V1)
        crc = crc_from(0, bodies, body, body_end - body, tables)
        put_i32(to + 8, crc & 0x7FFFFFFF)
        put_i32(to + 12, ids[q])
        put_i64(to + 20, numbers[q])
        put_i64(to + 28, base + at)
        put_i64(to + 56, time)
        put_i32(to + 84, body_end - body)
        copy_bytes(to + 88, address_of(bodies) + body, body_end - body)
        p = at + 88 + body_end - body
        if wide:
            out[p] = (topic_end - topic) >> 8
            p += 1
        out[p] = (topic_end - topic) & 0xFF
        copy_bytes(start + p + 1, address_of(topics) + topic, topic_end - topic)
        p += 1 + topic_end - topic
        out[p] = (extra_end - extra + seal) >> 8
        out[p + 1] = (extra_end - extra + seal) & 0xFF
        copy_bytes(start + p + 2, address_of(properties) + extra, extra_end - extra)
        if sealing:
            crc = joined(crc_from(0, out, at, 88, tables), crc, body_end - body, tables)
            p += 2 + extra_end - extra
            tail = at + 88 + body_end - body
            _put_seal(start + p, crc_from(crc, out, tail, p - tail, tables) & 0x7FFFFFFF)
        placed[0, i] = base + at
        placed[1, i] = size
        placed[2, i] = q
        placed[3, i] = numbers[q]
        numbers[q] += 1
        at += size
        i += 1
    return i, at


# -- where a log ends ------------------------------------------------------------------------------------------------

# Why a scan stopped: at the bytes' end, at a blank that ends the file, at zeros, or at what is no record.
AT_END, AT_BLANK, AT_ZEROS, AT_OTHER = range(4)


@function(kinds=(BYTES, I64, I64, I64, WORD32_TABLE, I64, I64))
def scan(
    b: Bytes, base: int, at: int, doubted: int, tables: Tables, sealed: int, safe: int
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Step from record to record, from byte `at` of a file on, until something is none; all checksums are computed.

    `base`: where the file begins in the log · `doubted`: ms; of a record stored at that time or later it is not known
    that it was ever safe, so a NUL in its topic or its properties says that it is torn: no writer puts one there, and
    what a disk forgot is zeros. Older records are taken as a broker takes them · `sealed`, `safe`: positions; a record
    that begins between the two is none without a checksum of itself, and a blank there is none before other bytes than
    zeros. Returns the byte at which the scan stopped, why, how many records it passed, the latest store time of any of
    them, in ms, and behind which byte they all carry checksums of themselves.
    """
    count, newest, bare = 0, 0, at
    a, e = address_of(b), len(b)
    while at + BLANK <= e:
        size, magic = i32_at(a + at), i32_at(a + at + 4)
        strict = sealed <= base + at < safe
        if magic == BLANK_MARK and size == e - at:
            return at, AT_OTHER if strict and not _are_zeros(b, at + BLANK) else AT_BLANK, count, newest, bare
        if size == 0 and magic == 0:
            return at, AT_ZEROS, count, newest, bare
        how = judge(b, base, at, tables)
        if how not in (WHOLE, UNSEALED) or (how == UNSEALED and strict):
            return at, AT_OTHER, count, newest, bare
        time = time_of(b, at)
        if time >= doubted and _has_zeros(b, at, size):
            return at, AT_OTHER, count, newest, bare
        newest = max(newest, time)
        count += 1
        at += size
        if how == UNSEALED:
            bare = at
    return at, AT_END, count, newest, bare


@function
def _are_zeros(b: Bytes, at: int) -> bool:
    """True if nothing but zeros follows."""
    for k in range(at, len(b)):
        if b[k] != 0:
            return False
    return True


@function
def _has_zeros(b: Bytes, at: int, size: int) -> bool:
    """True if a NUL is in the topic or the properties of the record, which is whole."""
    _, topic, topic_end = parts_of(b, at, size)
    for k in range(topic, at + size):
        if b[k] == 0 and not topic_end <= k < topic_end + 2:  # in between lies the length of the properties
            return True
    return False


# What lies at a place: a record that is whole, and carries a checksum of itself or none; no record of this place; one
# whose body is another than was written, or anything else in it.
WHOLE, UNSEALED, NO_RECORD, OTHER_BODY, OTHER_BYTES = range(5)


@function(kinds=(BYTES, I64, I64, WORD32_TABLE))
def judge(b: Bytes, base: int, at: int, tables: Tables) -> int:
    """The kind of data at byte `at` of a file that begins at `base` in the log, by its own header.

    Both checksums are computed, and no byte is read twice for that.
    """
    a, e = address_of(b), len(b)
    if at + FIXED > e:
        return NO_RECORD
    size, magic = i32_at(a + at), i32_at(a + at + 4)
    if magic not in (V1, V2) or size < FIXED or at + size > e or i64_at(a + at + 28) != base + at:
        return NO_RECORD
    body, _, topic_end = parts_of(b, at, size)
    if body == 0:
        return NO_RECORD
    length = i32_at(a + body - 4)
    crc = crc_from(0, b, body, length, tables)
    if crc & 0x7FFFFFFF != i32_at(a + at + 8):
        return OTHER_BODY
    seal = seal_of(b, at, topic_end + 2, at + size, body, body + length, length, crc, tables)
    return WHOLE if seal == SEALED else UNSEALED if seal == NO_SEAL else OTHER_BYTES
