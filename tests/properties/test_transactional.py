"""Transactions next to their specs: random walks through crashes find nothing, but each planted fault."""

import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gapless.impl.records.errors import StoreError
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.reference_store.transactional.injected_faults import FAULTS
from gapless.properties.reference_store.transactional.walk import TransactionWalk
from gapless.spec.language import Refused
from gapless.traces.report.values import Report
from tests.support import left_by_walks
from tests.support.night import NIGHT

pytestmark = pytest.mark.xdist_group("transactional")  # one worker, so that every walk is walked once

WALKS = {"quick": 10, "ci": 24, "night": 400}[os.environ.get("HYPOTHESIS_PROFILE", "ci")]
CHECKED = 8 if NIGHT else 3  # walks whose files the strict check reads
TRIES = 30  # walks until a fault is found


def walk(seed: int) -> TransactionWalk:
    return TransactionWalk(Random(seed).randrange).run()


@pytest.fixture(scope="module")
def walks() -> list[TransactionWalk]:
    return [walk(seed) for seed in range(WALKS)]


def test_every_step_is_taken_by_both_or_refused_by_both(walks: list[TransactionWalk]) -> None:
    tally: Counter[str] = sum((one.tally for one in walks), Counter())
    assert tally["power"] > WALKS
    if WALKS >= 24:
        assert {"kill", "power lost in a step", "again", "refused", "not safe yet", "_park", "_check"} <= tally.keys()


def judged(one: TransactionWalk, folder: Path, client: list[dict[str, Any]]) -> Report:
    """Check the files of a walk, with its producers' log, by the strict profile."""
    chosen = one.pair.chosen
    return left_by_walks.judged(one.disk, folder, chosen.max_checks, chosen.op_bytes, client)


def test_what_a_walk_through_crashes_leaves_conforms_under_strict(walks: list[TransactionWalk], tmp_path: Path) -> None:
    """With its producers' log: who prepared and decided what, was asked about it, and was answered."""
    for number, one in enumerate(walks[:CHECKED]):
        report = judged(one, tmp_path / str(number), one.pair.client.lines)
        assert report.verdict == "conforms", report.findings
        assert report.sources[0].records
        assert report.clients[0].back_checks + report.clients[0].decisions


def is_of(line: dict[str, Any], op: str, decision: str | None = None) -> bool:
    return line["op"] == op and line.get("decision") == decision and line["result"] == "ok"


ClientLines = list[dict[str, Any]]
LIES: dict[str, tuple[Callable[[ClientLines], ClientLines], str]] = {
    "no request to commit it": (
        lambda lines: [line for line in lines if line["op"] != "end"],
        "its producer did not ask for it",
    ),
    "never sent": (lambda lines: [line for line in lines if not is_of(line, "half")], "no client sent the message"),
    "it lies elsewhere": (
        lambda lines: (
            [line | {"phys": line["phys"] + (line.get("qoff") == 0)} for line in lines if is_of(line, "half")]
            + [line for line in lines if not is_of(line, "half")]
        ),
        "the broker answered that",
    ),
    "what was rolled back was committed": (
        lambda lines: [line | {"decision": "commit"} if is_of(line, "end", "rollback") else line for line in lines],
        "nobody rolled it back|was acknowledged as committed, and is not",
    ),
}


def test_a_producer_may_be_acknowledged_twice_that_its_commit_is_done(
    walks: list[TransactionWalk], tmp_path: Path
) -> None:
    """A commit is idempotent: who asks again hears the answer of before, and is not lied to."""

    def repeated_commits(one: TransactionWalk) -> int:
        reported = Counter(line["phys"] for line in one.pair.client.lines if is_of(line, "end", "commit"))
        return sum(count > 1 for count in reported.values())

    one = max(walks, key=repeated_commits)
    assert repeated_commits(one)
    assert judged(one, tmp_path / "reported", one.pair.client.lines).verdict == "conforms"


@pytest.mark.parametrize("lie", LIES)
def test_producers_are_listened_to(lie: str, walks: list[TransactionWalk], tmp_path: Path) -> None:
    def reported_ends(one: TransactionWalk) -> int:
        return min(sum(is_of(line, "end", what) for line in one.pair.client.lines) for what in ("commit", "rollback"))

    one, (change, says) = max(walks, key=reported_ends), LIES[lie]
    report = judged(one, tmp_path / "reported", change(one.pair.client.lines))
    assert report.verdict == "departs"
    assert any(re.search(says, finding.message) for finding in report.findings), report.findings


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    with FAULTS[name]():
        for seed in range(TRIES):
            try:
                walk(seed)
            except (Mismatch, Refused, StoreError, KeyError, IndexError):
                return
    pytest.fail(f"{name}: not found in {TRIES} walks")
