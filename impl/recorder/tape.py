"""Where a recording is kept until it becomes events: its rows, and beside them the entries that they speak of."""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gapless.impl.files.queues import ENTRY
from gapless.impl.recorder.rows import WIDTH, Entries
from gapless.impl.records.record import Ints


class Kept(Protocol):
    """Things of one size, one behind the other."""

    count: int

    def add(self, things: npt.NDArray[Any]) -> int:
        """Keep these too; returns how many are before them. Raises OSError."""

    def all(self) -> npt.NDArray[Any]:
        """All of them, to be read. Raises OSError."""

    def forget(self) -> None:
        """Keep none any more."""


class InMemory:
    """In memory: for short runs."""

    def __init__(self, none: npt.NDArray[Any]) -> None:
        self.count = 0
        self._parts = [none]

    def add(self, things: npt.NDArray[Any]) -> int:
        """Keep these too; returns how many are before them."""
        self._parts.append(things.astype(self._parts[0].dtype, copy=False))
        self.count += len(things)
        return self.count - len(things)

    def all(self) -> npt.NDArray[Any]:
        """All of them, to be read."""
        self._parts = [np.concatenate(self._parts)]
        return self._parts[0]

    def forget(self) -> None:
        """Keep none any more."""
        self._parts = self._parts[:1]


class InFile:
    """In a file without a name in `folder`: it is gone when the process is, however that ends."""

    def __init__(self, none: npt.NDArray[Any], folder: Path) -> None:
        self.count = 0
        self._none = none
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - `forget` closes it

    def add(self, things: npt.NDArray[Any]) -> int:
        """Keep these too; returns how many are before them. Raises OSError."""
        done, content = 0, np.ascontiguousarray(things, self._none.dtype).view(np.uint8).reshape(-1)
        while done < len(content):
            done += self._file.write(content[done:].data)
        self.count += len(things)
        return self.count - len(things)

    def all(self) -> npt.NDArray[Any]:
        """All of them, to be read; those of a large file come from the disk when they are looked at. Raises OSError."""
        if not self.count:
            return self._none
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, self._none.dtype).reshape(-1, *self._none.shape[1:])

    def forget(self) -> None:
        """The file goes, and its room on the disk with the last view of it."""
        self._file.close()


class Keeping:
    """Rows int64 [n, 8], and entries; in files in `folder`, or in memory."""

    def __init__(self, folder: Path | None) -> None:
        no_rows, no_entries = np.empty((0, WIDTH), np.int64), np.empty(0, ENTRY)
        self._rows: Kept = InFile(no_rows, folder) if folder else InMemory(no_rows)
        self._entries: Kept = InFile(no_entries, folder) if folder else InMemory(no_entries)

    def add(self, rows: Ints) -> None:
        """Keep rows, behind those that are kept. Raises OSError."""
        self._rows.add(rows)

    def add_entries(self, entries: Entries) -> int:
        """Keep entries, and say behind how many others. Raises OSError."""
        return self._entries.add(entries)

    def all(self) -> tuple[Ints, Entries]:
        """Rows and entries. Raises OSError."""
        return self._rows.all(), self._entries.all()

    def forget(self) -> None:
        """Keep nothing any more."""
        self._rows.forget()
        self._entries.forget()
