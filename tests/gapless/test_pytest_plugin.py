"""The plugin of pytest: recordings and stories are tests, a failure prints the story; unused, it costs nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from _pytest.pytester import SysModulesSnapshot

from gapless import DoesNotConform, assert_conforms, check
from gapless.testing import collecting
from tests.support.command_line import ROOT, gapless
from tests.support.event_files import QUEUE, append, in_log, index, opened, step, write

pytest_plugins = ["pytester"]
PLUGIN = ("-p", "gapless.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=")


@pytest.fixture(autouse=True)
def _modules_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep modules loaded: pytester drops those that its runs import, but llvmlite loads only once."""
    kept = {"gapless", "llvmlite"}
    monkeypatch.setattr(
        pytest.Pytester,
        "_Pytester__take_sys_modules_snapshot",
        lambda _self: SysModulesSnapshot(preserve=lambda name: name.partition(".")[0] in kept),
    )


@pytest.fixture
def traces(pytester: pytest.Pytester) -> Path:
    """A file of three traces, of which one departs, and one that cannot be read."""
    folder = pytester.path / "traces"
    folder.mkdir()
    bad = [opened(trace="b/1"), append(0, 0, trace="b/1"), index(0, 7, trace="b/1")]
    good = [opened(trace="a/0"), append(0, 0, trace="a/0"), index(0, 0, trace="a/0")]
    write(folder / "queues.ndjson", [*good, *bad, in_log("open", 0, 1024)])
    return folder


def test_each_trace_is_a_test_and_the_one_that_departs_tells_its_story(pytester: pytest.Pytester, traces: Path) -> None:
    done = pytester.runpytest_inprocess(*PLUGIN, "--gapless", "--junit-xml", "junit.xml", "-v", traces)
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["traces/queues.ndjson::a/0 PASSED*", "traces/queues.ndjson::b/1 FAILED*"])
    done.stdout.fnmatch_lines(["*gapless: b/1*", "queue b/1 departs at queues.ndjson, line 7."])
    done.stdout.fnmatch_lines(['index breaks the rule "the entry points at its message".'])
    assert "Traceback" not in done.stdout.str()
    assert "Report(" not in done.stdout.str()
    cases = ET.parse(pytester.path / "junit.xml").iter("testcase")  # noqa: S314 - our own file
    assert [case.get("name") for case in cases] == ["commitlog", "a/0", "b/1"]


def test_k_chooses_among_traces(pytester: pytest.Pytester, traces: Path) -> None:
    pytester.runpytest_inprocess(*PLUGIN, "--gapless", "-k", "a/0", traces).assert_outcomes(passed=1, deselected=2)


def test_a_source_of_many_traces_is_one_test(pytester: pytest.Pytester, traces: Path) -> None:
    done = pytester.runpytest_inprocess(*PLUGIN, "--gapless", "--gapless-traces", "2", traces)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["departs: 1 violation found. 3 traces read*"])


def test_what_cannot_be_read_or_holds_nothing_fails(pytester: pytest.Pytester, traces: Path) -> None:
    (traces / "queues.ndjson").write_text("nothing\n")
    write(traces / "unopened.ndjson", [append(0, 0)])
    done = pytester.runpytest_inprocess(*PLUGIN, "--gapless", "-v", traces)
    assert done.ret == 1
    done.stdout.fnmatch_lines(["traces/queues.ndjson::whole FAILED*", "traces/unopened.ndjson::whole FAILED*"])
    done.stdout.fnmatch_lines(["traces/unopened.ndjson::TopicTest/3 FAILED*", "TopicTest/3 is inconclusive."])
    done.stdout.fnmatch_lines(["*line 1: * expected*", "*do not begin with open*"])


def test_what_no_trace_tells_of_fails_the_whole(
    pytester: pytest.Pytester, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding of a trace that the table calls sound, or does not know, is reported too."""
    report = check(traces / "queues.ndjson")
    sound = [collecting.TraceVerdict("queue", "a/0", "conforms", None, "a/0")]
    monkeypatch.setattr(collecting, "_checked", lambda *_: (report, sound))
    done = pytester.runpytest_inprocess(*PLUGIN, "--gapless", "-v", traces)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["traces/queues.ndjson::whole FAILED*", "*queue b/1 departs at*"])


def test_pyproject_says_what_the_command_line_does_not(pytester: pytest.Pytester, traces: Path) -> None:
    """The settings of the command line apply: ignored rules, profile; arguments of a call take precedence."""
    of_stores = 'copied = true\ntrace-topic = ["audit"]\nonly-broker = true\n'
    pytester.makepyprojecttoml(f'[tool.gapless]\nignore = ["queue"]\nprofile = "rocketmq"\n{of_stores}')
    pytester.runpytest_inprocess(*PLUGIN, "--gapless", traces).assert_outcomes(passed=3)
    pytester.makepyfile(
        """
        def test_it(assert_conforms):
            assert assert_conforms("traces/queues.ndjson").profile == "rocketmq"
            assert assert_conforms("traces/queues.ndjson", profile="strict").profile == "strict"
        """
    )
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)
    pytester.makepyprojecttoml('[tool.gapless]\nprofil = "strict"\n')
    wrong = pytester.runpytest_inprocess(*PLUGIN, "--gapless", traces)
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(
        ["ERROR: gapless: pyproject.toml: tool.gapless has a key 'profil' (did you mean profile?)"]
    )
    assert pytester.runpytest_inprocess(*PLUGIN).ret == pytest.ExitCode.TESTS_FAILED, "only tests that ask for it fail"
    pytester.makepyprojecttoml('[tool.gapless]\nfail-on = ["warning"]\n')
    assert pytester.runpytest_inprocess(*PLUGIN, "--gapless", traces).ret == pytest.ExitCode.USAGE_ERROR
    pytester.makepyprojecttoml('[tool.gapless]\nbaseline = "none.json"\n')
    assert pytester.runpytest_inprocess(*PLUGIN, "--gapless", traces).ret == pytest.ExitCode.USAGE_ERROR


def test_without_names_neither_tests_nor_failures_tell_them(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`redact = true`, as for the command, under the same key; names of files stay."""
    some = [[opened(trace=t), append(0, 0, trace=t), index(0, 7, trace=t)] for t in ("salaries/1", "salaries/2")]
    write(pytester.path / "queues.ndjson", [event for one in some for event in one])
    pytester.makepyprojecttoml("[tool.gapless]\nredact = true\n")
    pytester.makepyfile(
        """
        def test_it(assert_conforms):
            assert_conforms("queues.ndjson")
        """
    )
    monkeypatch.setenv("GAPLESS_REDACT_KEY", "of-this-test")
    by_command = json.loads(gapless("check", "queues.ndjson", "--json", "-").stdout)["findings"][0]["trace"]
    for _ in range(2):
        done = pytester.runpytest_inprocess(*PLUGIN, "--gapless", "-v", "--junit-xml", "junit.xml")
        done.assert_outcomes(failed=3)
        output = done.stdout.str() + (pytester.path / "junit.xml").read_text()
        assert "salaries" not in output
        assert f"queues.ndjson::{by_command} FAILED" in output
        assert f"queue {by_command} departs at" in output
        assert 'index breaks the rule "the entry points at its message".' in output
    monkeypatch.delenv("GAPLESS_REDACT_KEY")
    pytester.runpytest_inprocess(*PLUGIN, "--gapless").assert_outcomes(failed=3)
    pytester.makepyprojecttoml('[tool.gapless]\nredact = true\nbaseline = "known.json"\n')
    (pytester.path / "known.json").write_text('{"schema": 1, "findings": []}')
    without = pytester.runpytest_inprocess(*PLUGIN, "--gapless")
    assert without.ret == pytest.ExitCode.USAGE_ERROR
    without.stderr.fnmatch_lines(["ERROR: gapless: tool.gapless.redact: *set GAPLESS_REDACT_KEY*"])


def test_workers_of_one_run_find_the_same_tests_without_names(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(pytester.path / "queues.ndjson", [opened(trace="salaries/1"), append(0, 0, trace="salaries/1")])
    pytester.makepyprojecttoml("[tool.gapless]\nredact = true\n")
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "of-this-run")
    names = [
        [item.name for item in pytester.inline_genitems(*PLUGIN, "--gapless", "queues.ndjson")[0]] for _ in range(2)
    ]
    assert names[0] == names[1]
    assert "salaries" not in names[0][0]


def test_what_a_baseline_knows_is_skipped(pytester: pytest.Pytester, traces: Path) -> None:
    pytester.makepyprojecttoml('[tool.gapless]\nbaseline = "known.json"\n')
    assert gapless("check", "traces/queues.ndjson", "--update-baseline").exit_code == 0
    pytester.runpytest_inprocess(*PLUGIN, "--gapless", traces).assert_outcomes(passed=2, skipped=1)
    few = pytester.runpytest_inprocess(*PLUGIN, "--gapless", "--gapless-traces", "2", "-rs", traces)
    few.assert_outcomes(skipped=1)
    few.stdout.fnmatch_lines(["SKIPPED*1 finding known from the baseline, and not counted"])
    some = [[opened(trace=t), append(0, 0, trace=t), index(0, 7, trace=t)] for t in ("b/1", "b/2")]
    write(traces / "queues.ndjson", [event for one in some for event in one])
    pytester.runpytest_inprocess(*PLUGIN, "--gapless", traces).assert_outcomes(failed=2)
    assert gapless("check", "traces/queues.ndjson", "--update-baseline").exit_code == 0
    pytester.runpytest_inprocess(*PLUGIN, "--gapless", traces).assert_outcomes(skipped=2)


def test_anomalies_fail_where_that_is_asked_for(pytester: pytest.Pytester) -> None:
    write(pytester.path / "odd.ndjson", [opened(), append(0, 0), append(0, 340), index(0, 340), step("settle", 680)])
    pytester.makepyprojecttoml('[tool.gapless]\nprofile = "rocketmq"\n')
    pytester.runpytest_inprocess(*PLUGIN, "--gapless", "odd.ndjson").assert_outcomes(passed=1)
    pytester.makepyprojecttoml('[tool.gapless]\nprofile = "rocketmq"\nfail-on = ["anomaly"]\n')
    pytester.runpytest_inprocess(*PLUGIN, "--gapless", "odd.ndjson").assert_outcomes(failed=1)


def test_a_story_that_is_not_the_first_of_its_kind_is_reported_too(pytester: pytest.Pytester) -> None:
    some = [[opened(trace=t), append(0, 0, trace=t), index(0, 7, trace=t)] for t in ("b/1", "b/2")]
    write(pytester.path / "queues.ndjson", [event for one in some for event in one])
    done = pytester.runpytest_inprocess(*PLUGIN, "--gapless", "queues.ndjson")
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["queue b/1 departs at *, line 4.", "queue b/2 departs at *, line 7."])


def test_a_folder_that_is_a_recording_is_one(pytester: pytest.Pytester) -> None:
    (pytester.path / "traces" / "broker" / "store" / "commitlog").mkdir(parents=True)
    done = pytester.runpytest_inprocess(*PLUGIN, "--gapless", "-v", "traces")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*broker*::whole FAILED*"])


def test_without_the_option_recordings_are_no_tests(pytester: pytest.Pytester, traces: Path) -> None:
    assert pytester.runpytest_inprocess(*PLUGIN, traces).ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_stories_are_tests(pytester: pytest.Pytester) -> None:
    head = "gapless story 1\nspec: queue\nprofile: strict\n\n"
    story = f"{head}  1. append(number=0, count=1, position=0, size=340, tag=0)   end 0 → 1, sizes[0] 0 → 340\n"
    for name, text in {
        "good": story,
        "bad": story.replace("0 → 1", "0 → 2"),
        "odd": head,
        "theirs": "Narrative: another plugin's",
    }.items():
        (pytester.path / f"{name}.story").write_text(text, encoding="utf-8")
    done = pytester.runpytest_inprocess(*PLUGIN, "-v")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["bad.story::story FAILED*", "good.story::story PASSED*", "odd.story::story FAILED*"])
    done.stdout.fnmatch_lines(
        [
            "bad.story goes otherwise.",
            "line 5 says 'end 0 → 2, sizes[0] 0 → 340', and it is 'end 0 → 1, sizes[0] 0 → 340'",
            "It goes:",
            "*odd.story, line 3: there is no step, expected 1. STEP(ARGUMENT=NUMBER, …)",
        ]
    )


def test_the_fixture_and_the_function_say_the_same(pytester: pytest.Pytester, tmp_path: Path) -> None:
    write(tmp_path / "good.ndjson", QUEUE)
    write(tmp_path / "bad.ndjson", [*QUEUE[:4], index(1, 7)])
    pytester.makepyfile(
        f"""
        def test_good(assert_conforms):
            assert assert_conforms({str(tmp_path / "good.ndjson")!r}).verdict == "conforms"

        def test_bad(assert_conforms):
            assert_conforms({str(tmp_path / "bad.ndjson")!r})
        """
    )
    done = pytester.runpytest_inprocess(*PLUGIN)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines([">*assert_conforms(*bad.ndjson*", "E*queue TopicTest/3 departs at bad.ndjson, line 6.*"])
    assert "conformance.py" not in done.stdout.str()
    with pytest.raises(DoesNotConform) as wrong:
        assert_conforms(tmp_path / "bad.ndjson")
    assert str(wrong.value) == str(wrong.value.report)
    assert "Here: number = 1, position = 7, positions[1] = 340." in str(wrong.value)
    assert str(wrong.value).splitlines()[-1].startswith("departs: 1 violation found. 1 trace read, 5 events checked in")


def test_the_plugin_loads_nothing_where_it_is_not_used() -> None:
    """Every pytest of an environment with gapless in it loads the plugin."""
    code = (
        "import sys, pytest; before = set(sys.modules); import gapless.pytest_plugin; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["gapless"]


def test_a_machine_that_is_named_like_a_test_is_an_error(pytester: pytest.Pytester) -> None:
    """Without `.TestCase` pytest would leave it out, and be green."""
    pytester.makepyfile(
        "from gapless import machine_for\n"
        "from examples.lease_service import LeaseService\n"
        f"TestLease = machine_for({str(ROOT / 'examples/lease.py')!r}, LeaseService)\n"
    )
    done = pytester.runpytest_inprocess(*PLUGIN)
    assert done.ret == pytest.ExitCode.INTERRUPTED
    done.stdout.fnmatch_lines(
        ["TestLease is a machine, which pytest does not run: write `TestLease = machine_for(…).TestCase`"]
    )
    pytester.makepyfile(
        "from gapless import machine_for\n"
        "from examples.lease_service import LeaseService\n"
        f"Lease = machine_for({str(ROOT / 'examples/lease.py')!r}, LeaseService)\n"
        "def test_it(): assert Lease.TestCase\n"
    )
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)


def test_advice_names_the_option_of_pytest(pytester: pytest.Pytester) -> None:
    (pytester.path / "lease.ndjson").write_text((ROOT / "examples/lease.ndjson").read_text("utf-8"), "utf-8")
    done = pytester.runpytest_inprocess(*PLUGIN, "--gapless", "lease.ndjson")
    done.stdout.fnmatch_lines(["*'lease', which is none of ours: --gapless-spec FILE names one of yours*"])
