"""Expiry at any moment of a read or a decision: the answer is right, or it is refused; no error of the disk."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gapless.impl.files.segments import Segments
from gapless.impl.records.errors import Refused
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.impl.store.transaction_calls import ProducerGroup
from gapless.impl.transactions.settings import TransactionSettings

SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False)
COUNT = 200
UNTOUCHED = TransactionSettings(cache_capacity=0, op_batch_interval=10**9, check_interval=10**9)
LOOKS = 40
"""At files, at most, in one call."""


def _read_back(store: Store) -> list[tuple[int, bytes]]:
    return [(record.number, record.body) for record in store.read("orders", 0, 3, 50)]


READS: dict[str, Callable[[Store], object]] = {
    "get": lambda store: store.get("orders", 0, 3).body,
    "get, then get": lambda store: [store.get("orders", 0, number).body for number in (3, 4)],
    "get, far behind another": lambda store: [store.get("orders", 0, number).body for number in (COUNT - 1, 3)],
    "read of one": lambda store: store.read("orders", 0, 3, 1)[0].body,
    "read of three": lambda store: [record.body for record in store.read("orders", 0, 3, 3)],
    "read of many": _read_back,
    "read_batch": lambda store: store.read_batch("orders", 0, 3, 50).bodies.tobytes(),
    "find": lambda store: [record.number for record in store.find("orders", 0, "nothing")],
    "at": lambda store: store.at(0).number,
}


def _filled(folder: Path) -> Store:
    times = iter(range(0, 10**9, 10))
    store = Store.open(folder, SMALL, clock=lambda: next(times))
    _fill(store)
    return store


def _fill(store: Store) -> None:
    """Messages that are visible, and on disk."""
    numbers = [store.append("orders", 0, b"%d" % number * 30).number for number in range(COUNT)]
    assert store.wait_for("orders", 0, numbers[-1])
    store.flush()


def _expire_at(look: int, store: Store, call: Callable[[], object], patch: pytest.MonkeyPatch) -> tuple[object, bool]:
    """The answer of a call, or its error, while all that can expire does so.

    It does before a look of the call at a file, counted from 0 by `look`. True if the call came so far.
    """
    mine, looks, before = threading.get_ident(), 0, Segments.file

    def racing(segments: Segments, position: int, *, write: bool = False) -> object:
        nonlocal looks
        if threading.get_ident() == mine:
            looks += 1
            if looks == look + 1:
                assert store.expire(10**9) > 0
        return before(segments, position, write=write)

    with patch.context() as patched:
        patched.setattr(Segments, "file", racing)
        try:
            answer = call()
        except Refused as refused:
            answer = refused
    return answer, looks > look


@pytest.mark.parametrize("verb", READS)
def test_a_read_is_right_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    with _filled(tmp_path / "whole") as store:
        right = READS[verb](store)
    for look in range(LOOKS):
        with _filled(tmp_path / str(look)) as store:
            answer, is_reached = _expire_at(look, store, partial(READS[verb], store), monkeypatch)
            assert isinstance(answer, Refused) or answer == right
        if not is_reached:
            assert look > 0
            return
    pytest.fail("the call looks at files without end")


def test_a_time_that_expires_is_searched_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for look in range(LOOKS):
        with _filled(tmp_path / str(look)) as store:
            answer, is_reached = _expire_at(look, store, partial(store.number_at, "orders", 0, 0), monkeypatch)
            assert answer == (store.range("orders", 0)[0] if is_reached else 0)
        if not is_reached:
            assert look > 0
            return
    pytest.fail("the call looks at files without end")


DECISIONS: dict[str, Callable[[ProducerGroup, list[int]], object]] = {
    "commit": lambda group, halves: group.commit(halves[0]),
    "commit again": lambda group, halves: group.commit(halves[0]).number,
    "commit many": lambda group, halves: group.commit_batch(np.array(halves)),
    "roll back": lambda group, halves: group.roll_back(halves[0]),
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_decision_is_done_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decision: str) -> None:
    for look in range(LOOKS):
        with _filled(tmp_path / str(look)) as store:
            group = store.transactions("g", lambda _half: None, UNTOUCHED)
            halves = [group.begin("orders", 1, b"%d" % number * 30).half.number for number in range(4)]
            if decision == "commit again":
                group.commit(halves[0])
            _fill(store)
            answer, is_reached = _expire_at(look, store, partial(DECISIONS[decision], group, halves), monkeypatch)
            if isinstance(answer, Refused):
                assert "expired" in str(answer)
            elif decision == "commit again":
                assert answer == (-1 if is_reached else 0)
        if not is_reached:
            return
    pytest.fail("the call looks at files without end")
