"""A source of another package is found by its entry point: checked by both engines, followed, compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gapless import check
from gapless.traces.report.sections import PRESENTATIONS
from gapless.traces.sources import registry
from gapless.traces.spark.data_sources import format_of
from tests.support import command_line, toy_source
from tests.support.night import NIGHT
from tests.support.rocketmq.recordings import recording

GOOD = "a/0,open,0,0\na/0,append,0,1,0,340,7\na/0,index,0,0,340,7\n"
BAD = "b/1,open,0,0\nb/1,append,0,1,0,340,7\nb/1,index,0,85,340,7\n"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the toy installed in it, as pip would."""
    site = tmp_path / "site"
    info = site / "toy_source-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-source\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gapless.sources]\ntoy = toy_source:SOURCE\n")
    (site / "toy_source.py").write_text(Path(toy_source.__file__).read_text())
    return site


def gapless(site: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), *sys.path])
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-m", "gapless", *map(str, words)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def checked(site: Path, file: Path, *words: str) -> dict[str, Any]:
    report = site.parent / "report.json"
    result = gapless(site, "check", file, "--json", report, *words)
    assert "Traceback" not in result.stdout + result.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    assert result.returncode == {"conforms": 0, "departs": 1, "unreadable": 2, "inconclusive": 3}[found["verdict"]]
    return found


@pytest.mark.parametrize("engine", ["local", *(["spark"] if NIGHT else [])])
def test_a_source_of_another_package_is_checked_by_both_engines(engine: str, installed: Path, tmp_path: Path) -> None:
    file = tmp_path / "steps.csv"
    file.write_text(GOOD + BAD)
    found = checked(installed, file, "--engine", engine, "--report", str(tmp_path / "page.html"))
    assert (found["verdict"], found["profile"], found["engine"]) == ("departs", "strict", engine)
    assert found["sources"][0]["kind"] == "toy-csv"
    assert [found["counts"][name] for name in ("events", "traces", "queues")] == [6, 2, 0]
    (finding,) = found["findings"]
    assert (finding["rule"], finding["trace"]) == ("queue/entry-points-at-its-message", "b/1")
    assert finding["where"] == {"file": "steps.csv", "offset": 6}
    assert "b/1" in (tmp_path / "page.html").read_text()
    file.write_text(GOOD)
    assert checked(installed, file, "--engine", engine)["verdict"] == "conforms"


def test_without_the_package_the_file_is_unknown(tmp_path: Path) -> None:
    file = tmp_path / "steps.csv"
    file.write_text(GOOD)
    report = check(file)
    assert (report.verdict, report.sources[0].kind) == ("unreadable", "unknown")


def test_a_source_that_cannot_be_loaded_does_no_harm(installed: Path, tmp_path: Path) -> None:
    (installed / "toy_source.py").write_text("raise RuntimeError('no licence')\n")
    file = tmp_path / "steps.csv"
    file.write_text(GOOD)
    (reason,) = checked(installed, file)["sources"][0]["reasons"]
    assert "the source toy cannot be loaded from toy_source:SOURCE (RuntimeError: no licence)" in reason
    assert checked(installed, recording("lmq"))["verdict"] == "conforms"


@pytest.fixture
def with_verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of the toy with verbs, which is installed in this process: a folder and a line."""
    info = tmp_path / "site/toy_verbs-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-verbs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gapless.sources]\ntoy = tests.support.toy_verbs:SOURCE\n")
    monkeypatch.syspath_prepend(info.parent)
    registry._loaded.cache_clear()
    file = tmp_path / "steps.csv"
    file.write_text(GOOD)
    yield file
    registry._loaded.cache_clear()
    del PRESENTATIONS["toy-csv"]


def test_a_source_of_another_package_is_followed(with_verbs: Path) -> None:
    state = with_verbs.with_name("state")
    watch = "watch", with_verbs, "--once", "--state", state
    done = command_line.gapless(*watch)
    assert (done.exit_code, done.stderr) == (0, f"gapless: {with_verbs}: watched from 0 on\n")
    assert done.stdout.splitlines()[-1].startswith("conforms: ")
    with_verbs.write_text(GOOD + BAD)
    done = command_line.gapless(*watch)
    assert (done.exit_code, done.stdout.count("queue/entry-points-at-its-message")) == (1, 2)
    assert done.stderr == f"gapless: {with_verbs}: watched from {len(GOOD):,} on, where it was left\n"
    assert command_line.gapless(*watch).stdout.count("queue/entry-points-at-its-message") == 1  # in the report alone


def test_replicas_of_another_package_are_compared(with_verbs: Path) -> None:
    other = with_verbs.with_name("other.csv")
    other.write_text(GOOD)
    done = command_line.gapless("compare", with_verbs, other)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "conforms, conforms\nall agree\n", "")
    other.write_text(BAD)
    done = command_line.gapless("compare", with_verbs, other)
    assert (done.exit_code, done.stdout) == (1, f"conforms, departs\n{other}: differs\n")


def test_recordings_of_another_package_are_a_table_and_their_form_has_a_schema(with_verbs: Path) -> None:
    toy, *ours = registry.tabled()
    table = format_of(toy)({"path": str(with_verbs)})
    assert [table.name(), *(format_of(one).name() for one in ours)] == ["toy-csv", "rocketmq-store", "kafka-log"]
    reader = table.reader(table.schema())
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert rows == [{"trace": "a/0", "action": action} for action in ("open", "append", "index")]
    assert list(registry.schemas()) == ["toy", "client"]


def test_a_wrong_path_is_reported_what_each_source_expects(with_verbs: Path) -> None:
    other = with_verbs.with_suffix(".txt")
    other.write_text(GOOD)
    (reason,) = check(other).sources[0].reasons
    assert "a CSV of queue steps: its name does not end in .csv" in reason
    assert "a store is a directory" in reason
