"""Replicas of a store, which are compared after a check of each alone."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from gapless.traces.evidence import Evidence
from gapless.traces.problems import Gone, NothingThere, Unreadable, shown
from gapless.traces.report.values import Report, worst
from gapless.traces.sources.rocketmq.replicas.comparison import Comparison
from gapless.traces.sources.rocketmq.replicas.replica_pair import compare_pair
from gapless.traces.sources.rocketmq.replicas.side import Side
from gapless.traces.sources.rocketmq.replicas.values import PairRow, ReplicaRow
from gapless.traces.sources.rocketmq.store.directory import store_folder
from gapless.traces.sources.rocketmq.store.opening import open_store

DECIDES = ("departs", "unreadable")
"""The profile of replicas: its checks of one replica alone do not decide, because the other may explain them."""


class StoreReplicas:
    """Implements `Replicas`: a master, and its slaves."""

    def __init__(self, evidence: Evidence) -> None:
        """`evidence`: of each replica. The time that is reported begins here."""
        self.evidence = evidence
        self.began = time.perf_counter()
        self.interrupted = False
        self.taken: list[tuple[Side | None, ReplicaRow]] = []

    def take(self, path: Path, report: Report) -> None:
        """Implements `Replicas`: opens the store at once, for a broker may be writing there."""
        self.interrupted = self.interrupted or report.interrupted
        self.taken.append(self._opened(path, report))

    def compared(self) -> Comparison:
        """Implements `Replicas`."""
        master, *slaves = self.taken
        rows = [row for _, row in self.taken]
        pairs = [_pair(master, slave) for slave in slaves if not self.interrupted]
        deciding = (row.verdict for row in rows if row.verdict in DECIDES)
        return Comparison(
            verdict=worst([*deciding, *(pair.verdict for pair in pairs)]),
            replicas=rows,
            pairs=pairs,
            seconds=time.perf_counter() - self.began,
            interrupted=self.interrupted,
        )

    def _opened(self, path: Path, report: Report) -> tuple[Side | None, ReplicaRow]:
        """Return one replica as its check has it, and its row; no side if it cannot be read."""
        name, source = shown(path), report.sources[0]
        row = ReplicaRow(
            role="slave" if self.taken else "master",
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
            reason = (
                "not a RocketMQ store: expected a directory with commitlog/ and consumequeue/ in it, or in its store/"
            )
            return None, row.model_copy(update={"verdict": "unreadable", "reasons": [reason], "findings": []})
        if folder is None or log is None or row.verdict == "unreadable":
            return None, row
        try:
            store = open_store(folder, self.evidence.config, copied=self.evidence.copied)
        except (Unreadable, NothingThere, OSError) as error:
            changed = [f"it changed meanwhile: {error}"]
            return None, row.model_copy(update={"verdict": "inconclusive", "reasons": changed})
        ends = {(queue.topic, queue.queue): queue.indexed for queue in report.queues if queue.end_is_known}
        left = {(queue.topic, queue.queue) for queue in report.queues if queue.messages and not queue.indexed}
        waiting = frozenset() if source.clean or source.live else frozenset(left)
        side = Side(row.role, store, log.high, ends, waiting)
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
