"""The check of a recording: its events are judged like those of any other source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gapless.traces.engines.engine import Engine
from gapless.traces.judging.columns import gathered
from gapless.traces.judging.findings.teller import EventOrigin, Teller
from gapless.traces.judging.judge import Judge
from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.report.parts import Parts
from gapless.traces.sources.pulsar import KIND, PROFILE, RECORDING
from gapless.traces.sources.pulsar.recording import recorded
from gapless.traces.sources.pulsar.stories import extend_stories

NOT_READ = [
    "what topics and subscriptions made of the outcomes: markers, horizons and deliveries are not judged",
    "what the log holds when it is read back (log.ndjson): records are taken from the trace",
]


class CoordinatorCheck:
    """The check of one recording. It is read as a whole: a call and its answer may be far apart."""

    splits = ()

    def __init__(self, path: Path, found: Path, options: Options) -> None:
        self.path = path
        self.found = found
        self.options = options

    def task(self, engine: Engine) -> Callable[[Any], Any]:  # noqa: ARG002 - as `Recording` says
        """See `Recording`: there are no splits."""
        return self.take

    def take(self, result: Any) -> None:
        """See `Recording`."""

    def finish(self, engine: Engine) -> Parts:
        """See `Recording`."""
        recording = recorded(self.found, engine.progress)
        judge = Judge(shown(self.path), self.options)
        for traces in gathered(recording.batches):
            judge.take(traces, np.ones(len(traces.names), np.bool_))
            extend_stories(traces, judge.tallies[traces.spec.name], self.options)
        source = EventOrigin(
            self.path,
            (self.found / RECORDING).stat().st_size,
            recording.lines.count,
            RECORDING,
            lambda row: ("line", int(recording.line[row])),
            PROFILE,
            lambda number: f"line {int(recording.line[number - 1])}",
            names=lambda: [row.trace for row in recording.coordinators],
            kind=KIND,
        )
        parts = Teller(source, self.options, self.options.trace).parts(judge.tallies)
        parts.rows["coordinators"] = recording.coordinators
        parts.not_exercised += NOT_READ
        parts.reasons += recording.reasons
        parts.verdicts = judge.verdicts
        return parts

    def so_far(self) -> Parts:
        """See `Recording`: nothing is judged before all of it is read."""
        return Parts()
