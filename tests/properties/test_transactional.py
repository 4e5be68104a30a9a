"""Transactions beside their specs: random walks through crashes find nothing, and each of the faults planted there."""

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from gapless.impl.records.errors import StoreError
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.ours.transactional.planted import FAULTS
from gapless.properties.ours.transactional.walk import TransactionWalk
from gapless.traces.check import check

WALKS = {"quick": 10, "ci": 40, "night": 400}[os.environ.get("HYPOTHESIS_PROFILE", "ci")]
CHECKED = 8  # walks whose files are held against the specs by the strict check
TRIES = 30  # walks until a fault is found


def walk(seed: int) -> TransactionWalk:
    return TransactionWalk(Random(seed).randrange).run()


@pytest.fixture(scope="module")
def walks() -> list[TransactionWalk]:
    return [walk(seed) for seed in range(WALKS)]


def test_every_step_is_taken_by_both_or_refused_by_both(walks: list[TransactionWalk]) -> None:
    tally: Counter[str] = sum((one.tally for one in walks), Counter())
    assert tally["power"] > WALKS
    if WALKS >= 40:
        assert {"kill", "power lost in a step", "again", "refused", "not safe yet", "_park", "_check"} <= tally.keys()


def test_what_a_walk_through_crashes_leaves_conforms_under_strict(walks: list[TransactionWalk], tmp_path: Path) -> None:
    for number, one in enumerate(walks[:CHECKED]):
        folder = tmp_path / str(number) / "store"
        folder.mkdir(parents=True)
        one.disk.save(folder)
        (folder.parent / "broker.conf").write_text(
            f"transactionCheckMax={one.pair.chosen.max_checks}\ntransactionOpMsgMaxSize={one.pair.chosen.op_bytes}\n"
        )
        report = check([folder.parent], profile="strict")
        assert report.verdict == "conforms", report.findings
        assert report.sources[0].records


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    with FAULTS[name]():
        for seed in range(TRIES):
            try:
                walk(seed)
            except (Mismatch, StoreError, KeyError, IndexError):
                return
    pytest.fail(f"{name}: not found in {TRIES} walks")
