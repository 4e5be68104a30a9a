"""Machine formats: JUnit, SARIF, GitHub's commands, and the schemas; same input, same bytes.

`tests/support/sarif-2.1.0.json` is the schema of the OASIS standard as Microsoft's SARIF Multitool 5.7.0 ships it
(npm, `@microsoft/sarif-multitool-linux`). JUnit XML has no standard: `tests/support/junit-10.xsd` is the schema of
Jenkins' xUnit plugin, as pytest 8.4.2 carries it to validate what it writes itself (MIT; the licence stands in it).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import xmlschema

from gapless import Report, check
from gapless.spec.catalog import SPECS
from gapless.traces.report.formats import FORMATS
from gapless.traces.report.outputs import sarif as sarif_module
from gapless.traces.report.outputs.github import SHOWN, SUMMARY, commands, summary
from gapless.traces.report.outputs.junit import junit
from gapless.traces.report.outputs.sarif import sarif
from gapless.traces.report.threshold import Threshold, fingerprint
from gapless.traces.report.values import INTERRUPTED, Finding, Where
from gapless.traces.schemas import SCHEMAS
from tests.support.command_line import ROOT
from tests.support.event_files import QUEUE, append, in_log, index, opened, record, write
from tests.support.pulsar_recordings import recording as pulsar_recording
from tests.support.rocketmq.recordings import WITH_CLIENTS, recording, recording_with_client

LEFT_OUT = object()
EVERYTHING = Threshold(frozenset({"violation", "hazard", "anomaly"}))


@pytest.fixture
def departing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """Two sources: one with two departures, and one that cannot be read."""
    monkeypatch.chdir(tmp_path)
    odd = [opened(trace="a<b>/\x1b[31m"), append(0, 340, trace="a<b>/\x1b[31m"), index(0, 9, trace="a<b>/\x1b[31m")]
    log = [in_log("open", 0, 1024), record(0), in_log("acknowledge", 100)]
    write(Path("recorded.ndjson"), [*odd, *log])
    Path("broken.ndjson").write_text("nothing\n")
    return check(["recorded.ndjson", "broken.ndjson"])


@cache
def of_jenkins() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(ROOT / "tests/support/junit-10.xsd"))


def valid_junit(report: Report, threshold: Threshold = Threshold()) -> ET.Element:  # noqa: B008 - it is frozen
    text = junit(report, threshold)
    of_jenkins().validate(text)
    return ET.fromstring(text)  # noqa: S314 - our own text


@cache
def official() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((ROOT / "tests/support/sarif-2.1.0.json").read_text("utf-8-sig")))


def valid_sarif(report: Report, threshold: Threshold = Threshold()) -> dict[str, Any]:  # noqa: B008 - it is frozen
    found: dict[str, Any] = json.loads(sarif(report, threshold))
    official().validate(found)
    (run,) = found["runs"]
    return dict(run)


def many(report: Report, count: int, severity: str = "violation") -> Report:
    """The report with so many findings, in as many places."""
    first = report.violations[0]
    some = [
        first.model_copy(update={"severity": severity, "where": Where(file=first.where.file, offset=n)})
        for n in range(1, count + 1)
    ]
    return report.model_copy(update={"findings": some})


# -- JUnit ---------------------------------------------------------------------------------------------------------


def test_junit_names_the_trace_and_tells_its_story(departing: Report) -> None:
    root = valid_junit(departing)
    assert root.attrib == {"name": "gapless", "tests": "4", "failures": "2", "errors": "1"}
    recorded, broken = root
    assert recorded.attrib == {"name": "recorded.ndjson", "tests": "3", "failures": "2", "errors": "0", "skipped": "0"}
    rest, queue, log = recorded
    assert (rest.get("name"), list(rest)) == ("recorded.ndjson", [])
    assert (queue.get("classname"), queue.get("name")) == ("queue/entry-points-at-its-message", "a<b>/\\x1b[31m")
    assert (log.get("classname"), log.get("name")) == ("log/bytes-are-on-disk", "commitlog")
    (failure,) = queue
    assert failure.get("type") == "violation"
    assert failure.text == "\n".join(departing.violations[0].story)
    (error,) = broken[0]
    assert (error.tag, error.get("type")) == ("error", "unreadable")
    assert "line 1: it begins" in str(error.text)


def test_what_conforms_is_a_case_that_passes(tmp_path: Path) -> None:
    write(tmp_path / "good.ndjson", QUEUE)
    root = valid_junit(check(tmp_path / "good.ndjson"))
    assert [root.get(name) for name in ("tests", "failures", "errors")] == ["1", "0", "0"]


def test_what_is_known_is_skipped_and_what_is_allowed_passes(departing: Report) -> None:
    first = departing.violations[0]
    root = valid_junit(departing, Threshold(known={fingerprint(first): 1}))
    assert (root.get("failures"), root[0].get("skipped")) == ("1", "1")
    hazards = many(departing, 2, "hazard")
    root = valid_junit(hazards)
    assert root.get("failures") == "0"
    assert len(root.findall(".//system-out")) == 2
    root = valid_junit(hazards, EVERYTHING)
    assert root.get("failures") == "2"


def test_what_is_no_junit_does_not_validate(departing: Report) -> None:
    text = junit(departing, Threshold())
    for was, now in ((' name="commitlog"', ""), ("<testsuites ", '<testsuites skipped="0" '), (' tests="3"', "")):
        assert was in text
        assert not of_jenkins().is_valid(text.replace(was, now))


# -- SARIF ---------------------------------------------------------------------------------------------------------


def test_sarif_is_valid_and_leads_to_the_place(departing: Report) -> None:
    run = valid_sarif(departing)
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "log/bytes-are-on-disk",
        "queue/entry-points-at-its-message",
    ]
    queue = run["results"][0]
    assert (queue["ruleId"], queue["ruleIndex"], queue["level"]) == ("queue/entry-points-at-its-message", 1, "error")
    (location,) = queue["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "recorded.ndjson"},
        "region": {"startLine": 4},
    }
    assert queue["partialFingerprints"] == {"gapless/v1": fingerprint(departing.violations[0])}
    (flow,) = queue["codeFlows"][0]["threadFlows"]
    assert [one["location"]["message"]["text"].split("(")[0] for one in flow["locations"]] == ["1. append", "2. index"]
    assert run["tool"]["driver"]["rules"][1]["help"]["text"].startswith(
        "The entry points at its message. Consequence if it is broken: Consumers receive another message"
    )
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 1)
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"].startswith("broken.ndjson: ")
    assert "baselineState" not in queue


def test_the_official_schema_catches_what_is_wrong(departing: Report) -> None:
    broken = json.loads(sarif(departing, Threshold()))
    broken["runs"][0]["results"][0]["level"] = "fatal"
    assert not official().is_valid(broken)


def test_sarif_knows_the_baseline(departing: Report) -> None:
    run = valid_sarif(departing, Threshold(known={fingerprint(departing.violations[0]): 1}))
    assert [result["baselineState"] for result in run["results"]] == ["unchanged", "new"]


def test_sarif_keeps_the_limits_and_the_most_important(departing: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (sarif_module.RESULTS, sarif_module.FLOW) == (25_000, 10_000)
    monkeypatch.setattr(sarif_module, "RESULTS", 3)
    monkeypatch.setattr(sarif_module, "FLOW", 1)
    some = [*many(departing, 3, "anomaly").findings, *many(departing, 2).findings]
    run = valid_sarif(departing.model_copy(update={"findings": some}))
    assert [result["level"] for result in run["results"]] == ["error", "error", "note"]
    flows = [result["codeFlows"][0]["threadFlows"][0]["locations"] for result in run["results"]]
    assert [len(flow) for flow in flows] == [1, 1, 1]
    assert flows[0][0]["location"]["message"]["text"].endswith("not allowed")
    assert run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"] == "2 more findings are left out"


@pytest.mark.parametrize(
    ("file", "source", "uri", "region"),
    [
        ("consumequeue/T 1/0/00", "a/orders", "a/orders/consumequeue/T%201/0/00", {"startLine": 1, "byteOffset": 4}),
        ("x.parquet", "a/x.parquet", "a/x.parquet", {"startLine": 1}),
        ("trace.ndjson", "/a/b", "file:///a/b/trace.ndjson", {"startLine": 4}),
    ],
)
def test_every_kind_of_place_is_reported(
    file: str, source: str, uri: str, region: dict[str, int], departing: Report
) -> None:
    placed = departing.violations[0].model_copy(update={"source": source, "where": Where(file=file, offset=4)})
    run = valid_sarif(departing.model_copy(update={"findings": [placed]}))
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]) == (uri, region)


# -- GitHub --------------------------------------------------------------------------------------------------------


def test_annotations_are_commands_that_no_trace_can_break(departing: Report) -> None:
    lines = commands(departing, Threshold()).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(
        "::error title=queue/entry-points-at-its-message,file=recorded.ndjson,line=4::a<b>/\\x1b[31m, line 4: index"
    )
    assert "%0A%0Aqueue a<b>/\\x1b[31m departs at" in lines[0]
    assert lines[2].startswith("::error title=broken.ndjson%3A unreadable::")


def test_ten_annotations_are_shown_and_the_summary_holds_the_rest(departing: Report) -> None:
    crowd = many(departing, 30)
    assert commands(crowd, Threshold()).count("::error title=queue") == SHOWN
    assert summary(crowd, Threshold()).count("| violation |") == 30
    known = {fingerprint(finding): 1 for finding in crowd.findings[:25]}
    assert commands(crowd, Threshold(known=known)).count("::error title=queue") == 5
    assert summary(crowd, Threshold(known=known)).count("| known |") == 25
    assert commands(many(departing, 1, "hazard"), Threshold()).count("::warning title=queue") == 1
    assert commands(many(departing, 1, "anomaly"), Threshold()).count("title=queue") == 0


def test_the_summary_shows_names_as_they_are_and_stays_small(departing: Report) -> None:
    page = summary(departing, Threshold())
    assert page.startswith("## gapless: departs\n")
    assert "a&#60;b&#62;/&#92;x1b&#91;31m" in page
    assert "<b>" not in page.partition("\n### ")[0]
    assert page.count("`````") == 4
    large = summary(many(departing, 5_000), Threshold())
    assert len(large.encode()) < SUMMARY + 1000
    assert "more parts left out" in large


# -- schemas -------------------------------------------------------------------------------------------------------


@cache
def validator(what: str) -> jsonschema.Draft202012Validator:
    schema = SCHEMAS[what](SPECS)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_reports_of_every_source_fit_their_schema(departing: Report) -> None:
    fits = validator("report")
    reports = [departing, check(recording("odd/ghosts_before_5.5.0")), check(pulsar_recording("coord-recover-nofence"))]
    for report in reports:
        fits.validate(json.loads(report.as_json()))
    assert reports[1].queues
    broken = json.loads(reports[1].as_json())
    broken["queues"][0]["queue"] = "one"
    assert not fits.is_valid(broken)
    assert not fits.is_valid(json.loads(departing.as_json()) | {"verdict": "fine"})


@pytest.mark.parametrize(
    ("changed", "valid"),
    [
        ({}, True),
        ({"outcome": "refused", "saw": {"end": 7}}, True),
        ({"saw": None, "outcome": None}, True),
        ({"saw": {"ends": 7}}, False),
        ({"saw": {"end": True}}, True),
        ({"action": "account", "args": {"number": 0, "sent": False}}, True),
        ({"action": "account", "args": {"number": 0, "sent": 2}}, False),
        ({"position": True}, False),
        ({"outcome": "perhaps"}, False),
        ({"action": "appends"}, False),
        ({"spec": "log"}, False),
        ({"position": None}, False),
        ({"position": 2**63}, False),
        ({"args": {"number": 0}}, False),
        ({"args": None}, False),
        ({"args": LEFT_OUT}, False),
        ({"action": "end", "args": LEFT_OUT}, True),
        ({"action": "end", "args": None}, True),
        ({"trace": LEFT_OUT}, False),
        ({"args": {"number": 0, "count": 1, "position": 0, "size": 1, "tag": "x"}}, False),
        ({"args": {"number": 0, "count": 1, "position": 0, "size": 1, "tag": 0, "more": 1}}, False),
        ({"time": 7}, False),
    ],
)
def test_the_schema_of_events_says_what_reading_says(changed: dict[str, Any], valid: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a case
    args = {"number": 0, "count": 1, "position": 0, "size": 340, "tag": 0}
    line = {"source": "a", "spec": "queue", "trace": "T/0", "position": 1, "action": "append", "args": args} | changed
    line = {name: value for name, value in line.items() if value is not LEFT_OUT}
    header = {"schema": "gapless-events", "version": 1}
    fits = validator("events")
    assert fits.is_valid(header)
    assert not fits.is_valid(header | {"version": 2})
    assert fits.is_valid(line) == valid
    path = tmp_path / "one.ndjson"
    path.write_text(f"{json.dumps(header)}\n{json.dumps(line)}\n")
    assert (check(path).verdict != "unreadable") == valid


def test_client_logs_fit_their_schema() -> None:
    fits = validator("client")
    lines = (recording_with_client(WITH_CLIENTS[0]) / "client.ndjson").read_text().splitlines()[:200]
    assert lines
    for line in lines:
        fits.validate(json.loads(line))
    assert not fits.is_valid(json.loads(lines[0]) | {"op": "sent"})


# -- same input, same bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [form for form in FORMATS if form.by_threshold], ids=lambda form: form.option)
def test_nothing_of_time_and_engine_is_in_it(form: Any, departing: Report) -> None:
    other = departing.model_copy(update={"seconds": 77.0, "engine": "spark"})
    assert form.written(other, Threshold()) == form.written(departing, Threshold())


@pytest.mark.parametrize("written", [commands, summary])
def test_nor_in_what_github_is_reported(written: Callable[[Report, Threshold], str], departing: Report) -> None:
    other = departing.model_copy(update={"seconds": 77.0, "engine": "spark"})
    assert written(other, Threshold()) == written(departing, Threshold())


@pytest.mark.parametrize("written", [junit, sarif, commands, summary])
def test_a_path_is_reported_as_it_is_from_here(written: Callable[[Report, Threshold], str], departing: Report) -> None:
    """Spark's workers need absolute paths, so reports of theirs name such."""
    absolute = check([Path("recorded.ndjson").resolve(), Path("broken.ndjson").resolve()])
    assert str(Path.cwd()) in absolute.as_json()
    assert written(absolute, Threshold()) == written(departing, Threshold())


def test_a_stretch_or_a_whole_file_says_the_same(departing: Report) -> None:
    again = check(["recorded.ndjson", "broken.ndjson"], split=100, jobs=1)
    assert sarif(again, Threshold()) == sarif(departing, Threshold())
    assert junit(again, Threshold()) == junit(departing, Threshold())


def test_a_finding_is_known_by_rule_trace_and_place(departing: Report) -> None:
    first: Finding = departing.violations[0]
    assert fingerprint(first) == fingerprint(first.model_copy(update={"message": "reworded", "story": [], "count": 9}))
    others = [
        first.model_copy(update={"rule": "queue/x"}),
        first.model_copy(update={"trace": "T/1"}),
        first.model_copy(update={"where": Where(file=first.where.file, offset=5)}),
        first.model_copy(update={"source": "elsewhere.ndjson"}),
    ]
    assert len({fingerprint(one) for one in [first, *others]}) == 5
    assert fingerprint(first.model_copy(update={"source": str(Path.cwd() / first.source)})) == fingerprint(first)


def test_a_check_that_was_interrupted_says_so_whatever_is_known(departing: Report) -> None:
    stopped = departing.model_copy(update={"interrupted": True})
    assert Threshold().exit_code(stopped) == INTERRUPTED
    assert Threshold().exit_code(departing) != INTERRUPTED
