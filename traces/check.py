"""One check: recordings in, one report out. It knows no source and no engine by name."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from gapless.native.objects.object_code import COMPILATIONS, compiling_seconds
from gapless.spec.catalog import PROFILES, SPECS, STRICT, Spec
from gapless.traces.engines import EngineName
from gapless.traces.engines import engine as engine_named
from gapless.traces.engines.engine import Engine, Progress
from gapless.traces.evidence import Evidence
from gapless.traces.files.file_times import newest_change
from gapless.traces.files.remote import path_of
from gapless.traces.files.scratch_folders import removed_at_the_end
from gapless.traces.inputs import Input, joined, named, once, unknown
from gapless.traces.options import DEPTHS, Depth, Options
from gapless.traces.problems import Gone, NothingThere, Unreadable, UsageError, os_problem, shown
from gapless.traces.replay.kernels import kernel
from gapless.traces.report import sections
from gapless.traces.report.parts import Parts
from gapless.traces.report.values import Counts, Report, SourceRow, VerdictName, worst
from gapless.traces.report.wording import plural
from gapless.traces.rules import judged, rules
from gapless.traces.sources.registry import sources
from gapless.traces.sources.source import Recording, SmallInput, Source, Together, together
from gapless.traces.specs import calling_file, loaded
from gapless.traces.suggestions import did_you_mean, one_of

if TYPE_CHECKING:  # few checks write a table, and pyarrow loads slowly
    from gapless.traces.report.outputs.verdict_table import Table, TableRows

Named = str | os.PathLike[str]
FEW = 16
TABLE_MODES = "error", "overwrite"
AGAIN = 3  # times that an input is opened again whose files go away while it is read

sources()  # a report that is read back has rows of theirs too


def check(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    profile: str | None = None,
    config: str | os.PathLike[str] | None = None,
    client: str | os.PathLike[str] | None = None,
    copied: bool = False,
    trace_topics: Sequence[str] = (),
    only_broker: bool = False,
    topic: str | None = None,
    trace: str | None = None,
    only: Sequence[str] = (),
    ignore: Sequence[str] = (),
    jobs: int | None = None,
    engine: EngineName = "auto",
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    split: int | None = None,
    depth: Depth | None = None,
    verdicts: str | os.PathLike[str] | None = None,
    verdicts_mode: str = "error",
    specs: Sequence[str | os.PathLike[str] | Spec] = (),
    progress: Progress | None = None,
) -> Report:
    """Check recordings against the specs, and report.

    `paths`: store directories, or folders that contain a `store/`, recordings of coordinators, files of events, here or
    at an address such as `s3://bucket/traces/` · `profile`: the broker whose deviations count as anomalies; default:
    chosen by the kind of source, or named in a file of events · `config`: a broker.conf, for settings that a store does
    not contain · `client`: a client log, for what producers were promised; without it, one next to a store is used ·
    `copied`: stores were copied file by file while their brokers ran, so files may be of different times ·
    `trace_topics`: topics that clients trace to, besides the default ones · `only_broker`: their clients have no other
    broker · `topic`: judge only this topic's queues · `trace`: judge only this trace, such as `commitlog` or
    TOPIC/QUEUE · `only`, `ignore`: rule ids, or a spec's name for all of its rules · `jobs`: processes, default: chosen
    by input size; with Spark, tasks that are started together · `engine`: who does the work; `auto` is `local` ·
    `master`: the Spark cluster; without it, the active session, or as Spark is set, or `local[*]` · `conf`: settings
    of a Spark session that is started, before Spark's own · `split`: bytes that one task reads · `depth`:
    `shallow` leaves records unread where a source can, `deep` reads them; default: by size · `verdicts`: a
    directory to make, here or at an address, for the verdict of every trace in Parquet files · `verdicts_mode`:
    `overwrite` replaces a table that is there, `error` refuses it · `specs`: files or modules with your own specs,
    to which events may belong. Raises UsageError, and EngineFailure where a cluster cannot do the work;
    what is wrong with an input is in the report.
    """
    return checked(
        paths,
        Evidence.of(config, client, copied=copied, trace_topics=trace_topics, only_broker=only_broker),
        options_of(
            profile=profile, topic=topic, trace=trace, only=only, ignore=ignore, split=split, depth=depth, specs=specs
        ),
        jobs=jobs,
        engine=engine,
        master=master,
        conf=conf,
        verdicts=verdicts,
        verdicts_mode=verdicts_mode,
        progress=progress,
    )


def checked(
    paths: Named | Sequence[Named],
    evidence: Evidence,
    options: Options,
    *,
    jobs: int | None = None,
    engine: EngineName = "auto",
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    verdicts: Named | None = None,
    verdicts_mode: str = "error",
    progress: Progress | None = None,
) -> Report:
    """Check recordings as `check` says, which makes these two values of its keywords."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if jobs is not None and jobs < 1:
        raise UsageError(f"jobs: {jobs}, expected at least 1")
    options = replace(options, listed=verdicts is not None)
    inputs = joined(once([one for path in paths for one in named(path_of(path))]))
    if evidence.client and sum(one.source is None or "client" in one.source.evidence for one in inputs) > 1:
        raise UsageError(
            "client: one client log is of one store; check stores one by one, or leave each log next to its own store"
        )
    with (
        removed_at_the_end(),
        _table(verdicts, verdicts_mode) as table,
        engine_named(engine, master=master, conf=conf, jobs=jobs, progress=progress) as runs,
    ):
        tasks = [InputCheck(one, options, runs.located(one.found)) for one in inputs]
        runs.look(_looked_at(tasks), [table.unfinished] if table else [])
        compiled = compiling_seconds()
        for each in tasks:
            each.prepare()
        began, compiled_before = time.perf_counter(), COMPILATIONS.own_seconds
        interrupted = _judge_together(tasks, runs, table)
        for number, each in enumerate(tasks):
            if each.is_done:
                continue
            if interrupted:  # one interrupt ends the whole check
                each.skip()
            else:
                each.run(evidence, runs, table.rows(f"{number:03d}") if table else None)
                interrupted = bool(each.interrupted)
        if table and interrupted:
            table.discard()
        taken = time.perf_counter() - began - (COMPILATIONS.own_seconds - compiled_before)
        return reported(tasks, runs.name, taken).model_copy(update={"compiling": compiling_seconds() - compiled})


def _judge_together(tasks: Sequence[InputCheck], engine: Engine, table: Table | None) -> bool:
    """Judge small inputs of each source together, as far as that can be done; True if an interrupt ended it."""
    small: dict[str, list[SmallInput]] = {}
    for number, task in enumerate(tasks):
        given = task.given
        if given.source is not None and given.bytes is not None:
            one = SmallInput(number, given.path, task.found, given.bytes)
            small.setdefault(given.source.kind, []).append(one)
    for kind, some in small.items():
        first = tasks[some[0].number]
        rows = table.rows(f"{kind}-together") if table else None
        engine.announce(f"check {plural(len(some), 'small input')}")
        many = together(first.given.source, some, first.options, rows)
        try:
            if many is not None:
                _settle(tasks, many, engine, rows)
        except KeyboardInterrupt:
            return True
    return False


def _settle(tasks: Sequence[InputCheck], many: Together, engine: Engine, rows: TableRows | None) -> None:
    """Judge some inputs together. If a worker ends meanwhile, all are left to be judged one by one."""
    settled = []
    try:
        for result in engine.each(many.task(engine), many.splits, [split.bytes for split in many.splits]):
            for number, parts in many.take(result):
                tasks[number].settle(parts)
                settled.append(number)
    except Unreadable:
        for number in settled:
            tasks[number].settle(None)
        if rows is not None:
            rows.forget()
    else:
        if rows is not None:
            _require_all(rows, many.listed)


def _require_all(table: TableRows, listed: int) -> None:
    """Raise UsageError if not all rows that were written into the verdict table can be read."""
    if table.count() != listed:
        raise UsageError(
            f"{shown(table.place)}: not all verdicts can be read there: Spark's workers write them, so it "
            "must be on a file system that all of them share with this machine"
        )


def _looked_at(tasks: Iterable[InputCheck]) -> list[Path]:
    """The inputs that a worker opens by their paths: the first few say as much as all."""
    return [task.found for task in tasks if task.given.source][:FEW]


def options_of(
    *,
    profile: str | None = None,
    topic: str | None = None,
    trace: str | None = None,
    only: Sequence[str] = (),
    ignore: Sequence[str] = (),
    split: int | None = None,
    depth: Depth | None = None,
    specs: Sequence[Named | Spec] = (),
) -> Options:
    """Return the options, as users and command lines name them; without a profile, each source has its own.

    Raises UsageError for options that make no sense.
    """
    if profile is not None and profile not in PROFILES:
        raise UsageError(no_such_profile(profile))
    if split is not None and split < 1:
        raise UsageError(f"split: {split}, expected at least 1 byte")
    if depth is not None and depth not in DEPTHS:
        raise UsageError(f"depth: {shown(depth)}, expected {one_of(DEPTHS)}")
    own = own_specs(specs)
    ignored = ignored_rules(only, ignore, own)
    return Options(
        profile=profile or "", topic=topic, trace=trace, ignored=ignored, split=split, depth=depth, specs=own
    )


def _table(folder: Named | None, mode: str) -> AbstractContextManager[Table | None]:
    """The verdict table, if one is wanted. Raises UsageError for a mode that does not exist."""
    if mode not in TABLE_MODES:
        raise UsageError(f"verdicts-mode: {shown(mode)}, expected {one_of(TABLE_MODES)}")
    if folder is None:
        return nullcontext()
    from gapless.traces.report.outputs import verdict_table  # noqa: PLC0415 - see above

    return verdict_table.written(path_of(folder), overwrite=mode == "overwrite")


def own_specs(specs: Sequence[Named | Spec]) -> tuple[Spec, ...]:
    """The specs that a user brings. Raises UsageError where one of them is none."""
    try:
        own = tuple(spec for spec in loaded(specs, calling_file()) if SPECS.get(spec.name) is not spec)
    except ValueError as error:
        raise UsageError(str(error)) from None
    for spec in own:
        try:
            kernel(spec)
        except Exception as error:
            raise UsageError(
                f"{spec.called}: cannot be read ({type(error).__name__}: {error}); prove it first"
            ) from error
    return own


def no_such_profile(name: str) -> str:
    """The sentence for a profile that there is not."""
    return f"no such profile: {shown(name)}, expected {one_of(PROFILES)}{did_you_mean(name, PROFILES)}"


def no_such_rule(name: str, ids: Collection[str]) -> str:
    """The sentence for a rule or a spec that there is not."""
    hint = did_you_mean(name, [*sorted(ids), *sorted({rule.partition("/")[0] for rule in ids})])
    return f"no such rule: {shown(name)}{hint or ' (gapless rules lists them)'}"


def ignored_rules(only: Sequence[str], ignore: Sequence[str], more: tuple[Spec, ...] = ()) -> frozenset[str]:
    """The ids of the rules that do not count. Raises UsageError for a rule that does not exist."""
    if not only and not ignore:
        return frozenset()
    everything = {rule.id for rule in rules(more)}

    def chosen(names: Sequence[str]) -> set[str]:
        found = set()
        for name in names:
            match = {rule for rule in everything if name in (rule, rule.partition("/")[0])}
            if not match:
                raise UsageError(no_such_rule(name, everything))
            found |= match
        return found

    return frozenset((everything - chosen(only) if only else set()) | chosen(ignore))


# -- one input -----------------------------------------------------------------------------------------------------


class InputCheck:
    """The check of one input, step by step. `found`: the path to open, as workers know it."""

    def __init__(self, given: Input, options: Options, found: Path | None = None) -> None:
        self.given = given
        self.found = found or given.found
        own = given.source.profile if given.source else ""
        self.options = replace(options, profile=options.profile or own)
        self.kind = given.source.kind if given.source else "unknown"
        self.parts = Parts()
        self.interrupted = ""
        self.is_done = False

    def settle(self, parts: Parts | None) -> None:
        """Take the result of the input, which was judged with others; None if it must be judged by itself."""
        self.parts, self.is_done = parts or Parts(), parts is not None

    @property
    def profile(self) -> str:
        """The profile by which it was judged; empty if none was named and it could not be read."""
        return self.parts.profile or self.options.profile

    def prepare(self) -> None:
        """Load what is needed for any input of this kind."""
        if self.given.source:
            self.given.source.prepare(self.found, self.options)

    def skip(self) -> None:
        """Skip the input: the check was interrupted."""
        self._nothing(interrupted="interrupted before it was read")

    def run(self, evidence: Evidence, engine: Engine, table: TableRows | None) -> None:
        """Judge the input; whatever goes wrong with it becomes its verdict. Raises UsageError."""
        given = self.given
        try:
            if given.source is None:
                verdict, reason = ("unreadable", given.problem) if given.problem else unknown(given.path)
                self._nothing(**{verdict: reason})
                return
            self._read(given.source, evidence, engine, table)
            if table is not None:
                self._write(table)
        except NothingThere as nothing:
            self._nothing(inconclusive=str(nothing))
        except Unreadable as problem:
            self._nothing(unreadable=self._as_given(str(problem)))
            if table is not None:
                table.forget()
        except KeyboardInterrupt:
            self.skip()
        except OSError as error:
            self._nothing(unreadable=self._as_given(os_problem(error)))

    def _as_given(self, problem: str) -> str:
        """Name the input as the user did: workers know it by its absolute path."""
        return as_given(problem.replace(str(self.found), str(self.given.found)), self.given.path, self.given.found)

    def _nothing(self, inconclusive: str = "", unreadable: str = "", interrupted: str = "") -> None:
        self.kind = "unknown"
        self.interrupted = interrupted
        self.parts = Parts(unreadable=unreadable, reasons=[inconclusive] if inconclusive else [])

    def _read(self, source: Source, evidence: Evidence, engine: Engine, table: TableRows | None) -> None:
        """Open and judge the input. Try again if files disappear: a running broker deletes its oldest."""
        for left in range(AGAIN, -1, -1):
            try:
                self._judge(source.open(self.given.path, self.found, self.options, evidence, table), engine)
            except (Gone, FileNotFoundError):
                if not left:
                    raise
                if table is not None:
                    table.forget()
            else:
                return

    def _judge(self, recording: Recording, engine: Engine) -> None:
        engine.announce(f"check {shown(self.given.path)}")
        task = recording.task(engine)
        splits = recording.splits
        sizes = [split.bytes for split in splits]
        done = 0
        try:
            for result, size in zip(engine.each(task, splits, sizes), sizes, strict=True):
                recording.take(result)
                done += size
            self.parts = recording.finish(engine)
        except KeyboardInterrupt:
            if not sizes:
                raise
            self.parts = recording.so_far()
            self.interrupted = f"interrupted after {done:,} of {sum(sizes):,} bytes"

    def _write(self, table: TableRows) -> None:
        """Complete the input's rows of the verdict table, and see that all are there."""
        listed = self.parts.listed + table.write("whole", self.parts.verdicts)
        if not self.interrupted:
            _require_all(table, listed)

    @property
    def source(self) -> SourceRow:
        """The input as it stands in the report, with its verdict."""
        parts = self.parts
        reasons = [parts.unreadable] if parts.unreadable else [self.interrupted, *parts.reasons, self._hollow()]
        reasons = [shown(reason) for reason in reasons if reason]
        verdict: VerdictName = "inconclusive" if reasons else "conforms"
        if parts.violations:
            verdict = "departs"
        elif parts.unreadable:
            verdict = "unreadable"
        return SourceRow(
            path=shown(self.given.path), kind=self.kind, bytes=parts.bytes, records=parts.records, clean=parts.clean,
            live=parts.live, moments=parts.moments, owner=parts.owner, newest=newest_change(self.given.path),
            verdict=verdict, reasons=reasons, notes=[shown(note) for note in self._notes()],
        )  # fmt: skip

    def judged(self) -> tuple[frozenset[str], dict[str, int]]:
        """Return the rules that were checked, and by spec the number of events that were.

        An event counts if at least one rule was checked at it.
        """
        checked, unchecked = judged(self.parts.coverage, self.options.ignored | self.parts.unread, self.options.specs)
        return checked | (self.parts.event_rules - self.options.ignored), {
            spec: count - unchecked.get(spec, 0) for spec, count in self.parts.events.items()
        }

    def _hollow(self) -> str:
        """The reason if no rule was exercised (a vacuous pass); empty otherwise."""
        if self.kind == "unknown" or self.parts.violations or self.parts.reasons or self.judged()[0]:
            return ""
        ignored = len(self.options.ignored)
        left = f"{plural(ignored, 'rule is', 'rules are')} ignored, and none of the others" if ignored else "no rule"
        return f"{left} is about anything that was read: nothing was judged"

    def _notes(self) -> Iterator[str]:
        yield from self.parts.notes
        if self.options.depth and not self.parts.depth and self.kind != "unknown":
            yield f"--depth {self.options.depth} changes nothing here: all of it is read"
        if self.given.note:
            yield self.given.note
        if self.options.ignored and self.kind != "unknown":
            ignored = sorted(self.options.ignored)
            first = ", ".join(ignored[:3]) + ", …" * (len(ignored) > 3)
            yield f"{plural(len(ignored), 'rule')} ignored: {first}"


def as_given(problem: str, path: Path, found: Path) -> str:
    """Remove our own temporary folder from a problem with standard input."""
    return problem if found == path or path in found.parents else problem.replace(str(found), found.name)


# -- what it comes to ----------------------------------------------------------------------------------------------


def reported(checks: Sequence[InputCheck], engine: str, seconds: float) -> Report:
    """The report of inputs that were judged."""
    parts, inputs = [one.parts for one in checks], [one.source for one in checks]
    judged_inputs = [one.judged() for one in checks]
    events = _added(counts for _, counts in judged_inputs)
    every = tuple({spec.name: spec for one in checks for spec in one.options.every_spec.values()}.values())
    coverage = {f"{spec.name}.{action}": 0 for spec in every for action in spec.actions}
    return Report(
        verdict=worst(row.verdict for row in inputs),
        profile=", ".join(dict.fromkeys(filter(None, map(attrgetter("profile"), checks)))) or STRICT,
        engine=engine,
        sources=inputs,
        counts=Counts(
            events=sum(events.values()),
            traces=sum(one.traces for one in parts),
            queues=sum(one.queues for one in parts),
            by_spec=events,
            rules=len(frozenset().union(*(ids for ids, _ in judged_inputs))),
        ),
        coverage=coverage | _added(one.coverage for one in parts),
        not_exercised=list(dict.fromkeys(line for one in parts for line in one.not_exercised)),
        anomalies=_added(one.anomalies for one in parts),
        findings=[finding for one in parts for finding in one.findings],
        findings_total=sum(one.violations for one in parts),
        life=[line for one in parts for line in one.life],
        marks=[mark for one in parts for mark in one.marks],
        parts=sections.together(one.rows for one in parts),
        seconds=seconds,
        interrupted=any(one.interrupted for one in checks),
    )


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts by name, added up."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(sorted(total.items()))
