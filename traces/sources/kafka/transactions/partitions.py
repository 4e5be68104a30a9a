"""The partitions of one cluster that its transactions are looked for in: one replica of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.judging.cluster_evidence import ITEM_BYTES, ClusterEvidence
from gapless.traces.sources.kafka.judging.parts import SegmentPart
from gapless.traces.sources.kafka.judging.transaction_items import DATA, TransactionItems, runs_of
from gapless.traces.sources.kafka.log.column_store import ColumnStore
from gapless.traces.sources.kafka.log.tables import Flags, each

NEVER = 1 << 62
"""A time that no record has."""
START = 2_000
"""Ms that a broker takes at least to start again when its power was lost."""


@dataclass(frozen=True, eq=False)
class Replica:
    """A replica of a partition that was read. `start`: records or markers below it may be gone.

    `is_whole`: it has all that its partition ever had at the end · `is_first`: it begins where its topic was created,
    and that was once · `slack`: ms by which clocks of its markers and of its coordinator may differ ·
    `starts`: the times at which brokers started, in order; None if they are not known · `first_mark`: the time of the
    first marker, or NEVER · `times`: reads those of all markers.
    """

    name: PartitionName
    parts: Sequence[SegmentPart]
    start: int
    end: int
    is_whole: bool
    is_first: bool
    slack: int
    starts: Ints | None
    first_mark: int
    times: Callable[[], Ints]

    @cached_property
    def mark_times(self) -> Ints:
        """The times of the markers, in their order. Raises OSError."""
        return np.sort(self.times())

    def may_lose(self, after: Ints, until: Ints) -> Flags:
        """True where a broker may have started between two times: what it wrote last may be lost with the power."""
        if self.starts is None:
            return until - after > START
        last = self.starts.searchsorted(until + self.slack, side="right") - 1
        return (last >= 0) & (self.starts[np.maximum(last, 0)] > after - self.slack)

    def surely(self, decided: Ints, items: TransactionItems) -> Ints:
        """Return those of some producers that are decided whose last marker must be here. `items`: all it has."""
        if not self.is_whole:
            return decided[:0]
        (runs,) = np.nonzero((items.kind == DATA) & np.isin(items.producer, decided))
        last = runs[np.append(items.producer[runs][1:] != items.producer[runs][:-1], True)[: len(runs)]]
        lost = self.may_lose(items.time[last], np.full(len(last), NEVER))
        found: Ints = items.producer[last[~lost]]
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


class ItemShares:
    """The runs and markers of a cluster, laid down by the shares in which transactional ids are judged."""

    def __init__(
        self, evidence: ClusterEvidence, parts: Mapping[int, int], starts: Sequence[int],
        shares: Sequence[tuple[int, int]], together: int,
    ) -> None:  # fmt: skip
        """`parts`: the number of the partition that a copy is of · `starts`: of each · `shares`: ranges of buckets."""
        self.evidence, self.parts, self.together = evidence, parts, together
        self.starts = np.array(starts, np.int64)
        self._first = np.full((2, len(starts)), NEVER, np.int64)  # the offset of the first marker, and its time
        self._kept = ColumnStore(ITEM_BYTES | {"part": 4}, "batches of transactions")
        producers, bucket = evidence.owners()
        share = np.array([high for _, high in shares], np.int64).searchsorted(bucket, side="right")
        for items, part in self._blocks() if shares else ():
            self._see(items, part)
            low, high = producers.searchsorted(items.producer), producers.searchsorted(items.producer, side="right")
            rows, of = each(high - low)
            self._kept.add(share[low[rows] + of], [*items.of(rows), part[rows]])

    def _blocks(self) -> Iterator[tuple[TransactionItems, Ints]]:
        """All runs and markers with the numbers of their partitions, about so many at a time, and by those."""
        for items, copy in self.evidence.item_blocks(self.together):
            part = numbers_of(copy, self.parts)
            order = np.lexsort((items.producer, part))
            order = order[int(part[order].searchsorted(0)) :]
            found, part = runs_of(items.of(order), part[order])
            (rows,) = np.nonzero(found.first >= self.starts[part])
            yield found.of(rows), part[rows]

    def _see(self, items: TransactionItems, part: Ints) -> None:
        """Take note of the first marker of each partition."""
        (marks,) = np.nonzero(items.kind != DATA)
        marks = marks[np.lexsort((items.first[marks], part[marks]))]
        parts, first = np.unique(part[marks], return_index=True)
        rows = marks[first]
        earlier = items.first[rows] < self._first[0, parts]
        self._first[:, parts[earlier]] = items.first[rows[earlier]], items.time[rows[earlier]]

    def first_mark(self, part: int) -> int:
        """Return the time of a partition's first marker, or NEVER."""
        return int(self._first[1, part]) if part >= 0 else NEVER

    def mark_times(self, part: int) -> Ints:
        """Return the times of all markers of a partition. Raises OSError."""
        found = (items.time[(items.kind != DATA) & (of == part)] for items, of in self._blocks())
        return np.concatenate([np.zeros(0, np.int64), *found])

    def of(self, share: int, producers: Ints, replicas: Sequence[Replica]) -> PartitionItems:
        """Return the runs and markers of some producers of a share. Raises OSError."""
        *columns, part = self._kept.of(share, share + 1)
        producer = columns[0]
        order = np.lexsort((producer, part))
        rows = order[np.isin(producer[order], producers, kind="sort")]
        return PartitionItems(part[rows], TransactionItems(*columns).of(rows), replicas)


def numbers_of(copy: Ints, numbers: Mapping[int, int]) -> Ints:
    """Return the numbers that copies have, or -1."""
    by_copy = np.full(max(numbers, default=0) + 1, -1, np.int64)
    for one, number in numbers.items():
        by_copy[one] = number
    return np.where(copy < len(by_copy), by_copy[np.minimum(copy, len(by_copy) - 1)], -1)
