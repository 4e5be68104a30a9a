"""A store that a broker is writing to, as of one moment: later content is left out.

A reader of a growing store sees each piece at another time, and would take additions for gaps. So the ends are fixed
when the check begins: first of every queue, then of the log. An entry below its queue's end points below the log's,
and neither changes any more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from gapless.traces.sources.rocketmq.store.files import (
    ENTRY,
    LogFile,
    Queue,
    QueueFile,
    QueueFiles,
    is_hole,
    read_exactly,
)

CHUNK = 4 << 20  # bytes of the log that are looked through at once


@dataclass(frozen=True)
class Snapshot:
    """The time of the snapshot, and the ends of queues and log then."""

    seconds: float  # since 1970
    entries: Mapping[Queue, int]  # exclusive end of the entries of every queue that has files
    last: Mapping[Queue, bytes]  # the last of them, or no bytes: it never changes, unless its topic is deleted
    end: int  # log position: no byte from here on was written

    def __str__(self) -> str:
        return datetime.fromtimestamp(self.seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def now(queues: QueueFiles, opened: Callable[[Queue, QueueFile], LogFile], log: Sequence[LogFile]) -> Snapshot:
    """Takes a snapshot of a store, whose queues' files are `opened` so. Raises Unreadable."""
    entries, last = _all_entries(queues, opened)
    seconds = time.time()
    end = log[0].base
    for file in reversed(log):
        if (written := _written(file)) > 0:
            end = file.base + written
            break
    return Snapshot(seconds, entries, last, end)


def reached(queues: QueueFiles, opened: Callable[[Queue, QueueFile], LogFile]) -> int:
    """The greatest end of a record that the last entry of any queue names, or 0."""
    _, last = _all_entries(queues, opened)
    ends = (int.from_bytes(entry[:8], "big") + int.from_bytes(entry[8:12], "big") for entry in last.values())
    return max(ends, default=0)


def _all_entries(
    queues: QueueFiles, opened: Callable[[Queue, QueueFile], LogFile]
) -> tuple[dict[Queue, int], dict[Queue, bytes]]:
    entries, last = dict[Queue, int](), dict[Queue, bytes]()
    for queue, files in queues.items():
        if files:
            entries[queue], last[queue] = _entries(opened(queue, files[-1]))
    return entries, last


def _entries(file: LogFile) -> tuple[int, bytes]:
    """The exclusive end of a queue's entries, the first slot of its last file that is not written yet; and the last.

    No entry is found where the file is gone.
    """
    low, high = 0, file.length // ENTRY
    try:
        with Path(file.path).open("rb") as opened:
            handle = opened.fileno()
            while low < high:
                slot = (low + high) // 2
                written = any(os.pread(handle, ENTRY, file.at + slot * ENTRY))
                low, high = (slot + 1, high) if written else (low, slot)
            return file.base // ENTRY + low, os.pread(handle, ENTRY, file.at + (low - 1) * ENTRY) if low > 0 else b""
    except FileNotFoundError:
        return 0, b""


def _written(file: LogFile) -> int:
    """The offset behind the file's last byte that is not zero."""
    high = file.length
    while high > 0:
        low = max(0, high - CHUNK)
        if not is_hole(file, low, high):
            data = np.empty(high - low, np.uint8)
            read_exactly(file, low, data.data)
            found = np.flatnonzero(data)
            if len(found):
                return low + int(found[-1]) + 1
        high = low
    return 0
