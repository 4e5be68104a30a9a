"""Checks in CI: baselines, the threshold of failure, annotations, [tool.gapless], schemas."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import jsonschema
import pytest
import typer

from gapless import check
from gapless.commands.outcome import update
from gapless.traces.report.threshold import Threshold
from tests.support.command_line import ROOT, gapless
from tests.support.event_files import UnplacedEvent, append, index, opened, step, write
from tests.support.pages import blocks


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


def departing(*traces: str) -> None:
    """A recording in which these traces depart."""
    write(Path("bad.ndjson"), some_departing(*traces))


def some_departing(*traces: str) -> list[UnplacedEvent]:
    some = [[opened(trace=t), append(0, 0, trace=t), index(0, 7, trace=t)] for t in traces]
    return [event for one in some for event in one]


def test_only_what_is_new_fails() -> None:
    departing("a/0")
    assert gapless("check", "bad.ndjson", "--baseline", "known.json").exit_code == 2, "there is no such file yet"
    made = gapless("check", "bad.ndjson", "--baseline", "known.json", "--update-baseline")
    assert made.exit_code == 0
    (known,) = json.loads(Path("known.json").read_text())["findings"]
    assert (known["rule"], known["place"], known["count"]) == (
        "queue/entry-points-at-its-message", "bad.ndjson: bad.ndjson+4", 1,
    )  # fmt: skip
    again = gapless("check", "bad.ndjson", "--baseline", "known.json")
    assert (again.exit_code, again.stderr) == (0, "")
    last = again.stdout.splitlines()[-1]
    assert last.startswith("departs: 1 violation found. "), "the text says what is there all the same"
    assert last.endswith("(strict profile); exit code 0: 1 finding known from the baseline, and not counted")
    piped = gapless("check", "bad.ndjson", "--baseline", "known.json", "--json", "-")
    assert (piped.exit_code, piped.stderr) == (0, "gapless: 1 finding known from the baseline, and not counted\n")
    departing("a/0", "b/0")
    assert gapless("check", "bad.ndjson", "--baseline", "known.json").exit_code == 1, "one more like it is new"
    assert gapless("check", "bad.ndjson", "--baseline", "known.json", "--update-baseline").exit_code == 0
    assert gapless("check", "bad.ndjson", "--baseline", "known.json").exit_code == 0
    departing("b/0")
    assert gapless("check", "bad.ndjson", "--baseline", "known.json").exit_code == 1, "another trace is another finding"


def test_a_baseline_hides_nothing_else() -> None:
    departing("a/0")
    gapless("check", "bad.ndjson", "--baseline", "known.json", "--update-baseline")
    Path("broken.ndjson").write_text("nothing\n")
    assert gapless("check", "bad.ndjson", "broken.ndjson", "--baseline", "known.json").exit_code == 2
    write(Path("unopened.ndjson"), [append(0, 0)])
    assert gapless("check", "bad.ndjson", "unopened.ndjson", "--baseline", "known.json").exit_code == 3
    write(Path("bad.ndjson"), [*some_departing("a/0"), append(0, 0, trace="b/0")])
    assert gapless("check", "bad.ndjson", "--baseline", "known.json").exit_code == 3, "b/0 was not judged"
    before = Path("known.json").read_text()
    done = gapless("check", "broken.ndjson", "--baseline", "known.json", "--update-baseline")
    assert (done.exit_code, Path("known.json").read_text()) == (2, before)
    assert "not written, for broken.ndjson was not read to its end" in done.stderr


def test_what_was_interrupted_is_no_baseline() -> None:
    departing("a/0")
    report = check("bad.ndjson")
    source = report.sources[0].model_copy(update={"reasons": ["interrupted after 1 of 2 bytes"]})
    with pytest.raises(typer.Exit):
        update(Path("known.json"), report.model_copy(update={"sources": [source]}), Threshold())
    assert not Path("known.json").exists()
    update(Path("known.json"), report, Threshold())
    assert Path("known.json").exists()


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 1}', '{"schema": 2, "findings": []}'])
def test_what_is_no_baseline_is_reported(text: str) -> None:
    departing("a/0")
    Path("known.json").write_text(text)
    done = gapless("check", "bad.ndjson", "--baseline", "known.json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("gapless: baseline known.json: unreadable: ")
    assert gapless("check", "bad.ndjson", "--update-baseline").exit_code == 2


def test_anomalies_fail_where_that_is_asked_for() -> None:
    """RocketMQ recreates a topic that was deleted: its profile counts that, and allows it."""
    write(Path("odd.ndjson"), [opened(), append(0, 0), append(0, 340), index(0, 340), step("settle", 680)])
    lax = gapless("check", "odd.ndjson", "--profile", "rocketmq")
    assert (lax.exit_code, "lawful under the rocketmq profile" in lax.stdout) == (0, True)
    strict = gapless("check", "odd.ndjson", "--profile", "rocketmq", "--fail-on", "anomaly")
    assert (strict.exit_code, strict.stderr) == (1, "")
    assert strict.stdout.splitlines()[-1].startswith("conforms: ")
    assert strict.stdout.splitlines()[-1].endswith("(rocketmq profile); exit code 1: fails on 1 anomaly")
    assert gapless("check", "odd.ndjson", "--profile", "rocketmq", "--fail-on", "hazard").exit_code == 0
    assert gapless("check", "odd.ndjson", "--fail-on", "violation").exit_code == 2


def test_github_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    departing("a/0")
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    done = gapless("check", "bad.ndjson", "--github", "--junit", "junit.xml", "--sarif", "found.sarif")
    assert done.exit_code == 1
    assert done.stdout.startswith(
        "::error title=queue/entry-points-at-its-message,file=bad.ndjson,line=4::a/0, line 4: "
    )
    assert Path("summary.md").read_text().startswith("before\n## gapless: departs\n")
    assert "<testsuites" in Path("junit.xml").read_text()
    assert json.loads(Path("found.sarif").read_text())["version"] == "2.1.0"
    piped = gapless("check", "bad.ndjson", "--github", "--json", "-")
    assert json.loads(piped.stdout)["verdict"] == "departs"
    assert piped.stderr.startswith("::error ")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder))
    assert gapless("check", "bad.ndjson", "--github").exit_code == 2


def test_pyproject_says_what_the_command_line_does_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    departing("a/0")
    gapless("check", "bad.ndjson", "--baseline", "known.json", "--update-baseline")
    Path("pyproject.toml").write_text(
        '[tool.gapless]\nbaseline = "known.json"\njunit = "junit.xml"\nprofile = "rocketmq"\n'
        'ignore = ["log"]\njobs = 1\nfail-on = ["hazard"]\n'
    )
    done = gapless("check", "bad.ndjson")
    assert done.exit_code == 0
    assert "(rocketmq profile); exit code 0: " in done.stdout.splitlines()[-1]
    assert gapless("check", "bad.ndjson", "--profile", "strict").stdout.splitlines()[-1].count("(strict profile); ")
    below = folder / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    (folder / "junit.xml").unlink()
    assert gapless("check", "../bad.ndjson").exit_code == 1, "the place is another one: paths are the same as typed"
    assert (folder / "junit.xml").exists(), "paths are relative to the file that names them"
    assert "(rocketmq" not in gapless("explain", "../bad.ndjson", "--trace", "a/0").stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('baselin = "x"', "has a key 'baselin' (did you mean baseline?)"),
        ("zzz = 1", "has a key 'zzz', expected some of profile, "),
        ('fail_on = ["hazard"]\nfail-on = ["anomaly"]', "has fail-on twice"),
        ("profile = 7", "tool.gapless.profile is 7, expected a text"),
        ('ignore = "log"', "tool.gapless.ignore is 'log', expected a list of texts"),
        ("jobs = true", "tool.gapless.jobs is True, expected a number"),
        ('report = "s3://bucket/out.html"', "expected a path on a disk of this machine"),
        ("profile = ", "cannot be read (Invalid value"),
    ],
)
def test_a_wrong_pyproject_is_reported(text: str, complaint: str) -> None:
    departing("a/0")
    Path("pyproject.toml").write_text(f"[tool.gapless]\n{text}\n")
    done = gapless("check", "bad.ndjson")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("gapless: pyproject.toml: ")
    assert complaint in done.stderr


def test_an_address_elsewhere_is_no_path_next_to_the_file(folder: Path) -> None:
    """The message about it is that about the option."""
    departing("a/0")
    by_option = gapless("check", "bad.ndjson", "--verdicts", "ftp://bucket/verdicts")
    (folder / "pyproject.toml").write_text('[tool.gapless]\nverdicts = "ftp://bucket/verdicts"\n')
    by_file = gapless("check", "bad.ndjson")
    assert (by_file.exit_code, by_file.stderr) == (by_option.exit_code, by_option.stderr)
    assert by_file.stderr.startswith("gapless: ftp://: nothing is read there, only at s3://")
    assert not list(folder.glob("ftp:*"))


def test_schemas_are_printed() -> None:
    for what in ("report", "events", "client"):
        schema = json.loads(gapless("schema", what).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
    own = json.loads(gapless("schema", "events", "--spec", ROOT / "examples/lease.py").stdout)
    fits = jsonschema.Draft202012Validator(own)
    lines = (ROOT / "examples/lease.ndjson").read_text().splitlines()
    assert all(fits.is_valid(json.loads(line)) for line in lines)
    assert gapless("schema", "everything").exit_code == 2


def test_steps_are_reported_with_units_and_needs() -> None:
    output = gapless("steps", "queue").stdout
    assert "\nappend(number, count, position, size, tag)\n" in output
    assert "\n  size: a number · of message n: bytes of its record\n" in output
    assert (
        "\n  needs: the numbers of a queue follow one another (queue/numbers-of-a-queue-follow-one-another)\n" in output
    )
    assert "\nPosition: a number · A byte offset in the commit log" in output
    assert "  known: 1 or 0" in gapless("steps", "log").stdout
    assert "status: a number · 0 ABSENT, 1 OPEN" in gapless("steps", "coordinator").stdout
    assert "grant(worker, token)" in gapless("steps", ROOT / "examples/lease.py").stdout
    assert gapless("steps", "nothing").exit_code == 2


PAGE = ROOT / "docs/ci.md"


def shown(kind: str) -> list[str]:
    """Return the contents of the page's fenced blocks of that kind."""
    return [block.content for block in blocks(PAGE) if block.info == kind]


def test_what_is_to_be_copied_is_what_the_page_shows() -> None:
    assert shown("yaml") == [(ROOT / "examples/ci/conformance.yml").read_text("utf-8")]
    assert shown("dockerfile") == [(ROOT / "examples/ci/Dockerfile").read_text("utf-8")]


def test_the_commands_of_the_page_run() -> None:
    """Those of `gapless`, one after the other in one folder, and that of the workflow; pytest has tests of its own."""
    Path("traces").mkdir()
    write(
        Path("traces/a.ndjson"),
        [opened(trace="orders/1"), append(0, 0, trace="orders/1"), index(0, 7, trace="orders/1")],
    )
    shell = [line for block in shown("sh") for line in block.splitlines() if line.startswith("gapless ")]
    shell += [
        line.removeprefix("- run: ")
        for line in map(str.strip, shown("yaml")[0].splitlines())
        if "gapless check" in line
    ]
    assert len(shell) == 4
    for command in shell:
        done = gapless(*shlex.split(command)[1:])
        assert done.exit_code == 1, f"{command}\n{done.output}"
    for name in ("junit.xml", "gapless.xml", "gapless.sarif", "report.json", "report.html"):
        assert Path(name).is_file()
    Path("tests/stories").mkdir(parents=True)
    saved = gapless("explain", "traces/a.ndjson", "--trace", "orders/1", "--save", "tests/stories/wrong-entry.story")
    assert (saved.exit_code, Path("tests/stories/wrong-entry.story").is_file()) == (1, True)
    (toml,) = shown("toml")
    Path("pyproject.toml").write_text(toml)
    assert gapless("check", "traces/", "--update-baseline").exit_code == 0
    assert Path("gapless.xml").is_file()


# --- Baselines by rule and by trace -------------------------------------------------------------------------


def later(*traces: str) -> None:
    """The same departures, recorded anew: at other lines."""
    write(Path("bad.ndjson"), [opened(trace="z/9"), *some_departing(*traces)])


@pytest.mark.parametrize(
    ("by", "moved", "another_trace", "another_rule"), [("place", 1, 1, 1), ("trace", 0, 1, 1), ("rule", 0, 0, 1)]
)
def test_a_baseline_knows_findings_by_place_trace_or_rule(
    by: str, moved: int, another_trace: int, another_rule: int
) -> None:
    departing("a/0")
    options = ("check", "bad.ndjson", "--baseline", "known.json")
    assert gapless(*options, "--update-baseline", "--baseline-by", by).exit_code == 0
    written = json.loads(Path("known.json").read_text())
    assert (written["by"], written["findings"][0]["trace"]) == (by, "" if by == "rule" else "a/0")
    assert gapless(*options, "--baseline-by", by).exit_code == gapless(*options).exit_code == 0
    later("a/0")
    assert gapless(*options).exit_code == moved, "the file says by which parts"
    for traces, code in ((("a/0", "b/0"), another_trace), (("b/0",), another_trace)):
        later(*traces)
        assert gapless(*options).exit_code == code, traces
    write(Path("bad.ndjson"), [opened(trace="a/0"), append(0, 0, trace="a/0"), append(3, 100, trace="a/0")])
    assert gapless(*options).exit_code == another_rule
    departing("a/0")
    assert gapless(*options, "--update-baseline").exit_code == 0
    assert json.loads(Path("known.json").read_text())["by"] == by, "the file keeps its parts when it is written again"


def test_a_known_finding_is_one_line() -> None:
    departing("a/0")
    options = ("check", "bad.ndjson", "--baseline", "known.json")
    gapless(*options, "--update-baseline", "--baseline-by", "trace")
    shown = gapless(*options).stdout
    (line,) = (line for line in shown.splitlines() if line.startswith("known: "))
    assert line.endswith("(queue/entry-points-at-its-message)")
    assert "Again: " not in shown
    assert "Again: " in gapless("check", "bad.ndjson").stdout


def test_a_baseline_by_other_parts_is_refused() -> None:
    departing("a/0")
    gapless("check", "bad.ndjson", "--baseline", "known.json", "--update-baseline")
    for options, complaint in (
        (("--baseline", "known.json", "--baseline-by", "rule"), "it knows findings by place, not by rule: leave out"),
        (("--baseline-by", "rule"), "there is no --baseline FILE"),
        (("--baseline", "known.json", "--baseline-by", "rul"), "rul"),
    ):
        done = gapless("check", "bad.ndjson", *options)
        assert (done.exit_code, complaint in done.stderr, done.stdout) == (2, True, ""), done.stderr
    Path("pyproject.toml").write_text('[tool.gapless]\nbaseline = "known.json"\nbaseline-by = "rule"\n')
    assert "not by rule" in gapless("check", "bad.ndjson").stderr
    gapless("check", "bad.ndjson", "--update-baseline")
    assert json.loads(Path("known.json").read_text())["by"] == "rule"
    assert gapless("check", "bad.ndjson").exit_code == 0
