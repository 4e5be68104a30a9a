"""The table of the batches of data directories, for Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from gapless.traces.events.event import utf8
from gapless.traces.problems import NothingThere, Unreadable, UsageError, shown
from gapless.traces.sources.kafka.files.directory import DataDirectory, SegmentFiles, data_directories, is_of_a_broker
from gapless.traces.sources.kafka.files.names import PartitionName, partition_name
from gapless.traces.sources.kafka.judging.parts import segment_cuts
from gapless.traces.sources.kafka.log.batches import Batches, chunks
from gapless.traces.sources.tables import Spans, TablePart

COLUMNS: list[pa.Field[Any]] = [
    pa.field("source", pa.string(), nullable=False),  # the data directory, as it was named
    pa.field("topic", pa.string(), nullable=False),
    pa.field("partition", pa.int64(), nullable=False),
    pa.field("segment", pa.int64(), nullable=False),  # the offset in the name of its file
    pa.field("position", pa.int64(), nullable=False),  # of the batch in that file
    pa.field("size", pa.int64(), nullable=False),  # bytes, with the head
    pa.field("first", pa.int64(), nullable=False),  # offset
    pa.field("last", pa.int64(), nullable=False),
    pa.field("records", pa.int64(), nullable=False),
    pa.field("whole", pa.bool_(), nullable=False),  # its checksum is right
    pa.field("codec", pa.string()),  # null where its number is none
    pa.field("leader_epoch", pa.int64(), nullable=False),
    pa.field("greatest_time", pa.int64(), nullable=False),  # ms since 1970
    pa.field("producer", pa.int64()),  # null without an idempotent producer
    pa.field("producer_epoch", pa.int64()),
    pa.field("sequence", pa.int64()),  # of its first record
    pa.field("transactional", pa.bool_(), nullable=False),
    pa.field("control", pa.bool_(), nullable=False),  # a marker, or a record of KRaft's own
    pa.field("marker", pa.string()),  # `commit` or `abort`
]
BATCHES = pa.schema(COLUMNS)
"""A row for each batch of every log."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MARKERS = ("abort", "commit")


@dataclass(frozen=True)
class LogTable:
    """The batches of data directories; each by the name that the user gave it."""

    directories: tuple[tuple[str, DataDirectory], ...]
    split: int
    columns: pa.Schema = BATCHES

    def parts(self, asked: frozenset[str]) -> Iterator[tuple[TablePart, Spans]]:
        """See `SparkTable`."""
        for name, directory in self.directories:
            for folder in directory.partitions():
                spans: Spans = {
                    "source": (name, name),
                    "topic": (utf8(folder.name.topic), utf8(folder.name.topic)),
                    "partition": (folder.name.number, folder.name.number),
                }
                spans = {column: span for column, span in spans.items() if column in asked}
                for segment in folder.files().segments:
                    for low, high in _ranges(segment, self.split):
                        yield TablePart(str(segment.log), low, high, high - low), spans

    def read(self, part: TablePart, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See `SparkTable`."""
        log = Path(part.path)
        name = next(name for name, directory in self.directories if directory.path == log.parent.parent)
        partition = partition_name(log.parent.name)
        assert partition is not None  # noqa: S101 - for the type checker: `parts` names no other
        high = log.stat().st_size if part.high is None else part.high
        try:
            for chunk in chunks(log, part.low, high):
                batch = _rows(name, partition, int(log.stem), chunk.batches)
                yield pa.RecordBatch.from_arrays(
                    [batch.column(field.name).cast(field.type) for field in columns], schema=columns
                )
        except OSError as problem:
            raise Unreadable(f"{shown(part.path)}: {problem.strerror or problem}: read a copy") from problem


def log_table(paths: Sequence[Path], split: int, expected: str) -> LogTable:
    """Make the table of data directories. Raises UsageError if one is none, NothingThere."""
    found: list[tuple[str, DataDirectory]] = []
    for path in paths:
        if not path.is_dir() or not is_of_a_broker(path.absolute()):
            raise UsageError(f"{shown(path)}: not {expected}")
        directories = data_directories(path.absolute())
        if not directories:
            raise NothingThere(f"{shown(path)}: no partition lies in it any more: expected folders like orders-0")
        found += ((utf8(_named(path, directory)), directory) for directory in directories)
    return LogTable(tuple(found), split)


def _named(path: Path, directory: DataDirectory) -> str:
    """The name of a data directory at a path or below it; that of a partition's folder is its own."""
    root = path.absolute()
    inside = directory.path.is_relative_to(root) and directory.path != root
    return str(path / directory.path.relative_to(root)) if inside else str(path)


def _ranges(segment: SegmentFiles, most: int) -> Iterator[tuple[int, int]]:
    """The stretches of a segment that are read by one task each."""
    cuts = [0, *(begin for begin, _, _ in segment_cuts(segment, most)), segment.size]
    return ((low, high) for low, high in pairwise(cuts) if high > low)


def _rows(source: str, name: PartitionName, segment: int, heads: Batches) -> pa.RecordBatch:
    """Make rows of `BATCHES` of the heads of batches."""
    count, without = len(heads), heads.producer < 0
    codecs, markers = heads.codec, heads.marker
    codec: pa.Int64Array = pa.array(codecs, pa.int64(), mask=codecs >= len(CODECS))
    marker: pa.Int64Array = pa.array(markers, pa.int64(), mask=(markers < 0) | (markers >= len(MARKERS)))
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(source, count),
            pa.repeat(utf8(name.topic), count),
            pa.repeat(pa.scalar(name.number, pa.int64()), count),
            pa.repeat(pa.scalar(segment, pa.int64()), count),
            *map(pa.array, (heads.position, heads.size, heads.base, heads.last, heads.count, heads.is_sound)),
            pa.array(CODECS, pa.string()).take(codec),
            *map(pa.array, (heads.leader_epoch, heads.max_time)),
            pa.array(heads.producer, mask=without),
            pa.array(heads.producer_epoch, mask=without),
            pa.array(heads.sequence, mask=without | (heads.sequence < 0)),
            *map(pa.array, (heads.is_transactional, heads.is_control)),
            pa.array(MARKERS, pa.string()).take(marker),
        ],
        schema=BATCHES,
    )
