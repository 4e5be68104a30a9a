"""Judges the transactions and groups of one cluster: picks one replica of each partition, and some ids at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.options import Options
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.joining.findings import LogFindings
from gapless.traces.sources.kafka.judging.cluster_evidence import ClusterEvidence
from gapless.traces.sources.kafka.judging.parts import Role
from gapless.traces.sources.kafka.judging.transaction_items import merged
from gapless.traces.sources.kafka.transactions.copies import PartitionCopy
from gapless.traces.sources.kafka.transactions.judge import IdJudge, TableReplica
from gapless.traces.sources.kafka.transactions.offset_judge import OffsetJudge, OffsetReplica
from gapless.traces.sources.kafka.transactions.partitions import ItemShares, Replica, numbers_of
from gapless.traces.sources.kafka.transactions.table import CoordinatorTable, codes_of
from gapless.traces.sources.kafka.transactions.traces import JudgedTraces

SKEW = 600_000
"""Ms by which the clocks of two brokers may differ."""


class ClusterJudge:
    """Judges one cluster. `together`: rows of the table that are judged at once, or nearly."""

    def __init__(
        self, found: LogFindings, options: Options, evidence: ClusterEvidence, copies: Sequence[PartitionCopy],
        together: int,
    ) -> None:  # fmt: skip
        self.found, self.options, self.evidence, self.together = found, options, evidence, together
        self.stopped: dict[int, bool] = {}
        for copy in copies:
            node, is_stopped = copy.placed.directory.node, copy.placed.directory.is_stopped
            self.stopped[node] = self.stopped.get(node, True) and is_stopped
        self.slack = 0 if len(self.stopped) == 1 and _is_alone(copies) else SKEW
        self.chosen = list(_chosen(copies))

    def judge(self, judged: JudgedTraces, *, exported: bool) -> None:
        """Judge all ids, and all groups. Raises OSError."""
        read = [one for one in self.chosen if one.placed.terms.transactions != Role.TABLE and one.start < one.end]
        shares = list(self.evidence.rows.ranges(self.together))
        items = ItemShares(
            self.evidence, {one.number: part for part, one in enumerate(read)}, [one.start for one in read], shares,
            self.together,
        )  # fmt: skip
        replicas = [self._replica(one, part, items) for part, one in enumerate(read)]
        decided = self._judge_ids(replicas, shares, items, judged, exported=exported)
        for one in self.chosen:
            if one.placed.terms.transactions == Role.GROUPS:
                found, piece = self.evidence.groups_of(one.number)
                found = merged(found)
                whole = self._replica(one, -1, items)
                offsets = OffsetReplica(one.placed.name, one.parts, one.start, found, piece)
                sure = whole.surely(decided, found)
                OffsetJudge(self.found, self.options, offsets, sure).judge(judged, exported=exported)

    def _replica(self, one: PartitionCopy, part: int, items: ItemShares) -> Replica:
        return Replica(
            one.placed.name, one.parts, one.start, one.end, one.is_whole(self.stopped),
            one.is_first, self.slack, one.starts, items.first_mark(part), partial(items.mark_times, part),
        )  # fmt: skip

    def _judge_ids(
        self, replicas: Sequence[Replica], shares: Sequence[tuple[int, int]], items: ItemShares, judged: JudgedTraces,
        *, exported: bool,
    ) -> Ints:  # fmt: skip
        """Judge the transactional ids, some at a time; returns the producers that have no open transaction."""
        copies = [one for one in self.chosen if one.placed.terms.transactions == Role.TABLE]
        tables = [TableReplica(one.placed.name, one.parts, one.is_whole(self.stopped), one.starts) for one in copies]
        whole = np.array([one.is_whole for one in tables], np.bool_)
        codes = codes_of(self.evidence.sets, {one.name: number for number, one in enumerate(replicas)})
        decided = [np.zeros(0, np.int64)]
        for share, (low, high) in enumerate(shares):
            rows, copy = self.evidence.rows_of(low, high)
            table = numbers_of(copy, {one.number: number for number, one in enumerate(copies)})
            (mine,) = np.nonzero(table >= 0)
            some = CoordinatorTable(rows.of(mine), table[mine], whole, self.evidence.names, codes)
            ids = IdJudge(self.found, self.options, replicas, tables, some)
            ids.judge(items.of(share, some.producers, replicas), judged, exported=exported)
            decided.append(some.decided)
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
