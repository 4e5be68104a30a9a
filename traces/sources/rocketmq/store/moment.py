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
    end: int  # log position: no byte from here on was written

    def __str__(self) -> str:
        return datetime.fromtimestamp(self.seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def now(root: Path, queues: QueueFiles, log: Sequence[LogFile]) -> Moment:
    """The present moment of a store whose queues lie in `root`. Raises Unreadable."""
    entries = {queue: _entries(root / queue[0] / str(queue[1]), files) for queue, files in queues.items() if files}
    seconds = time.time()
    end = log[0].base
    for file in reversed(log):
        if (written := _written(file)) > 0:
            end = file.base + written
            break
    return Moment(seconds, entries, end)


def _entries(folder: Path, files: Sequence[QueueFile]) -> int:
    """The exclusive end of a queue's entries: the first slot of its last file that is not written yet."""
    base, length = files[-1]
    low, high = 0, length // ENTRY
    with (folder / f"{base:020d}").open("rb") as file:
        while low < high:
            slot = (low + high) // 2
            written = any(os.pread(file.fileno(), ENTRY, slot * ENTRY))
            low, high = (slot + 1, high) if written else (low, slot)
    return base // ENTRY + low


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
