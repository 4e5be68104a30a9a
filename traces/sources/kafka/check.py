"""Checks data directories: opened partition by partition, judged part by part, joined in the order of their offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gapless.spec.catalog import END
from gapless.traces.engines.engine import Engine
from gapless.traces.evidence import Evidence
from gapless.traces.judging.building import STEPS
from gapless.traces.options import Depth, Options
from gapless.traces.problems import NothingThere, shown
from gapless.traces.replay.exact import Event
from gapless.traces.report.parts import Parts
from gapless.traces.sources.kafka.files import names
from gapless.traces.sources.kafka.files.checkpoints import EpochCheckpoint, epoch_checkpoint, offset_checkpoint
from gapless.traces.sources.kafka.files.directory import DataDirectory, PartitionFolder, data_directories
from gapless.traces.sources.kafka.files.metadata import ClusterMetadata, cluster_metadata
from gapless.traces.sources.kafka.files.names import METADATA_TOPIC, PartitionName
from gapless.traces.sources.kafka.joining.findings import LogFindings
from gapless.traces.sources.kafka.joining.life import ProducerLife
from gapless.traces.sources.kafka.joining.partition_judge import PartitionJudge
from gapless.traces.sources.kafka.judging.lost_snapshots import LostSnapshots, lost_snapshots
from gapless.traces.sources.kafka.judging.part_results import PartResult, judge_bundle, prepare
from gapless.traces.sources.kafka.judging.parts import (
    NONE,
    PART,
    TASK,
    Bundle,
    PartitionTerms,
    SegmentPart,
    bundles,
    parts_of,
)
from gapless.traces.sources.kafka.selection import includes_partition, wanted_producer
from gapless.traces.sources.kafka.summary import InputFacts, summary
from gapless.traces.sources.kafka.transactions.gathering import PartitionPlace, TransactionGatherer, role_of
from gapless.traces.sources.kafka.transactions.traces import JudgedTraces

if TYPE_CHECKING:
    from gapless.traces.sources.kafka.clients.answer_judge import AnswerJudge

DEEP = 4 << 30
"""Bytes of an input up to which records are read, unless a depth is asked for."""
PARTITION = STEPS["partition"]
NEVER = 1 << 62
"""An offset that no log has."""


class Checkpoints(NamedTuple):
    """The offsets of all partitions of one data directory, by kind of file."""

    recovery: dict[PartitionName, int]
    watermark: dict[PartitionName, int]
    start: dict[PartitionName, int]
    cleaner: dict[PartitionName, int]


class OpenPartition(NamedTuple):
    """A partition that is about to be judged, and what files of its directory say of it."""

    terms: PartitionTerms
    name: PartitionName
    checkpoints: Checkpoints
    is_alone: bool
    placed: PartitionPlace
    lost: LostSnapshots | None


@dataclass(frozen=True)
class PartTask:
    """Judges some parts."""

    options: Options

    def __call__(self, bundle: Bundle) -> list[PartResult]:
        """Judge them. Raises OSError."""
        return judge_bundle(bundle, self.options)


class LogCheck:
    """The check of the data directories at one path."""

    def __init__(
        self, path: Path, found: Path, options: Options, evidence: Evidence, *, listed: bool = False,
        exported: bool = False,
    ) -> None:  # fmt: skip
        self.path = path
        self.options = options
        self.found = LogFindings()
        self.directories = data_directories(found)
        if not self.directories:
            raise NothingThere(f"{shown(str(path))}: no partition lies in it any more: expected folders like orders-0")
        self.root = found
        self.listed = listed
        self.joints: list[tuple[str, str, int, Event]] | None = [] if exported or options.trace else None
        self.life = ProducerLife(options) if options.trace and not exported else None
        self.copied = evidence.copied
        self.answers = self._answers(evidence.client)
        self.partitions: list[OpenPartition] = []
        self.bytes = 0
        self.roles = cache(partial(role_of, self.directories, options))
        self.transactions = TransactionGatherer(self.found, options, exported=exported)
        parts = list(self._parts())
        self.depth: Depth = options.depth or ("deep" if self.bytes <= DEEP else "shallow")
        self.splits: Sequence[Bundle] = list(bundles(self._at_depth(parts), options.split or TASK))
        self.judge: PartitionJudge | None = None
        self.number = -1

    def _answers(self, client: Path | None) -> AnswerJudge | None:
        """The judge of the answers to clients. Raises Unreadable."""
        if client is None or self.options.trace is not None:
            return None
        from gapless.traces.sources.kafka.clients.answer_judge import AnswerJudge  # noqa: PLC0415 - pyarrow loads slowly
        from gapless.traces.sources.kafka.clients.client_log import client_log  # noqa: PLC0415 - see above

        return AnswerJudge(client_log(client), self.found, self.options)

    # -- opening -------------------------------------------------------------------------------------------------------

    def _parts(self) -> Iterator[SegmentPart]:
        """The parts of all partitions, in order; `partitions` gets a line for each."""
        metadata = self._metadata()
        self._doubt_twice()
        for directory in self.directories:
            checkpoints = self._checkpoints(directory)
            self._note_leaving(directory)
            cluster = metadata.get(directory.path) or next(iter(metadata.values()), None)
            for folder in directory.partitions():
                if includes_partition(self.options, self._trace(folder), folder.name.topic):
                    yield from self._opened(directory, folder, checkpoints, cluster)

    def _at_depth(self, parts: Sequence[SegmentPart]) -> Iterator[SegmentPart]:
        """The parts at the depth that is read: it may depend on the size of all."""
        deep = self.depth == "deep"
        self.partitions = [one._replace(terms=one.terms._replace(deep=deep)) for one in self.partitions]
        terms = {one.terms.name: one.terms for one in self.partitions}
        return (part._replace(terms=terms[part.terms.name]) for part in parts)

    def _metadata(self) -> dict[Path, ClusterMetadata]:
        found = ((directory.path, cluster_metadata(directory.path)) for directory in self.directories)
        return {path: metadata for path, metadata in found if metadata is not None}

    def _doubt_twice(self) -> None:
        """Doubts partitions that lie in two directories of one broker: it does not start with them."""
        seen: dict[tuple[str, int, PartitionName], Path] = {}
        for directory in self.directories if len(self.directories) > 1 else ():
            for folder in directory.partitions():
                before = seen.setdefault((directory.cluster, directory.node, folder.name), folder.path)
                if before != folder.path and directory.node >= 0:
                    self.found.doubt(
                        f"{folder.name} lies in {self._shown(before.parent)} and in {self._shown(directory.path)}, "
                        f"both of node {directory.node}: the broker does not start with both"
                    )

    def _checkpoints(self, directory: DataDirectory) -> Checkpoints:
        found = []
        for name in (names.RECOVERY, names.WATERMARK, names.LOG_START, names.CLEANER):
            kept = offset_checkpoint(directory.path / name)
            if kept is not None and kept.fault:
                self._doubt_checkpoint(directory.path / name, kept.fault)
            found.append(kept.offsets if kept else {})
        return Checkpoints(*found)

    def _doubt_checkpoint(self, path: Path, fault: str) -> None:
        self.found.doubt(f"{self._shown(path)} cannot be read as a whole, and a broker does not start with it: {fault}")

    def _leaders(self, path: Path | None) -> EpochCheckpoint | None:
        """The leader epochs; None if their file is missing, or damaged: then the batches have them."""
        kept = epoch_checkpoint(path) if path else None
        if path and kept and kept.fault:
            self._doubt_checkpoint(path, kept.fault)
            return None
        return kept

    def _note_leaving(self, directory: DataDirectory) -> None:
        for folder in directory.leaving() if directory.only is None else ():
            self.found.note(f"{self._shown(folder.path)} is not judged: {LEAVING[folder.suffix]}")

    def _opened(
        self, directory: DataDirectory, folder: PartitionFolder, checkpoints: Checkpoints,
        cluster: ClusterMetadata | None,
    ) -> Iterator[SegmentPart]:  # fmt: skip
        files, name = folder.files(), folder.name
        place = self._shown(folder.path)
        if files.swaps:
            self.found.doubt(f"{place} is not judged: a cleaner was about to put {files.swaps[0].name} in place")
            return
        if not files.segments:
            return
        for file in files.lone[:3]:
            self.found.note(f"{self._shown(file)} belongs to no segment, and is not used")
        is_stopped = directory.is_stopped and not self.copied
        leaders = self._leaders(files.epochs)
        compacted = cluster is None or cluster.may_be_compacted(name.topic) or name in checkpoints.cleaner
        terms = PartitionTerms(
            name=self._trace(folder),
            folder=place,
            start=files.segments[0].base,
            log_start=max(files.segments[0].base, checkpoints.start.get(name, 0)),
            compacted=compacted and name.topic != METADATA_TOPIC,
            checked=not name.topic.startswith("__"),
            is_whole=is_stopped and name.topic != METADATA_TOPIC,  # which is not closed
            recovered=checkpoints.recovery.get(name, 0),
            epochs=files.epochs if leaders else None,
            leaders=leaders,
            judged_from=self._judged_from(directory, checkpoints, name, compacted=compacted),
            cleaned=checkpoints.cleaner.get(name, 0),
            is_cleaned=is_stopped and cluster is not None and cluster.is_compacted(name.topic),
            deep=True,
            producer=wanted_producer(self.options, self._trace(folder)),
            transactions=self.roles(name.topic),
        )
        state = cluster.partitions.get(name) if cluster else None
        placed, is_alone = (
            PartitionPlace(name, terms, directory, cluster),
            state is not None and len(state.replicas) == 1,
        )
        lost = lost_snapshots(terms, files, is_stopped=is_stopped) if name.topic != METADATA_TOPIC else None
        self.partitions.append(OpenPartition(terms, name, checkpoints, is_alone, placed, lost))
        self.bytes += sum(segment.size for segment in files.segments)
        yield from parts_of(terms, files, self.options.split or PART)

    def _judged_from(
        self, directory: DataDirectory, checkpoints: Checkpoints, name: PartitionName, *, compacted: bool
    ) -> int:
        """The offset from which on no cleaner took anything away; beyond all offsets if that is not known."""
        if not compacted:
            return 0
        is_known = directory.is_stopped and not self.copied and name in checkpoints.cleaner
        return checkpoints.cleaner[name] if is_known else NEVER

    def _trace(self, folder: PartitionFolder) -> str:
        """The name of a partition's trace; with its directory, if there are several."""
        if len(self.directories) == 1:
            return str(folder.name)
        return self._shown(folder.path)

    def _shown(self, path: Path) -> str:
        inside = self.root.is_dir() and path.is_relative_to(self.root)
        found = path.relative_to(self.root) if inside else path.relative_to(self.root.parent)
        return shown(str(found)) if str(found) != "." else shown(path.name)

    # -- judging -------------------------------------------------------------------------------------------------------

    def task(self, engine: Engine) -> PartTask:  # noqa: ARG002 - as `Recording` says
        """Implements `Recording`."""
        prepare(self.options, self.bytes)
        return PartTask(self.options)

    def take(self, result: list[PartResult]) -> None:
        """Implements `Recording`."""
        for one in result:
            if one.part.is_first:
                self.close()
                self.number += 1
                while self.partitions[self.number].terms.name != one.part.terms.name:
                    self.number += 1
                self.judge = self._judge_of(self.partitions[self.number].terms)
                self.transactions.begin(self.partitions[self.number].placed)
            assert self.judge is not None  # noqa: S101 - for the type checker: each partition has a first part
            self.judge.add(one)
            self.transactions.add(one)
            if self.life is not None and one.part.terms.producer != NONE:
                self.life.add(self.judge.reporter, one, self.taken_joints())

    def close(self) -> None:
        """Judges the end of the partition that was joined last."""
        if self.judge is None:
            return
        opened, judge = self.partitions[self.number], self.judge
        judge.finish(self._last_events(opened, judge))
        kept = opened.checkpoints
        stated = (
            ("start", kept.start), ("clean up to", kept.cleaner), ("high watermark", kept.watermark),
            ("recovery point", kept.recovery),
        )  # fmt: skip
        judge.summary.points = {name: offsets[opened.name] for name, offsets in stated if opened.name in offsets}
        self.found.add(judge.summary)
        self.transactions.end(departs=judge.reporter.broken_at is not None)
        if opened.lost is not None and judge.reporter.broken_at is None:
            self.found.hazards.append(opened.lost)
        self.judge = None

    def _judge_of(self, terms: PartitionTerms) -> PartitionJudge:
        judge = PartitionJudge(terms, self.found, self.options, listed=self.listed)
        judge.reporter.joints = self.joints
        return judge

    def taken_joints(self) -> list[tuple[str, str, int, Event]]:
        """Returns the events so far that no part has, and forgets them; none unless they are exported."""
        taken, self.joints = self.joints or [], None if self.joints is None else []
        if self.judge is not None:
            self.judge.reporter.joints = self.joints
        return taken

    def _last_events(self, opened: OpenPartition, judge: PartitionJudge) -> list[Event]:
        """The contents of checkpoints about a partition, as events behind its last batch."""
        terms, kept, end = opened.terms, opened.checkpoints, judge.end
        recovery, watermark = kept.recovery.get(opened.name), kept.watermark.get(opened.name)
        start, cleaned = kept.start.get(opened.name, NONE), kept.cleaner.get(opened.name, NONE)
        events = []
        if recovery is not None and self._is_within(recovery, opened, "its recovery point", end):
            events.append(PARTITION.flush(to=max(recovery, terms.start)))
        at = end if watermark is None or not terms.is_whole else watermark
        events.append(PARTITION.raise_watermark(to=max(at, terms.start), undecided=judge.undecided))
        if start > terms.start and self._is_within(start, opened, "its start", end):
            events.append(PARTITION.delete(to=start))
        if cleaned > terms.start and self._is_within(cleaned, opened, "the cleaner's point", end):
            events.append(PARTITION.clean(to=cleaned, again=judge.repeated_key()))
        if terms.is_whole and opened.is_alone and recovery is not None and watermark is not None:
            events.append((END, ()))
        return events

    def _is_within(self, offset: int, opened: OpenPartition, what: str, end: int) -> bool:
        """True if a checkpoint may be judged: of a log that is not whole it may be younger, which is a doubt."""
        if opened.terms.is_whole or offset <= end:
            return True
        self.found.doubt(
            f"{opened.terms.name} ends at {end:,}, and {what} is {offset:,}: records are lost, as by a loss of power, "
            "or the log was copied before its checkpoint while a broker wrote it"
        )
        return False

    def finish(self, engine: Engine) -> Parts:  # noqa: ARG002 - as `Recording` says
        """Implements `Recording`."""
        return self.summarised()

    def judge_bundle(self, bundle: Bundle) -> list[PartResult]:
        """Judges some parts in this process. Raises OSError."""
        return judge_bundle(bundle, self.options)

    def summarised(self) -> Parts:
        """Returns the result of all parts."""
        self.close()
        ids = self.transactions.judged(answered=self.answers is not None)
        if self.answers is not None:
            self.answers.judge([one.placed for one in self.partitions], ids)
        if self.options.trace in ids.names:
            self.found.keep_only(self.options.trace)
        parts = summary(self._facts, self.found, ids)
        if self.life is not None and not parts.violations:
            parts.life = ids.life or self.life.lines()
        if self.listed:
            from gapless.traces.sources.kafka.verdict_rows import verdict_rows  # noqa: PLC0415 - pyarrow loads slowly

            parts.verdicts = verdict_rows(self.path, self.found, ids)
        return parts

    def so_far(self) -> Parts:
        """Implements `Recording`."""
        return summary(self._facts, self.found, JudgedTraces(), interrupted=True)

    @property
    def _facts(self) -> InputFacts:
        is_whole = not self.copied and all(directory.is_stopped for directory in self.directories)
        folders = (folder for directory in self.directories for folder in directory.partitions())
        names = sorted({self._trace(folder) for folder in folders} if not self.partitions else ())
        return InputFacts(self.path, self.options, self.bytes, is_whole, tuple(names), self.depth)


LEAVING = {
    "delete": "its topic was deleted",
    "future": "it is on its way from another directory",
    "stray": "the cluster does not know it",
}
"""Reasons for which folders are left alone, by their suffix."""
