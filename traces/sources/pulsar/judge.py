"""A recording held against the specs: its lines become events, and events are judged as those of any other source."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from gapless.spec.catalog import State
from gapless.spec.coordinator import Status
from gapless.spec.language import Refused, waived
from gapless.traces.events import files
from gapless.traces.events.writing import is_event_file
from gapless.traces.judging.columns import Taken, Traces, gathered
from gapless.traces.judging.event_traces import Judge, Recorded, Teller, Work
from gapless.traces.judging.tallies import Suspect, Tally
from gapless.traces.options import Options
from gapless.traces.parts import RECORDING, Parts, Progress
from gapless.traces.problems import NothingThere, Unreadable, UsageError, shown
from gapless.traces.replay.exact import Departure, Step, named
from gapless.traces.replay.notation import changes
from gapless.traces.report import verdict_table
from gapless.traces.report.values import Coordinator
from gapless.traces.sources.pulsar import history, requests
from gapless.traces.sources.pulsar.fitting import misfits
from gapless.traces.sources.pulsar.history import SPEC, Steps
from gapless.traces.sources.pulsar.joined import OK, REFUSED, Epoch, coordinators
from gapless.traces.sources.pulsar.lines import Ints, Lines, read

STEPS = 12  # of one transaction, that a story tells of
TURNING = ("unload", "recover")  # steps of the coordinator that a story of one transaction tells of too


@dataclass(frozen=True)
class Recording:
    """What was read of a recording: its events, and for each row of them the line that tells of it."""

    lines: Lines
    batches: list[pa.RecordBatch]
    line: Ints
    coordinators: list[Coordinator]
    reasons: list[str]


def check_recording(
    path: Path, options: Options, *, progress: Progress | None = None, table: tuple[Path, str] | None = None
) -> Parts:
    """Hold a recording against the specs. Raises Unreadable, NothingThere."""
    file = path / RECORDING
    recording = recorded(path, progress)
    judge = Judge(Work(path, options, 1, 1 << 62, table))
    for traces in gathered(recording.batches):
        judge.take(traces, np.ones(len(traces.names), np.bool_))
        _tell_lives(traces, judge.tallies[traces.spec.name], options)
    told = Recorded(
        path,
        "pulsar-recording",
        file.stat().st_size,
        recording.lines.count,
        RECORDING,
        lambda row: ("line", int(recording.line[row])),
        lambda number: f"line {int(recording.line[number - 1])}",
        "pulsar",
    )
    listed = 0
    if table is not None:
        listed = verdict_table.write(table[0], f"{table[1]}-recording", judge.verdicts)
    parts = Teller(told, options, options.trace).parts(judge.tallies, listed=listed)
    parts.coordinators = recording.coordinators
    parts.not_exercised += NOT_READ
    return _with_reasons(parts, recording.reasons)


def export(path: Path, out: Path, *, progress: Progress | None = None) -> int:
    """Write the events of the recording in `path` to `out`, and say how many: the very events that a check judges.

    Raises UsageError for a suffix that is no form, Unreadable, NothingThere.
    """
    if not is_event_file(out):
        raise UsageError(f"{out}: a file that ends in .parquet or .ndjson was expected")
    return files.write(out, recorded(path, progress).batches)


def recorded(path: Path, progress: Progress | None) -> Recording:
    """The events of a recording, one trace after the other. Raises Unreadable, NothingThere."""
    file = path / RECORDING
    lines = read(file, progress)
    if not lines.count:
        raise NothingThere(f"{shown(file)} is empty: nothing was checked")
    found = coordinators(lines)
    for epoch in (epoch for epochs in found.values() for epoch in epochs if epoch.ready and epoch.row < 0):
        raise Unreadable(
            f"{shown(file)}, line {epoch.ready}: a coordinator is loaded, and no table before that says what it found: "
            "whether anything is lost cannot be judged; record it with its tables (traces/README.md)"
        )
    parts: list[tuple[str, Steps]] = []
    told = []
    for tc, epochs in sorted(found.items()):
        steps = history.of_coordinator(lines, epochs, alone=len(found) == 1)
        parts.append((f"tc{tc}", steps))
        told.append(_numbers(path, f"tc{tc}", epochs, steps))
    batches = [history.batch(steps, name, str(path)) for name, steps in parts]
    line = [steps.line for _, steps in parts]
    for name, steps in requests.of_clients(lines):
        batches.append(history.batch(steps, name, str(path)))
        line.append(steps.line)
    told_by = np.concatenate([np.zeros(0, np.int64), *line])
    return Recording(lines, batches, told_by, told, list(misfits(lines, found)))


NOT_READ = [
    "what topics and subscriptions made of the outcomes: markers, horizons and deliveries are not judged",
    "what the log holds when it is read back (log.ndjson): records are taken from the trace",
]


def _with_reasons(parts: Parts, reasons: Sequence[str]) -> Parts:
    if not reasons:
        return parts
    verdict = parts.source.verdict if parts.total else "inconclusive"
    source = parts.source.model_copy(
        update={"verdict": verdict, "reasons": [*parts.source.reasons, *(shown(reason) for reason in reasons)]}
    )
    return replace(parts, source=source)


def _numbers(path: Path, trace: str, epochs: Sequence[Epoch], told: Steps) -> Coordinator:
    """A coordinator in numbers: what its log says took effect."""

    def count(action: str) -> int:
        return int(((told.action == SPEC.codes[action]) & (told.outcome == OK)).sum())

    to = told.args[SPEC.arguments.index("to")]
    finished = (told.action == SPEC.codes["finish"]) & (told.outcome != REFUSED)
    active = np.cumsum((told.action == SPEC.codes["begin"]).astype(np.int64) - finished)
    return Coordinator(
        source=shown(path),
        trace=trace,
        loads=len([epoch for epoch in epochs if epoch.ready]),
        begun=count("begin"),
        ignored=count("ignore"),
        committed=int((finished & (to == Status.COMMITTED)).sum()),
        aborted=int((finished & (to == Status.ABORTED)).sum()),
        timed_out=count("time_out"),
        rejected=int((told.outcome == REFUSED).sum()),
        most_active=int(active.max(initial=0)),
    )


# -- stories -------------------------------------------------------------------------------------------------------


def _tell_lives(traces: Traces, tally: Tally, options: Options) -> None:
    """Let the story of a transaction tell all its life, and when its coordinator was loaded meanwhile."""
    for because, cluster in tally.clusters.items():
        first = cluster.first[0]
        if first.departure is not None:
            told = _life(traces, first, first.departure, options)
            tally.clusters[because] = replace(cluster, first=(replace(first, departure=told), *cluster.first[1:]))


def _life(traces: Traces, suspect: Suspect, departure: Departure, options: Options) -> Departure:
    """The same departure, told with the numbers that events have in the file, and with what concerns its subject."""
    trace = traces.names.to_pylist().index(suspect.at.trace)
    subject = named(departure.spec, departure.event).get("number")
    steps: deque[Step] = deque(maxlen=STEPS)
    turns: dict[str, Step] = {}
    path: list[Taken] = []
    for taken, before, after in _path(traces, trace, suspect.at.row, options):
        path.append(taken)
        about = named(departure.spec, taken.event).get("number")
        step = Step(taken.row + 1, taken.event, ())
        if taken.event[0] in TURNING and steps:
            turns[taken.event[0]] = replace(step, changes=changes(before, after))
        elif subject is not None and about == subject:
            steps.append(replace(step, changes=changes(before, after)))
    made = [replace(step, number=path[step.number - 1].row + 1) for step in departure.steps]
    if subject is None:
        chosen = made
    else:
        told = {step.number: step for step in (*made, *turns.values(), *steps)}
        chosen = [told[number] for number in sorted(told)]
    return replace(departure, number=suspect.at.row + 1, steps=tuple(chosen), left_out=len(path) - len(chosen))


def _path(traces: Traces, trace: int, row: int, options: Options) -> Iterator[tuple[Taken, State, State]]:
    """The events before `row` that were taken, and the states before and after each."""
    spec, state = traces.spec, traces.spec.initial
    token = waived.set(options.ignored)
    try:
        for taken in traces.taken(trace):
            if taken.row >= row:
                return
            if taken.outcome == "refused":
                continue
            try:
                after, _ = spec.step(state, taken.event[0], named(spec.name, taken.event), options.profile)
            except Refused:  # its outcome is unknown, and it was not taken
                continue
            yield taken, state, after
            state = after
    finally:
        waived.reset(token)


__all__ = ["Unreadable", "check_recording", "export", "recorded"]
