"""A report as one HTML page, for a browser or a printer: no script, nothing to load, and below 1 MB.

What does not fit is counted, and said to be left out. Nothing is judged here: all that is told stands in a `Report`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from gapless.traces.report import budget
from gapless.traces.report.budget import Budget
from gapless.traces.report.charts import clipped
from gapless.traces.report.log_map import FRAME, drawable, log_maps
from gapless.traces.report.sections import Section, SectionRow, presentation, sections
from gapless.traces.report.values import Finding, Report, Source
from gapless.traces.report.wording import (
    WORST_FIRST,
    allowed,
    by_reason,
    cleaned,
    duration,
    left,
    line_kind,
    plural,
    sentence,
    size,
    some,
    story_of,
)

MEANINGS = {
    "conforms": "Everything that was checked is as it must be.",
    "departs": "The broker broke its contract. Each finding below tells how.",
    "unreadable": "This cannot be judged: it is neither a pass nor an accusation.",
    "inconclusive": "Nothing, or not enough, was checked: this is not a pass.",
}
SIGNS = {"conforms": "✓", "departs": "✗", "unreadable": "!", "inconclusive": "?"}


@dataclass(frozen=True)
class Fitted:
    """As much of a section as fits: entries with their charts, and entries in a table or as lines."""

    section: Section
    drawn: list[SectionRow]
    listed: list[SectionRow]


def html(report: Report) -> str:
    """The report as one page."""
    report, room = cleaned(report, budget.TEXT), Budget()
    found = list(enumerate(report.violations, 1))
    told = room.fitting(found, lambda f: budget.of_told(f[1]), budget.STORIES)
    listed = room.fitting(
        [(n, _brief(finding)) for n, finding in found[len(told) :]], lambda f: budget.of_finding(f[1]), budget.FINDINGS
    )
    sources = room.fitting(_sources(report), budget.of_source, budget.SOURCES)
    reasons = by_reason(report.not_exercised)
    unheard = room.fitting(reasons, lambda r: budget.said(60, *r), budget.LINES)
    away = room.fitting(list(enumerate(allowed(report), 1)), lambda a: budget.of_allowed(*a[1][1:]), budget.LINES)
    tales = [(n, first) for n, (_, _, first) in away if first and first.story]
    covered = room.fitting(list(report.coverage.items()), lambda c: budget.said(100, c[0]), budget.LINES)
    linked = {f"finding-{n}" for n, _ in (*told, *listed)} | {f"anomaly-{n}" for n, _ in away}
    maps = room.fitting(log_maps(report, budget.MAPS[0], linked), budget.of_map, budget.MAPS)
    because = [reason for s in report.sources if s.verdict == report.verdict for reason in s.reasons]
    shown = sections(report)
    return _template().render(
        report=report,
        sentence=sentence(report, shown),
        meaning=MEANINGS[report.verdict],
        because=_short(because, 3),
        numbers=_numbers(report, shown),
        sources=sources,
        pictures=maps,
        kinds={kind for log in maps for kind in log.kinds},
        together=max((log.together for log in maps), default=1),
        drawable=len(drawable(report)),
        frame=FRAME,
        found=len(found),
        told=told,
        listed=listed,
        away=away,
        tales=len(tales),
        told_away={n for n, _ in room.fitting(tales, lambda t: budget.of_story(t[1].story), budget.LINES)},
        sections=[_fitted(section, room) for section in shown],
        unheard=unheard,
        unheard_count=len(reasons),
        covered=covered,
    )


@cache
def _template() -> Template:
    loader = PackageLoader("gapless.traces.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"plural": plural, "size": size, "left": left, "some": some, "story": story_of}
    environment.filters |= {"count": "{:,}".format, "kind": lambda kind: presentation(kind).label}
    environment.globals |= {"SIGNS": SIGNS, "line_kind": line_kind}
    return environment.get_template("report.html.j2")


def _fitted(section: Section, room: Budget) -> Fitted:
    drawn = [entry for entry in section.entries[: budget.DRAWN[0]] if entry.charts or entry.figures]
    drawn = room.fitting(drawn, budget.of_drawn, budget.DRAWN)
    limit = budget.DETAILS if section.detail else budget.ENTRIES
    taking = budget.of_row if section.header else budget.of_line
    return Fitted(section, drawn, room.fitting(section.entries[len(drawn) :], taking, limit))


def _sources(report: Report) -> list[Source]:
    """The sources; their notes do not fill the page."""
    return [
        source.model_copy(update={"reasons": _short(source.reasons, 10), "notes": _short(source.notes, 10)})
        for source in sorted(report.sources, key=lambda source: WORST_FIRST.index(source.verdict))
    ]


def _short(lines: list[str], most: int) -> list[str]:
    more = [f"and {len(lines) - most:,} more"] if len(lines) > most else []
    return [clipped(line, 500) for line in lines[:most]] + more


def _brief(finding: Finding) -> Finding:
    """A finding without its story."""
    return finding.model_copy(
        update={"message": clipped(finding.message, 300), "story": [], "otherwise": "", "here": {}}
    )


def _numbers(report: Report, shown: list[Section]) -> list[tuple[str, str]]:
    """The numbers at the top of the page, as (number, what it counts)."""
    counts = [
        (sum(s.records for s in report.sources), "record", ""),
        (report.counts.queues, "queue", ""),
        *((*section.total, "") for section in shown if section.total[0]),
        (report.counts.events, "event checked", "events checked"),
        (max(report.findings_total, len(report.violations)), "violation", ""),
        (sum(report.anomalies.values()), "anomaly", "anomalies"),
    ]
    numbers = [plural(*count).partition(" ")[::2] for count in counts]
    return [*numbers, (size(sum(s.bytes for s in report.sources)), "read"), (duration(report.seconds), "taken")]
