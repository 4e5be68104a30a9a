"""The interrupt machine: it finds nothing in the store, and each of the faults that are planted here."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest

from gapless.impl.dispatch.pool import Pool
from gapless.impl.environment.operating_system import RealDisk
from gapless.impl.files.log import CommitLog
from gapless.properties.machines.interrupts import interrupt_cases
from gapless.properties.machines.interrupts.interrupt_cases import VERBS, InterruptCase, every_point, some_points
from gapless.properties.machines.interrupts.interrupter import Interrupter
from tests.support.night import NIGHT, by_day

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interrupts")]

POINTS = 12 if NIGHT else 3
"""Of each verb, some; `python -m gapless.properties.machines.interrupts` tries them all."""


@pytest.mark.parametrize("verb", by_day(list(VERBS), 1 / 8))
def test_no_interrupt_loses_anything_or_leaves_a_message_half_there(verb: str) -> None:
    tally = some_points(verb, POINTS)
    assert not tally.failures
    assert tally.cases >= POINTS - 1  # how many points a verb has varies a little


def test_the_strict_check_passes_too() -> None:
    assert not every_point("append_batch.files", step=60, first=30, checked=1).failures


def _forget(log: CommitLog) -> None:
    """Keep what was left half done."""
    log._under_way = None


def _leave_numbers(log: CommitLog) -> None:
    """A number is never written."""
    if log._under_way is not None:
        position, most, newest, _queues, _numbers = log._under_way
        log._under_way = (position, most, newest, (), ())
    settle(log)


def _wait_on_a_condition(pool: Pool, until: Callable[[], bool], timeout: float | None = None) -> None:
    """An interrupt leaves the lock of dispatch taken, or releases it twice."""
    end = monotonic() + (60 if timeout is None else timeout)
    with pool._changed:
        while not until() and monotonic() < end:
            pool._changed.wait(0.01)  # without a notification


settle = CommitLog.settle


@pytest.mark.parametrize(
    ("verb", "owner", "name", "fault"),
    by_day(
        [
            ("append_batch.small", CommitLog, "settle", _forget),
            ("append_batch.small", CommitLog, "settle", _leave_numbers),
            ("wait_for", Pool, "_wait", _wait_on_a_condition),
            ("open.clean", RealDisk, "unlock", lambda _disk: None),
        ],
        1 / 4,
    ),
)
def test_a_planted_fault_is_found(
    verb: str, owner: type, name: str, fault: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_cases.run_case(InterruptCase(verb, 1))
    monkeypatch.setattr(owner, name, fault)
    monkeypatch.setattr(interrupt_cases, "PATIENCE", 2.0)
    assert every_point(verb).failures or every_point(verb, first=2).failures  # by either ending


def test_an_interrupt_comes_at_every_call_return_and_turn() -> None:
    """Interrupts come as `work` begins; after `range`, `str` and `append`; and at each turn of the loop."""
    done: list[str] = []

    def work() -> None:
        for turn in range(2):
            done.append(str(turn))  # noqa: PERF401 - its calls are counted

    found = []
    for point in range(1, 10):
        done.clear()
        interrupted = Interrupter(point).call(work)
        found.append((len(done), interrupted is not None))
    assert found == [*((count, True) for count in (0, 0, 0, 1, 1, 1, 2, 2)), (2, False)]


def test_a_case_is_its_text() -> None:
    case = InterruptCase("append.full", 17, "abandon")
    assert InterruptCase.parse(str(case)) == case
    with pytest.raises(ValueError, match=r"append\.first"):
        InterruptCase.parse("append.none 1 close")
