"""The table of the records of stores, for Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gapless.traces.events.event import utf8
from gapless.traces.problems import UsageError, shown
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.segments.splits import Columns, Split, SplitReader, splits
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory, store_folder
from gapless.traces.sources.rocketmq.store.opening import open_store
from gapless.traces.sources.tables import Spans, TablePart

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


def store_table(paths: Sequence[Path], split: int, expected: str) -> StoreTable:
    """Make the table of records of stores. Raises UsageError if one is none, Unreadable, NothingThere."""
    found = []
    for path in paths:
        folder = store_folder(path.absolute())
        if folder is None:
            raise UsageError(f"{shown(path)}: not {expected}")
        found.append((utf8(str(path)), replace(open_store(folder), queues={})))  # whose files are not looked at
    return StoreTable(tuple(found), split)


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
