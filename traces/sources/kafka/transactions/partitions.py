"""The partitions of one cluster that its transactions are looked for in: one replica of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.judging.parts import SegmentPart
from gapless.traces.sources.kafka.judging.transaction_items import DATA, TransactionItems, together
from gapless.traces.sources.kafka.log.tables import Flags

NEVER = 1 << 62
"""A time that no record has."""
START = 2_000
"""Ms that a broker takes at least to start again when its power was lost."""


@dataclass(frozen=True, eq=False)
class Replica:
    """A replica of a partition that was read. `items`: from `start` on, below which records or markers may be gone.

    `is_whole`: it has all that its partition ever had at the end · `is_first`: it begins where its topic was created,
    and that was once · `slack`: ms by which clocks of its markers and of its coordinator may differ ·
    `starts`: the times at which brokers started, in order; None if they are not known.
    """

    name: PartitionName
    folder: str
    parts: Sequence[SegmentPart]
    start: int
    end: int
    is_whole: bool
    is_first: bool
    slack: int
    starts: Ints | None
    items: TransactionItems

    @cached_property
    def marks(self) -> Ints:
        """The markers among the items, in the order of their offsets."""
        (rows,) = np.nonzero((self.items.kind != DATA) & (self.items.first >= self.start))
        return rows[np.argsort(self.items.first[rows], kind="stable")]

    @cached_property
    def first_mark(self) -> int:
        """The time of the first marker, or NEVER."""
        return int(self.items.time[self.marks[0]]) if len(self.marks) else NEVER

    @cached_property
    def mark_times(self) -> Ints:
        """The times of the markers, in their order."""
        return np.sort(self.items.time[self.marks])

    def may_lose(self, after: Ints, until: Ints) -> Flags:
        """True where a broker may have started between two times: what it wrote last may be lost with the power."""
        if self.starts is None:
            return until - after > START
        last = self.starts.searchsorted(until + self.slack, side="right") - 1
        return (last >= 0) & (self.starts[np.maximum(last, 0)] > after - self.slack)

    def surely(self, decided: Ints) -> Ints:
        """Return those of some producers that are decided whose last marker must be here."""
        if not self.is_whole:
            return decided[:0]
        (runs,) = np.nonzero((self.items.kind == DATA) & np.isin(self.items.producer, decided))
        last = runs[np.append(self.items.producer[runs][1:] != self.items.producer[runs][:-1], True)[: len(runs)]]
        lost = self.may_lose(self.items.time[last], np.full(len(last), NEVER))
        found: Ints = self.items.producer[last[~lost]]
        return found


class PartitionItems(NamedTuple):
    """The runs and markers of all partitions, by partition, producer and offset. `part`: the partition's number."""

    part: Ints
    items: TransactionItems
    replicas: Sequence[Replica]

    @property
    def is_mark(self) -> Flags:
        """True for markers."""
        found: Flags = self.items.kind != DATA
        return found

    def whole(self) -> Flags:
        """True for partitions of which nothing is missing at the end."""
        return np.array([one.is_whole for one in self.replicas], np.bool_)

    def first_marks(self) -> Ints:
        """Return of each partition the time behind which each decision has its marker there, or NEVER."""
        return np.array([one.first_mark + one.slack for one in self.replicas], np.int64)

    @classmethod
    def of(cls, replicas: Sequence[Replica], producers: Ints) -> PartitionItems:
        """Put the items of some producers together."""
        kept, parts = [], []
        for number, one in enumerate(replicas):
            rows = _rows_of(one.items.producer, producers)
            rows = rows[one.items.first[rows] >= one.start]
            kept.append(one.items.of(rows))
            parts.append(np.full(len(rows), number, np.int64))
        if not kept:
            return cls(np.zeros(0, np.int64), together([]), replicas)
        items = TransactionItems(*(np.concatenate(columns) for columns in zip(*kept, strict=True)))
        return cls(np.concatenate(parts), items, replicas)


def _rows_of(column: Ints, values: Ints) -> Ints:
    """The rows with some values in a column that is in order."""
    low, high = column.searchsorted(values), column.searchsorted(values, side="right")
    counts = high - low
    begins = np.cumsum(counts) - counts
    found: Ints = np.arange(int(counts.sum())) + np.repeat(low - begins, counts)
    return found
