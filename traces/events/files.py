"""Which files hold events, by their names."""

from __future__ import annotations

from pathlib import Path


def is_event_file(path: Path) -> bool:
    """Whether the name says that events are in it."""
    return path.suffix.lower() in (".ndjson", ".jsonl", ".parquet")
