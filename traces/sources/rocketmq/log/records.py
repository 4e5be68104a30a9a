"""One record of the commit log: its fields, and their offsets (docs/rocketmq.md#record)."""

# ruff: noqa: FBT001
# Kernels are called by position.

from __future__ import annotations

import struct
from typing import NamedTuple

from gapless.native import BOOL, BYTES, I64, INTS, TABLE, function, native
from gapless.traces.sources.rocketmq.columns.bytes import (
    Bytes,
    Crcs,
    Ints,
    crc31,
    digest,
    i32,
    is_name,
    place_of,
    u16,
    u32,
)
from gapless.traces.sources.rocketmq.columns.property_walk import ends_in, next_end
from gapless.traces.sources.rocketmq.store.names import (
    OF_BROKER,
    PROPERTY_CRC,
    RETRY,
    SCHEDULE_TOPIC,
    UNIQ_KEY,
    as_bytes,
)

MAGIC_V1 = 0xDAA320A7
MAGIC_V2 = 0xDAA320AB  # the topic's length takes two bytes
MAGIC_BLANK = 0xCBD43194
HEADER = 112  # bytes up to the body, with IPv6 hosts
SMALLEST = 91  # bytes of a V1 record with IPv4 hosts, and neither body, topic nor properties
BLANK = 8

SYS_BORN_V6 = 0x10
SYS_STORE_V6 = 0x20
SYS_COMMITTED = 0x8
SYS_OUTSIDE = 0x4  # transaction types 4 (prepared) and 12 (rolled back) have this bit, and no place in a queue
SYS_TRANSACTION = SYS_OUTSIDE | SYS_COMMITTED
SYS_INNER_BATCH = 0x80

SCHEDULE, _RETRY, _OF_BROKER = as_bytes(SCHEDULE_TOPIC), as_bytes(RETRY), as_bytes(OF_BROKER)


class Header(NamedTuple):
    """The fields of one record that are read outside of the scan, to describe a damaged place."""

    size: int
    magic: int
    claimed: int  # the position that it names as its own
    time: int  # ms, when it was stored
    body: int  # bytes

    @property
    def known(self) -> bool:
        """True if the magic number is a record's."""
        return self.magic in (MAGIC_V1, MAGIC_V2)


def header(data: bytes) -> Header:
    """Parses the header in the first bytes of `data`; missing bytes count as zeros."""
    data = data[:HEADER].ljust(HEADER, b"\0")
    size, magic = struct.unpack_from(">iI", data)
    claimed, flags = struct.unpack_from(">qi", data, 28)
    time_at = 48 + (20 if flags & SYS_BORN_V6 else 8)
    (time,) = struct.unpack_from(">q", data, time_at)
    (body,) = struct.unpack_from(">i", data, time_at + 8 + (20 if flags & SYS_STORE_V6 else 8) + 12)
    return Header(size, magic, claimed, time, body)


class PlainRecord(NamedTuple):
    """A record in plain Python: for the few whose differences are described."""

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


def plain(data: bytes) -> PlainRecord | None:
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
    return PlainRecord(topic, queue, number, flag, kind, born, reconsumed, half, body, properties)


# -- in native code ------------------------------------------------------------------------------------------------


class RecordParts(NamedTuple):
    """The offsets of a record's parts, in bytes from the begin of the data."""

    flags: int
    time: int  # when it was stored: the field that is followed by the host that stored it
    body: int
    topic: int  # behind the body
    topic_end: int
    low: int  # its properties, to `high`
    high: int


@function(inline=True)
def parts(b: Bytes, p: int, v2: bool) -> RecordParts:
    """The parts of the record at `p`; `v2`: its topic's length takes two bytes. Nothing is asked of their sizes."""
    flags = i32(b, p + 36)
    time = p + 48 + (20 if flags & SYS_BORN_V6 else 8)
    body = time + 8 + (20 if flags & SYS_STORE_V6 else 8) + 16
    topic = body + i32(b, body - 4) + (2 if v2 else 1)
    topic_end = topic + (u16(b, topic - 2) if v2 else b[topic - 1])
    low = topic_end + 2
    return RecordParts(flags, time, body, topic, topic_end, low, low + u16(b, topic_end))


@function(inline=True)
def is_parked(b: Bytes, r: RecordParts) -> bool:
    """True if a message is only in the queue of its own topic, whatever queues it names: it waits or is retried.

    Source: docs/rocketmq.md#multi-dispatch.
    """
    low, high = r.topic, r.topic_end
    again = is_name(b, low, min(high, low + len(_RETRY)), _RETRY)
    by_broker = is_name(b, low, min(high, low + len(_OF_BROKER)), _OF_BROKER)
    return again or by_broker or is_name(b, low, high, SCHEDULE)


@function
def measure(b: Bytes, p: int, e: int, v2: bool) -> int:
    """The length of the record at `p` by its parts, or 0 where they reach beyond `e`."""
    if p + SMALLEST > e:
        return 0
    flags = i32(b, p + 36)
    at = p + 60 + (20 if flags & SYS_BORN_V6 else 8) + 8 + (20 if flags & SYS_STORE_V6 else 8)
    if at + 4 > e:
        return 0
    body = i32(b, at)
    at += 4 + body
    if body < 0 or at + 2 > e:
        return 0
    at += 2 + u16(b, at) if v2 else 1 + int(b[at])
    if at + 2 > e:
        return 0
    at += 2 + u16(b, at)
    return (at - p) if at <= e else 0


@function
def whole_size(b: Bytes, p: int, stop: int) -> int:
    """The size of the record at `p`; 0 where no whole one ends by `stop`, and -1 where a blank ends the file."""
    size, magic = u32(b, p), u32(b, p + 4)
    if magic == MAGIC_BLANK:
        return -1
    v2 = magic == MAGIC_V2
    if not (v2 or magic == MAGIC_V1) or size < SMALLEST or p + size > stop or measure(b, p, p + size, v2) != size:
        return 0
    return int(size)


@native(lambda _b, places, _sizes: len(places), kinds=(BYTES, INTS, INTS))
def find_sizes(b: Bytes, places: Ints, sizes: Ints) -> None:
    """Writes the length of the record at each of `places` of `b` into `sizes`, or 0 where no whole one is."""
    for i in range(len(places)):
        p = places[i]
        sizes[i] = 0
        if p >= 0 and p <= len(b) - SMALLEST:
            sizes[i] = measure(b, p, len(b), u32(b, p + 4) == MAGIC_V2)


@native(lambda *_: 0, kinds=(BYTES, I64, I64, BOOL))
def length_of(b: Bytes, p: int, e: int, v2: bool) -> int:
    """`measure`, for one record."""
    return measure(b, p, e, v2)


_SEAL_NAME = as_bytes(PROPERTY_CRC)
SEAL = 20  # bytes: the property CRC with its name and both separators


@function(inline=True)
def ends_well(b: Bytes, r: RecordParts, several: bool) -> bool:
    """True if the properties end as a list does; zeros are no end.

    `several`: the message names several queues. Behind the properties of such a message, 5.2.0 leaves room for a
    property CRC, with the old content of that memory. Source: docs/rocketmq.md#multi-dispatch.
    """
    room = several and r.high - r.low > SEAL and b[r.high - 1 - SEAL] == 2
    return r.low == r.high or b[r.high - 1] != 0 or room


ALIKE = 5  # bytes of nine by which a name is known that was damaged


@function
def seal_holds(b: Bytes, p: int, size: int, tables: Crcs) -> int:
    """Returns 1 if the record ends in its CRC, 0 for another number, -1 without one.

    If most bytes of the entry's name are there, and the number is the record's CRC, the name was damaged.

    Source: docs/rocketmq.md#property-crc.
    """
    at = p + size - SEAL
    alike = int(b[at + 8] == 1)
    for i in range(8):
        alike += int(b[at + i] == _SEAL_NAME[i])
    if alike < ALIKE:
        return -1
    named, value = alike == 9, 0
    for i in range(9, -1, -1):  # least significant digit first
        if not 48 <= b[at + 9 + i] <= 57:
            return 0 if named else -1
        value = value * 10 + (b[at + 9 + i] - 48)
    holds = value == crc31(b, p, size - SEAL, tables)
    if not named:
        return 0 if holds else -1
    return int(holds and b[at + 19] == 2)


_KEY_NAME = as_bytes(UNIQ_KEY)
KEY_ROWS = 4  # of what `find_keys` finds


_RUNS_INTO = as_bytes("CLUSTER")


@function(inline=True)
def value_end(b: Bytes, low: int, high: int) -> int:
    """Returns the end of the value in `low:high`: before the name of a property that follows without separator.

    Source: docs/rocketmq.md#client-batches.
    """
    k = place_of(b, low, high, 1)
    begin = k - len(_RUNS_INTO)
    return begin if k < high and begin > low and is_name(b, begin, k, _RUNS_INTO) else high


@function(inline=True)
def _unique_key(b: Bytes, p: int) -> tuple[int, int, int, int, int, int]:
    """Returns bounds of the UNIQ_KEY, CRC and length of the body, and the place of the first UNIQ_KEY.

    The last of two keys counts, as in the broker. No key is empty.
    """
    r = parts(b, p, u32(b, p + 4) == MAGIC_V2)
    begin, end, first, first_end = 0, 0, 0, 0
    k = at = r.low
    ends = ends_in(b, at, r.high)
    while k < r.high:
        w, at, ends = next_end(b, k, at, ends, r.high)
        if w - k > 9 and b[k] == 85 and is_name(b, k, k + 8, _KEY_NAME) and b[k + 8] == 1:  # U
            begin, end = k + 9, value_end(b, k + 9, w)
            if first_end == 0:
                first, first_end = begin, end
        k = w + 1
    return begin, end, u32(b, p + 8), i32(b, r.body - 4), first, first_end


@native(lambda _b, places, *_: len(places), kinds=(BYTES, INTS, TABLE, I64))
def find_keys(b: Bytes, places: Ints, keys: Ints, first_record: int) -> None:
    """Writes digest of UNIQ_KEY, and CRC and length of the body, of each record at `places` of `b`.

    They go into `keys` [4, records], those of the first place into column `first_record`.

    Last comes the digest of the first UNIQ_KEY, the message's own, where a broker has put that of its batch behind it
    (docs/rocketmq.md#client-batches).
    """
    for i in range(len(places)):
        low, high, crc, length, first, first_end = _unique_key(b, places[i])
        k = first_record + i
        keys[0, k], keys[1, k], keys[2, k] = digest(b, low, high), crc, length
        keys[3, k] = keys[0, k] if first == low else digest(b, first, first_end)


@native(lambda _b, places, _spans: len(places), kinds=(BYTES, INTS, TABLE))
def find_names(b: Bytes, places: Ints, spans: Ints) -> None:
    """Writes begin and end of the UNIQ_KEY of each record at `places` of `b` into `spans` [2, records].

    Both are 0 without a record: a broker may have cut off its log since the places were found.
    """
    for i in range(len(places)):
        spans[0, i] = spans[1, i] = 0
        p = places[i]
        if p < 0 or p + SMALLEST > len(b) or measure(b, p, len(b), u32(b, p + 4) == MAGIC_V2) == 0:
            continue
        spans[0, i], spans[1, i], _crc, _length, _first, _first_end = _unique_key(b, p)
