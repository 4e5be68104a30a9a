"""Stores of real brokers: their contents are found, and nothing legal is a violation."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gapless import check
from gapless.spec.catalog import SPECS
from tests.support.night import by_day
from tests.support.rocketmq.recordings import COUNTS, recording, recording_with_client
from tests.support.rocketmq.stores import PREPARED, read_log

OF_QUEUES = {deviation.step.__name__ for deviation in SPECS["queue"].deviations}
LAB = {
    "made_anew": (1896, {"append_to_a_queue_made_anew": 8}),
    "blank_slots": (937, {"pass_a_blank_slot": 103}),
    "extended": (1057, {}),
    "delays_changed": (779, {}),
    "quick_stop": (1308, {}),
    "rebuilt": (1409, {}),
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_recording_conforms_with_all_that_it_holds(name: str) -> None:
    """Records and messages per queue are those that the plain reader of these tests counts."""
    store = recording(name)
    report = check([store])
    assert (report.verdict, report.exit_code) == ("conforms", 0), report.model_dump_json(indent=1)
    assert not report.violations
    assert not report.overdue
    assert report.sources[0].records == COUNTS[name][0]
    counted = Counter((record.topic, record.queue) for record in read_log(store) if record.is_queued)
    rows = {(row.topic, row.queue): row.messages for row in report.queues if not row.topic.startswith("%LMQ%")}
    assert rows == counted
    assert report.coverage["queue.append"] == report.coverage["queue.index"] > 0
    assert PREPARED  # records with this flag have no queue, and `is_queued` knows


ODD = {  # counts of only these recordings
    "v4": {"write_one_alone": 732},
    "immunity": {"put_back_while_immune": 73, "commit_an_old_version": 11, "roll_back_an_old_version": 3},
    "odd_clients": {"resume": 3, "commit_after_rolling_back": 4, "roll_back_after_committing": 22, "mark_again": 72},
    "kill9": {"put_back_after_a_decision": 67, "commit_again": 67},
}


@pytest.mark.parametrize("client", [False, True])
@pytest.mark.parametrize("name", COUNTS)
def test_the_transactions_of_a_recording_are_all_found(name: str, client: bool) -> None:  # noqa: FBT001 - a case
    report = check([recording_with_client(name) if client else recording(name)])
    assert (report.verdict, report.exit_code) == ("conforms", 0), report.model_dump_json(indent=1)
    (found,) = report.transactions
    counts = (found.halves, found.renewals, found.finals, found.ops, found.marks, found.parked)
    assert counts == COUNTS[name][1:]
    assert sum(found.outcomes.values()) == found.transactions == sum(found.back_checks.values())
    assert sum(found.batches.values()) == found.ops
    assert ODD.get(name, {}).items() <= report.anomalies.items()
    exercised = {step for step, count in report.coverage.items() if count}
    assert exercised >= {"transaction.prepare", "transaction.commit", "transaction.mark", "transaction.park"}
    assert exercised >= {"checkpoint.advance", "op_batch.write"}
    promised = {"queue.acknowledge", "queue.account", "transaction.acknowledge", "transaction.ask_back"}
    assert exercised & promised == (promised if client else set())
    assert len(report.clients) == client


@pytest.mark.parametrize("name", ["normal", "odd_clients", "kill9"])
def test_the_strict_profile_shows_what_the_design_forbids(name: str) -> None:
    report = check([recording(name)], profile="strict")
    assert report.verdict == "departs"
    assert not report.anomalies
    assert "transaction/transaction-is-undecided" in {finding.rule for finding in report.violations}
    assert all(len(finding.story) <= 25 for finding in report.violations)


@pytest.mark.parametrize("jobs", by_day([1, 2], 1 / 2))
def test_splits_and_processes_change_nothing(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of 100,000 bytes, each judged by any worker, give the result of the whole."""
    whole = check([recording("midlife")], jobs=1)
    monkeypatch.setattr("gapless.traces.sources.rocketmq.segments.splits.SPLIT", 100_000)
    parts = check([recording("midlife")], jobs=jobs)
    assert parts.queues == whole.queues
    assert parts.sources == whole.sources
    assert parts.counts.by_spec["queue"] == whole.counts.by_spec["queue"]


@pytest.mark.parametrize("name", LAB)
def test_what_brokers_do_lawfully_is_not_accused(name: str) -> None:
    records, anomalies = LAB[name]
    report = check([recording(f"lab/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert report.sources[0].records == records
    assert {name: count for name, count in report.anomalies.items() if name in OF_QUEUES} == anomalies


def test_the_ghost_entries_of_a_real_broker_are_found() -> None:
    """RocketMQ 5.5.0 takes old slots for entries: their numbers are given to no message."""
    report = check([recording("lab/ghosts")])
    (violation,) = report.violations
    assert (report.verdict, violation.rule, violation.count) == (
        "departs", "queue/numbers-of-a-queue-follow-one-another", 9,
    )  # fmt: skip
    assert violation.where.file.startswith("commitlog/")


def test_the_strict_profile_forgives_no_topic_recreated() -> None:
    report = check([recording("lab/made_anew")], profile="strict", only=["queue"])
    assert {finding.rule for finding in report.violations} == {"queue/numbers-of-a-queue-follow-one-another"}


def test_a_folder_that_holds_a_store_will_do(tmp_path: Path) -> None:
    (tmp_path / "store").symlink_to(recording("lmq"))
    assert check([tmp_path]).verdict == "conforms"


def test_a_running_broker_is_recognised_by_its_lock(tmp_path: Path) -> None:
    """Data that it has not written yet is no loss."""
    store = tmp_path / "store"
    shutil.copytree(recording("lmq"), store)
    with (store / "lock").open("wb") as lock:
        lock.write(b"lock")
        lock.flush()
        code = "import fcntl, sys, time; fcntl.lockf(0, fcntl.LOCK_EX, 1); print('locked', flush=True); time.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", code], stdin=lock, stdout=subprocess.PIPE, text=True) as broker:
            assert broker.stdout is not None
            assert broker.stdout.readline() == "locked\n"
            report = check([store])
            broker.kill()
    assert (report.verdict, report.sources[0].live, report.sources[0].clean) == ("conforms", True, False)
    assert not check([store]).sources[0].live
