"""Answers about offsets of groups: those that never counted are found, at their line."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from gapless import check
from gapless.traces.report.values import Report
from gapless.traces.sources.kafka.clients.group_judge import NONE, asked_behind
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.judging.offset_piece import CommittedOffsets
from gapless.traces.sources.kafka.judging.transaction_items import ABORT, COMMIT, DATA, TransactionItems
from gapless.traces.sources.kafka.transactions.offset_events import offset_events
from gapless.traces.sources.kafka.transactions.traces import JudgedGroups
from tests.support.kafka.recordings import recording

COUNTS = "group_offsets/offset-that-a-consumer-receives-counts"
INPUT = {"group": "app", "topic": "input", "partition": 0}
"""Of 3.5.2-txn: the group committed 60 in transactions, and nothing else."""


def report_of(name: str, room: Path, *lines: dict[str, Any]) -> Report:
    answers = (recording(name) / "client.ndjson").read_text("utf-8")
    file = room / "answers.ndjson"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + answers, "utf-8")
    return check(recording(name) / "n1", client=file, jobs=1)


def test_an_offset_that_never_counted_is_found(tmp_path: Path) -> None:
    """An offset that counted is right; a group without an offset, or one that is not there, says nothing."""
    right = (
        {"op": "fetched", "offset": 60, **INPUT}, {"op": "committed", "offset": 60, **INPUT},
        {"op": "fetched", "offset": -1, **INPUT}, {"op": "fetched", "offset": 61, **INPUT, "group": "other"},
    )  # fmt: skip
    lawful = report_of("3.5.2-txn", tmp_path, *right)
    counts = {step: lawful.coverage[f"group_offsets.{step}"] for step in ("commit_in_transaction", "mark", "receive")}
    assert (lawful.verdict, counts["receive"]) == ("conforms", 1)
    assert counts["commit_in_transaction"] >= counts["mark"] > 10
    wrong = {"op": "committed", "offset": 61, **INPUT}, {"op": "fetched", "offset": 62, **INPUT, "partition": 1}
    report = report_of("3.5.2-txn", tmp_path, *right, *wrong)
    (found,) = report.violations
    assert (found.rule, found.count, found.where.file) == (COUNTS, 2, "__consumer_offsets-1/00000000000000000000.log")
    assert any("Line 6 of answers.ndjson: offset 62 of app/input-1 is committed" in text for text in found.story)
    assert len(found.story) <= 25


def test_what_compaction_removed_accuses_no_broker(tmp_path: Path) -> None:
    line = {"op": "fetched", "group": "g1", "topic": "in", "partition": 0, "offset": 61}
    report = report_of("3.9.2-coordinators", tmp_path, line)
    assert (report.verdict, report.coverage["group_offsets.open"] > 0) == ("conforms", True)
    assert any("older records may be gone" in note for note in report.sources[0].notes)


def test_an_offset_is_asked_for_where_it_must_count_if_it_ever_did() -> None:
    """At its commit, behind its marker, behind its abort, at the end; nowhere if it waits, or was overtaken."""
    rows = [(0, 10, NONE), (1, 11, 1), (3, 12, 1), (5, 13, 1), (6, 10, NONE), (8, 14, 1)]  # position, offset, producer
    marks = [(1, 1, DATA), (1, 2, ABORT), (1, 3, DATA), (1, 4, COMMIT), (1, 5, DATA), (1, 7, COMMIT), (1, 8, DATA)]
    at, committed, producer = np.array(rows, np.int64).T
    pid, first, kind = np.array(marks, np.int64).T
    none = np.zeros(len(marks), np.int64)
    made = offset_events(
        CommittedOffsets(np.full(len(rows), 7), at, committed, producer),
        TransactionItems(pid, first, first, none, kind, none, none), 0, np.zeros(0, np.int64),
    )  # fmt: skip
    group = JudgedGroups(PartitionName("__consumer_offsets", 0), (), 0, ["__consumer_offsets/g/t-0"], made)
    asked = np.array([10, 11, 12, 13, 14, 99])
    steps = [made.events.at(int(row)) if row != NONE else None for row in asked_behind(group, np.zeros(6, int), asked)]
    assert steps[:5] == [("commit", (6, 10)), ("mark", (2, 1, 0)), ("mark", (4, 1, 1)), None, None]
    assert steps[5] == made.events.at(len(made.at) - 1)
