"""A report as one HTML page, for a browser or a printer: no script, nothing to load, and below 1 MB.

What does not fit is counted, and said to be left out. Nothing is judged here: all that is told stands in a `Report`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from gapless.traces.report import budget, wording
from gapless.traces.report.charts import clipped
from gapless.traces.report.glossary import COMMON, Glossary
from gapless.traces.report.log_map import FRAME, drawable, log_maps
from gapless.traces.report.pictures.figures import figure
from gapless.traces.report.sections import Section, presentation, sections
from gapless.traces.report.values import Finding, Report, SourceRow

MEANINGS = {
    "conforms": "Everything that was checked is as it must be.",
    "departs": "The broker broke its contract. Each finding below tells how.",
    "unreadable": "This cannot be judged: it is neither a pass nor an accusation.",
    "inconclusive": "Nothing, or not enough, was checked: this is not a pass.",
}
STEPS = 60  # of one spec that are named
SIGNS = {"conforms": "✓", "departs": "✗", "unreadable": "!", "inconclusive": "?"}


def html(report: Report) -> str:
    """The report as one page."""
    report, room = wording.cleaned(report, budget.TEXT), budget.Budget()
    words = Glossary((*COMMON, *(term for kind in _kinds(report) for term in presentation(kind).terms)))
    given = {"report": report, "frame": FRAME, "explained": words.explained}
    piece: Any = _environment().get_template("pieces.html.j2").make_module(given)
    found = list(enumerate(report.violations, 1))
    told = room.fitting(piece.told, [(n, f, figure(f.picture, f"picture-{n}")) for n, f in found], budget.STORIES)
    listed = room.fitting(piece.listed, [(n, _brief(f)) for n, f in found[len(told) :]], budget.FINDINGS)
    feared = room.fitting(piece.told, _hazards(report), budget.STORIES)
    deviations = [(n, *one) for n, one in enumerate(wording.allowed(report), 1)]
    tales = [(n, first) for n, _, _, first in deviations[: budget.LINES[0]] if first and first.story]
    stories = dict(zip((n for n, _ in tales), room.fitting(piece.tale, tales, budget.LINES), strict=False))
    allowed = room.fitting(piece.allowed, [(*one, one[0] in stories) for one in deviations], budget.LINES)
    linked = {f"finding-{n + 1}" for n in range(len(told) + len(listed))} | {
        f"anomaly-{n + 1}" for n in range(len(allowed))
    }
    logs = log_maps(report, budget.LOGS[0], linked)
    drawn = room.fitting(piece.log, list(zip(logs, range(1, len(logs) + 1), strict=True)), budget.LOGS)
    because = [reason for s in report.sources if s.verdict == report.verdict for reason in s.reasons]
    reasons, parts = wording.by_reason(report.not_exercised), sections(report)
    steps = _coverage(report.coverage)
    met = [(spec, actions[:STEPS]) for spec, actions in steps if any(count for _, count in actions)]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            given,
            glossary=words.used,
            sentence=wording.sentence(report, parts),
            headline=_headline(report),
            because=_short(because, 3),
            judged=_judged(report, steps),
            numbers=_numbers(report, parts),
            sources=room.fitting(piece.source, [(source,) for source in _sources(report)], budget.SOURCES),
            logs=list(zip(logs, drawn, strict=False)),
            kinds={kind for log in logs[: len(drawn)] for kind in log.kinds},
            together=max((log.together for log in logs[: len(drawn)]), default=1),
            drawable=len(drawable(report)),
            found=len(found),
            told=told,
            listed=listed,
            feared=feared,
            allowed=allowed,
            tales=len(tales),
            stories=stories,
            sections=[_section(section, piece, room) for section in parts],
            reasons=len(reasons),
            unheard=room.fitting(piece.unheard, reasons, budget.LINES),
            steps=len(met),
            covered=room.fitting(piece.covered, met, budget.LINES),
            unmet=[spec for spec, actions in steps if not any(count for _, count in actions)][:STEPS],
        )
    )


def _hazards(report: Report) -> list[tuple[str, Finding, str]]:
    """The hazards with their numbers and pictures."""
    return [(f"h{n}", hazard, figure(hazard.picture, f"picture-h{n}")) for n, hazard in enumerate(report.hazards, 1)]


def _kinds(report: Report) -> list[str]:
    """The kinds of the sources, each once."""
    return list(dict.fromkeys(source.kind for source in report.sources))


def _headline(report: Report) -> str:
    """The verdict in one sentence."""
    if report.verdict != "departs" or not report.violations:
        return MEANINGS[report.verdict]
    first, total = report.violations[0], max(report.findings_total, len(report.violations))
    often = "once: " if total == 1 else f"{total:,} times; the first: "
    return f"The broker broke its contract {often}{clipped(first.message, 300)}."


def _judged(report: Report, steps: list[tuple[str, list[tuple[str, int]]]]) -> list[str]:
    """What was judged, a line each."""
    events = wording.plural(report.counts.events, "event")
    rules = f" held against {wording.plural(report.counts.rules, 'rule')}" if report.counts.rules else " judged"
    met = [(spec, sum(count > 0 for _, count in actions), len(actions)) for spec, actions in steps]
    some = [f"{spec} {taken} of {all_of}" for spec, taken, all_of in met if taken]
    more = f", and {wording.plural(len(some) - 4, 'more spec')}" if len(some) > 4 else ""
    lines = [f"{events}{rules}"]
    return lines + ([f"Steps met at least once: {', '.join(some[:4])}{more}"] if some else [])


def _coverage(counts: dict[str, int]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Every spec with its steps, and how often each was taken."""
    specs: dict[str, list[tuple[str, int]]] = {}
    for name, count in counts.items():
        spec, _, action = name.partition(".")
        specs.setdefault(spec, []).append((action, count))
    return [*specs.items()]


@cache
def _environment() -> Environment:
    loader = PackageLoader("gapless.traces.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    for word in (wording.plural, wording.size, wording.left, wording.some, wording.story_of, wording.parted):
        environment.filters[word.__name__] = word
    environment.filters |= {
        "count": "{:,}".format,
        "width": wording.width_of_calls,
        "kind": lambda kind: presentation(kind).label,
    }
    environment.globals |= {"SIGNS": SIGNS, "line_kind": wording.line_kind}
    return environment


def _section(section: Section, piece: Any, room: budget.Budget) -> tuple[Section, list[str], list[str]]:
    """A section, with as many of its rows as fit: the first with their charts, others in a table or as lines."""
    drawn = [
        (section, row, number) for number, row in enumerate(section.rows, 1) if row.charts or row.curves or row.figures
    ]
    drawings = room.fitting(piece.drawn, drawn, budget.DRAWN)
    rest = [(section, row) for row in section.rows[len(drawings) :]]
    return section, drawings, room.fitting(piece.row, rest, budget.DETAILS if section.detail else budget.ROWS)


def _sources(report: Report) -> list[SourceRow]:
    """The sources, the worst first; their notes do not fill the page."""
    return [
        source.model_copy(update={"reasons": _short(source.reasons, 10), "notes": _short(source.notes, 10)})
        for source in sorted(report.sources, key=lambda source: wording.WORST_FIRST.index(source.verdict))
    ]


def _short(lines: list[str], most: int) -> list[str]:
    more = [f"and {len(lines) - most:,} more"] if len(lines) > most else []
    return [clipped(line, 500) for line in lines[:most]] + more


def _brief(finding: Finding) -> Finding:
    return finding.model_copy(update={"message": clipped(finding.message, 300)})


def _numbers(report: Report, parts: list[Section]) -> list[tuple[str, str]]:
    """The numbers at the top of the page, as (number, what it counts)."""
    counts = [
        (sum(s.records for s in report.sources), "record", ""),
        (report.counts.queues, "queue", ""),
        *((*section.total, "") for section in parts if section.total[0]),
        (report.counts.events, "event checked", "events checked"),
        (max(report.findings_total, len(report.violations)), "violation", ""),
        (sum(report.anomalies.values()), "anomaly", "anomalies"),
    ]
    numbers = [wording.figure(*count) for count in counts]
    return [
        *(one for one in numbers if one != ("0", "queues")),
        (wording.size(sum(s.bytes for s in report.sources)), "read"),
        (wording.duration(report.seconds), "taken"),
    ]
