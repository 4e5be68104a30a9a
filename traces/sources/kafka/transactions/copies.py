"""Copies of partitions among the data directories of a check, and what each has of transactions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.files.directory import DataDirectory
from gapless.traces.sources.kafka.files.metadata import ClusterMetadata
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.judging.part_results import PartResult
from gapless.traces.sources.kafka.judging.parts import PartitionTerms, Role, SegmentPart
from gapless.traces.sources.kafka.judging.transaction_items import TransactionItems
from gapless.traces.sources.kafka.log.batches import Stop

if TYPE_CHECKING:
    from gapless.traces.sources.kafka.judging.cluster_evidence import ClusterEvidence
    from gapless.traces.sources.kafka.judging.offset_piece import OffsetPiece
    from gapless.traces.sources.kafka.judging.table_piece import TablePiece

LEADER = SPECS["partition"].scalars.index("epoch")


class PartitionPlace(NamedTuple):
    """A partition as it lies in a data directory. `cluster`: its metadata, None if they are not there."""

    name: PartitionName
    terms: PartitionTerms
    directory: DataDirectory
    cluster: ClusterMetadata | None


@dataclass
class PartitionCopy:
    """The evidence in one copy of a partition that is not laid down yet. `number`: of the copy, in its check.

    `is_read`: it is read to its end, and departs nowhere.
    """

    placed: PartitionPlace
    number: int = 0
    items: list[TransactionItems] = field(default_factory=list)
    rows: list[TablePiece] = field(default_factory=list)
    offsets: list[OffsetPiece] = field(default_factory=list)
    parts: list[SegmentPart] = field(default_factory=list)
    end: int = 0
    dense: int = 0
    leader: int = -1
    is_read: bool = True

    def add(self, result: PartResult) -> int:
        """Add the result of a part; returns how many rows, runs and markers that is."""
        if not self.parts or result.dense > self.end:
            self.dense = result.dense
        self.parts.append(result.part)
        self.end, self.leader = result.end, max(self.leader, int(result.partition.end[LEADER]))
        self.is_read = not result.part.closes or result.stop in (Stop.END, Stop.ZEROS)
        if result.items is not None:
            self.items.append(result.items)
        if result.table is not None:
            self.rows.append(result.table)
        if result.offsets is not None:
            self.offsets.append(result.offsets)
        columns = (
            result.items.first if result.items is not None else (),
            result.table.rows.id if result.table is not None else (),
            result.offsets.offsets.at if result.offsets is not None else (),
        )
        return sum(map(len, columns))

    def lay_down(self, evidence: ClusterEvidence) -> None:
        """Add what waits to the evidence of its cluster. Raises OSError."""
        of_groups = self.placed.terms.transactions == Role.GROUPS
        for items in self.items:
            evidence.add_items(self.number, items, of_groups=of_groups)
        for piece in self.rows:
            evidence.add_rows(self.number, piece)
        for offsets in self.offsets:
            evidence.add_offsets(self.number, offsets)

    @property
    def start(self) -> int:
        """The offset from which on nothing is gone: the cleaner was not there, or left everything."""
        terms = self.placed.terms
        return max(terms.start, terms.log_start, min(terms.judged_from, self.dense))

    def is_whole(self, stopped: Mapping[int, bool]) -> bool:
        """True if nothing is missing at the end: all replicas are there, and stopped in order."""
        terms, cluster = self.placed.terms, self.placed.cluster
        state = cluster.partitions.get(self.placed.name) if cluster else None
        every = state is not None and all(stopped.get(node, False) for node in state.replicas)
        return self.is_read and terms.is_whole and every

    @property
    def starts(self) -> Ints | None:
        """The times at which brokers started; None if they are not known."""
        cluster = self.placed.cluster
        is_known = cluster is not None and cluster.begins == 0 and not cluster.fault and len(cluster.starts) > 0
        return np.sort(np.array(cluster.starts, np.int64)) if cluster is not None and is_known else None

    @property
    def is_first(self) -> bool:
        """True if the log begins where its topic was created, once."""
        cluster, topic = self.placed.cluster, self.placed.name.topic
        if self.start > 0 or cluster is None or cluster.begins > 0 or cluster.fault or topic not in cluster.topics:
            return False
        return cluster.topics[topic].generations == 1
