"""One data directory that is about to be damaged: what lies in it, and the labels of faults."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

from tests.support.kafka import files
from tests.support.kafka.batches import Batch, crc32c, marker, walk
from tests.support.kafka.files import INTERNAL, Folder
from tests.support.kafka.metadata import compacted_topics, settings

T = TypeVar("T")
FIELDS = {
    "base": (0, 8),
    "length": (8, 4),
    "leader_epoch": (12, 4),
    "magic": (16, 1),
    "crc": (17, 4),
    "attributes": (21, 2),
    "delta": (23, 4),
    "base_time": (27, 8),
    "max_time": (35, 8),
    "producer": (43, 8),
    "epoch": (51, 2),
    "sequence": (53, 4),
    "count": (57, 4),
}


@dataclass(frozen=True)
class Label:
    """One fault: where it lies, and which rules may show it."""

    kind: str
    partition: str
    file: str  # the file that was changed, from the data directory
    position: int = -1  # the byte where it lies (after the change)
    end: int = -1  # a fault may show up to this byte
    offset: int = -1  # the offset in the log
    rules: tuple[str, ...] = ()  # steps whose rules may show it: partition.append, producer.snapshot …
    also: tuple[str, ...] = ()  # other files of the partition at which it may show
    tail: bool = False  # in what no stop in order and no recovery point vouches for: inconclusive is right as well
    equivalent: str = ""  # why no reader can tell
    what: str = ""
    directory: str = ""
    shown: tuple[str, ...] = field(default=())  # invariants that the tests' own reader finds broken


class Place(NamedTuple):
    """A batch in a segment."""

    folder: Folder
    path: Path
    batches: list[Batch]
    number: int

    @property
    def batch(self) -> Batch:
        """The batch itself."""
        return self.batches[self.number]


class Case:
    """A data directory whose files may be changed (a new file each time, never in place)."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory, self.random = directory, random.Random(seed)
        self.is_stopped = files.is_stopped(directory)
        self.flushed = files.checkpoint(directory / "recovery-point-offset-checkpoint")

    @cached_property
    def compacted(self) -> set[str]:
        """Topics that were ever compacted."""
        ever = compacted_topics(self.directory) | set(INTERNAL)
        return ever | {topic for topic, _ in files.checkpoint(self.directory / "cleaner-offset-checkpoint")}

    @cached_property
    def nodes(self) -> int:
        """The number of nodes of the cluster, by its voters."""
        path = self.directory / "__cluster_metadata-0" / "quorum-state"
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return max(1, len(found.get("currentVoters", [])))

    @cached_property
    def folders(self) -> list[Folder]:
        """Partitions but that of the metadata."""
        return [
            folder
            for folder in files.folders(self.directory)
            if folder.topic != "__cluster_metadata" and not folder.topic.startswith("__share")
        ]

    @cached_property
    def cleaned(self) -> list[Folder]:
        """Partitions of topics that are compacted still, where a cleaner was, after a stop in order."""
        policies = {s.resource: s.value or "" for s in settings(self.directory) if s.name == "cleanup.policy"}
        return [
            folder
            for folder in self.folders
            if self.is_stopped and "compact" in policies.get(folder.topic, "") and self.point(folder) > 0
        ]

    def point(self, folder: Folder) -> int:
        """The cleaner's point of a partition."""
        found = files.checkpoint(self.directory / "cleaner-offset-checkpoint")
        return found.get((folder.topic, folder.number), 0)

    def in_order(self, folder: Folder) -> Iterator[Place]:
        """All batches of a partition."""
        for path in folder.logs:
            batches = walk(path).batches
            yield from (Place(folder, path, batches, number) for number in range(len(batches)))

    @cached_property
    def plain(self) -> list[Folder]:
        """Partitions of topics that were never compacted."""
        return [folder for folder in self.folders if folder.topic not in self.compacted]

    def shuffled(self, items: list[T]) -> list[T]:
        """The same in a random order."""
        return self.random.sample(items, len(items))

    def places(self, wanted: Callable[[Place], bool] = bool, *, every: bool = False) -> Iterator[Place]:
        """Batches in a random order: one of each segment at a time."""
        for folder in self.shuffled(self.folders if every else self.plain):
            for path in self.shuffled(folder.logs):
                batches = walk(path).batches
                for number in self.shuffled(list(range(len(batches)))):
                    place = Place(folder, path, batches, number)
                    if wanted(place):
                        yield place
                        break

    def place(self, wanted: Callable[[Place], bool] = bool, *, every: bool = False) -> Place | None:
        """A batch that is wanted; one that is flushed, if there is one."""
        found = list(self.places(wanted, every=every))
        return next((p for p in found if not self.is_tail(p)), found[0] if found else None)

    def is_tail(self, place: Place) -> bool:
        """True if power may have been lost there."""
        return not self.is_stopped and place.batch.last >= self.flushed.get(
            (place.folder.topic, place.folder.number), 0
        )

    def name(self, path: Path) -> str:
        """A path from the data directory."""
        return str(path.relative_to(self.directory))

    def label(
        self,
        kind: str,
        place: Place,
        *rules: str,
        what: str = "",
        later: int = 2,
        also: tuple[str, ...] = (),
        equivalent: str = "",
    ) -> Label:
        """A label of a fault in a batch; it may show up to some batches later."""
        last = place.batches[min(place.number + later, len(place.batches) - 1)]
        return Label(
            kind,
            place.folder.name,
            self.name(place.path),
            place.batch.position,
            last.position + last.size,
            place.batch.base,
            rules,
            also,
            self.is_tail(place),
            equivalent,
            what,
        )


def write(path: Path, data: bytes) -> None:
    """Write a new file of this name: what the old one was linked with stays."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def changed(batch: Batch, *, sealed: bool = True, **fields: int) -> bytes:
    """The batch with other values in its head, and a checksum that is right if it is sealed."""
    data = bytearray(batch.data)
    for name, value in fields.items():
        at, width = FIELDS[name]
        data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "big")
    return resealed(bytes(data)) if sealed else bytes(data)


def resealed(data: bytes) -> bytes:
    """The batch with the right checksum."""
    return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]


def rewritten(place: Place, data: bytes, number: int | None = None) -> None:
    """Put these bytes in the place of a batch."""
    batch = place.batches[place.number if number is None else number]
    old = place.path.read_bytes()
    write(place.path, old[: batch.position] + data + old[batch.position + batch.size :])


def flipped(data: bytes, at: int, bit: int) -> bytes:
    """The bytes with one bit turned."""
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def is_data(place: Place) -> bool:
    """True for a batch of records."""
    return not place.batch.is_control and place.batch.record_count > 0


def is_marker(place: Place) -> bool:
    """True for a marker."""
    found = marker(place.batch)
    return found is not None and found.type < 2


def is_inner(place: Place) -> bool:
    """True for a batch between two others of its segment."""
    return 0 < place.number < len(place.batches) - 1


def label(
    case: Case,
    kind: str,
    path: Path,
    *rules: str,
    position: int = -1,
    offset: int = -1,
    what: str = "",
    also: tuple[str, ...] = (),
    equivalent: str = "",
    tail: bool | None = None,
    partition: str = "",
) -> Label:
    """A label of a fault in a file that is no segment."""
    tail = not case.is_stopped if tail is None else tail
    return Label(
        kind,
        partition or path.parent.name,
        case.name(path),
        position,
        position,
        offset,
        rules,
        also,
        tail,
        equivalent,
        what,
    )
