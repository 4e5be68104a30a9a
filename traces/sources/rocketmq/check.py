"""Checks a store: opened with its client log and settings, judged split by split, joined in log order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from gapless.native import expecting
from gapless.traces.engines.engine import Engine
from gapless.traces.evidence import Evidence
from gapless.traces.options import Options
from gapless.traces.problems import NothingThere, Unreadable, shown, side_file_problem
from gapless.traces.report.parts import Parts
from gapless.traces.sources.rocketmq.blame.log import CHANGED
from gapless.traces.sources.rocketmq.blame.transactions import UNREADABLE
from gapless.traces.sources.rocketmq.clients import evidence
from gapless.traces.sources.rocketmq.clients.evidence import ClientEvidence
from gapless.traces.sources.rocketmq.clients.trace_topic_evidence import with_trace_topics
from gapless.traces.sources.rocketmq.joining.checkpoint import Checkpoint, restore
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.joining.log import StoreJudge
from gapless.traces.sources.rocketmq.log.alternative_ends import (
    AlternativeEnd,
    alternative_ends,
    has_new_departures,
)
from gapless.traces.sources.rocketmq.log.append_evidence import records_in
from gapless.traces.sources.rocketmq.segments import splits, tasks
from gapless.traces.sources.rocketmq.segments.results import SplitResult
from gapless.traces.sources.rocketmq.segments.splits import Split
from gapless.traces.sources.rocketmq.store.directory import (
    StoreDirectory,
    is_unchanged,
    neighbouring_client_log,
    renewed,
)
from gapless.traces.sources.rocketmq.store.opening import open_store
from gapless.traces.sources.rocketmq.store.selection import SOME_QUEUE, queue_named
from gapless.traces.sources.rocketmq.summary import summary


def opened(path: Path, folder: Path, options: Options, given: Evidence, *, listed: bool = False) -> StoreCheck:
    """Opens the check of the store in `folder`, with settings and client log. Raises Unreadable, NothingThere."""
    store = replace(
        open_store(folder, given.config, copied=given.copied),
        trace_topics=given.trace_topics,
        only_broker=given.only_broker,
    )
    found = _client_log(folder, given.client, path)
    with expecting(records_in(Path(file.path) for file in store.files)):
        clients = with_trace_topics(store, found.evidence, shown(str(path)))
    opened = StoreCheck(path, replace(store, notes=(*store.notes, *found.notes)), options, clients, listed=listed)
    if found.doubt:
        opened.judge.judged.blame(UNREADABLE, why=found.doubt)
    return opened


class ClientLogFile(NamedTuple):
    """The clients' evidence in a file, if it has any, and what the report says about that file."""

    evidence: ClientEvidence | None = None
    notes: tuple[str, ...] = ()
    doubt: str = ""


def _client_log(folder: Path, given: Path | None, path: Path) -> ClientLogFile:
    """Returns the clients' evidence; by default, of the log next to the store. Raises Unreadable for `given`.

    A log that was found and cannot be read is evidence that is missing: the store is judged without it.
    """
    found = given or neighbouring_client_log(folder)
    if found is None:
        return ClientLogFile()
    try:
        clients = evidence.read(found, str(path))
    except NothingThere as nothing:
        return ClientLogFile(notes=(f"{nothing}: it is not used",))
    except Unreadable as problem:
        if given:
            raise side_file_problem("client log", found, problem) from problem
        reason = str(side_file_problem("client log", found, problem)).partition(": unreadable: ")[2]
        return ClientLogFile(
            doubt=f"{found.name} next to the store is not used, so what clients were promised is not checked: {reason}"
        )
    notes = () if given else (f"clients' promises are read from {found.name}, next to the store",)
    return ClientLogFile(clients, notes)


@dataclass(frozen=True)
class Task:
    """Judges the splits of one store."""

    store: StoreDirectory
    options: Options
    evidence: ClientEvidence | None

    def __call__(self, split: Split) -> SplitResult:
        """Judge one split. Raises Unreadable."""
        return tasks.judge(self.store, split, self.options, self.evidence)


class StoreCheck:
    """The check of one store."""

    def __init__(
        self,
        path: Path,
        store: StoreDirectory,
        options: Options,
        clients: ClientEvidence | None = None,
        *,
        listed: bool = False,
        exported: bool = False,
        before: Checkpoint | None = None,
    ) -> None:
        """`before`: the saved judgement of the log's beginning, which is not read again.

        `whole`: its parts add up · `owned`: it is of the queue that was asked for · `sure`: its tag code is known ·
        `time`: when it was stored, in ms
        """
        self.path = path
        self.options = options
        self.listed = listed
        self.before = before
        begin = before.reached if before else 0
        self.splits: Sequence[Split] = list(splits.splits(store, options.split, begin))
        with expecting(records_in((Path(file.path) for file in store.files), begin)):
            tasks.prepare_more(store, options)
        self.judge = StoreJudge(store, options, clients, exported=exported)
        if before:
            restore(self.judge, before)
            self.judge.queues.find_files()

    def task(self, engine: Engine) -> Task:  # noqa: ARG002 - as `Recording` says
        """Implements `Recording`."""
        return Task(self.judge.store, self.options, self.judge.evidence)

    def take(self, result: SplitResult) -> None:
        """Implements `Recording`."""
        self.judge.add(result)

    def finish(self, engine: Engine) -> Parts:
        """Implements `Recording`; the log may end before all departures."""
        judged = self._settled(engine)
        parts = summary(self.path, judged, self.options)
        if self.listed:
            from gapless.traces.sources.rocketmq.verdict_rows import verdict_rows  # noqa: PLC0415 - pyarrow loads slowly

            parts.verdicts = verdict_rows(judged, str(self.path))
        return parts

    def whole(self, engine: Engine) -> StoreFindings:
        """Judge all of the store."""
        self._add_all(engine)
        return self._settled(engine)

    def _add_all(self, engine: Engine) -> None:
        for result in engine.each(self.task(engine), self.splits, [split.bytes for split in self.splits]):
            self.take(result)

    def _settled(self, engine: Engine) -> StoreFindings:
        """Joins all results, at whichever end of the log.

        A running broker may have been in the middle of a write when the store was opened. So departures of its store
        are read again, up to the same end of the log.
        """
        judged = self.judge.finish()
        if judged.store.moment and judged.breaches:
            judged = self._again(renewed(judged.store), judged, engine)
            _drop_changed(judged, judged.store.limit)
        for end in alternative_ends(judged):
            if any(found.position >= end.limit for found in judged.breaches):
                judged = self._up_to(end, judged, engine)
        return judged

    def so_far(self) -> Parts:
        """Implements `Recording`."""
        return summary(self.path, self.judge.judged, self.options, interrupted=True)

    def _again(self, store: StoreDirectory, judged: StoreFindings, engine: Engine) -> StoreFindings:
        """Judges the same store again, as `store` has it now."""
        before = self.before if self.before and self.before.reached <= store.limit else None
        again = StoreCheck(self.path, store, self.options, judged.evidence, exported=judged.exported, before=before)
        again._add_all(engine)
        return again.judge.finish()

    def _up_to(self, end: AlternativeEnd, judged: StoreFindings, engine: Engine) -> StoreFindings:
        """The same store judged as if its log ended elsewhere: kept if nothing departs then that does not anyhow."""
        store = judged.store
        shorter = self._again(replace(store, limit=end.limit), judged, engine)
        if store.moment:
            _drop_changed(shorter, store.limit)
        if has_new_departures(shorter, judged) or (
            store.clean and end.limit == judged.last_record and shorter.inconclusive
        ):
            return judged
        if end.doubt:
            shorter.doubt(end.doubt)
        shorter.note(f"the log ends at {shorter.end:,}; {end.why}")
        return shorter


def _drop_changed(judged: StoreFindings, limit: int) -> None:
    """Drops findings of queues that were deleted or created again while they were read.

    `limit`: the log's end.
    """
    of_queues = [found for found in judged.breaches if found.spec == "queue" and not found.trace.endswith(SOME_QUEUE)]
    for found in of_queues:
        later = found.action.startswith("index") and found.arguments["position"] >= limit
        if later or not is_unchanged(judged.store, queue_named(found.trace)):
            judged.breaches.remove(found)
            judged.blame(CHANGED, trace=found.trace)
