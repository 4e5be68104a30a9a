"""A report as JUnit XML, as CI servers read it: a suite for each source, a case for each finding, and one for the rest.

It holds no time and no engine: the same input gives the same bytes.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from gapless.traces.report import wording
from gapless.traces.report.threshold import Threshold, portable
from gapless.traces.report.values import Finding, Report, SourceRow


def junit(report: Report, threshold: Threshold) -> str:
    """The text of the file."""
    report = portable(report)
    root = ET.Element("testsuites", name="gapless")
    for source in report.sources:
        root.append(_suite(report, source, threshold))
    for count in ("tests", "failures", "errors"):  # the schema has `skipped` of a suite alone
        root.set(count, str(sum(int(suite.get(count, 0)) for suite in root)))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(report: Report, source: SourceRow, threshold: Threshold) -> ET.Element:
    """The cases of one source."""
    cases = [_case(finding, threshold) for finding in report.findings if finding.source == source.path]
    rest = ET.Element("testcase", classname=source.kind, name=source.path)
    if source.reasons:
        kind = "unreadable" if source.verdict == "unreadable" else "inconclusive"
        ET.SubElement(rest, "error", type=kind, message=source.reasons[0]).text = "\n".join(source.reasons)
    suite = ET.Element("testsuite", name=source.path)
    suite.extend([rest, *cases])
    suite.set("tests", str(len(suite)))
    for count, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(len(suite.findall(f"testcase/{element}"))))
    return suite


def _case(finding: Finding, threshold: Threshold) -> ET.Element:
    """A finding: its trace as the name, its rule as the class."""
    case = ET.Element("testcase", classname=finding.rule, name=finding.trace)
    story = "\n".join(wording.story_of(finding))
    if threshold.fails(finding):
        ET.SubElement(case, "failure", type=finding.severity, message=finding.message).text = story
    elif threshold.is_known(finding):
        ET.SubElement(case, "skipped", message=f"known: {finding.message}")
    else:
        ET.SubElement(case, "system-out").text = "\n".join([f"{finding.severity}: {finding.message}", story]).rstrip()
    return case
