"""Schedules as values: which actor took each step. Chosen, printed, replayed, or all of them tried.

An *actor* is a name and two functions: may it step now, and step. A world is a handful of actors around one state; it
has no thread, so that only the scheduler chooses who runs next. A schedule is the names in the order in which they
stepped, and prints as `scan*3 take.1 take.2 wrote.2 commit`; that line is the whole run.

    run(world, uniform(7))                                any interleaving, each step with equal chance
    run(world, with_priorities(7, changes=2, steps=50))   those that find bugs of small depth
    run(world, chosen("scan*2 take.1 …"))                 what happened last time
    run(world, by(choose))                                Hypothesis decides, and shrinks
    every(make_world)                                     all of them

Followed: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010, for
priorities; Shuttle, for schedules that are text and for re-execution. Departure: the number of steps is not measured
but given by the caller, since systems differ little from run to run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from typing import NamedTuple, Protocol, TypeVar

from gapless.properties.simulation.choices import Choose, Odometer


class Actor(NamedTuple):
    """An actor that takes steps.

    `enabled` says whether a step is possible now, and changes nothing; `step` takes it. A name has no space and no `*`
    in it, and belongs to one actor of its world.
    """

    name: str
    enabled: Callable[[], bool]
    step: Callable[[], object]


class ActorSystem(Protocol):
    """A handful of actors, and whatever they share."""

    @property
    def actors(self) -> Sequence[Actor]:
        """All that ever take steps in it, the same at all times."""


W = TypeVar("W", bound=ActorSystem)


class DoesNotFit(Exception):  # noqa: N818 - it names what is wrong.
    """A schedule is not one of this world: it names an actor that is not there, or that cannot step."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The actor of each step, by name; `str` of it is what `parse` reads."""

    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """The schedule that was printed so. Raises ValueError: not such a text."""
        return cls(tuple(name for word in text.split() for name in _repeated(word)))

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.steps)

    def __str__(self) -> str:
        """The names with spaces between; one that steps several times in a row, as `name*times`."""
        runs = ((name, len(list(times))) for name, times in groupby(self.steps))
        return " ".join(name if times == 1 else f"{name}*{times}" for name, times in runs)


Chooser = Callable[[Sequence[str]], str | None]
"""Of those that can step (at least one, in the world's order), who does; None ends the run."""


def run(world: ActorSystem, choose: Chooser, bound: int | None = None) -> Schedule:
    """Run until no actor can step, the chooser ends, or `bound` steps are taken; returns the schedule.

    What a step raises comes out as it is, with the schedule up to and with that step as a note.
    """
    actors = world.actors
    _check_names(tuple(actor.name for actor in actors))
    asked = [(actor.name, actor.enabled) for actor in actors]
    steps = {actor.name: actor.step for actor in actors}
    taken: list[str] = []

    def go() -> None:
        while len(taken) != bound:
            able = [name for name, enabled in asked if enabled()]
            if not able or (name := choose(able)) is None:
                break
            taken.append(name)
            steps[name]()

    _noting(taken, go)
    return Schedule(tuple(taken))


def chosen(schedule: Schedule | str) -> Chooser:
    """That schedule again, and no step more. Raises DoesNotFit where it asks for a step that is not possible."""
    steps = (Schedule.parse(schedule) if isinstance(schedule, str) else schedule).steps
    place = iter(range(len(steps)))

    def choose(able: Sequence[str]) -> str | None:
        at = next(place, None)
        if at is None or steps[at] in able:
            return None if at is None else steps[at]
        raise DoesNotFit(f"step {at + 1} of {len(steps)} is {steps[at]}, but only these can step: {' '.join(able)}")

    return choose


def by(choose: Choose) -> Chooser:
    """The actor that `choose` points at; the plainest is the first."""
    return lambda able: able[choose(len(able))]


def uniform(seed: int) -> Chooser:
    """Each of those that can step, with equal chance."""
    pick = random.Random(seed).random  # noqa: S311 - the same for the same seed is all that is asked of it.
    return lambda able: able[int(pick() * len(able))]


def with_priorities(seed: int, *, changes: int, steps: int) -> Chooser:
    """The one with the highest priority steps; at `changes` of the first `steps` steps it falls below all others.

    A bug of depth d (that many steps must come in a certain order) is found in a run with a chance of at least
    1 / (actors × steps^(d-1)), where `changes` is d-1 and no run is longer than `steps`.
    """
    chance = random.Random(seed)  # noqa: S311 - as above.
    falls = {at: -rank for rank, at in enumerate(chance.sample(range(steps), min(changes, steps)), 1)}
    priorities: dict[str, float] = {}
    count = 0

    def choose(able: Sequence[str]) -> str:
        nonlocal count
        for name in able:
            if name not in priorities:
                priorities[name] = chance.random()
        highest = max(able, key=priorities.__getitem__)
        if count in falls:
            priorities[highest] = falls[count]
            highest = max(able, key=priorities.__getitem__)
        count += 1
        return highest

    return choose


@dataclass(slots=True)
class ScheduleCounts:
    """Counts of `every`: `schedules` ran to their end, others were `cut` by the bound or `joined` a known state.

    `steps`: all that were taken, those to get back to a fork included. `states`: different ones seen, where the world
    gives a key.
    """

    schedules: int = 0
    cut: int = 0
    joined: int = 0
    steps: int = 0
    states: int = 0


def every(
    make: Callable[[], W],
    *,
    bound: int | None = None,
    state: Callable[[W], Hashable] | None = None,
    finished: Callable[[W], object] | None = None,
) -> ScheduleCounts:
    """Every schedule of a small world, depth first, each begun in a new world that `make` gives.

    `finished` is called where no actor can step any more: the place for checks of the end. What must hold
    always, steps themselves ask. `state` gives a key of all that the future depends on: a state that was seen is not
    explored again, so that the orders of independent steps are not all tried; with a `bound` it is where it is met
    after fewer steps. Raises what steps and `finished` raise, with the schedule as a note; ValueError where what began
    alike continues otherwise.
    """
    counts = ScheduleCounts()
    odometer = Odometer()
    seen: dict[Hashable, int] = {}  # the fewest steps after which a state was met

    def is_known(world: W, after: int) -> bool:
        if state is None:
            return False
        key = state(world)
        if key in seen and (bound is None or seen[key] <= after):
            return True
        seen[key] = after
        return False

    while True:
        world = make()
        branch = _Branch(odometer, bound, partial(is_known, world))
        schedule = run(world, branch)
        counts.steps += len(schedule)
        if branch.known or (not branch.cut and is_known(world, len(schedule))):
            counts.joined += 1
        elif branch.cut:
            counts.cut += 1
        else:
            counts.schedules += 1
            if finished is not None:
                _noting(schedule.steps, partial(finished, world))
        if not odometer.advance():
            counts.states = len(seen)
            return counts


class _Branch:
    """The chooser of one run of `every`: back to the fork, and on from there until what follows is known."""

    def __init__(self, odometer: Odometer, bound: int | None, is_known: Callable[[int], bool]) -> None:
        self.known = self.cut = False
        self._odometer = odometer
        self._bound = bound
        self._is_known = is_known
        self._taken = 0

    def __call__(self, able: Sequence[str]) -> str | None:
        taken = self._taken
        self.known = taken >= self._odometer.given and self._is_known(taken)
        self.cut = taken == self._bound
        if self.known or self.cut:
            return None
        self._taken += 1
        return able[self._odometer(len(able))]


def _noting(steps: Sequence[str], do: Callable[[], object]) -> None:
    """Does it; what it raises says which schedule led there."""
    try:
        do()
    except BaseException as error:
        error.add_note(f"schedule: {Schedule(tuple(steps))}")
        raise


@lru_cache
def _check_names(names: tuple[str, ...]) -> None:
    """Raises ValueError: with such names, a schedule that is printed is not one that is read."""
    if len(set(names)) < len(names):
        raise ValueError(f"two actors have one name: {' '.join(names)}")
    for name in names:
        if not name or "*" in name or name.split() != [name]:
            raise ValueError(f"an actor's name is neither empty nor has spaces or `*` in it: {name!r}")


def _repeated(word: str) -> list[str]:
    name, _, times = word.partition("*")
    if not name or ("*" in word and not (times.isdecimal() and int(times))):
        raise ValueError(f"a schedule is names, or name*times, with spaces between, not {word!r}")
    return [name] * int(times or 1)
