"""The commit of a verdict table: its files lie in a temporary folder, and get their places when all of them are there.

On a disk the folder gets the table's name. A store has no folders that could be renamed, so there each file gets its
place, and the last one is the mark, as Spark has it: without `_SUCCESS` a table is not whole.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from gapless.traces.files.remote import RemotePath
from gapless.traces.problems import UsageError, shown
from gapless.traces.processes.timeouts import each_at_once, uninterrupted
from gapless.traces.suggestions import first_of

SUCCESS = "_SUCCESS"
TEMPORARY = "_temporary"  # readers leave out what begins so
PART = re.compile(r"(\d{3,}-[\w-]+|none)\.parquet")
BELOW_A_BUCKET = 3  # parts of a path, at least


class Commit(Protocol):
    """The way in which the files of a table get their places."""

    @property
    def unfinished(self) -> Path:
        """The folder for its files until then."""

    def begin(self) -> None:
        """Make the folder. Raises OSError if the table cannot be written, and UsageError if it may not be."""

    def commit(self) -> None:
        """Give the files their places, instead of those of a table that is replaced. Raises OSError, UsageError."""

    def discard(self) -> None:
        """Remove what has no place."""


def commit_to(folder: Path, *, overwrite: bool) -> Commit:
    """Return the commit of a table, on a disk or elsewhere. With `overwrite` a table that is there is replaced."""
    if isinstance(folder, RemotePath):
        return StoreCommit(folder, overwrite)
    return DiskCommit(folder, overwrite)


@dataclass(frozen=True)
class DiskCommit:
    """The commit of a table on a disk: its folder is renamed."""

    folder: Path
    overwrite: bool

    @property
    def unfinished(self) -> Path:
        """See `Commit`."""
        return self._aside("tmp")

    def _aside(self, end: str) -> Path:
        return self.folder.absolute().with_name(f".{self.folder.name}.{os.getpid()}.{end}")

    def begin(self) -> None:
        """See `Commit`."""
        folder, above = self.folder, self.folder.absolute().parent
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise UsageError(f"{shown(folder)}: not a directory; the verdicts go into one of their own")
        self._refuse()
        if not above.is_dir():
            raise UsageError(f"verdicts {shown(folder)}: folder {shown(folder.parent)} does not exist: make it first")
        if not os.access(above, os.W_OK | os.X_OK):
            raise UsageError(f"{shown(folder)}: nothing can be made in {shown(above)}")
        self.unfinished.mkdir()

    def _refuse(self) -> None:
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        _refuse(self.folder, names, overwrite=self.overwrite)

    def commit(self) -> None:
        """See `Commit`."""
        self._refuse()
        (self.unfinished / SUCCESS).touch()
        folder, before = self.folder.absolute(), self._aside("old")
        with uninterrupted():
            if folder.is_dir() and any(folder.iterdir()):
                folder.rename(before)
            try:
                self.unfinished.rename(folder)
            except OSError:
                if before.is_dir():
                    before.rename(folder)
                raise
        shutil.rmtree(before, ignore_errors=True)

    def discard(self) -> None:
        """See `Commit`."""
        shutil.rmtree(self.unfinished, ignore_errors=True)


@dataclass(frozen=True)
class StoreCommit:
    """The commit of a table in an object store or in Hadoop: each of its files is copied, or renamed."""

    folder: RemotePath
    overwrite: bool
    run: str = field(default_factory=lambda: uuid4().hex)

    @property
    def unfinished(self) -> RemotePath:
        """See `Commit`."""
        return self.folder / TEMPORARY / self.run

    def begin(self) -> None:
        """See `Commit`: a file is written and published, as all will be."""
        if len(self.folder.parts) < BELOW_A_BUCKET:
            raise UsageError(f"{shown(self.folder)}: the verdicts go into a folder of their own: name one in it")
        try:
            if self.folder.is_file():
                raise UsageError(f"{shown(self.folder)}: not a directory; the verdicts go into one of their own")
            _refuse(self.folder, self._names(), overwrite=self.overwrite)
            probe = self.unfinished / "probe"
            probe.write_bytes(b"gapless")
            probe.publish(self.unfinished / "published")
        except OSError:
            self.discard()
            raise

    def _names(self) -> list[str]:
        return [path.name for path in self.folder.iterdir() if path.name != TEMPORARY]

    def commit(self) -> None:
        """See `Commit`."""
        before = self._names()
        _refuse(self.folder, before, overwrite=self.overwrite)
        places = [self.folder / path.name for path in self.unfinished.iterdir() if path.suffix == ".parquet"]
        with uninterrupted():
            (self.folder / SUCCESS).unlink(missing_ok=True)
            try:
                each_at_once(lambda name: (self.folder / name).unlink(missing_ok=True), before)
                each_at_once(lambda place: (self.unfinished / place.name).publish(place), places)
                (self.folder / SUCCESS).write_bytes(b"")
            except BaseException:
                with suppress(OSError):
                    each_at_once(lambda place: place.unlink(missing_ok=True), places)
                raise

    def discard(self) -> None:
        """See `Commit`."""
        with suppress(OSError):
            others = any(path != self.unfinished for path in (self.folder / TEMPORARY).iterdir())
            (self.unfinished if others else self.folder / TEMPORARY).remove()


def _refuse(folder: Path, names: Sequence[str], *, overwrite: bool) -> None:
    """Raise UsageError unless there is nothing, or a table that may be replaced."""
    if others := sorted(name for name in names if name != SUCCESS and not PART.fullmatch(name)):
        raise UsageError(
            f"{shown(folder)}: not empty: it has {shown(first_of(others, 3))}; the verdicts go into a directory of "
            "their own"
        )
    if names and not overwrite:
        raise UsageError(
            f"{shown(folder)}: a table of verdicts is there already: name another, or replace it with "
            "--verdicts-mode overwrite"
        )
