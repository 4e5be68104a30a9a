"""Snapshots of producers: the state of each at an offset of the log, in columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gapless.traces.sources.kafka.files.contents import content
from gapless.traces.sources.kafka.log.checksums import checksum
from gapless.traces.sources.kafka.log.tables import Ints

HEAD = 10
"""Bytes before the entries: version 2, checksum 4, count 4."""
VERSION = 1
LARGEST = 256 << 20
"""Bytes of a snapshot that are read."""
ENTRY = np.dtype([
    ("producer", ">i8"), ("epoch", ">i2"), ("sequence", ">i4"), ("last", ">i8"), ("delta", ">i4"), ("time", ">i8"),
    ("coordinator", ">i4"), ("first_open", ">i8"),
])  # fmt: skip


@dataclass(frozen=True, eq=False)
class ProducerSnapshot:
    """The producers at an offset; -1 is none. `fault`: the reason for which it cannot be read, empty as a rule.

    `sequence`, `last`: of the last record · `delta`: from the first record of its batch · `coordinator`: its epoch ·
    `first_open`: the offset at which the open transaction began.
    """

    offset: int
    fault: str
    producer: Ints
    epoch: Ints
    sequence: Ints
    last: Ints
    delta: Ints
    time: Ints
    coordinator: Ints
    first_open: Ints

    def only(self, producer: int) -> ProducerSnapshot:
        """Return the same snapshot with the line of one producer alone."""
        mine = self.producer == producer
        return replace(self, **{name: getattr(self, name)[mine] for name in ENTRY.names or ()})

    def __len__(self) -> int:
        return len(self.producer)


def producer_snapshot(path: Path, offset: int) -> ProducerSnapshot:
    """Read the snapshot at an offset. Raises OSError."""
    data = content(path, LARGEST)
    fault = _fault(data)
    entries = np.frombuffer(b"" if fault else data[HEAD:], ENTRY)
    return ProducerSnapshot(offset, fault, *(entries[name].astype(np.int64) for name in ENTRY.names or ()))


def _fault(data: bytes) -> str:
    """The reason for which bytes are no snapshot; empty if they are one."""
    if len(data) < HEAD:
        return f"it ends after {len(data)} bytes, within its head"
    if (version := int.from_bytes(data[:2], "big")) != VERSION:
        return f"its version is {version}, and {VERSION} is read"
    count = int.from_bytes(data[6:HEAD], "big", signed=True)
    if len(data) != HEAD + count * ENTRY.itemsize:
        return f"it has {len(data)} bytes, and its {count} producers take {HEAD + count * ENTRY.itemsize}"
    if checksum(data[6:]) != int.from_bytes(data[2:6], "big"):
        return "its checksum is another one"
    return ""
