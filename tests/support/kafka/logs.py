"""Batches and segments made from their fields, byte by byte: an independent writing of what the source reads."""

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from gapless.traces.sources.kafka.log.checksums import checksum

HEAD = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, checksum, attributes, last delta, times, producer, epoch, sequence."""
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4


def varint(value: int) -> bytes:
    """A signed number of variable length."""
    bits = (value << 1) ^ (value >> 63)
    made = b""
    while bits > 127:
        made += bytes([bits & 127 | 128])
        bits >>= 7
    return made + bytes([bits])


def text(value: bytes | None) -> bytes:
    """A text with its length; null is -1."""
    return varint(-1) if value is None else varint(len(value)) + value


@dataclass(frozen=True)
class Message:
    """A record."""

    value: bytes | None = b"value"
    key: bytes | None = None
    time: int = 0  # after the batch's
    delta: int | None = None  # of its offset; its number if left out
    headers: Mapping[bytes, bytes | None] = field(default_factory=dict)

    def encoded(self, number: int) -> bytes:
        """Its bytes."""
        body = b"\x00" + varint(self.time) + varint(number if self.delta is None else self.delta)
        body += text(self.key) + text(self.value) + varint(len(self.headers))
        body += b"".join(text(key) + text(value) for key, value in self.headers.items())
        return varint(len(body)) + body


def framed(data: bytes, block: int = 32 << 10) -> bytes:
    """Snappy as the Java client frames it."""
    parts = [pa.compress(data[at : at + block], "snappy", asbytes=True) for at in range(0, len(data), block)]
    head = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    return head + b"".join(struct.pack(">i", len(part)) + part for part in parts)


PACK: Mapping[int, Callable[[bytes], bytes]] = {
    0: bytes,
    GZIP: lambda data: zlib.compress(data, wbits=31),
    SNAPPY: framed,
    LZ4: lambda data: _stream(data, "lz4"),
    ZSTD: lambda data: _stream(data, "zstd"),
}


def _stream(data: bytes, codec: Literal["lz4", "zstd"]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def batch(
    base: int = 0, messages: Sequence[Message] = (Message(),), *, codec: int = 0, attributes: int = 0, **fields: Any
) -> bytes:
    """A batch. `fields`: of the head, where they are to be others than the records imply; `body`: the records."""
    body = fields.get("body")
    if body is None:
        body = PACK[codec](b"".join(message.encoded(at) for at, message in enumerate(messages)))
    time = fields.get("time", 1_700_000_000_000)
    late = max((message.time for message in messages), default=0)
    covered = struct.pack(
        ">hiqqqhii",
        attributes | codec,
        fields.get("delta", len(messages) - 1),
        time,
        fields.get("max_time", time + late),
        fields.get("producer", -1),
        fields.get("epoch", -1),
        fields.get("sequence", -1),
        fields.get("count", len(messages)),
    )
    covered += body
    crc = fields.get("crc", checksum(covered))
    head = struct.pack(
        ">qiibI", base, fields.get("length", len(covered) + 9), fields.get("leader", 0), fields.get("magic", 2), crc
    )
    return bytes(head + covered)


def marker(base: int, *, commit: bool, producer: int = 7, epoch: int = 0, coordinator: int = 0) -> bytes:
    """The batch that ends a transaction."""
    record = Message(struct.pack(">hi", 0, coordinator), struct.pack(">hh", 0, int(commit)))
    return batch(base, [record], attributes=0x30, producer=producer, epoch=epoch)


def segment(*counts: int, base: int = 0, codec: int = 0, size: int = 40) -> bytes:
    """Batches with so many records, one behind the other."""
    made = b""
    for count in counts:
        made += batch(base, [Message(b"x" * size, time=at) for at in range(count)], codec=codec)
        base += count
    return made
