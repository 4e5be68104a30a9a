"""The commit log scan: one native pass over the bytes of a file gives columns of events.

Per record: does it tile the log, do its parts add up, do the checksums hold (`log` events); which queues is it in,
under which number and tag code (queue rows). Byte layout: reference A.2 to A.5. Nothing is judged here: whether a
checksum must hold is for `spec/log.py` to say.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint32, uint64

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

MAGIC_V1 = 0xDAA320A7
MAGIC_V2 = 0xDAA320AB  # the topic's length takes two bytes
MAGIC_BLANK = 0xCBD43194
HEADER = 112  # bytes up to the body, with IPv6 hosts
SMALLEST = 91  # bytes of a V1 record with IPv4 hosts, and neither body, topic nor properties
BLANK = 8
BLANK_SLOT = 0x7FFFFFFF  # the size in the slots that fill a queue's first file up to its first entry
EXTENDED = -2147483649  # tag codes from here down are addresses in consumequeue_ext
FOREVER = 1000 * 86_400_000  # ms: no delay level is that long

SYS_BORN_V6 = 0x10
SYS_STORE_V6 = 0x20
SYS_INNER_BATCH = 0x80
SYS_OUTSIDE = 0x4  # transaction types 4 (prepared) and 12 (rolled back) have this bit, and no place in a queue

# Why a scan ends.
STOPPED, ROLLED, SHORT, INVALID, FULL = range(5)

# Rows of the `log` column block.
POSITION, SIZE, CLAIMED, KNOWN, FITS, INTACT, SEALED, TIME, LOG_ROWS = range(9)
# Rows of the queue column block. LOOSE: how sure the tag code is (see below); MOMENT: the record's store time;
# ENTRY: the row is to have an entry.
SUBJECT, NUMBER, COUNT, PLACE, LENGTH, TAG, LOOSE, MOMENT, ENTRY, QUEUE_ROWS = range(10)
SURE, SCHEDULED, UNSURE = range(3)
# Counters.
C_V2, C_SEALED, C_OUTSIDE, C_SCHEDULED, C_MULTI, C_INNER, C_UNSURE, COUNTERS = range(8)
# Per subject: hash, where its topic lies in `names`, the topic's length, its queue id.
S_HASH, S_AT, S_LENGTH, S_QUEUE, SUBJECT_ROWS = range(5)


class Header(NamedTuple):
    """The fields of one record that are read outside of the scan: to tell what lies at a damaged place."""

    size: int
    magic: int
    claimed: int  # the position that it names as its own
    time: int  # ms, when it was stored
    body: int  # bytes

    @property
    def known(self) -> bool:
        """Whether the magic number is a record's."""
        return self.magic in (MAGIC_V1, MAGIC_V2)


def header(data: bytes) -> Header:
    """The header in the first bytes of `data`; what they do not reach is taken for zeros."""
    data = data[:HEADER].ljust(HEADER, b"\0")
    size, magic = struct.unpack_from(">iI", data)
    claimed, flags = struct.unpack_from(">qi", data, 28)
    time_at = 48 + (20 if flags & SYS_BORN_V6 else 8)
    (time,) = struct.unpack_from(">q", data, time_at)
    (body,) = struct.unpack_from(">i", data, time_at + 8 + (20 if flags & SYS_STORE_V6 else 8) + 12)
    return Header(size, magic, claimed, time, body)


class Plain(NamedTuple):
    """A record in plain Python: for a few, to tell what differs between two."""

    topic: str
    queue: int
    number: int
    flag: int
    kind: int  # the flags that say how the record is to be read
    born: int  # ms
    reconsumed: int
    half: int  # the position of the half that a final names
    body: bytes
    properties: dict[str, str]


def plain(data: bytes) -> Plain | None:
    """The record that begins `data`; None where its parts reach beyond."""
    try:
        magic, _crc, queue, flag, number, _claimed, kind, born = struct.unpack_from(">IIiiqqiq", data, 4)
        at = 48 + (20 if kind & SYS_BORN_V6 else 8) + 8 + (20 if kind & SYS_STORE_V6 else 8)
        reconsumed, half, length = struct.unpack_from(">iqi", data, at)
        body, at = data[at + 16 : at + 16 + length], at + 16 + length
        width = 2 if magic == MAGIC_V2 else 1
        end = at + width + int.from_bytes(data[at : at + width], "big")
        text = data[end + 2 : end + 2 + int.from_bytes(data[end : end + 2], "big")].decode(errors="backslashreplace")
        topic = data[at + width : end].decode(errors="backslashreplace")
    except struct.error:
        return None
    pairs = (pair.partition("\x01") for pair in text.split("\x02"))
    properties = {name: value for name, _, value in pairs if name and value}
    return Plain(topic, queue, number, flag, kind, born, reconsumed, half, body, properties)


def _crc_tables() -> npt.NDArray[np.uint32]:
    """Slicing-by-16 tables of the zlib CRC, from zlib itself: table k advances a byte past k zero bytes."""
    tables = np.zeros((16, 256), np.uint32)
    for byte in range(256):
        for k in range(16):
            # The CRC register after one byte and k zeros, with the pre- and post-conditioning taken out.
            zeros = zlib.crc32(bytes(k + 1))
            tables[k, byte] = zlib.crc32(bytes([byte]) + bytes(k)) ^ zeros
    return tables


CRC_TABLES = _crc_tables()


@njit(inline="always")
def u32(b: Bytes, p: int) -> int:
    """Four bytes, big-endian, unsigned."""
    return (
        (uint32(b[p]) << uint32(24))
        | (uint32(b[p + 1]) << uint32(16))
        | (uint32(b[p + 2]) << uint32(8))
        | uint32(b[p + 3])
    )


@njit(inline="always")
def i32(b: Bytes, p: int) -> int:
    """Four bytes, big-endian, signed."""
    return np.int64(np.int32(u32(b, p)))


@njit(inline="always")
def i64(b: Bytes, p: int) -> int:
    """Eight bytes, big-endian, signed."""
    return (np.int64(u32(b, p)) << np.int64(32)) | np.int64(u32(b, p + 4))


@njit(inline="always")
def _le32(b: Bytes, p: int) -> int:
    return (
        uint32(b[p])
        | (uint32(b[p + 1]) << uint32(8))
        | (uint32(b[p + 2]) << uint32(16))
        | (uint32(b[p + 3]) << uint32(24))
    )


@njit
def crc31(b: Bytes, p: int, n: int, t: npt.NDArray[np.uint32]) -> int:
    """The zlib CRC of `n` bytes at `p`, its top bit dropped, as the broker stores it."""
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
def java_hash(b: Bytes, p: int, e: int) -> tuple[int, bool]:
    """Java's String.hashCode of the UTF-8 bytes `p:e`, and whether they were UTF-8 (else the code is unknown)."""
    h = np.int32(0)
    while p < e:
        c = np.int32(b[p])
        if c < 0x80:
            h = np.int32(h * np.int32(31) + c)
            p += 1
            continue
        more = 1 if 0xC2 <= c < 0xE0 else 2 if 0xE0 <= c < 0xF0 else 3 if 0xF0 <= c < 0xF5 else 0
        if more == 0 or p + more >= e:
            return np.int64(0), False
        point = c & np.int32(0x3F >> more)
        for k in range(1, more + 1):
            if (b[p + k] & 0xC0) != 0x80:
                return np.int64(0), False
            point = np.int32((point << 6) | (np.int32(b[p + k]) & 0x3F))
        if (more == 2 and (point < 0x800 or 0xD800 <= point < 0xE000)) or (
            more == 3 and not 0x10000 <= point < 0x110000
        ):
            return np.int64(0), False
        if more == 3:  # two UTF-16 units
            point = np.int32(point - 0x10000)
            h = np.int32(h * np.int32(31) + np.int32(0xD800 + (point >> 10)))
            h = np.int32(h * np.int32(31) + np.int32(0xDC00 + (point & 0x3FF)))
        else:
            h = np.int32(h * np.int32(31) + point)
        p += more + 1
    return np.int64(h), True


@njit(inline="always")
def _turned(x: int, by: int) -> int:
    """The 64 bits of `x`, turned left."""
    return (x << uint64(by)) | (x >> uint64(64 - by))


@njit
def digest(b: Bytes, p: int, e: int) -> int:
    """64 bits that stand for the bytes `p:e`, the same everywhere and for ever; 0 for no bytes, and only for them.

    The bytes are words of eight, least significant first, the last one filled up with zeros. `h` begins as their count.
    Each word `w` goes into it: `w = turned(w * 0x87C37B91114253D5, 31) * 0x4CF5AD432745937F`, and then
    `h = turned(h ^ w, 27) * 5 + 0x52DCE729`. At the end, three times, its upper half goes into its lower one,
    `h ^= h >> 33`, with `h *= 0xFF51AFD7ED558CCD` after the first time and `h *= 0xC4CEB9FE1A85EC53` after the second.
    What comes to 0 is 1. All is modulo 2^64, `turned` to the left, and the result is read as a signed number.

    These are the steps of MurmurHash3 for one 64-bit half. Each of them can be undone, so keys of one length that
    differ in one word never have the same digest. It has no secret: who chooses keys can choose two with one digest.
    """
    if p >= e:
        return np.int64(0)
    h = uint64(e - p)
    while p < e:
        w = uint64(0)
        if p + 8 <= e:
            for k in range(8):
                w |= uint64(b[p + k]) << uint64(8 * k)
        else:
            for k in range(e - p):
                w |= uint64(b[p + k]) << uint64(8 * k)
        w = _turned(w * uint64(0x87C37B91114253D5), 31) * uint64(0x4CF5AD432745937F)
        h = _turned(h ^ w, 27) * uint64(5) + uint64(0x52DCE729)
        p += 8
    h = (h ^ (h >> uint64(33))) * uint64(0xFF51AFD7ED558CCD)
    h = (h ^ (h >> uint64(33))) * uint64(0xC4CEB9FE1A85EC53)
    h ^= h >> uint64(33)
    return np.int64(h) if h != uint64(0) else np.int64(1)


@njit(nogil=True, cache=True)
def digests(data: Bytes, offsets: Ints) -> Ints:
    """The digest of each text in a column: text `i` is `data[offsets[i] : offsets[i + 1]]`."""
    found = np.empty(len(offsets) - 1, np.int64)
    for i in range(len(found)):
        found[i] = digest(data, offsets[i], offsets[i + 1])
    return found


def distinct(values: Ints) -> Ints:
    """The values, rising, each once. Of a million, `np.unique` makes a hash table, and takes twenty times as long."""
    rising = np.sort(values)
    first = np.ones(len(rising), np.bool_)
    first[1:] = rising[1:] != rising[:-1]
    return rising[first]


def among(values: Ints, known: Ints) -> npt.NDArray[np.bool_]:
    """Whether each value is among the known ones, which rise: `np.isin` goes through all of these every time."""
    if not len(known):
        return np.zeros(len(values), np.bool_)
    order = np.argsort(values)  # a search goes on where the last one ended: half the time on a million
    rising = values[order]
    found = np.empty(len(values), np.bool_)
    found[order] = known[np.minimum(np.searchsorted(known, rising), len(known) - 1)] == rising
    return found


@njit(inline="always")
def _named(b: Bytes, p: int, e: int, name: Bytes) -> bool:
    """Whether the bytes `p:e` are `name`."""
    if e - p != len(name):
        return False
    for i in range(len(name)):
        if b[p + i] != name[i]:
            return False
    return True


@njit
def _digits(b: Bytes, p: int, e: int) -> int:
    """A decimal number without sign, or -1 where the bytes are none, or too many."""
    if p >= e or e - p > 18:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(p, e):
        if not 48 <= b[i] <= 57:
            return np.int64(-1)
        value = value * 10 + np.int64(b[i] - 48)
    return value


@njit
def subject_of(b: Bytes, p: int, e: int, queue: int, subjects: Ints, table: Ints, names: Bytes, used: Ints) -> int:
    """The row of (topic `b[p:e]`, `queue`) in `subjects`, made where it is new; -1 where there is no room."""
    h = uint64(14695981039346656037) ^ uint64(queue)
    for i in range(p, e):
        h = (h ^ uint64(b[i])) * uint64(1099511628211)
    h ^= h >> uint64(29)
    key = np.int64(h)
    mask = len(table) - 1
    slot = np.int64(h & uint64(mask))
    while table[slot] >= 0:
        s = table[slot]
        if subjects[S_HASH, s] == key and subjects[S_QUEUE, s] == queue and subjects[S_LENGTH, s] == e - p:
            at = subjects[S_AT, s]
            same = True
            for i in range(e - p):
                if names[at + i] != b[p + i]:
                    same = False
                    break
            if same:
                return np.int64(s)
        slot = (slot + 1) & mask
    if used[0] * 2 >= len(table) or used[0] >= subjects.shape[1] or used[1] + e - p > len(names):
        return np.int64(-1)
    s = used[0]
    table[slot] = s
    subjects[S_HASH, s] = key
    subjects[S_AT, s] = used[1]
    subjects[S_LENGTH, s] = e - p
    subjects[S_QUEUE, s] = queue
    for i in range(p, e):
        names[used[1] + i - p] = b[i]
    used[0] += 1
    used[1] += e - p
    return np.int64(s)


TAGS = np.frombuffer(b"TAGS", np.uint8)
DELAY = np.frombuffer(b"DELAY", np.uint8)
INNER_NUM = np.frombuffer(b"INNER_NUM", np.uint8)
MULTI_DISPATCH = np.frombuffer(b"INNER_MULTI_DISPATCH", np.uint8)
MULTI_OFFSET = np.frombuffer(b"INNER_MULTI_QUEUE_OFFSET", np.uint8)
PROPERTY_CRC = np.frombuffer(b"__CRC32#", np.uint8)
SCHEDULE_TOPIC = np.frombuffer(b"SCHEDULE_TOPIC_XXXX", np.uint8)
RETRY_PREFIX = np.frombuffer(b"%RETRY%", np.uint8)
LMQ_PREFIX = np.frombuffer(b"%LMQ%", np.uint8)
SEAL = 20  # bytes: the property CRC with its name and both separators


@njit
def _seal_holds(b: Bytes, p: int, size: int, tables: npt.NDArray[np.uint32]) -> int:
    """1 where the record ends in its CRC, 0 where in another number, -1 where in none (reference A.2)."""
    at = p + size - SEAL
    if not _named(b, at, at + 8, PROPERTY_CRC) or b[at + 8] != 1:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(9, -1, -1):  # least significant digit first
        if not 48 <= b[at + 9 + i] <= 57:
            return np.int64(0)
        value = value * 10 + np.int64(b[at + 9 + i] - 48)
    return np.int64(value == crc31(b, p, size - SEAL, tables))


@njit(cache=True)
def measure(b: Bytes, p: int, e: int, v2: bool) -> int:
    """The length of the record at `p` by its parts (reference A.2), or 0 where they reach beyond `e`."""
    if p + SMALLEST > e:
        return np.int64(0)
    flags = i32(b, p + 36)
    at = p + 48 + (20 if flags & SYS_BORN_V6 else 8) + 8 + (20 if flags & SYS_STORE_V6 else 8) + 12
    if at + 4 > e:
        return np.int64(0)
    body = i32(b, at)
    at += 4 + body
    if body < 0 or at + 2 > e:
        return np.int64(0)
    at += 2 + ((np.int64(b[at]) << 8) | np.int64(b[at + 1])) if v2 else 1 + np.int64(b[at])
    if at + 2 > e:
        return np.int64(0)
    at += 2 + ((np.int64(b[at]) << 8) | np.int64(b[at + 1]))
    return np.int64(at - p) if at <= e else np.int64(0)


@njit(nogil=True, cache=True)
def scan(
    b: Bytes, base: int, p: int, stop: int, limit: int, have: int,
    forced_at: int, forced_size: int, forced_known: int, forced_fits: int, forced_v2: bool,
    log: Ints, rows: Ints, filled: Ints,
    subjects: Ints, table: Ints, names: Bytes, used: Ints,
    counters: Ints, delays: Ints, tables: npt.NDArray[np.uint32],
    seals: bool, multi: bool, lmq: bool,
) -> tuple[int, int, int]:  # fmt: skip
    """Read records from `p` on, as long as they begin before `stop`. Returns why it ended, where, and bytes needed.

    `b[0]` is the byte at log position `base`; `have` bytes of it are read, the file ends at `limit` (both counted
    from `base`). Columns are appended to `log` and `rows` from `filled[0]` and `filled[1]` on. The record at
    `forced_at`, if any, is taken as `forced_size` long whatever its header says. `delays`: ms per delay level, empty
    where unknown. `seals`: judge property CRCs. `multi` and `lmq`: which multi-dispatch queues the broker builds.
    """
    n = filled[0]
    q = filled[1]
    while p < stop:
        if p + BLANK > have:
            filled[0], filled[1] = n, q
            return (SHORT, p, BLANK) if have < limit else (INVALID, p, 0)
        size = i32(b, p)
        magic = u32(b, p + 4)
        known = magic in (MAGIC_V1, MAGIC_V2)
        v2 = magic == MAGIC_V2
        fits = True
        if p == forced_at:
            size = forced_size
            known = forced_known != 0
            fits = forced_fits != 0
            v2 = forced_v2
        elif magic == MAGIC_BLANK and size == limit - p:
            filled[0], filled[1] = n, q
            return ROLLED, p, size
        elif not known or size < SMALLEST or p + size > limit:
            filled[0], filled[1] = n, q
            return INVALID, p, 0
        if p + size > have:
            filled[0], filled[1] = n, q
            return SHORT, p, size
        if p != forced_at and measure(b, p, p + size, v2) != size:
            filled[0], filled[1] = n, q
            return INVALID, p, 0
        if n >= log.shape[1]:
            filled[0], filled[1] = n, q
            return FULL, p, 0

        flags = i32(b, p + 36)
        at = p + 48 + (20 if flags & SYS_BORN_V6 else 8)
        time = i64(b, at)
        at += 8 + (20 if flags & SYS_STORE_V6 else 8) + 12
        body = i32(b, at)
        intact = crc31(b, at + 4, body, tables) == np.int64(u32(b, p + 8))
        at += 4 + body
        if v2:
            topic_end = at + 2 + ((np.int64(b[at]) << 8) | np.int64(b[at + 1]))
            at += 2
        else:
            topic_end = at + 1 + np.int64(b[at])
            at += 1
        topic = at
        k = topic_end + 2
        e = k + ((np.int64(b[topic_end]) << 8) | np.int64(b[topic_end + 1]))

        # The properties that say where the record belongs; the last of two with one name counts, as in the broker.
        tags, tags_end, delay, count = np.int64(0), np.int64(0), np.int64(0), np.int64(1)
        multi_at, multi_end, offset_at, offset_end = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        while k < e:
            w = k
            while w < e and b[w] != 2:
                w += 1
            if w - k >= 3 and (b[k] == 73 or b[k] == 84 or b[k] == 68):  # I, T or D: no other name is looked for
                v = k
                while v < w and b[v] != 1:
                    v += 1
                length = v - k if v < w - 1 else np.int64(0)
                if length == 4:
                    if _named(b, k, v, TAGS):
                        tags, tags_end = v + 1, w
                elif length == 5:
                    if _named(b, k, v, DELAY):
                        delay = _digits(b, v + 1, w)
                elif length == 9:
                    if _named(b, k, v, INNER_NUM):
                        count = _digits(b, v + 1, w)
                elif length == 20:
                    if _named(b, k, v, MULTI_DISPATCH):
                        multi_at, multi_end = v + 1, w
                elif length == 24 and _named(b, k, v, MULTI_OFFSET):
                    offset_at, offset_end = v + 1, w
            k = w + 1

        sealed = np.int64(1)
        if seals and e - topic_end - 2 >= SEAL:
            seal = _seal_holds(b, p, size, tables)
            if seal >= 0:
                counters[C_SEALED] += 1
                sealed = seal

        tag, exact = java_hash(b, tags, tags_end)
        loose = np.int64(SURE if exact else UNSURE)
        if delay > 0 and _named(b, topic, topic_end, SCHEDULE_TOPIC):
            counters[C_SCHEDULED] += 1
            loose = np.int64(SCHEDULED)
            level = delay if delay < len(delays) else len(delays)  # noqa: FURB136 - mypy cannot read `min` of these
            tag = time + (delays[level - 1] if level > 0 else np.int64(0))
        counters[C_UNSURE] += np.int64(loose == UNSURE)
        counters[C_V2] += np.int64(v2)

        number = i64(b, p + 20)
        queue = i32(b, p + 12)
        first_row = q
        if flags & SYS_OUTSIDE:
            counters[C_OUTSIDE] += 1
        else:
            if q >= rows.shape[1]:
                filled[0], filled[1] = n, first_row
                return FULL, p, 0
            inner = (flags & SYS_INNER_BATCH) != 0
            subject = subject_of(b, topic, topic_end, queue, subjects, table, names, used)
            if subject < 0:
                filled[0], filled[1] = n, first_row
                return FULL, p, 0
            rows[SUBJECT, q] = subject
            rows[NUMBER, q] = number
            rows[COUNT, q] = count if inner else 1
            rows[PLACE, q] = base + p
            rows[LENGTH, q] = size
            rows[TAG, q] = tag
            rows[LOOSE, q] = loose
            rows[MOMENT, q] = time
            rows[ENTRY, q] = np.int64(not inner)
            q += 1
            counters[C_INNER] += np.int64(inner)
            if multi and multi_end > multi_at and offset_end > offset_at and not (
                topic_end - topic >= 7 and _named(b, topic, topic + 7, RETRY_PREFIX)
            ):  # fmt: skip
                x, y = multi_at, offset_at
                while x < multi_end and y < offset_end:
                    xe, ye = x, y
                    slash = False
                    while xe < multi_end and b[xe] != 44:
                        slash = slash or b[xe] == 47
                        xe += 1
                    while ye < offset_end and b[ye] != 44:
                        ye += 1
                    given = _digits(b, y, ye)
                    light = lmq and xe - x >= 5 and _named(b, x, x + 5, LMQ_PREFIX)
                    if xe > x and given >= 0 and not slash:
                        if q >= rows.shape[1]:
                            filled[0], filled[1] = n, first_row
                            return FULL, p, 0
                        subject = subject_of(b, x, xe, 0 if light else queue, subjects, table, names, used)
                        if subject < 0:
                            filled[0], filled[1] = n, first_row
                            return FULL, p, 0
                        rows[SUBJECT, q] = subject
                        rows[NUMBER, q] = given
                        rows[COUNT, q] = 1
                        rows[PLACE, q] = base + p
                        rows[LENGTH, q] = size
                        rows[TAG, q] = tag
                        rows[LOOSE, q] = loose
                        rows[MOMENT, q] = time
                        rows[ENTRY, q] = 1
                        q += 1
                        counters[C_MULTI] += 1
                    x, y = xe + 1, ye + 1

        log[POSITION, n] = base + p
        log[SIZE, n] = size
        log[CLAIMED, n] = i64(b, p + 28)
        log[KNOWN, n] = np.int64(known)
        log[FITS, n] = np.int64(fits and (e == topic_end + 2 or b[e - 1] != 0))  # a list of properties ends in no zero
        log[INTACT, n] = np.int64(intact)
        log[SEALED, n] = sealed
        log[TIME, n] = time
        n += 1
        p += size
    filled[0], filled[1] = n, q
    return STOPPED, p, 0


@njit(nogil=True, cache=True)
def find_start(b: Bytes, base: int, p: int, stop: int, limit: int, have: int) -> int:
    """The first place in `p:stop` where a record or the file's blank begins, or -1.

    A record names its own position: that, its magic number and a size that its parts add up to (as far as they are
    in `b`) are asked for. A forgery inside a body would still be found out, where the piece before it ends.
    """
    while p < stop and p + BLANK <= have:
        if b[p + 4] == 0xDA and b[p + 5] == 0xA3 and b[p + 6] == 0x20 and p + SMALLEST <= have:
            size = i32(b, p)
            magic = u32(b, p + 4)
            ours = magic in (MAGIC_V1, MAGIC_V2) and i64(b, p + 28) == base + p
            whole = ours and SMALLEST <= size <= limit - p
            if whole and (p + size > have or measure(b, p, p + size, magic == MAGIC_V2) == size):
                return np.int64(p)
        elif b[p + 4] == 0xCB and u32(b, p + 4) == MAGIC_BLANK and i32(b, p) == limit - p:
            return np.int64(p)
        p += 1
    return np.int64(-1)


@njit(nogil=True, cache=True)
def group(rows: Ints, count: int, subjects: int) -> tuple[Ints, Ints]:
    """Rows by subject, in log order within each: the order of rows, and where each subject's rows begin in it."""
    starts = np.zeros(subjects + 1, np.int64)
    for i in range(count):
        starts[rows[SUBJECT, i] + 1] += 1
    for s in range(subjects):
        starts[s + 1] += starts[s]
    order = np.empty(count, np.int64)
    at = starts[:-1].copy()
    for i in range(count):
        s = rows[SUBJECT, i]
        order[at[s]] = i
        at[s] += 1
    return order, starts


@njit(nogil=True, cache=True)
def pieces_of(rows: Ints, order: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """Each subject's rows, cut where its numbers start again at 0: where pieces begin, and whose each is."""
    starts = np.empty(len(order) + 1, np.int64)
    owners = np.empty(len(order), np.int64)
    n = 0
    for s in range(len(bounds) - 1):
        for i in range(bounds[s], bounds[s + 1]):
            if i == bounds[s] or rows[NUMBER, order[i]] == 0:
                starts[n] = i
                owners[n] = s
                n += 1
    starts[n] = len(order)
    return starts[: n + 1].copy(), owners[:n].copy()


@njit(nogil=True, cache=True)
def spans(rows: Ints, order: Ints, starts: Ints) -> tuple[Ints, Ints, Ints]:
    """Per piece: its first number, how many numbers its rows take, how many are to have no entry of their own."""
    pieces = len(starts) - 1
    origins = np.zeros(pieces, np.int64)
    widths = np.zeros(pieces, np.int64)
    batches = np.zeros(pieces, np.int64)
    for s in range(pieces):
        origins[s] = rows[NUMBER, order[starts[s]]]
        for i in range(starts[s], starts[s + 1]):
            widths[s] += min(max(rows[COUNT, order[i]], 1), 65536)
            batches[s] += np.int64(rows[ENTRY, order[i]] == 0)
    return origins, widths, batches


@njit(nogil=True, cache=True)
def pair(
    rows: Ints, order: Ints, starts: Ints, origins: Ints, widths: Ints, entries: Bytes, at: Ints,
    action: npt.NDArray[np.int8], args: Ints, append: int, index: int, where: Ints, extended: bool,
) -> Ints:  # fmt: skip
    """Events of `queue`: every message's `append`, followed by the `index` of its entry where that is written.

    `entries` holds the slots of numbers `origins[s]` to `origins[s] + widths[s]` from `at[s]` on, 20 bytes each; a
    slot of zeros is not written yet. `where`: rows of `args` for number, count, position, size and tag. `extended`:
    tag codes may be addresses in consumequeue_ext. Returns where each piece's events begin.

    A tag code that cannot be judged is taken for the message's own. So is the time in an entry of the schedule topic
    if it lies whole seconds behind the store time: delay levels may be set anew at every start (seen: reference F).
    """
    begin = np.empty(len(starts), np.int64)
    begin[0] = 0
    n = 0
    for s in range(len(starts) - 1):
        for i in range(starts[s], starts[s + 1]):
            r = order[i]
            number = rows[NUMBER, r]
            slot = number - origins[s]
            has = False
            position, size, tag = np.int64(0), np.int64(0), np.int64(0)
            if rows[ENTRY, r] != 0 and 0 <= slot < widths[s]:
                p = at[s] + 20 * slot
                position = i64(entries, p)
                size = i32(entries, p + 8)
                tag = i64(entries, p + 12)
                has = position != 0 or size != 0 or tag != 0
                loose = rows[LOOSE, r]
                delay = tag - rows[MOMENT, r]
                if (
                    loose == UNSURE
                    or (loose == SCHEDULED and 0 < delay < FOREVER and delay % 1000 == 0)
                    or (extended and tag <= EXTENDED)
                ) and size != BLANK_SLOT:
                    tag = rows[TAG, r]
            action[n] = append
            args[where[0], n] = number
            args[where[1], n] = rows[COUNT, r]
            args[where[2], n] = rows[PLACE, r]
            args[where[3], n] = rows[LENGTH, r]
            args[where[4], n] = rows[TAG, r]
            n += 1
            if has:
                action[n] = index
                args[where[0], n] = number
                args[where[2], n] = position
                args[where[3], n] = size
                args[where[4], n] = tag
                n += 1
        begin[s + 1] = n
    return begin
