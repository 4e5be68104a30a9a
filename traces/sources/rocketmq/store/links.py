"""Links in a store that lead nowhere, as where a disk is not mounted. What depends on them is not judged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gapless.traces.problems import shown
from gapless.traces.sources.rocketmq.store import compacted_files, index_files, timer_files
from gapless.traces.sources.rocketmq.store.files import leads_nowhere

DEEPEST = 4  # folders below the store in which files of its lie
QUEUES = ("consumequeue", "consumequeue_ext", "consumequeue_rocksdb", "batchconsumequeue")
TIMERS = (timer_files.LOG, timer_files.WHEEL)
COMPACTION, INDEX = compacted_files.FOLDER, index_files.FOLDER
DEPENDS = {
    **dict.fromkeys(QUEUES, "entries of queues are"),
    **dict.fromkeys(TIMERS, "the timer wheel is"),
    INDEX: "the hash index is",
    COMPACTION: "what compacted topics keep is",
    "rocksdbstore": "what lies in tables there is",
    "config": "what only that file tells is",
    "checkpoint": "what only that file tells is",
    "abort": "whether the broker stopped in order is",
}
"""What is not judged, by the part of a store that has such a link."""


class BrokenLink(NamedTuple):
    """A link that leads nowhere: its path from the store on, and what it names."""

    path: str
    target: str

    @property
    def part(self) -> str:
        """The part of the store that has it."""
        return self.path.partition("/")[0]

    @property
    def told(self) -> str:
        """It, and what is not judged, if anything depends on it."""
        what = f": {DEPENDS[self.part]} not judged" if self.part in DEPENDS else ""
        return f"{shown(self.path)} is a link to {shown(self.target)}, which is not there{what}"


def broken_links(store: Path, among_queues: Iterable[str]) -> tuple[BrokenLink, ...]:
    """Every such link in the store, by path; those `among_queues`, of which there may be very many, are known."""
    known = [BrokenLink(str(Path(path).relative_to(store)), os.readlink(path)) for path in among_queues]  # noqa: PTH115
    return tuple(sorted([*known, *_below(store, "", DEEPEST)]))


def _below(folder: Path | str, name: str, deep: int) -> Iterator[BrokenLink]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = f"{name}{entry.name}"
            if path == QUEUES[0] and entry.is_dir():
                continue
            if leads_nowhere(entry):
                yield BrokenLink(path, os.readlink(entry.path))  # noqa: PTH115 - of very many
            elif deep and entry.is_dir():
                yield from _below(entry.path, f"{path}/", deep - 1)
