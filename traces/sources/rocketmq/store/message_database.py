"""The message data that a broker of 5.4 or later keeps in RocksDB: halves, timers, and an index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gapless.traces.sources.rocketmq.store.queue_database import why_unreadable

FOLDER = "rocksdbstore"
HALVES, KEYS, TIMERS = "trans", "default", "timer"
"""The column families: of the table of halves, of that of keys, and of that of timers."""


def not_judged(store: Path) -> Iterator[str]:
    """Yields the reason why the database is not judged, if it cannot be read."""
    folder = store / FOLDER
    if (folder / "CURRENT").is_file() and (why := why_unreadable(folder, "halves, timers and the index may be")):
        yield f"{FOLDER}/ is not judged: {why}"
