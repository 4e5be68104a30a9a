"""Runs of a small store, in any order of the steps of those who work on it.

Appending, flushing, scanning, building, committing and reading are done by actors (`actors.py`). Each of their steps is
taken by dispatch and by its model (`dispatch_refinement.py`). Who steps next is chosen by Hypothesis, which shrinks
what it finds; at random, with and without priorities; and, for the smallest stores, exhaustively. A case is a plan and
a schedule, and its text is all that is needed to run it again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from gapless.properties import campaign
from gapless.properties.campaign import CaseTally, Failure, described
from gapless.properties.machines.dispatch_refinement import LIFE_ENDS
from gapless.properties.machines.interleavings.actors import Plan, Simulation
from gapless.properties.machines.mismatch import expect
from gapless.properties.simulation import schedules
from gapless.properties.subject import Subject
from gapless.spec import dispatch as spec
from gapless.traces.replay.notation import changes, changes_text

BOUND = 1000  # steps: no run needs so many
STEPS = 60  # of a run, roughly: among these, priorities change

SMALLEST = (
    Plan(queues=(0, 0), reads=0),
    Plan(queues=(0, 1), batch=2, reads=0),
    Plan(queues=(0, 0), overlap=0, flying=1, reads=0),
    Plan(queues=(0, 0), workers=1, fails=(0,), reads=0),
    Plan(queues=(0, 0), workers=1, synchronous=1, entries=1, reads=1),
    Plan(queues=(0,), crashes=("restart",), reads=0),
    Plan(queues=(0, 0), workers=1, crashes=("lose",), reads=0),
)
"""Plans of which every schedule is tried; orders of independent steps that lead to the same state count once."""

SMALL = (
    Plan(queues=(0, 0, 0), reads=0),
    Plan(queues=(0, 1, 0), reads=0),
    Plan(queues=(0, 0), crashes=("tear",), seed=7),
)
"""The same, for a night."""


@dataclass(frozen=True, slots=True)
class InterleavedRun:
    """A run as a value; `str` of it is what `parse` reads."""

    plan: Plan
    schedule: schedules.Schedule

    @classmethod
    def parse(cls, text: str) -> InterleavedRun:
        """The case of such a text. Raises ValueError."""
        plan, colon, schedule = text.partition(":")
        if not colon:
            raise ValueError(f"{text!r}: expected a plan, a colon and a schedule")
        return cls(Plan.parse(plan), schedules.Schedule.parse(schedule))

    def __str__(self) -> str:
        return f"{self.plan}: {self.schedule}"


def run_case(
    make: Callable[[], Subject], plan: Plan, choose: schedules.Chooser
) -> tuple[Simulation, schedules.Schedule]:
    """One run, to its end.

    Raises Mismatch, or what the implementation raises, with the schedule as a note.
    """
    simulation = Simulation(make, plan)
    schedule = schedules.run(simulation, choose, BOUND)
    try:
        expect(len(schedule) < BOUND, f"{BOUND} steps, and no end")
        simulation.finished()
    except Exception as error:
        error.add_note(f"schedule: {schedule}")
        raise
    return simulation, schedule


def in_every_way(make: Callable[[], Subject], plan: Plan) -> schedules.ScheduleCounts:
    """Every schedule of a plan. Raises as `run_case`."""
    return schedules.every(partial(Simulation, make, plan), state=Simulation.state, finished=Simulation.finished)


def plan_by_chance(chance: random.Random) -> Plan:
    """A random small plan; most have neither failures nor crashes."""
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


def by_chance(make: Callable[[], Subject], seed: int) -> tuple[Simulation, schedules.Schedule]:
    """The random run of a seed: every second one has priorities. Raises as `run_case`."""
    chance = random.Random(seed)  # noqa: S311 - the same for the same seed is all that is asked of it.
    plan = plan_by_chance(chance)
    choose = (
        schedules.uniform(seed)
        if seed % 2
        else schedules.with_priorities(seed, changes=chance.randrange(5), steps=STEPS)
    )
    return run_case(make, plan, choose)


# -- for a night -----------------------------------------------------------------------------------------------------


@dataclass
class InterleavingTally(CaseTally):
    """The tally of many runs. `seconds`: of one processor · `different`: digests of plans with schedules."""

    steps: int = 0
    seconds: float = 0.0
    different: set[bytes] = field(default_factory=set)


def some(make: Callable[[], Subject], seeds: range) -> InterleavingTally:
    """The runs of these seeds, up to the first that fails."""
    tally, began = InterleavingTally(), time.process_time()
    for seed in seeds:
        try:
            simulation, schedule = by_chance(make, seed)
        except Exception as error:  # noqa: BLE001 - whatever a run raises is what was looked for
            plan = plan_by_chance(random.Random(seed))  # noqa: S311 - as above.
            tally.failures.append(Failure(f"{plan}: {schedule_of(error)}", described(error)))
            break
        tally.cases += 1
        tally.steps += len(schedule)
        tally.counts += simulation.pair.tally
        tally.different.add(blake2b(f"{simulation.plan}: {schedule}".encode(), digest_size=8).digest())
    tally.seconds = time.process_time() - began
    return tally


def first_failure(make: Callable[[], Subject], cases: int) -> tuple[int, str] | None:
    """The number of random runs until one fails, and its failure; None if none fails."""
    return campaign.first_failure(partial(by_chance, make), cases)


def schedule_of(error: BaseException) -> str:
    """The schedule in the notes of what a run raised."""
    return next(note.removeprefix("schedule: ") for note in error.__notes__ if note.startswith("schedule: "))


def story(make: Callable[[], Subject], text: str) -> tuple[list[str], bool]:
    """A case again: who stepped, and what changed in the model; and whether it passed.

    Raises ValueError where the text is no case, DoesNotFit where its schedule does not fit its plan.
    """
    case = InterleavedRun.parse(text)
    simulation, replayed, lines = Simulation(make, case.plan), schedules.chosen(case.schedule), [str(case.plan), ""]
    models = [*simulation.pair.models]

    def tell() -> None:
        """Append what the last step changed to its line."""
        lines[-1] = f"{lines[-1]} {_changes_of(models, simulation.pair.models)}".rstrip()
        models[:] = simulation.pair.models

    def choose(able: Sequence[str]) -> str | None:
        tell()
        name = replayed(able)
        lines.extend([] if name is None else [f"{len(lines) - 1:3}. {name:9}"])
        return name

    try:
        schedule = schedules.run(simulation, choose)
        tell()
        if len(schedule) == len(case.schedule) and not any(actor.enabled() for actor in simulation.actors):
            simulation.finished()
    except schedules.DoesNotFit:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a run raises is what was looked for
        return [*lines[:-1], lines[-1].rstrip(), "", described(error)], False
    return [*lines, "", "Dispatch and its model agree."], True


def _changes_of(before: Sequence[spec.State], after: Sequence[spec.State]) -> str:
    pairs = enumerate(zip(before, after, strict=True))
    return "; ".join(f"queue {q}: {changes_text(changes(old, new))}" for q, (old, new) in pairs if old != new)
