"""The files of tiered storage, where they lie in a folder: found by the broker's own metadata.

Source: docs/rocketmq-tiered.md#layout, #metadata.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.store.files import A_NUMBER, ENTRY, FARTHEST, LogFile, Queue
from gapless.traces.sources.rocketmq.store.settings import read_json_or_older

METADATA = "config/tieredStoreMetadata.json"
FOLDER = "tieredstore"  # where the files are looked for that no setting leads to
POSIX = "PosixFileSegment"  # ends the name of the provider that keeps segments in files
LOG, ENTRIES = "COMMIT_LOG", "CONSUME_QUEUE"  # folders of a queue
TABLES = {LOG: "commitLogFileSegmentTable", ENTRIES: "consumeQueueFileSegmentTable"}
INDEX_TOPIC = "rmq_sys_INDEX"


@dataclass(frozen=True)
class TieredFile:
    """A segment: `told` of its bytes are committed, as the metadata says; `length` is -1 where there is no such file.

    `name`: as reports call it · `base`: where in the queue, or its log, it begins.
    """

    path: Path
    name: str
    base: int
    told: int
    length: int

    @property
    def end(self) -> int:
        """Exclusive end of what is committed."""
        return self.base + self.told

    @property
    def opened(self) -> LogFile:
        """All its bytes, committed or not."""
        return LogFile(str(self.path), self.base, max(self.length, 0))


@dataclass(frozen=True)
class TieredQueue:
    """The segments of one queue, by base: of its log, and of its entries."""

    queue: Queue
    log: tuple[TieredFile, ...]
    entries: tuple[TieredFile, ...]

    def entry_at(self, number: int) -> tuple[str, int]:
        """The file of an entry, and the offset in it."""
        return _place(self.entries, number * ENTRY)

    def message_at(self, position: int) -> tuple[str, int]:
        """The file of a place in the tiered log, and the offset in it."""
        return _place(self.log, position)


@dataclass(frozen=True)
class TieredStorage:
    """What a store has in tiered storage. `why_not`: why nothing of it can be judged, or nothing."""

    queues: tuple[TieredQueue, ...]
    has_index: bool = False
    why_not: str = ""


def _place(files: tuple[TieredFile, ...], at: int) -> tuple[str, int]:
    file = max((file for file in files if file.base <= at), key=lambda file: file.base, default=files[0])
    return file.name, at - file.base


def tiered_storage(store: Path, settings: Mapping[str, str], notes: list[str]) -> TieredStorage | None:
    """The tiered storage of a store; None where there is none."""
    if not (store / METADATA).is_file():
        why = f"{FOLDER}/ holds it, and {METADATA} is not there"
        return TieredStorage((), why_not=why) if (store / FOLDER).is_dir() else None
    try:
        content, _ = read_json_or_older(store / METADATA, notes)
        tables = {kind: _table(content.get(name, {})) for kind, name in TABLES.items()}
    except Unreadable as broken:
        return TieredStorage((), why_not=str(broken))
    except (AttributeError, KeyError, TypeError, ValueError):
        return TieredStorage((), why_not=f"{METADATA} does not hold tables of segments, as expected")
    has_index = bool(content.get("indexFileSegmentTable")) or (store / "tiered_index_file").is_dir()
    paths = sorted({path for table in tables.values() for path, segments in table.items() if segments})
    queues = {path: queue for path in paths if (queue := _queue_of(path)) is not None}
    root = _root(store, settings, queues) if queues else store
    if isinstance(root, str):
        return TieredStorage((), why_not=root)
    found = (
        TieredQueue(
            queue,
            *(tuple(_file(root, store, path, kind, *one) for one in tables[kind].get(path, ())) for kind in TABLES),
        )
        for path, queue in queues.items()
    )
    return TieredStorage(tuple(sorted(found, key=lambda one: one.queue)), has_index)


def _table(told: object) -> dict[str, list[tuple[int, int]]]:
    """Base and size of every segment, by base, by the path of its queue."""
    if not isinstance(told, dict):
        raise TypeError
    return {str(path): sorted(map(_base_and_size, segments.values())) for path, segments in told.items()}


def _base_and_size(segment: Mapping[str, object]) -> tuple[int, int]:
    found = segment["baseOffset"], segment["size"]
    for number in found:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < FARTHEST:
            raise ValueError
    return found  # type: ignore[return-value]


def _queue_of(path: str) -> Queue | None:
    """The queue of BROKER/TOPIC/QUEUE; None where it is the index, or no queue."""
    _, _, rest = path.partition("/")
    topic, _, queue = rest.rpartition("/")
    return (topic, int(queue)) if topic not in ("", INDEX_TOPIC) and A_NUMBER.fullmatch(queue) else None


def _root(store: Path, settings: Mapping[str, str], queues: Collection[str]) -> Path | str:
    """The folder of the cluster, in which brokers have theirs; or why nobody can tell.

    Settings may tell of another machine: what lies in the store itself counts first.
    """
    provider = settings.get("tieredBackendServiceProvider", "").strip()
    if provider and not provider.endswith(POSIX):
        return f"its provider is {provider}, which keeps no files here"
    named, cluster_set = (settings.get(name, "").strip() for name in ("tieredStoreFilePath", "brokerClusterName"))
    looked = [f"{FOLDER}/", *([named] if named and store / named != store / FOLDER else [])]
    for folder in (store / one for one in looked):
        there = folder.iterdir() if folder.is_dir() else ()
        clusters = [one for one in there if any((one / path).is_dir() for path in queues)]
        if cluster_set:
            clusters = [one for one in clusters if one.name == f"{digest(cluster_set)}_{cluster_set}"]
        if len(clusters) == 1:
            return clusters[0]
        if clusters:
            count = len(clusters)
            return f"{count} folders in {folder} hold its queues; a broker.conf with brokerClusterName tells which"
    where = " and ".join(looked)
    return f"its files are not in {where}; a broker.conf whose tieredStoreFilePath names where they are would tell"


def digest(text: str) -> str:
    """What names of folders and segments begin with."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8]


def _file(root: Path, store: Path, path: str, kind: str, base: int, told: int) -> TieredFile:
    file = root / path / kind / f"{digest(str(base))}{base:020d}"
    name = file.relative_to(store) if file.is_relative_to(store) else file
    return TieredFile(file, str(name), base, told, file.stat().st_size if file.is_file() else -1)
