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
import mmap
import os
import stat
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

Clock = Callable[[], int]
"""Milliseconds since 1970. It may step back; a store's own times never do."""


def wall_clock() -> int:
    """The machine's time, in ms."""
    return time.time_ns() // 1_000_000


class File(Protocol):
    """A file of a fixed length, mapped into memory.

    `data`: uint8 [length], its bytes; what is written there is seen by every reader at once, and is safe after `sync`.
    It may be used as long as somebody holds it, whatever became of the file. Read-only if the file was opened so. What
    lies beyond what was reserved is zeros, and nobody writes there: on a full disk that would be a signal.
    """

    data: Bytes

    def reserve(self, low: int, high: int) -> None:
        """There is room on the disk for bytes `low:high`, which nobody writes to meanwhile. Raises OSError: ENOSPC."""

    def used(self) -> int:
        """Where its zeros begin: all bytes from there on are zeros. Raises OSError."""

    def rest(self) -> None:
        """It is seldom synced from now on: what that needs may be let go."""

    def sync(self) -> None:
        """Everything written so far is durable. Raises OSError: then nobody knows what is, and none may be promised."""

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

    def delete(self, path: str) -> None:
        """The file is gone, if it was there, and so is its folder if nothing else was in it. Raises OSError."""

    def read(self, path: str) -> bytes | None:
        """A small file's content; None if it is not there. Raises OSError."""

    def write(self, path: str, content: bytes) -> None:
        """A small file's content is replaced, at once or not at all. Raises OSError."""

    def lock(self) -> None:
        """No other writer opens this store until `unlock`, or the end of the process. Raises BlockingIOError."""

    def unlock(self) -> None:
        """Others may write."""


_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_ssize_t]
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
MAP_FAILED = ctypes.c_void_p(-1).value


class Mapping:
    """Bytes of a file in memory, for as long as an array of them lives.

    Python's own `mmap` holds a descriptor for every mapping, and a store has many thousands of files.
    """

    def __init__(self, descriptor: int, length: int, *, write: bool) -> None:
        self.length = length
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if write else 0)
        self.address: int | None = _LIBC.mmap(None, length, protection, mmap.MAP_SHARED, descriptor, 0)
        if self.address == MAP_FAILED:
            self.address = None
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        where = self.address, not write
        self.__array_interface__ = {"data": where, "shape": (length,), "typestr": "|u1", "version": 3}

    def __del__(self, unmap: Callable[[int, int], int] = _LIBC.munmap) -> None:
        if (address := getattr(self, "address", None)) is not None:
            unmap(address, self.length)


class MappedFile:
    """A file of the real disk. It owns its descriptor until it rests; where it is synced after that, it is opened anew.

    `data`: no bytes before `map`.
    """

    descriptor = -1
    data: Bytes = np.zeros(0, np.uint8)

    def __init__(self, disk: RealDisk, path: Path, descriptor: int) -> None:
        self.disk = disk
        self.path = path
        self.descriptor = descriptor
        self.is_closed = False
        self._named = False  # whether its name is known to be durable
        self._identity = (-1, -1)

    def map(self, length: int, *, write: bool) -> None:
        """Its bytes are in memory. Raises OSError."""
        status = os.fstat(self.descriptor)
        self._identity = (status.st_dev, status.st_ino)
        data: Bytes = np.zeros(0, np.uint8)  # what a crash in the midst of `create` may leave, and none can map
        if length:
            data = np.asarray(Mapping(self.descriptor, length, write=write))
        if not write:
            data.flags.writeable = False
        self.data = data

    def reserve(self, low: int, high: int) -> None:
        """There is room on the disk for bytes `low:high`, which nobody writes to meanwhile. Raises OSError: ENOSPC."""
        high = min(-(-high // mmap.PAGESIZE) * mmap.PAGESIZE, len(self.data))  # the kernel maps pages
        if low < high:
            with self._opened() as descriptor:
                self._require_whole(
                    os.fstat(descriptor)
                )  # to reserve beyond its end would make it long again, of zeros
                _reserve(descriptor, low, high)

    def used(self) -> int:
        """Where its zeros begin. A file system that keeps no count of that says: nowhere. Raises OSError."""
        end = 0
        with self._opened() as descriptor:
            while end < len(self.data):
                try:
                    data = os.lseek(descriptor, end, os.SEEK_DATA)
                except OSError as error:
                    if error.errno == errno.ENXIO:  # there is no data behind that
                        break
                    return len(self.data)
                end = os.lseek(descriptor, data, os.SEEK_HOLE)
        return min(end, len(self.data))

    def sync(self) -> None:
        """Everything written so far is durable; the interpreter lock is not held meanwhile. Raises OSError."""
        if self.is_closed:
            raise OSError(errno.EBADF, "the file was closed")
        with self._opened() as descriptor:
            if not os.fstat(descriptor).st_nlink:  # a broker that starts deletes it before it asks for the lock
                raise OSError(errno.ENOENT, "somebody has deleted the file")
            if self._named:
                os.fdatasync(descriptor)  # on Linux it takes mapped pages along
            else:
                os.fsync(descriptor)
            self._require_whole(os.fstat(descriptor))  # last: what was cut off meanwhile is not promised either
        if not self._named:
            self.disk.make_name_durable(self.path)
            self._named = True

    def require_whole(self) -> None:
        """The file has its full length: who touches bytes that another program cut off is killed. Raises OSError.

        Bytes of a file that was deleted, or replaced by another one, stay what they were.
        """
        try:
            status = os.fstat(self.descriptor) if self.descriptor >= 0 else os.stat(self.path)  # noqa: PTH116 - faster
        except OSError:
            return
        if (status.st_dev, status.st_ino) == self._identity:
            self._require_whole(status)

    def _require_whole(self, status: os.stat_result) -> None:
        if status.st_size < len(self.data):
            raise OSError(errno.EIO, f"somebody has cut the file to {status.st_size} of its {len(self.data)} bytes")

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Its descriptor, opened for a moment where it has none. Raises OSError where another file has its name."""
        if self.descriptor >= 0:
            yield self.descriptor
            return
        descriptor = os.open(self.path, os.O_RDWR if self.data.flags.writeable else os.O_RDONLY)
        try:
            status = os.fstat(descriptor)
            if (status.st_dev, status.st_ino) != self._identity:
                raise OSError(errno.ENOENT, "somebody has put another file in its place")
            yield descriptor
        finally:
            os.close(descriptor)

    def rest(self) -> None:
        """The descriptor goes.

        A log keeps that of the file which it writes to. Once another process was told of an error of the disk, a
        descriptor that is opened after that is not.
        """
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def close(self) -> None:
        """The descriptor goes; the mapping goes with the last view of it."""
        self.is_closed = True
        self.rest()

    def __del__(self) -> None:
        self.rest()


class RealDisk:
    """A folder of this machine."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).absolute()
        self._lock = -1
        self._safe: set[Path] = set()  # folders whose names are durable

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

    def delete(self, path: str) -> None:
        """The file is gone, if it was there, and so is its folder if nothing else was in it. Raises OSError."""
        whole = self._place(path)
        try:
            whole.unlink(missing_ok=True)
            _sync_folder(whole.parent)
        except FileNotFoundError:
            return  # there is no such folder
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
        somebody else here opens and closes the file, as `gapless check` does. A forked child closes its copy at once,
        so that the lock goes when the process goes that took it, whoever lives on.
        """
        self._make_folder(self.folder)
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock_first_byte(descriptor, fcntl.F_WRLCK)
            os.pwrite(descriptor, b"lock", 0)
            _LOCKED.add(self)
            self._lock = descriptor
        except OSError as error:
            if error.errno in {errno.EAGAIN, errno.EACCES}:
                raise BlockingIOError(errno.EAGAIN, _holder(descriptor), str(self.folder / "lock")) from error
            raise
        finally:
            if self._lock != descriptor:
                os.close(descriptor)

    def unlock(self) -> None:
        """Others may write."""
        descriptor, self._lock = self._lock, -1
        if descriptor >= 0:
            with suppress(OSError):
                _lock_first_byte(descriptor, fcntl.F_UNLCK)  # a child process may hold the descriptor as well
            os.close(descriptor)

    def forked(self) -> None:
        """This is a child of the process that has the lock: its copy of the descriptor goes, and the lock stays."""
        descriptor, self._lock = self._lock, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _place(self, path: str) -> Path:
        check_path(path)
        return self.folder / path

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        """What is in a folder, sorted; nothing where there is none."""
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

    Names of queues come from records, and records from whoever wrote the store: `..` would lead out of its folder.
    """
    for part in path.split("/"):
        if part in {"", ".", ".."} or "\0" in part:
            raise OSError(errno.EINVAL, "no path within a store's folder", path)
        if len(os.fsencode(part)) > LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, f"a name of more than {LONGEST_NAME} bytes", path)


LONGEST_NAME = 255
"""Bytes of a file's or folder's name, on all file systems that Linux people use."""


def _unfinished(name: str) -> bool:
    """Whether a process was stopped while it wrote this small file: its name is none that a store knows."""
    return name.startswith(".") and name.endswith(".tmp")


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


def _reserve(descriptor: int, low: int, high: int) -> None:
    """Blocks for bytes `low:high`, so that writing to their mapping never meets a full disk, which would be a signal.

    Where nobody can reserve blocks (some file systems, under a C library that does not make up for it), what is in the
    file is written once more. On file systems that write each change to a new place (btrfs, ZFS), neither is a promise.
    """
    try:
        os.posix_fallocate(descriptor, low, high - low)
    except OSError as error:
        if error.errno not in {errno.EOPNOTSUPP, errno.EINVAL}:
            raise
        for start in range(low, high, 1 << 20):
            content = os.pread(descriptor, min(1 << 20, high - start), start)
            if os.pwrite(descriptor, content, start) != len(content):
                raise OSError(errno.ENOSPC, "no room for the whole file") from error


_FLOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, process


def _lock_first_byte(descriptor: int, kind: int) -> None:
    """Locks or unlocks byte 0 for this open file. Raises OSError: EAGAIN where another holds it."""
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, 0, 1, 0))


def _holder(descriptor: int) -> str:
    """Who holds the lock on byte 0. A broker's lock names its process; one like ours belongs to none."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
    process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))[-1]
    return f"process {process} holds it" if process > 0 else "another writer holds it"


_LOCKED: WeakSet[RealDisk] = WeakSet()
"""Those that were locked by this process."""


def _forked() -> None:
    for disk in _LOCKED:
        disk.forked()


os.register_at_fork(after_in_child=_forked)
