"""The time of an input's newest file, which dates a report without the clock of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from gapless.traces.files.remote import RemotePath

DEPTH = 2  # folders below the input in which files count: a store has its log there, and its queues below
MOST = 10_000  # files and folders that are looked at


def newest_change(path: Path) -> int | None:
    """The last change of a file, or of the newest file of a folder, in seconds since 1970. Subfolders count.

    None for an input that is not on this machine, is missing, or may not be read.
    """
    if isinstance(path, RemotePath):
        return None
    try:
        if path.is_file():
            return int(path.stat().st_mtime)
        return max(islice(_changes(path, DEPTH), MOST), default=0) or None
    except OSError:
        return None


def _changes(folder: str | Path, depth: int) -> Iterator[int]:
    """The changes of the files in a folder; 0 for each subfolder, which takes time as a file does. Raises OSError."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield 0
                if depth > 1:
                    yield from _changes(entry.path, depth - 1)
            elif entry.is_file():
                yield int(entry.stat().st_mtime)
