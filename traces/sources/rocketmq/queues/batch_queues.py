"""Batch consume queues: their entries, copied out once into a file that is read like those of plain consume queues.

Topics with the attribute `queue.type=BatchCQ` have them (docs/rocketmq.md#batch-queues). An entry is 46 bytes, stands
for as many numbers as its batch has messages, and says itself which is the first. In the copy it lies in the slot of
its first number; the slots of the others tell how many there are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gapless.traces.files.scratch_folders import FolderGuard
from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.store.files import (
    ENTRY,
    FARTHEST,
    SLOT,
    LogFile,
    Queue,
    QueueFile,
    QueueFiles,
    queue_file_size,
    queue_files,
    read_exactly,
)

FOLDER = "batchconsumequeue"
UNIT = np.dtype(
    [
        ("position", ">i8"), ("size", ">i4"), ("tag", ">i8"), ("time", ">i8"), ("number", ">i8"), ("count", ">i2"),
        ("compacted", ">i4"), ("reserved", ">i4"),
    ]
)  # fmt: skip
OF_A_BATCH = -1  # the size in a slot that belongs to the batch before it; its position says how many numbers that has
Units = npt.NDArray[np.void]


@dataclass(frozen=True)
class BatchQueues:
    """The batch queues of a store, as they were when they were copied.

    `files`: as they lie in the store · `file_size`: bytes that each is born with, or 0 · `copy`: where the slots are ·
    `queues`: for each queue its entries that follow one another, as a file that begins with the first
    """

    files: QueueFiles
    file_size: int
    copy: str
    queues: QueueFiles
    kept: FolderGuard | None = field(default=None, compare=False)


def batch_queues(store: Path, size: int) -> BatchQueues | None:
    """The batch queues of a store, copied out; `size`: of their files, as it is set, or 0. Raises Unreadable."""
    files = {queue: there for queue, there in queue_files(store / FOLDER).items() if there}
    if not files:
        return None
    room = Path(tempfile.mkdtemp(prefix="gapless-queues-"))
    kept = FolderGuard(room)
    found: dict[Queue, tuple[QueueFile, ...]] = {}
    written = 0
    try:
        with (room / "entries").open("wb") as out:
            for queue, there in files.items():
                units, _ = units_of(store, queue, there)
                slots, runs = _slots(units)
                out.write(slots.tobytes())
                found[queue] = tuple(QueueFile(base, length, written + at) for base, length, at in runs)
                written += slots.nbytes
    except OSError as error:
        raise Unreadable(
            f"{store / FOLDER}: cannot be copied to {room} ({error.strerror}); TMPDIR says where"
        ) from error
    return BatchQueues(files, queue_file_size(files, size, 1), str(room / "entries"), found, kept)


def has_batch_queues(store: Path) -> bool:
    """True if a store has files of batch queues."""
    return next((store / FOLDER).glob("*/*/*"), None) is not None


def units_of(store: Path, queue: Queue, files: tuple[QueueFile, ...]) -> tuple[Units, npt.NDArray[np.int64]]:
    """Returns the valid entries of one queue, in file order, with the offset of each."""
    parts, places = [], []
    for file in files:
        data = np.zeros(file.length // UNIT.itemsize * UNIT.itemsize, np.uint8)
        read_exactly(unit_file(store, queue, file), 0, data.data)
        units = data.view(UNIT)
        taken = (units["position"] >= 0) & (units["size"] > 0) & (units["number"] >= 0) & (units["count"] > 0)
        (at,) = np.nonzero(taken & (units["number"] < FARTHEST // ENTRY - (1 << 15)))
        parts.append(units[at])
        places.append(file.base + at * UNIT.itemsize)
    return np.concatenate(parts), np.concatenate(places)


def unit_file(store: Path, queue: Queue, file: QueueFile) -> LogFile:
    """Returns one file of a queue."""
    return LogFile(f"{store}/{FOLDER}/{queue[0]}/{queue[1]}/{file.base:020d}", file.base, file.length)


def _slots(units: Units) -> tuple[npt.NDArray[np.void], list[tuple[int, int, int]]]:
    """Returns the slots of a queue, one stretch of numbers after the other, and the stretches.

    If two entries name the same number, the first one in the files counts.
    """
    order = np.argsort(units["number"], kind="stable")
    numbers = units["number"][order].astype(np.int64)
    first = np.ones(len(order), np.bool_)
    first[1:] = numbers[1:] != numbers[:-1]
    chosen, numbers = units[order[first]], numbers[first]
    counts = chosen["count"].astype(np.int64)
    counts[:-1] = np.minimum(counts[:-1], np.diff(numbers))  # what follows has its own entry
    starts = np.concatenate([[0], np.cumsum(counts)])
    slots = np.zeros(int(starts[-1]), SLOT)
    owner = np.repeat(np.arange(len(chosen)), counts)
    slots["position"], slots["size"] = chosen["count"][owner], OF_A_BATCH
    for name in ("position", "size", "tag"):
        slots[name][starts[:-1]] = chosen[name]
    return slots, list(_stretches(numbers, counts, starts))


def _stretches(
    numbers: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> Iterator[tuple[int, int, int]]:
    """Returns stretches of consecutive numbers: base and length like a file's, and the first slot."""
    (breaks,) = np.nonzero(numbers[1:] != numbers[:-1] + counts[:-1])
    bounds = [0, *(breaks + 1).tolist(), len(numbers)]
    for low, high in pairwise(bounds):
        if low < high:
            at = int(starts[low]) * ENTRY
            yield int(numbers[low]) * ENTRY, int(starts[high]) * ENTRY - at, at
