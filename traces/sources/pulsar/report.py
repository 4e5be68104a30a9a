"""Report sections of recorded transaction coordinators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pydantic import Field

from gapless.traces.report.drawings import Curve
from gapless.traces.report.glossary import Gloss
from gapless.traces.report.sections import Presentation, RowsByPart, Section, SectionRow, Tile, tile
from gapless.traces.report.values import Report, ReportRow
from gapless.traces.report.wording import figure, plural


class CoordinatorRow(ReportRow):
    """One recorded transaction coordinator in numbers, from its log and its answers."""

    part: ClassVar[str] = "coordinators"

    trace: str
    loads: int = Field(description="how often it was loaded")
    begun: int = Field(description="transactions that began")
    ignored: int = Field(description="requests to begin without an answer, at the limit")
    committed: int
    aborted: int
    timed_out: int = Field(description="of these, aborted by the coordinator's own clock")
    rejected: int = Field(description="records that were written, and answered with an error")
    most_active: int = Field(description="at once")
    active: list[tuple[int, int, int]] = Field(
        default=[], description="over time: line, active transactions, and those of them that had ended and came back"
    )
    limits: list[tuple[int, int]] = Field(default=[], description="line, and the limit that holds from there on")
    loaded: list[tuple[int, int, int]] = Field(
        default=[], description="line of a load, active transactions in it, and those of them that had ended before"
    )


def sections(parts: RowsByPart) -> list[Section]:
    """Return the sections that recordings add to a report."""
    rows = [_row(row) for row in parts["coordinators"]]
    return [Section("coordinators", "What coordinators did", "coordinator", rows)]


def _row(row: CoordinatorRow) -> SectionRow:
    figures = (
        figure(row.begun, "transaction began", "transactions began"),
        figure(row.most_active, "active at most", "active at most"),
        figure(row.ignored, "request ignored at the limit", "requests ignored at the limit"),
        figure(row.committed, "committed", "committed"),
        figure(row.aborted, "aborted", "aborted"),
        figure(row.timed_out, "of them by the clock", "of them by the clock"),
        figure(row.loads, "load"),
        figure(row.rejected, "record rejected", "records rejected"),
    )
    return SectionRow(row.source, row.trace, _done(row), figures=figures, curves=tuple(_curves(row)))


def _curves(row: CoordinatorRow) -> Iterator[Curve]:
    """Yield the curves of active transactions against the limit; those that came back after their end are separate."""
    if len(row.active) > 1:
        yield Curve(
            "active",
            "Active transactions and the limit",
            "line",
            "active",
            "had ended, and came back" if any(back for _, _, back in row.active) else "",
            row.active,
            row.limits,
            [
                (
                    line,
                    f"loaded: {found:,} active, {back:,} of them had ended before" if found else "loaded: none active",
                )
                for line, found, back in row.loaded
            ],
        )


def _done(row: CoordinatorRow) -> str:
    """Summarise a coordinator's steps in one sentence."""
    return (
        f"loaded {plural(row.loads, 'time')}; {plural(row.begun, 'transaction')} began, at most "
        f"{row.most_active:,} active at once; {plural(row.ignored, 'request')} ignored at the limit; "
        f"{row.committed:,} committed, {row.aborted:,} aborted, {row.timed_out:,} of them by the clock; "
        f"{plural(row.rejected, 'record')} rejected"
    )


TERMS = (
    Gloss("active", "begun, and neither committed nor aborted: it takes one of the limit's slots"),
    Gloss("by the clock", "its life was over before anybody decided, so that the coordinator aborted it"),
    Gloss("coordinator", "the part of a broker that begins transactions and decides them", ("coordinators",)),
    Gloss("limit", "how many transactions may be active at once; who asks for more is not answered"),
    Gloss("load", "a coordinator is started, and finds in its log what it knows", ("loads", "loaded")),
    Gloss("rejected", "written to the log, and answered with an error"),
)
SENTENCES = {
    "coordinator/transaction-comes-back-as-it-was": "transaction {number} was {log} and came back {status}",
    "coordinator/transaction-is-open": "transaction {number} is {log}, and was worked on or decided again",
    "coordinator/number-is-new": "number {number} was given to a second transaction",
    "coordinator/slot-is-free": "a transaction began with {active} active, and the limit is {limit}",
    "coordinator/limit-leaves-room": "a request was admitted with {active} active, and the limit is {limit}",
    "coordinator/limit-is-reached": "a request was ignored with {active} active, and the limit is {limit}",
    "coordinator/outcome-that-is-told-is-in-the-log": "the answer is {status}, and transaction {number} is {log}",
    "coordinator/outcome-is-the-one-that-was-decided-and-the-first": "transaction {number} was {log} and ended {to}",
    "coordinator/transaction-has-had-its-time": "transaction {number} timed out before its time",
}
"""By the id of a rule, what breaking it means, with the values at hand."""


def tiles(report: Report) -> Iterator[Tile]:
    """Transactions, their outcomes and the events, on the first screen."""
    rows: Sequence[Any] = report.parts.get("coordinators", ())
    of_traces = sum(finding.count for finding in report.violations if finding.spec == "coordinator")
    yield tile(sum(row.begun for row in rows), ("transaction", "transactions"), of_traces)
    committed, aborted = (sum(getattr(row, name) for row in rows) for name in ("committed", "aborted"))
    yield Tile(f"{committed:,}", "of them committed", f"{aborted:,} aborted")
    yield tile(
        report.counts.events, ("event checked", "events checked"), report.findings_total, "not allowed", "all allowed"
    )


PRESENTATION = Presentation(
    "Pulsar recording", "line", ("coordinators",), sections, terms=TERMS, sentences=SENTENCES, tiles=tiles
)
