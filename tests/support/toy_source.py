"""A source of another package: CSV files of `queue` steps, one column each for trace and step, then the arguments.

Tests install it as a package of its own, which names it in the entry point group `gapless.sources`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.engines.engine import Engine, Progress
from gapless.traces.events import schema
from gapless.traces.events.schema import Event
from gapless.traces.evidence import Evidence
from gapless.traces.judging.columns import gathered
from gapless.traces.judging.findings.teller import EventOrigin, Teller
from gapless.traces.judging.judge import Judge
from gapless.traces.judging.tallies import Tally
from gapless.traces.options import Options
from gapless.traces.problems import NothingThere, UsageError
from gapless.traces.report.parts import Parts
from gapless.traces.report.sections import Presentation

SPEC = SPECS["queue"]


class Csv:
    """CSV files, known by their suffix."""

    kind = "toy-csv"
    profile = "strict"
    evidence: frozenset[str] = frozenset()
    expected_folder = ""
    expected_file = "a CSV of queue steps: its name does not end in .csv"
    presentation = Presentation("CSV of queue steps", unit="event")

    def recognise(self, path: Path) -> Path | None:
        """See `Source`."""
        return path if path.suffix == ".csv" and path.is_file() else None

    def advice(self, path: Path) -> str:  # noqa: ARG002 - as `Source` says
        """Give no advice: there is nothing around a CSV file."""
        return ""

    def prepare(self, found: Path, options: Options) -> None:
        """See `Source`."""

    def open(self, path: Path, found: Path, options: Options, evidence: Evidence, table: object) -> CsvFile:  # noqa: ARG002 - as `Source` says
        """See `Source`."""
        return CsvFile(path, found, options)

    def export(
        self, path: Path, found: Path, out: Path, options: Options, evidence: Evidence, progress: Progress | None  # noqa: ARG002 - as `Source` says
    ) -> int:  # fmt: skip
        """See `Source`."""
        raise UsageError(f"{path}: a toy writes nothing")


SOURCE = Csv()


@dataclass(frozen=True)
class Rows:
    """The rows of one trace."""

    trace: str
    first: int
    rows: tuple[tuple[str, ...], ...]

    @property
    def bytes(self) -> int:
        """Their length."""
        return sum(map(len, self.rows))


class CsvFile:
    """One file: a split for each trace, as long as the steps of a trace stand together."""

    def __init__(self, path: Path, found: Path, options: Options) -> None:
        self.path = path
        self.options = options
        self.tally: Tally | None = None
        with found.open(newline="", encoding="utf-8") as file:
            rows = list(enumerate(csv.reader(file)))
        if not rows:
            raise NothingThere(f"{path} is empty: nothing was checked")
        traces = [list(some) for _, some in groupby(rows, key=lambda row: row[1][0])]
        self.splits = [Rows(s[0][1][0], s[0][0], tuple(tuple(row) for _, row in s)) for s in traces]
        self.size, self.records = found.stat().st_size, len(rows)

    def task(self, engine: Engine) -> Callable[[Rows], Tally]:  # noqa: ARG002 - as `Recording` says
        """See `Recording`."""
        return partial(judge, self.options)

    def take(self, result: Tally) -> None:
        """See `Recording`."""
        self.tally = self.tally or Tally(result.begins)
        self.tally.add(result, 0)

    def finish(self, engine: Engine) -> Parts:  # noqa: ARG002 - as `Recording` says
        """See `Recording`."""
        return self.so_far()

    def so_far(self) -> Parts:
        """See `Recording`."""
        place: Callable[[int], tuple[str, int]] = lambda row: ("line", row + 1)  # noqa: E731 - two words of a report
        recorded = EventOrigin(self.path, self.size, self.records, self.path.name, place, Csv.profile)
        tallies = {SPEC.name: self.tally} if self.tally else {}
        return Teller(recorded, self.options, self.options.trace).parts(tallies)


def judge(options: Options, rows: Rows) -> Tally:
    """Judge one trace by the spec, counted in rows of the file."""
    batch = schema.from_events(_event(rows.trace, at, *row) for at, row in enumerate(rows.rows))
    (traces,) = gathered([batch])
    judge = Judge("toy", options)
    judge.take(traces, np.ones(len(traces.names), np.bool_))
    counted = Tally(rows.first)
    counted.add(judge.tallies[SPEC.name], rows.first)
    return counted


def _event(trace: str, at: int, _: str, action: str, *args: Any) -> Event:
    named = dict(zip(SPEC.parameters[action], map(int, args), strict=False))
    return Event(source="toy", spec=SPEC.name, trace=trace, position=at, action=action, args=named)
