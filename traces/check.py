"""Sources in, one report out. And the local engine: splits judged in this process, or by a pool of processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

from gapless.spec.catalog import PROFILES, SPECS, rule_id
from gapless.traces.options import Options
from gapless.traces.parts import Parts, Progress, is_event_file, recording_folder
from gapless.traces.problems import NothingThere, Unreadable, UsageError, shown
from gapless.traces.report.values import (
    Counts,
    Finding,
    Mark,
    QueueRow,
    Report,
    Source,
    Transactions,
    VerdictName,
    Where,
    worst,
)
from gapless.traces.rules import Rule, rules
from gapless.traces.sources.rocketmq import places, splits
from gapless.traces.sources.rocketmq.clients import evidence
from gapless.traces.sources.rocketmq.clients.evidence import Evidence
from gapless.traces.sources.rocketmq.clients.promises import OF_CLIENTS
from gapless.traces.sources.rocketmq.found import COMMIT_LOG, Found, Judged
from gapless.traces.sources.rocketmq.log import Judge
from gapless.traces.sources.rocketmq.splits import Result, Split
from gapless.traces.sources.rocketmq.store import scan
from gapless.traces.sources.rocketmq.store.layout import Store, client_log_beside, open_store, store_folder

if TYPE_CHECKING:  # stores are checked without loading pyarrow
    from gapless.traces.judging import event_traces
    from gapless.traces.report.verdict_table import Table

EngineName = Literal["auto", "local", "spark"]
Item = TypeVar("Item")
Answer = TypeVar("Answer")
ENGINES: tuple[EngineName, ...] = get_args(EngineName)

ONE_PROCESS = 48 << 20  # bytes: below this a pool costs more than it gives
AHEAD = 4  # splits per process that may wait to be joined: bounds memory
QUEUE_ROWS = 2000  # rows of the per-queue table; the widest first beyond that
PROFILE_OF_STORES = "rocketmq"
TRACES = 5  # traces named in a cluster of findings


def check(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    profile: str | None = None,
    config: str | os.PathLike[str] | None = None,
    client: str | os.PathLike[str] | None = None,
    topic: str | None = None,
    trace: str | None = None,
    only: Sequence[str] = (),
    ignore: Sequence[str] = (),
    jobs: int | None = None,
    engine: EngineName = "auto",
    master: str | None = None,
    split: int | None = None,
    verdicts: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Hold stores against the specs, and report.

    `paths`: store directories, or folders that hold a `store/`, recordings of coordinators, files of events ·
    `profile`: whose deviations count as anomalies; by default those of the broker that a source is of ·
    `config`: a broker.conf, for what a store does not say · `client`: a client log, for what producers were promised;
    without them, those beside a store are used · `topic`: judge only this topic's queues · `trace`: judge
    only this trace, `commitlog` or TOPIC/QUEUE · `only`, `ignore`: rule ids, or a spec's name for all of its rules ·
    `jobs`: processes, by default as many as pay; with Spark, tasks that are started together · `engine`: who does the
    work, `auto` being `local` · `master`: the Spark cluster; without it, the session that is active, or `local[*]` ·
    `split`: bytes that one task reads · `verdicts`: a directory to be made, with the verdict of every trace in Parquet
    files. Raises UsageError; what is wrong with an input is in the report.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if profile is not None and profile not in PROFILES:
        raise UsageError(f"no such profile: {shown(profile)} ({', '.join(PROFILES)})")
    if jobs is not None and jobs < 1:
        raise UsageError(f"jobs: {jobs}, expected at least 1")
    if client is not None and sum(not is_event_file(Path(path)) for path in paths) > 1:
        raise UsageError(
            "client: one client log is of one store; check stores one by one, or leave each log beside its own"
        )
    if split is not None and split < 1:
        raise UsageError(f"split: {split}, expected at least 1 byte")
    options = Options(
        profile=profile or PROFILE_OF_STORES,
        topic=topic,
        trace=trace,
        ignored=ignored_rules(only, ignore),
        listed=verdicts is not None,
        split=split,
    )
    beside = Beside(Path(config) if config else None, Path(client) if client else None)
    with _table(verdicts) as table, _engine(engine, master, jobs, progress) as run:
        splits.load_kernels(options)
        began = time.perf_counter()
        profiles: dict[str, None] = {}
        parts: list[Parts] = []
        for number, path in enumerate(run.located(Path(path)) for path in paths):
            mine = replace(options, profile=profile or default_profile(path))
            if parts and parts[-1].interrupted:  # one interrupt ends the whole check
                parts.append(_unread(path))
            else:
                parts.append(_check_one(path, beside, mine, run, _part(table, number)))
            profiles[mine.profile] = None
        if table and parts and parts[-1].interrupted:
            table.discard()
        return _report(parts, ", ".join(profiles) or options.profile, run.name, time.perf_counter() - began)


def default_profile(path: Path) -> str:
    """Whose deviations are known ways of the broker that wrote this."""
    try:
        return PROFILE_OF_STORES if recording_folder(path) is None else "pulsar"
    except OSError:  # whoever reads it will say so
        return PROFILE_OF_STORES


def _table(folder: str | os.PathLike[str] | None) -> AbstractContextManager[Table | None]:
    """The verdict table, if one is wanted. Raises UsageError where it cannot be written."""
    if folder is None:
        return nullcontext()
    from gapless.traces.report import verdict_table  # noqa: PLC0415 - see above

    if refusal := verdict_table.refusal(Path(folder)):
        raise UsageError(refusal)
    return verdict_table.written(Path(folder))


def _part(table: Table | None, number: int) -> tuple[Path, str] | None:
    """Where the verdicts of one source are written, and by which name."""
    return (table.unfinished, f"{number:03d}") if table else None


def ignored_rules(only: Sequence[str], ignore: Sequence[str]) -> frozenset[str]:
    """The sentences of the rules that do not count. Raises UsageError for a rule that does not exist."""
    known = {rule.id: rule for rule in rules()}

    def chosen(names: Sequence[str]) -> set[str]:
        found = set()
        for name in names:
            match = {rule.because for rule in known.values() if name in (rule.id, rule.spec)}
            if not match:
                raise UsageError(f"no such rule: {shown(name)} (gapless rules lists them)")
            found |= match
        return found

    everything = {rule.because for rule in known.values()}
    return frozenset((everything - chosen(only) if only else set()) | chosen(ignore))


@dataclass(frozen=True)
class Beside:
    """What is given beside a store."""

    config: Path | None = None
    client: Path | None = None


def _check_one(  # noqa: PLR0911 - one for every way it can end
    path: Path, beside: Beside, options: Options, engine: Engine, table: tuple[Path, str] | None
) -> Parts:
    try:
        if recording := recording_folder(path):
            return _check_recording(recording, options, engine, table)
        if is_event_file(path) and path.is_file():
            return _check_events(path, options, engine, table)
        folder = store_folder(path)
        if folder is None:
            return _no_store(path)
        store = open_store(folder, beside.config)
        said, notes = _evidence(folder, beside.client, path)
        store = replace(store, notes=(*store.notes, *notes))
        return _check_store(path, store, said, options, engine, table)
    except NothingThere as nothing:
        return _nothing(path, "inconclusive", str(nothing))
    except Unreadable as problem:
        return _nothing(path, "unreadable", str(problem))
    except KeyboardInterrupt:
        return _unread(path)
    except BrokenProcessPool:
        return _nothing(path, "unreadable", "a worker process ended unexpectedly (out of memory?); try --jobs 1")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _nothing(path, "unreadable", f"{where}{error.strerror}")


def _evidence(folder: Path, given: Path | None, path: Path) -> tuple[Evidence | None, list[str]]:
    """What clients say, and what a reader should know of it. A log beside the store is used if none is given."""
    found = given or client_log_beside(folder)
    if found is None:
        return None, []
    try:
        said = evidence.read(found, str(path))
    except NothingThere as nothing:
        return None, [f"{nothing}: it is not used"]
    return said, [] if given else [f"what clients were promised from {found.name} beside the store"]


def _check_store(
    path: Path, store: Store, said: Evidence | None, options: Options, engine: Engine, table: tuple[Path, str] | None
) -> Parts:
    splits.load_more_kernels(store, options)
    judged, interrupted = judged_store(store, options, engine, said)
    if table is not None:
        from gapless.traces.report import verdict_table  # noqa: PLC0415 - see above
        from gapless.traces.sources.rocketmq.verdict_rows import verdict_rows  # noqa: PLC0415

        verdict_table.write(table[0], f"{table[1]}-store", verdict_rows(judged, str(path)))
    return _parts(path, judged, interrupted, options)


def _check_events(path: Path, options: Options, engine: Engine, table: tuple[Path, str] | None) -> Parts:
    from gapless.traces.judging.event_traces import check_events  # noqa: PLC0415
    from gapless.traces.report import verdict_table  # noqa: PLC0415 - see above

    try:
        parts = check_events(
            path, options, trace=options.trace, engine=engine.events(), progress=engine.progress, table=table
        )
    except Unreadable:
        if table is not None:
            verdict_table.forget(*table)
        raise
    if table is not None and not parts.interrupted and verdict_table.rows_of(*table) != parts.listed:
        raise UsageError(
            f"{shown(table[0].parent)}: not all verdicts can be read there: Spark's workers write them, so it must be "
            "on a file system that all of them share with this machine"
        )
    return parts


def _check_recording(path: Path, options: Options, engine: Engine, table: tuple[Path, str] | None) -> Parts:
    from gapless.traces.sources.pulsar.judge import check_recording  # noqa: PLC0415 - see above

    return check_recording(path, options, progress=engine.progress, table=table)


def _no_store(path: Path) -> Parts:
    if not path.exists():
        return _nothing(path, "unreadable", "no such file or directory")
    if path.is_dir() and not any(path.iterdir()):
        return _nothing(path, "inconclusive", "the directory is empty: nothing was checked")
    if path.is_dir():
        return _nothing(
            path,
            "unreadable",
            "not a RocketMQ store: there is no commitlog/ in it, nor in a store/ below it; nor a recording of a Pulsar "
            "coordinator: there is no trace.ndjson",
        )
    return _nothing(
        path, "unreadable", "not a directory: a RocketMQ store is one, with commitlog/ and consumequeue/ in it"
    )


def _nothing(path: Path, verdict: VerdictName, reason: str) -> Parts:
    return Parts(Source(path=shown(path), kind="unknown", verdict=verdict, reasons=[shown(reason)]))


def _unread(path: Path) -> Parts:
    return replace(_nothing(path, "inconclusive", "interrupted before it was read"), interrupted=True)


# -- the engine ----------------------------------------------------------------------------------------------------


class Engine(Protocol):
    """Who runs the tasks: processes of this machine, or a cluster."""

    @property
    def name(self) -> str:
        """As it stands in reports."""

    @property
    def progress(self) -> Progress | None:
        """Who wants to know how far it is."""

    def located(self, path: Path) -> Path:
        """The path as those know it who read it."""

    def results(self, store: Store, options: Options, said: Evidence | None) -> Iterator[Result]:
        """Every split of a store judged, in log order. Raises Unreadable."""

    def events(self) -> event_traces.Engine:
        """The same, for files of events."""


@dataclass(frozen=True)
class Local:
    """This process, or a pool of `jobs` processes."""

    jobs: int | None = None
    progress: Progress | None = None
    name: str = "local"

    def located(self, path: Path) -> Path:
        """As `Engine` says."""
        return path

    def results(self, store: Store, options: Options, said: Evidence | None) -> Iterator[Result]:
        """As `Engine` says."""
        return results(store, options, self.jobs, said)

    def events(self) -> event_traces.Engine:
        """As `Engine` says."""
        from gapless.traces.judging.event_traces import Here  # noqa: PLC0415 - see above

        return Here(partial(_each, self.jobs))


def _engine(
    name: EngineName, master: str | None, jobs: int | None, progress: Progress | None
) -> AbstractContextManager[Engine]:
    """The engine of that name. Raises UsageError where there is none, or where it cannot be started."""
    if name not in ENGINES:
        raise UsageError(f"no such engine: {shown(name)} ({', '.join(ENGINES)})")
    if name != "spark":
        if master is not None:
            raise UsageError(f"master: {shown(master)} is a Spark cluster, and the engine is not spark")
        return nullcontext(Local(jobs, progress))
    from gapless.traces.engines.spark import started  # noqa: PLC0415 - few need Spark, and not all have it

    return started(master, jobs, progress)


def results(store: Store, options: Options, jobs: int | None, said: Evidence | None = None) -> Iterator[Result]:
    """Every split judged, in log order, by `jobs` processes."""
    wanted = list(splits.splits(store, options.split))
    return _each(jobs, partial(_judged, store, options, said), wanted, sum(split.high - split.low for split in wanted))


def _judged(store: Store, options: Options, said: Evidence | None, split: Split) -> Result:
    return splits.judge(store, split, options, said)


def _each(jobs: int | None, judge: Callable[[Item], Answer], items: Sequence[Item], size: int) -> Iterator[Answer]:
    """A task for every item, `size` bytes in all, by `jobs` processes or as many as pay; the answers in order."""
    wanted = min(jobs or os.cpu_count() or 1, len(items))
    if wanted < 2 or (jobs is None and size < ONE_PROCESS):
        return map(judge, items)
    return _by_pool(judge, items, wanted)


def _by_pool(judge: Callable[[Item], Answer], items: Sequence[Item], jobs: int) -> Iterator[Answer]:
    pool = ProcessPoolExecutor(jobs, _context(), _begin, (judge,))
    waiting: deque[Future[Answer]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(_work, item))
            if len(waiting) >= AHEAD * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _context() -> multiprocessing.context.BaseContext:
    """A forked worker has the kernels already; a process with threads of its own starts fresh ones instead."""
    alone = len(sys._current_frames()) == 1  # noqa: SLF001 - documented, and counts Python's threads
    return multiprocessing.get_context("fork" if alone and hasattr(os, "fork") else "spawn")


def _begin(judge: Callable[[Any], Any]) -> None:
    """Begin a worker of a pool: it has one task, which may carry much, and interrupts are the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _task.append(judge)


_task: list[Callable[[Any], Any]] = []  # of this process, if it is a worker


def _work(item: Any) -> Any:
    return _task[-1](item)


def judged_store(store: Store, options: Options, engine: Engine, said: Evidence | None = None) -> tuple[Judged, str]:
    """Judge a whole store; and what interrupted that, if something did: then what was judged so far."""
    splits.forget_listings()
    judge = Judge(store, options, said)
    total = sum(split.high - split.low for split in splits.splits(store))
    done = 0
    try:
        for result in engine.results(store, options, said):
            judge.take(result)
            done += result.bytes
            if engine.progress:
                engine.progress(done, total)
        judged = judge.finish()
        for limit, why in _other_ends(judged):
            if judged.found and all(found.position >= limit for found in judged.found):
                judged = _up_to(limit, why, judged, options, engine)
    except KeyboardInterrupt:
        return judge.judged, f"interrupted after {done:,} of {total:,} bytes"
    return judged, ""


def _other_ends(judged: Judged) -> Iterator[tuple[int, str]]:
    """Where else the log may end, if all that departs lies behind: nobody can be accused of what comes after that.

    Behind the last record of a clean log may lie the bytes of an old one, that no entry names. A last record may be
    torn by a crash, which may show in its tag code too, for that is read from its end. And a log whose end was
    truncated, and written again up to just where an old record begins, steps back in time there and never catches up.
    """
    last_is_refused = any(found.spec == "log" and found.position == judged.last_record for found in judged.found)
    if judged.store.clean and last_is_refused:
        yield judged.last_record, "what lies behind is no record of it"
    torn = all(found.spec == "log" or "tag code" in found.because for found in judged.found)
    if torn and not judged.store.clean and judged.last_record >= 0:
        yield judged.last_record, "the last record is torn: the broker drops it at its next start"
    if judged.stepped_back >= 0 and judged.ends_in_the_past:
        yield judged.stepped_back, "the records behind that are old bytes of an earlier truncation"


def _up_to(limit: int, why: str, judged: Judged, options: Options, engine: Engine) -> Judged:
    """The same store judged as if its log ended at `limit`: kept if nothing departs then."""
    judge = Judge(replace(judged.store, limit=limit), options, judged.evidence)
    for result in engine.results(judge.store, options, judged.evidence):
        judge.take(result)
    shorter = judge.finish()
    if shorter.found or (shorter.inconclusive and limit == judged.last_record and judged.store.clean):
        return judged
    shorter.note(f"the log ends at {shorter.end:,}; {why}")
    return shorter


# -- what it comes to ----------------------------------------------------------------------------------------------


def _parts(path: Path, judged: Judged, interrupted: str, options: Options) -> Parts:
    store = judged.store
    clusters: dict[tuple[str, str], list[Found]] = {}
    for found in sorted(judged.found, key=lambda f: (f.position, f.trace)):
        clusters.setdefault((found.spec, found.because), []).append(found)
    source = shown(path)
    how = f" --profile {options.profile}" if options.profile != "rocketmq" else ""
    findings = [
        places.finding(
            judged, group[0], source=str(path), how=how,
            count=len(group) + judged.untold.get((spec, because), 0),
            traces=list(dict.fromkeys(f.trace for f in group))[:TRACES],
        )
        for (spec, because), group in clusters.items()
    ]  # fmt: skip
    findings.extend(_anomaly(judged, source, name, *what) for name, what in sorted(judged.anomalies.items()))
    notes = [*store.notes, *judged.notes]
    if options.ignored:
        ignored = sorted(rule.id for rule in rules() if rule.because in options.ignored)
        some = ", ".join(ignored[:3]) + ", …" * (len(ignored) > 3)
        notes.append(f"{len(ignored)} rule{'s' * (len(ignored) > 1)} ignored: {some}")
    reasons = [interrupted] if interrupted else [*_vacuous(judged, options), *judged.inconclusive]
    violations = any(f.severity == "violation" for f in findings)
    unreadable = not interrupted and not judged.records and not violations and _is_garbage(store)
    if unreadable:
        reasons = ["the log files hold no record of a RocketMQ commit log"]
    verdict: VerdictName = (
        "departs" if violations else "unreadable" if unreadable else "inconclusive" if reasons else "conforms"
    )
    queues = _queue_rows(judged, source)
    return Parts(
        source=Source(
            path=source, kind="rocketmq-store", bytes=store.bytes, records=judged.records,
            clean=store.clean, live=store.live,
            verdict=verdict, reasons=[shown(r) for r in reasons],
            notes=[shown(n) for n in notes],
        ),
        findings=findings,
        events={spec: _events(judged, spec) for spec in SPECS},
        traces=_traces(judged),
        coverage=judged.covered,
        not_exercised=_not_exercised(judged),
        anomalies={name: count for name, (count, _, _) in judged.anomalies.items()},
        queues=queues,
        transactions=_transactions(judged, source),
        clients=[judged.client] if judged.client else [],
        life=judged.life,
        queue_count=len(judged.queues),
        marks=_marks(judged, source, findings),
        total=sum(f.count for f in findings if f.severity == "violation"),
        interrupted=bool(interrupted),
    )  # fmt: skip


def _traces(judged: Judged) -> int:
    """The log, every queue, every transaction and op, and the cursors if there are any."""
    numbers = judged.transactions.numbers
    cursors = any(name.startswith("checkpoint.") for name in judged.covered)
    return 1 + len(judged.queues) + numbers.get("transactions", 0) + numbers.get("ops", 0) + cursors


def _transactions(judged: Judged, source: str) -> list[Transactions]:
    tally, cursors = judged.transactions, judged.store.cursors
    numbers = tally.numbers
    if not any(numbers.values()):
        return []
    halves, ops = judged.queues.get(splits.HALVES), judged.queues.get(splits.OPS)

    def kept(counts: dict[Any, int]) -> dict[Any, int]:
        return {key: count for key, count in sorted(counts.items()) if count}

    return [
        Transactions(
            source=source,
            **{name: numbers.get(name, 0) for name in NUMBERS},
            outcomes={name: tally.outcomes[name] for name in BECAME if tally.outcomes.get(name)},
            decided_within=kept(tally.decided_within),
            back_checks=kept(tally.back_checks),
            batches=kept(tally.batches),
            half_cursor=cursors.half if cursors else None,
            half_end=halves.end if halves else 0,
            op_cursor=cursors.op if cursors else None,
            op_end=ops.end if ops else 0,
        )
    ]


BECAME = ("committed", "rolled back", "parked", "undecided", "departing", "with an expired half")
NUMBERS = ("transactions", "halves", "renewals", "finals", "ops", "marks", "parked")


def _events(judged: Judged, spec: str) -> int:
    return sum(count for name, count in judged.covered.items() if name.startswith(f"{spec}."))


def _vacuous(judged: Judged, options: Options) -> Iterator[str]:
    """Why nothing, or not enough, was checked. Vacuity is not conformance."""
    if options.ignored and options.ignored >= {rule.because for rule in rules() if rule.kind.startswith("need of")}:
        yield "every rule is ignored: nothing was checked"
    elif not judged.records:
        yield "no record in the log: nothing was checked"
    elif options.topic is not None and not judged.queues:
        yield f"no message of topic {options.topic} in the log"
    elif options.transaction is not None:
        if not judged.transactions.numbers.get("transactions"):
            yield f"no transaction {options.transaction} in the log"
    elif options.trace not in (None, COMMIT_LOG) and not judged.queues and not options.wants_transactions:
        yield f"no message of {options.trace} in the log"
    elif options.trace == COMMIT_LOG:
        return
    elif not judged.store.has_queues:
        yield "there are no consume queues: whether every message has its entry was not checked"
    elif not all(run.batches for run in judged.queues.values()) and not judged.covered.get("queue.index"):
        yield "no consume-queue entry was found for any message: entries were not checked"


def _is_garbage(store: Store) -> bool:
    """Whether there are bytes in the log that are no record: zeros are nothing, anything else is not ours."""
    for split in splits.splits(store):
        window = splits.Window(split.file)
        window.read(split.low, split.high)
        if window.data[: window.have].any():
            return True
    return False


def _anomaly(judged: Judged, source: str, name: str, count: int, position: int, trace: str) -> Finding:
    spec, deviation = next(
        (spec.name, d) for spec in SPECS.values() for d in spec.deviations if d.step.__name__ == name
    )
    file, offset = judged.store.log_file_at(position)
    sentence = name.replace("_", " ")
    return Finding(
        rule=rule_id(spec, sentence), severity="anomaly", spec=spec, trace=shown(trace), source=source,
        position=position, where=Where(file=file, offset=offset), message=f"{sentence} ({deviation.seen})",
        needs=sentence, otherwise="nothing: this is legal, and counted", here={}, story=[], count=count,
        traces=[shown(trace)],
    )  # fmt: skip


def _not_exercised(judged: Judged) -> list[str]:
    """Rules without evidence, and what would exercise them."""
    store, found = judged.store, []
    if not judged.counters[scan.C_SEALED]:
        found.append(
            f"{rule_id('log', 'the record has the checksum that its properties carry')}: no record carries one"
        )
    if judged.counters[scan.C_SCHEDULED]:
        found.append("delays of single levels: any start may change them, so delivery times are held to whole seconds")
    if judged.counters[scan.C_UNSURE]:
        found.append(f"tag codes of {judged.counters[scan.C_UNSURE]:,} messages: their tags are not UTF-8")
    if store.extended:
        found.append("tag codes in consumequeue_ext: gapless does not read it")
    if store.checkpoint is None:
        found.append(f"{rule_id('log', 'what was flushed is still in the log')}: there is no checkpoint file")
    if not store.clean:
        what = "is still running" if store.live else "did not stop in order"
        found.append(
            f"{rule_id('queue', 'every message has its entry')}: not up to the log's end, for the broker {what}"
        )
    if store.queue_file_size == 0:
        found.append(
            f"{rule_id('queue', 'a file of the consume queue has its full length')}: it is not known (--config)"
        )
    found += _promises_not_exercised(judged)
    found += _transactions_not_exercised(judged)
    for spec, action in (
        ("log", "flush"),
        ("log", "acknowledge"),
        ("log", "crash"),
        ("queue", "expire"),
        ("queue", "rebuild"),
        ("transaction", "crash"),
        ("op_batch", "tick"),
        ("op_batch", "stop"),
        ("op_batch", "crash"),
    ):
        found.append(f"{spec}.{action}: a store does not show this step; a trace recorded by a broker does")
    return found


def _promises_not_exercised(judged: Judged) -> Iterator[str]:
    """What is not known of promises to clients."""
    sent, said = "a client sent the message", judged.evidence
    if judged.client is None:
        for sentence in (*ACKNOWLEDGED, sent):
            yield f"{rule_id('queue', sentence)}: nobody says what was sent; a client log would (--client)"
    elif said is not None and not said.complete:
        yield f"{rule_id('queue', sent)}: the client log has messages without their keys; with all keys it would tell"


ACKNOWLEDGED = (
    "the message that was acknowledged is in the log, where the answer said",
    "the message that was acknowledged is what its producer sent",
)


def _transactions_not_exercised(judged: Judged) -> Iterator[str]:
    """What is not known of transactions, and which evidence would tell."""
    store, numbers = judged.store, judged.transactions.numbers
    if not numbers.get("transactions"):
        yield "transaction, checkpoint, op_batch: there is no transaction in the log, or they were not asked for"
        return
    if not store.settings.get("transactionCheckMax"):
        rule = rule_id("transaction", "all checks are spent")
        yield f"{rule}: transactionCheckMax is not known; a broker.conf would tell (--config)"
    if not store.settings.get("transactionOpMsgMaxSize"):
        rule = rule_id("op_batch", "the body ends with the entry that fills it")
        yield f"{rule}: transactionOpMsgMaxSize is not known; a broker.conf would tell (--config)"
    for sentence in OF_CLIENTS if judged.client is None else ():
        yield f"{rule_id('transaction', sentence)}: nobody says what producers asked; a client log would (--client)"
    if store.cursors is None or store.cursors.half is None or store.live:
        rule = rule_id("checkpoint", "the half cursor passes no undecided half")
        cursors = f"{rule}, checkpoint.advance, checkpoint.advance_ops"
        yield f"{cursors}: how far the check service came is not known; config/consumerOffset.json would tell"
    elif not store.clean:
        rule = rule_id("checkpoint", "the half cursor has passed all that the op names")
        yield f"{rule}: the two cursors are written one after the other; those of a broker that stopped in order agree"
    if judged.covered.get("transaction.roll_back") and judged.client is None:
        yield "transaction.roll_back: every one is inferred, from an op without a final; a client log tells (--client)"


def _queue_rows(judged: Judged, source: str) -> list[QueueRow]:
    rows = sorted(judged.queues.items(), key=lambda item: (-item[1].messages, item[0]))[:QUEUE_ROWS]
    return [
        QueueRow(
            source=source, topic=shown(topic), queue=queue, messages=run.messages, first=run.first, end=run.end,
            indexed=run.indexed, verdict="departs" if run.departs else "conforms",
        )
        for (topic, queue), run in sorted(rows)
    ]  # fmt: skip


def _marks(judged: Judged, source: str, findings: list[Finding]) -> list[Mark]:
    """The picture of the log: its files, how far records reach, damaged stretches, and every finding's place."""
    store = judged.store
    marks = [
        Mark(source=source, low=f.base, high=f.base + f.length, kind="file", label=f"commitlog/{f.base:020d}")
        for f in store.files
    ]
    marks.append(Mark(source=source, low=store.start, high=judged.end, kind="log", label=f"{judged.records:,} records"))
    marks += [Mark(source=source, low=a, high=b, kind="damage", label="no record") for a, b in judged.damage[:200]]
    marks += [
        Mark(source=source, low=f.position, high=f.position, kind="finding", label=f"{f.trace}: {f.needs}")
        for f in findings
    ]
    return marks


def _report(parts: list[Parts], profile: str, engine: str, seconds: float) -> Report:
    def added(dicts: Iterator[dict[str, int]]) -> dict[str, int]:
        total: dict[str, int] = {}
        for one in dicts:
            for key, value in one.items():
                total[key] = total.get(key, 0) + value
        return dict(sorted(total.items()))

    events = added(p.events for p in parts)
    coverage = {f"{spec.name}.{action}": 0 for spec in SPECS.values() for action in spec.actions}
    return Report(
        verdict=worst(p.source.verdict for p in parts),
        profile=profile,
        engine=engine,
        sources=[p.source for p in parts],
        counts=Counts(
            events=sum(events.values()),
            traces=sum(p.traces for p in parts),
            queues=sum(p.queue_count for p in parts),
            by_spec=events,
        ),
        coverage=coverage | added(p.coverage for p in parts),
        not_exercised=list(dict.fromkeys(line for p in parts for line in p.not_exercised)),
        anomalies=added(p.anomalies for p in parts),
        findings=[f for p in parts for f in p.findings],
        findings_total=sum(p.total for p in parts),
        queues=[row for p in parts for row in p.queues],
        transactions=[row for p in parts for row in p.transactions],
        clients=[row for p in parts for row in p.clients],
        coordinators=[row for p in parts for row in p.coordinators],
        life=[line for p in parts for line in p.life],
        marks=[mark for p in parts for mark in p.marks],
        seconds=seconds,
    )


__all__ = ["Progress", "Rule", "UsageError", "check", "results", "rules"]
