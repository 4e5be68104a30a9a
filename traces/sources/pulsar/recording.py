"""A recording as events: the steps of its coordinators, and the requests of its clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from gapless.spec.coordinator import Status
from gapless.traces.engines.engine import Progress
from gapless.traces.problems import NothingThere, Unreadable, shown
from gapless.traces.sources.pulsar import RECORDING, history, requests
from gapless.traces.sources.pulsar.activity import activity
from gapless.traces.sources.pulsar.fitting import misfits
from gapless.traces.sources.pulsar.history import SPEC, StepColumns
from gapless.traces.sources.pulsar.joined import OK, REFUSED, Epoch, coordinators
from gapless.traces.sources.pulsar.lines import Ints, Lines, read
from gapless.traces.sources.pulsar.pending_ends import pending_ends
from gapless.traces.sources.pulsar.report import CoordinatorRow


@dataclass(frozen=True)
class RecordedSteps:
    """The events of a recording, and for each of them the line that it comes from."""

    lines: Lines
    batches: list[pa.RecordBatch]
    line: Ints
    coordinators: list[CoordinatorRow]
    reasons: list[str]


def recorded(path: Path, progress: Progress | None) -> RecordedSteps:
    """Read the events of a recording, one trace after the other. Raises Unreadable, NothingThere."""
    file = path / RECORDING
    lines = read(file, progress)
    if not lines.count:
        raise NothingThere(f"{shown(file)} is empty: nothing was checked")
    found = coordinators(lines)
    for epoch in (epoch for epochs in found.values() for epoch in epochs if epoch.ready and epoch.row < 0):
        raise Unreadable(
            f"{shown(file)}, line {epoch.ready}: a coordinator is loaded, and no table before that says what it found: "
            "whether anything is lost cannot be judged; record it with its tables"
        )
    parts: list[tuple[str, StepColumns]] = []
    rows, late = [], []
    for tc, epochs in sorted(found.items()):
        steps = history.of_coordinator(lines, epochs, alone=len(found) == 1)
        parts.append((f"tc{tc}", steps))
        rows.append(_numbers(path, f"tc{tc}", epochs, steps))
        if waiting := pending_ends(lines, epochs, steps):
            late.append((f"tc{tc}", *waiting))
    batches = [history.batch(steps, [name], str(path)) for name, steps in parts]
    line = [steps.line for _, steps in parts]
    for name, steps in requests.of_clients(lines):
        batches.append(history.batch(steps, [name], str(path)))
        line.append(steps.line)
    for name, numbers, trace, steps in late:
        batches.append(history.batch(steps, [f"{name}/{number}" for number in numbers], str(path), trace))
        line.append(steps.line)
    line_of_row = np.concatenate([np.zeros(0, np.int64), *line])
    return RecordedSteps(lines, batches, line_of_row, rows, list(misfits(lines, found)))


def _numbers(path: Path, trace: str, epochs: Sequence[Epoch], recorded: StepColumns) -> CoordinatorRow:
    """Count a coordinator's steps that took effect, by its log."""

    def count(action: str) -> int:
        return int(((recorded.action == SPEC.codes[action]) & (recorded.outcome == OK)).sum())

    to = recorded.args[SPEC.arguments.index("to")]
    finished = (recorded.action == SPEC.codes["finish"]) & (recorded.outcome != REFUSED)
    active = np.cumsum((recorded.action == SPEC.codes["begin"]).astype(np.int64) - finished)
    over_time = activity(recorded)
    return CoordinatorRow(
        source=shown(path),
        trace=trace,
        loads=len([epoch for epoch in epochs if epoch.ready]),
        begun=count("begin"),
        ignored=count("ignore"),
        committed=int((finished & (to == Status.COMMITTED)).sum()),
        aborted=int((finished & (to == Status.ABORTED)).sum()),
        timed_out=count("time_out"),
        rejected=int((recorded.outcome == REFUSED).sum()),
        most_active=int(active.max(initial=0)),
        active=over_time.active,
        limits=over_time.limits,
        loaded=over_time.loads,
    )


# -- stories -------------------------------------------------------------------------------------------------------
