"""Interleavings: a small store, and the orders in which those who work on it may take their steps.

Whoever appends, flushes, scans, builds, commits and reads is an actor (`actors.py`), and each of their steps is taken
by dispatch and by its model (`beside.py`). Who steps next is chosen by Hypothesis, which shrinks what it finds; by
chance, with and without priorities; and, for the smallest stores, in every way there is. A case is a plan and a
schedule, and its text is all that is needed to see it again:

    python -m gapless.properties.machines.interleavings --schedules 100000 --jobs 2
    python -m gapless.properties.machines.interleavings --again "queues=0,1,0 batch=2: append*3 scan w1*2 …"
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from multiprocessing import get_context

from hypothesis import strategies as st

from gapless.impl.environment.schedules import (
    Chooser,
    DoesNotFit,
    Schedule,
    ScheduleCounts,
    chosen,
    every,
    run,
    uniform,
    with_priorities,
)
from gapless.impl.recorder.recorder import Recorder
from gapless.properties.machines import dispatch_machine
from gapless.properties.machines.actors import Plan, World
from gapless.properties.machines.dispatch_refinement import LIFE_ENDS
from gapless.properties.machines.ground_truth import expect
from gapless.spec import dispatch as spec
from gapless.traces.replay.notation import changes, told

BOUND = 1000  # steps, which no run needs
STEPS = 60  # of a run, more or less: among these, priorities change
PART = 500  # runs that one process does at a time

SMALLEST = (
    Plan(queues=(0, 0), reads=0),
    Plan(queues=(0, 1), batch=2, reads=0),
    Plan(queues=(0, 0), overlap=0, flying=1, reads=0),
    Plan(queues=(0, 0), workers=1, fails=(0,), reads=0),
    Plan(queues=(0, 0), workers=1, synchronous=1, entries=1, reads=1),
    Plan(queues=(0,), crashes=("restart",), reads=0),
    Plan(queues=(0, 0), workers=1, crashes=("lose",), reads=0),
)
"""Of these, every schedule is tried; orders of independent steps once, where they lead to the same state."""

SMALL = (
    Plan(queues=(0, 0, 0), reads=0),
    Plan(queues=(0, 1, 0), reads=0),
    Plan(queues=(0, 0), crashes=("tear",), seed=7),
)
"""The same, for a night."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run, as a value; `str` of it is what `parse` reads."""

    plan: Plan
    schedule: Schedule

    @classmethod
    def parse(cls, text: str) -> Case:
        """The case that was printed so. Raises ValueError: not such a text."""
        plan, colon, schedule = text.partition(":")
        if not colon:
            raise ValueError(f"{text!r}: expected a plan, a colon and a schedule")
        return cls(Plan.parse(plan), Schedule.parse(schedule))

    def __str__(self) -> str:
        return f"{self.plan}: {self.schedule}"


def run_case(plan: Plan, choose: Chooser, recorder: Recorder | None = None) -> tuple[World, Schedule]:
    """One run, to its end.

    Raises Departs, or what the implementation raises, with the schedule as a note.
    """
    world = World(plan, recorder)
    schedule = run(world, choose, BOUND)
    try:
        expect(len(schedule) < BOUND, f"{BOUND} steps, and no end")
        world.finished()
    except Exception as error:
        error.add_note(f"schedule: {schedule}")
        raise
    return world, schedule


def in_every_way(plan: Plan) -> ScheduleCounts:
    """Every schedule of a plan. Raises as `run_case`."""
    return every(partial(World, plan), state=World.state, finished=World.finished)


PLANS = st.builds(
    Plan,
    queues=st.lists(st.integers(0, 2), min_size=1, max_size=8).map(tuple),
    batch=st.integers(1, 3),
    flying=st.sampled_from((8, 1, 2, 3)),
    workers=st.integers(1, 3),
    overlap=st.sampled_from((1, 0)),
    synchronous=st.sampled_from((0, 1)),
    file=st.sampled_from((2048, 512, 256)),
    entries=st.integers(1, 4),
    room=st.sampled_from((4, 1, 2)),
    fails=st.lists(st.integers(0, 5), max_size=3).map(tuple),
    retries=st.sampled_from((3, 1)),
    refused=st.lists(st.integers(0, 2), max_size=1).map(tuple),
    crashes=st.lists(st.sampled_from(LIFE_ENDS), max_size=2).map(tuple),
    seed=st.integers(0, 1000),
)
"""Any small plan, for Hypothesis."""


def plan_by_chance(chance: random.Random) -> Plan:
    """Any small plan; most of them have neither failures nor crashes."""
    pick = chance.choice
    count, queues = chance.randint(2, 8), chance.randint(1, 3)
    return Plan(
        queues=tuple(chance.randrange(queues) for _ in range(count)),
        batch=chance.randint(1, 3),
        flying=pick((1, 2, 3, 8)),
        workers=chance.randint(1, 3),
        overlap=pick((0, 1, 1)),
        synchronous=pick((0, 0, 1)),
        file=pick((256, 512, 2048)),
        entries=chance.randint(1, 4),
        room=pick((1, 2, 4)),
        fails=pick(((), (), (), (0,), (1,), (0, 2), tuple(range(chance.randint(2, 6))))),
        retries=pick((1, 3)),
        refused=pick(((), (), (), (), (), (0,), (1,))),
        crashes=tuple(pick(LIFE_ENDS) for _ in range(pick((0, 0, 0, 1, 1, 2)))),
        after=chance.randrange(40),
        seed=chance.randrange(1000),
    )


def by_chance(seed: int) -> tuple[World, Schedule]:
    """The run of a number: every second one has priorities. Raises as `run_case`, with the plan as a note."""
    chance = random.Random(seed)  # noqa: S311 - the same for the same seed is all that is asked of it.
    plan = plan_by_chance(chance)
    choose = uniform(seed) if seed % 2 else with_priorities(seed, changes=chance.randrange(5), steps=STEPS)
    return run_case(plan, choose)


# -- for a night -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """What many runs came upon. `seconds`: of one processor · `different`: digests of plans with their schedules."""

    runs: int = 0
    steps: int = 0
    seconds: float = 0.0
    sometimes: Counter[str] = field(default_factory=Counter)
    different: set[bytes] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """All that the other one came upon, too."""
        self.runs += other.runs
        self.steps += other.steps
        self.seconds += other.seconds
        self.sometimes += other.sometimes
        self.different |= other.different
        self.failures += other.failures


def some(seeds: range) -> Tally:
    """The runs of these numbers; the first that fails is the last."""
    tally, began = Tally(), time.process_time()
    for seed in seeds:
        plan = plan_by_chance(random.Random(seed))  # noqa: S311 - as above.
        try:
            world, schedule = by_chance(seed)
        except Exception as error:  # noqa: BLE001 - whatever a run raises is what was looked for
            tally.failures.append(f"{plan}: {schedule_of(error)}")
            break
        tally.runs += 1
        tally.steps += len(schedule)
        tally.sometimes += world.both.sometimes
        tally.different.add(blake2b(f"{plan}: {schedule}".encode(), digest_size=8).digest())
    tally.seconds = time.process_time() - began
    return tally


def first_failure(cases: int) -> tuple[int, str] | None:
    """After how many runs by chance, and then of Hypothesis' machine, something came out wrong, and what."""
    for seed in range(cases):
        try:
            by_chance(seed)
        except Exception as error:  # noqa: BLE001 - as above
            return seed + 1, f"{type(error).__name__}: {error}"
    found = dispatch_machine.first_failure(cases)
    return found and (cases + found[0], found[1])


def schedule_of(error: BaseException) -> str:
    """The schedule that a run noted on its way out."""
    return next(note.removeprefix("schedule: ") for note in error.__notes__ if note.startswith("schedule: "))


def many(first: int, count: int, jobs: int) -> Iterator[Tally]:
    """Of so many runs, from a number on, by some processes."""
    parts = [range(low, min(low + PART, first + count)) for low in range(first, first + count, PART)]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(some, parts)


def story(text: str) -> tuple[list[str], bool]:
    """A case again: who stepped, and what changed for the model; and whether it came out right.

    Raises ValueError where the text is none of a case, DoesNotFit where it is one of another world.
    """
    case = Case.parse(text)
    world, replayed, lines = World(case.plan), chosen(case.schedule), [str(case.plan), ""]
    models = [*world.both.models]

    def tell() -> None:
        """What the last step has changed."""
        lines[-1] = f"{lines[-1]} {_told(models, world.both.models)}".rstrip()
        models[:] = world.both.models

    def choose(able: Sequence[str]) -> str | None:
        tell()
        name = replayed(able)
        lines.extend([] if name is None else [f"{len(lines) - 1:3}. {name:9}"])
        return name

    try:
        schedule = run(world, choose)
        tell()
        if len(schedule) == len(case.schedule) and not any(actor.enabled() for actor in world.actors):
            world.finished()
    except DoesNotFit:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a run raises is what was looked for
        return [*lines[:-1], lines[-1].rstrip(), "", f"{type(error).__name__}: {error}"], False
    return [*lines, "", "Dispatch and its model agree."], True


def _told(before: Sequence[spec.State], after: Sequence[spec.State]) -> str:
    pairs = enumerate(zip(before, after, strict=True))
    return "; ".join(f"queue {of}: {told(changes(old, new))}" for of, (old, new) in pairs if old != new)


def main() -> int:
    """Run the cases that were asked for, and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=100_000, help="runs by chance")
    parser.add_argument("--first", type=int, default=0, help="the number of the first run by chance")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--again", metavar="CASE", help="one case, step by step")
    asked = parser.parse_args()
    if asked.again is not None:
        try:
            lines, right = story(asked.again)
        except (ValueError, DoesNotFit) as error:
            parser.error(str(error))
        print(*lines, sep="\n")  # noqa: T201 - a command
        return 0 if right else 1
    return _night(asked.first, asked.schedules, asked.jobs)


def _night(first: int, count: int, jobs: int) -> int:
    began, seen = time.monotonic(), Tally()
    for tally in many(first, count, jobs):
        seen.add(tally)
    seconds = time.monotonic() - began
    print(  # noqa: T201 - a command
        f"{seen.runs:,} schedules ({len(seen.different):,} different), {len(seen.failures)} failed; "
        f"{seen.steps:,} steps in {seconds:.0f} s; {60 * seen.runs / seen.seconds:,.0f} runs a minute of processor time"
    )
    for what, times in sorted(seen.sometimes.items()):
        print(f"{times:>12,}  {what}")  # noqa: T201
    for case in seen.failures:
        again = f'Again: python -m gapless.properties.machines.interleavings --again "{case}"'
        print("", *story(case)[0], again, sep="\n")  # noqa: T201
    for plan in (*SMALLEST, *SMALL):
        explored = in_every_way(plan)
        runs = explored.schedules + explored.joined
        print(f"every schedule of {plan}: {explored.states:,} states, {runs:,} runs")  # noqa: T201
    return 1 if seen.failures else 0


if __name__ == "__main__":
    sys.exit(main())
