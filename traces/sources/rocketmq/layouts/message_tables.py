"""Column families of the database of messages: how one is read, and where its rows are."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from gapless.traces.problems import Unreadable
from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.message_database import FOLDER, Pairs
from gapless.traces.sources.rocketmq.queues.queue_database import why_unreadable
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory

TRIES = 3  # a running broker removes tables that it has merged
Table = TypeVar("Table")
BRIEF = 80  # letters of what no broker writes that a sentence shows


def read_table(
    judged: StoreFindings, family: str, what: str, reader: Callable[[Iterator[Pairs]], Table], *, is_on: bool
) -> Table | None:
    """Reads a column family with `reader`; None if it is missing, or cannot be judged.

    `what`: begins the sentence with the reason · `is_on`: the settings have the broker write it.
    """
    store = judged.store
    tell = judged.doubt if is_on or not store.settings else judged.note
    folder = Path(store.path) / FOLDER
    if not (folder / "CURRENT").is_file():
        if is_on:
            tell(f"{what}{FOLDER}/CURRENT is not there")
        return None
    if why := why_unreadable(folder, "that is"):
        tell(f"{what}{why}")
        return None
    from gapless.traces.sources.rocketmq.queues import rocksdb  # noqa: PLC0415 - the library may be missing

    with tempfile.TemporaryDirectory(prefix="gapless-messages-") as room:
        for left in reversed(range(TRIES)):
            try:
                return reader(rocksdb.stretches(folder, Path(room) / str(left), family))
            except Unreadable as unreadable:
                if not left or not store.live:
                    tell(f"{what}{unreadable}")
                    break
    return None


def place_in(
    family: str, mark_step: str, mark: str, argument: str = "position"
) -> Callable[[StoreDirectory, Breach], Where | None]:
    """Returns `place` of a table: that of a row, and that of the value of the key `mark`.

    A row lies at its record's position · `mark_step`: the step that reads the value, as its `argument`. The place
    is None for a missing row, and for a message.
    """
    name = f"{FOLDER}/RocksDB:{family}"

    def place(_store: StoreDirectory, found: Breach) -> Where | None:
        if found.action == mark_step:
            return Where(file=f"{name}/{mark}", offset=found.arguments[argument])
        return Where(file=name, offset=found.position) if found.action == "find_row" else None

    return place


def brief(odd: str) -> str:
    """Shortens content that no broker writes, for a sentence: it may be of any length."""
    return odd if len(odd) <= BRIEF else f"{odd[:BRIEF]}…"
