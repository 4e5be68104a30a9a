"""The page of how checks scale, docs/performance.md, and its picture: `python -m benchmarks --page [--greatest]`.

Each row is one thing that is made greater, the rest as it was, or somebody else on the same files. Its seconds are the
median of some runs, each a process of its own, in turn with those of all other rows. Files are in the page cache, for
they were made a moment ago; where kernels are not compiled yet, `gapless warm` comes first.
"""

from __future__ import annotations

import os
import platform
import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log10
from pathlib import Path

from benchmarks import __main__ as bench
from benchmarks import bigtraces, dispatched
from benchmarks.bigstore import Extent, Shape, extent
from benchmarks.pictures import drawn

ROOT = Path(__file__).parents[1]
PAGE, PICTURE = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance.svg"
BEGIN, END = "<!-- measured: python -m benchmarks --page -->", "<!-- end of what was measured -->"
HEADS = ("", "how many", "seconds", "spread", "M/s", "anonymous MiB", "instead one would have used")
RUNS = 3
PEERS = 1_000_000  # events that are judged here and by others
SPLIT = 250_000  # short traces of the file that is split
RECORDS = 100_000  # in how many queues whatsoever
OTHERS = "peers"

BUSY = "The machine had much else to do: compare rows with one another, and do not take the seconds for ours."

INSTEAD = {
    "cores": "a query of DuckDB, which has threads",
    "events": "a query of DuckDB",
    "traces": "a loop over all traces",
    "splits": "Spark, and a job of one's own",
    "queues": "the broker's own recovery, which compares nothing",
}
"""What a user would have used for the rows of a series; of those beside others, the others are the answer."""


@dataclass(frozen=True)
class Line:
    """One row of the page: the series that it is of, what is counted there, and what is run."""

    series: str
    name: str
    count: int
    row: bench.Row


@dataclass(frozen=True)
class Figures:
    """The results of some runs of a line."""

    line: Line
    seconds: tuple[float, ...]
    anonymous: int  # bytes

    @property
    def median(self) -> float:
        """Seconds of the run in the middle."""
        return statistics.median(self.seconds)

    @property
    def rate(self) -> float:
        """Millions of events or records a second."""
        return self.line.row.store.records / self.median / 1e6


def write(folder: Path, *, greatest: bool) -> None:
    """Measure all lines, and write page and picture after each turn. Exits with 1 where a line is invalid."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = list(_lines(folder, greatest=greatest))
    runs: list[list[bench.Measurement]] = [[] for _ in lines]
    for turn in range(RUNS):
        for line, some in zip(lines, runs, strict=True):
            found = bench._run(line.row)  # noqa: SLF001 - one machinery for both tables
            if isinstance(found, bench.Invalid):
                sys.exit(f"{line.row.name}: {found.because}")
            print(f"{turn} {line.series} {line.name} {line.count:,}: {found.seconds:.2f} s", file=sys.stderr)
            some.append(found)
        figures = [
            Figures(line, tuple(run.seconds for run in some), max(run.anonymous for run in some))
            for line, some in zip(lines, runs, strict=True)
        ]
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{section(figures, machine(turn + 1))}{rest.partition(END)[2]}", encoding="utf-8")
        PICTURE.write_text(plot(figures), encoding="utf-8")


def _lines(folder: Path, *, greatest: bool) -> Iterator[Line]:
    """All lines, their files made on the way."""
    yield from _next_to_others(folder)
    yield from _events(folder, (10**5, 10**6, 10**7, *([10**8] if greatest else [])))
    yield from _traces(folder, (10, 1_000, 100_000, 1_000_000, *([10**7] if greatest else [])))
    yield from _splits(folder, (1, 4, 16, 64))
    yield from _queues(folder, (10, 160, 1_600, 20_000))


def _next_to_others(folder: Path) -> Iterator[Line]:
    """The same events judged here and by what people would write instead."""
    for suffix in dispatched.SUFFIXES:
        path = _dispatched(folder, PEERS, suffix)
        whole = Extent(dispatched.count(PEERS), path.stat().st_size)
        form = suffix[1:]
        for jobs in (1, 2):
            yield _check(OTHERS, f"{form}: gapless, {jobs} process{'es' * (jobs > 1)}", path, whole, jobs=jobs)
        for peer, _, judge, more, of in dispatched.THERE:
            if of == suffix:
                command = bench._call(judge.__name__, path, *more, of="dispatched")  # noqa: SLF001 - as above
                row = bench.Row(f"{form}: {peer}", command, whole, scans=False)
                yield Line(OTHERS, row.name, whole.records, row)


def _events(folder: Path, counts: Sequence[int]) -> Iterator[Line]:
    for events in counts:
        path = _dispatched(folder, events, ".parquet")
        whole = Extent(dispatched.count(events), path.stat().st_size)
        yield _check("events", "events of dispatch, parquet", path, whole, jobs=1, count=events)


def _traces(folder: Path, counts: Sequence[int]) -> Iterator[Line]:
    for traces in counts:
        path = bench._made_traces(folder, traces)  # noqa: SLF001 - as above
        whole = Extent(len(bigtraces.EVENTS) * traces, path.stat().st_size)
        if traces == 10**6:
            for jobs in (1, 2):
                yield _check("cores", f"processes, {traces:,} traces, parquet", path, whole, jobs=jobs, count=jobs)
        yield _check("traces", "traces of four events, parquet", path, whole, jobs=1, count=traces)


def _splits(folder: Path, counts: Sequence[int]) -> Iterator[Line]:
    path = folder / f"traces-{SPLIT}.ndjson"
    if not path.exists():
        bigtraces.make(path, SPLIT)
    whole = Extent(len(bigtraces.EVENTS) * SPLIT, path.stat().st_size)
    for splits in counts:
        size = -(-whole.bytes // splits)
        yield _check("splits", f"splits of {SPLIT:,} traces, ndjson", path, whole, jobs=1, count=splits, split=size)


def _queues(folder: Path, counts: Sequence[int]) -> Iterator[Line]:
    for queues in counts:
        topics = tuple(f"topic-{topic:05}" for topic in range(queues // 2))
        shape = Shape(RECORDS, queue_file_size=bench.SHORT, topics=topics, queues=2)
        store = bench._made(folder, shape)  # noqa: SLF001 - as above
        row = bench.Row("store", bench._call("check", store, 1), extent(store))  # noqa: SLF001 - as above
        yield Line("queues", f"queues of a store of {RECORDS:,} records", queues, row)


def _check(
    series: str, name: str, path: Path, whole: Extent, *, jobs: int, count: int | None = None, split: int | None = None
) -> Line:
    how = (str(path), "local", None, jobs, split)
    command = [sys.executable, "-c", f"from benchmarks import rows; rows.check_traces(*{how!r})"]
    return Line(series, name, whole.records if count is None else count, bench.Row(name, command, whole, scans=False))


def _dispatched(folder: Path, events: int, suffix: str) -> Path:
    path = folder / f"dispatched-{events}{suffix}"
    if not path.exists():
        dispatched.make(path, events)
    return path


# -- the page ------------------------------------------------------------------------------------------------------


def machine(runs: int) -> str:
    """Describe the machine, the date, and the number of runs."""
    model = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    busy = f" {BUSY}" if os.getloadavg()[2] > (os.cpu_count() or 1) else ""
    return (
        f"Measured on {datetime.now(tz=UTC):%Y-%m-%d}, {os.cpu_count()} cores of {model[1] if model else 'no name'}, "
        f"{gigabytes:.0f} GiB of memory, {platform.system()} {platform.release()}, Python {platform.python_version()}; "
        f"load when it was done: {load}. Runs of each row: {runs}.{busy}"
    )


def section(figures: Sequence[Figures], measured_on: str) -> str:
    """Format the measurements in Markdown."""
    table = [f"| {' | '.join(HEADS)} |", f"|{'--|'}{'--:|' * 5}--|", *map(row_of, figures)]
    picture = "![Million events or records a second, by what grows](performance.svg)"
    return "\n\n".join([BEGIN, measured_on, "\n".join(table), picture, END])


def row_of(found: Figures) -> str:
    """The row of a line."""
    spread = (max(found.seconds) - min(found.seconds)) / found.median
    cells = (
        found.line.name,
        f"{found.line.count:,}",
        f"{found.median:.2f}",
        f"{spread:.0%}",
        f"{found.rate:.2f}",
        f"{found.anonymous / 2**20:,.0f}",
        INSTEAD.get(found.line.series, "see the other rows" if "gapless" in found.line.name else "this"),
    )
    return f"| {' | '.join(cells)} |"


def plot(figures: Sequence[Figures]) -> str:
    """Every series but that of others, as a panel: how many across, millions a second up, from 0."""
    return drawn(
        "performance.svg.jinja",
        panels=[_panel([found for found in figures if found.line.series == series]) for series in INSTEAD],
    )


def _panel(some: Sequence[Figures]) -> dict[str, object]:
    counts = [found.line.count for found in some]
    top = max(found.rate for found in some)
    return {
        "name": f"M/s by {some[0].line.series}",
        "axis": some[0].line.name,
        "marks": [(share, f"{top * share:.2g}") for share in (0, 0.5, 1)],
        "points": [
            {
                "across": log10(found.line.count / counts[0]) / (log10(counts[-1] / counts[0]) or 1),
                "height": found.rate / top,
                "label": f"{found.line.count:,}",
                "told": f"{found.rate:.2f} M/s at {found.line.count:,}",
            }
            for found in some
        ],
    }
