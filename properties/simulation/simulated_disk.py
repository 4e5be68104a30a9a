"""A simulated environment: a disk that loses what a disk may lose, and a clock that stands still until it is set.

The disk keeps every file twice: as processes see it, and as it would be found after a loss of power. Between two
`sync`s the two drift apart, sector by sector, and `crash` gives the disk that a loss of power at this moment leaves:
every page that was written since is the old one, the new one, or torn into sectors of both; a create, delete or write
that had not returned has happened or has not. Which, is chosen (`choices.py`), so that a disk is lost the same way
again. The disk itself continues, so one run can be crashed at many moments and in many ways at each.

Followed: what a crash may leave of pages and names, Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014;
Linux after an fsync that failed, Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020.
Departures: a page is dirty if its bytes differ, so one that is rewritten with the same bytes stays clean, which is
harsher after such an fsync; names are durable when the call that made them returns, as a store must see to.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from threading import RLock
from typing import Protocol

from gapless.properties.simulation.choices import Choose, plainest
from gapless.properties.simulation.simulated_files import (
    Bytes,
    Content,
    Outcome,
    Tree,
    check_path,
    folder_made,
    found,
    gone,
    split,
    survivors,
)

PAGE = 4096
"""Bytes that the kernel writes out together, by default."""

SECTOR = 512
"""Bytes that a device writes all of or none of, by default."""


class PowerLost(BaseException):
    """The process ends here, and no handler of errors outlives it. `SimulatedDisk.crash` says what is found then."""


class SteppedClock:
    """A clock that shows `now` (ms since 1970) until time passes, or it is set, forward or back."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self.now = now
        self._passed = 0

    def __call__(self) -> int:
        """The time, in ms."""
        return self.now

    def passed(self) -> int:
        """The ms that have passed, whatever it was set to."""
        return self._passed

    def advance(self, by: int) -> int:
        """So many ms pass; returns the time."""
        self._passed += by
        return self.set_by(by)

    def set_by(self, by: int) -> int:
        """It is set ahead by so many ms, or back where that is negative; returns the time."""
        self.now += by
        return self.now


@dataclass
class _Fault:
    """Operations that will fail: `left` more of those that fit."""

    error: int
    at: int | None
    verb: str
    path: str
    left: int
    forget: bool

    def fits(self, number: int | None, verb: str, path: str) -> bool:
        """True if this use of the disk is one of them."""
        there = fnmatchcase(verb, self.verb) and fnmatchcase(path, self.path)
        return there and self.left > 0 and self.at in {None, number}


class CanSync(Protocol):
    """A file, as far as syncing several of them goes."""

    def sync(self) -> None:
        """Everything written so far is durable. Raises OSError, PowerLost."""


class SimulatedFile:
    """A file of the simulated disk, mapped into memory: `data` is its bytes, uint8 [length]."""

    def __init__(self, disk: SimulatedDisk, path: str, content: Content, *, write: bool) -> None:
        self.data: Bytes = content.cached[: content.length]
        self.data.flags.writeable = write
        self._content = content
        self._path = path
        self._disk: SimulatedDisk | None = disk

    def reserve(self, low: int, high: int) -> None:
        """There is room for it: `create` saw to that. Raises OSError where that was asked for."""
        if self._disk is not None and low < high:
            self._disk.reserve(self._path)

    def used(self) -> int:
        """The end of the file: this disk does not know its zeros."""
        return len(self.data)

    def rest(self) -> None:
        """It can be synced as before."""

    def expect_sparse_use(self) -> None:
        """All of it is in memory."""

    def sync(self) -> None:
        """Everything written so far is durable. Raises OSError, PowerLost."""
        if self._disk is None:
            raise OSError(errno.EBADF, "the file was closed", self._path)
        self._disk.sync_one(self._path, self._content)

    def require_whole(self) -> None:
        """True always: this disk has no other user."""

    def close(self) -> None:
        """The file is not used through this object any more."""
        self._disk = None


class SimulatedDisk:
    """A disk in memory, for one store and its folder, and with a way to lose it.

    What is durable is what survives a loss of power: the bytes of a file, and its name, once `sync` has returned; that
    a file is there at its full length and of zeros, once `create` has returned (not `durable`: once it was synced);
    that it is gone, once `delete` has; and the whole new content, once `write` has. Before they return, and where they
    raise OSError, either may be found. Paths have `/` between their parts and never lead out of the folder.

    `page`, `sector`: bytes. `capacity`: bytes that files may take together; beyond is ENOSPC. `lying`: a planted fault,
    `sync` returns and has done nothing.

    `operations`: how many of sync, create, delete and write were begun. `last`: the latest of them, in words. `lost`:
    of a disk that `crash` gave, where sectors of a file are not as processes last saw them (offsets in bytes).
    """

    def __init__(
        self, *, page: int = PAGE, sector: int = SECTOR, capacity: int | None = None, lying: bool = False
    ) -> None:
        if sector < 8 or sector % 8 or page < 1 or page % sector:
            raise ValueError(f"a sector is a multiple of 8 bytes and a page one of sectors, not {sector} and {page}")
        self.page = page
        self.sector = sector
        self.capacity = capacity
        self.lying = lying
        self.operations = 0
        self.last = "nothing yet"
        self.lost: dict[str, list[int]] = {}
        self.before_each: Callable[[], None] | None = None
        """Called in the midst of every operation, before it has any effect; may crash or kill the disk to look."""
        self.tree = Tree()
        self._begun: dict[str, tuple[Outcome, ...]] = {}  # by path: what may be found of what has not returned
        self.unclear: dict[str, tuple[Outcome, ...]] = {}  # by path: what may be found of what raised OSError
        self.unnamed: set[str] = set()  # files whose names are not durable yet
        self._faults: list[_Fault] = []
        self._ends_at: int | None = None
        self._off = False
        self._locked = False
        self._mutex = RLock()

    # --- What can happen to it ---

    def lose_power_at(self, operation: int) -> None:
        """In the midst of this operation (the first is number 1) the power is lost: it raises PowerLost, as all after.

        Raises ValueError: it is past.
        """
        if operation <= self.operations:
            raise ValueError(f"operation {operation} is past: there were {self.operations}")
        self._ends_at = operation

    def fail(
        self,
        error: int,
        *,
        at: int | None = None,
        verb: str = "*",
        path: str = "*",
        times: int = 1,
        forget: bool = False,
    ) -> None:
        """The next `times` uses that fit raise OSError with `error`, an errno, and have no effect.

        `at`: the number of an operation; `verb`: create, open, reserve, delete, read, write or sync; `verb` and `path`
        are patterns, as a shell has them. `forget`: where a sync fails so, the kernel takes the file's pages for clean,
        as Linux does, and the next sync succeeds without them.
        """
        self._faults.append(_Fault(error, at, verb, path, times, forget))

    def heal(self) -> None:
        """Nothing fails from now on; what was forgotten stays so."""
        self._faults.clear()

    def crash(self, choose: Choose = plainest) -> SimulatedDisk:
        """The disk that a loss of power at this moment leaves, before anybody uses it. The plainest: all is old."""
        with self._mutex:
            after = self._copy_of_disk()
            for path, content in self.tree.files():
                dirty = content.dirty(self.sector)
                kept = survivors(dirty, self.page // self.sector, choose)
                after.tree.put(path, content.survived(kept, self.sector))
                if len(kept) < len(dirty):
                    after.lost[path] = [place * self.sector for place in sorted({*dirty} - {*kept})]
            for path in sorted(self.unnamed):
                which = choose(4)  # the plainest: it was never there
                if which < 3:
                    gone(path, folder=which == 0)(after.tree)
                if which == 2:
                    after.tree.put(path, Content.zeros(0, self.page))
            _settle(after.tree, self.unclear, choose)
            _settle(after.tree, self._begun, choose)
            return after

    def kill(self, choose: Choose = plainest) -> SimulatedDisk:
        """The disk that the end of the process at this moment leaves: the next one sees all that this one wrote."""
        with self._mutex:
            after = self._copy_of_disk()
            for path, content in self.tree.files():
                after.tree.put(path, content.copy())
            _settle(after.tree, self._begun, choose)
            after.unclear = dict(self.unclear)
            after.unnamed = set(self.unnamed)
            return after

    def write_back(self, choose: Choose) -> None:
        """The kernel makes some dirty pages durable by itself, as it may at any time, and promises nothing."""
        with self._mutex:
            for _, content in self.tree.files():
                if content.believed is content.durable:  # a file whose sync failed is left as that left it
                    kept = survivors(content.dirty(self.sector), self.page // self.sector, choose)
                    content.write_back(kept, self.sector)

    def files(self) -> dict[str, bytes]:
        """Every path, sorted, and its content as processes see it. Like `crash`, it may be asked of a lost disk."""
        with self._mutex:
            return {path: bytes(content) for path, content in self.tree.files()}

    # --- What a store asks of it ---

    def names(self, folder: str) -> dict[str, int]:
        """The files in a folder, sorted, and their lengths in bytes; none where there is no folder. Raises OSError."""
        with self._mutex:
            self._check_alive()
            return {name: content.length for name, content in sorted(self.tree.folder(folder).items())}

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder, sorted; none where there is no such folder. Raises OSError."""
        with self._mutex:
            self._check_alive()
            self.tree.folder(folder)
            apart = (split(inside) for inside in self.tree.folders if inside)
            return sorted(name for above, name in apart if above == folder)

    def create(self, path: str, length: int, *, durable: bool = True) -> SimulatedFile:
        """A new file of zeros, with room for all of it. Raises OSError: ENOSPC where there is none; PowerLost."""
        with self._mutex:
            self._check_alive()
            check_path(path)
            if path in self.tree.folders or self.tree.find(path) is not None:
                raise FileExistsError(errno.EEXIST, "there is one already", path)
            folder, _ = split(path)
            new = Content.zeros(length, self.page)
            made = () if folder in self.tree.folders else (folder_made(folder),)
            outcomes = (*made, found(path, Content.zeros(0, self.page)), found(path, new))
            self._operate("create", path, *outcomes, room=length)
            self.tree.put(path, new)
            if not durable:
                self.unnamed.add(path)
            return SimulatedFile(self, path, new, write=True)

    def open(self, path: str, *, write: bool) -> SimulatedFile:
        """A file that is there. Raises OSError, PowerLost."""
        with self._mutex:
            self._check_alive()
            content = self.tree.find(path)
            if content is None:
                raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
            self._perhaps_fail(None, "open", path)
            return SimulatedFile(self, path, content, write=write)

    def sync(self, files: Sequence[CanSync]) -> None:
        """Sync each file, one after the other. Raises OSError, PowerLost."""
        for file in files:
            file.sync()

    def sync_all(self) -> None:
        """Sync all files, in the order of their names. Raises OSError, PowerLost."""
        for path, content in self.tree.files():
            self.sync_one(path, content)

    def delete(self, path: str) -> None:
        """The file is gone, and so is its folder if nothing else was in it. Raises OSError, PowerLost."""
        with self._mutex:
            self._check_alive()
            self.tree.find(path)
            self._operate("delete", path, gone(path, folder=False), gone(path, folder=True))
            self.tree.remove(path, folder=True)
            self.unnamed.discard(path)

    def read(self, path: str) -> bytes | None:
        """A small file's content; None if it is not there. Raises OSError, PowerLost."""
        with self._mutex:
            self._check_alive()
            content = self.tree.find(path)
            self._perhaps_fail(None, "read", path)
            return None if content is None else bytes(content)

    def write(self, path: str, content: bytes) -> None:
        """A small file's content is replaced, at once or not at all. Raises OSError, PowerLost."""
        with self._mutex:
            self._check_alive()
            self.tree.find(path)
            new = Content.of(content, self.page)
            self._operate("write", path, found(path, new), room=len(content))
            self.tree.put(path, new)

    def sync_one(self, path: str, content: Content) -> None:
        """The work of `SimulatedFile.sync`."""
        with self._mutex:
            self._check_alive()
            folder, name = split(path)
            if self.tree.folders.get(folder, {}).get(name) is not content:
                raise OSError(errno.ENOENT, "the file was deleted from outside", path)
            self._operate("sync", path, content=content)
            if not self.lying:
                content.sync(self.page)
                self.unnamed.discard(path)

    def reserve(self, path: str) -> None:
        """The work of `SimulatedFile.reserve`: nothing, unless it is to fail."""
        with self._mutex:
            self._check_alive()
            self._perhaps_fail(None, "reserve", path)

    def lock(self) -> None:
        """No other writer opens this store until `unlock`, or the end of the process. Raises BlockingIOError."""
        with self._mutex:
            self._check_alive()
            if self._locked:
                raise BlockingIOError(errno.EAGAIN, "another writer holds it", "lock")
            self._locked = True
            self.tree.put("lock", Content.of(b"lock", self.page))

    def unlock(self) -> None:
        """Others may write. Like `close`, it may be called after the power was lost."""
        self._locked = False

    # --- Stores from and for the real world ---

    def load(self, folder: Path) -> None:
        """All files of a real folder are on this disk too, and safe. Raises OSError."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.tree.put(path.relative_to(folder).as_posix(), Content.of(path.read_bytes(), self.page))

    def save(self, folder: Path) -> None:
        """All folders and files as processes see them are in a real folder too. Raises OSError."""
        for inside in self.tree.folders:
            (folder / inside).mkdir(parents=True, exist_ok=True)
        for path, content in self.files().items():
            (folder / path).write_bytes(content)

    def lose_power_after(self, operation: int, verb: str = "") -> None:
        """The power is lost at that operation from now on, or at that one of a verb; the first is 1, and 0 is none."""
        left = operation

        def count_down() -> None:
            nonlocal left
            left -= verb in self.last
            if left == 0 and verb in self.last:
                raise PowerLost(self.last)

        self.before_each = count_down if operation else None

    # --- Within ---

    def _operate(self, verb: str, path: str, *outcomes: Outcome, room: int = 0, content: Content | None = None) -> None:
        """One more operation has begun; it returns where that is to take effect. Raises OSError, PowerLost."""
        self.operations += 1
        self.last = f"operation {self.operations}, {verb} {path}"
        self._begun[path] = outcomes
        if self.before_each is not None:
            self.before_each()
        if self.operations == self._ends_at:
            self._lose_power()
        del self._begun[path]
        try:
            self._perhaps_fail(self.operations, verb, path, content)
            self._take_room(room, path)
        except OSError:
            if outcomes:
                self.unclear[path] = outcomes
            raise
        if outcomes:
            self.unclear.pop(path, None)

    def _lose_power(self) -> None:
        """Nothing that processes write from now on is seen by anybody."""
        self._off = True
        for _, content in self.tree.files():
            content.cached = content.cached.copy()
        raise PowerLost(self.last)

    def _perhaps_fail(self, number: int | None, verb: str, path: str, content: Content | None = None) -> None:
        for fault in self._faults:
            if fault.fits(number, verb, path):
                fault.left -= 1
                if fault.forget and content is not None:
                    content.forget()
                raise OSError(fault.error, f"{os.strerror(fault.error)} (a fault that was asked for)", path)

    def _take_room(self, room: int, path: str) -> None:
        if self.capacity is None or not room:
            return
        if room + sum(content.length for _, content in self.tree.files()) > self.capacity:
            raise OSError(errno.ENOSPC, f"the disk holds {self.capacity} bytes, and no {room} more", path)

    def _copy_of_disk(self) -> SimulatedDisk:
        return SimulatedDisk(page=self.page, sector=self.sector, capacity=self.capacity, lying=self.lying)

    def _check_alive(self) -> None:
        if self._off:
            raise PowerLost(self.last)


def _settle(tree: Tree, unsettled: dict[str, tuple[Outcome, ...]], choose: Choose) -> None:
    """Everything that was begun and did not return has happened, half happened or not."""
    for _, outcomes in sorted(unsettled.items()):
        if outcomes and (which := choose(1 + len(outcomes))):
            outcomes[which - 1](tree)
