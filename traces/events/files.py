"""Which files hold events, and in which form, by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gapless.traces.problems import Unreadable, shown

Codec = Literal["gzip", "zstd"]
CODECS: dict[str, Codec] = {".gz": "gzip", ".zst": "zstd"}  # of NDJSON; Parquet compresses its own pages


def is_event_file(path: Path) -> bool:
    """Whether the name says that events are in it."""
    return _form(path) in {".ndjson", ".jsonl"} or path.suffix.lower() == ".parquet"


def is_parquet(path: Path) -> bool:
    """Whether the name says Parquet, and not NDJSON. Raises Unreadable where it says neither."""
    if not is_event_file(path):
        raise Unreadable(
            f"{shown(path)}: an event file is named .ndjson or .parquet, so that its form is known; rename it"
        )
    return path.suffix.lower() == ".parquet"


def codec_of(path: Path) -> Codec | None:
    """How the lines are compressed, as the end of the name says: None where they are not."""
    return CODECS.get(path.suffix.lower())


def _form(path: Path) -> str:
    return (Path(path.stem) if codec_of(path) else path).suffix.lower()
