"""Disks that are too small: a file system of a few hundred KB in memory, where this machine lets us mount one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

WIDE = 64 << 20


class SmallDisk:
    """A file system of `size` bytes at `folder`. Raises OSError where none can be mounted."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self._mount(f"size={size}")

    @classmethod
    def can_be(cls, folder: Path) -> bool:
        """Whether this machine lets us mount one there."""
        try:
            cls(folder, 1 << 16).release()
        except OSError:
            return False
        return True

    def widen(self) -> None:
        """There is room again."""
        self._mount(f"remount,size={WIDE}")

    def release(self) -> None:
        """It is gone, with all that is in it."""
        _run("umount", "--lazy", str(self.folder))

    def _mount(self, options: str) -> None:
        _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder))


def _run(command: str, *arguments: str) -> None:
    """Raises OSError."""
    found = shutil.which(command)
    if found is None:
        raise FileNotFoundError(command)
    done = subprocess.run([found, *arguments], capture_output=True, check=False)  # noqa: S603 - its name is ours
    if done.returncode:
        raise PermissionError(done.stderr.decode(errors="replace").strip())
