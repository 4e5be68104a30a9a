"""Small cases in every order: nothing is found but what is planted. `make night` tries all orders of all cases."""

import itertools
from collections.abc import Iterator
from typing import cast

import pytest

from gapless.impl.coordinator.permits import Permits
from gapless.properties.faults.planted.fault_injection import replacing
from gapless.properties.reference_store.orders import coordination_orders, transaction_orders
from gapless.properties.reference_store.orders.cases import parts
from gapless.properties.reference_store.orders.every_order import Crash, SmallCase, Step, explore, how_many, orders
from gapless.properties.reference_store.transactional.injected_faults import FAULTS
from gapless.properties.simulation.simulated_disk import PowerLost
from tests.support.night import NIGHT, by_day

CASES = (*transaction_orders.CASES, *coordination_orders.CASES)
SCHEDULES = 3 if NIGHT else 1  # of each case

FOUND = {
    "a second commit writes a second final [#5574]": "a check and a late decision",
    "a rollback after a commit is taken": "a check whose answer contradicts a late decision",
    "an old version stays open next to the new one [#n11]": "a check and a late decision",
    "a hit leaves its half in the cache": "halves that leave a cache of 2",
    "the newest half leaves the cache": "halves that leave a cache of 2",
    "after a start a final without op stays so [#op-crash]": "committed, a final or nothing, an op, the cursors",
    "after a start rollbacks are forgotten [#8158]": "rolled back, a final or nothing, an op, the cursors",
}


def _named(name: str) -> SmallCase:
    return next(case for case in CASES if case.name == name)


def test_an_order_is_every_one_once() -> None:
    found = list(orders([2, 1, 1]))
    assert len(found) == len(set(found)) == 12
    assert all(sorted(order) == [0, 0, 1, 2] for order in found)


@pytest.mark.parametrize("left", [[], [3], [2, 1, 1], [2, 2, 2, 1]], ids=str)
def test_orders_are_counted_before_they_are_made(left: list[int]) -> None:
    assert how_many(left) == len(list(orders(left)))


@pytest.mark.parametrize("stride", [1, 7])
def test_parts_of_a_case_are_all_of_its_orders(stride: int) -> None:
    for case in CASES:
        every = range(how_many([len(steps) for steps in case.actors]))
        some = [number for part in parts(case.name, stride) for number in every[part][::stride]]
        assert some == list(every[::stride])


class Disk:
    """A world of a step that uses a disk so often. `uses`: of each world in turn."""

    def __init__(self, uses: Iterator[int]) -> None:
        self.operations, self.uses, self.lost_at = 0, next(uses), 0

    def step(self) -> None:
        """It uses the disk."""
        for _ in range(self.uses):
            self.operations += 1
            if self.operations == self.lost_at:
                raise PowerLost

    def crash(self, _way: Crash) -> None:
        """See `SmallWorld`."""
        self.lost_at = 0

    def lose_power_after(self, operation: int) -> None:
        """See `SmallWorld`."""
        self.lost_at = self.operations + operation

    def rest(self) -> None:
        """It is at rest."""


def _of_disks(uses: Iterator[int]) -> SmallCase:
    step = cast("Step", Disk.step)
    return SmallCase("a disk", lambda: Disk(uses), ((step, step),))


def test_the_power_is_lost_at_every_use_of_the_disk_and_at_no_other() -> None:
    tally = explore(_of_disks(itertools.repeat(4)))
    assert not tally.failures
    assert tally.counts["crashes within a step"] == 2 * 4 * 3  # steps, uses, and a kill, all and nothing


def test_a_step_that_uses_the_disk_less_often_than_before_is_reported() -> None:
    (failure,) = explore(_of_disks(itertools.chain([4], itertools.repeat(3))), most=1).failures
    assert "the last step came to operation 4 of the disk before, and does not now" in failure


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_goes_wrong_in_any_order(case: SmallCase) -> None:
    number = sum(1 for _ in orders([len(steps) for steps in case.actors]))
    tally = explore(case, max(1, number // SCHEDULES))
    assert not tally.failures
    assert tally.counts["schedules"] >= min(number, SCHEDULES)
    if case.ways != "none":
        assert tally.counts["crashes between steps"] > 15
        assert tally.counts["crashes within a step"] >= 2 * SCHEDULES


@pytest.mark.parametrize(("fault", "case"), by_day([*FOUND.items()], 1 / 2))
def test_a_planted_fault_is_found(fault: str, case: str) -> None:
    with FAULTS[fault]():
        assert explore(_named(case), 7, most=1).failures


def test_a_permit_that_comes_back_twice_is_found() -> None:
    reply = Permits.reply

    def twice(self: Permits, number: int, now: int) -> list[int] | None:
        self.in_use.setdefault(number, now)
        return reply(self, number, now)

    with replacing(Permits, "reply", twice):
        assert explore(_named("a timeout and a reply"), 40, most=1).failures
