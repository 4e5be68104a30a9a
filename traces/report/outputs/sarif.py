"""A report as SARIF 2.1.0 (OASIS), as code hosts and their viewers read it.

A finding is a result: its rule's id never changes, its fingerprint is that of baselines, its story is a code flow. It
holds no time and no engine: the same input gives the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gapless.spec.catalog import SPECS
from gapless.traces.events.files import is_event_file, is_parquet
from gapless.traces.files.remote import RemotePath, path_of
from gapless.traces.report import wording
from gapless.traces.report.threshold import Threshold, fingerprint, most_important_first, portable, relative
from gapless.traces.report.values import Finding, Report, Severity

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
RESULTS = 25_000  # of a run, that code hosts take
FLOW = 10_000  # locations of a code flow, likewise
LEVELS: dict[Severity, str] = {"violation": "error", "hazard": "warning", "anomaly": "note"}
AT_LINE = re.compile(r" at line (\d+)\s")

Json = dict[str, Any]


def sarif(report: Report, threshold: Threshold) -> str:
    """The text of the file."""
    report = portable(report)
    every = most_important_first(report.findings)
    results = every[:RESULTS]
    rules = sorted({finding.rule for finding in results})
    run: Json = {
        "tool": {"driver": _driver(rules, results)},
        "invocations": [
            {
                "executionSuccessful": all(source.verdict != "unreadable" for source in report.sources),
                "exitCode": threshold.exit_code(report),
                "toolExecutionNotifications": [*_notifications(report, len(every) - len(results))],
            }
        ],
        "results": [_result(finding, rules.index(finding.rule), threshold) for finding in results],
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": report.verdict, "profile": report.profile, "events": report.counts.events},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False) + "\n"


def _driver(rules: Sequence[str], findings: Sequence[Finding]) -> Json:
    """The tool, and the help of every rule that a result names."""
    return {"name": "gapless", "version": version("gapless"), "rules": [_rule(rule, findings) for rule in rules]}


def _rule(name: str, findings: Sequence[Finding]) -> Json:
    """A rule: as its spec states it, or for an unknown spec as the finding has it."""
    spec = name.partition("/")[0]
    stated = SPECS[spec].rules.get(name) if spec in SPECS else None
    first = next(finding for finding in findings if finding.rule == name)
    because = stated.because if stated else first.needs
    otherwise = "; ".join(dict.fromkeys(stated.otherwise.values())) if stated else first.otherwise
    follows = f" Consequence if it is broken: {_sentence(otherwise)}" if otherwise else ""
    text = _sentence(because) + follows
    return {
        "id": name,
        "shortDescription": {"text": _sentence(because)},
        "fullDescription": {"text": text},
        "help": {"text": f"{text} Source: {stated.source}." if stated else text},
        "defaultConfiguration": {"level": LEVELS[first.severity]},
        "properties": {"tags": [spec]},
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def _notifications(report: Report, left_out: int) -> Iterator[Json]:
    """Yields the reasons why inputs were not judged, and the number of results left out."""
    for source in report.sources:
        level = "error" if source.verdict == "unreadable" else "warning"
        for reason in source.reasons:
            yield {"level": level, "message": {"text": f"{source.path}: {reason}"}}
    if left_out:
        yield {"level": "warning", "message": {"text": f"{left_out:,} more findings are left out"}}


def _result(finding: Finding, rule: int, threshold: Threshold) -> Json:
    found: Json = {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": _place(finding, finding.where.offset),
                "logicalLocations": [{"name": finding.trace, "fullyQualifiedName": f"{finding.spec}/{finding.trace}"}],
            }
        ],
        "partialFingerprints": {"gapless/v1": fingerprint(finding)},
        "occurrenceCount": finding.count,
        "properties": {"severity": finding.severity, "here": finding.here, "story": finding.story},
    }
    if threshold.known:
        found["baselineState"] = "unchanged" if threshold.is_known(finding) else "new"
    if steps := [line for number, line in enumerate(finding.story) if _is_step(number, line)]:
        locations = [_flow_location(finding, line, last=line is steps[-1]) for line in steps[-FLOW:]]
        found["codeFlows"] = [{"threadFlows": [{"locations": locations}]}]
    return found


def _is_step(number: int, line: str) -> bool:
    return wording.line_kind(number, line) in ("step", "departs")


def _flow_location(finding: Finding, line: str, *, last: bool) -> Json:
    """A step of the story: in its place where the story names it, otherwise in the file."""
    named = AT_LINE.search(line)
    at = finding.where.offset if last else int(named[1]) if named else None
    return {
        "location": {"physicalLocation": _place(finding, at), "message": {"text": line.strip()}},
        "importance": "essential" if last else "important",
    }


def _place(finding: Finding, at: int | None) -> Json:
    """A place in a file: a line of text, a row of Parquet (which has no lines), or a byte.

    Code hosts show a result at a line, so what has none is shown at the first.
    """
    file, source = Path(finding.where.file), path_of(relative(finding.source))
    path = source if source.name == file.name else source / file
    place: Json = {"artifactLocation": {"uri": _uri(path)}}
    if at is None:
        return place
    if is_event_file(file):
        return place | {"region": {"startLine": 1 if is_parquet(file) else max(at, 1)}}
    return place | {"region": {"startLine": 1, "byteOffset": max(at, 0)}}


def _uri(path: Path) -> str:
    """A relative path as it is, an absolute one as a URI of a file, an address as it is."""
    if isinstance(path, RemotePath):
        return quote(str(path), safe="/:@")
    return ("file://" if path.is_absolute() else "") + quote(path.as_posix())
