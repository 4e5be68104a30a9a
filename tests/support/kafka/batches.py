"""Batches and records of Kafka's segments, byte by byte: the tests' own reader shares no code with gapless."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

HEAD = struct.Struct(">qiibIhiqqqhii")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SNAPPY = b"\x82SNAPPY\x00"
TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    TABLE.append(_byte)


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), a byte at a time."""
    crc, table = 0xFFFFFFFF, TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


class Batch(NamedTuple):
    """One batch: its head, and where its bytes are."""

    position: int
    size: int
    base: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    delta: int
    base_time: int
    max_time: int
    producer: int
    epoch: int
    sequence: int
    record_count: int
    data: bytes

    @property
    def last(self) -> int:
        """The offset of its last record."""
        return self.base + self.delta

    @property
    def codec(self) -> int:
        """The number of its codec."""
        return self.attributes & 7

    @property
    def is_append_time(self) -> bool:
        """True if the broker stamped it."""
        return bool(self.attributes & 8)

    @property
    def is_transactional(self) -> bool:
        """True if it is part of a transaction."""
        return bool(self.attributes & 16)

    @property
    def is_control(self) -> bool:
        """True if it is a marker, or a control batch of the metadata."""
        return bool(self.attributes & 32)

    @property
    def is_sound(self) -> bool:
        """True if its checksum is right."""
        return crc32c(self.data[21:]) == self.crc

    @property
    def last_sequence(self) -> int:
        """The sequence of its last record."""
        return -1 if self.sequence < 0 else (self.sequence + self.delta) % 2**31


class Record(NamedTuple):
    """One record of a batch."""

    offset: int
    time: int
    key: bytes | None
    value: bytes | None
    headers: int


class Walk(NamedTuple):
    """The batches of a segment, where they end, and what stopped the reader."""

    batches: list[Batch]
    end: int
    size: int
    stop: str


def walk(path: Path) -> Walk:
    """Every whole batch of a segment."""
    data = path.read_bytes()
    batches, at, stop = [], 0, "end"
    while at < len(data):
        if len(data) - at < 17:
            stop = "short"
            break
        length = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        if length < 49:
            stop = "zeros" if not data[at:].strip(b"\0") else "length"
            break
        if data[at + 16] != 2:
            stop = "old" if data[at + 16] in {0, 1} else "magic"
            break
        if at + 12 + length > len(data):
            stop = "short"
            break
        batches.append(batch_of(data[at : at + 12 + length], at))
        at += 12 + length
    return Walk(batches, at, len(data), stop)


def batch_of(data: bytes, position: int) -> Batch:
    """The batch that these bytes are."""
    base, _, leader, magic, crc, attributes, delta, base_time, max_time, producer, epoch, sequence, count = (
        HEAD.unpack_from(data)
    )
    return Batch(
        position,
        len(data),
        base,
        leader,
        magic,
        crc,
        attributes,
        delta,
        base_time,
        max_time,
        producer,
        epoch,
        sequence,
        count,
        data,
    )


def unpacked(batch: Batch) -> bytes:
    """The bytes of a batch's records, decompressed."""
    data = batch.data[61:]
    name = CODECS[batch.codec]
    if name == "none":
        return data
    if name == "gzip":
        return zlib.decompress(data, 31)
    if name == "snappy":
        return b"".join(_snappy(data))
    return bytes(pa.CompressedInputStream(pa.BufferReader(data), "lz4" if name == "lz4" else "zstd").read())


def _snappy(data: bytes) -> Iterator[bytes]:
    if data[:8] != SNAPPY:
        yield _raw_snappy(data)
        return
    at = 16
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        yield _raw_snappy(data[at + 4 : at + 4 + size])
        at += 4 + size


def _raw_snappy(data: bytes) -> bytes:
    size, shift, at = 0, 0, 0
    while True:
        size |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 0x80:
            break
    return bytes(pa.decompress(data, decompressed_size=size, codec="snappy"))


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number >> 1 ^ -(number & 1), at
        shift += 7


def records(batch: Batch) -> list[Record]:
    """Every record of a batch; ValueError if they do not end where the batch does."""
    data, at, found = unpacked(batch), 0, []
    for _ in range(batch.record_count):
        size, at = varint(data, at)
        end = at + size
        at += 1
        time, at = varint(data, at)
        delta, at = varint(data, at)
        key, at = _bytes(data, at)
        value, at = _bytes(data, at)
        headers, at = varint(data, at)
        for _ in range(headers):
            _, at = _bytes(data, at)
            _, at = _bytes(data, at)
        if at != end:
            raise ValueError(f"a record ends at {at}, and its length says {end}")
        stamp = batch.max_time if batch.is_append_time else batch.base_time + time
        found.append(Record(batch.base + delta, stamp, key, value, headers))
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes behind the last record")
    return found


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = varint(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise ValueError("a key or value ends behind the batch")
    return data[at : at + size], at + size


class Marker(NamedTuple):
    """A marker's type (0 ABORT, 1 COMMIT, 2–6 of the metadata log) and its coordinator's epoch."""

    type: int
    coordinator: int


def marker(batch: Batch) -> Marker | None:
    """The marker that a control batch is; None for data."""
    if not batch.is_control:
        return None
    (record,) = records(batch)
    if record.key is None or record.value is None:
        raise ValueError("a control record without key or value")
    kind = int.from_bytes(record.key[2:4], "big")
    return Marker(kind, int.from_bytes(record.value[2:6], "big", signed=True) if kind < 2 else -1)
