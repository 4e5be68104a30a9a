"""What a store directory holds, before any record is read: files, settings, how the broker left it.

Nothing is judged here but whether the directory can be read at all. Layouts that we do not judge are named in
`Store.notes`, and so is everything that was used silently otherwise (a `broker.conf` beside the store).
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import javaproperties

from gapless.traces.problems import NothingThere, Unreadable, shown
from gapless.traces.sources.rocketmq.store.names import HALF_TOPIC, OP_TOPIC
from gapless.traces.sources.rocketmq.store.records import BLANK

ENTRY = 20  # bytes of a consume-queue entry
FARTHEST = 2**62  # positions from here on are no broker's
CLIENT_LOG = "client.ndjson"
CHECKPOINT = 4096  # bytes of the checkpoint file
DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"  # docs/rocketmq.md#delay-levels
CHECK_GROUP = "CID_RMQ_SYS_TRANS"  # the consumer group under which the check service writes its cursors down
CURSOR_FILES = ("consumerOffset.json", "lmqConsumerOffset.json")
UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
TWENTY_DIGITS = re.compile(r"\d{20}")
OTHER_LAYOUTS = {
    "batchconsumequeue": "batch consume queues",
    "consumequeue_ext": "extended consume-queue entries (their tag codes)",
    "consumequeue_rocksdb": "consume queues in RocksDB",
    "dledger": "a DLedger log",
    "tieredstore": "tiered storage",
    "compaction": "compacted topics",
    "rocksdbstore": "RocksDB stores",
}


@dataclass(frozen=True)
class LogFile:
    """One file of the commit log: its bytes are the log's from `base` on."""

    path: str
    base: int
    length: int


@dataclass(frozen=True)
class FlushTimes:
    """The times up to which the broker knew its files to be on disk, in ms (docs/rocketmq.md#checkpoint)."""

    log: int
    queues: int
    indexed: int  # up to here the broker knew its queues to be on disk; 0 before version 5.4, and for a minute
    recovered: int  # where the last record began when a broker last started on these files; 0 before any restart


@dataclass(frozen=True)
class Cursors:
    """How far the check service is, as the broker wrote it down last (docs/rocketmq.md#config)."""

    file: str  # relative to the store
    half: int | None  # None: it has not moved yet
    op: int | None


@dataclass(frozen=True)
class Store:
    """A RocketMQ store directory."""

    path: str
    files: tuple[LogFile, ...]
    file_size: int  # bytes of every log file
    clean: bool  # the broker stopped in order: no `abort` file
    live: bool  # a broker holds the lock and goes on writing
    checkpoint: FlushTimes | None
    settings: Mapping[str, str]
    delays: tuple[int, ...]  # ms per delay level; empty where no settings say so
    topics: frozenset[str] | None  # config/topics.json; None where there is none
    queue_file_size: int  # bytes of every consume-queue file; 0 where no two files agree
    has_queues: bool
    extended: bool  # tag codes of entries may be addresses in consumequeue_ext
    modern: bool  # a broker of version 5 wrote the configuration
    cursors: Cursors | None = None  # None where no file tells of them
    notes: tuple[str, ...] = field(default=())
    limit: int = FARTHEST  # log position from which on nothing is read
    opening: str = field(default_factory=lambda: uuid4().hex, compare=False)  # what was seen then of its files counts

    @property
    def start(self) -> int:
        """The log's first position: what lay below has expired."""
        return self.files[0].base

    @property
    def bytes(self) -> int:
        """Bytes of the commit log's files."""
        return sum(file.length for file in self.files)

    def setting(self, name: str) -> bool:
        """Whether a boolean setting is on; what is not set is off, as in the broker."""
        return self.settings.get(name, "").strip().lower() == "true"

    def queue_folder(self, topic: str, queue: int) -> Path:
        """Where the entries of one queue lie."""
        return Path(self.path) / "consumequeue" / topic / str(queue)

    def log_file_at(self, position: int) -> tuple[str, int]:
        """The log file of `position`, relative to the store, and the offset in it, whether the file exists or not."""
        base = position - (position - self.start) % self.file_size
        return f"commitlog/{base:020d}", position - base


def store_folder(path: Path) -> Path | None:
    """The store in `path`: the folder itself, or its `store/`; None where neither is one."""
    for folder in (path, path / "store"):
        if (folder / "commitlog").is_dir():
            return folder
    return None


def client_log_beside(folder: Path) -> Path | None:
    """The client log beside the store in `folder`, if there is one."""
    beside = folder.absolute().parent / CLIENT_LOG
    return beside if beside.is_file() else None


def open_store(path: Path, config: Path | None = None) -> Store:
    """Look at the store in folder `path`, the one with `commitlog/`.

    `config`: a broker.conf; without it, one beside the store is used, and said so. Raises Unreadable, NothingThere.
    """
    notes: list[str] = []
    if config is None:
        beside = path.parent / "broker.conf"
        if beside.is_file():
            config = beside
            notes.append("settings from broker.conf beside the store")
    settings = read_settings(config) if config else {}
    if "," in settings.get("storePathCommitLog", ""):
        raise Unreadable("broker.conf names several commit log paths: gapless judges stores with one commitlog/ only")
    files = log_files(path / "commitlog", settings, notes)
    if files[0].base:
        notes.append(f"the log begins at {files[0].base:,}: what lay below counts as expired")
    live = _locked(path / "lock")
    clean = not (path / "abort").exists() and not live
    if live:
        notes.append("a broker is running on this store: what it has not written yet is left out")
    elif not clean:
        notes.append("the broker did not stop in order (there is an abort file)")
    notes.extend(_other_layouts(path))
    has_queues = (path / "consumequeue").is_dir() and any((path / "consumequeue").iterdir())
    return Store(
        path=str(path),
        files=files,
        file_size=files[0].length,
        clean=clean,
        live=live,
        checkpoint=_checkpoint(path / "checkpoint", notes),
        settings=settings,
        delays=_delays(settings.get("messageDelayLevel", DELAY_LEVELS)) if config else (),
        topics=_topics(path / "config"),
        queue_file_size=_queue_file_size(path / "consumequeue", settings),
        has_queues=has_queues,
        extended=(path / "consumequeue_ext").is_dir(),
        modern=_is_modern(path / "config" / "topics.json"),
        cursors=_cursors(path, settings, notes),
        notes=tuple(notes),
    )


def read_settings(config: Path) -> dict[str, str]:
    """The settings in a broker.conf. Raises Unreadable."""
    try:
        with config.open(encoding="utf-8") as file:
            return dict(javaproperties.load(file))
    except OSError as error:
        raise Unreadable(f"{config}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise Unreadable(f"{config}: cannot be read as a properties file ({error})") from error


def log_files(folder: Path, settings: Mapping[str, str], notes: list[str]) -> tuple[LogFile, ...]:
    """The commit log's files by position. Raises Unreadable on a length that no broker gives, NothingThere."""
    found = []
    for path in sorted(folder.iterdir()):
        if TWENTY_DIGITS.fullmatch(path.name) and int(path.name) >= FARTHEST:
            raise Unreadable(f"{path}: no log reaches that position; remove the file, or check a copy without it")
        if TWENTY_DIGITS.fullmatch(path.name) and path.is_file():
            found.append(LogFile(str(path), int(path.name), path.stat().st_size))
        else:
            notes.append(f"commitlog/{path.name} is not a log file and was left out")
    found.sort(key=lambda file: file.base)
    if found and found[-1].length == 0:
        notes.append(f"the last log file, {found[-1].base:020d}, is empty: the broker deletes it at its next start")
        found.pop()
    if not found:
        raise NothingThere(f"{folder}: no log file in it (a name of 20 digits each)")
    expected = _log_file_size(found, settings)
    for file in found:
        if file.length != expected:
            raise Unreadable(
                f"{file.path}: {file.length} bytes long, expected {expected}, as other files or settings say; "
                "a broker would refuse to start. Copy the file again, or check without it"
            )
    return tuple(found)


def _log_file_size(files: list[LogFile], settings: Mapping[str, str]) -> int:
    """The one length that all log files should have: what most have, or what their names and the settings say."""
    lengths = Counter(file.length for file in files)
    (common, count), *others = lengths.most_common()
    if others and others[0][1] == count:  # a tie: the names know how far apart files begin
        return min(b.base - a.base for a, b in pairwise(files))
    wanted = settings.get("mappedFileSizeCommitLog", "")
    if len(files) == 1 and wanted.isdigit():
        return int(wanted)
    if common <= BLANK:
        raise Unreadable(f"{files[0].path}: {common} bytes long, too short for any record")
    return common


def _locked(path: Path) -> bool:
    """Whether another process holds a lock on the first byte. Asks without taking it."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
            kind: int = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, asked))[0]
            return kind != fcntl.F_UNLCK
    except OSError:
        return False


def _checkpoint(path: Path, notes: list[str]) -> FlushTimes | None:
    if not path.is_file():
        notes.append("there is no checkpoint file: a lost tail of the log cannot be told from an early end")
        return None
    data = path.read_bytes()
    if len(data) != CHECKPOINT:
        notes.append(f"the checkpoint file is {len(data)} bytes long, expected {CHECKPOINT}: it is not used")
        return None
    log, queues, _index, _flushed, recovered, indexed = struct.unpack_from(">6q", data)
    return FlushTimes(log, queues, indexed, recovered)


def _delays(levels: str) -> tuple[int, ...]:
    """Milliseconds per delay level, from a text such as "1s 5s 10s". Raises Unreadable."""
    try:
        return tuple(int(level[:-1]) * UNIT_MS[level[-1]] for level in levels.split())
    except (ValueError, KeyError) as error:
        raise Unreadable(
            f"messageDelayLevel = {levels!r}: expected numbers with s, m, h or d, as in {DELAY_LEVELS!r}"
        ) from error


def _topics(folder: Path) -> frozenset[str] | None:
    """The topics that the broker knows. Reads every JSON file beside it too, so that a broken one is found."""
    topics = None
    for path in sorted(folder.glob("*.json")):
        if not path.is_file():
            raise Unreadable(f"{path}: expected a file")
        content = read_json(path)
        table = content.get("topicConfigTable")
        if path.name == "topics.json" and isinstance(table, dict):
            topics = frozenset(table)
    return topics


def _cursors(path: Path, settings: Mapping[str, str], notes: list[str]) -> Cursors | None:
    """The check service's two cursors. With light queues they stand in a file of their own.

    Source: docs/rocketmq.md#config.
    """
    found = []
    for name in CURSOR_FILES:
        file = path / "config" / name
        if file.is_file():
            table = read_json(file).get("offsetTable")
            found.append(Cursors(f"config/{name}", _cursor(file, table, HALF_TOPIC), _cursor(file, table, OP_TOPIC)))
    if not found and (path / "consumequeue" / HALF_TOPIC).is_dir():
        notes.append("there is no consumerOffset.json: how far the check service came is not known")
    if len(found) == 2:  # light queues were switched on or off: one of the files is old
        light = settings.get("enableLmq", "").strip().lower() == "true"
        return found[light] if settings else min(found, key=lambda c: -1 if c.half is None else c.half)
    return found[0] if found else None


def _cursor(file: Path, table: object, topic: str) -> int | None:
    """The cursor over queue 0 of a topic, or None where it has not moved. Raises Unreadable."""
    if not isinstance(table, dict):
        raise Unreadable(f"{file}: expected an object called offsetTable; copy the file again, or check without it")
    cursors = table.get(f"{topic}@{CHECK_GROUP}", {})
    cursor = cursors.get("0") if isinstance(cursors, dict) else cursors
    if cursor is not None and (not isinstance(cursor, int) or isinstance(cursor, bool) or not 0 <= cursor < FARTHEST):
        raise Unreadable(
            f"{file}: the cursor over {topic} is {shown(json.dumps(cursor))}, expected a number from 0 on and below "
            "2^62; copy the file again, or check a copy of the store without it"
        )
    return cursor


def _is_modern(topics: Path) -> bool:
    """Whether a broker of version 5 wrote topics.json: only these count states."""
    version = read_json(topics).get("dataVersion") if topics.is_file() else None
    return isinstance(version, dict) and "stateVersion" in version


def read_json(path: Path) -> dict[str, object]:
    """A config file of the broker: JSON, but for integer keys that fastjson leaves unquoted. Raises Unreadable."""
    try:
        content = json.loads(_quoted(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(
            f"{path}: not JSON ({error}); the broker would fall back to {path.name}.bak, so look there, "
            "or check without the file"
        ) from error
    if not isinstance(content, dict):
        raise Unreadable(f"{path}: expected a JSON object")
    return content


def _quoted(text: str) -> str:
    """Fastjson's `{0:5}` as `{"0":5}`; strings are stepped over whole."""
    pattern = re.compile(r'("(?:[^"\\]|\\.)*")|([{,]\s*)(-?\d+)(?=\s*:)')
    return pattern.sub(lambda m: m[1] if m[1] is not None else f'{m[2]}"{m[3]}"', text)


def queue_folders(store: Path) -> Iterator[tuple[str, int]]:
    """Every (topic, queue) that has a folder under `consumequeue/`, sorted."""
    root = store / "consumequeue"
    if not root.is_dir():
        return
    for topic in sorted(path for path in root.iterdir() if path.is_dir()):
        yield from sorted((topic.name, int(p.name)) for p in topic.iterdir() if p.name.isdecimal() and p.is_dir())


def queue_files(folder: Path) -> list[LogFile]:
    """The files of one consume queue, by base; an empty list where there is no folder."""
    try:
        with os.scandir(folder) as found:
            return sorted(
                (
                    LogFile(e.path, int(e.name), e.stat().st_size)
                    for e in found
                    if TWENTY_DIGITS.fullmatch(e.name) and int(e.name) < FARTHEST
                ),
                key=lambda file: file.base,
            )
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name that no folder can have
        return []


def _queue_file_size(root: Path, settings: Mapping[str, str]) -> int:
    """The length that every consume-queue file is born with: as set, or as at least two files agree on."""
    wanted = settings.get("mappedFileSizeConsumeQueue", "")
    if wanted.isdigit():
        return -(-int(wanted) // ENTRY) * ENTRY
    lengths = Counter(
        file.length for topic, queue in queue_folders(root.parent) for file in queue_files(root / topic / str(queue))
    )
    for length, count in lengths.most_common(1):
        if count > 1 and length % ENTRY == 0:
            return length
    return 0


def _other_layouts(path: Path) -> Iterator[str]:
    """What the store holds that gapless does not judge."""
    for name, what in OTHER_LAYOUTS.items():
        folder = path / name
        if folder.is_dir() and any(e.is_file() and e.stat().st_size > 0 for e in folder.rglob("*")):
            yield f"{name}/ is not judged: {what}"
