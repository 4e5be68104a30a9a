"""The demonstration: a real broker's store is checked as it is, and again with eight bytes of one queue changed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path

from gapless.traces.problems import UsageError

ENTRY = 20  # bytes
DAMAGED = 120  # the entry that is made to point 13 bytes too far
QUEUE = "orders/store/consumequeue/orders/1/00000000000000000000"
PARTS = frozenset({"whole", "damaged", "report.html"})
"""The names that a demonstration leaves in its folder."""


class Demonstration:
    """A folder with the store, whole and damaged, and the report of the damaged one."""

    def __init__(self, folder: Path, show: Callable[[str], None]) -> None:
        self.folder = folder
        self.show = show

    def run(self) -> bool:
        """True if the two checks found what they must. Raises UsageError where the folder has other files."""
        self.prepare()
        self.show("A store as a RocketMQ 5.5.0 broker left it:")
        whole = self._gapless("check", self.folder / "whole/orders")
        self.show("The same store; one entry of one queue points 13 bytes too far:")
        damaged = self._gapless("check", self.folder / "damaged/orders", "--report", self.folder / "report.html")
        return (whole, damaged) == (0, 1)

    def prepare(self) -> None:
        """Lay out both stores. Raises UsageError where the folder has other files."""
        self._make_room()
        self._unpack("whole")
        self._unpack("damaged")
        self._damage()

    def _make_room(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"{self.folder}: a file; name a folder that does not exist yet")
        if others := {path.name for path in self.folder.glob("*")} - PARTS:
            raise UsageError(f"{self.folder}: has {min(others)} in it, which is not of a demo: name another folder")
        for name in ("whole", "damaged"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)

    def _unpack(self, name: str) -> None:
        """A fresh copy of the store below `name`."""
        with as_file(files("gapless.demo") / "orders.tar.xz") as path, tarfile.open(path) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
            archive.extractall(self.folder / name)  # noqa: S202 - our own archive

    def _damage(self) -> None:
        """Make one entry point into the middle of a record."""
        with (self.folder / "damaged" / QUEUE).open("r+b") as queue:
            queue.seek(DAMAGED * ENTRY)
            position = int.from_bytes(queue.read(8), "big")
            queue.seek(DAMAGED * ENTRY)
            queue.write((position + 13).to_bytes(8, "big"))

    def _gapless(self, *arguments: str | Path) -> int:
        """Run the command line as a user does, and show the command. Returns its exit code."""
        self.show(f"$ gapless {shlex.join(map(str, arguments))}")
        command = [sys.executable, "-P", "-m", "gapless", *map(str, arguments)]
        return subprocess.run(command, check=False).returncode  # noqa: S603 - our own command
