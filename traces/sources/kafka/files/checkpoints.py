"""Checkpoints: small texts in which a broker keeps offsets of all partitions, or the epochs of one.

A file that was never written to is empty. They are written to another file and renamed; yet after a crash one may be
empty, too, or end too early.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.traces.sources.kafka.files.contents import content
from gapless.traces.sources.kafka.files.directory import small_text
from gapless.traces.sources.kafka.files.names import LARGEST_OFFSET, PartitionName
from gapless.traces.sources.kafka.log.tables import Ints

LARGEST = 64 << 20
"""Bytes of a checkpoint that are read: of two hundred thousand partitions with the longest names."""


@dataclass(frozen=True)
class OffsetCheckpoint:
    """An offset of each partition. `fault`: the reason for which it says less than it should; empty as a rule."""

    offsets: dict[PartitionName, int]
    fault: str


@dataclass(frozen=True, eq=False)
class EpochCheckpoint:
    """The leader epochs of a partition, and the offset at which each begins. `fault`: as above."""

    epoch: Ints
    start: Ints
    fault: str


def offset_checkpoint(path: Path) -> OffsetCheckpoint | None:
    """Read an offset of each partition; None if the file is missing. Raises OSError."""
    rows = _rows(path, 3)
    if rows is None:
        return None
    offsets, fault = {}, rows.fault
    for topic, number, offset in rows.found:
        partition, at = _number(number), _number(offset)
        if partition is None or at is None:
            fault = fault or f"the line '{topic} {number} {offset}' names no offset"
        else:
            offsets[PartitionName(topic, partition)] = at
    return OffsetCheckpoint(offsets, fault)


def epoch_checkpoint(path: Path) -> EpochCheckpoint | None:
    """Read the leader epochs of a partition; None if the file is missing. Raises OSError."""
    rows = _rows(path, 2)
    if rows is None:
        return None
    pairs = [(_number(epoch), _number(start)) for epoch, start in rows.found]
    good = [(epoch, start) for epoch, start in pairs if epoch is not None and start is not None]
    fault = rows.fault or ("" if len(good) == len(pairs) else "a line is not two numbers")
    columns = np.array(good, np.int64).reshape(-1, 2).T
    return EpochCheckpoint(columns[0], columns[1], fault)


def broker_epoch(path: Path) -> int:
    """The broker epoch in the file that a stop in order leaves; -1 where it has none."""
    try:
        found = json.loads(small_text(path))
    except ValueError:
        return -1
    epoch = found.get("brokerEpoch") if isinstance(found, dict) else None
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else -1


@dataclass(frozen=True)
class _Rows:
    found: list[list[str]]
    fault: str


def _rows(path: Path, width: int) -> _Rows | None:
    """The rows of a checkpoint: a version and a count stand before them. None if the file is missing."""
    try:
        lines = content(path, LARGEST).decode(errors="replace").split("\n")
    except FileNotFoundError:
        return None
    if not any(lines):
        return _Rows([], "")
    if lines[0].strip() != "0":
        return _Rows([], "its version is not 0")
    count = _number(lines[1].strip()) if len(lines) > 1 else None
    if count is None:
        return _Rows([], "it does not say how many lines follow")
    rows = [line.split() for line in lines[2:] if line.strip()]
    whole = [row for row in rows if len(row) == width]
    if len(whole) != count or len(rows) != count:
        return _Rows(whole, f"it has {len(whole)} whole lines, and says {count}")
    return _Rows(whole, "")


def _number(text: str) -> int | None:
    """A number as a broker writes it, from -1 on; None for other texts."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19 or (number := int(text)) > LARGEST_OFFSET:
        return None
    return number if number >= -1 else None
