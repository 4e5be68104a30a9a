"""What a broker of 5.4 or later keeps of messages in RocksDB, in one database: halves, timers, and an index."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.store.queue_database import why_unreadable

FOLDER = "rocksdbstore"
HALVES = "trans"
"""The column family of the table of halves, which is judged; the others are named."""
NAMED = {
    "timer": "messages that wait for their time, in RocksDB (timerRocksDBEnable), are not judged",
    "default": "the index of messages by their keys, in RocksDB (indexRocksDBEnable), is not judged",
}


def not_judged(store: Path) -> Iterator[str]:
    """What the database holds that is not judged, in sentences."""
    folder = store / FOLDER
    if not (folder / "CURRENT").is_file():
        return
    if why := why_unreadable(folder, "halves, timers and the index may be"):
        yield f"{FOLDER}/ is not judged: {why}"
        return
    from gapless.traces.sources.rocketmq.store import rocksdb  # noqa: PLC0415 - it takes a library that may be missing

    with tempfile.TemporaryDirectory(prefix="gapless-messages-") as room:
        try:
            found = rocksdb.families(folder, Path(room) / "database", tuple(NAMED), most=1)
        except Unreadable as unreadable:
            yield f"{FOLDER}/ is not judged, where halves, timers and the index may be: {unreadable}"
            return
    for name, what in NAMED.items():
        if found.get(name):
            yield f"{FOLDER}/: {what}"
