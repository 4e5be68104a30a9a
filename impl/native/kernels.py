"""Native code for the bytes of a commit log: writing many records in one pass, and finding where a log ends.

Kernels are called with whole files and columns, hold no interpreter lock, and allocate nothing per record.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt
from numba import njit, uint32

from gapless.impl.native.memory import copy_bytes, put_i32, put_i64
from gapless.impl.store.records import (
    BLANK,
    BORN_V6,
    FIXED,
    LONGEST_V1_TOPIC,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    STORE_V6,
)

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Tables = npt.NDArray[np.uint32]


def _crc_tables() -> Tables:
    """Slicing-by-16 tables of the zlib CRC, from zlib itself: table k moves a byte past k zero bytes."""
    tables = np.zeros((16, 256), np.uint32)
    for byte in range(256):
        for k in range(16):
            tables[k, byte] = zlib.crc32(bytes([byte]) + bytes(k)) ^ zlib.crc32(bytes(k + 1))
    return tables


CRC_TABLES = _crc_tables()


# -- big-endian numbers ----------------------------------------------------------------------------------------------


@njit(inline="always")
def u32(b: Bytes, p: int) -> int:
    """Four bytes, unsigned."""
    return (
        (uint32(b[p]) << uint32(24))
        | (uint32(b[p + 1]) << uint32(16))
        | (uint32(b[p + 2]) << uint32(8))
        | uint32(b[p + 3])
    )


@njit(inline="always")
def i32(b: Bytes, p: int) -> int:
    """Four bytes, signed."""
    return np.int64(np.int32(u32(b, p)))


@njit(inline="always")
def i64(b: Bytes, p: int) -> int:
    """Eight bytes, signed."""
    return (np.int64(u32(b, p)) << np.int64(32)) | np.int64(u32(b, p + 4))


# -- checksums and hashes --------------------------------------------------------------------------------------------


@njit(inline="always")
def _le32(b: Bytes, p: int) -> int:
    return (
        uint32(b[p])
        | (uint32(b[p + 1]) << uint32(8))
        | (uint32(b[p + 2]) << uint32(16))
        | (uint32(b[p + 3]) << uint32(24))
    )


@njit
def crc32(b: Bytes, p: int, n: int, t: Tables) -> int:
    """The zlib CRC of `n` bytes at `p`, its top bit dropped, as records carry it."""
    c = uint32(0xFFFFFFFF)
    e = p + n
    m = uint32(255)
    while p + 16 <= e:
        w = c ^ _le32(b, p)
        x = _le32(b, p + 4)
        y = _le32(b, p + 8)
        z = _le32(b, p + 12)
        c = (
            t[15, w & m] ^ t[14, (w >> uint32(8)) & m] ^ t[13, (w >> uint32(16)) & m] ^ t[12, w >> uint32(24)]
            ^ t[11, x & m] ^ t[10, (x >> uint32(8)) & m] ^ t[9, (x >> uint32(16)) & m] ^ t[8, x >> uint32(24)]
            ^ t[7, y & m] ^ t[6, (y >> uint32(8)) & m] ^ t[5, (y >> uint32(16)) & m] ^ t[4, y >> uint32(24)]
            ^ t[3, z & m] ^ t[2, (z >> uint32(8)) & m] ^ t[1, (z >> uint32(16)) & m] ^ t[0, z >> uint32(24)]
        )  # fmt: skip
        p += 16
    while p < e:
        c = t[0, (c ^ uint32(b[p])) & m] ^ (c >> uint32(8))
        p += 1
    return np.int64((c ^ uint32(0xFFFFFFFF)) & uint32(0x7FFFFFFF))


@njit
def java_hash(b: Bytes, p: int, e: int) -> int:
    """Java's String.hashCode of the UTF-8 bytes `p:e`; what is no UTF-8 counts as U+FFFD, byte by byte."""
    h = np.int32(0)
    while p < e:
        c = np.int32(b[p])
        more = 0 if c < 0x80 else 1 if 0xC2 <= c < 0xE0 else 2 if 0xE0 <= c < 0xF0 else 3 if 0xF0 <= c < 0xF5 else -1
        point = c if more == 0 else np.int32(0xFFFD)
        if more > 0 and p + more < e:
            sound = True
            point = np.int32(c & np.int32(0x3F >> more))
            for k in range(1, more + 1):
                sound = sound and (b[p + k] & 0xC0) == 0x80
                point = np.int32((point << 6) | (np.int32(b[p + k]) & 0x3F))
            if not sound:
                more, point = -1, np.int32(0xFFFD)
        elif more > 0:
            more, point = -1, np.int32(0xFFFD)
        if point >= 0x10000:  # two UTF-16 units
            rest = np.int32(point - 0x10000)
            h = np.int32(h * np.int32(31) + np.int32(0xD800 + (rest >> 10)))
            h = np.int32(h * np.int32(31) + np.int32(0xDC00 + (rest & 0x3FF)))
        else:
            h = np.int32(h * np.int32(31) + point)
        p += 1 if more < 0 else more + 1
    return np.int64(h)


# -- writing ---------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def encode_many(
    out: Bytes,
    base: int,
    at: int,
    low: int,
    of: npt.NDArray[np.int32],
    topics: Bytes,
    topic_ends: Ints,
    ids: Ints,
    numbers: Ints,
    bodies: Bytes,
    body_ends: Ints,
    properties: Bytes,
    property_ends: Ints,
    head: Bytes,
    born: int,
    time: int,
    tables: Tables,
    placed: Ints,
) -> tuple[int, int]:
    """Write messages `low…` into a file, until one finds no room; returns the next message and the next free byte.

    `out`: the file's bytes, which begins at `base` in the log; `at`: its first free byte · `of`, `bodies`, `body_ends`,
    `properties`, `property_ends`: as in `Messages` · `topics`, `topic_ends`, `ids`: of every queue · `numbers`: of
    every queue, the number that its next message takes; raised here · `head`: 88 bytes, a header with what all have in
    common · `placed`: int64 [4, n]: each record's position, size, queue and number.
    """
    i, start = low, out.ctypes.data
    while i < len(of):
        q = of[i]
        body, body_end = body_ends[i], body_ends[i + 1]
        topic, topic_end = topic_ends[q], topic_ends[q + 1]
        extra, extra_end = property_ends[i], property_ends[i + 1]
        wide = topic_end - topic > LONGEST_V1_TOPIC
        size = FIXED + (body_end - body) + (topic_end - topic) + (extra_end - extra) + (1 if wide else 0)
        if at + size + BLANK > len(out):
            break
        to = start + at
        copy_bytes(to, head.ctypes.data, 88)
        put_i32(to, size)
        put_i32(to + 4, np.int64(MAGIC_V2 if wide else MAGIC_V1))
        put_i32(to + 8, crc32(bodies, body, body_end - body, tables))
        put_i32(to + 12, ids[q])
        put_i64(to + 20, numbers[q])
        put_i64(to + 28, base + at)
        put_i64(to + 40, born)
        put_i64(to + 56, time)
        put_i32(to + 84, body_end - body)
        copy_bytes(to + 88, bodies.ctypes.data + body, body_end - body)
        p = at + 88 + body_end - body
        if wide:
            out[p] = (topic_end - topic) >> 8
            p += 1
        out[p] = (topic_end - topic) & 0xFF
        copy_bytes(start + p + 1, topics.ctypes.data + topic, topic_end - topic)
        p += 1 + topic_end - topic
        out[p] = (extra_end - extra) >> 8
        out[p + 1] = (extra_end - extra) & 0xFF
        copy_bytes(start + p + 2, properties.ctypes.data + extra, extra_end - extra)
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


@njit(nogil=True, cache=True)
def scan(b: Bytes, base: int, at: int, doubted: int, tables: Tables) -> tuple[int, int, int, int]:
    """Step from record to record, from byte `at` of a file on, until something is none; all checksums are computed.

    `base`: where the file begins in the log · `doubted`: ms; of a record stored at that time or later it is not known
    that it was ever safe, so a NUL in its topic or its properties says that it is torn: no writer puts one there, and
    what a disk forgot is zeros. Older records are taken as a broker takes them. Returns the byte at which the scan
    stopped, why, how many records it passed, and the latest store time of any of them, in ms.
    """
    count = 0
    newest = np.int64(0)
    e = len(b)
    while True:
        if at + BLANK > e:
            return at, AT_END, count, newest
        size = i32(b, at)
        magic = np.int64(u32(b, at + 4))
        if magic == MAGIC_BLANK and size == e - at:
            return at, AT_BLANK, count, newest
        if size == 0 and magic == 0:
            return at, AT_ZEROS, count, newest
        if size < FIXED or at + size > e or (magic not in (MAGIC_V1, MAGIC_V2)):
            return at, AT_OTHER, count, newest
        body, time = whole(b, at, size, base, doubted, tables)
        if body < 0:
            return at, AT_OTHER, count, newest
        newest = max(newest, time)
        count += 1
        at += size


@njit
def whole(b: Bytes, at: int, size: int, base: int, doubted: int, tables: Tables) -> tuple[int, int]:
    """Where the body of a record begins, and its store time; -1 for the first where it is not whole."""
    torn = (-1, np.int64(0))
    end = at + size
    kind = i32(b, at + 36)
    p = at + 48 + (20 if kind & BORN_V6 else 8)
    if p + 8 > end or i64(b, at + 28) != base + at:
        return torn
    time = i64(b, p)
    p += 8 + (20 if kind & STORE_V6 else 8) + 12
    if p + 4 > end:
        return torn
    length = i32(b, p)
    body = p + 4
    wide = 1 if np.int64(u32(b, at + 4)) == MAGIC_V2 else 0
    if length < 0 or body + length + 3 + wide > end:
        return torn
    p = body + length
    topic = np.int64(b[p]) if not wide else (np.int64(b[p]) << 8) | np.int64(b[p + 1])
    p += 1 + wide
    if p + topic + 2 > end:
        return torn
    properties = (np.int64(b[p + topic]) << 8) | np.int64(b[p + topic + 1])
    if p + topic + 2 + properties != end or properties > 32767:
        return torn
    if crc32(b, body, length, tables) != np.int64(u32(b, at + 8)):
        return torn
    if time >= doubted:
        for k in range(p, p + topic):
            if b[k] == 0:
                return torn
        for k in range(p + topic + 2, end):
            if b[k] == 0:
                return torn
    if properties >= 20 and not sealed(b, at, end, tables):
        return torn
    return body, time


@njit
def sealed(b: Bytes, at: int, end: int, tables: Tables) -> bool:
    """Whether a record has the checksum that its properties carry, if they carry one.

    Its ten digits stand with the least significant first, and cover all that lies before the entry (reference A.2).
    """
    p = end - 20
    name = (95, 95, 67, 82, 67, 51, 50, 35, 1)  # __CRC32# and the separator
    for k in range(9):
        if b[p + k] != name[k]:
            return True
    value = np.int64(0)
    for k in range(10):
        digit = np.int64(b[p + 18 - k]) - 48
        if not 0 <= digit <= 9:
            return False
        value = value * 10 + digit
    return value == crc32(b, at, p - at, tables)
