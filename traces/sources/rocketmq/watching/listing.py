"""Lists the files of a followed store at each look, to notice those that vanish or become shorter.

Nothing is accused here: the store is judged again from its beginning then, by the rules of a check. The log's folders
are listed each time, those of queues in turns.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from gapless.traces.problems import Gone, shown
from gapless.traces.sources.rocketmq.joining.findings import QueueProgress
from gapless.traces.sources.rocketmq.queues.queue_ends import NEVER_DELETED
from gapless.traces.sources.rocketmq.segments.results import Subject
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import ENTRY, QueueFile, can_be_a_folder, files_in

AT_ONCE = 100  # folders of queues that one look lists
GRACE = 1.0  # seconds that a queue may lack files until it counts


@dataclass
class FileListing:
    """The files of the log and of judged queues, as they were last listed.

    `log`: the first position of each file · `doubted`: since when a queue lacks files; a deletion takes them in turn.
    """

    log: tuple[int, ...] = ()
    queues: dict[Subject, tuple[QueueFile, ...]] = field(default_factory=dict)
    doubted: dict[Subject, float] = field(default_factory=dict)
    deletions: bool = False
    turn: int = 0

    def take_deletions(self) -> bool:
        """Returns True once after a topic lost all its queues: what that means is for a report to say."""
        seen, self.deletions = self.deletions, False
        return seen

    def copy(self) -> FileListing:
        """Returns a copy, to save it."""
        return FileListing(self.log, self.queues.copy())

    def missing_file(
        self, store: StoreDirectory, reached: int, queues: Mapping[Subject, QueueProgress], now: float = math.inf
    ) -> str:
        """Returns the name of a file that was judged and is gone, or shorter; an empty text without one.

        `now`: the time, to look at the next `AT_ONCE` queues, and at those in doubt; without it, at all, without grace.
        """
        return self._missing_log_file(store, reached) or self._missing_queue_file(store, queues, now)

    def _missing_log_file(self, store: StoreDirectory, reached: int) -> str:
        """Returns the name of a judged log file that is missing between others."""
        now = {file.base for file in store.files}
        gone = [base for base in self.log if store.start < base < min(reached, max(now)) and base not in now]
        self.log = tuple(sorted(now))
        return store.log_file_at(gone[0])[0] if gone else ""

    def _missing_queue_file(self, store: StoreDirectory, queues: Mapping[Subject, QueueProgress], now: float) -> str:
        """Returns the name of a queue's folder, or file, that lost judged entries."""
        every = now == math.inf
        for subject in list(queues) if every else self._due(queues):
            before, there = self.queues.get(subject, ()), _files_of(store, subject)
            lost = _lost(before, there, queues[subject], store.start)
            deleted = lost is not None and not there and _is_deleted(store, subject[0])
            self.deletions |= deleted
            if lost is None or deleted:
                self.queues[subject] = there
                self.doubted.pop(subject, None)
            elif every or now - self.doubted.setdefault(subject, now) >= GRACE:
                return _named(subject, lost if there else None)
        return ""

    def _due(self, queues: Collection[Subject]) -> list[Subject]:
        if self.turn >= len(queues):
            self.turn = 0
        due = islice(queues, self.turn, self.turn + AT_ONCE)
        self.turn += AT_ONCE
        return list(dict.fromkeys((*(one for one in self.doubted if one in queues), *due)))


def log_sizes(folders: Collection[Path]) -> dict[str, int]:
    """Lists the files of the log, and their lengths."""
    found = {}
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as files:
            found.update({file.path: file.stat().st_size for file in files})
    return found


def file_named_by(gone: Gone | FileNotFoundError) -> str:
    """Returns the name of a file that an error names as gone."""
    cause = gone.__cause__ if isinstance(gone, Gone) else gone
    return shown(cause.filename if isinstance(cause, OSError) else str(gone))


def _files_of(store: StoreDirectory, subject: Subject) -> tuple[QueueFile, ...]:
    if not can_be_a_folder(subject[0]):
        return ()
    try:
        return files_in(f"{store.path}/consumequeue/{subject[0]}/{subject[1]}")
    except OSError:
        return ()


def _lost(
    before: tuple[QueueFile, ...], now: tuple[QueueFile, ...], run: QueueProgress, start: int
) -> QueueFile | None:
    """Returns the first file whose judged entries are not there any more, unless they may have expired."""
    lengths = {file.base: file.length for file in now}
    oldest = now[0].base if now else 0
    for file in before:
        expired = run.last < start or (file.base < oldest and run.began < start)
        if file.base < run.indexed * ENTRY and not expired and lengths.get(file.base, -1) < file.length:
            return file
    return None


def _is_deleted(store: StoreDirectory, topic: str) -> bool:
    """True if a topic has no file of a queue left: an operator may delete it, and a check says so."""
    return topic not in NEVER_DELETED and not any(_topic_files(f"{store.path}/consumequeue/{topic}"))


def _topic_files(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as queues:
        for queue in queues:
            with suppress(OSError), os.scandir(queue.path) as files:
                yield from (file.path for file in files)


def _named(subject: Subject, file: QueueFile | None) -> str:
    folder = f"consumequeue/{subject[0]}/{subject[1]}"
    return f"{folder}/{file.base:020d}" if file else folder
