"""Losses that Kafka permits: reasons for which a record that a client saw may be gone by right.

Source: docs/kafka-clients.md#losses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapless.traces.report.wording import plural
from gapless.traces.sources.kafka.transactions.gathering import PartitionPlace


def permitted_loss(copies: Sequence[PartitionPlace], *, by_all: bool) -> str:
    """The reason for which the last records of a partition may be lost, or others have their offsets; empty if none is.

    `by_all`: the answers are about records that every replica in sync had.
    """
    return next(_losses(copies, by_all=by_all), "")


def _losses(copies: Sequence[PartitionPlace], *, by_all: bool) -> Iterator[str]:
    cluster, name = copies[0].cluster, copies[0].name
    state = cluster.partitions.get(name) if cluster else None
    if cluster is None or state is None:
        yield "the cluster's metadata do not have the partition"
        return
    if not all(one.terms.is_whole for one in copies):
        yield "its broker did not stop in order, or wrote while it was copied"
    if state.was_recovering:
        yield "a leader was elected that lacked records"
    if absent := sorted(set(state.replicas) - {one.directory.node for one in copies}):
        yield f"its {plural(len(absent), 'replica')} on node {', '.join(map(str, absent))} is not among the directories"
    for node, count in cluster.started.items():
        if count > 1:
            yield f"node {node} started {count} times, and a loss of power takes what is not on disk"
    if len(state.replicas) > 1 and not by_all:
        yield "the answer does not say that all replicas in sync had the record (acks)"
