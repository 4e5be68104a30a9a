"""Indexes, snapshots and checkpoints of a Kafka data directory, as the tests' own reader has them."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.kafka.batches import crc32c

INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
FOLDER = re.compile(r"(.+)-(\d+)")
ENTRY = struct.Struct(">qhiqiqiq")
ABORTED = struct.Struct(">hqqqq")


class Folder(NamedTuple):
    """One partition's folder."""

    path: Path
    topic: str
    number: int

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def logs(self) -> list[Path]:
        """Its segments, by base offset."""
        return numbered(self.path, ".log")


def numbered(folder: Path, suffix: str) -> list[Path]:
    """Files whose name is an offset and this suffix."""
    return sorted(path for path in folder.iterdir() if path.suffix == suffix and re.fullmatch(r"\d{20}", path.stem))


def folders(directory: Path) -> list[Folder]:
    """The partitions of a data directory; none that is deleted, moved or stray."""
    found = []
    for path in sorted(directory.iterdir()):
        match = FOLDER.fullmatch(path.name)
        if path.is_dir() and match:
            found.append(Folder(path, match[1], int(match[2])))
    return found


def directories(recording: Path) -> list[Path]:
    """Every data directory of a recording."""
    return sorted(path.parent for path in recording.glob("**/meta.properties"))


def offset_index(path: Path, base: int) -> list[tuple[int, int]]:
    """Entries (offset, position) up to the blanks."""
    data = path.read_bytes()
    data = data[: len(data) // 8 * 8]
    entries = [(base + relative, position) for relative, position in struct.iter_unpack(">ii", data)]
    while entries and entries[-1] == (base, 0):
        entries.pop()
    return entries


def time_index(path: Path, base: int) -> list[tuple[int, int]]:
    """Entries (time, offset) up to the blanks."""
    data = path.read_bytes()
    data = data[: len(data) // 12 * 12]
    entries = [(time, base + relative) for time, relative in struct.iter_unpack(">qi", data)]
    while entries and entries[-1] == (0, base):
        entries.pop()
    return entries


class AbortedEntry(NamedTuple):
    """An entry of the index of aborted transactions."""

    version: int
    producer: int
    first: int
    last: int
    stable: int


def aborted_index(path: Path) -> list[AbortedEntry]:
    """Its entries."""
    data = path.read_bytes()
    return [AbortedEntry(*entry) for entry in ABORTED.iter_unpack(data[: len(data) // 34 * 34])]


class Producer(NamedTuple):
    """An entry of a snapshot."""

    producer: int
    epoch: int
    sequence: int
    offset: int
    delta: int
    time: int
    coordinator: int
    open: int


class Snapshot(NamedTuple):
    """A snapshot of producers."""

    offset: int
    is_sound: bool
    producers: dict[int, Producer]


def snapshot(path: Path) -> Snapshot:
    """Return what a snapshot says; entries that are whole, where it is cut."""
    data = path.read_bytes()
    sound = len(data) >= 10 and data[:2] == b"\0\1" and crc32c(data[6:]) == int.from_bytes(data[2:6], "big")
    whole = data[10 : 10 + (max(len(data) - 10, 0) // 46) * 46]
    entries = [Producer(*entry) for entry in ENTRY.iter_unpack(whole)]
    return Snapshot(
        int(path.stem),
        sound and len(entries) == int.from_bytes(data[6:10], "big"),
        {entry.producer: entry for entry in entries},
    )


def checkpoint(path: Path) -> dict[tuple[str, int], int]:
    """Offsets by partition; empty if there is no such file."""
    if not path.exists():
        return {}
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines()[2:]:
        topic, number, offset = line.rsplit(" ", 2)
        found[topic, int(number)] = int(offset)
    return found


def epochs(folder: Path) -> list[tuple[int, int]]:
    """Leader epochs and their first offsets."""
    path = folder / "leader-epoch-checkpoint"
    if not path.exists():
        return []
    return [(int(a), int(b)) for a, b in (line.split() for line in path.read_text(encoding="utf-8").splitlines()[2:])]


def is_stopped(directory: Path) -> bool:
    """True if the broker stopped in order."""
    return (directory / ".kafka_cleanshutdown").exists()


def properties(path: Path) -> Iterator[tuple[str, str]]:
    """The lines of a properties file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            yield key, value
