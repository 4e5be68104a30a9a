"""The parts of a simulated disk: files, kept twice (in the cache and on the device), and folders."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

import numpy as np
import numpy.typing as npt

from gapless.properties.simulation.choices import Choose

Bytes = npt.NDArray[np.uint8]

LONGEST_NAME = 255
"""Bytes of a file's or folder's name, on all file systems that Linux people use."""


class Content:
    """The content of one file: for processes, on the device, and on the device as the kernel believes.

    Each is uint8 [length, padded to whole pages]. `durable` and `believed` are replaced and never written into, so that
    copies of a disk can share them.
    """

    __slots__ = ("believed", "cached", "durable", "length")

    def __init__(self, length: int, cached: Bytes, durable: Bytes, believed: Bytes) -> None:
        self.length = length
        self.cached = cached
        self.durable = durable
        self.believed = believed  # other than `durable` only after a sync that failed and forgot

    @classmethod
    def zeros(cls, length: int, page: int) -> Content:
        """So many zeros, safe."""
        cached: Bytes = np.zeros(-(-length // page) * page, np.uint8)
        durable = cached.copy()
        return cls(length, cached, durable, durable)

    @classmethod
    def of(cls, content: bytes, page: int) -> Content:
        """These bytes, safe."""
        new = cls.zeros(len(content), page)
        new.cached[: new.length] = np.frombuffer(content, np.uint8)
        new.durable = new.believed = new.cached.copy()
        return new

    def __bytes__(self) -> bytes:
        """The content as processes see it."""
        return self.cached[: self.length].tobytes()

    def copy(self) -> Content:
        """The same in memory of its own."""
        return Content(self.length, self.cached.copy(), self.durable, self.believed)

    def sync(self, page: int) -> None:
        """Make durable what the kernel takes for dirty."""
        now = self.cached.copy()
        if self.believed is self.durable:
            self.durable = self.believed = now
            return
        dirty = (now != self.believed).reshape(-1, page).any(axis=1)
        self.durable = np.where(np.repeat(dirty, page), now, self.durable)
        self.believed = now

    def forget(self) -> None:
        """The kernel takes every page for clean, and none has become durable."""
        self.believed = self.cached.copy()

    def write_back(self, sectors: list[int], sector: int) -> None:
        """Make these sectors durable, without a promise."""
        durable = self.durable.copy()
        durable.reshape(-1, sector)[sectors] = self.cached.reshape(-1, sector)[sectors]
        self.durable = self.believed = durable

    def dirty(self, sector: int) -> list[int]:
        """The sectors that are not on the device as processes see them, in order."""
        differ = self.cached.view(np.uint64) != self.durable.view(np.uint64)
        if not differ.any():
            return []
        found: list[int] = differ.reshape(-1, sector // 8).any(axis=1).nonzero()[0].tolist()
        return found

    def survived(self, sectors: list[int], sector: int) -> Content:
        """The content after a loss of power, if these sectors had reached the device in addition."""
        cached = self.durable.copy()
        if not sectors:
            return Content(self.length, cached, self.durable, self.durable)
        cached.reshape(-1, sector)[sectors] = self.cached.reshape(-1, sector)[sectors]
        durable = cached.copy()
        return Content(self.length, cached, durable, durable)


def survivors(dirty: list[int], per_page: int, choose: Choose) -> list[int]:
    """Choices of a file's dirty sectors on the device: none, all, those up to one of them, or page by page."""
    if len(dirty) < 2:
        return dirty if dirty and choose(2) else []
    match choose(4):
        case 0:
            return []
        case 1:
            return dirty
        case 2:
            return dirty[: 1 + choose(len(dirty) - 1)]
        case _:
            pages = (list(sectors) for _, sectors in groupby(dirty, lambda sector: sector // per_page))
            return [sector for sectors in pages for sector in _survivors_of_a_page(sectors, choose)]


def _survivors_of_a_page(dirty: list[int], choose: Choose) -> Iterable[int]:
    """None of a page's dirty sectors (the old page), all of them (the new one), or some (torn)."""
    how = choose(2 if len(dirty) == 1 else 3)
    if how < 2:
        return dirty if how else []
    some = 1 + choose(2 ** len(dirty) - 2)  # a bit for each, neither none nor all
    return (sector for bit, sector in enumerate(dirty) if some >> bit & 1)


class Tree:
    """Folders, and what is in their files. The store's own folder is the empty name, and always there."""

    def __init__(self) -> None:
        self.folders: dict[str, dict[str, Content]] = {"": {}}

    def files(self) -> Iterator[tuple[str, Content]]:
        """Every path and its content, sorted."""
        for folder in sorted(self.folders):
            for name, content in sorted(self.folders[folder].items()):
                yield f"{folder}/{name}" if folder else name, content

    def find(self, path: str) -> Content | None:
        """The content of a file; None where there is none. Raises OSError: a folder, or a file for a folder."""
        check_path(path)
        if path in self.folders:
            raise IsADirectoryError(errno.EISDIR, "a folder, not a file", path)
        folder, name = split(path)
        return self.folder(folder).get(name)

    def folder(self, folder: str) -> dict[str, Content]:
        """The files in a folder; none where there is no such folder. Raises OSError: a part of its path is a file."""
        if (inside := self.folders.get(folder)) is not None:
            return inside
        check_path(folder)
        part = folder
        while part:
            above, name = split(part)
            if name in self.folders.get(above, ()):
                raise NotADirectoryError(errno.ENOTDIR, "a file, not a folder", part)
            part = above
        return {}

    def put(self, path: str, content: Content) -> None:
        """The file is there, with this content."""
        folder, name = split(path)
        self.make_folder(folder)
        self.folders[folder][name] = content

    def remove(self, path: str, *, folder: bool) -> None:
        """The file is not there; with `folder`, its folder neither if nothing else was in it."""
        above, name = split(path)
        inside = self.folders.get(above, {})
        inside.pop(name, None)
        if folder and above and not inside and not any(other.startswith(f"{above}/") for other in self.folders):
            self.folders.pop(above, None)

    def make_folder(self, folder: str) -> None:
        """The folder is there, and all that lead to it."""
        while folder not in self.folders:
            self.folders[folder] = {}
            folder, _ = split(folder)


Outcome = Callable[[Tree], None]
"""What may be found after something was begun and did not return; that nothing of it happened is not listed."""


def found(path: str, content: Content) -> Outcome:
    """The file is there."""
    return lambda tree: tree.put(path, content.copy())


def gone(path: str, *, folder: bool) -> Outcome:
    """The file is not there; with `folder`, its folder neither if nothing else was in it."""
    return lambda tree: tree.remove(path, folder=folder)


def folder_made(folder: str) -> Outcome:
    """The folder is there, and nothing in it."""
    return lambda tree: tree.make_folder(folder)


def split(path: str) -> tuple[str, str]:
    """The folder and the name."""
    folder, _, name = path.rpartition("/")
    return folder, name


def check_path(path: str) -> None:
    """Every part of it is a name. Raises OSError: EINVAL, or ENAMETOOLONG for a part that is too long."""
    for part in path.split("/"):
        if part in {"", ".", ".."} or "\0" in part:
            raise OSError(errno.EINVAL, "no path within a store's folder", path)
        if len(os.fsencode(part)) > LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, f"a name of more than {LONGEST_NAME} bytes", path)
