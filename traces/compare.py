"""Compare replicas of one recording: each is checked alone, then its source compares every slave with its master."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gapless.traces.check import Named, checked
from gapless.traces.engines.engine import Progress
from gapless.traces.evidence import NO_EVIDENCE, Evidence
from gapless.traces.options import EVERYTHING
from gapless.traces.problems import UsageError, pasted, shown
from gapless.traces.sources.registry import comparing, knows, recognised
from gapless.traces.sources.verbs import ComparingSource, ReplicaComparison


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
    source = comparing(paths)
    _refuse_others(source, paths)
    replicas = source.replicas(evidence)
    for path in paths:
        replicas.take(path, checked(path, evidence, EVERYTHING, jobs=jobs, progress=progress))
    return replicas.compared()


def _refuse_others(source: ComparingSource, paths: Sequence[Path]) -> None:
    """Refuse recordings of a kind without replicas. Raises UsageError."""
    if any(knows(source, path) for path in paths):
        return
    for path in paths:
        with suppress(OSError):
            known = recognised(path)
            if known is not None and not isinstance(known[0], ComparingSource):
                label = known[0].presentation.label
                raise UsageError(
                    f"{shown(path)}: a recording whose replicas are not compared ({label}): gapless check "
                    f"{pasted(path)} judges each by itself"
                )
