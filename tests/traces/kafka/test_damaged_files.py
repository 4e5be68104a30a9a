"""Damaged files: no reader raises anything, takes long or much memory, whatever the bytes are.

By day some hundred files are damaged, at night ten thousand; the same ones every time.
"""

import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless.native import Native
from gapless.traces.sources.kafka.files.checkpoints import broker_epoch, epoch_checkpoint, offset_checkpoint
from gapless.traces.sources.kafka.files.directory import data_directories
from gapless.traces.sources.kafka.files.indexes import aborted_index, offset_index, time_index
from gapless.traces.sources.kafka.files.metadata import cluster_metadata
from gapless.traces.sources.kafka.files.snapshots import producer_snapshot
from gapless.traces.sources.kafka.log.batches import chunks
from gapless.traces.sources.kafka.log.checksums import checksum
from gapless.traces.sources.kafka.log.records import contents, records
from tests.support.kafka.directories import data_directory
from tests.support.night import NIGHT

COUNT = 10_000 if NIGHT else 150
MOST = 128 << 20
"""Bytes of memory."""

Damage = Callable[[random.Random, bytearray], None]


def one_byte(chance: random.Random, data: bytearray) -> None:
    """Change a byte."""
    data[chance.randrange(len(data))] = chance.randrange(256)


def a_number(chance: random.Random, data: bytearray) -> None:
    """Put an extreme number somewhere."""
    width = chance.choice([1, 2, 4, 8])
    value = chance.choice([0, -1, (1 << 8 * width - 1) - 1, -(1 << 8 * width - 1), 1])
    at = chance.randrange(len(data))
    data[at : at + width] = value.to_bytes(width, "big", signed=True)


def an_end(chance: random.Random, data: bytearray) -> None:
    """Cut the end."""
    del data[chance.randrange(len(data)) :]


def a_middle(chance: random.Random, data: bytearray) -> None:
    """Take out some bytes, or put some in twice."""
    at = chance.randrange(len(data))
    end = min(len(data), at + chance.randrange(1, 40))
    data[at:end] = data[at:end] * chance.choice([0, 2])


def zeros(chance: random.Random, data: bytearray) -> None:
    """Zeros up to the end."""
    at = chance.randrange(len(data))
    data[at:] = bytes(len(data) - at + chance.randrange(9000))


DAMAGES: tuple[Damage, ...] = (one_byte, a_number, an_end, a_middle, zeros)


def sealed(path: Path, data: bytearray) -> None:
    """Make the checksum right, so that what lies behind it is read."""
    if path.suffix in {".log", ".checkpoint"} and len(data) > 61:
        end = min(12 + int.from_bytes(data[8:12], "big"), len(data))
        data[17:21] = checksum(bytes(data[21:end])).to_bytes(4, "big")
    elif path.suffix == ".snapshot" and len(data) > 10:
        data[2:6] = checksum(bytes(data[6:])).to_bytes(4, "big")


def read_all(path: Path) -> None:
    """Read everything in a data directory."""
    for directory in data_directories(path):
        cluster_metadata(directory.path)
        broker_epoch(directory.path / ".kafka_cleanshutdown")
        for name in ("recovery-point", "replication", "log-start", "cleaner"):
            offset_checkpoint(directory.path / f"{name}-offset-checkpoint")
        for partition in directory.partitions():
            files = partition.files()
            if files.epochs is not None:
                epoch_checkpoint(files.epochs)
            for offset, snapshot in files.snapshots:
                producer_snapshot(snapshot, offset)
            for segment in files.segments:
                read_segment(segment.log)
                if segment.offset_index is not None:
                    offset_index(segment.offset_index, segment.base)
                if segment.time_index is not None:
                    time_index(segment.time_index, segment.base)
                if segment.aborted_index is not None:
                    aborted_index(segment.aborted_index)


def read_segment(log: Path) -> None:
    """Read all heads and records of a segment."""
    for chunk in chunks(log):
        assert len(contents(chunk)) == len(chunk.batches)
        assert chunk.batches.fits.shape == chunk.batches.last_sequence.shape
        for part in records(chunk):
            for number in range(min(len(part), 3)):
                part.key(number), part.value(number)


def test_no_reader_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Native, "few", -1)
    path = data_directory(tmp_path / "n1")
    read_all(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    chance = random.Random(46)
    tracemalloc.start()
    try:
        for _ in range(COUNT):
            file = chance.choice(files)
            whole = file.read_bytes()
            data = bytearray(whole or b"0")
            for _ in range(chance.randrange(1, 4)):
                if data:
                    chance.choice(DAMAGES)(chance, data)
            if chance.random() < 0.5:
                sealed(file, data)
            file.write_bytes(data)
            read_all(path)
            file.write_bytes(whole)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < MOST
