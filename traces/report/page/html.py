"""A report as one HTML page, for a browser or a printer: no script, nothing to load, and below 1 MB.

The number of parts that do not fit is shown. Nothing is judged here: a page shows what its `Report` has.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from gapless.spec.catalog import SPECS
from gapless.traces.report import wording
from gapless.traces.report.charts import clipped
from gapless.traces.report.glossary import COMMON, Glossary
from gapless.traces.report.page import budget, first_screen
from gapless.traces.report.page.citations import cited, linked
from gapless.traces.report.page.log_map import FRAME, drawable, log_maps
from gapless.traces.report.page.passages import Passage
from gapless.traces.report.page.story_layout import story_layout
from gapless.traces.report.pictures.figures import figure
from gapless.traces.report.sections import Section, advice, presentation, sections
from gapless.traces.report.values import Finding, Report, SourceRow

STEPS = 60  # of one spec that are named
SIGNS = {"conforms": "✓", "departs": "✗", "unreadable": "!", "inconclusive": "?"}


def html(report: Report) -> str:
    """The report as one page."""
    report, room = wording.cleaned(report, budget.TEXT), budget.Budget()
    words = Glossary((*COMMON, *(term for kind in _kinds(report) for term in presentation(kind).terms)))
    given = {"report": report, "frame": FRAME, "explained": words.explained}
    piece: Any = _environment().get_template("pieces.html.j2").make_module(given)
    found, parts = _found(report, piece, room), sections(report)
    because = [reason for s in report.sources if s.verdict == report.verdict for reason in s.reasons]
    groups, steps = wording.unchecked(report.not_exercised), _coverage(report)
    logs = log_maps(report, budget.LOGS[0], _anchors(found))
    drawn = room.fitting(piece.log, list(zip(logs, range(1, len(logs) + 1), strict=True)), budget.LOGS)
    contents = dict(
        given,
        **found,
        glossary=words.used,
        result=wording.result(report),
        headline=first_screen.headline(report),
        advice=[f"{wording.capitalised(line)}." for line in advice(report)],
        facts=first_screen.facts(report),
        tiles=first_screen.tiles(report),
        because=[f"{wording.capitalised(reason)}." for reason in _short(because, 3)],
        sources=room.fitting(piece.source, [(source,) for source in _sources(report)], budget.SOURCES),
        logs=list(zip(logs, drawn, strict=False)),
        kinds={kind for log in logs[: len(drawn)] for kind in log.kinds},
        together=max((log.together for log in logs[: len(drawn)]), default=1),
        drawable=len(drawable(report)),
        sections=[_section(section, piece, room) for section in parts],
        groups=len(groups),
        unheard=room.fitting(piece.unheard, [(group,) for group in groups], budget.LINES),
        steps=len(steps),
        covered=room.fitting(piece.covered, [(spec, actions[:STEPS]) for spec, actions in steps], budget.LINES),
    )
    page = _environment().get_template("report.html.j2")
    without = page.render(contents, passages=[], unshown=[])
    return page.render(contents, **_passages(cited(without), piece))


def _passages(passages: list[Passage], piece: Any) -> dict[str, list[str]]:
    """The passages that are cited; those for which there is no room have a line each, for links lead there."""
    names = frozenset(passage.name for passage in passages)
    shown = budget.Budget().fitting(piece.passage, [(one, one.html(names)) for one in passages], budget.PASSAGES)
    return {"passages": shown, "unshown": [piece.unshown(one) for one in passages[len(shown) :]]}


def _found(report: Report, piece: Any, room: budget.Budget) -> dict[str, Any]:
    """The findings, hazards and anomalies, as many as there is room for."""
    found = list(enumerate(report.violations, 1))
    shown = room.fitting(piece.finding, [(n, f, figure(f.picture, f"picture-{n}")) for n, f in found], budget.STORIES)
    deviations = [(n, *one) for n, one in enumerate(wording.allowed(report), 1)]
    tales = [(n, first) for n, _, _, first in deviations[: budget.LINES[0]] if first and first.story]
    listed = room.fitting(piece.listed, [(n, _brief(f)) for n, f in found[len(shown) :]], budget.FINDINGS)
    feared = room.fitting(piece.finding, _hazards(report), budget.STORIES)
    stories = dict(zip((n for n, _ in tales), room.fitting(piece.tale, tales, budget.LINES), strict=False))
    allowed = room.fitting(piece.allowed, [(*one, one[0] in stories) for one in deviations], budget.LINES)
    return {
        "found": len(found), "shown": shown, "listed": listed, "feared": feared, "allowed": allowed,
        "tales": len(tales), "stories": stories,
    }  # fmt: skip


def _anchors(found: dict[str, Any]) -> set[str]:
    """The names of the findings and anomalies that are on the page."""
    findings = len(found["shown"]) + len(found["listed"])
    return {f"finding-{n + 1}" for n in range(findings)} | {f"anomaly-{n + 1}" for n in range(len(found["allowed"]))}


def _hazards(report: Report) -> list[tuple[str, Finding, str]]:
    """The hazards with their numbers and pictures."""
    return [(f"h{n}", hazard, figure(hazard.picture, f"picture-h{n}")) for n, hazard in enumerate(report.hazards, 1)]


def _rule_source(finding: Finding) -> str:
    """The citation of the rule that is broken; empty if it has none of its own."""
    spec = SPECS.get(finding.spec)
    rule = spec.rules.get(finding.rule) if spec else None
    return rule.source if rule and spec and rule.source != spec.source else ""


def _kinds(report: Report) -> list[str]:
    """The kinds of the sources, each once."""
    return list(dict.fromkeys(source.kind for source in report.sources))


def _coverage(report: Report) -> list[tuple[str, list[tuple[str, int, str]]]]:
    """Every spec of which a step was taken; of each of its steps the count, in words, too, if it is 0."""
    specs: dict[str, list[tuple[str, int, str]]] = {}
    for name, count in report.coverage.items():
        spec, _, action = name.partition(".")
        specs.setdefault(spec, []).append((action, count, f"{count:,}" if count else _never(report, name)))
    return [(spec, actions) for spec, actions in specs.items() if any(count for _, count, _ in actions)]


def _never(report: Report, step: str) -> str:
    """The word for a step that no recording surely took: what was recorded of it, or *never*."""
    seen = [line.rpartition(": ")[2] for line in report.not_exercised if line.startswith(f"{step}: never taken ")]
    return "; ".join(seen) or "never"


@cache
def _environment() -> Environment:
    loader = PackageLoader("gapless.traces.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    for word in (wording.plural, wording.size, wording.left, wording.some, wording.story_of, wording.parted):
        environment.filters[word.__name__] = word
    environment.filters |= {"linked": linked, "story_layout": story_layout}
    environment.filters |= {"sentence": first_screen.sentence, "consequence": first_screen.consequence}
    environment.filters |= {
        "count": "{:,}".format,
        "width": wording.width_of_calls,
        "located": first_screen.located,
        "source": _rule_source,
        "some_of": lambda lines: _short(lines, 10),
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
