"""All orders of a few actors' steps, with a crash after every prefix, and within its last step.

An actor takes its steps in turn; an order says who is next. Two orders that begin alike are alike up to there, so
crashes are tried once for every beginning. After a crash those actors go on that are not part of what crashed; in the
end everything comes to rest. Nothing is sampled, unless `stride` leaves orders out. Every attempt begins in a new
world, so what costs is taking the steps up to a crash, and coming to rest behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import comb
from typing import Any, Protocol

from gapless.properties.campaign import CaseTally, described, error_of
from gapless.properties.machines.mismatch import expect
from gapless.properties.simulation.choices import Choices, Choose, every_choice
from gapless.properties.simulation.simulated_disk import PowerLost


class SmallWorld(Protocol):
    """An implementation with its models. Raises Mismatch, Refused where they differ."""

    @property
    def operations(self) -> int:
        """The number of operations of its disk that have begun."""

    def crash(self, way: Crash) -> None:
        """It ends, and begins again."""

    def lose_power_after(self, operation: int) -> None:
        """The power is lost at that operation of the disk, from now on: the first is 1. With 0, at none."""

    def rest(self) -> None:
        """All comes to rest, and is as it must be."""


@dataclass(frozen=True, slots=True)
class Crash:
    """End a life. `choose`: the remains of the disk."""

    power: bool
    choose: Choose


class PairWorld:
    """A world of one pair of an implementation and its model, with a disk of its own."""

    pair: Any

    @property
    def operations(self) -> int:
        """Uses of the disk."""
        return int(self.pair.disk.operations)

    def lose_power_after(self, operation: int) -> None:
        """End the life at a use of the disk."""
        self.pair.disk.lose_power_after(operation)


def step_of(take: Callable[[Any], object]) -> Step:
    """A step of a pair, in its world."""
    return lambda world: take(world.pair)  # type: ignore[attr-defined]


Step = Callable[[SmallWorld], object]
Order = tuple[int, ...]
"""The actor of each step."""

MOST = 5
"""Failures of a case after which no more are looked for."""

EVERY = slice(0, None)


@dataclass(frozen=True, slots=True)
class SmallCase:
    """Actors and their steps.

    `make`: a world in which they can begin · `outlive`: the actors that go on after a crash · `ways`: in how many ways
    the power is lost, `"few"`: all or nothing of what was not synced is left; `"all"`: what there is of every file is
    cut off anywhere; `"none"`: this is about memory alone.
    """

    name: str
    make: Callable[[], SmallWorld]
    actors: tuple[tuple[Step, ...], ...]
    outlive: frozenset[int] = frozenset()
    ways: str = "few"


def orders(left: Sequence[int]) -> Iterator[Order]:
    """Every order of actors that have so many steps left."""
    if not any(left):
        yield ()
    for actor, steps in enumerate(left):
        if steps:
            rest = [*left[:actor], steps - 1, *left[actor + 1 :]]
            yield from ((actor, *order) for order in orders(rest))


def how_many(left: Sequence[int]) -> int:
    """The number of these orders."""
    number = 1
    for actor, steps in enumerate(left):
        number *= comb(sum(left[: actor + 1]), steps)
    return number


def explore(case: SmallCase, stride: int = 1, most: int = MOST, *, some: slice = EVERY) -> CaseTally:
    """Every order of a case, and every crash, until so many have failed; with a stride, one of so many orders.

    `some`: only these of the orders, in the sequence of `orders`; two parts that touch have some beginnings in common.
    """
    tally, tried = CaseTally(), set[Order]()
    for order in islice(orders([len(steps) for steps in case.actors]), some.start, some.stop, stride):
        used: list[int] = []
        _attempt(case, order, tally, "schedules", partial(_run_whole, case, order, used))
        for end in range(1, len(order) + 1):
            beginning = order[:end]
            if len(tally.failures) < most and beginning not in tried and case.ways != "none":
                tried.add(beginning)
                _crash_behind(case, beginning, tally)
                _crash_within(case, beginning, sum(used[end - 1 : end]), tally)
        if len(tally.failures) >= most:
            break
    return tally


def _attempt(case: SmallCase, order: Order, tally: CaseTally, what: str, run: Callable[[], object]) -> None:
    """Report failures with the order."""
    error = error_of(run)
    if error is not None:
        shown = " ".join(map(str, order))
        tally.failures.append(f"{case.name}, {what}, {shown}: {described(error)}")
    tally.counts[what] += 1


def _run_whole(case: SmallCase, order: Order, used: list[int]) -> None:
    """All steps, and no crash. `used` gets how many operations of the disk each of them took, as far as they come."""
    world = case.make()
    _take(case, world, order, used)
    world.rest()


def _take(case: SmallCase, world: SmallWorld, order: Order, used: list[int] | None = None) -> list[int]:
    """The steps of an order are taken. Returns how many each actor took."""
    taken = [0] * len(case.actors)
    for actor in order:
        before = world.operations
        case.actors[actor][taken[actor]](world)
        taken[actor] += 1
        if used is not None:
            used.append(world.operations - before)
    return taken


def _crash_behind(case: SmallCase, beginning: Order, tally: CaseTally) -> None:
    """A kill, and the power lost in every way, once these steps have been taken."""
    for crash in _ways(case):
        _attempt(case, beginning, tally, "crashes between steps", partial(_crashed, case, beginning, crash))


def _crashed(case: SmallCase, beginning: Order, crash: Crash) -> None:
    world = case.make()
    taken = _take(case, world, beginning)
    world.crash(crash)
    _go_on(case, world, taken)


def _crash_within(case: SmallCase, beginning: Order, operations: int, tally: CaseTally) -> None:
    """A kill, and the power lost, at each of so many operations of the last of these steps."""
    for operation in range(1, operations + 1):
        for crash in _ways(case):
            step = partial(_crashed_within, case, beginning, crash, operation)
            failed = len(tally.failures)
            _attempt(case, beginning, tally, "crashes within a step", step)
            if len(tally.failures) > failed:
                return


def _crashed_within(case: SmallCase, beginning: Order, crash: Crash, operation: int) -> None:
    world, lost = case.make(), False
    *before, last = beginning
    taken = _take(case, world, tuple(before))
    world.lose_power_after(operation)
    try:
        case.actors[last][taken[last]](world)
    except PowerLost:
        lost = True
    expect(lost, f"the last step came to operation {operation} of the disk before, and does not now")
    taken[last] += 1
    world.crash(crash)
    _go_on(case, world, taken)


def _go_on(case: SmallCase, world: SmallWorld, taken: Sequence[int]) -> None:
    """Those that outlive a crash take their other steps, and all comes to rest."""
    for actor in case.outlive:
        for step in case.actors[actor][taken[actor] :]:
            step(world)
    world.rest()


def _ways(case: SmallCase) -> Iterator[Crash]:
    yield Crash(power=False, choose=Choices())
    if case.ways == "few":
        yield Crash(power=True, choose=Choices())
        yield Crash(power=True, choose=lambda ways: min(1, ways - 1))
        return
    for choose in every_choice():
        yield Crash(power=True, choose=lambda ways, choose=choose: choose(min(ways, 3)) if ways == 4 else choose(ways))  # type: ignore[misc]
