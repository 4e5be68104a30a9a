"""The words that text and page share: numbers, the closing sentence, stories, and names that cannot be trusted.

Names come from stores and may have any letters. They are shown, never obeyed: by a terminal, by rich or by a browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from gapless.spec.catalog import SPECS
from gapless.traces.problems import shown
from gapless.traces.replay.notation import DEPARTING, consequence, values_text
from gapless.traces.report.charts import clipped
from gapless.traces.report.sections import Section, presentation
from gapless.traces.report.values import WORST, Finding, Report, SourceRow, VerdictName

REASON = 200  # letters of a reason in the last line
STEP_NAME = re.compile(r"\w+\.\w+")
WORST_FIRST: tuple[VerdictName, ...] = WORST[::-1]


def sentence(report: Report, sections: Iterable[Section]) -> str:
    """The verdict and the extent of the check, as the end of a line that begins with the verdict's name."""
    how = f"{report.profile} profile" + ("" if report.engine == "local" else f", {report.engine} engine")
    took = f"in {duration(report.seconds)}{_compiling(report)}"
    return f"{result(report)} {extent(report, sections)} {took} ({how})"


def result(report: Report) -> str:
    """The verdict as a sentence, like `1 violation found.`, with its end."""
    if report.verdict == "conforms":
        return "No violation found."
    if report.verdict != "departs":
        return f"{'Not enough evidence' if report.verdict == 'inconclusive' else 'Cannot be read'}: {_reason(report)}."
    stories = len(report.violations)
    total = max(report.findings_total, stories)
    parts = f", in {plural(stories, 'story', 'stories')}" if stories != total else ""
    return f"{plural(total, 'violation')} found{parts}."


def _reason(report: Report) -> str:
    """The first reason of a verdict, and the number of the others."""
    reasons = [reason for source in report.sources if source.verdict == report.verdict for reason in source.reasons]
    if not reasons:
        return "nothing was checked" if not report.sources else "see above"
    more = f", and {plural(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    return clipped(reasons[0].rstrip("."), REASON) + more


def extent(report: Report, sections: Iterable[Section]) -> str:
    """The amount of what was read and checked."""
    known = [source for source in report.sources if source.kind != "unknown"] or report.sources
    read = [source.records for source in known if not presentation(source.kind).by_trace]
    seen = [plural(sum(read), "record")] if read else [plural(report.counts.traces, "trace")]
    seen += [plural(report.counts.queues, "queue")] if read and report.counts.queues else []
    seen += [plural(*section.total) for section in sections if section.total[0]]
    return f"{', '.join(seen)} read, {plural(report.counts.events, 'event')} checked"


def _compiling(report: Report) -> str:
    """The part of the time that the next check will not take; nothing where it is too little to be seen."""
    if report.compiling < 0.05:
        return ""
    return f", with {duration(report.compiling)} of processor time for compiling native code, once"


def capitalised(text: str) -> str:
    """The text with a capital at its beginning, unless it begins with a path or a name with a sign in it."""
    first = text.split(" ", 1)[0].rstrip(",;.")
    return text[:1].upper() + text[1:] if re.fullmatch(r"[^\W\d_]+([-'][^\W\d_]+)*", first) else text


def plural(count: int, one: str, many: str = "") -> str:
    """`1 record`, `4,897 records`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def figure(count: int, one: str, many: str = "") -> tuple[str, str]:
    """The same in two: the number, and what it counts."""
    number, _, what = plural(count, one, many).partition(" ")
    return number, what


def size(count: int) -> str:
    """Bytes as a person reads them: `4.0 MiB`."""
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:,.1f} {unit}" if count >= 1024 else plural(count, "byte")


def duration(seconds: float) -> str:
    """Seconds as a person reads them."""
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:,.0f} s"


def left(source: SourceRow) -> str:
    """The state in which the broker left its store."""
    return {True: "clean", False: "unclean", None: ""}[source.clean]


class CheckGap(NamedTuple):
    """Rules and steps that one reason keeps from being checked. `others`: names that are no rules, steps or specs."""

    reason: str
    names: list[str]
    rules: int
    steps: int
    others: list[str]

    @property
    def total(self) -> int:
        """The number of rules, steps and other things."""
        return self.rules + self.steps + len(self.others)

    @property
    def amount(self) -> str:
        """The number of rules and steps in words; empty if there are none."""
        counts = ((self.rules, "rule"), (self.steps, "step"))
        return " and ".join(plural(count, noun) for count, noun in counts if count)


def unchecked(lines: Iterable[str]) -> list[CheckGap]:
    """Rules and steps without evidence, grouped by the reason, the largest group first."""
    groups: dict[str, list[str]] = {}
    for line in lines:
        names, _, reason = line.partition(": ")
        groups.setdefault(reason, []).extend(names.split(", "))
    found = [_group(reason, names) for reason, names in groups.items()]
    return sorted(found, key=lambda group: -group.total)


def _group(reason: str, names: list[str]) -> CheckGap:
    rules = sum(len(SPECS[name].rules) if name in SPECS else "/" in name for name in names)
    steps = [name for name in names if STEP_NAME.fullmatch(name)]
    others = [name for name in names if not (name in SPECS or "/" in name or name in steps)]
    return CheckGap(reason, names, rules, len(steps), others)


def allowed(report: Report) -> list[tuple[int, str, Finding | None]]:
    """The deviations that the profile allowed: how often, what, and the first of them if the report has it."""
    firsts = {finding.needs: finding for finding in reversed(report.findings) if finding.severity == "anomaly"}
    names = [(count, name.replace("_", " ")) for name, count in report.anomalies.items()]
    return [(count, firsts[what].message if what in firsts else what, firsts.get(what)) for count, what in names]


def story_of(finding: Finding) -> list[str]:
    """The story; for a violation without one, its rule, values and consequence."""
    if finding.story or finding.severity == "anomaly":
        return finding.story
    here = values_text(finding.here)
    return [f"Rule: {finding.needs}.", *([f"Here: {here}."] if here else []), *consequence(finding.otherwise)]


LineKind = Literal["title", "step", "departs", "needs", "again", ""]


def line_kind(number: int, line: str) -> LineKind:
    """The kind of a line of a story, so that the step that departs stands out."""
    if re.match(r"\s+\d+\. ", line):
        return "departs" if line.endswith(DEPARTING) else "step"
    if line.startswith("Again: "):
        return "again"
    if re.match(r'\w+ breaks the rule "', line):
        return "needs"
    return "title" if number == 0 and " departs at " in line else ""


STEP = re.compile(r"(\s+\d+\. .*?\S)(\s{3,})(\S.*)")


def parted(line: str) -> tuple[str, str]:
    """A line of a story in two: the step with the spaces behind it, and what became of it; other lines are whole."""
    found = STEP.fullmatch(line)
    return (found[1] + found[2], found[3]) if found else (line, "")


def width_of_calls(lines: Iterable[str]) -> int:
    """The width of the steps of a story, in letters."""
    return max((len(call) for call, became in map(parted, lines) if became), default=0)


def some(names: Sequence[str]) -> str:
    """The first few names of a cluster."""
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def cleaned(report: Report, longest: int = 1 << 30) -> Report:
    """The report with control characters escaped in every text, and long texts cut."""
    found = Report.model_validate(_cleaned(report.model_dump(by_alias=True), longest))
    return found.model_copy(update={"compiling": report.compiling})


def _cleaned(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return clipped(value if value.isprintable() else shown(value), longest)
    if isinstance(value, dict):
        return {_cleaned(key, 1 << 30): _cleaned(item, longest) for key, item in value.items()}
    return [_cleaned(item, longest) for item in value] if isinstance(value, list) else value
