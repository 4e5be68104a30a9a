"""Disks that are too small: a file system of a few hundred KB, where this machine lets us mount one.

Of two kinds, since they differ in when they run out of room: ext4 where pages are written, and tmpfs also where pages
of a hole are read through a mapping.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Literal

Kind = Literal["ext4", "tmpfs"]
KINDS: tuple[Kind, ...] = ("ext4", "tmpfs")

WIDE = 64 << 20  # bytes of the whole, most of them taken by a file


class SmallDisk:
    """A file system at `place`, of which `size` bytes are free for what is in `folder`. Raises OSError."""

    def __init__(self, place: Path, size: int, kind: Kind) -> None:
        self.place, self.folder = place, place / "store"
        self._image = place.with_suffix(".image")
        self._ballast = place / "ballast"
        if kind == "tmpfs":
            _run("mount", "-t", "tmpfs", "-o", f"size={WIDE}", "tmpfs", str(place))
        else:
            with self._image.open("wb") as image:
                image.truncate(WIDE)
            _run("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", str(self._image))
            _run("mount", "-o", "loop", str(self._image), str(place))
        self.folder.mkdir()
        with self._ballast.open("wb") as ballast:
            free = os.statvfs(place)
            os.posix_fallocate(ballast.fileno(), 0, free.f_bavail * free.f_frsize - size)

    @classmethod
    def can_be(cls, place: Path, kind: Kind) -> bool:
        """True if this machine lets us mount one there."""
        try:
            cls(place, 1 << 20, kind).release()
        except OSError:
            place.with_suffix(".image").unlink(missing_ok=True)
            return False
        return True

    def widen(self) -> None:
        """There is room again."""
        self._ballast.unlink(missing_ok=True)

    def release(self) -> None:
        """It is gone, with all that is in it."""
        with suppress(OSError):
            _run("umount", "--lazy", str(self.place))
        self._image.unlink(missing_ok=True)


def _run(command: str, *arguments: str) -> None:
    """Raises OSError."""
    found = shutil.which(command, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found is None:
        raise FileNotFoundError(command)
    done = subprocess.run([found, *arguments], capture_output=True, check=False)  # noqa: S603 - its name is ours
    if done.returncode:
        raise PermissionError(done.stderr.decode(errors="replace").strip())
