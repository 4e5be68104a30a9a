"""Compare replicas of one recording: each is checked alone, then its source compares every slave with its master."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gapless.traces.check import Named, checked
from gapless.traces.engines.engine import Progress
from gapless.traces.evidence import NO_EVIDENCE, Evidence
from gapless.traces.options import EVERYTHING
from gapless.traces.problems import UsageError
from gapless.traces.sources.registry import comparing
from gapless.traces.sources.verbs import ReplicaComparison


def compare(
    master: Named,
    slaves: Sequence[Named],
    evidence: Evidence = NO_EVIDENCE,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> ReplicaComparison:
    """Compare slaves with their master.

    `master`, `slaves`: store directories, or folders that contain a `store/` · `evidence`: of each of them; without a
    broker.conf, the one next to each is read · `jobs`: as of `check`.

    Each is checked alone first: that finds where its log and its queues end, and its own defects. Then bytes of logs,
    entries of queues and epochs are compared as far as both have them. Raises UsageError; what is wrong with an input
    is in what is returned.
    """
    if not slaves:
        raise UsageError("compare: nothing to compare the master with; name at least one slave")
    paths = [Path(path) for path in (master, *slaves)]
    replicas = comparing(paths).replicas(evidence)
    for path in paths:
        replicas.take(path, checked(path, evidence, EVERYTHING, jobs=jobs, progress=progress))
    return replicas.compared()
