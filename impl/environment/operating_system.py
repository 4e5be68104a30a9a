"""The environment of a store: a disk and a clock. Both can be given; here are the protocols and the real ones.

A store asks its disk for little, so that a simulated one can do the same and lose whatever a real one may lose. Paths
are relative to the store's folder, have `/` between their parts and never lead out of it: a disk answers EINVAL to one
that would. What is durable is what survives a loss of power:

* bytes of a file, and its name, once `File.sync` has returned;
* a file's existence at its full length and of zeros, once `create` has returned (before that: absent, empty or whole),
  or where it was not to be `durable`, once it was synced;
* its absence, once `delete` has returned (before that: either);
* the whole new content, once `write` has returned (before that: all of the old or all of the new).

Where one of them raises OSError, it is as before it returned: either may be found, now and after a loss of power.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import stat
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from gapless.impl.environment.file_status import status_of
from gapless.impl.environment.mapped_file import LIBC, Bytes, MappedFile

Clock = Callable[[], int]
"""Milliseconds since 1970. It may step back; a store's own times never do."""


def wall_clock() -> int:
    """The machine's time, in ms."""
    return time.time_ns() // 1_000_000


class File(Protocol):
    """A file of a fixed length, mapped into memory.

    `data`: uint8 [length], its bytes; what is written there is seen by every reader at once, and is safe after `sync`.
    It may be used as long as it is referenced, whatever became of the file. Read-only if the file was opened so. What
    lies beyond what was reserved is zeros, and must not be written: on a full disk that would be a signal.
    """

    data: Bytes

    def reserve(self, low: int, high: int) -> None:
        """Reserve room on the disk for bytes `low:high`, to which no thread writes now. Raises OSError: ENOSPC."""

    def used(self) -> int:
        """The begin of its zeros, up to the end. The caller is about to read the others. Raises OSError."""

    def rest(self) -> None:
        """It is seldom synced from now on: what that needs may be let go."""

    def expect_sparse_use(self) -> None:
        """Few of its bytes are touched at a time, here and there."""

    def sync(self) -> None:
        """Make everything written durable. Raises OSError: then nothing that was written may be promised."""

    def require_whole(self) -> None:
        """The file has its full length: who touches bytes that another program cut off is killed. Raises OSError."""

    def close(self) -> None:
        """The file is not used through this object any more; nothing is made durable by it."""


class Disk(Protocol):
    """The folder of one store, and all that is asked of it."""

    def names(self, folder: str) -> dict[str, int]:
        """The files in a folder, sorted, and their lengths in bytes; none where there is no folder. Raises OSError."""

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder, sorted; none where there is no such folder. Raises OSError."""

    def create(self, path: str, length: int, *, durable: bool = True) -> File:
        """A new file of zeros, of which nothing is reserved yet. Raises OSError."""

    def open(self, path: str, *, write: bool) -> File:
        """A file that is there. Raises OSError."""

    def sync(self, files: Sequence[File]) -> None:
        """Sync each file, as `File.sync`; some may be synced if it raises OSError. Many cost little more than one."""

    def sync_all(self) -> None:
        """Sync all files that exist, by whichever process they were written. Raises OSError."""

    def delete(self, path: str) -> None:
        """The file is gone, if it was there, and so is its folder if nothing else was in it. Raises OSError."""

    def read(self, path: str) -> bytes | None:
        """A small file's content; None if it is not there. Raises OSError."""

    def write(self, path: str, content: bytes) -> None:
        """A small file's content is replaced, at once or not at all. Raises OSError."""

    def lock(self) -> None:
        """No other writer opens this store until `unlock`, or the end of the process. Raises BlockingIOError.

        Where what keeps others out is taken away meanwhile, nothing is changed or promised any more: OSError.
        """

    def unlock(self) -> None:
        """Others may write."""


KERNEL = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
TELLS_ERRORS = (5, 8)  # the first Linux whose syncfs tells of errors that it met
FEW = 16  # files that are synced one by one


class RealDisk:
    """A folder of this machine."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).absolute()
        self._lock = self._whole = -1  # descriptors: of the file `lock`, and of the folder, both locked
        self._locked = (-1, -1)  # the identity of that file
        self._safe: set[Path] = set()  # folders whose names are durable
        self._named: set[Path] = set()  # files whose names are

    def names(self, folder: str) -> dict[str, int]:
        """The files in a folder, sorted, and their lengths in bytes; none where there is no folder. Raises OSError."""
        found = {}
        for entry in self._entries(folder):
            with suppress(FileNotFoundError):  # deleted while we look: the others are there all the same
                if entry.is_file() and not _unfinished(entry.name):
                    found[entry.name] = entry.stat().st_size
        return found

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder, sorted; none where there is no such folder. Raises OSError."""
        return [entry.name for entry in self._entries(folder) if entry.is_dir()]

    def create(self, path: str, length: int, *, durable: bool = True) -> MappedFile:
        """A new file of zeros, of which nothing is reserved yet. Raises OSError."""
        self.require_lock()
        whole = self._place(path)
        if durable:
            self._make_folder(whole.parent)
        else:
            whole.parent.mkdir(parents=True, exist_ok=True)
        file = MappedFile(self, whole, os.open(whole, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))
        try:
            os.ftruncate(file.descriptor, length)  # before all else, so that the length is never anything between
            file.map(length, write=True)
            if durable:
                file.sync()
        except BaseException:
            file.close()
            with suppress(OSError):
                whole.unlink()
            raise
        return file

    def open(self, path: str, *, write: bool) -> MappedFile:
        """A file that is there. Raises OSError."""
        whole = self._place(path)
        file = MappedFile(self, whole, os.open(whole, os.O_RDWR if write else os.O_RDONLY))
        try:
            status = os.fstat(file.descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, "a folder, not a file", str(whole))  # noqa: TRY301 - closed below
            file.map(status.st_size, write=write)
        except BaseException:
            file.close()
            raise
        if not write:
            file.rest()
        return file

    def make_name_durable(self, path: Path) -> None:
        """A file's name is durable, and the names of the folders that lead to it. Raises OSError."""
        self._make_folder(path.parent)
        _sync_folder(path.parent)
        self._named.add(path)

    def is_named(self, path: Path) -> bool:
        """True if a file's name is known to be durable."""
        return path in self._named

    def sync(self, files: Sequence[File]) -> None:
        """Sync each file, many of them by one call that makes the whole file system durable. Raises OSError."""
        if len(files) <= FEW or not self._syncs_all:
            for file in files:
                file.sync()
            return
        mapped = [file for file in files if isinstance(file, MappedFile)]
        self._sync_whole()
        for file in mapped:  # behind it, as in `MappedFile.sync`: what was cut off meanwhile is not promised either
            file.require()
        self._named.update(file.path for file in mapped)

    def sync_all(self) -> None:
        """Sync all files that exist, by whichever process they were written. Raises OSError."""
        if self._syncs_all:
            self._sync_whole()
            return
        for folder, _, names in os.walk(self.folder, topdown=False, onerror=_raised):
            for name in names:
                _sync(Path(folder, name))
            _sync_folder(Path(folder))

    @property
    def _syncs_all(self) -> bool:
        """True if one call syncs all files. Since the folder was locked, it has watched for errors."""
        return self._whole >= 0 and KERNEL >= TELLS_ERRORS

    def _sync_whole(self) -> None:
        if LIBC.syncfs(self._whole):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(self.folder))

    def delete(self, path: str) -> None:
        """The file is gone, if it was there, and so is its folder if nothing else was in it. Raises OSError."""
        self.require_lock()
        whole = self._place(path)
        try:
            whole.unlink(missing_ok=True)
            _sync_folder(whole.parent)
        except FileNotFoundError:
            return  # there is no such folder
        self._named.discard(whole)
        if whole.parent != self.folder:
            self._safe.discard(whole.parent)
            with suppress(OSError):
                whole.parent.rmdir()
                _sync_folder(whole.parent.parent)

    def read(self, path: str) -> bytes | None:
        """A small file's content; None if it is not there. Raises OSError."""
        try:
            return self._place(path).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, path: str, content: bytes) -> None:
        """A small file's content is replaced, at once or not at all. Raises OSError."""
        self.require_lock()
        whole = self._place(path)
        self._make_folder(whole.parent)
        unfinished = whole.with_name(f".{whole.name}.tmp")
        try:
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(whole)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise
        _sync_folder(whole.parent)

    def lock(self) -> None:
        """No other writer opens this store until `unlock`, or the end of the process. Raises BlockingIOError.

        The file and the byte are a broker's own, so that a broker and this implementation keep each other out. The lock
        belongs to the open file, not to the process: it keeps out a second store of this process too, and stays when
        another part of this process opens and closes the file, as `gapless check` does. A forked child closes its copy
        at once, so that the lock goes when the process goes that took it, whichever process lives on.

        The file can be deleted, and a second writer would lock the next one of that name. So the folder itself is
        locked as well, where its file system does that (NFS does not): this keeps out all but brokers.
        """
        self._make_folder(self.folder)
        whole = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _lock_folder(whole)
            self._lock_file()
            self._whole = whole
            _LOCKED.add(self)
        finally:
            if self._whole != whole:
                os.close(whole)

    def _lock_file(self) -> None:
        """No other writer has the first byte of the file `lock`. Raises BlockingIOError, OSError."""
        path = self.folder / "lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock_first_byte(descriptor, fcntl.F_WRLCK)
            os.pwrite(descriptor, b"lock", 0)
            self._locked = status_of(descriptor).identity
            self._lock = descriptor
        except OSError as error:
            if error.errno in {errno.EAGAIN, errno.EACCES}:
                raise BlockingIOError(errno.EAGAIN, _holder(descriptor), str(path)) from error
            raise
        finally:
            if self._lock != descriptor:
                os.close(descriptor)

    def require_lock(self) -> None:
        """The file `lock` is the one that was locked, if it was: a broker locks whichever is there. Raises OSError."""
        if self._lock < 0:
            return
        try:
            found = status_of(f"{self.folder}/lock").identity  # no `Path`: it is asked at every flush
        except FileNotFoundError:
            found = (-1, -1)
        if found != self._locked:
            raise OSError(errno.ESTALE, "its file `lock` was deleted or replaced from outside, and another may write")

    def unlock(self) -> None:
        """Others may write."""
        descriptor, self._lock = self._lock, -1
        whole, self._whole = self._whole, -1
        with suppress(OSError):  # a child process may have the descriptors as well
            if descriptor >= 0:
                _lock_first_byte(descriptor, fcntl.F_UNLCK)
        with suppress(OSError):
            if whole >= 0:
                fcntl.flock(whole, fcntl.LOCK_UN)
        _close(descriptor, whole)

    def forked(self) -> None:
        """This is a child of the process that has the lock: its copies of descriptors go, and the lock stays."""
        descriptor, self._lock = self._lock, -1
        whole, self._whole = self._whole, -1
        _close(descriptor, whole)

    def _place(self, path: str) -> Path:
        check_path(path)
        return self.folder / path

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        """The names in a folder, sorted; none if the folder does not exist."""
        if folder:
            check_path(folder)
        try:
            with os.scandir(self.folder / folder) as found:
                return sorted(found, key=lambda entry: entry.name)
        except FileNotFoundError:
            return []

    def _make_folder(self, folder: Path) -> None:
        """The folder is there, and its name is durable, and so are those that lead to it from the store's own.

        A folder that is found is not believed: a process that was killed may have made it and no more.
        """
        if folder in self._safe:
            return
        if folder.is_dir() and self.folder not in folder.parents:
            return  # the store's own or above: what was there before us is not ours to sync, nor always ours to read
        self._make_folder(folder.parent)
        try:
            folder.mkdir(exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(errno.ENOTDIR, "a file, not a folder", str(folder)) from error
        _sync_folder(folder.parent)
        self._safe.add(folder)


def check_path(path: str) -> None:
    """Every part of it is a name. Raises OSError: EINVAL, or ENAMETOOLONG for a part above 255 bytes.

    Names of queues come from records, and records from any writer: `..` would lead out of its folder.
    """
    for part in path.split("/"):
        if part in {"", ".", ".."} or "\0" in part:
            raise OSError(errno.EINVAL, "no path within a store's folder", path)
        if len(os.fsencode(part)) > LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, f"a name of more than {LONGEST_NAME} bytes", path)


LONGEST_NAME = 255
"""Bytes of a file's or folder's name, on all file systems that Linux people use."""


def _unfinished(name: str) -> bool:
    """True if a process was stopped while it wrote this small file: its name is none that a store knows."""
    return name.startswith(".") and name.endswith(".tmp")


def _raised(error: OSError) -> None:
    raise error


def _sync(path: Path) -> None:
    """A file is durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """The names in a folder are durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EBADF, errno.EINVAL}:  # some file systems do not sync folders: no more can be done
            raise
    finally:
        os.close(descriptor)


_FLOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, process


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)


def _lock_folder(descriptor: int) -> None:
    """Locks a folder for this open file, if its file system can. Raises BlockingIOError where another has."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BlockingIOError(errno.EAGAIN, "another writer holds it") from error
    except OSError:
        return  # NFS locks what is open for writing, and no folder is


def _lock_first_byte(descriptor: int, kind: int) -> None:
    """Locks or unlocks byte 0 for this open file. Raises OSError: EAGAIN where another holds it."""
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, 0, 1, 0))


def _holder(descriptor: int) -> str:
    """The owner of the lock on byte 0. A broker's lock names its process; one like ours belongs to none."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
    process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))[-1]
    return f"process {process} holds it" if process > 0 else "another writer holds it"


_LOCKED: WeakSet[RealDisk] = WeakSet()
"""Those that were locked by this process."""


def _forked() -> None:
    for disk in _LOCKED:
        disk.forked()


os.register_at_fork(after_in_child=_forked)
