"""Gathers what partitions have of transactions while they are judged, and picks one replica of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Ints
from gapless.traces.options import Options
from gapless.traces.sources.kafka.files.directory import DataDirectory
from gapless.traces.sources.kafka.files.metadata import ClusterMetadata
from gapless.traces.sources.kafka.files.names import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC, PartitionName
from gapless.traces.sources.kafka.joining.findings import LogFindings
from gapless.traces.sources.kafka.judging import offset_piece
from gapless.traces.sources.kafka.judging.offset_piece import OffsetPiece
from gapless.traces.sources.kafka.judging.part_results import PartResult
from gapless.traces.sources.kafka.judging.parts import PartitionTerms, Role, SegmentPart
from gapless.traces.sources.kafka.judging.table_piece import TablePiece, joined
from gapless.traces.sources.kafka.judging.transaction_items import TransactionItems, together
from gapless.traces.sources.kafka.log.batches import Stop
from gapless.traces.sources.kafka.selection import is_joined
from gapless.traces.sources.kafka.transactions.judge import IdJudge, JudgedTraces, TableReplica
from gapless.traces.sources.kafka.transactions.offset_judge import OffsetJudge, OffsetReplica
from gapless.traces.sources.kafka.transactions.partitions import Replica

LEADER = SPECS["partition"].scalars.index("epoch")
TOGETHER = 1 << 19
"""Rows of the table that are judged together, or nearly, so that memory does not grow with their events."""
SKEW = 600_000
"""Ms by which the clocks of two brokers may differ."""


def role_of(directories: Iterable[DataDirectory], options: Options, topic: str) -> Role:
    """The part of a topic's partitions in the check of transactions."""
    asked = options.topic is not None or (options.trace is not None and not is_joined(options.trace))
    if topic == METADATA_TOPIC or asked:
        return Role.NONE
    if topic == OFFSETS_TOPIC:
        return Role.GROUPS
    if not any(_has_table(one) for one in directories):
        return Role.NONE
    return Role.TABLE if topic == TRANSACTION_TOPIC else Role.PARTITION


def _has_table(directory: DataDirectory) -> bool:
    return directory.only is None and any(one.name.topic == TRANSACTION_TOPIC for one in directory.partitions())


class PartitionPlace(NamedTuple):
    """A partition as it lies in a data directory. `cluster`: its metadata, None if they are not there."""

    name: PartitionName
    terms: PartitionTerms
    directory: DataDirectory
    cluster: ClusterMetadata | None


@dataclass
class PartitionCopy:
    """The evidence in one copy of a partition. `is_read`: to its end, and it departs nowhere."""

    placed: PartitionPlace
    items: list[TransactionItems] = field(default_factory=list)
    rows: list[TablePiece] = field(default_factory=list)
    offsets: list[OffsetPiece] = field(default_factory=list)
    parts: list[SegmentPart] = field(default_factory=list)
    end: int = 0
    dense: int = 0
    leader: int = -1
    is_read: bool = True

    def add(self, result: PartResult) -> None:
        """Add the result of a part."""
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


class TransactionGatherer:
    """Gathers the evidence of all partitions of a check."""

    def __init__(self, found: LogFindings, options: Options, *, exported: bool = False) -> None:
        self.found, self.options, self.exported = found, options, exported
        self.copies: list[PartitionCopy] = []

    def begin(self, placed: PartitionPlace) -> None:
        """Begin with another copy of a partition."""
        self.copies.append(PartitionCopy(placed))

    def add(self, result: PartResult) -> None:
        """Add the result of a part of it."""
        if result.part.terms.transactions != Role.NONE:
            self.copies[-1].add(result)

    def end(self, *, departs: bool) -> None:
        """End with it. `departs`: its log does."""
        if departs:
            self.copies.pop()

    def judged(self) -> JudgedTraces:
        """Judge the transactions of all clusters."""
        judged = JudgedTraces()
        clusters: dict[str, list[PartitionCopy]] = {}
        for copy in self.copies:
            if copy.placed.terms.transactions != Role.NONE:
                clusters.setdefault(copy.placed.directory.cluster, []).append(copy)
        for copies in clusters.values():
            self._judge(copies, judged)
        return judged

    def _judge(self, copies: list[PartitionCopy], judged: JudgedTraces) -> None:
        places = [(copy.placed.directory.node, copy.placed.name) for copy in copies]
        if len(set(places)) < len(places):
            self.found.note("transactions are not judged: two copies of one node are among the directories")
            return
        stopped: dict[int, bool] = {}
        for copy in copies:
            node, is_stopped = copy.placed.directory.node, copy.placed.directory.is_stopped
            stopped[node] = stopped.get(node, True) and is_stopped
        chosen = list(_chosen(copies))
        slack = 0 if len(stopped) == 1 and _is_alone(copies) else SKEW
        every = [
            Replica(
                one.placed.name, one.placed.terms.folder, one.parts, one.start, one.end, one.is_whole(stopped),
                one.is_first, slack, one.starts, together(one.items),
            )
            for one in chosen if one.placed.terms.transactions != Role.TABLE
        ]  # fmt: skip
        replicas = [one for one in every if one.start < one.end]
        tables = [
            TableReplica(one.placed.name, one.placed.terms.folder, one.parts, one.is_whole(stopped), joined(one.rows))
            for one in chosen if one.rows
        ]  # fmt: skip
        decided = self._judge_ids(replicas, tables, judged)
        for one in chosen:
            if one.offsets:
                replica = next(replica for replica in every if replica.name == one.placed.name)
                offsets = OffsetReplica(
                    replica.name, replica.parts, replica.start, replica.items, offset_piece.joined(one.offsets)
                )
                OffsetJudge(self.found, self.options, offsets, replica.surely(decided)).judge(
                    judged, exported=self.exported
                )

    def _judge_ids(self, replicas: list[Replica], tables: list[TableReplica], judged: JudgedTraces) -> Ints:
        """Judge the transactional ids, some at a time; returns the producers that have no open transaction."""
        count = -(-sum(len(one.rows.rows.id) for one in tables) // TOGETHER)
        decided = [np.zeros(0, np.int64)]
        for number in range(count):
            some = [one._replace(rows=one.rows.share(number, count)) for one in tables]
            ids = IdJudge(self.found, self.options, replicas, some)
            ids.judge(judged, exported=self.exported)
            decided.append(ids.table.decided)
        return np.unique(np.concatenate(decided))


def _chosen(copies: Iterable[PartitionCopy]) -> Iterator[PartitionCopy]:
    """One replica of each partition: of the latest leader, and of those the longest."""
    by_name: dict[PartitionName, PartitionCopy] = {}
    for one in copies:
        other = by_name.get(one.placed.name)
        if other is None or (one.leader, one.end) > (other.leader, other.end):
            by_name[one.placed.name] = one
    return (by_name[name] for name in sorted(by_name))


def _is_alone(copies: Iterable[PartitionCopy]) -> bool:
    """True if the cluster has one broker."""
    states = (state for one in copies if one.placed.cluster for state in one.placed.cluster.partitions.values())
    return len({node for state in states for node in state.replicas}) == 1
