"""The verdict table: a row for every trace, complete or absent, and never in a foreign directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from gapless import UsageError, check
from gapless.traces.check import InputCheck
from gapless.traces.events import schema
from gapless.traces.report.outputs import verdict_table
from tests.support.command_line import gapless
from tests.support.event_files import ODD, QUEUE, mixed_traces, table_in
from tests.support.rocketmq.damage import Pick, entry_into_the_middle
from tests.support.rocketmq.recordings import copy_of, recording


def test_a_store_has_a_row_for_its_log_and_every_queue(tmp_path: Path) -> None:
    store = copy_of("varied 1", tmp_path)
    entry_into_the_middle(store, Pick("any", "table"))
    report = check([store], verdicts=tmp_path / "table")
    (finding,) = report.violations
    log, *queues = table_in(tmp_path / "table")
    assert log == {
        "source": str(store), "spec": "log", "trace": "commitlog", "verdict": "conforms", "rule": None,
        "position": None, "events": report.counts.by_spec["log"],
    }  # fmt: skip
    by_name = {f"{row.topic}/{row.queue}": row for row in report.queues}
    assert {row["trace"]: row["verdict"] for row in queues} == {trace: row.verdict for trace, row in by_name.items()}
    for row in queues:
        if row["verdict"] == "departs":
            assert (row["trace"], row["rule"], row["position"]) == (finding.trace, finding.rule, finding.position)
        else:
            assert (row["rule"], row["position"]) == (None, None)
            assert row["events"] == by_name[row["trace"]].messages + by_name[row["trace"]].indexed, "numbers begin at 0"


def test_every_queue_of_many_that_depart_is_listed_with_its_rule(tmp_path: Path) -> None:
    """More than are listed: the others are known by their rule alone."""
    report = check([recording("lab/ghosts")], verdicts=tmp_path / "table")
    departing = [row for row in table_in(tmp_path / "table") if row["verdict"] == "departs"]
    assert len(departing) == report.findings_total == 9
    assert {row["rule"] for row in departing} == {finding.rule for finding in report.violations}


def test_event_files_have_a_row_for_every_trace(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    schema.write_events(path, [tell(at) for at, tell in enumerate(mixed_traces(range(len(ODD)), mingled=1))])
    report = check([path], profile="strict", verdicts=tmp_path / "table")
    rows = {row["trace"]: row for row in table_in(tmp_path / "table")}
    conforming, unopened, log = rows["T/0"], rows["T/3"], rows["T/9"]
    assert conforming == {
        "source": str(path), "spec": "queue", "trace": "T/0", "verdict": "conforms", "rule": None, "position": None,
        "events": 3,
    }  # fmt: skip
    assert unopened == {**conforming, "trace": "T/3", "verdict": "inconclusive", "events": 2}
    assert log == {**conforming, "spec": "log", "trace": "T/9", "events": 5}
    found = {(f.trace, f.rule, f.position) for f in report.violations}
    listed = {(row["trace"], row["rule"], row["position"]) for row in rows.values() if row["verdict"] == "departs"}
    assert found <= listed
    assert len(listed) == report.findings_total
    assert parquet.read_schema(next((tmp_path / "table").glob("*.parquet"))).equals(verdict_table.SCHEMA)
    assert (tmp_path / "table" / "_SUCCESS").read_bytes() == b""


def test_a_source_that_cannot_be_read_adds_no_rows(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.ndjson", tmp_path / "bad.ndjson"
    schema.write_events(good, [tell(at) for at, tell in enumerate(mixed_traces([0] * 4, mingled=1))])
    bad.write_text(good.read_text() * 2)
    report = check([bad, good, tmp_path / "none"], split=900, verdicts=tmp_path / "table")
    assert report.verdict == "unreadable"
    assert [row["source"] for row in table_in(tmp_path / "table")] == [str(good)] * 4
    check([bad], split=900, verdicts=tmp_path / "empty")
    assert parquet.read_table(tmp_path / "empty").to_pylist() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.ndjson", "empty", "good.ndjson", "table"]


def test_nothing_is_written_where_something_is(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    store = recording("lmq")
    check([store], verdicts=kept)  # an empty directory will do
    before = sorted(kept.iterdir())
    assert before
    ran = gapless("check", store, "--verdicts", kept)
    why = "a table of verdicts is there already: name another, or replace it with --verdicts-mode overwrite"
    assert (ran.exit_code, ran.stderr) == (2, f"gapless: {kept}: {why}\n")
    for folder, why in (
        (next(kept.glob("*.parquet")), "not a directory"),
        (tmp_path / "no" / "where", "/no does not exist: make it"),
    ):
        with pytest.raises(UsageError, match=why):
            check([store], verdicts=folder)
    assert sorted(kept.iterdir()) == before
    assert list(tmp_path.iterdir()) == [kept]


def lone_trace(path: Path, name: str) -> Path:
    schema.write_events(path, [tell(at) for at, tell in enumerate(mixed_traces([0], mingled=1))])
    path.write_text(path.read_text().replace("T/0", name))
    return path


def test_a_table_is_replaced_where_that_is_asked_for_and_by_a_whole_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, table = lone_trace(tmp_path / "1.ndjson", "one"), lone_trace(tmp_path / "2.ndjson", "two"), tmp_path / "v"
    check([two, two], verdicts=table)
    (table / "_SUCCESS").unlink()  # as earlier versions had it
    ran = gapless("check", one, "--verdicts", table, "--verdicts-mode", "overwrite")
    assert (ran.exit_code, ran.stdout.splitlines()[-1]) == (0, f"verdicts: {table}")
    assert sorted(path.name for path in table.iterdir()) == ["000-000000.parquet", "_SUCCESS"]
    assert [row["trace"] for row in table_in(table)] == ["one"]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    def refused(*_: object) -> None:
        raise OSError(5, "no more")

    with monkeypatch.context() as broken:
        broken.setattr(InputCheck, "_read", interrupted)
        assert check([two], verdicts=table, verdicts_mode="overwrite").interrupted
    ways: Iterator[Any] = iter([Path.rename, refused, Path.rename])  # aside, into its place, back

    def renamed(path: Path, target: Path) -> object:
        return next(ways)(path, target)

    monkeypatch.setattr(Path, "rename", renamed)
    with pytest.raises(UsageError, match=r"v: verdicts cannot be written there \(no more\)"):
        check([two], verdicts=table, verdicts_mode="overwrite")
    assert [row["trace"] for row in table_in(table)] == ["one"]


def test_a_directory_with_anything_else_is_never_replaced(tmp_path: Path) -> None:
    path = lone_trace(tmp_path / "1.ndjson", "one")
    check([path], verdicts=tmp_path / "v")
    (tmp_path / "v" / "notes.txt").touch()
    with pytest.raises(UsageError, match=r"not empty: it has notes.txt; the verdicts go into a directory of their own"):
        check([path], verdicts=tmp_path / "v", verdicts_mode="overwrite")
    assert len(list((tmp_path / "v").iterdir())) == 3
    with pytest.raises(UsageError, match="verdicts-mode: append, expected error or overwrite"):
        check([path], verdicts=tmp_path / "w", verdicts_mode="append")


def test_verdicts_that_do_not_arrive_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of another machine may write to its own disk."""
    path = tmp_path / "events.ndjson"
    schema.write_events(path, [tell(at) for at, tell in enumerate(QUEUE)])
    monkeypatch.setattr(verdict_table, "_write", lambda folder, *_: int(folder.is_dir()))
    with pytest.raises(UsageError, match="it must be on a file system that all of them share"):
        check([path], verdicts=tmp_path / "table")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_directory_that_may_not_be_made_is_reported_before_anything_is_judged(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="nothing can be made in"):
        check([recording("lmq")], verdicts=tmp_path / "table")


def test_engines_are_asked_for_by_name(tmp_path: Path) -> None:
    store = copy_of("varied 1", tmp_path)
    assert check([store], engine="auto").engine == check([store], engine="local").engine == "local"
    assert gapless("check", store, "--engine", "flink").exit_code == 2
    ran = gapless("check", store, "--master", "local[2]")
    assert ran.exit_code == 2
    assert "local[2] is a Spark cluster, and the engine is not spark" in ran.stderr
    with pytest.raises(UsageError, match="no such engine: flink"):
        check([store], engine="flink")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="split: 0"):
        check([store], split=0)
