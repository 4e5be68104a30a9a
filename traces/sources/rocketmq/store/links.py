"""Links in a store without a target, as of an unmounted disk. Files that depend on them are not judged."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import starmap
from pathlib import Path
from typing import NamedTuple

from gapless.traces.problems import shown
from gapless.traces.sources.rocketmq.store.files import links_to_nowhere
from gapless.traces.sources.rocketmq.store.names import COMPACTION_FOLDER, INDEX_FOLDER, TIMER_LOG, TIMER_WHEEL

DEEPEST = 4  # folders below the store in which files of its lie
QUEUES = ("consumequeue", "consumequeue_ext", "consumequeue_rocksdb", "batchconsumequeue")
TIMERS = (TIMER_LOG, TIMER_WHEEL)
FILES_OF_ROCKSDB = re.compile(r"\d+\.(sst|log|blob)|CURRENT|IDENTITY|LOCK|LOG(\.old\.\d+)?|(MANIFEST|OPTIONS)-\d+")
DEPENDS = {
    **dict.fromkeys(QUEUES, "entries of queues are"),
    **dict.fromkeys(TIMERS, "the timer wheel is"),
    INDEX_FOLDER: "the hash index is",
    COMPACTION_FOLDER: "what compacted topics keep is",
    "rocksdbstore": "what lies in tables there is",
    "config": "what only that file tells is",
    "checkpoint": "what only that file tells is",
    "abort": "whether the broker stopped in order is",
}
"""What is not judged, by the part of a store that has such a link."""


class BrokenLink(NamedTuple):
    """A link that leads nowhere: its path from the store on, and what it names.

    `queues`: the topic, or the queue as TOPIC/QUEUE, whose entries alone depend on it; empty where more does ·
    `needed`: whether anything does · `database`: whether it is in place of a file of the queue database.
    """

    path: str
    target: str
    queues: str = ""
    needed: bool = True
    database: bool = False

    @property
    def part(self) -> str:
        """The part of the store that has it."""
        return self.path.partition("/")[0]

    @property
    def sentence(self) -> str:
        """It, and what is not judged, if anything depends on it."""
        depends = f"entries of {shown(self.queues)} are" if self.queues else DEPENDS.get(self.part)
        if not self.needed:
            depends = "what that database holds of queues is" if self.database else None
        what = f": {depends} not judged" if depends else ""
        return f"{shown(self.path)} is a link to {shown(self.target)}, which is not there{what}"


def broken_links(
    store: Path, among_queues: Iterable[str], *, alone: bool, database: Path | None
) -> tuple[BrokenLink, ...]:
    """Returns every such link in the store, by path; those `among_queues`, possibly many, are given.

    `alone`: of the latter, each has a queue's or a topic's entries behind it and no more, unless it is a file of the
    `database` that lies there too.
    """
    known = []
    for path in among_queues:
        name = Path(path).relative_to(store)
        queues = "/".join(name.parts[1:3]) if alone and not _is_of(database, Path(path)) else ""
        known.append(BrokenLink(str(name), os.readlink(path), queues))  # noqa: PTH115
    found = (
        link._replace(database=_is_of(database, store / link.path))
        for link in (*known, *starmap(BrokenLink, links_to_nowhere(store, DEEPEST, besides=QUEUES[0])))
    )
    return tuple(sorted(found))


def _is_of(database: Path | None, path: Path) -> bool:
    """True if a path is that of a file of the queue database."""
    return path.parent == database and FILES_OF_ROCKSDB.fullmatch(path.name) is not None


def is_behind(links: Iterable[BrokenLink], topic: str, queue: int) -> bool:
    """True if the entries of a queue depend on one of these links alone."""
    return any(link.queues in (topic, f"{topic}/{queue}") for link in links if link.queues and link.needed)
