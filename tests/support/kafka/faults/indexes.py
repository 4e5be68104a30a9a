"""Faults in the indexes of offsets, times and aborted transactions."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from tests.support.kafka import files
from tests.support.kafka.batches import walk
from tests.support.kafka.faults.case import Case, Label, label, write
from tests.support.kafka.files import Folder

INDEX, TIME = "partition.index", "partition.index_time"
ABORTED = "aborted_index"


def segments(case: Case, suffix: str, size: int, least: int) -> Iterator[tuple[Folder, Path, list[bytes], int]]:
    """Index files in a random order: their entries, and the number of one of them."""
    for folder in case.shuffled(case.plain):
        for path in case.shuffled(files.numbered(folder.path, suffix)):
            data = path.read_bytes()
            entries = [data[k : k + size] for k in range(0, len(data) - size + 1, size)]
            while entries and not entries[-1].strip(b"\0"):
                entries.pop()
            last = path.stem == folder.logs[-1].stem if folder.logs else True
            if len(entries) >= least and path.with_suffix(".log").exists() and (case.is_stopped or not last):
                yield folder, path, entries, case.random.randrange(len(entries))


def replaced(path: Path, size: int, number: int, entry: bytes) -> None:
    """Put an entry in the place of another."""
    data = path.read_bytes()
    write(path, data[: number * size] + entry + data[(number + 1) * size :])


def index_position(case: Case) -> Label | None:
    """Point an offset index's entry some bytes aside."""
    for _folder, path, entries, number in segments(case, ".index", 8, 1):
        offset, position = struct.unpack(">ii", entries[number])
        replaced(path, 8, number, struct.pack(">ii", offset, position + 5))
        return label(case, "index_position", path, INDEX, position=number * 8, offset=int(path.stem) + offset)
    return None


def index_offset(case: Case) -> Label | None:
    """Name an offset before the batch that an entry points at."""
    for _folder, path, entries, number in segments(case, ".index", 8, 1):
        _, position = struct.unpack(">ii", entries[number])
        bases = {b.position: b.base for b in walk(path.with_suffix(".log")).batches}
        new = bases.get(position, 0) - int(path.stem) - 1
        if new <= 0 or position not in bases:
            continue
        replaced(path, 8, number, struct.pack(">ii", new, position))
        return label(case, "index_offset", path, INDEX, position=number * 8, offset=int(path.stem) + new)
    return None


def index_far(case: Case) -> Label | None:
    """Name an offset in an entry that ends no batch, some batches on."""
    for _folder, path, entries, number in segments(case, ".index", 8, 1):
        _, position = struct.unpack(">ii", entries[number])
        batches = walk(path.with_suffix(".log")).batches
        after = [b for b in batches if b.position > position and b.delta > 0]
        if not after:
            continue
        new = after[0].base - int(path.stem)
        replaced(path, 8, number, struct.pack(">ii", new, position))
        return label(case, "index_far", path, INDEX, position=number * 8, offset=int(path.stem) + new)
    return None


def index_swapped(case: Case) -> Label | None:
    """Swap two entries of an offset index."""
    for _folder, path, entries, _ in segments(case, ".index", 8, 2):
        replaced(path, 8, 0, entries[1])
        replaced(path, 8, 1, entries[0])
        return label(case, "index_swapped", path, INDEX, position=0)
    return None


def index_missing(case: Case) -> Label | None:
    """Remove an offset index: the broker makes it again at its next start."""
    for _folder, path, _entries, _ in segments(case, ".index", 8, 1):
        path.unlink()
        return label(
            case,
            "index_missing",
            path,
            "files",
            equivalent="the loader makes a missing index again: no departure of the log, at most a note",
        )
    return None


def time_index_time(case: Case) -> Label | None:
    """Change the time of a time index's entry."""
    for _folder, path, entries, number in segments(case, ".timeindex", 12, 1):
        time, offset = struct.unpack(">qi", entries[number])
        replaced(path, 12, number, struct.pack(">qi", time + case.random.choice([-1, 1, 5000]), offset))
        return label(
            case, "time_index_time", path, TIME, "partition.seal", position=number * 12, offset=int(path.stem) + offset
        )
    return None


def time_index_offset(case: Case) -> Label | None:
    """Name the offset of another batch in a time index's entry."""
    for _folder, path, entries, number in segments(case, ".timeindex", 12, 1):
        time, offset = struct.unpack(">qi", entries[number])
        batches = walk(path.with_suffix(".log")).batches
        others = [b for b in batches if b.max_time != time and not b.base <= offset + int(path.stem) <= b.last]
        if not others:
            continue
        other = case.random.choice(others)
        replaced(path, 12, number, struct.pack(">qi", time, other.last - int(path.stem)))
        return label(case, "time_index_offset", path, TIME, "partition.seal", position=number * 12, offset=other.last)
    return None


def time_index_short(case: Case) -> Label | None:
    """Drop the last entry of a time index: the greatest time."""
    for _folder, path, entries, _ in segments(case, ".timeindex", 12, 2):
        write(path, b"".join(entries[:-1]))
        return label(case, "time_index_short", path, "partition.seal", position=len(entries) * 12 - 12)
    return None


def _aborted(case: Case) -> Iterator[tuple[Folder, Path, list[bytes], int]]:
    yield from segments(case, ".txnindex", 34, 1)


def aborted_dropped(case: Case) -> Label | None:
    """Drop an entry of an index of aborted transactions."""
    for _folder, path, entries, number in _aborted(case):
        write(path, b"".join(entries[:number] + entries[number + 1 :]))
        return label(case, "aborted_dropped", path, ABORTED, position=number * 34)
    return None


def aborted_twice(case: Case) -> Label | None:
    """Double an entry of an index of aborted transactions."""
    for _folder, path, entries, number in _aborted(case):
        write(path, b"".join(entries[: number + 1] + entries[number:]))
        return label(case, "aborted_twice", path, ABORTED, position=number * 34 + 34)
    return None


def aborted_wrong(case: Case) -> Label | None:
    """Change the first offset in an entry of an index of aborted transactions."""
    for _folder, path, entries, number in _aborted(case):
        version, producer, first, last, stable = struct.unpack(">hqqqq", entries[number])
        replaced(path, 34, number, struct.pack(">hqqqq", version, producer, first + 1, last, stable))
        return label(case, "aborted_wrong", path, ABORTED, position=number * 34)
    return None


def aborted_lost(case: Case) -> Label | None:
    """Remove an index of aborted transactions."""
    for _folder, path, _entries, _ in _aborted(case):
        path.unlink()
        return label(case, "aborted_lost", path, ABORTED, position=0)
    return None


FAULTS = (
    index_position,
    index_offset,
    index_far,
    index_swapped,
    index_missing,
    time_index_time,
    time_index_offset,
    time_index_short,
    aborted_dropped,
    aborted_twice,
    aborted_wrong,
    aborted_lost,
)
