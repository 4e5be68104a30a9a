"""Many small files are judged together: the report is that of checks of each, to the byte."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gapless import check
from gapless.traces.engines import local
from gapless.traces.report.parts import Parts
from gapless.traces.sources.event_files import small_files
from gapless.traces.sources.event_files.source import EventFiles
from tests.support.event_files import mixed_traces, table_in, write
from tests.support.night import NIGHT
from tests.support.small_files import folder_of


def report_of(path: Path, table: Path, **how: Any) -> tuple[str, list[dict[str, Any]]]:
    """All that a check says, and its verdict table."""
    report = check(path, verdicts=table, **how)
    rows = sorted(table_in(table), key=lambda row: row["source"])
    shutil.rmtree(table)
    return report.model_copy(update={"seconds": 0.0, "compiling": 0.0}).model_dump_json(), rows


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function after which each file is judged by itself."""
    return lambda: monkeypatch.setattr(EventFiles, "together", lambda *_: None)


HOW: tuple[dict[str, Any], ...] = (
    {},
    {"profile": "rocketmq"},
    {"profile": "strict", "ignore": ["queue"]},
    {"topic": "T"},
    {"topic": "none"},
    {"split": 400},
)


@pytest.mark.parametrize("how", HOW if NIGHT else (*HOW[:2], HOW[3]), ids=str)
def test_files_of_every_kind_are_judged_as_each_by_itself(
    how: dict[str, Any], tmp_path: Path, alone: Callable[[], None]
) -> None:
    chance = random.Random(f"{how}")
    folder = folder_of(tmp_path / "files", 600 if NIGHT else 50, chance)
    together = report_of(folder, tmp_path / "table", jobs=1, **how)
    alone()
    assert together == report_of(folder, tmp_path / "table", jobs=1, **how)


def test_files_that_conform_are_only_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no other path is taken: neither is one of them opened again, nor judged by itself."""
    for number in range(20):
        write(tmp_path / f"{number}.ndjson", mixed_traces([0] * (number % 3 + 1), mingled=2))
    monkeypatch.setattr(small_files._GroupJudge, "_alone", None)
    monkeypatch.setattr(EventFiles, "open", None)
    report = check(tmp_path)
    assert (report.verdict, report.counts.traces, len(report.sources)) == ("conforms", 39, 20)
    assert check(sorted(tmp_path.iterdir())).counts == check(tmp_path / "*.ndjson").counts == report.counts


def test_an_interrupt_ends_a_check_of_small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were judged before are in the report, the others were not read, and there is no table."""
    for number in range(20):
        write(tmp_path / f"{number:02d}.ndjson", mixed_traces([number % 2], mingled=1))

    def interrupted(self: Any, lines: Any, events: Any) -> Any:
        if lines.file.number == 9:
            raise KeyboardInterrupt
        return judged(self, lines, events)

    judged = small_files._GroupJudge._alone
    monkeypatch.setattr(small_files._GroupJudge, "_alone", interrupted)
    report = check(tmp_path, verdicts=tmp_path.with_suffix(".table"))
    assert (report.interrupted, report.verdict) == (True, "departs")
    assert [source.verdict for source in report.sources] == [*["conforms", "departs"] * 4, "conforms"] + [
        "inconclusive"
    ] * 11
    assert {reason for source in report.sources[9:] for reason in source.reasons} == {"interrupted before it was read"}
    assert not tmp_path.with_suffix(".table").exists()


def test_a_worker_that_ends_leaves_its_files_to_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        write(tmp_path / f"{number:02d}.ndjson", mixed_traces([0], mingled=1))
    monkeypatch.setattr(small_files, "FILES", 5)
    monkeypatch.setattr(local, "ONE_PROCESS", 0)
    monkeypatch.setattr(small_files.GroupTask, "__call__", _ends)
    table = tmp_path.with_suffix(".table")
    report = check(tmp_path, jobs=2, verdicts=table)
    assert (report.verdict, report.counts.traces, len(table_in(table))) == ("conforms", 20, 20)


def _ends(_: small_files.GroupTask, group: small_files.FileGroup) -> small_files.GroupResult:
    if group.number == 2:
        os._exit(1)
    result = small_files.GroupResult()
    for one in group.files:
        result.parts.append((one.number, Parts(unreadable="must be judged again")))
    return result


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_counts_the_bytes_of_all(jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        write(tmp_path / f"{number:02d}.ndjson", mixed_traces([0], mingled=1))
    monkeypatch.setattr(small_files, "FILES", 5)
    monkeypatch.setattr(local, "ONE_PROCESS", 0)
    seen: list[tuple[int, int]] = []
    check(tmp_path, jobs=jobs, progress=lambda done, total: seen.append((done, total)))
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert seen == [(size * part // 4, size) for part in (1, 2, 3, 4)]


def test_few_files_and_one_trace_are_judged_file_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        write(tmp_path / f"{number:02d}.ndjson", mixed_traces([0], mingled=1))
    monkeypatch.setattr(small_files, "SmallFiles", None)
    assert check([tmp_path / f"{number:02d}.ndjson" for number in range(7)]).counts.traces == 7
    assert check(tmp_path, trace="T/0").counts.traces == 9
