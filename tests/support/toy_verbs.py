"""The toy with verbs: its files are followed while they are written, compared, and read as a table by Spark."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from gapless.traces.engines.local import Local
from gapless.traces.evidence import Evidence
from gapless.traces.options import Options
from gapless.traces.problems import UsageError
from gapless.traces.report.parts import Parts
from gapless.traces.report.values import Finding, Report
from gapless.traces.sources.following import FollowProgress, RecordingFollower, SavedState
from gapless.traces.sources.tables import TablePart
from gapless.traces.sources.verbs import JsonSchema
from tests.support.toy_source import Csv, CsvFile

COLUMNS = pa.schema([("trace", pa.string()), ("action", pa.string())])


class CsvFollower:
    """A file that is followed; its rows are judged again as a whole, for the file is short."""

    left = ()

    def __init__(self, path: Path, found: Path, options: Options, reached: int) -> None:
        self.path, self.found, self.options, self.reached = path, found, options, reached
        self.says: deque[str] = deque()
        self.reported: set[tuple[str, str, int]] = set()
        self.lost, self.departed, self.rounds = "", False, 0

    def progress(self) -> FollowProgress:
        """See `RecordingFollower`: a line is a record, and none is late."""
        rows = self.found.read_bytes().count(b"\n")
        at = self.reached
        return FollowProgress(rows, 0, 0, at, at, 0, at, 0.0, self.rounds, restarts=0, looked_again=0)

    def round(self) -> bool:
        """See `RecordingFollower`."""
        self.rounds += 1
        size = self.found.stat().st_size
        self.departed, self.reached = size != self.reached and bool(self.whole().findings), size
        return False

    def is_running(self) -> bool:
        """See `RecordingFollower`."""
        return False

    def is_at_rest(self) -> bool:
        """See `RecordingFollower`."""
        return True

    def report_early(self) -> Iterator[Finding]:
        """See `RecordingFollower`: all is reported with the whole."""
        yield from ()

    def whole(self, *, last: bool = False) -> Parts:  # noqa: ARG002 - as `RecordingFollower` says
        """See `RecordingFollower`."""
        recording, engine = CsvFile(self.path, self.found, self.options), Local(jobs=1)
        for split in recording.splits:
            recording.take(recording.task(engine)(split))
        return recording.finish(engine)

    def report(self, judged: Parts) -> Iterator[Finding]:
        """See `RecordingFollower`."""
        for finding in judged.findings:
            key = finding.rule, finding.trace, finding.position
            if key not in self.reported:
                self.reported.add(key)
                yield finding

    def parts(self, judged: Parts) -> Parts:
        """See `RecordingFollower`."""
        return judged

    def checkpoint(self) -> CsvPlace:
        """See `RecordingFollower`."""
        return CsvPlace(self.reached)

    def close(self) -> None:
        """See `RecordingFollower`."""


@dataclass(frozen=True)
class CsvPlace:
    """The bytes up to which a file was judged."""

    position: int


@dataclass
class CsvGauge:
    """The length of a file."""

    path: Path

    def end(self, known: int) -> int | None:
        """See `LogGauge`."""
        return max(known, self.path.stat().st_size) if self.path.exists() else None

    def start(self) -> int:
        """See `LogGauge`."""
        return 0


@dataclass
class CsvReplicas:
    """Copies of a file: the same lines are expected in each."""

    taken: list[tuple[Path, Report]]

    def take(self, path: Path, report: Report) -> None:
        """See `Replicas`."""
        self.taken.append((path, report))

    def compared(self) -> CsvComparison:
        """See `Replicas`."""
        (master, _), *slaves = self.taken
        rows = master.read_text().splitlines()
        apart = [f"{slave}: differs" for slave, _ in slaves if slave.read_text().splitlines() != rows]
        return CsvComparison([report.verdict for _, report in self.taken], apart)


@dataclass
class CsvComparison:
    """The copies that differ, and the verdicts on each alone."""

    alone: list[str]
    apart: list[str]

    @property
    def exit_code(self) -> int:
        """See `ReplicaComparison`."""
        return 1 if self.apart else 0

    def as_json(self) -> str:
        """See `ReplicaComparison`."""
        return f"{self.alone + self.apart}\n"

    def lines(self) -> Iterator[str]:
        """See `ReplicaComparison`."""
        yield ", ".join(self.alone)
        yield from self.apart or ["all agree"]

    def unread(self) -> list[tuple[str, str]]:
        """See `ReplicaComparison`."""
        return []


@dataclass(frozen=True)
class CsvTable:
    """A row for each step, one part for each file."""

    paths: tuple[Path, ...]
    split: int
    columns: pa.Schema = COLUMNS

    def parts(self, asked: frozenset[str]) -> Iterator[tuple[TablePart, Mapping[str, tuple[Any, Any]]]]:  # noqa: ARG002 - as `SparkTable` says
        """See `SparkTable`."""
        for path in self.paths:
            yield TablePart(str(path), 0, None, path.stat().st_size), {}

    def read(self, part: TablePart, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See `SparkTable`."""
        lines = Path(part.path).read_text().splitlines()
        rows = [dict(zip(COLUMNS.names, line.split(","), strict=False)) for line in lines]
        yield pa.RecordBatch.from_pylist([{name: row[name] for name in columns.names} for row in rows], schema=columns)


class CsvWithVerbs(Csv):
    """The toy, and all that a source may do besides."""

    table_format = "toy-csv"

    def follow(
        self, path: Path, found: Path, options: Options, evidence: Evidence, checkpoint: Any, clock: Callable[[], float]  # noqa: ARG002 - as `FollowingSource` says
    ) -> CsvFollower:  # fmt: skip
        """See `FollowingSource`."""
        return CsvFollower(path, found, options, checkpoint.position if checkpoint else 0)

    def gauge(self, path: Path, followed: RecordingFollower | None = None) -> CsvGauge:  # noqa: ARG002 - as above
        """See `FollowingSource`."""
        return CsvGauge(path)

    def read_state(self, file: Path, name: str, options: Options, version: str) -> SavedState | None:  # noqa: ARG002 - as above
        """See `FollowingSource`."""
        if not file.exists():
            return None
        kept: SavedState = pickle.loads(file.read_bytes())  # noqa: S301 - what it wrote
        if kept.store != name:
            raise UsageError(f"{file}: is of {kept.store}")
        return kept

    def write_state(self, file: Path, kept: SavedState, version: str) -> None:  # noqa: ARG002 - as above
        """See `FollowingSource`."""
        file.write_bytes(pickle.dumps(kept))

    def replicas(self, evidence: Evidence) -> CsvReplicas:  # noqa: ARG002 - as `ComparingSource` says
        """See `ComparingSource`."""
        return CsvReplicas([])

    def table(self, paths: Sequence[Path], split: int) -> CsvTable:
        """See `TableSource`."""
        return CsvTable(tuple(paths), split)

    def schemas(self) -> Mapping[str, Callable[[], JsonSchema]]:
        """See `SchemaSource`."""
        return {"toy": lambda: {"type": "string", "title": "a row"}}


SOURCE = CsvWithVerbs()
