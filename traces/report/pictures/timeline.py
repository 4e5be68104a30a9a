"""The steps that lead to a finding as rows, and the values that its rule reads as columns: for any spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from gapless.traces.report.model import Model

ColumnKind = Literal["state", "argument", "recorded", "variable"]


class TimelineColumn(Model):
    """A value that the broken rule reads."""

    name: str
    kind: ColumnKind = Field(
        description="`argument`: of the last step; `recorded`: after it; `variable`: of a rule about several numbers"
    )


class TimelineCell(Model):
    """A value at one step: `before` too where the step changed it. Names stand for the values that have one."""

    value: int | str | None = None
    before: int | str | None = None
    wrong: bool = Field(default=False, description="it contradicts the rule")


class TimelineRow(Model):
    """One step: the number of its event in the trace, and a cell for each column."""

    number: int
    call: str = Field(description="the step in the notation of stories")
    fate: str = Field(default="", description="the outcome, if the step was not simply taken")
    cells: list[TimelineCell]


class Timeline(Model):
    """The steps that made the values a rule reads, and last the step that breaks it."""

    kind: Literal["timeline"] = "timeline"
    columns: list[TimelineColumn]
    rows: list[TimelineRow]
    before: int = Field(description="events before the last row; rows are some of them")
    broken: int = Field(default=0, description="how many of the events before break a rule, too")


@dataclass(frozen=True)
class Strip:
    """The events up to a finding as a bar, with a tick for each that is shown."""

    picture: Timeline

    width = 1000
    last = 14  # units for the event that departs

    @property
    def ticks(self) -> list[float]:
        """The places of the steps that are shown."""
        last = self.picture.rows[-1].number
        room = self.width - self.last
        return sorted({round((row.number - 0.5) / max(last - 1, 1) * room, 1) for row in self.picture.rows[:-1]})


@dataclass(frozen=True)
class TimelineShapes:
    """A timeline as a strip and a table."""

    picture: Timeline
    name: str

    @property
    def strip(self) -> Strip | None:
        """The strip; none where no event before is known."""
        return Strip(self.picture) if self.picture.before else None

    @property
    def shown(self) -> int:
        """The number of events before the last that have a row."""
        return len(self.picture.rows) - 1

    @property
    def title(self) -> str:
        """The strip in words."""
        if self.picture.broken:
            return f"{self.picture.before:,} events, {self.picture.broken:,} of which break a rule, then this one"
        events = "event" if self.picture.before == 1 else "events"
        return f"{self.picture.before:,} {events} fine, then this one" if self.picture.before else "The step at fault"

    @property
    def note(self) -> str:
        """The events that have no row."""
        more = self.picture.before - self.shown
        if not self.shown:
            return f"{'they change' if more > 1 else 'it changes'} no value that the rule reads" if more else ""
        return f"{self.shown:,} of them shown" + (f"; {more:,} left out" if more > 0 else "")

    @property
    def description(self) -> str:
        """The last row in words, for readers who do not see the picture."""
        row = self.picture.rows[-1]
        pairs = zip(self.picture.columns, row.cells, strict=True)
        values = [
            f"{column.name} is {shown_value(cell.value)}{' (wrong)' if cell.wrong else ''}" for column, cell in pairs
        ]
        return "; ".join([f"{row.call}: {row.fate}", *values])


def shown_value(value: int | str | None) -> str:
    """A value as a reader compares it: digits in groups."""
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else value
