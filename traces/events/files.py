"""Which files hold events, and in which form, by their names."""

from __future__ import annotations

from pathlib import Path

from gapless.traces.problems import Unreadable, shown


def is_event_file(path: Path) -> bool:
    """Whether the name says that events are in it."""
    return path.suffix.lower() in (".ndjson", ".jsonl", ".parquet")


def is_parquet(path: Path) -> bool:
    """Whether the name says Parquet, and not NDJSON. Raises Unreadable where it says neither."""
    if not is_event_file(path):
        raise Unreadable(
            f"{shown(path)}: an event file is named .ndjson or .parquet, so that its form is known; rename it"
        )
    return path.suffix.lower() == ".parquet"
