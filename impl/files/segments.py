"""Files of one size, laid end to end: what a commit log and a consume queue are made of (docs/rocketmq.md#files).

A file is named by the position of its first byte, in twenty digits, and has its full length from the start. What is not
written yet is zeros.
"""

from __future__ import annotations

import errno
import re
from bisect import insort
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from gapless.impl.environment.mapped_file import Bytes
from gapless.impl.environment.operating_system import Disk, File
from gapless.impl.records.errors import Damaged, DiskFull, NotAStore, StoreError, WrongFileSize

T = TypeVar("T")

_NAME = re.compile(r"\d{20}")


class MappedFiles:
    """The files that are in memory, of many `Segments` together: about `most` of them, those that were used last."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._all: deque[tuple[Segments, int]] = deque()  # those opened first stand first
        self._choosing = Lock()

    def count(self) -> int:
        """Their approximate number."""
        return len(self._all)

    def add(self, segments: Segments, base: int) -> None:
        """Count one more file in memory; if it is one too many, another is released as soon as it is unused.

        It is not closed: another thread may still sync it.
        """
        with self._choosing:
            self._all.append((segments, base))
            for _ in range(2 * len(self._all)):
                if len(self._all) <= self.most:
                    break
                other, at = self._all.popleft()
                if other.was_used(at):  # since it was looked at last: it has a second chance
                    self._all.append((other, at))


class Segments:
    """The files in one folder. `size`: bytes of each · `bases`: where they begin, rising.

    `mapped`: what keeps few of the files in memory, where there may be many; without it all stay that were used.
    """

    def __init__(self, disk: Disk, folder: str, size: int, mapped: MappedFiles | None = None) -> None:
        self.disk = disk
        self.folder = folder
        self.size = size
        self.mapped = mapped
        self.bases: list[int] = []
        self.unborn: int | None = None  # a file without bytes, that was being made when the power went: it is none
        self._open: dict[int, File] = {}
        self._used: set[int] = set()  # since the last look for a file to release
        self._rooms: dict[int, int] = {}  # bytes of a file for which there is room on the disk, as far as is known
        self._apart: tuple[int, File] | None = None  # a file that is open a second time
        self._syncing_apart = Lock()

    @classmethod
    def load(cls, disk: Disk, folder: str, size: int, mapped: MappedFiles | None = None) -> Segments:
        """The files that are there. Nothing is changed. Raises NotAStore, WrongFileSize, Damaged, StoreError."""
        found = cls(disk, folder, size, mapped)
        listed = asked(lambda: disk.names(folder), folder)
        names = {name: length for name, length in listed.items() if not name.startswith(".")}
        if strange := sorted(name for name in names if not _NAME.fullmatch(name)):
            raise NotAStore(f"{folder}/{strange[0]}: expected file names of twenty digits; move it elsewhere")
        lengths = {int(name): length for name, length in sorted(names.items())}
        if lengths and not lengths[last := max(lengths)]:
            del lengths[last]
            found.unborn = last
        for base, length in lengths.items():
            if length != size:
                raise WrongFileSize(
                    f"{found.path(base)}: {length} bytes, expected {size} as in the settings; open the store with the "
                    "file size that it was made with"
                )
            if base % size or (found.bases and base != found.bases[-1] + size):
                raise Damaged(f"{found.path(base)}: expected the file that begins at {found.next_base()}; restore it")
            found.bases.append(base)
        return found

    def look_again(self) -> None:
        """The files that are there by now, for those who read while others write. Raises as `load` does."""
        found = Segments.load(self.disk, self.folder, self.size)
        for gone in sorted(set(self._open) - set(found.bases)):
            self._open.pop(gone).close()
        self.bases, self.unborn = found.bases, found.unborn

    def path(self, base: int) -> str:
        """A file's name, from the store's folder on."""
        return f"{self.folder}/{base:020d}"

    def place(self, position: int) -> str:
        """A position for people: file and offset."""
        base = position // self.size * self.size
        return f"{self.path(base)}+{position - base}"

    def next_base(self) -> int:
        """The position at which the next file would begin."""
        return self.bases[-1] + self.size if self.bases else 0

    def file(self, position: int, *, write: bool = False) -> File:
        """The file that holds a position, which has one. Raises StoreError where the disk does.

        Keep a reference to its bytes for as long as they are used: it may be let go, and be opened again.
        """
        base = position // self.size * self.size
        found = self._open.get(base)
        if found is None or (write and not found.data.flags.writeable):
            found = self._keep(base, asked(lambda: self.disk.open(self.path(base), write=write), self.path(base)))
        if self.mapped is not None:
            self._used.add(base)
        return found

    def whole(self, position: int, *, write: bool = False) -> File:
        """The file, as `file`, with bytes that may be touched. Raises StoreError if another program cut it off."""
        found = self.file(position, write=write)
        try:
            found.require_whole()
        except OSError as error:
            raise StoreError(f"{self.path(position // self.size * self.size)}: {error.strerror}; restore it") from error
        return found

    def sync_apart(self, base: int) -> None:
        """Sync a file through a descriptor of its own: an error of the disk is reported to each. Raises OSError."""
        with self._syncing_apart:
            if self._apart is None or self._apart[0] != base:
                self._close_apart()
                self._apart = base, self.disk.open(self.path(base), write=True)
            self._apart[1].sync()

    def _close_apart(self) -> None:
        apart, self._apart = self._apart, None
        if apart is not None and apart[1] is not self._open.get(apart[0]):  # a disk in memory has one file of a name
            apart[1].close()

    def reserve(self, base: int, upto: int) -> None:
        """There is room on the disk for a file's bytes before `upto`. Raises DiskFull, StoreError."""
        known = self._rooms.get(base, 0)
        if known < upto:
            file = self.file(base, write=True)
            asked(lambda: file.reserve(known, upto), self.path(base))
            self._rooms[base] = upto

    def taken(self, end: int) -> int:
        """Bytes of the disk that the files take, as far as is known, where they are written to up to `end`."""
        return sum(max(self._rooms.get(base, 0), min(max(end - base, 0), self.size)) for base in self.bases.copy())

    def count_mapped(self) -> int:
        """The number of files in memory."""
        return len(self._open)

    def was_used(self, base: int) -> bool:
        """True if a file was used since the last call. If not, it is released."""
        if base in self._used:
            self._used.discard(base)
            return base in self._open
        self._open.pop(base, None)
        return False

    def _keep(self, base: int, file: File) -> File:
        before = self._open.get(base)
        self._open[base] = file
        if self.mapped is not None:
            file.rest()
            file.expect_sparse_use()
            if before is None:
                self.mapped.add(self, base)
        elif before is not None:
            before.close()
        return file

    def create(self, base: int, *, durable: bool = True) -> File:
        """A new file. Raises DiskFull, StoreError.

        One that is there already was made by a call that an interrupt ended before it returned, and is made again.
        """
        self.clear_unborn()
        path = self.path(base)

        def new() -> File:
            return asked(lambda: self.disk.create(path, self.size, durable=durable), path)

        try:
            made = new()
        except StoreError as error:
            there = asked(lambda: self.disk.names(self.folder), self.folder).get(f"{base:020d}")
            if not isinstance(error.__cause__, FileExistsError) or there not in (0, self.size):
                raise
            asked(lambda: self.disk.delete(path), path)
            made = new()
        insort(self.bases, base)
        return self._keep(base, made)

    def clear_unborn(self) -> None:
        """The file that was never made is gone. Raises StoreError."""
        if self.unborn is not None:
            path = self.path(self.unborn)
            asked(lambda: self.disk.delete(path), path)
            self.unborn = None

    def delete(self, base: int) -> None:
        """A file is gone. Views of it stay what they were. Raises StoreError."""
        with self._syncing_apart:
            if self._apart is not None and self._apart[0] == base:
                self._close_apart()
        if (file := self._open.pop(base, None)) is not None:
            file.close()
        asked(lambda: self.disk.delete(self.path(base)), self.path(base))
        self.bases.remove(base)
        self._rooms.pop(base, None)

    def delete_from(self, base: int) -> None:
        """The file at `base` and all behind it are gone, the last one first: so there is never a hole between files."""
        for later in reversed([found for found in self.bases if base <= found]):
            self.delete(later)

    def close(self) -> None:
        """Files are not used any more."""
        with self._syncing_apart:
            self._close_apart()
        for file in self._open.values():
            file.close()
        self._open.clear()


def zero_from(data: Bytes, at: int, step: int = 1 << 20) -> None:
    """Every byte from `at` on is zero. What is zero is left alone, for there may be no room on the disk for it."""
    for low in range(at, len(data), step):
        block = data[low : low + step]
        if block.any():
            block[:] = 0


def asked(of_the_disk: Callable[[], T], path: str) -> T:
    """The result of a disk operation. Raises DiskFull or StoreError, which name the file, if the disk refuses."""
    try:
        return of_the_disk()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"{path}: no room on the disk for another file; make room, and append again") from error
        if error.errno == errno.EMFILE:
            raise StoreError(f"{path}: {error.strerror}: raise `ulimit -n`; a store needs some twenty") from error
        raise StoreError(f"{path}: {error.strerror or error}") from error
