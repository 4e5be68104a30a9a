"""Compare replicas of one recording: each is checked alone, then its source compares every slave with its master."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gapless.traces.check import check
from gapless.traces.engines.engine import Progress
from gapless.traces.problems import UsageError
from gapless.traces.sources.registry import comparing
from gapless.traces.sources.source import SideInputs
from gapless.traces.sources.verbs import ReplicaComparison

Named = str | os.PathLike[str]


def compare(
    master: Named,
    slaves: Sequence[Named],
    *,
    config: Named | None = None,
    copied: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> ReplicaComparison:
    """Compare slaves with their master.

    `master`, `slaves`: store directories, or folders that contain a `store/` · `config`: a broker.conf for all of them;
    without it, the one next to each · `copied`: all were copied file by file while their brokers ran · `jobs`: as of
    `check`.

    Each is checked alone first: that finds where its log and its queues end, and its own defects. Then bytes of logs,
    entries of queues and epochs are compared as far as both have them. Raises UsageError; what is wrong with an input
    is in what is returned.
    """
    if not slaves:
        raise UsageError("compare: nothing to compare the master with; name at least one slave")
    paths = [Path(path) for path in (master, *slaves)]
    replicas = comparing(paths).replicas(SideInputs(Path(config) if config else None, copied=copied))
    for path in paths:
        replicas.take(path, check(path, config=config, copied=copied, jobs=jobs, progress=progress))
    return replicas.compared()
