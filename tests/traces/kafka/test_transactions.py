"""Transactions of real coordinators over their partitions: what hangs is found, and no lack of evidence accuses."""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from gapless import check
from gapless.traces.evidence import Evidence
from gapless.traces.report.values import Report, Where
from gapless.traces.sources.kafka.check import LogCheck
from gapless.traces.sources.kafka.joining.findings import WaitingTransaction
from gapless.traces.sources.kafka.judging.table_piece import CoordinatorRows
from gapless.traces.sources.kafka.judging.transaction_items import DATA, together
from gapless.traces.sources.kafka.log import column_store
from gapless.traces.sources.kafka.transactions import gathering
from gapless.traces.sources.kafka.transactions.hazards import waiting_ids
from gapless.traces.sources.kafka.transactions.table import CoordinatorTable
from tests.support.kafka.evidence import OPTIONS, changed, gathered, judged, less
from tests.support.kafka.recordings import NAMES, defect, manifest, recording
from tests.support.kafka.transaction_faults import FAULTS
from tests.support.night import NIGHT, by_day

HANGS = "kafka_transaction/records-belong-to-an-open-transaction"
LOG = "orders-0/00000000000000000000.log"
SHORT = 25  # lines of a story
WHOLE = ("3.5.2-txn", "4.4.0-kill", "4.0.0-timeouts")
"""Recordings whose table was never cleaned."""
DIRECTORIES = [(name, directory) for name in NAMES for directory in manifest(name)["expected"]]
TRIALS = 60 if NIGHT else 4


def found_in(name: str, room: Path) -> Report:
    """The report on the data directory of a recording of a defect."""
    return check(defect(name, room) / "n1", jobs=1)


@pytest.mark.parametrize(
    ("name", "place", "offset"),
    [("3.5.2-late", 543, 5), ("3.5.2-stale", 985, 9)],
    ids=["KAFKA-12671", "KAFKA-17754"],
)
def test_what_hangs_is_found_where_it_lies(name: str, place: int, offset: int, tmp_path: Path) -> None:
    report = found_in(name, tmp_path)
    (found,) = report.violations
    assert (found.rule, found.trace) == (HANGS, "__transaction_state/t")
    assert (found.where.file, found.where.offset, found.position) == (LOG, place, offset)
    assert len(found.story) <= SHORT
    again = check(tmp_path / name / "n1", profile="kafka-3.5", jobs=1)
    assert (again.verdict, again.anomalies) == ("conforms", {"hang": 1})


@pytest.mark.parametrize("name", ["3.5.2-txn", "4.4.0-kill"])
def test_every_decision_and_marker_of_a_whole_table_is_judged(name: str) -> None:
    path = recording(name) / "n1"
    accepted = check(path, jobs=1).coverage
    assert accepted["kafka_transaction.complete"] > 20
    assert accepted["kafka_transaction.mark"] > accepted["kafka_transaction.complete"]
    assert accepted["kafka_transaction.write"] > accepted["kafka_transaction.complete"]


@pytest.mark.parametrize(("name", "directory"), by_day(DIRECTORIES, 1 / 10))
def test_no_lack_of_evidence_accuses(name: str, directory: str) -> None:
    copies = gathered(recording(name) / directory)
    for trial in range(TRIALS):
        found = judged(less(copies, random.Random(f"{name} {directory} {trial}")))
        assert not found.breaches, trial
        assert not found.inconclusive, trial


@pytest.mark.parametrize("kind", ["missing", "turned", "epoch"])
@pytest.mark.parametrize("name", WHOLE)
def test_a_marker_that_is_wrong_is_found(name: str, kind: str) -> None:
    copies = gathered(recording(name) / "n1")
    for which, copy in enumerate(copies):
        items = together(copy.items)
        marks = np.flatnonzero(items.kind != DATA)
        if not len(marks) or copy.placed.name.topic.startswith("__"):
            continue
        at = int(marks[len(marks) // 2])
        if kind == "missing":
            wrong = items.of(np.delete(np.arange(len(items.first)), at))
        elif kind == "turned":
            wrong = items._replace(kind=np.where(np.arange(len(items.kind)) == at, 1 - items.kind, items.kind))
        else:
            wrong = items._replace(epoch=items.epoch + 2 * (np.arange(len(items.epoch)) == at))
        assert judged(changed(copies, which, wrong)).breaches, copy.placed.name


def test_without_its_table_partitions_are_judged_and_the_report_says_what_is_not(tmp_path: Path) -> None:
    path = tmp_path / "n1"
    shutil.copytree(recording("3.5.2-txn") / "n1", path, ignore=shutil.ignore_patterns("__transaction_state-*"))
    report = check(path, jobs=1)
    assert (report.verdict, report.counts.by_spec["kafka_transaction"]) == ("conforms", 0)
    assert any(
        line.startswith("kafka_transaction: no row of __transaction_state was read") for line in report.not_exercised
    )


def test_two_copies_of_one_node_are_not_joined(tmp_path: Path) -> None:
    for name in ("before", "after"):
        shutil.copytree(recording("4.0.0-timeouts") / "n1", tmp_path / "both" / name)
    report = check(tmp_path / "both", jobs=1)
    assert "transactions are not judged: two copies of one node are among the directories" in report.sources[0].notes


def test_of_two_replicas_one_is_judged_and_a_node_that_lags_is_no_departure(tmp_path: Path) -> None:
    whole, room = recording("3.5.2-txn") / "n1", tmp_path / "cluster"
    for node in (1, 2):
        shutil.copytree(whole, room / f"n{node}")
        text = (room / f"n{node}" / "meta.properties").read_text(encoding="utf-8")
        (room / f"n{node}" / "meta.properties").write_text(
            text.replace("node.id=1", f"node.id={node}"), encoding="utf-8"
        )
    shutil.rmtree(room / "n2" / "orders-1")
    one, both = check(whole, jobs=1), check(room, jobs=1)
    assert both.verdict == "conforms"
    assert both.coverage["kafka_transaction.mark"] == one.coverage["kafka_transaction.mark"]


def test_a_transactional_id_is_explained_step_by_step() -> None:
    path = recording("4.0.0-timeouts") / "n1"
    report = check(path, trace="__transaction_state/slow", jobs=1)
    assert (report.verdict, report.life[0].split("(")[0].split()[-1]) == ("conforms", "open")
    assert any("decide two epochs ahead" in line for line in report.life)
    (reason,) = check(path, trace="__transaction_state/sl", jobs=1).sources[0].reasons
    assert reason.startswith(
        "no transactional id and no group __transaction_state/sl in it (did you mean __transaction_state/slow?)"
    )


@pytest.mark.parametrize(
    ("statuses", "later", "timeout", "starts", "found"),
    [
        ([0, 1, 2], 59_999, -1, None, []),
        ([0, 1, 2], 61_000, -1, None, [(2, "every-decision-is-complete")]),
        ([0, 1, 1], 899_000, 5_000, None, []),
        ([0, 1, 1], 901_000, 5_000, None, [(1, "nothing-hangs")]),
        ([0, 1, 1], 1_900_000, 1_860_000, None, []),
        ([0, 1, 1], 64_000, 5_000, [1_000], []),
        ([0, 1, 1], 66_000, 5_000, [1_000], [(1, "nothing-hangs")]),
        ([0, 1, 1], 66_000, 5_000, [1_000, 8_000], []),
        ([0, 1, 1], 901_000, 900_000, [1_000], []),
        ([0, 1, 2, 4], 10_000_000, 5_000, [1_000], []),
    ],
)
def test_a_transaction_that_keeps_readers_waiting_is_a_hazard(
    statuses: list[int], later: int, timeout: int, starts: list[int] | None, found: list[tuple[int, str]]
) -> None:
    count = len(statuses) + 1
    named = {
        "id": [7] * (count - 1) + [9], "offset": list(range(count)), "producer": [5] * (count - 1) + [6],
        "status": [*statuses, 0], "time": [1_000] * (count - 1) + [1_000 + later], "timeout": [timeout] * count,
        "protocol": [1] * count,
    }  # fmt: skip
    rows = CoordinatorRows(*(np.array(named.get(name, [0] * count)) for name in CoordinatorRows._fields))
    table = CoordinatorTable(rows, np.zeros(count, np.int64), np.array([False]), {7: "a", 9: "b"}, {})
    waiting = list(waiting_ids(table, None if starts is None else np.array(starts)))
    assert [(one.row, one.rule) for one in waiting] == [(row, f"kafka_transaction/{rule}") for row, rule in found]
    assert all(one.age == later for one in waiting)


def test_a_hazard_is_reported_with_its_age_and_changes_no_verdict(tmp_path: Path) -> None:
    room = tmp_path / "n1"
    shutil.copytree(recording("4.0.0-timeouts") / "n1", room)
    made = LogCheck(room, room, OPTIONS, Evidence())
    for bundle in made.splits:
        made.take(made.judge_bundle(bundle))
    where = Where(file="__transaction_state-0/00000000000000000000.log", offset=7)
    waiting = WaitingTransaction("__transaction_state/a", "kafka_transaction/nothing-hangs", 3, where, 901_000)
    made.found.hazards.append(waiting)
    (one,) = [one for one in made.summarised().findings if one.severity == "hazard"]
    assert one.message == "__transaction_state/a, offset 3: the transaction is open for 901 s"
    assert len(one.story) <= SHORT


@pytest.mark.parametrize("name", ["3.5.2-late", "3.5.2-stale"])
def test_evidence_that_is_laid_down_is_judged_as_in_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = defect(name, tmp_path) / "n1"
    whole = check(path, jobs=1)
    for module, most in ((gathering, "WAITING"), (gathering, "TOGETHER"), (column_store, "ROWS")):
        monkeypatch.setattr(module, most, 3)
    some = check(path, jobs=1)
    assert some.coverage["kafka_transaction.complete"] > 0
    assert (some.findings, some.coverage, some.sources) == (whole.findings, whole.coverage, whole.sources)


@pytest.mark.parametrize("kind", by_day(list(FAULTS), 1 / 4))
@pytest.mark.parametrize("name", WHOLE if NIGHT else WHOLE[:1])
def test_a_fault_of_a_transaction_is_found_in_its_trace(name: str, kind: str) -> None:
    copies, trials = gathered(recording(name) / "n1"), 20 if NIGHT else 2
    made = [FAULTS[kind](copies, random.Random(f"{name} {kind} {trial}")) for trial in range(trials)]
    tried = [(judged(wrong), traces) for wrong, traces in filter(None, made)]
    seen = [({one.trace for one in found.breaches}, traces, found.anomalies) for found, traces in tried]
    assert all(broken <= traces for broken, traces, _ in seen), "in its own trace, and in no other"
    missed = [traces for broken, traces, anomalies in seen if not broken and not anomalies]
    assert len(missed) <= 3 * len(tried) // 100, missed
