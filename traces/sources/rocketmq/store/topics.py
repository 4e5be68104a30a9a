"""The topics as a broker saved them: in JSON, or in a small RocksDB database if its queues are in one.

Source: docs/rocketmq.md#config.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.queues.queue_database import why_unreadable
from gapless.traces.sources.rocketmq.store.settings import READ_AT_START, is_there, read_json_or_older

FILE, DATABASE = "topics.json", "topics"
CURSOR_FILES = ("consumerOffset.json", "lmqConsumerOffset.json")  # without and with light queues
READ_LATER = ("tieredStoreMetadata.json",)  # JSON files that another reader checks


def has_database(config: Path) -> bool:
    """True if the topics are in RocksDB: then no broker before 5.2 wrote them."""
    return (config / DATABASE / "CURRENT").is_file()


def saved_topics(folder: Path, notes: list[str]) -> dict[str, object]:
    """Reads topics.json. Other JSON files next to it are checked too: a broken one is noted if no start reads it."""
    topics: dict[str, object] = {}
    older = [path.with_suffix("") for path in folder.glob("*.json.bak") if is_there(path.with_suffix(""))]
    for path in sorted({*folder.glob("*.json"), *older}):
        if path.exists() and not path.is_file():
            raise Unreadable(f"{path}: expected a file")
        if not is_there(path) or path.name in (*CURSOR_FILES, *READ_LATER):
            continue
        try:
            content, _older = read_json_or_older(path, notes)
        except Unreadable as broken:
            notes.extend([f"config/{path.name} is broken, and not needed: {broken}"] * (path.name not in READ_AT_START))
            continue
        if path.name == FILE:
            topics = content
    return topics


def is_modern(topics: Mapping[str, object]) -> bool:
    """True if a broker of version 5 wrote topics.json: only these count states."""
    version = topics.get("dataVersion")
    return isinstance(version, dict) and "stateVersion" in version


def topics_of(config: Path) -> dict[str, Mapping[str, object]]:
    """Reads the settings of each topic from the folder `config/` of a store. Raises Unreadable."""
    if has_database(config):
        found = [_value(value) for _, value in config_pairs(config / DATABASE)]
        return {str(one["topicName"]): one for one in found if "topicName" in one}
    table = read_json_or_older(config / FILE, [])[0].get("topicConfigTable")
    return (
        {topic: settings for topic, settings in table.items() if isinstance(settings, dict)}
        if isinstance(table, dict)
        else {}
    )


def names_and_place(config: Path) -> tuple[frozenset[str], str]:
    """Returns the names of the topics, and the file or folder in the store that has them. Raises Unreadable."""
    if has_database(config):
        return frozenset(topics_of(config)), f"config/{DATABASE}/"
    content, older = read_json_or_older(config / FILE, [])
    table = content.get("topicConfigTable")
    return frozenset(table if isinstance(table, dict) else ()), f"config/{FILE}{'.bak' * older}"


def config_pairs(database: Path) -> list[tuple[bytes, bytes]]:
    """Keys and values of one of the small databases in `config/`. Raises Unreadable."""
    if why := why_unreadable(database, "they are"):
        raise Unreadable(f"config/{database.name}/: {why}")
    from gapless.traces.sources.rocketmq.queues import rocksdb  # noqa: PLC0415 - it takes a library that may be missing

    room = Path(tempfile.mkdtemp(prefix="gapless-config-"))
    try:
        return rocksdb.pairs(database, room / "database")
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _value(value: bytes) -> Mapping[str, object]:
    """Parses an object in JSON; an empty one for other values, such as the table's version."""
    try:
        settings = json.loads(value)
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}
