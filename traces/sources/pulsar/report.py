"""What a report says of recorded transaction coordinators."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from gapless.traces.report.sections import Presentation, RowsByPart, Section, SectionRow
from gapless.traces.report.values import ReportRow
from gapless.traces.report.wording import plural


class CoordinatorRow(ReportRow):
    """One recorded transaction coordinator in numbers, as its log and its answers have them."""

    part: ClassVar[str] = "coordinators"

    trace: str
    loads: int = Field(description="how often it was loaded")
    begun: int = Field(description="transactions that began")
    ignored: int = Field(description="requests to begin that nobody answered, at the limit")
    committed: int
    aborted: int
    timed_out: int = Field(description="of these, aborted by the coordinator's own clock")
    rejected: int = Field(description="records that were written, and answered with an error")
    most_active: int = Field(description="at once")


def sections(parts: RowsByPart) -> list[Section]:
    """What recordings add to a report."""
    rows = [SectionRow(row.source, row.trace, _done(row)) for row in parts["coordinators"]]
    return [Section("coordinators", "What coordinators did", "coordinator", rows)]


def _done(row: CoordinatorRow) -> str:
    """What a coordinator did, in one sentence."""
    return (
        f"loaded {plural(row.loads, 'time')}; {plural(row.begun, 'transaction')} began, at most "
        f"{row.most_active:,} active at once; {plural(row.ignored, 'request')} ignored at the limit; "
        f"{row.committed:,} committed, {row.aborted:,} aborted, {row.timed_out:,} of them by the clock; "
        f"{plural(row.rejected, 'record')} rejected"
    )


PRESENTATION = Presentation("Pulsar recording", "line", ("coordinators",), sections)
