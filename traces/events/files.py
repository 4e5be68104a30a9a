"""Files of events and their forms, recognised by name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gapless.traces.problems import Unreadable, shown

Codec = Literal["gzip", "zstd"]
CODECS: dict[str, Codec] = {".gz": "gzip", ".zst": "zstd"}  # of NDJSON; Parquet compresses its own pages


def is_event_file(path: Path) -> bool:
    """True if the name is that of a file of events."""
    return _form(path) in {".ndjson", ".jsonl"} or path.suffix.lower() == ".parquet"


def is_parquet(path: Path) -> bool:
    """True for a Parquet name, False for NDJSON. Raises Unreadable for any other."""
    if not is_event_file(path):
        raise Unreadable(
            f"{shown(path)}: an event file is named .ndjson or .parquet, so that its form is known; rename it"
        )
    return path.suffix.lower() == ".parquet"


def codec_of(path: Path) -> Codec | None:
    """The compression of a file of lines, by the end of its name; None if it has none."""
    return CODECS.get(path.suffix.lower())


def _form(path: Path) -> str:
    return (Path(path.stem) if codec_of(path) else path).suffix.lower()
