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
from gapless.traces.sources.rocketmq.store.queue_database import why_unreadable
from gapless.traces.sources.rocketmq.store.settings import read_json_or_older

FILE, DATABASE = "topics.json", "topics"


def has_database(config: Path) -> bool:
    """True if the topics are in RocksDB: then no broker before 5.2 wrote them."""
    return (config / DATABASE / "CURRENT").is_file()


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
    from gapless.traces.sources.rocketmq.store import rocksdb  # noqa: PLC0415 - it takes a library that may be missing

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
