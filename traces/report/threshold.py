"""The threshold of a check: the findings that let it fail, and those that are known already.

A finding is known again by its *fingerprint*: the SHA-256 of its rule, its trace, and its place (the source as it was
named, relative to the working directory, the file in it, and the line or byte), as 32 hex digits. No rewording of a
story changes it. A baseline is a file of findings that are known; one that stands for more places than then is not.
A baseline by trace, or by rule, leaves places out: of a system that is recorded again by each run they differ.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from pydantic import ConfigDict, Field, ValidationError

from gapless.spec.catalog import rule
from gapless.traces.files.remote import path_of
from gapless.traces.problems import UsageError, shown
from gapless.traces.report.model import Model
from gapless.traces.report.values import EXIT_CODES, INTERRUPTED, Finding, Report, Severity, VerdictName, worst
from gapless.traces.report.wording import cleaned, plural
from gapless.traces.validation import milliseconds, refused

OVERDUE = rule("deadline/overdue").id

By = Literal["rule", "trace", "place"]
BY: tuple[By, ...] = get_args(By)
"""The parts by which a baseline knows a finding: its rule, its rule and trace, or its place too."""

ALSO: tuple[Severity, ...] = ("hazard", "anomaly")
"""What fails a check if it is asked for; a violation always does."""

LATE = "overdue"
"""The word for a task that waits long after its time: `overdue=60s` fails a check from this amount on."""

FAIL_ON: tuple[str, ...] = (*ALSO, f"{LATE}=60s")
"""The words of `--fail-on`; any time will do."""

IMPORTANT: tuple[Severity, ...] = ("violation", *ALSO)  # the most important first


class BaselineEntry(Model):
    """A finding of a baseline. All but `fingerprint` and `count` is for people."""

    fingerprint: str = Field(pattern="^[0-9a-f]{32}$")
    rule: str
    severity: Severity
    trace: str
    place: str
    count: int = Field(ge=1, description="how many places it stood for: more are new")


class Baseline(Model):
    """The file of a baseline."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    by: By = Field(default="place", description="the parts by which it knows a finding")
    findings: list[BaselineEntry]

    def as_json(self) -> str:
        """The text of the file."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"


@dataclass(frozen=True)
class Threshold:
    """The findings that let a check fail.

    `severities`: of findings that do · `known`: fingerprints of those that do not, and for how many places each ·
    `by`: the parts by which these know a finding · `overdue`: the ms from which a task that is overdue does.
    """

    severities: frozenset[Severity] = frozenset({"violation"})
    known: Mapping[str, int] = field(default_factory=dict)
    by: By = "place"
    overdue: int | None = None

    @classmethod
    def of(cls, words: Iterable[str], known: Mapping[str, int] | None = None, by: By = "place") -> Threshold:
        """The threshold for violations and what else the words of `--fail-on` name. Raises ValueError for another."""
        given = [*words]
        times = [late_by(word) for word in given if word not in ALSO]
        severities: frozenset[Severity] = frozenset({"violation", *(one for one in ALSO if one in given)})
        return cls(severities, known or {}, by, min(times, default=None))

    def concerns(self, finding: Finding) -> bool:
        """True if it lets the check fail, unless it is known."""
        late = self.overdue is not None and self.overdue <= finding.here.get(LATE, -1) and finding.rule == OVERDUE
        return late or finding.severity in self.severities

    def is_known(self, finding: Finding) -> bool:
        """True if the baseline has it: by its rule alone, or for as many places."""
        found = [self.known.get(name, 0) for name, _ in fingerprints(finding, self.by)]
        return min(found) > 0 if self.by == "rule" else finding.count <= min(found)

    def fails(self, finding: Finding) -> bool:
        """True if it lets the check fail."""
        return self.concerns(finding) and not self.is_known(finding)

    def verdict(self, report: Report) -> VerdictName:
        """The report's verdict by this threshold: what is known does not count, what was not judged still does."""
        if any(map(self.fails, report.findings)):
            return "departs"
        others: Iterable[VerdictName] = (
            ("inconclusive" if source.reasons else "conforms") if source.verdict == "departs" else source.verdict
            for source in report.sources
        )
        return worst(others)

    def sentences(self, report: Report) -> Iterator[str]:
        """Yields the reasons for an exit code other than that of the report's verdict."""
        if known := sum(self.concerns(finding) for finding in report.findings if self.is_known(finding)):
            yield f"{plural(known, 'finding')} known from the baseline, and not counted"
        for severity in ALSO:
            if found := sum(self.fails(finding) for finding in report.findings if finding.severity == severity):
                yield f"fails on {plural(found, severity, 'anomalies' if severity == 'anomaly' else '')}"

    def outcome(self, report: Report) -> str:
        """The same behind the exit code, in one line; nothing where the report's verdict says it all."""
        reasons = ", ".join(self.sentences(report))
        return reasons and f"exit code {self.exit_code(report)}: {reasons}"

    def exit_code(self, report: Report) -> int:
        """0 conforms, 1 departs, 2 unreadable, 3 inconclusive; 130 interrupted, whatever was found until then."""
        return INTERRUPTED if report.interrupted else EXIT_CODES[self.verdict(report)]


def late_by(word: str) -> int:
    """The ms of a word such as `overdue=60s`. Raises ValueError for another."""
    what, _, length = word.partition("=")
    if what != LATE or (time := milliseconds(length)) is None:
        raise ValueError(word)
    return time


def place(finding: Finding) -> str:
    """The place of a finding: the source, the file in it, the line or byte."""
    return f"{relative(finding.source)}: {finding.where.file}+{finding.where.offset}"


def relative(source: str) -> str:
    """A path as it is below the working directory, if it lies there: runs on two machines say the same."""
    path = path_of(source)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return path.as_posix()


def portable(report: Report) -> Report:
    """The report with printable names, and paths relative to the working directory.

    So the same is written wherever it is checked, and by whichever engine: Spark's workers need absolute paths.
    """
    report = cleaned(report)
    sources = [
        source.model_copy(
            update={
                "path": relative(source.path),
                "reasons": [reason.replace(source.path, relative(source.path)) for reason in source.reasons],
            }
        )
        for source in report.sources
    ]
    findings = [
        finding.model_copy(
            update={"source": relative(finding.source), "story": [_portable(line, finding) for line in finding.story]}
        )
        for finding in report.findings
    ]
    return report.model_copy(update={"sources": sources, "findings": findings})


def _portable(line: str, finding: Finding) -> str:
    """The line of a story that says how to see it again, with the path as it is from here."""
    if not line.startswith("Again: "):
        return line
    return line.replace(shlex.quote(finding.source), shlex.quote(relative(finding.source)))


def fingerprint(finding: Finding) -> str:
    """The digest by which a finding is known again, at its place."""
    return _digest(finding.rule, finding.trace, place(finding))


def fingerprints(finding: Finding, by: By) -> list[tuple[str, str]]:
    """The digests by which a baseline knows a finding, each with its trace; of many traces, of each that is named."""
    if by == "place":
        return [(fingerprint(finding), finding.trace)]
    if by == "rule":
        return [(_digest("rule", finding.rule), "")]
    traces = dict.fromkeys((finding.trace, *finding.traces))
    return [(_digest("trace", finding.rule, trace), trace) for trace in traces]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def most_important_first(findings: Iterable[Finding]) -> list[Finding]:
    """Violations before hazards before anomalies; otherwise in their order."""
    return sorted(findings, key=lambda finding: IMPORTANT.index(finding.severity))


def baseline_of(report: Report, threshold: Threshold) -> Baseline:
    """The findings that would let a check fail, all of them known."""
    by = threshold.by
    known: dict[str, BaselineEntry] = {}
    for finding in report.findings:
        for name, trace in fingerprints(finding, by) if threshold.concerns(finding) else ():
            count = finding.count + (known[name].count if name in known else 0)
            known[name] = BaselineEntry(
                fingerprint=name, rule=finding.rule, severity=finding.severity, trace=trace,
                place=place(finding) if by == "place" else "", count=count,
            )  # fmt: skip
    return Baseline(by=by, findings=sorted(known.values(), key=lambda one: (one.rule, one.trace, one.place)))


def read_baseline(path: Path, by: By | None = None) -> tuple[dict[str, int], By]:
    """The number of places of each fingerprint, and the parts by which the baseline knows a finding.

    Raises UsageError, also where it knows findings by other parts than `by`.
    """
    try:
        baseline = Baseline.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"baseline {shown(path)}: unreadable: {error.strerror}; --update-baseline writes one"
        ) from None
    except ValidationError as error:
        raise UsageError(
            f"baseline {shown(path)}: unreadable: {refused(error, Baseline.model_fields)}; --update-baseline writes "
            "one, into a new file"
        ) from None
    if by is not None and by != baseline.by:
        raise UsageError(
            f"baseline {shown(path)}: it knows findings by {baseline.by}, not by {by}: leave out --baseline-by, or "
            "write the file again with --update-baseline"
        )
    return {one.fingerprint: one.count for one in baseline.findings}, baseline.by
