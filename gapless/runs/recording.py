"""`gapless record`: run our own store on a workload, and leave it with its traces and the answers to clients."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console

from gapless.commands.terminal import now_and_then
from gapless.impl.recorder.recorder import StoreRecorder
from gapless.impl.store.core import Settings
from gapless.impl.workloads.producers import SETTINGS
from gapless.impl.workloads.threaded_run import run_threaded
from gapless.impl.workloads.trial import DISK_FAULTS, FAULTS, Trial
from gapless.impl.workloads.workload import ClientLogWriter, Workload
from gapless.runs.stepwise import Stepwise
from gapless.traces.suggestions import did_you_mean

if TYPE_CHECKING:
    from types import FrameType

STORE, TRACES, CLIENT, LIMITS = "store", "traces", "client.ndjson", "broker.conf"
ROOM = 2 << 30  # bytes of a workload that a simulated disk takes: it keeps every file twice in memory
AS_A_BROKER = {"transactionCheckMax": SETTINGS.max_checks, "transactionOpMsgMaxSize": SETTINGS.op_batch_bytes}
"""The limits that no file of a store has, as a broker's settings: a check finds them next to the store."""
OVERHEAD = 400  # bytes of a record without its body, at most: names and properties are short here


class NoRun(Exception):  # noqa: N818 - it names a finding.
    """A run that is not possible; nothing was made."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run. `together`: messages in one append · `form`: parquet or ndjson."""

    workload: Workload
    together: int
    synchronous: bool
    workers: int
    overlap: bool
    faults: frozenset[str]
    form: str

    @property
    def simulated(self) -> bool:
        """True if the disk is one that can be lost."""
        return bool(self.faults & DISK_FAULTS)

    def settings(self) -> Settings:
        """Settings of a store with files that a run fills, and small ones for crashes."""
        whole = 1 << 18 if self.simulated else 1 << 24
        while whole < 4 * (self.workload.longest + OVERHEAD):
            whole *= 2
        return Settings(
            file_size=whole,
            queue_file_size=20 * (1000 if self.simulated else 30_000),
            synchronous=self.synchronous,
            workers=self.workers,
            batch_records=64 if self.simulated else 1 << 14,
            overlap=self.overlap,
        )


def sizes(text: str) -> tuple[int, int]:
    """The shortest and the longest body: `100..2000`, or one number for both. Raises NoRun."""
    low, dots, high = text.partition("..")
    if not low.isdecimal() or not (high.isdecimal() if dots else not high):
        raise NoRun(f"--sizes {text}: expected bytes, as in 100..2000, or one number")
    shortest, longest = int(low), int(high or low)
    if not shortest <= longest <= 4 << 20:
        raise NoRun(f"--sizes {text}: expected the shorter first, and at most {4 << 20} bytes")
    return shortest, longest


def faults(names: Sequence[str]) -> frozenset[str]:
    """The faults of these names, with or without commas between them. Raises NoRun."""
    found = frozenset(name for words in names for name in words.split(",") if name)
    if strange := sorted(found - FAULTS.keys()):
        hint = did_you_mean(strange[0], FAULTS)
        raise NoRun(f"there is no fault {strange[0]!r}{hint}: choose among {', '.join(FAULTS)}")
    return found


class Done(NamedTuple):
    """The lines that report a run and the next command. `code`: with which the command ends."""

    lines: list[str]
    code: int


def run(folder: Path, options: RunOptions) -> Done:
    """Run it.

    Raises NoRun where the folder is not empty, or the run too large; StoreError, OSError.
    """
    _check(folder, options)
    traces = folder / TRACES / f"recorded.{options.form}"
    traces.parent.mkdir(parents=True)
    with (
        _going_on(options.workload.messages) as (proceeds, came),
        StoreRecorder(traces) as recorder,
        ClientLogWriter(folder / CLIENT) as client,
    ):
        trial = Trial(
            options.workload, options.settings(), options.together, options.faults, recorder, client, proceeds
        )
        if options.workload.transactions:
            (folder / LIMITS).write_text("".join(f"{name}={value}\n" for name, value in AS_A_BROKER.items()))
        if options.simulated:
            _run_stepwise(trial, folder)
        else:
            run_threaded(trial, folder / STORE)
    code = 128 + came[0] if came and trial.sent < options.workload.messages else 0  # as of one that the signal ended
    return Done(_summary(trial, folder, traces), code)


def _check(folder: Path, options: RunOptions) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NoRun(f"{folder}: expected an empty directory, or the name of a new one")
    room = options.workload.messages * (options.workload.longest + OVERHEAD)
    if options.simulated and room > ROOM:
        raise NoRun(
            f"{options.workload.messages:,} messages of up to {options.workload.longest} bytes are too many for "
            f"{', '.join(sorted(options.faults & DISK_FAULTS))}: the disk is simulated in memory then; take at most "
            f"{ROOM // (options.workload.longest + OVERHEAD):,}"
        )


def _run_stepwise(trial: Trial, folder: Path) -> None:
    run = Stepwise(trial)
    run.run()
    unfinished = folder / f".{STORE}.tmp"
    unfinished.mkdir()
    run.disk.save(unfinished)
    unfinished.rename(folder / STORE)


def _summary(trial: Trial, folder: Path, traces: Path) -> list[str]:
    store, queues, client = folder / STORE, trial.workload.topics * trial.workload.queues, trial.client
    lengths = [file.stat().st_size for file in sorted((store / "commitlog").glob("*"))]
    counts = client.counts
    lines = [
        f"{store}: {trial.sent:,} messages sent to {queues:,} queues, {sum(lengths):,} bytes of log files",
        f"{traces}: {trial.recorder.count:,} events",
        f"{client.path}: {counts['ok']:,} acknowledged, {counts['fail']:,} refused, {counts['unknown']:,} unanswered",
    ]
    if trial.workload.transactions:
        asked = client.decisions
        lines.append(
            f"transactions: {asked['commit']:,} times asked to commit, {asked['rollback']:,} to roll back; "
            f"producers were asked back {client.asked:,} times"
        )
    if trial.faults:
        met = ", ".join(f"{name} {trial.met[name]}" for name in FAULTS if name in trial.faults)
        lines.append(f"faults met: {met}{'; the disk was simulated' if trial.faults & DISK_FAULTS else ''}")
    if trial.sent < trial.workload.messages:
        lines.append(f"interrupted: {trial.workload.messages - trial.sent:,} messages were not sent")
    return [
        *lines,
        "To check both:",
        f"  gapless check {store} --profile strict",
        f"  gapless check {traces}",
    ]


@contextmanager
def _going_on(messages: int) -> Iterator[tuple[Callable[[int], bool], list[int]]]:
    """Shows how far it is, and stops the run in order at the first Ctrl-C, or SIGTERM; and which of them came."""
    came: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        _listen(before)  # the second one does not wait

    before = _listen(dict.fromkeys((signal.SIGINT, signal.SIGTERM), interrupt))
    try:
        if not sys.stderr.isatty():
            tell = now_and_then(lambda sent, all_of_them: f"{sent:,} of {all_of_them:,} messages sent")

            def continues_with_progress(sent: int) -> bool:
                tell(sent, messages)
                return not came

            yield continues_with_progress, came
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=messages)

            def proceeds(sent: int) -> bool:
                bar.update(task, completed=sent)
                return not came

            yield proceeds, came
    finally:
        _listen(before)


def _listen(handlers: Mapping[int, Any]) -> dict[int, Any]:
    """Let these handlers take their signals, and say which took them before."""
    return {number: signal.signal(number, handler) for number, handler in handlers.items()}
