"""Results that grow with the log, in files: memory does not grow with it.

A copy shares what was written before, and continues in a file of its own. So a savepoint of a log that is followed
costs next to nothing.
"""

from __future__ import annotations

import os
import struct
import tempfile
import weakref
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, ClassVar, Self

import numpy as np

from gapless.traces.problems import laid_down
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import among, distinct

CHUNK = 1 << 20  # remembered halves that are looked through at once
AT_ONCE = 8 << 20  # bytes that are copied at once
_COUNT = struct.Struct("<q")


class SharedFile:
    """A file without a name, which is only appended to, and is deleted with its last user."""

    def __init__(self) -> None:
        # Unbuffered: a buffer would be written a second time when the file is closed after a full disk.
        self.file: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with its owner
        self.size = 0
        weakref.finalize(self, self.file.close)

    def add(self, data: bytes) -> None:
        """Appends bytes. Raises OSError on a full disk."""
        with laid_down("what waits to be judged"):
            self.file.seek(self.size)
            written = 0
            while written < len(data):
                written += self.file.write(memoryview(data)[written:])
        self.size += len(data)

    def read(self, at: int, size: int) -> bytes:
        """Reads some of the bytes."""
        return os.pread(self.file.fileno(), size, at)


@dataclass
class BlockRun:
    """Adjacent blocks in a file from an offset on, with the number of columns of each."""

    spool: SharedFile
    at: int
    counts: array[int] = field(default_factory=lambda: array("q"))


class Blocks:
    """Blocks of columns of `ROWS` numbers."""

    ROWS: ClassVar[int] = 4

    def __init__(self) -> None:
        self.stretches: list[BlockRun] = []
        self.own: SharedFile | None = None  # only this object adds to it

    @property
    def columns(self) -> int:
        """The number of columns."""
        return sum(sum(stretch.counts) for stretch in self.stretches)

    def copy(self) -> Self:
        """Returns an independent copy."""
        other = type(self)()
        other.stretches = [BlockRun(one.spool, one.at, one.counts[:]) for one in self.stretches]
        return other

    def add(self, block: Ints) -> None:
        """Appends a block."""
        if not block.shape[1]:
            return
        if self.own is None:
            self.own = SharedFile()
            self.stretches.append(BlockRun(self.own, 0))
        self.own.add(np.ascontiguousarray(block).tobytes())
        self.stretches[-1].counts.append(block.shape[1])

    def blocks(self) -> Iterator[Ints]:
        """Yields the blocks."""
        for stretch in self.stretches:
            at = stretch.at
            for count in stretch.counts:
                yield np.frombuffer(stretch.spool.read(at, 8 * self.ROWS * count), np.int64).reshape(self.ROWS, count)
                at += 8 * self.ROWS * count

    def forget_before(self, start: int, column: int) -> None:
        """Drops expired columns, whose position in row `column` is before the log's start."""
        left = type(self)()
        for block in self.blocks():
            left.add(block[:, block[column] >= start])
        if left.columns < self.columns:
            self.stretches, self.own = left.stretches, left.own

    def write(self, out: IO[bytes]) -> None:
        """Writes all of it into an open file, for `read`."""
        counts = array("q", (count for stretch in self.stretches for count in stretch.counts))
        out.write(_COUNT.pack(len(counts)) + np.array(counts, "<i8").tobytes())
        for block in self.blocks():
            out.write(block.tobytes())

    @classmethod
    def read(cls, file: IO[bytes], left: int) -> Self:
        """Reads the output of `write`, at most `left` bytes. Raises ValueError for anything else."""
        (blocks,) = _COUNT.unpack(_exactly(file, _COUNT.size, left))
        counts = np.frombuffer(_exactly(file, 8 * blocks, left), "<i8")
        size = 8 * cls.ROWS * int(counts.sum())
        if size > left or counts.min(initial=1) < 1:
            raise ValueError(f"blocks of {size} bytes")
        found = cls()
        if size:
            found.own = SharedFile()
            found.stretches.append(BlockRun(found.own, 0, array("q", counts.tolist())))
            while (missing := size - found.own.size) > 0:
                found.own.add(_exactly(file, min(missing, AT_ONCE), left))
        return found


def _exactly(file: IO[bytes], size: int, left: int) -> bytes:
    """Reads exactly `size` bytes. Raises ValueError."""
    data = file.read(size) if 0 <= size <= left else b""
    if len(data) != size:
        raise ValueError(f"{size} bytes, of which {len(data)} are there")
    return data


class SettledHalves(Blocks):
    """The halves that are judged and forgotten: [4, halves] blocks, as `Judgement.settled`."""

    def again(self, keys: Ints, numbers: Ints) -> Ints:
        """Returns the rows of transactions with one of the keys or numbers, or that were settled twice."""
        wanted = distinct(np.concatenate([keys[keys != 0], self._twice(), self._keys_of(numbers)]))
        found = [block[:, among(block[0], wanted)] for block in self.blocks()]
        return np.concatenate([np.zeros((4, 0), np.int64), *found], axis=1)

    def _keys_of(self, numbers: Ints) -> Ints:
        found = [block[0, among(block[1], numbers)] for block in self.blocks()] if len(numbers) else []
        return np.concatenate([np.zeros(0, np.int64), *found])

    def _twice(self) -> Ints:
        """Returns keys that were settled more than once, in different blocks: after a repeated commit, for example."""
        parts = -(-self.columns // CHUNK)
        found = [np.zeros(0, np.int64)]
        for part in range(parts):  # a part of all keys at a time: bounds memory
            some = [
                distinct(block[0, block[0].view(np.uint64) % np.uint64(parts) == part] if parts > 1 else block[0])
                for block in self.blocks()
            ]
            keys = np.sort(np.concatenate(some))
            found.append(distinct(keys[1:][keys[1:] == keys[:-1]]))
        return np.concatenate(found)
