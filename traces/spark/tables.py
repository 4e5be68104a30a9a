"""Tables that Spark can read: their columns, and the parts that are read by one task each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from gapless.spec.catalog import Spec
from gapless.traces.check import own_specs
from gapless.traces.events import reading
from gapless.traces.events.event import utf8
from gapless.traces.events.reading import EventStretch
from gapless.traces.events.schema import EventSchema, with_specs
from gapless.traces.inputs import named
from gapless.traces.problems import UsageError, shown
from gapless.traces.remote import path_of
from gapless.traces.sources.rocketmq.segments.splits import Columns, Split, SplitReader, splits
from gapless.traces.sources.rocketmq.source import SOURCE
from gapless.traces.sources.rocketmq.store import scan
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory, open_store, store_folder
from gapless.traces.spark.conditions import Spans

STRETCH = 16 << 20  # bytes that one task reads
TOGETHER = 64  # small parts at most that one task reads: each is a file to open


class TablePart(NamedTuple):
    """A part that is read as a whole: the file, its range, and its bytes; an end of None is the file's end."""

    path: str
    low: int
    high: int | None
    bytes: int


def in_tasks(parts: Iterable[TablePart], size: int) -> Iterator[list[TablePart]]:
    """Group the parts, in order, to tasks of `size` bytes: to start a task takes longer than to read a part."""
    task: list[TablePart] = []
    room = size
    for part in parts:
        cost = max(part.bytes, size // TOGETHER)
        if task and cost > room:
            yield task
            task, room = [], size
        task.append(part)
        room -= cost
    if task:
        yield task


class SparkTable(Protocol):
    """The table; it travels to the workers."""

    @property
    def columns(self) -> pa.Schema:
        """All columns that it has."""

    @property
    def split(self) -> int:
        """The bytes that one task reads."""

    def parts(self, asked: frozenset[str]) -> Iterator[tuple[TablePart, Spans]]:
        """Yield the parts in order, with statistics of the columns `asked` for. Raises Unreadable."""

    def read(self, part: TablePart, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part, with these columns. Raises Unreadable."""


@dataclass(frozen=True)
class EventTable:
    """Events of files; `specs`: those that a user brings."""

    paths: tuple[Path, ...]
    specs: tuple[Spec, ...]
    split: int

    @property
    def events(self) -> EventSchema:
        """The events that may occur."""
        return with_specs(self.specs)

    @property
    def columns(self) -> pa.Schema:
        """See `SparkTable`."""
        return self.events.columns.remove_metadata()

    def parts(self, asked: frozenset[str]) -> Iterator[tuple[TablePart, Spans]]:
        """See `SparkTable`."""
        for path in self.paths:
            for stretch in reading.stretches(path, self.split):
                part = TablePart(str(path), stretch.low, stretch.high, stretch.bytes)
                yield part, reading.spans(path, stretch, asked)

    def read(self, part: TablePart, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See `SparkTable`."""
        stretch = EventStretch(0, part.low, part.high, part.bytes, first=False, last=False)
        return reading.selected(path_of(part.path), columns, stretch, self.events)


def event_table(paths: Sequence[Path], specs: Sequence[str] = (), split: int | None = None) -> EventTable:
    """Make the table of event files, of folders of them, and of patterns. Raises UsageError if there are none."""
    own = own_specs(specs)
    inputs = [one for path in paths for one in named(path.absolute())]
    for one in inputs:
        if one.source is None or one.source.kind != "event-trace":
            raise UsageError(f"{shown(one.path)}: no file of events, and no folder of such")
    return EventTable(tuple(one.found for one in inputs), own, split or STRETCH)


# -- stores --------------------------------------------------------------------------------------------------------

COLUMNS: list[pa.Field[Any]] = [
    pa.field("source", pa.string(), nullable=False),  # the store, as it was named
    pa.field("position", pa.int64(), nullable=False),  # of the record in the commit log
    pa.field("size", pa.int64(), nullable=False),  # bytes
    pa.field("stored", pa.int64(), nullable=False),  # ms since 1970, by the broker's clock
    pa.field("whole", pa.bool_(), nullable=False),  # its position, its lengths and its checksums are right
    pa.field("topic", pa.string()),  # null where the record is in no queue
    pa.field("queue", pa.int64()),
    pa.field("number", pa.int64()),  # in its queue
    pa.field("count", pa.int64()),  # of messages: more than one for an inner batch
    pa.field("tag", pa.int64()),  # the code that its entry is to have
]
RECORDS = pa.schema(COLUMNS)
"""A row for each record of the commit log, and for each queue that it is in."""


@dataclass(frozen=True)
class StoreTable:
    """Records of stores; each by the name that the user gave it."""

    stores: tuple[tuple[str, StoreDirectory], ...]
    split: int
    columns: pa.Schema = RECORDS

    def parts(self, asked: frozenset[str]) -> Iterator[tuple[TablePart, Spans]]:  # noqa: ARG002 - as `SparkTable` says
        """See `SparkTable`."""
        for _, store in self.stores:
            for split in splits(store, self.split):
                base = split.file.base
                yield (
                    TablePart(split.file.path, split.low, split.high, split.bytes),
                    {"position": (base + split.low, base + split.high - 1)},
                )

    def read(self, part: TablePart, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See `SparkTable`."""
        name, store, file = next(
            (name, store, file) for name, store in self.stores for file in store.files if file.path == part.path
        )
        split = Split(file, part.low, file.length if part.high is None else part.high, exact=part.low == 0)
        for scanned in SplitReader(store, split).segments():
            batch = _records(name, scanned.columns)
            yield pa.RecordBatch.from_arrays(
                [batch.column(field.name).cast(field.type) for field in columns], schema=columns
            )


def store_table(paths: Sequence[Path], split: int | None = None) -> StoreTable:
    """Make the table of records of stores. Raises UsageError if one is none, Unreadable, NothingThere."""
    found = []
    for path in paths:
        folder = store_folder(path.absolute())
        if folder is None:
            raise UsageError(f"{shown(path)}: not {SOURCE.expected_folder}")
        found.append((utf8(str(path)), replace(open_store(folder), queues={})))  # whose files are not looked at
    return StoreTable(tuple(found), split or STRETCH)


def _records(source: str, found: Columns) -> pa.RecordBatch:
    """Read the records of one segment as rows of `RECORDS`."""
    log, rows = found.log, found.rows
    at = np.searchsorted(log[scan.POSITION], rows[scan.PLACE])
    nowhere = np.setdiff1d(np.arange(log.shape[1]), at)
    order = np.argsort(np.concatenate([at, nowhere]), kind="stable")
    record = np.concatenate([at, nowhere])[order]
    row = np.concatenate([np.arange(len(at)), np.full(len(nowhere), -1)])[order]
    whole = log[[scan.KNOWN, scan.FITS, scan.INTACT, scan.SEALED]].all(axis=0)
    whole &= log[scan.CLAIMED] == log[scan.POSITION]

    def of_row(number: int) -> Any:
        column = rows[number][row] if len(at) else np.zeros(len(row), np.int64)
        return pa.array(column, mask=row < 0)

    subjects = found.subjects()
    subject = of_row(scan.SUBJECT)
    topics = pa.array([utf8(topic) for topic, _ in subjects], pa.string())
    queues = pa.array([queue for _, queue in subjects], pa.int64())
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(source, len(record)),
            *(pa.array(log[number][record]) for number in (scan.POSITION, scan.SIZE, scan.TIME)),
            pa.array(whole[record]),
            topics.take(subject),
            queues.take(subject),
            *(of_row(number) for number in (scan.NUMBER, scan.COUNT, scan.TAG)),
        ],
        schema=RECORDS,
    )
