"""Follows the table of halves: first the records that are its input, and now and then the table itself.

A broker deletes the row of a half when it comes to an op. So the table is compared with the log only after the log was
read beyond the end that it had when the table was read.

Source: docs/rocketmq-transactions.md#half-table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.layouts.half_table.judge import HalfCheckpoint, table_of
from gapless.traces.sources.rocketmq.layouts.half_table.records import TableHalves, TableOfHalves, half_records
from gapless.traces.sources.rocketmq.layouts.layout import LayoutFollower
from gapless.traces.sources.rocketmq.layouts.message_database import FOLDER
from gapless.traces.sources.rocketmq.layouts.message_tables import MessageDatabase
from gapless.traces.sources.rocketmq.segments.results import Subject
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import TABLE_HALVES
from gapless.traces.sources.rocketmq.watching.tail import Tail


class TableLook(NamedTuple):
    """A table as it was when the log ended at `end`."""

    rows: TableOfHalves
    end: int


class HalfFollower(LayoutFollower):
    """Follows the halves of one store with a table of them."""

    def __init__(self, options: Options, start: int, saved: HalfCheckpoint | None = None) -> None:
        super().__init__(options, start, saved)
        saved = saved or HalfCheckpoint(TableHalves(), start)
        self.at, self.records = saved.reached, saved.records.copy()
        self.table: TableLook | None = None

    def snapshot(self) -> HalfCheckpoint:
        """Implements `LayoutFollower`."""
        return HalfCheckpoint(self.records.copy(), self.at)

    def follow(self, store: StoreDirectory, reached: int, queues: Collection[Subject]) -> bool:
        """Implements `LayoutFollower`: reads the new part of the log."""
        if TABLE_HALVES not in queues or self.at < store.start:
            self.at = max(self.at, store.start) if TABLE_HALVES in queues else reached
        if self.at < reached:
            records, _ = half_records(store, reached, self.at)
            self.records.add(np.stack(records))
            self.at = reached
        return False

    def known(self, store: StoreDirectory, reached: int) -> HalfCheckpoint | None:  # noqa: ARG002 - all that was read
        """Implements `LayoutFollower`: with the table of a running broker once the log was read beyond it."""
        if not self.records.columns:
            return None
        known = HalfCheckpoint(self.records, self.at)
        if not store.live:
            return known
        if self.table and self.table.end <= self.at:
            known, self.table = replace(known, rows=self.table.rows), None
        if self.table is None and not isinstance(rows := table_of(MessageDatabase(Path(store.path) / FOLDER)), str):
            self.table = TableLook(rows, _end(store, self.at))
        return known


def _end(store: StoreDirectory, at: int) -> int:
    """The present end of the log."""
    tail, more = Tail(), True
    while more and (stretch := tail.stretch(store, at)):
        at, more = stretch.end, stretch.more
    return at


FOLLOWER = HalfFollower
