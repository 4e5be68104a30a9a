"""Consume queues in a RocksDB database, as they are once they were copied out of it: see `rocksdb.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gapless.traces.files.scratch_folders import FolderGuard
from gapless.traces.sources.rocketmq.store.files import Queue, QueueFiles

FOLDERS = ("consumequeue_rocksdb", "consumequeue")  # the first by `useSeparateStorePathForRocksdbCQ`
PACKAGE = "rocksdict"


class QueueEnd(NamedTuple):
    """One end of a queue in the table: the position of its message, and its number."""

    position: int
    number: int


@dataclass(frozen=True)
class QueueDatabase:
    """The queues of a database, as they were when it was copied.

    `dispatched`: the log position up to which all entries are written; the next start continues from it.
    """

    folder: str  # relative to the store
    copy: str  # the file that the slots are copied to
    queues: QueueFiles  # for each queue its entries that follow one another, as a file that begins with the first
    last: Mapping[Queue, QueueEnd]
    first: Mapping[Queue, QueueEnd]
    dispatched: int
    kept: FolderGuard | None = field(default=None, compare=False)


def database_in(store: Path) -> Path | None:
    """The folder of the store's queue database, if it has one."""
    for name in FOLDERS:
        folder = store / name
        if (folder / "CURRENT").is_file() and any(folder.glob("MANIFEST-*")):
            return folder
    return None


def why_unreadable(folder: Path, holds: str = "consume queues are") -> str:
    """The reason why the database cannot be read, or an empty text: the library has no wheel everywhere.

    `holds`: the content with its verb, for the sentence.
    """
    try:
        import rocksdict  # noqa: F401, PLC0415 - it may be missing
    except ImportError:
        return (
            f"{holds} in {folder.name}/, a RocksDB database, and the package {PACKAGE}, which reads it, is not "
            f"installed (pip install {PACKAGE})"
        )
    return ""
