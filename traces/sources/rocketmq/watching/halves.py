"""Follows the table of halves: first the records that are its input, and now and then the table itself.

A broker deletes the row of a half when it comes to an op. So the table is compared with the log only after the log was
read beyond the end that it had when the table was read.

Source: docs/rocketmq-transactions.md#half-table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gapless.traces.sources.rocketmq.columns.disk_blocks import TableHalves
from gapless.traces.sources.rocketmq.layouts.half_table.judge import HalfCheckpoint, table_of
from gapless.traces.sources.rocketmq.layouts.half_table.records import TableOfHalves, half_records
from gapless.traces.sources.rocketmq.segments.results import Subject
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import TABLE_HALVES
from gapless.traces.sources.rocketmq.watching.tail import Tail


@dataclass(frozen=True)
class HalvesProgress:
    """The input of a table of halves, up to log position `at`."""

    at: int
    records: TableHalves = field(default_factory=TableHalves)


@dataclass(frozen=True)
class TableLook:
    """A table as it was when the log ended at `end`."""

    rows: TableOfHalves
    end: int


class HalfFollower:
    """Follows the halves of one store with a table of them."""

    def __init__(self, start: int, progress: HalvesProgress | None = None) -> None:
        """`start`: the log's begin · `progress`: the progress to continue from."""
        progress = progress or HalvesProgress(start)
        self.at, self.records = progress.at, progress.records.copy()
        self.table: TableLook | None = None

    def copy_progress(self) -> HalvesProgress:
        """Returns the progress, to continue from it."""
        return HalvesProgress(self.at, self.records.copy())

    def follow(self, store: StoreDirectory, reached: int, queues: Collection[Subject]) -> None:
        """Reads the new part of the log, which is judged up to `reached`. Raises Unreadable."""
        if TABLE_HALVES not in queues or self.at < store.start:
            self.at = max(self.at, store.start) if TABLE_HALVES in queues else reached
        if self.at < reached:
            records, _ = half_records(store, reached, self.at)
            self.records.add(np.stack(records))
            self.at = reached

    def known(self, store: StoreDirectory) -> HalfCheckpoint | None:
        """Returns the checkpoint for a check of `store`; None without a table of halves. Raises Unreadable."""
        if not self.records.columns:
            return None
        known = HalfCheckpoint(self.records, self.at)
        if not store.live:
            return known
        if self.table and self.table.end <= self.at:
            known, self.table = replace(known, rows=self.table.rows), None
        if self.table is None and not isinstance(rows := table_of(Path(store.path)), str):
            self.table = TableLook(rows, _end(store, self.at))
        return known


def _end(store: StoreDirectory, at: int) -> int:
    """The present end of the log."""
    tail, more = Tail(), True
    while more and (stretch := tail.stretch(store, at)):
        at, more = stretch.end, stretch.more
    return at
