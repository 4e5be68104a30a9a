"""A disk in memory, for what is to touch no file of the machine, as when native code is loaded."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

import numpy as np

from gapless.impl.environment.mapped_file import Bytes
from gapless.impl.environment.operating_system import File


class FileInMemory:
    """A file in memory, with the protocol `operating_system.File`."""

    def __init__(self, length: int) -> None:
        self.data: Bytes = np.zeros(length, np.uint8)

    def reserve(self, low: int, high: int) -> None:
        """There is room for it."""

    def used(self) -> int:
        """The end of the file: it does not know its zeros."""
        return len(self.data)

    def rest(self) -> None:
        """It has nothing to let go."""

    def expect_sparse_use(self) -> None:
        """It is in memory whole."""

    def sync(self) -> None:
        """It is as durable as it will ever be."""

    def require_whole(self) -> None:
        """True always: no other process can have it."""

    def close(self) -> None:
        """There is nothing to close."""


class _ReadOnly(FileInMemory):
    """The same bytes, which cannot be written here."""

    def __init__(self, file: FileInMemory) -> None:
        self.data = file.data.view()
        self.data.flags.writeable = False


class MemoryDisk:
    """A disk in memory, with the protocol `operating_system.Disk`. `file`: makes a file of so many bytes."""

    def __init__(self, file: Callable[[int], FileInMemory] = FileInMemory) -> None:
        self._file = file
        self.files: dict[str, FileInMemory] = {}
        self._small: dict[str, bytes] = {}
        self._locked = False

    def names(self, folder: str) -> dict[str, int]:
        """The files in a folder, sorted, and their lengths in bytes."""
        lengths = {path: len(file.data) for path, file in self.files.items()}
        lengths |= {path: len(content) for path, content in self._small.items()}
        apart = ((*path.rpartition("/")[::2], length) for path, length in sorted(lengths.items()))
        return {name: length for above, name, length in apart if above == folder}

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder, sorted."""
        within = f"{folder}/" if folder else ""
        rest = (path.removeprefix(within) for path in (*self.files, *self._small) if path.startswith(within))
        return sorted({path.partition("/")[0] for path in rest if "/" in path})

    def create(self, path: str, length: int, *, durable: bool = True) -> FileInMemory:  # noqa: ARG002 - none is durable.
        """A new file of zeros. Raises FileExistsError."""
        if path in self.files:
            raise FileExistsError(errno.EEXIST, "there is one already", path)
        self.files[path] = self._file(length)
        return self.files[path]

    def open(self, path: str, *, write: bool) -> FileInMemory:
        """A file that is there. Raises FileNotFoundError."""
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
        return self.files[path] if write else _ReadOnly(self.files[path])

    def sync(self, files: Sequence[File]) -> None:
        """They are as durable as they will ever be."""
        for file in files:
            file.sync()

    def sync_all(self) -> None:
        """Sync all files, as `sync` does."""

    def delete(self, path: str) -> None:
        """The file is gone, if it was there."""
        self.files.pop(path, None)
        self._small.pop(path, None)

    def read(self, path: str) -> bytes | None:
        """A small file's content; None if it is not there."""
        return self._small.get(path)

    def write(self, path: str, content: bytes) -> None:
        """A small file's content is replaced."""
        self._small[path] = content

    def lock(self) -> None:
        """No other writer opens this store until `unlock`. Raises BlockingIOError."""
        if self._locked:
            raise BlockingIOError(errno.EAGAIN, "another writer holds it", "lock")
        self._locked = True

    def unlock(self) -> None:
        """Others may write."""
        self._locked = False
