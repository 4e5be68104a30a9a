"""A store that a broker is writing to, as of one moment: what comes after it is left out.

Whoever reads a growing store in pieces sees each piece at another time, and takes what came in between for a gap. So
the ends are fixed when the check begins: first of every queue, then of the log. An entry below its queue's end points
below the log's, and neither changes any more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from gapless.traces.sources.rocketmq.store.files import ENTRY, LogFile, Queue, QueueFile, QueueFiles, read_exactly

CHUNK = 4 << 20  # bytes of the log that are looked through at once


@dataclass(frozen=True)
class Moment:
    """When it was, and how far queues and log reached then."""

    seconds: float  # since 1970
    entries: Mapping[Queue, int]  # exclusive end of the entries of every queue that has files
    last: Mapping[Queue, bytes]  # the last of them, or no bytes: it never changes, unless its topic is deleted
    end: int  # log position: no byte from here on was written

    def __str__(self) -> str:
        return datetime.fromtimestamp(self.seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def now(root: Path, queues: QueueFiles, log: Sequence[LogFile]) -> Moment:
    """The present moment of a store whose queues lie in `root`. Raises Unreadable."""
    entries, last = dict[Queue, int](), dict[Queue, bytes]()
    for queue, files in queues.items():
        if files:
            entries[queue], last[queue] = _entries(_folder(root, queue), files[-1])
    seconds = time.time()
    end = log[0].base
    for file in reversed(log):
        if (written := _written(file)) > 0:
            end = file.base + written
            break
    return Moment(seconds, entries, last, end)


def is_as_it_was(moment: Moment, root: Path, queue: Queue, files: Sequence[QueueFile]) -> bool:
    """Whether the queue still has the entries of that moment: they stay, unless its topic is deleted."""
    _, last = _entries(_folder(root, queue), files[-1], moment.entries[queue])
    return last == moment.last[queue]


def _folder(root: Path, queue: Queue) -> Path:
    return root / queue[0] / str(queue[1])


def _entries(folder: Path, file: QueueFile, end: int | None = None) -> tuple[int, bytes]:
    """The exclusive end of a queue's entries, the first slot of its last file that is not written yet; and the last.

    With `end`, the last entry before that one. No entry is found where the file is gone.
    """
    low, high = 0, file.length // ENTRY
    try:
        with (folder / f"{file.base:020d}").open("rb") as opened:
            handle = opened.fileno()
            while low < high and end is None:
                slot = (low + high) // 2
                written = any(os.pread(handle, ENTRY, slot * ENTRY))
                low, high = (slot + 1, high) if written else (low, slot)
            low = low if end is None else end - file.base // ENTRY
            return file.base // ENTRY + low, os.pread(handle, ENTRY, (low - 1) * ENTRY) if low > 0 else b""
    except FileNotFoundError:
        return 0, b""


def _written(file: LogFile) -> int:
    """The offset behind the file's last byte that is not zero."""
    high = file.length
    with Path(file.path).open("rb") as opened:
        while high > 0:
            low = max(0, high - CHUNK)
            if not _is_hole(opened.fileno(), low, high):
                data = np.empty(high - low, np.uint8)
                read_exactly(file, low, data.data)
                found = np.flatnonzero(data)
                if len(found):
                    return low + int(found[-1]) + 1
            high = low
    return 0


def _is_hole(handle: int, low: int, high: int) -> bool:
    """Whether the file system knows that nothing was ever written to `low:high`."""
    try:
        return os.lseek(handle, low, os.SEEK_DATA) >= high
    except OSError:
        return False  # no data up to the end, or a file system that cannot say: reading tells
