"""The status of a file without its times.

Linux 6.13 and later give a file a time of nanoseconds at the first write behind each look at its times, which has to be
written, too: a `fstat` between two syncs makes the second one take a third more. So times are not asked for.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from pathlib import Path
from typing import NamedTuple

EMPTY_PATH, CURRENT_FOLDER = 0x1000, -100  # AT_EMPTY_PATH, AT_FDCWD
ASKED = 0x4 | 0x100 | 0x200  # STATX_NLINK, STATX_INO, STATX_SIZE
_STATX = struct.Struct("=16xI12xQQ88xII112x")  # struct statx of linux/stat.h: links, inode, size, device


class FileStatus(NamedTuple):
    """Status of a file: device and inode name it, `links` counts its names, `size` is in bytes."""

    device: int
    inode: int
    links: int
    size: int

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode: no two files have the same at a time."""
        return self.device, self.inode


def status_of(file: int | str | Path) -> FileStatus:
    """The status of an open descriptor, or of a path. Raises OSError."""
    if _statx is None:
        return _with_times(file)
    found = ctypes.create_string_buffer(_STATX.size)
    if isinstance(file, int):
        failed = _statx(file, b"", EMPTY_PATH, ASKED, found)
    else:
        failed = _statx(CURRENT_FOLDER, os.fsencode(file), 0, ASKED, found)
    if failed:
        if (number := ctypes.get_errno()) in (errno.ENOSYS, errno.EPERM):  # containers forbid calls by EPERM
            return _with_times(file)
        raise OSError(number, os.strerror(number), None if isinstance(file, int) else str(file))
    links, inode, size, major, minor = _STATX.unpack(found.raw)
    return FileStatus(os.makedev(major, minor), inode, links, size)


def _with_times(file: int | str | Path) -> FileStatus:
    status = os.stat(file)  # noqa: PTH116 - a descriptor, too
    return FileStatus(status.st_dev, status.st_ino, status.st_nlink, status.st_size)


_statx = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)  # a C library may lack it
if _statx is not None:
    _statx.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
