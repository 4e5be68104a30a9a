"""The first screen of a page: the headline, the facts about the check, and the numbers of what is intact."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from gapless.traces.events.files import is_event_file, is_parquet
from gapless.traces.report import wording
from gapless.traces.report.charts import clipped
from gapless.traces.report.sections import Tile, general_tiles, presentation
from gapless.traces.report.values import Finding, Report, SourceRow

LONG_NUMBER = re.compile(r"(?<![\w.:/+#-])(?<!key )(?<!keys )[1-9]\d{4,}(?![\w:/-])")
OWNERS = 3  # of several inputs that are named
MEANINGS = {
    "conforms": "Every rule for which there is evidence is kept.",
    "departs": "A rule is broken. The findings below show the steps.",
    "unreadable": "This is neither a pass nor a finding: the input cannot be judged.",
    "inconclusive": "This is no pass: nothing, or not enough, could be checked.",
}


def headline(report: Report) -> list[str]:
    """The verdict for a reader who was not there: what happened, and the consequence."""
    if report.verdict != "departs" or not report.violations:
        return [MEANINGS[report.verdict]]
    first = report.violations[0]
    return [sentence(first), *consequence(first)]


def sentence(finding: Finding) -> str:
    """The finding as a sentence with its end, long numbers grouped."""
    text = LONG_NUMBER.sub(lambda number: f"{int(number[0]):,}", clipped(finding.summary or finding.message, 300))
    return f"{text if text.startswith(finding.trace) else wording.capitalised(text)}."


def consequence(finding: Finding) -> list[str]:
    """The consequence of a finding as a sentence, if its spec states one."""
    return [f"{wording.capitalised(finding.otherwise.rstrip('.'))}."] if finding.otherwise else []


def located(finding: Finding) -> str:
    """The place in the file of a finding: `line 14`, `row 14`, `byte 2,400`."""
    path = Path(finding.where.file)
    unit = "byte" if not is_event_file(path) else "row" if is_parquet(path) else "line"
    return f"{unit} {finding.where.offset:,}"


def tiles(report: Report) -> list[Tile]:
    """The numbers of what is intact; those of any spec where the inputs are of several kinds."""
    kinds = {source.kind for source in report.sources if source.kind != "unknown"}
    if not kinds or not report.counts.events:
        return []
    found = (presentation(kinds.pop()).tiles if len(kinds) == 1 else general_tiles)(report)
    if report.verdict in ("conforms", "departs"):
        return [*found]
    return [one if one.is_broken else one._replace(state="no violation found") for one in found]


def facts(report: Report) -> list[tuple[str, str]]:
    """The facts about the check, by name: the inputs, their age, the checker."""
    known = [source for source in report.sources if source.kind != "unknown"] or report.sources
    owners = list(dict.fromkeys(source.owner for source in report.sources if source.owner))
    found = [
        ("Written by", "; ".join(owners[:OWNERS]) + f", and {len(owners) - OWNERS:,} more" * (len(owners) > OWNERS))
    ]
    found = [*(found if owners else []), ("Checked", _inputs(report.sources, known) + _events(report))]
    if times := [source.newest for source in report.sources if source.newest is not None]:
        found.append(("Newest file", f"{datetime.fromtimestamp(max(times), UTC):%Y-%m-%d %H:%M:%S} UTC"))
    return [*found, ("Checked by", f"gapless {version('gapless')}, {report.profile} profile, {report.engine} engine")]


def _events(report: Report) -> str:
    """The events and rules, unless a tile has them."""
    if not report.counts.events or any(tile.what.startswith("event") for tile in tiles(report)):
        return ""
    rules = f" against {wording.plural(report.counts.rules, 'rule')}" if report.counts.rules else ""
    return f"; {wording.plural(report.counts.events, 'event')}{rules}"


def _inputs(sources: Iterable[SourceRow], known: Iterable[SourceRow]) -> str:
    """The kinds of the inputs, and their size."""
    kinds = dict.fromkeys(presentation(source.kind).label for source in known)
    size = wording.size(sum(source.bytes for source in sources))
    state = {wording.left(source) for source in sources} - {""}
    return ", ".join([*kinds, size, *(f"{one} stop" for one in state if len(state) == 1)])
