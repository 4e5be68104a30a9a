"""The time of an input's newest file, which dates a report without the clock of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gapless.traces.remote import RemotePath


def newest_change(path: Path) -> int | None:
    """The last change of a file, or of the newest file below a folder, in seconds since 1970.

    None for what is not on this machine, is missing, or may not be read.
    """
    if isinstance(path, RemotePath):
        return None
    times = [*_changes([path] if path.is_file() else path.rglob("*"))]
    return max(times, default=None)


def _changes(paths: Iterator[Path] | list[Path]) -> Iterator[int]:
    try:
        for path in paths:
            if path.is_file():
                yield int(path.stat().st_mtime)
    except OSError:
        return
