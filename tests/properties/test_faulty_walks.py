"""Transactions on disks that fill and fail, and whose files expire: walks find nothing, and each planted fault."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from gapless.impl.records.errors import StoreError
from gapless.impl.transactions import transactions
from gapless.impl.transactions.half_table import COMMITTED, UNDECIDED
from gapless.impl.transactions.transactions import Transactions
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.reference_store.transactional.faulty_walk import FaultyWalk
from tests.support import left_by_walks
from tests.support.night import NIGHT

WALKS = 400 if NIGHT else 24
CHECKED = 8 if NIGHT else 2  # walks whose files the strict check reads
TRIES = 60  # walks until a fault is found


def walk(seed: int) -> FaultyWalk:
    return FaultyWalk(Random(seed).randrange).run()


@pytest.fixture(scope="module")
def walks() -> list[FaultyWalk]:
    return [walk(seed) for seed in range(WALKS)]


def test_faults_take_nothing_and_all_comes_to_rest(walks: list[FaultyWalk]) -> None:
    tally: Counter[str] = sum((one.tally for one in walks), Counter())
    happened = {"expired", "stopped", "a file could not be deleted", "not safe yet", "power", "kill"}
    steps = ("_prepare", "_prepare_many", "_decide", "_decide_many", "_check", "_park", "_advance", "_write_op")
    assert happened | {f"no room in {step}" for step in steps} <= tally.keys()
    assert tally["expired"] > WALKS


def test_what_is_left_conforms_under_strict(walks: list[FaultyWalk], tmp_path: Path) -> None:
    for number, one in enumerate(walks[:CHECKED]):
        report = left_by_walks.judged(one.disk, tmp_path / str(number), one.max_checks, one.op_bytes)
        assert report.verdict == "conforms", report.findings


def _when_it_fails(name: str, change: Callable[..., None]) -> Callable[[], AbstractContextManager[Any]]:
    """Something is done where a step has failed."""
    kept = getattr(Transactions, name)

    def planted(self: Transactions, *given: Any, **more: Any) -> Any:
        try:
            return kept(self, *given, **more)
        except StoreError:
            change(self, *given)
            raise

    return lambda: patch.object(Transactions, name, planted)


def _drop(self: Transactions, *_given: object) -> None:
    self.batcher.written(self.batcher.batch()[0])


def _decide(self: Transactions, number: int, *_given: object) -> None:
    if self.table.base <= number < self.table.end:
        self.table.status[self.table.newest(number) - self.table.base] = COMMITTED


FAULTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "what waits is dropped where its op cannot be written": _when_it_fails("write_op", _drop),
    "a commit for which there is no room counts": _when_it_fails("commit", _decide),
    "what has expired stays undecided": lambda: patch.object(transactions, "GONE", UNDECIDED),
    "nothing is looked for that a failed step left": lambda: patch.object(Transactions, "_settle", lambda _self: None),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    with FAULTS[name]():
        for seed in range(TRIES):
            try:
                walk(seed)
            except (Mismatch, StoreError, KeyError, IndexError):
                return
    pytest.fail(f"{name}: not found in {TRIES} walks")
