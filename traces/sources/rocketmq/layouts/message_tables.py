"""Column families of the database of messages: how one is read, and where its rows are."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from gapless.traces.files.scratch_folders import FolderGuard
from gapless.traces.problems import Unreadable
from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.blame.situation import switch
from gapless.traces.sources.rocketmq.blame.store import UNREADABLE
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.message_database import FOLDER, Pairs
from gapless.traces.sources.rocketmq.queues.queue_database import why_unreadable

TRIES = 3  # a running broker removes tables that it has merged
Table = TypeVar("Table")
BRIEF = 80  # letters of what no broker writes that a sentence shows


class MessageDatabase:
    """Reads tables of one database of messages: links to its files are made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.links = 0

    @cached_property
    def _room(self) -> Path:
        room = Path(tempfile.mkdtemp(prefix="gapless-messages-"))
        self.kept = FolderGuard(room)
        return room

    def read(self, family: str, reader: Callable[[Iterator[Pairs]], Table], *, tries: int = 1) -> Table:
        """Reads a column family with `reader`; with new links if a broker removed tables. Raises Unreadable."""
        from gapless.traces.sources.rocketmq.queues import rocksdb  # noqa: PLC0415 - the library may be missing

        for left in reversed(range(tries)):
            try:
                return reader(rocksdb.stretches(self.folder, self._room / str(self.links), family))
            except Unreadable:
                self.links += 1
                if not left:
                    raise
        raise AssertionError


def opened_database(judged: StoreFindings) -> MessageDatabase:
    """Returns the database of messages of a store, for all of its tables."""
    return judged.open(FOLDER, lambda: MessageDatabase(Path(judged.store.path) / FOLDER))


def read_table(
    judged: StoreFindings, family: str, what: str, reader: Callable[[Iterator[Pairs]], Table], *, is_on: bool
) -> Table | None:
    """Reads a column family with `reader`; None if it is missing, or cannot be judged.

    `what`: begins the sentence with the reason · `is_on`: the settings have the broker write it.
    """
    store = judged.store
    needed = switch(on=is_on or not store.settings)
    folder = Path(store.path) / FOLDER
    if not (folder / "CURRENT").is_file():
        judged.blame(UNREADABLE, needed, what=what, why=f"{FOLDER}/CURRENT is not there", count=int(is_on))
        return None
    if why := why_unreadable(folder, "that is"):
        judged.blame(UNREADABLE, needed, what=what, why=why)
        return None
    try:
        return opened_database(judged).read(family, reader, tries=TRIES if store.live else 1)
    except Unreadable as unreadable:
        judged.blame(UNREADABLE, needed, what=what, why=str(unreadable))
    return None


def place_in(
    family: str, mark_step: str, mark: str, argument: str = "position"
) -> Callable[[StoreFindings, Breach], Where | None]:
    """Returns `place` of a table: that of a row, and that of the value of the key `mark`.

    A row lies at its record's position · `mark_step`: the step that reads the value, as its `argument`. The place
    is None for a missing row, and for a message.
    """
    name = f"{FOLDER}/RocksDB:{family}"

    def place(_judged: StoreFindings, found: Breach) -> Where | None:
        if found.action == mark_step:
            return Where(file=f"{name}/{mark}", offset=found.arguments[argument])
        return Where(file=name, offset=found.position) if found.action == "find_row" else None

    return place


def brief(odd: str) -> str:
    """Shortens content that no broker writes, for a sentence: it may be of any length."""
    return odd if len(odd) <= BRIEF else f"{odd[:BRIEF]}…"
