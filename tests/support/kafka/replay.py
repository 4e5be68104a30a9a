"""Producers of one partition, played again from its batches: sequences, transactions, aborted entries, snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from tests.support.kafka import files
from tests.support.kafka.batches import Batch, Walk, marker
from tests.support.kafka.files import AbortedEntry, Folder, Producer, Snapshot


class PartitionInvariants(Protocol):
    """A partition whose invariants are asked."""

    folder: Folder
    walks: list[tuple[int, Path, Walk]]
    is_compacted: bool
    is_stopped: bool
    start: int
    end: int

    def ask(self, name: str, holds: object, place: object = "") -> bool:
        """Count one question."""


class Replay:
    """The state of every producer, as a broker has it that reads the log again."""

    def __init__(self, partition: PartitionInvariants) -> None:
        self.partition, self.ask = partition, partition.ask
        self.is_compacted = partition.is_compacted
        found = files.numbered(partition.folder.path, ".snapshot")
        self.snapshots: dict[int, Snapshot] = {int(path.stem): files.snapshot(path) for path in found}
        self.bases = {base for base, _, _ in partition.walks}
        first = partition.walks[0][0]
        self.is_whole = first == 0 or first in self.snapshots
        self.state: dict[int, Producer] = dict(self.snapshots[first].producers) if first in self.snapshots else {}

    def run(self) -> dict[int, int]:
        """Ask all; what remains open at the end, by producer."""
        end = self.partition.end
        self.around()
        for base, path, walked in self.partition.walks:
            if base in self.snapshots:
                self.compare(base)
            aborted: list[AbortedEntry] = []
            for batch in walked.batches:
                if batch.base in self.snapshots and batch.base not in self.bases:
                    self.compare(batch.base)
                if batch.producer >= 0:
                    self.play(batch, aborted, f"{path.name}+{batch.position}")
            self.aborted(path, aborted)
        if end in self.snapshots and end not in self.bases:
            self.compare(end)
        return {producer.producer: producer.open for producer in self.state.values() if producer.open >= 0}

    def around(self) -> None:
        """The snapshots that lie there."""
        end = self.partition.end
        for snapshot in self.snapshots.values():
            self.ask("snapshot: checksum", snapshot.is_sound, snapshot.offset)
            self.ask("snapshot: not beyond the end", snapshot.offset <= end, f"{snapshot.offset} end {end}")
            lies = snapshot.offset in self.bases or snapshot.offset == end
            self.ask("snapshots lie at segments or the end (N7)", lies, snapshot.offset)
        if self.partition.is_stopped and end:
            self.ask("a snapshot at the end after a stop in order", end in self.snapshots, end)
        self.ask("the first segment has a snapshot, or is at 0", self.is_whole)

    def play(self, batch: Batch, aborted: list[AbortedEntry], at: str) -> None:
        """One batch of a producer."""
        if batch.is_control:
            if batch.record_count:
                self.mark(batch, aborted, at)
            return
        old = self.state.get(batch.producer)
        if old is None:
            self.ask("a producer's first batch has sequence 0 (N8)", batch.sequence == 0, at)
        elif not self.is_compacted:
            self.sequences(batch, old, at)
        opened = old.open if old else -1
        self.ask("nothing outside the transaction while one is open", batch.is_transactional or opened < 0, at)
        if batch.is_transactional and opened < 0:
            opened = batch.base
        coordinator = old.coordinator if old else -1
        number, last = batch.producer, batch.last_sequence
        self.state[number] = Producer(
            number, batch.epoch, last, batch.last, batch.delta, batch.max_time, coordinator, opened
        )

    def sequences(self, batch: Batch, old: Producer, at: str) -> None:
        """Epoch and sequence of a batch behind others of its producer."""
        place = f"{at} sequence {batch.sequence} after {old}"
        self.ask("producer epochs do not go back", batch.epoch >= old.epoch, at)
        if batch.epoch > old.epoch or (batch.epoch == old.epoch and old.sequence < 0):
            self.ask("a new epoch begins at 0", batch.sequence == 0, place)
        elif batch.epoch == old.epoch:
            self.ask("sequences have no gap", batch.sequence == (old.sequence + 1) % 2**31, place)

    def mark(self, batch: Batch, aborted: list[AbortedEntry], at: str) -> None:
        """One marker."""
        found = marker(batch)
        if found is None:
            return
        old = self.state.get(batch.producer)
        opened = old.open if old else -1
        self.ask("a marker ends an open transaction (N10)", opened >= 0, at)
        if old is not None:
            self.ask("coordinator epochs do not go back", found.coordinator >= old.coordinator, at)
            self.ask("producer epochs do not go back", batch.epoch >= old.epoch, at)
            if opened >= 0:
                name = "a marker's epoch is the transaction's or the next"
                self.ask(name, batch.epoch - old.epoch in {0, 1}, f"{at} {batch.epoch} after {old.epoch}")
        if found.type == 0 and opened >= 0:
            others = [p.open for p in self.state.values() if p.open >= 0 and p.producer != batch.producer]
            stable = min(others, default=batch.base + 1)
            aborted.append(AbortedEntry(0, batch.producer, opened, batch.base, stable))
        last = (old.sequence, old.offset, old.delta) if old is not None and old.epoch == batch.epoch else (-1, -1, 0)
        number = batch.producer
        self.state[number] = Producer(number, batch.epoch, *last, batch.max_time, found.coordinator, -1)

    def aborted(self, path: Path, expected: list[AbortedEntry]) -> None:
        """The index of aborted transactions of one segment."""
        index = path.with_suffix(".txnindex")
        entries = files.aborted_index(index) if index.exists() else []
        if self.is_compacted or not self.is_whole:
            for entry in entries:
                is_in_order = entry.version == 0 and entry.first < entry.last
                self.ask("aborted index: an entry is in order (compacted)", is_in_order, index.name)
            return
        plain = [entry[:4] for entry in expected]
        place = f"{index.name} {entries} expected {expected}"
        if self.ask("aborted index = the aborts of its segment", [entry[:4] for entry in entries] == plain, place):
            for entry, other in zip(entries, expected, strict=True):
                is_stable = entry.stable == other.stable or (entry.stable >= other.first and self.partition.start > 0)
                self.ask("aborted index: stable offset", is_stable, f"{index.name} {entry} expected {other}")

    def compare(self, offset: int) -> None:
        """Ask whether a snapshot is the state; its producers are the state from there on."""
        saved = self.snapshots[offset].producers
        for number, entry in saved.items():
            mine = self.state.get(number)
            if mine is None:
                if not self.is_compacted:
                    self.ask("snapshot: its producers are in the log", not self.is_whole, f"{offset} {entry}")
            elif self.is_compacted:
                is_behind = entry.offset < offset and entry.open < offset
                self.ask("snapshot: not ahead of its offset (compacted)", is_behind, f"{offset} {entry}")
            else:
                for name in Producer._fields[1:]:
                    is_same = getattr(entry, name) == getattr(mine, name)
                    self.ask(f"snapshot = replay: {name}", is_same, f"{offset} {entry} replayed {mine}")
        for number, mine in self.state.items():
            if number not in saved:
                self.ask("a snapshot has every producer of the replay (expiry)", self.is_compacted, f"{offset} {mine}")
                is_closed = mine.open < 0 or self.is_compacted
                self.ask("an open transaction is in the snapshot", is_closed, f"{offset} {mine}")
        self.state = dict(saved)
