"""The files of tiered storage in a folder, found by the broker's own metadata.

Source: docs/rocketmq-tiered.md#layout, #metadata.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gapless.traces.problems import Unreadable
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.store.files import A_NUMBER, ENTRY, FARTHEST, LogFile, Queue
from gapless.traces.sources.rocketmq.store.settings import read_json

METADATA = "config/tieredStoreMetadata.json"
FOLDER = "tieredstore"  # where the files are looked for that no setting leads to
POSIX = "PosixFileSegment"  # ends the name of the provider that keeps segments in files
LOG, ENTRIES, INDEX = "COMMIT_LOG", "CONSUME_QUEUE", "INDEX"  # folders of a queue, and of the index
QUEUE_TABLES = {LOG: "commitLogFileSegmentTable", ENTRIES: "consumeQueueFileSegmentTable"}
INDEX_TOPIC = "rmq_sys_INDEX"
TABLES = {**QUEUE_TABLES, INDEX: "indexFileSegmentTable"}


@dataclass(frozen=True)
class TieredFile:
    """A segment. `committed`: bytes that are committed by the metadata · `length`: of the file, -1 where there is none.

    `name`: as reports call it · `base`: where in the queue, or its log, it begins · `oldest`, `youngest`: when the
    first and the last message in it were stored, as the metadata says, in ms; it expires by the latter.
    """

    path: Path
    name: str
    base: int
    committed: int
    length: int
    oldest: int
    youngest: int

    @property
    def end(self) -> int:
        """Exclusive end of what is committed."""
        return self.base + self.committed

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
    """The tiered storage of a store.

    `index`: segments of the index · `topics`: by the number that its items have for them · `unlisted`: files with
    bytes that the metadata does not list, by their names in reports · `why_not`: the reason if nothing of it can be
    judged · `lost`: the unjudged part may be lost; otherwise it is elsewhere.
    """

    queues: tuple[TieredQueue, ...]
    index: tuple[TieredFile, ...] = ()
    topics: Mapping[int, str] = field(default_factory=dict)
    unlisted: tuple[str, ...] = ()
    why_not: str = ""
    lost: bool = False


def _place(files: tuple[TieredFile, ...], at: int) -> tuple[str, int]:
    file = max((file for file in files if file.base <= at), key=lambda file: file.base, default=files[0])
    return file.name, at - file.base


class StoredElsewhere(Exception):  # noqa: N818 - it says what is so
    """The files are kept by something that has no folder."""


Segments = dict[str, list[tuple[int, int, int, int]]]
"""Base, size, oldest and youngest message of every segment, by base, by the path of its queue."""


class Metadata(NamedTuple):
    """The content of the metadata: the segments of each kind, and topics by their numbers."""

    tables: dict[str, Segments]
    topics: dict[int, str]


def opened_storage(judged: StoreFindings) -> tuple[TieredStorage | None, list[str]]:
    """Opens the tiered storage of a store, once, with notes."""
    notes: list[str] = []
    store = judged.store
    return judged.open("tiered", lambda: (tiered_storage(Path(store.path), store.settings, notes), notes))


def tiered_storage(store: Path, settings: Mapping[str, str], notes: list[str]) -> TieredStorage | None:
    """Returns the tiered storage of a store; None without one."""
    try:
        content = _metadata(store, notes)
        if content is None:
            left = tuple(_unlisted(store, store / FOLDER, "*/*", ()))
            why = f"{FOLDER}/ holds {plural(len(left), 'file')} of it, and neither {METADATA} nor its .bak is there"
            return TieredStorage((), why_not=why, lost=True) if left else None
        tables, topics = content
        paths = sorted({path for table in tables.values() for path, segments in table.items() if segments})
        queues = {path: queue for path in paths if (queue := _queue_of(path)) is not None}
        if not queues:
            return TieredStorage((), unlisted=tuple(_unlisted(store, store / FOLDER, "*/*", ())))
        root = _root(store, settings, queues)
    except Unreadable as broken:
        return TieredStorage((), why_not=str(broken), lost=True)
    except StoredElsewhere as there:
        return TieredStorage((), why_not=str(there))
    found = [
        TieredQueue(
            queue,
            *(
                tuple(_file(root, store, path, kind, *one) for one in tables[kind].get(path, ()))
                for kind in QUEUE_TABLES
            ),
        )
        for path, queue in queues.items()
    ]
    listed = {file.path for queue in found for file in (*queue.log, *queue.entries)}
    brokers = sorted({path.partition("/")[0] for path in queues})
    unlisted = tuple(name for broker in brokers for name in _unlisted(store, root, broker, listed))
    index = [_file(root, store, path, INDEX, *one) for path, some in tables[INDEX].items() for one in some]
    return TieredStorage(tuple(sorted(found, key=lambda one: one.queue)), tuple(index), topics, unlisted)


def _metadata(store: Path, notes: list[str]) -> Metadata | None:
    """Reads the metadata; None if none was ever written. Raises Unreadable.

    A broker takes the older version if the file is missing, empty, or unreadable; and starts with empty metadata if
    there is neither. Source: docs/rocketmq-tiered.md#metadata; ConfigManager.load.
    """
    file, older = store / METADATA, store / f"{METADATA}.bak"
    broken: Unreadable | None = None
    for path in (file, older):
        if not path.is_file():
            continue
        try:
            content = read_json(path)
            tables = {kind: _table(content.get(name, {})) for kind, name in TABLES.items()}
            topics = _topics(content.get("topicMetadataTable", {}))
        except Unreadable as unreadable:
            broken = broken or unreadable
        except (AttributeError, KeyError, TypeError, ValueError):
            broken = broken or Unreadable(f"{path}: expected tables of segments, each with its baseOffset and size")
        else:
            if path == older:
                why = "is broken" if file.is_file() else "is not there"
                notes.append(f"{METADATA} {why}: {older.name} is used, as the broker would do")
            return Metadata(tables, topics)
    if broken:
        raise broken
    return None


def _unlisted(store: Path, root: Path, broker: str, listed: Collection[Path]) -> Iterator[str]:
    """Yields files of queues with content that no metadata lists. `broker`: a folder below `root`, or a pattern."""
    for kind in (LOG, ENTRIES):
        for path in sorted(root.glob(f"{broker}/*/*/{kind}/*")):
            if path not in listed and path.is_file() and path.stat().st_size:
                yield str(path.relative_to(store) if path.is_relative_to(store) else path)


def _table(value: object) -> Segments:
    if not isinstance(value, dict):
        raise TypeError
    return {str(path): sorted(map(_segment, segments.values())) for path, segments in value.items()}


def _segment(segment: Mapping[str, object]) -> tuple[int, int, int, int]:
    found = segment["baseOffset"], segment["size"]
    if not all(_is_number(number) for number in found):
        raise ValueError
    oldest, youngest = segment.get("beginTimestamp"), segment.get("endTimestamp")
    times = (time if _is_number(time) else FARTHEST for time in (oldest, youngest))
    return *found, *times  # type: ignore[return-value]


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < FARTHEST


def _topics(value: object) -> dict[int, str]:
    """The topics by their numbers; of two with one number, none."""
    numbers = [(one.get("topicId"), name) for name, one in value.items()] if isinstance(value, dict) else []
    often = Counter(number for number, _ in numbers)
    return {number: str(name) for number, name in numbers if _is_number(number) and often[number] == 1}


def _queue_of(path: str) -> Queue | None:
    """The queue of BROKER/TOPIC/QUEUE; None where it is the index, or no queue."""
    _, _, rest = path.partition("/")
    topic, _, queue = rest.rpartition("/")
    return (topic, int(queue)) if topic not in ("", INDEX_TOPIC) and A_NUMBER.fullmatch(queue) else None


def _root(store: Path, settings: Mapping[str, str], queues: Collection[str]) -> Path:
    """The folder of the cluster, in which brokers have theirs. Raises Unreadable, Elsewhere.

    Settings may tell of another machine: what lies in the store itself counts first.
    """
    provider = settings.get("tieredBackendServiceProvider", "").strip()
    if provider and not provider.endswith(POSIX):
        raise StoredElsewhere(f"its provider is {provider}, which keeps no files here")
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
            raise Unreadable(
                f"{len(clusters)} folders in {folder} have its queues; a broker.conf with brokerClusterName selects one"
            )
    where = " and ".join(looked)
    raise Unreadable(
        f"its files are not in {where}; a broker.conf whose tieredStoreFilePath names their folder is needed"
    )


def digest(text: str) -> str:
    """Returns the prefix of the names of folders and segments."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8]


def _file(root: Path, store: Path, path: str, kind: str, *segment: int) -> TieredFile:
    base, committed, oldest, youngest = segment
    file = root / path / kind / f"{digest(str(base))}{base:020d}"
    name = file.relative_to(store) if file.is_relative_to(store) else file
    return TieredFile(file, str(name), base, committed, file.stat().st_size if file.is_file() else -1, oldest, youngest)
