"""Parts of a segment that are read by themselves: each begins at a batch to which the offset index points."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from gapless.traces.sources.kafka.files.indexes import offset_index
from gapless.traces.sources.kafka.log.batches import chunks

PART = 64 << 20
"""Bytes of a segment that are read as one part."""
TRIES = 16
"""Entries that are tried for a begin; then the part before it is longer."""
LOOKED_AT = 1 << 16


class SegmentPart(NamedTuple):
    """A part of a segment: the bytes from `begin` to `end`; the last part ends where the file does."""

    begin: int
    end: int


def segment_parts(log: Path, size: int, base: int, index: Path | None, part: int = PART) -> list[SegmentPart]:
    """The parts of a segment, each of about so many bytes. Raises OSError."""
    begins = [0]
    if index is not None and size > part + part // 2:
        entries = offset_index(index, base)
        for wanted in range(part, size - part // 2, part):
            at = int(np.searchsorted(entries.position, wanted))
            tried = range(at, min(at + TRIES, len(entries.position)))
            places = ((int(entries.position[row]), int(entries.offset[row])) for row in tried)
            begins += [place for place, offset in places if place > begins[-1] and _begins(log, place, offset)][:1]
    return [SegmentPart(*pair) for pair in zip(begins, [*begins[1:], size], strict=True)]


def _begins(log: Path, position: int, offset: int) -> bool:
    """True if a batch begins at a position, with a right checksum, and not behind the offset of its entry."""
    first = next(chunks(log, position, position + 1, LOOKED_AT)).batches
    return len(first) > 0 and bool(first.is_sound[0]) and int(first.base[0]) <= offset
