"""The files of compacted topics, their entries, and the position up to which they were compacted.

Source: docs/rocketmq.md#compaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.traces.problems import Unreadable, shown
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.queues.batch_queues import UNIT, Units
from gapless.traces.sources.rocketmq.startup.startup_files import UnexpectedFile, unexpected_files
from gapless.traces.sources.rocketmq.store.files import FARTHEST, LogFile, Queue, files_in, queue_files, read_exactly
from gapless.traces.sources.rocketmq.store.names import COMPACTION_FOLDER
from gapless.traces.sources.rocketmq.store.settings import read_json_or_older
from gapless.traces.sources.rocketmq.store.topics import topics_of

FOLDER = COMPACTION_FOLDER
RECORDS, ENTRIES = f"{FOLDER}/compactionLog", f"{FOLDER}/compactionCq"
POSITIONS = f"{FOLDER}/position-checkpoint"
NEW_FILES = "compacting"  # the folder in which new files are written before they replace others
REMOVED = ".delete"  # ends the name of a file whose place another one is to take
POLICY = "cleanup.policy"  # an attribute of a topic
END_OF_FILE = -1  # the position in an entry that ends its file


@dataclass(frozen=True)
class CompactedFile:
    """A file of records and its file of entries, which begin at `base`; None if one is missing."""

    base: int
    records: LogFile | None
    entries: LogFile | None

    def units(self) -> Units:
        """Reads its entries, up to the terminator, or the last valid one for a broker. Raises Unreadable."""
        if self.entries is None:
            return np.zeros(0, UNIT)
        data = np.zeros(self.entries.length // UNIT.itemsize * UNIT.itemsize, np.uint8)
        read_exactly(self.entries, 0, data.data)
        units = data.view(UNIT)
        taken = (units["position"] >= 0) & (units["size"] > 0) & (units["number"] >= 0) & (units["count"] > 0)
        (ends,) = np.nonzero((units["position"] == END_OF_FILE) & (units["size"] == 0))
        (last,) = np.nonzero(taken[: ends[0]] if len(ends) else taken)
        return units[: last[-1] + 1 if len(last) else 0]


@dataclass(frozen=True)
class CompactedFiles:
    """The files of one queue, by base."""

    queue: Queue
    files: tuple[CompactedFile, ...]

    def entry_at(self, number: int) -> tuple[str, int]:
        """The file of entries and the offset of the first entry from a number on, or behind the last one."""
        for file in self.files:
            units = file.units()
            behind = units["number"] >= number
            if behind.any():
                return self.name(ENTRIES, file.base), int(behind.argmax()) * UNIT.itemsize
        last = self.files[-1] if self.files else None
        return self.name(ENTRIES, last.base if last else 0), len(last.units()) * UNIT.itemsize if last else 0

    def entries_up_to(self, base: int, number: int) -> int:
        """Returns the length of the entries below message `number`, in the file that begins at `base`."""
        units = next(file for file in self.files if file.base == base).units()
        return (int((units["number"] == number).argmax()) + 1) * UNIT.itemsize

    def message_at(self, position: int) -> tuple[str, int]:
        """The file of records that holds a place, and the offset in it."""
        base = max((file.base for file in self.files if file.base <= position), default=0)
        return self.name(RECORDS, base), position - base

    def name(self, folder: str, base: int) -> str:
        """A file, as reports call it."""
        return f"{folder}/{self.queue[0]}/{self.queue[1]}/{base:020d}"


@dataclass(frozen=True)
class CompactedQueue(CompactedFiles):
    """The same, and what else is known of the queue.

    `broken_off`: a compaction stopped when it had replaced some of the files, not all · `strange`: what the broker's
    next start stumbles over in its folders · `promised`: its topic is compacted now, as its attributes say ·
    `position`: number of the last message that was compacted, as the broker wrote it down, or -1
    """

    broken_off: bool
    strange: tuple[UnexpectedFile, ...]
    promised: bool
    position: int


def opened_queues(judged: StoreFindings) -> tuple[tuple[CompactedQueue, ...], list[str]]:
    """Opens the compacted queues of a store, once, with notes."""
    notes: list[str] = []
    path, queues = Path(judged.store.path), list(judged.queues)
    return judged.open("compaction", lambda: (_compacted_queues(path, queues, notes), notes))


def _compacted_queues(store: Path, of_log: Collection[Queue], notes: list[str]) -> tuple[CompactedQueue, ...]:
    """The compacted queues of a store: those with files, and those of the log whose topic is compacted.

    None of them where there is no folder. Notes say what cannot be read, or is not there.
    """
    if not (store / FOLDER).is_dir():
        if lacking := sorted({topic for topic, _ in of_log} & _topics(store, [])):
            are = "and others are" if len(lacking) > 1 else "is"
            notes.append(f"{FOLDER}/ is not there, where {shown(lacking[0])} {are} compacted: that is not judged")
        return ()
    records, entries = queue_files(store / RECORDS), queue_files(store / ENTRIES)
    unread: list[str] = []
    strange = _strange(store, {*records, *entries})
    topics = _topics(store, unread)
    positions = _positions(store, unread)
    queues = {*records, *entries, *(queue for queue in of_log if queue[0] in topics)}
    notes += unread if queues else []  # where nothing is compacted, nothing is missed
    return tuple(
        CompactedQueue(
            queue,
            tuple(_files(store, queue, {f.base for f in (*records.get(queue, ()), *entries.get(queue, ()))})),
            _is_broken_off(store, queue),
            strange.get(queue, ()),
            queue[0] in topics,
            positions.get(f"{queue[0]}_{queue[1]}", -1),
        )
        for queue in sorted(queues)
    )


def _files(store: Path, queue: Queue, bases: Collection[int]) -> list[CompactedFile]:
    return [
        CompactedFile(base, *(_file(store, folder, queue, base) for folder in (RECORDS, ENTRIES)))
        for base in sorted(bases)
    ]


def _file(store: Path, folder: str, queue: Queue, base: int) -> LogFile | None:
    path = store / folder / queue[0] / str(queue[1]) / f"{base:020d}"
    return LogFile(str(path), base, path.stat().st_size) if path.is_file() else None


def _folders(store: Path, queue: Queue) -> tuple[Path, ...]:
    """The folders of a queue's files: of its records, and of its entries."""
    return tuple(store / kind / queue[0] / str(queue[1]) for kind in (RECORDS, ENTRIES))


def _is_broken_off(store: Path, queue: Queue) -> bool:
    """True if a replacement of files broke off: new files wait, and some old ones are gone.

    Source: docs/rocketmq.md#compaction-broken-off; CompactionLog.replaceFiles.
    """
    of_records, of_entries = _folders(store, queue)
    waiting = _waiting(of_entries)
    return bool(waiting) and (_has_removed(store, queue) or not waiting <= _waiting(of_records))


def _waiting(folder: Path) -> set[int]:
    """Returns the bases of the new files that are not in their place yet."""
    return {file.base for file in files_in(str(folder / NEW_FILES))} if (folder / NEW_FILES).is_dir() else set()


def _has_removed(store: Path, queue: Queue) -> bool:
    """True if replaced files are still in the folder."""
    folders = _folders(store, queue)
    return any(file.name.endswith(REMOVED) for folder in folders if folder.is_dir() for file in folder.iterdir())


def _strange(store: Path, queues: Collection[Queue]) -> dict[Queue, tuple[UnexpectedFile, ...]]:
    """Returns the files of each queue that stop the broker's next start: files of one kind have one length."""
    folders = [
        {store / kind / topic / str(queue): (topic, queue) for topic, queue in queues} for kind in (RECORDS, ENTRIES)
    ]
    found: dict[Queue, tuple[UnexpectedFile, ...]] = {}
    for of_kind in folders:
        for folder, some in unexpected_files(store, of_kind).items():
            found[of_kind[folder]] = (*found.get(of_kind[folder], ()), *some)
    return found


def _topics(store: Path, notes: list[str]) -> set[str]:
    """The topics that are compacted, as their attributes say."""
    try:
        return {topic for topic, entry in topics_of(store / "config").items() if _is_compacted(entry)}
    except Unreadable as broken:
        notes.append(f"the compacted topics are unknown, and are not judged: {broken}")
        return set()


def _is_compacted(entry: Mapping[str, object]) -> bool:
    attributes = entry.get("attributes")
    return isinstance(attributes, Mapping) and attributes.get(POLICY) == "COMPACTION"


def _positions(store: Path, notes: list[str]) -> dict[str, int]:
    """The number of the last message that was compacted, by topic and queue."""
    if not (store / POSITIONS).is_file() and not (store / f"{POSITIONS}.bak").is_file():
        return {}
    try:
        content, _ = read_json_or_older(store / POSITIONS, notes)
    except Unreadable as broken:
        notes.append(f"how far queues were compacted is not judged: {broken}")
        return {}
    table = content.get("queueOffsetMap")
    if not isinstance(table, Mapping) or not all(map(_is_number, table.values())):
        notes.append(f"how far queues were compacted is not judged: {POSITIONS} has no table of numbers, as expected")
        return {}
    return {str(name): int(value) for name, value in table.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -1 <= value < FARTHEST
