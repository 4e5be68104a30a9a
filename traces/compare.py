"""Compare replicas of one store: each is checked alone, then every slave against its master."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gapless.traces.check import check
from gapless.traces.engines.engine import Progress
from gapless.traces.problems import Gone, NothingThere, Unreadable, UsageError, shown
from gapless.traces.report.values import Report, worst
from gapless.traces.sources.rocketmq.replicas.replica_pair import compare_pair
from gapless.traces.sources.rocketmq.replicas.side import Side
from gapless.traces.sources.rocketmq.replicas.values import Comparison, PairRow, ReplicaRow, Role
from gapless.traces.sources.rocketmq.store.directory import open_store, store_folder

Named = str | os.PathLike[str]
DECIDES = ("departs", "unreadable")
"""The profile of replicas: its checks of one replica alone do not decide, because the other may explain them."""


def compare(
    master: Named,
    slaves: Sequence[Named],
    *,
    config: Named | None = None,
    copied: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
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
    began = time.perf_counter()
    sides: list[Side | None] = []
    rows: list[ReplicaRow] = []
    interrupted = False
    for number, path in enumerate((master, *slaves)):
        report = check(path, config=config, copied=copied, jobs=jobs, progress=progress)
        interrupted = interrupted or report.interrupted
        side, row = _replica("slave" if number else "master", Path(path), config, report, copied=copied)
        sides.append(side)
        rows.append(row)
    both = list(zip(sides, rows, strict=True))
    pairs = [_pair(both[0], slave) for slave in both[1:] if not interrupted]
    return Comparison(
        verdict=worst([*(row.verdict for row in rows if row.verdict in DECIDES), *(pair.verdict for pair in pairs)]),
        replicas=rows,
        pairs=pairs,
        seconds=time.perf_counter() - began,
        interrupted=interrupted,
    )


def _replica(
    role: Role, path: Path, config: Named | None, report: Report, *, copied: bool
) -> tuple[Side | None, ReplicaRow]:
    """Return one replica as its check has it, and its row; no side if it cannot be read."""
    name, source = shown(path), report.sources[0]
    row = ReplicaRow(
        role=role,
        path=name,
        clean=source.clean,
        live=source.live,
        verdict=report.verdict,
        reasons=source.reasons,
        findings=[*report.violations, *report.hazards],
    )
    log = next((mark for mark in report.marks if mark.kind == "log"), None)
    folder = store_folder(path) if path.is_dir() else None
    if folder is None and source.kind != "unknown":
        reason = "not a RocketMQ store: expected a directory with commitlog/ and consumequeue/ in it, or in its store/"
        return None, row.model_copy(update={"verdict": "unreadable", "reasons": [reason], "findings": []})
    if folder is None or log is None or row.verdict == "unreadable":
        return None, row
    try:
        store = open_store(folder, Path(config) if config else None, copied=copied)
    except (Unreadable, NothingThere, OSError) as error:
        return None, row.model_copy(update={"verdict": "inconclusive", "reasons": [f"it changed meanwhile: {error}"]})
    ends = {(queue.topic, queue.queue): queue.indexed for queue in report.queues if queue.end_is_known}
    left = {(queue.topic, queue.queue) for queue in report.queues if queue.messages and not queue.indexed}
    side = Side(role, store, log.high, ends, frozenset() if source.clean or source.live else frozenset(left))
    return side, row.model_copy(update={"start": side.start, "end": side.end})


def _files(side: Side) -> set[tuple[int, int]]:
    """Identify the files of a log by device and inode: folders may be mounted twice, and files linked."""
    found = set()
    for file in side.store.files:
        with suppress(OSError):  # one that went meanwhile is missed when it is read
            stat = Path(file.path).stat()
            found.add((stat.st_dev, stat.st_ino))
    return found


def _pair(one: tuple[Side | None, ReplicaRow], other: tuple[Side | None, ReplicaRow]) -> PairRow:
    """Compare a slave with its master; with a running broker, differences are checked a second time."""
    (master, first), (slave, second) = one, other
    name = second.path
    if master is None or slave is None:
        who, row = ("it", second) if master is not None else ("its master", first)
        what = "cannot be read" if row.verdict == "unreadable" else "has no log to compare"
        return PairRow(slave=name, verdict="inconclusive", reasons=[f"not compared: {who} {what}"])
    if not _files(master).isdisjoint(_files(slave)):
        same = f"both read the same files, in {shown(Path(slave.store.files[0].path).parent)}: name two replicas"
        return PairRow(slave=name, verdict="inconclusive", reasons=[f"not compared: {same}"])
    try:
        pair = compare_pair(master, slave, name)
        if pair.verdict == "departs" and (master.store.live or slave.store.live):
            again = compare_pair(master, slave, name)
            if again.verdict != "departs" or again.fork != pair.fork or again.apart != pair.apart:
                reason = "something differed and does no longer: a broker was writing there; compare again, or copies"
                return again.model_copy(update={"verdict": "inconclusive", "reasons": [*again.reasons, reason]})
    except Gone as error:
        return PairRow(slave=name, verdict="inconclusive", reasons=[str(error)])
    except (Unreadable, OSError) as error:
        return PairRow(slave=name, verdict="unreadable", reasons=[str(error)])
    return pair
