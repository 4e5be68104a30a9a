"""Compressed bytes as a seekable file: fast forward, and backward from its start."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from gapless.traces.events.files import Codec

AT_ONCE = 1 << 20  # bytes


class _DecompressionStream(io.RawIOBase):
    """The uncompressed contents of a compressed file."""

    def __init__(self, path: Path, codec: Codec) -> None:
        self._path, self._codec = path, codec
        self._begin()

    def _begin(self) -> None:
        file = self._path.open("rb")  # closed by the stream
        self._stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), self._codec)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer).cast("B")
        some = self._stream.read(len(room))
        room[: len(some)] = some
        self._at += len(some)
        return len(some)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the end is unknown")
        wanted = offset + (self._at if whence == io.SEEK_CUR else 0)
        if wanted < self._at:
            self._begin()
        while self._at < wanted and (some := self._stream.read(min(AT_ONCE, wanted - self._at))):
            self._at += len(some)
        return self._at

    def tell(self) -> int:
        return self._at


def decompressed(path: Path, codec: Codec) -> BinaryIO:
    """Open the uncompressed contents. Reading raises OSError if the file is damaged or cut off."""
    return cast("BinaryIO", io.BufferedReader(_DecompressionStream(path, codec), AT_ONCE))


@contextmanager
def compressed(file: BinaryIO, codec: Codec | None) -> Iterator[BinaryIO]:
    """Open a file for writing; its bytes arrive compressed in `file`."""
    if codec is None:
        yield file
        return
    with pa.CompressedOutputStream(pa.PythonFile(cast("io.IOBase", file), mode="w"), codec) as out:
        yield cast("BinaryIO", out)
