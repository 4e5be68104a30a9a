"""The codecs of batches: one compressed block of records behind the head, unpacked into memory that is bounded.

gzip, LZ4 frames and zstd frames are streams. Snappy has blocks of known size, framed as snappy-java writes them, or one
block as other clients do. https://github.com/xerial/snappy-java#compatibility-notes
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from gapless.traces.sources.kafka.log.batches import GZIP, LZ4, SNAPPY, ZSTD
from gapless.traces.sources.kafka.log.tables import Bytes

LARGEST = 128 << 20
"""Bytes to which a batch may be unpacked."""
FULL = 512 << 10
"""Bytes of blocks that are kept together: from here on they are to be read, and forgotten."""
STREAMS: dict[int, Literal["gzip", "lz4", "zstd"]] = {GZIP: "gzip", LZ4: "lz4", ZSTD: "zstd"}
FRAMING = b"\x82SNAPPY\x00"
FRAMED = 16  # bytes before the first block: the framing's name, its version, and the least version that reads it


class CodecError(Exception):
    """The bytes are no block of their codec."""


class TooLarge(Exception):  # noqa: N818 - as above
    """The block unpacks to more than `LARGEST` bytes."""


class Unpacker:
    """Memory into which blocks are unpacked, one behind the other. `used`: bytes of it."""

    def __init__(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 - it loads slowly

        self.room: Bytes = np.empty(2 * FULL, np.uint8)
        self.used = 0
        self._library = pa

    @property
    def is_full(self) -> bool:
        """True if the blocks are to be read before another one is added."""
        return self.used >= FULL

    def clear(self) -> None:
        """Forget all blocks."""
        self.used = 0

    def add(self, codec: int, block: memoryview) -> tuple[int, int]:
        """Unpack a block; returns where it begins and ends. Raises CodecError, TooLarge."""
        begin = end = self.used
        try:
            if codec == SNAPPY:
                for part in _parts(block):
                    end = self._snappy(part, begin, end)
            elif codec in STREAMS:
                end = self._stream(STREAMS[codec], block, begin)
            else:
                raise CodecError(f"there is no codec {codec}")
        except (OSError, ValueError) as error:
            raise CodecError(str(error)) from error
        self.used = end
        return begin, end

    def _stream(self, codec: Literal["gzip", "lz4", "zstd"], block: memoryview, begin: int) -> int:
        end = begin
        self._have(begin, min(4 * len(block), LARGEST))
        with self._library.CompressedInputStream(self._library.BufferReader(block), codec) as stream:
            while count := stream.readinto(self.room[end:].data):
                end += count
                if end == len(self.room):
                    self._have(begin, max(min(2 * (end - begin), LARGEST), end - begin))
        return end

    def _snappy(self, block: memoryview, begin: int, at: int) -> int:
        size = _snappy_size(block)
        self._have(begin, at - begin + size)
        if size:
            unpacked = self._library.decompress(block, decompressed_size=size, codec="snappy")
            self.room[at : at + size] = np.frombuffer(memoryview(unpacked), np.uint8)
        return at + size

    def _have(self, begin: int, count: int) -> None:
        """Make room for so many bytes from `begin` on, and for one more, so that an end is seen."""
        if count > LARGEST:
            raise TooLarge
        if begin + count >= len(self.room):
            larger = np.empty(begin + count + 1, np.uint8)
            larger[: len(self.room)] = self.room
            self.room = larger


def _parts(block: memoryview) -> Iterator[memoryview]:
    """The blocks of snappy: of snappy-java's framing, each with its length before it; else the whole."""
    if block[:8] != FRAMING:
        yield block
        return
    at = FRAMED
    while at < len(block):
        length = int.from_bytes(block[at : at + 4], "big")
        if at + 4 + length > len(block):
            raise CodecError("a block of snappy reaches beyond its batch")
        yield block[at + 4 : at + 4 + length]
        at += 4 + length


def _snappy_size(block: memoryview) -> int:
    """The size that a block of snappy names in its first bytes."""
    size = 0
    for at, byte in enumerate(block[:5]):
        size |= (byte & 127) << (7 * at)
        if byte < 128:
            if size > 64 * len(block):  # a copy of 64 bytes takes at least three, a literal at least its own
                raise CodecError("a block of snappy names a size that it cannot have")
            return size
    raise CodecError("a block of snappy has no size")
