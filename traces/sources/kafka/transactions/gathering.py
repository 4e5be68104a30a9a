"""Gathers what partitions have of transactions while they are judged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gapless.traces.options import Options
from gapless.traces.sources.kafka.files.directory import DataDirectory
from gapless.traces.sources.kafka.files.names import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC
from gapless.traces.sources.kafka.joining.findings import LogFindings
from gapless.traces.sources.kafka.judging.part_results import PartResult
from gapless.traces.sources.kafka.judging.parts import Role
from gapless.traces.sources.kafka.selection import is_joined
from gapless.traces.sources.kafka.transactions.copies import PartitionCopy, PartitionPlace
from gapless.traces.sources.kafka.transactions.traces import JudgedTraces

if TYPE_CHECKING:
    from gapless.traces.sources.kafka.judging.cluster_evidence import ClusterEvidence

__all__ = ["PartitionCopy", "PartitionPlace", "TransactionGatherer", "role_of"]

TOGETHER = 1 << 19
"""Rows of the table that are judged together, or nearly, so that memory does not grow with their events."""
WAITING = 1 << 18
"""Rows, runs and markers that wait in memory; more are laid down."""


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


class TransactionGatherer:
    """Gathers the evidence of all partitions of a check, by clusters."""

    def __init__(self, found: LogFindings, options: Options, *, exported: bool = False) -> None:
        self.found, self.options, self.exported = found, options, exported
        self.copies: list[PartitionCopy] = []
        self._begun = self._waiting = 0
        self._laid_down: dict[str, ClusterEvidence] = {}

    def begin(self, placed: PartitionPlace) -> None:
        """Begin with another copy of a partition."""
        self.copies.append(PartitionCopy(placed, self._begun))
        self._begun += 1

    def add(self, result: PartResult) -> None:
        """Add the result of a part of it. Raises OSError."""
        if result.part.terms.transactions != Role.NONE:
            self._waiting += self.copies[-1].add(result)
            if self._waiting > WAITING:
                for copy in self.copies:
                    copy.lay_down(self._evidence(copy))
                    copy.items, copy.rows, copy.offsets = [], [], []
                self._waiting = 0

    def end(self, *, departs: bool) -> None:
        """End with it. `departs`: its log does."""
        if departs:
            self.copies.pop()

    def _evidence(self, copy: PartitionCopy) -> ClusterEvidence:
        from gapless.traces.sources.kafka.judging.cluster_evidence import ClusterEvidence  # noqa: PLC0415 - most inputs have no transactions

        cluster = copy.placed.directory.cluster
        if cluster not in self._laid_down:
            self._laid_down[cluster] = ClusterEvidence()
        return self._laid_down[cluster]

    def judged(self, *, answered: bool = False) -> JudgedTraces:
        """Judge the transactions of all clusters. `answered`: answers about groups follow. Raises OSError."""
        judged = JudgedTraces(groups=[] if answered else None)
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
        from gapless.traces.sources.kafka.transactions.cluster_judge import ClusterJudge  # noqa: PLC0415 - see above

        evidence = self._evidence(copies[0])
        del self._laid_down[copies[0].placed.directory.cluster]  # so that it is gone when it is judged
        for copy in copies:
            copy.lay_down(evidence)
        ClusterJudge(self.found, self.options, evidence, copies, TOGETHER).judge(judged, exported=self.exported)
