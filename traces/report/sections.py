"""Sections in which a source shows its rows; every output format draws them in its own way.

A source gives a `Presentation` for the kind of input that it reads. Text and page know nothing else of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from gapless.traces.report.charts import Chart, span
from gapless.traces.report.drawings import Curve
from gapless.traces.report.glossary import Gloss
from gapless.traces.report.values import WORST, Finding, OverdueRow, Report, VerdictName

RowsByPart = Mapping[str, Sequence[Any]]
"""The rows of a report by part: `ReportRow`s, each of the model that its source has for that part."""


@dataclass(frozen=True)
class SectionRow:
    """One row of a section, in several forms: a format chooses among them.

    `line`: a sentence · `cells`: numbers, in the order of the section's headings · `lines`: what else a terminal says
    where there are few rows · `figures`: (number, what it counts) · `charts`, `curves`: drawn where there are few rows.
    """

    source: str
    name: str = ""  # empty where there is one row for each source
    line: str = ""
    cells: tuple[int | str, ...] = ()
    verdict: VerdictName | None = None
    lines: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    charts: tuple[Chart, ...] = ()
    curves: tuple[Curve, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The cells as they are shown."""
        return [f"{cell:,}" if isinstance(cell, int) else cell for cell in self.cells]

    def head(self, report: Report) -> str:
        """The name of the row; with its source if the report has several."""
        if not self.name:
            return self.source
        return f"{self.source}: {self.name}" if len(report.sources) > 1 else self.name


@dataclass(frozen=True)
class Section:
    """A part of a report: a title, and rows below it.

    `headings`: of names and cells, with commas; without them, rows are lines, on a page too · `total`: what the closing
    sentence and the top of a page count, as (number, noun) · `detail`: a long table, which is folded or left out
    where it would hide the verdict.
    """

    name: str  # of its place on a page
    title: str
    noun: str  # for one row
    rows: Sequence[SectionRow]
    caption: str = ""
    headings: str = ""
    note: str = ""
    total: tuple[int, str] = (0, "")
    detail: bool = False

    @property
    def header(self) -> list[str]:
        """The headings, one by one."""
        return self.headings.split(", ") if self.headings else []


class Tile(NamedTuple):
    """A number on the first screen of a page, what it counts, and how much of it is broken, in words."""

    number: str
    what: str
    state: str
    is_broken: bool = False


def tile(count: int, noun: tuple[str, str], broken: int, state: str = "broken", whole: str = "none broken") -> Tile:
    """A tile of things of which some may be broken. `whole`: its state if none is."""
    return Tile(f"{count:,}", noun[count != 1], f"{broken:,} {state}" if broken else whole, broken > 0)


def broken_traces(findings: Iterable[Finding]) -> tuple[int, str]:
    """The number of traces that findings name, and the word for it: a finding of many places names the first few."""
    found = [*findings]
    traces = {(finding.source, trace) for finding in found for trace in finding.traces or [finding.trace]}
    some = any(finding.count > len(finding.traces or [finding.trace]) for finding in found)
    return len(traces), "or more broken" if some else "broken"


def general_tiles(report: Report) -> Iterator[Tile]:
    """Traces, events and rules, for any spec."""
    broken = {finding.rule for finding in report.violations}
    traces, state = broken_traces(report.violations)
    yield tile(report.counts.traces, ("trace", "traces"), traces, state)
    yield tile(
        report.counts.events, ("event checked", "events checked"), report.findings_total, "not allowed", "all allowed"
    )
    yield tile(report.counts.rules, ("rule checked", "rules checked"), len(broken))


@dataclass(frozen=True)
class Presentation:
    """The form in which one kind of input is shown, and what its source adds to a report.

    `parts`: the keys of its rows in JSON, there even when empty · `conforms`: what `gapless explain` says of a trace
    that departs nowhere, its name made safe to show · `terms`: its words that not every reader knows · `fixed`: by
    spec, patterns of the first part of a trace's name and of what follows its slash, where no user names it ·
    `numbered`: the part and the field of names that end in `-` and a number, which says nothing of anybody ·
    `subjects`: by spec, what a trace of it is, where its name alone may be that of another · `sentences`: by the id of
    a rule, what breaking it means, with the values at hand as `{name}` · `tiles`: the numbers of the first screen ·
    `advice`: what to do now with an input in which something departs, in a few sentences.
    """

    label: str
    unit: str = "record"  # of what is read
    parts: tuple[str, ...] = ()
    sections: Callable[[RowsByPart], Iterable[Section]] = lambda _: ()
    conforms: Callable[[Report, str], Iterable[str]] = lambda report, trace: (
        f"{trace} conforms: {report.counts.events:,} events.",
    )
    by_trace: bool = True  # each trace is judged by itself, and counted; otherwise records and queues are counted
    terms: tuple[Gloss, ...] = ()
    fixed: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    numbered: tuple[str, str] | None = None
    subjects: Mapping[str, str] = field(default_factory=dict)
    sentences: Mapping[str, str] = field(default_factory=dict)
    tiles: Callable[[Report], Iterable[Tile]] = general_tiles
    advice: Callable[[Report], Iterable[str]] = lambda _: ()


PRESENTATIONS = {"unknown": Presentation("not recognised", by_trace=False)}
"""The presentation of each kind of input; the registry of sources adds theirs."""


def presentation(kind: str) -> Presentation:
    """The presentation of a kind of input; of an unknown kind, its name alone."""
    return PRESENTATIONS.get(kind, Presentation(kind.replace("-", " ")))


def advice(report: Report) -> list[str]:
    """The first steps for inputs that depart, as their sources name them."""
    kinds = dict.fromkeys(source.kind for source in report.sources if source.verdict == "departs")
    return list(dict.fromkeys(line for kind in kinds for line in presentation(kind).advice(report)))


def sections(report: Report) -> list[Section]:
    """The sections of all sources but empty ones: details last, in each section the worst rows first."""
    verdicts = {source.path: source.verdict for source in report.sources}
    found = []
    for shows in PRESENTATIONS.values():
        for section in shows.sections({**dict.fromkeys(shows.parts, ()), **report.parts}):
            worse = sorted(section.rows, key=lambda e: -WORST.index(e.verdict or verdicts.get(e.source, WORST[0])))
            found += [replace(section, rows=worse)] if worse else []
    found += _overdue(report)
    return sorted(found, key=lambda section: section.detail)


def _overdue(report: Report) -> Iterator[Section]:
    """The section of tasks that wait beyond their time, the worst first: of any source."""
    listed: Sequence[Any] = report.parts.get(OverdueRow.part, ())
    rows = [
        SectionRow(row.source, row.trace, _waits(row), (row.task, _moment(row.due), span(row.late)))
        for row in sorted(listed, key=lambda row: -row.late)
    ]
    count = report.anomalies.get(OverdueRow.part, 0)
    if rows:
        yield Section(
            "overdue",
            "Overdue",
            "task",
            rows,
            caption=f"{len(rows):,} of {count:,}" if len(rows) < count else "",
            headings="trace, what waits, its time came, late by",
            note="No promise says how late a broker may be, so this changes no verdict; --fail-on overdue=60s does. "
            "Only time counts in which the broker is known to have been alive.",
        )


def _waits(row: OverdueRow) -> str:
    return f"{row.task} overdue by {span(row.late)}, since {_moment(row.due)}"


def _moment(time: int) -> str:
    """A time in ms as a person reads it."""
    try:
        return f"{datetime.fromtimestamp(time // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError):  # no clock of a broker shows it
        return f"{time:,} ms"


def together(parts: Iterable[RowsByPart]) -> dict[str, list[Any]]:
    """The rows of several sources, by part; a key for every part that there could be."""
    names = [*(name for shows in PRESENTATIONS.values() for name in shows.parts), OverdueRow.part]
    found: dict[str, list[Any]] = {name: [] for name in names}
    for one in parts:
        for name, rows in one.items():
            found.setdefault(name, []).extend(rows)
    return found
