"""Packed columns that wait to be judged: the first ones in memory, and more in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.disk_blocks import SharedFile
from gapless.traces.sources.rocketmq.columns.packed_columns import PackedColumns, pack_columns

IN_MEMORY = 32 << 20  # bytes in memory

Written = tuple[int, PackedColumns]
"""Where columns lie in the file, and what they are like: of each, none of its rows."""


class PackedBlocks:
    """Blocks of a fixed number of columns, each of some part, in the order of arrival."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows = 0
        self._in_memory = 0
        self._blocks: dict[int, list[PackedColumns | Written]] = {}
        self._file: SharedFile | None = None

    def add(self, block: PackedColumns, part: int = 0) -> None:
        """Appends a block of a part."""
        if block.length:
            self.rows += block.length
            fits = self._in_memory + block.size <= IN_MEMORY
            self._in_memory += block.size * fits
            self._blocks.setdefault(part, []).append(block if fits else self._written(block))

    def spread(self, columns: Sequence[Ints], parts: Ints) -> None:
        """Appends rows, int64 columns, each row to a part of its own."""
        if not len(parts):
            return
        if (parts[1:] < parts[:-1]).any():
            order = np.argsort(parts, kind="stable")
            columns, parts = [column[order] for column in columns], parts[order]
        begins = [0, *(np.flatnonzero(parts[1:] != parts[:-1]) + 1).tolist(), len(parts)]
        for begin, end in pairwise(begins):
            self.add(pack_columns([column[begin:end] for column in columns]), int(parts[begin]))

    def blocks(self, part: int = 0) -> Iterator[PackedColumns]:
        """Yields the blocks of a part."""
        for block in self._blocks.get(part, ()):
            yield block if isinstance(block, PackedColumns) else self._read(*block)

    def all_of(self, part: int = 0) -> Ints:
        """Returns all of a part in one piece, int64 [columns, rows]."""
        every = list(self.blocks(part))
        found, at = np.empty((self.columns, sum(block.length for block in every)), np.int64), 0
        for block in every:
            block.fill(found[:, at : at + block.length])
            at += block.length
        return found

    def longest(self, part: int = 0) -> int:
        """The number of rows in the longest block of a part."""
        blocks = (block if isinstance(block, PackedColumns) else block[1] for block in self._blocks.get(part, ()))
        return max((block.length for block in blocks), default=0)

    def has(self, part: int) -> bool:
        """True if a part has blocks."""
        return part in self._blocks

    def _written(self, block: PackedColumns) -> Written:
        self._file = self._file or SharedFile()
        at = self._file.size
        self._file.add(b"".join(column.tobytes() for column in block.more if column is not None))
        return at, block._replace(more=tuple(None if column is None else column[:0].copy() for column in block.more))

    def _read(self, at: int, like: PackedColumns) -> PackedColumns:
        assert self._file is not None  # noqa: S101 - otherwise nothing was written
        more: list[npt.NDArray[Any] | None] = []
        for empty in like.more:
            if empty is not None:
                size = like.length * empty.itemsize
                more.append(np.frombuffer(self._file.read(at, size), empty.dtype))
                at += size
            else:
                more.append(None)
        return like._replace(more=tuple(more))
