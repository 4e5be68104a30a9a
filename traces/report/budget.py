"""How a page stays below 1 MB: each part of it has a limit in rows and in bytes, and all of them share what is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from markupsafe import escape

from gapless.traces.report.charts import Chart
from gapless.traces.report.log_map import LogMap
from gapless.traces.report.sections import SectionRow
from gapless.traces.report.values import Finding, Source
from gapless.traces.report.wording import story_of

Item = TypeVar("Item")
Limit = tuple[int, int]
"""Rows, and bytes as HTML."""

PAGE = 970_000  # bytes of all parts; style and headings take the rest
TEXT = 1000  # characters of one line or name
STORIES: Limit = (200, 260_000)
FINDINGS: Limit = (150, 100_000)
SOURCES: Limit = (200, 60_000)
LINES: Limit = (200, 30_000)  # of every short list
MAPS: Limit = (8, 80_000)
DRAWN: Limit = (4, 60_000)  # entries of one section with their charts
ENTRIES: Limit = (100, 30_000)  # of one section, without
DETAILS: Limit = (800, 230_000)


class Budget:
    """The bytes of a page that are left."""

    def __init__(self, left: int = PAGE) -> None:
        self.left = left

    def fitting(self, items: Sequence[Item], taking: Callable[[Item], int], limit: Limit) -> list[Item]:
        """As many of the first items as there is room for; their room is then taken."""
        kept: list[Item] = []
        rows, room = limit[0], min(limit[1], self.left)
        for item in items[:rows]:
            room -= (cost := taking(item))
            if room < 0:
                break
            self.left -= cost
            kept.append(item)
        return kept


def said(markup: int, *texts: str) -> int:
    """The bytes that an item takes on the page, at most: the markup around it, and what it says, escaped."""
    return markup + sum(len(escape(text).encode()) for text in texts)


def of_story(lines: Sequence[str]) -> int:
    """The bytes of a story."""
    return sum(said(35, line) for line in lines)


def of_finding(finding: Finding) -> int:
    """The bytes of a finding without its story."""
    where = finding.where
    return said(450, finding.message, finding.rule, finding.trace, *finding.traces, finding.source, where.file)


def of_told(finding: Finding) -> int:
    """The bytes of a finding with its story."""
    return of_finding(finding) + of_story(story_of(finding))


def of_allowed(what: str, first: Finding | None) -> int:
    """The bytes of a deviation that the profile allowed."""
    return said(150, what) + (said(200, first.source, first.trace, first.where.file) if first else 0)


def of_source(source: Source) -> int:
    """The bytes of a source, with its reasons and notes."""
    return said(400, source.path) + of_story((*source.reasons, *source.notes))


def of_drawn(entry: SectionRow) -> int:
    """The bytes of figures and charts."""
    figures = sum(said(40, *figure) for figure in entry.figures)
    return said(200, entry.source, entry.name) + figures + sum(map(_of_chart, entry.charts))


def _of_chart(chart: Chart) -> int:
    """A bar is described beside it, and once more for those who do not see it."""
    return said(700) + sum(said(240, bar.label, bar.said, bar.name, bar.said) for bar in chart.bars)


def of_row(entry: SectionRow) -> int:
    """The bytes of an entry as the row of a table."""
    return said(145 + 20 * len(entry.cells), entry.source, entry.name, *entry.texts)


def of_line(entry: SectionRow) -> int:
    """The bytes of an entry as a line."""
    return said(20, entry.source, entry.name, entry.line)


def of_map(log: LogMap) -> int:
    """The bytes of the picture of a log."""
    titles = [s.title for s in log.boxes] + [s.title for s in log.stretches] + [s.title for s in log.pins]
    return said(3000 + 20 * len(log.stems) + 450 * len(titles), log.source, *titles)
