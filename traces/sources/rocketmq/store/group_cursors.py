"""Cursors of consumer groups and of delay levels, as a broker wrote them down in JSON or in RocksDB.

Source: docs/rocketmq.md#config.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.queues.queue_database import why_unreadable
from gapless.traces.sources.rocketmq.store.directory import CHECK_GROUP, StoreDirectory
from gapless.traces.sources.rocketmq.store.names import LIGHT, SCHEDULE_TOPIC
from gapless.traces.sources.rocketmq.store.settings import is_there, quoted, read_json_or_older
from gapless.traces.sources.rocketmq.store.topics import CURSOR_FILES, config_pairs, topics_of

LEVELS = "delayOffset.json"
DATABASE = "consumerOffsets"


@dataclass(frozen=True)
class GroupCursor:
    """A cursor. `group` is empty for a delay level · `file`, `at`: its place."""

    topic: str
    queue: int
    group: str
    to: int
    file: str
    at: int

    @property
    def name(self) -> str:
        """Its name as a trace."""
        return f"{self.topic}/{self.queue}@{self.group or 'delivery'}"


def group_cursors(store: StoreDirectory, notes: list[str]) -> Iterator[GroupCursor]:
    """Yields the cursors of consumer groups and delay levels, without those of the check service.

    Cursors of light queues are left out too. Raises Unreadable if the only table of cursors cannot be read.
    """
    folder = Path(store.path, "config")
    elsewhere = _mapped(folder)
    alone = not any(is_there(folder / name) for name in CURSOR_FILES) and not store.copied
    tables = _of_database(folder, notes, alone=alone)
    for found in (*_of_files(folder, notes), *level_cursors(store, notes), *tables):
        if found.group != CHECK_GROUP and not found.topic.startswith(LIGHT) and found.topic not in elsewhere:
            yield found


def has_own_cursors(store: StoreDirectory) -> bool:
    """True if all cursors were saved by this broker, by its settings: it is a master, and always was."""
    return bool(store.settings) and not store.replicated


def queues_of_topics(store: StoreDirectory) -> dict[str, int] | None:
    """The number of queues of each topic, to write to or to read from, 0 if unknown; None without saved topics."""
    found = {}
    try:
        for topic, settings in topics_of(Path(store.path, "config")).items():
            counts = [settings.get(name) for name in ("readQueueNums", "writeQueueNums")]
            found[topic] = max((count for count in counts if isinstance(count, int)), default=0)
    except Unreadable:
        return None
    return found


def _of_files(folder: Path, notes: list[str]) -> Iterator[GroupCursor]:
    for name in CURSOR_FILES:
        if not is_there(folder / name):
            continue
        content, older = read_json_or_older(folder / name, notes)
        path = f"config/{name}{'.bak' * older}"
        text = (folder.parent / path).read_bytes()
        for key, queues in _table(content).items():
            yield from _cursors(key, queues, path, max(text.find(json.dumps(key, ensure_ascii=False).encode()), 0))


def level_cursors(store: StoreDirectory, notes: list[str]) -> Iterator[GroupCursor]:
    """Yields the cursors of the delay levels: level 1 waits in queue 0 of the schedule topic, and so on."""
    folder = Path(store.path, "config")
    if is_there(folder / LEVELS):
        try:
            content, older = read_json_or_older(folder / LEVELS, notes)
        except Unreadable:  # it was reported when the store was opened
            return
        path = f"config/{LEVELS}{'.bak' * older}"
        at = max((folder.parent / path).read_bytes().find(b'"offsetTable"'), 0)
        for level, to in _numbers(_table(content)):
            if level > 0:
                yield GroupCursor(SCHEDULE_TOPIC, level - 1, "", to, path, at)


def _of_database(folder: Path, notes: list[str], *, alone: bool) -> Iterator[GroupCursor]:
    """The cursors in `config/consumerOffsets/`, a RocksDB database: topics and groups, each with its queues as JSON.

    `alone`: no other table has them, so that they are missed if they cannot be read. Raises Unreadable.
    """
    if not (folder / DATABASE / "CURRENT").is_file():
        return
    alone = alone and not why_unreadable(folder / DATABASE)
    try:
        values = config_pairs(folder / DATABASE)
    except Unreadable as broken:
        if alone:
            raise
        notes.append(f"{broken}: cursors of consumer groups are not judged")
        return
    for key, value in values:
        try:
            content = json.loads(quoted(value.decode()))
        except ValueError:
            continue  # the table's version, and what else is no cursor
        if isinstance(content, dict) and b"@" in key:
            queues = content.get("offsetTable")
            yield from _cursors(key.decode(errors="replace"), queues, f"config/{DATABASE}/RocksDB", 0)


def _cursors(key: str, queues: object, file: str, at: int) -> Iterator[GroupCursor]:
    topic, _, group = key.partition("@")
    if isinstance(queues, dict) and topic and group:
        for queue, to in _numbers(queues):
            yield GroupCursor(topic, queue, group, to, file, at)


def _numbers(table: dict[str, object]) -> Iterator[tuple[int, int]]:
    for key, value in table.items():
        if key.lstrip("-").isdecimal() and isinstance(value, int) and abs(value) < 2**62:
            yield int(key), value


def _table(content: dict[str, object]) -> dict[str, object]:
    table = content.get("offsetTable")
    return table if isinstance(table, dict) else {}


def _mapped(folder: Path) -> frozenset[str]:
    """Returns topics with queues that are mapped to other brokers: their cursors count other numbers."""
    try:
        content, _ = read_json_or_older(folder / "topicQueueMapping.json", [])
    except Unreadable:
        return frozenset()
    table = content.get("topicQueueMappingInfoMap")
    return frozenset(table) if isinstance(table, dict) else frozenset()
