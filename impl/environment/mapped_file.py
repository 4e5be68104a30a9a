"""A file in memory that holds no descriptor, for a store has many thousands of files."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gapless.impl.environment.file_status import FileStatus, status_of

Bytes = npt.NDArray[np.uint8]


class KnowsNames(Protocol):
    """A disk's knowledge of durable names, and of who may write."""

    def is_named(self, path: Path) -> bool:
        """True if a file's name is known to be durable."""

    def make_name_durable(self, path: Path) -> None:
        """A file's name is durable, and the names of the folders that lead to it. Raises OSError."""

    def require_lock(self) -> None:
        """No other writer is let in, if the disk was locked. Raises OSError."""


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_ssize_t]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
MAP_FAILED = ctypes.c_void_p(-1).value


class MappedBytes:
    """Bytes of a file in memory, for as long as an array of them lives.

    Python's own `mmap` holds a descriptor for every mapping, and a store has many thousands of files.
    """

    def __init__(self, descriptor: int, length: int, *, write: bool) -> None:
        self.length = length
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if write else 0)
        self.address: int | None = LIBC.mmap(None, length, protection, mmap.MAP_SHARED, descriptor, 0)
        if self.address == MAP_FAILED:
            self.address = None
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        where = self.address, not write
        self.__array_interface__ = {"data": where, "shape": (length,), "typestr": "|u1", "version": 3}

    def advise(self, length: int, what: int) -> None:
        """Advise the kernel of the use of the first so many bytes. It may ignore that."""
        LIBC.madvise(self.address, length, what)

    def __del__(self, unmap: Callable[[int, int], int] = LIBC.munmap) -> None:
        if (address := getattr(self, "address", None)) is not None:
            unmap(address, self.length)


class MappedFile:
    """A file of the real disk. It owns its descriptor until it rests; a later sync opens it again.

    `data`: no bytes before `map`.
    """

    descriptor = -1
    data: Bytes = np.zeros(0, np.uint8)

    def __init__(self, disk: KnowsNames, path: Path, descriptor: int) -> None:
        self.disk = disk
        self.path = path
        self.descriptor = descriptor
        self.is_closed = False
        self._identity = (-1, -1)
        self._mapping: MappedBytes | None = None

    def map(self, length: int, *, write: bool) -> None:
        """Its bytes are in memory. Raises OSError."""
        self._identity = status_of(self.descriptor).identity
        data: Bytes = np.zeros(0, np.uint8)  # what a crash in the midst of `create` may leave, and none can map
        if length:
            self._mapping = MappedBytes(self.descriptor, length, write=write)
            data = np.asarray(self._mapping)
        if not write:
            data.flags.writeable = False
        self.data = data

    def reserve(self, low: int, high: int) -> None:
        """Reserve room on the disk for bytes `low:high`, to which no thread writes now. Raises OSError: ENOSPC."""
        high = min(-(-high // mmap.PAGESIZE) * mmap.PAGESIZE, len(self.data))  # the kernel maps pages
        if low < high:
            with self._opened() as descriptor:
                self._require_whole(status_of(descriptor))  # room beyond its end would make it long again, of zeros
                _reserve(descriptor, low, high)

    def used(self) -> int:
        """The begin of its zeros, or its end if the file system does not know. Raises OSError."""
        end = self._used()
        if self._mapping is not None:
            self._mapping.advise(end, mmap.MADV_WILLNEED)
        return end

    def _used(self) -> int:
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
        """Make everything written durable, without the interpreter lock. Raises OSError."""
        descriptor = self.descriptor
        if descriptor >= 0 and not self.is_closed and self.disk.is_named(self.path):  # as below, in half the time
            os.fdatasync(descriptor)
            self._require_promised(status_of(descriptor))
            return
        with self._there() as descriptor:
            if self.disk.is_named(self.path):
                os.fdatasync(descriptor)  # on Linux it takes mapped pages along
                return
            os.fsync(descriptor)
        self.disk.make_name_durable(self.path)

    def require(self) -> None:
        """It is there and may be synced. Raises OSError."""
        with self._there():
            pass

    def require_whole(self) -> None:
        """The file has its full length: who touches bytes that another program cut off is killed. Raises OSError.

        Bytes of a file that was deleted, or replaced by another one, stay what they were.
        """
        try:
            status = status_of(self.descriptor if self.descriptor >= 0 else self.path)
        except OSError:
            return
        if status.identity == self._identity:
            self._require_whole(status)

    def _require_whole(self, status: FileStatus) -> None:
        if status.size < len(self.data):
            raise OSError(errno.EIO, f"the file was cut from outside to {status.size} of its {len(self.data)} bytes")

    @contextmanager
    def _there(self) -> Iterator[int]:
        if self.is_closed:
            raise OSError(errno.EBADF, "the file was closed")
        with self._opened() as descriptor:
            yield descriptor
            self._require_promised(status_of(descriptor))  # last: what was cut off or deleted meanwhile is not, either

    def _require_promised(self, status: FileStatus) -> None:
        """Check, by its status after a sync, that the synced bytes may be promised. Raises OSError."""
        if not status.links:  # a broker that starts deletes it before it asks for the lock
            raise OSError(errno.ENOENT, "the file was deleted from outside")
        self._require_whole(status)
        self.disk.require_lock()

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Its descriptor, opened for a moment where it has none. Raises OSError where another file has its name."""
        if self.descriptor >= 0:
            yield self.descriptor
            return
        descriptor = os.open(self.path, os.O_RDWR if self.data.flags.writeable else os.O_RDONLY)
        try:
            if status_of(descriptor).identity != self._identity:
                raise OSError(errno.ENOENT, "another file was put in its place")
            yield descriptor
        finally:
            os.close(descriptor)

    def expect_sparse_use(self) -> None:
        """Read single pages on access. Else a kernel reads ahead: megabytes of zeros for a first entry."""
        if self._mapping is not None:
            self._mapping.advise(self._mapping.length, mmap.MADV_RANDOM)

    def rest(self) -> None:
        """The descriptor goes.

        A log keeps that of the file which it writes to. Once another process was informed of an error of the disk, a
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


def _reserve(descriptor: int, low: int, high: int) -> None:
    """Reserve blocks for bytes `low:high`: a write to their mapping on a full disk would be a signal.

    If blocks cannot be reserved (some file systems, under a C library that does not make up for it), what is in the
    file is written again. On file systems that write each change to a new place (btrfs, ZFS), neither is a promise.
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
