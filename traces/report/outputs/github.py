"""A report for GitHub Actions: annotations, as many as it shows of a step, and the summary, which holds the rest.

The form of both: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from gapless.traces.events.files import is_event_file, is_parquet
from gapless.traces.report import wording
from gapless.traces.report.threshold import Threshold, most_important_first, place, portable, relative
from gapless.traces.report.values import Finding, Report
from gapless.traces.report.wording import plural

SHOWN = 10  # annotations of each level, of one step
SUMMARY = 900_000  # bytes: a step has 1 MiB
LEVELS = ("error", "warning")
FENCE = "`````"  # of a story, in which `_fenced` leaves no three of these


def commands(report: Report, threshold: Threshold) -> str:
    """The lines to print: errors for what lets the check fail, warnings for hazards and for what was not judged."""
    report = portable(report)
    every = [*_of_findings(report, threshold), *_of_sources(report)]
    lines: list[str] = []
    for level in LEVELS:
        lines += islice((line for of, line in every if of == level), SHOWN)
    return "".join(f"{line}\n" for line in lines)


def _of_findings(report: Report, threshold: Threshold) -> Iterator[tuple[str, str]]:
    for finding in most_important_first(report.findings):
        fails = threshold.fails(finding)
        if not fails and (threshold.is_known(finding) or finding.severity != "hazard"):
            continue
        level = "error" if fails else "warning"
        lines = [finding.message, "", *wording.story_of(finding)]
        yield level, _command(level, "\n".join(lines), title=finding.rule, **_file(finding))


def _of_sources(report: Report) -> Iterator[tuple[str, str]]:
    for source in report.sources:
        level = "error" if source.verdict == "unreadable" else "warning"
        for reason in source.reasons:
            yield level, _command(level, reason, title=f"{source.path}: {source.verdict}")


def _file(finding: Finding) -> dict[str, str]:
    """The file that is in the repository: the source, or the file in it; and the line, where it has lines."""
    source, file = relative(finding.source), finding.where.file
    found = {"file": source if source.rpartition("/")[2] == file else f"{source}/{file}"}
    path = Path(file)
    return found | ({"line": str(finding.where.offset)} if is_event_file(path) and not is_parquet(path) else {})


def _command(level: str, message: str, **properties: str) -> str:
    """A workflow command."""
    given = ",".join(f"{name}={_escaped(value, ',:')}" for name, value in properties.items())
    return f"::{level} {given}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    """The text with `%`, line ends, and `more` as %XX."""
    return "".join(f"%{ord(c):02X}" if c in "%\r\n" + more else c for c in text)


def summary(report: Report, threshold: Threshold) -> str:
    """The page of the step in Markdown: the verdict, every finding in a table, and the stories, while there is room."""
    report = portable(report)
    seen = [plural(report.counts.traces, "trace"), plural(report.counts.events, "event")]
    blocks = [f"## gapless: {threshold.verdict(report)}\n", f"{', '.join(seen)} checked, {report.profile} profile\n"]
    blocks += [f"- {_plain(source.path)}: {_plain(reason)}" for source in report.sources for reason in source.reasons]
    findings = most_important_first(report.findings)
    if findings:
        blocks.append("\n| | rule | trace | place | places |\n|---|---|---|---|--:|")
    for finding in findings:
        state = "known" if threshold.is_known(finding) else finding.severity
        cells = (state, finding.rule, finding.trace, place(finding), f"{finding.count:,}")
        blocks.append(f"| {' | '.join(map(_plain, cells))} |")
    for finding in findings:
        if finding.story:
            story = "\n".join(map(_fenced, finding.story))
            blocks.append(f"\n### {_plain(finding.message)}\n\n{FENCE}text\n{story}\n{FENCE}")
    return _fitting(blocks)


def _fitting(blocks: Sequence[str]) -> str:
    """Join as many of the blocks as there is room for."""
    left = SUMMARY
    for number, block in enumerate(blocks):
        left -= len(block.encode()) + 1
        if left < 0:
            return "\n".join([*blocks[:number], f"\n{plural(len(blocks) - number, 'more part')} left out.\n"])
    return "\n".join([*blocks, ""])


def _plain(text: str) -> str:
    """A text of a recording, as Markdown shows it letter by letter."""
    return "".join(f"&#{ord(c)};" if c in "\\`*_{}[]<>()#+!|~&" else c for c in text)


def _fenced(line: str) -> str:
    """A line that cannot end its block."""
    return line.replace("```", "'''")
