"""The indexes of a segment: by offset, by time, and of aborted transactions, in columns.

The first two are files of a fixed size while their segment is written, with zeros behind the entries.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.kafka.log.tables import Ints

LARGEST = 256 << 20
"""Bytes of an index that are read: a broker makes them of 10 MiB, if it has no other setting."""
EXTENTS = 64
"""Parts of a file with holes between them: of one with more, all is read."""
OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
TIME_ENTRY = np.dtype([("time", ">i8"), ("offset", ">i4")])
ABORTED_ENTRY = np.dtype([
    ("version", ">i2"), ("producer", ">i8"), ("first", ">i8"), ("last", ">i8"), ("stable", ">i8"),
])  # fmt: skip


@dataclass(frozen=True, eq=False)
class EntryFile:
    """A file of entries. `blanks`: entries of zeros at its end · `rest`: bytes behind the last whole entry."""

    blanks: int
    rest: int

    @property
    def fault(self) -> str:
        """The reason for which the file is none of entries; empty as a rule."""
        return f"{self.rest} bytes behind the last whole entry" if self.rest else ""


@dataclass(frozen=True, eq=False)
class OffsetIndexColumns(EntryFile):
    """Entries of an offset index: an offset of the log, and the byte at which its batch begins."""

    offset: Ints
    position: Ints


@dataclass(frozen=True, eq=False)
class TimeIndexColumns(EntryFile):
    """Entries of a time index: the greatest time up to an offset."""

    time: Ints
    offset: Ints


@dataclass(frozen=True, eq=False)
class AbortedColumns(EntryFile):
    """Entries of an index of aborted transactions. `last`: the offset of the marker · `stable`: the stable offset."""

    version: Ints
    producer: Ints
    first: Ints
    last: Ints
    stable: Ints


def offset_index(path: Path, base: int) -> OffsetIndexColumns:
    """Read the offset index of a segment. Raises OSError."""
    entries, blanks, rest = _entries(path, OFFSET_ENTRY, are_trimmed=True)
    return OffsetIndexColumns(blanks, rest, base + _column(entries, "offset"), _column(entries, "position"))


def time_index(path: Path, base: int) -> TimeIndexColumns:
    """Read the time index of a segment. Raises OSError."""
    entries, blanks, rest = _entries(path, TIME_ENTRY, are_trimmed=True)
    return TimeIndexColumns(blanks, rest, _column(entries, "time"), base + _column(entries, "offset"))


def aborted_index(path: Path) -> AbortedColumns:
    """Read the index of aborted transactions of a segment. Raises OSError."""
    entries, blanks, rest = _entries(path, ABORTED_ENTRY, are_trimmed=False)
    return AbortedColumns(blanks, rest, *(_column(entries, name) for name in ABORTED_ENTRY.names or ()))


def _column(entries: npt.NDArray[np.void], name: str) -> Ints:
    return entries[name].astype(np.int64)


def _entries(path: Path, kind: np.dtype[np.void], *, are_trimmed: bool) -> tuple[npt.NDArray[np.void], int, int]:
    """The entries of a file, the number of blank ones at its end, and the bytes that are no whole entry."""
    data, size = _written(path)
    used = len(data.rstrip(b"\0")) if are_trimmed else size
    whole = size // kind.itemsize
    count = min(-(-used // kind.itemsize), whole)
    data = data[: count * kind.itemsize].ljust(count * kind.itemsize, b"\0")
    return np.frombuffer(data, kind, count), whole - count, size - whole * kind.itemsize


def _written(path: Path) -> tuple[bytes, int]:
    """The bytes of a file without the hole at its end, which reads as zeros, and the size of the file."""
    with path.open("rb") as file:
        size = min(os.fstat(file.fileno()).st_size, LARGEST)
        end = _hole_at_end(file.fileno(), size)
        file.seek(0)
        return file.read(end), size


def _hole_at_end(file: int, size: int) -> int:
    """The place of the hole at the end of a file; its size if there is none, or the system does not know holes."""
    end = 0
    for _ in range(EXTENTS):
        try:
            end = os.lseek(file, os.lseek(file, end, os.SEEK_DATA), os.SEEK_HOLE)
        except OSError as error:
            return min(end, size) if error.errno == errno.ENXIO else size
    return size
