"""Dispatch beside its model, in as many orders as can be had in a few seconds: `make night` has more."""

from __future__ import annotations

import inspect
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapless import check
from gapless.impl.environment.schedules import by, chosen, uniform
from gapless.impl.recorder.recorder import Recorder
from gapless.properties.faults.dispatch import FAULTS
from gapless.properties.faults.implementation import Fault
from gapless.properties.machines import interleavings
from gapless.properties.machines.actors import Plan
from gapless.properties.machines.dispatch_machine import OF_THE_WORLD, DispatchMachine
from gapless.properties.machines.dispatch_refinement import LIFE_ENDS
from gapless.properties.machines.ground_truth import Departs
from gapless.properties.machines.interleavings import (
    PLANS,
    SMALLEST,
    Case,
    by_chance,
    first_failure,
    in_every_way,
    plan_by_chance,
    run_case,
    story,
)
from gapless.spec import dispatch as spec

pytestmark = pytest.mark.slow

SHARE = 2000  # of the 100,000 of a night


# Both step, or both refuse


class TestDispatch(DispatchMachine.TestCase):  # type: ignore[misc,valid-type]
    """Hypothesis chooses every step."""

    settings = settings(max_examples=settings().max_examples, suppress_health_check=[HealthCheck.too_slow])


def test_the_machine_has_the_verbs_of_the_spec_and_no_other() -> None:
    rules = {name for name, found in inspect.getmembers(DispatchMachine) if hasattr(found, "hypothesis_stateful_rule")}
    begins = {
        name
        for name, found in inspect.getmembers(DispatchMachine)
        if hasattr(found, "hypothesis_stateful_initialize_rule")
    }
    assert rules | begins == {action.__name__ for action in spec.ACTIONS} | OF_THE_WORLD.keys()


# In any order


@given(plan=PLANS, data=st.data())
def test_whoever_steps_next(plan: Plan, data: st.DataObject) -> None:
    run_case(plan, by(lambda ways: data.draw(st.integers(0, ways - 1))))


def test_a_share_of_the_night() -> None:
    """No gap is passed; and what runs are to come upon, they do."""
    tally = interleavings.some(range(SHARE))
    assert not tally.failures
    assert (tally.runs, len(tally.different)) == (SHARE, SHARE)
    assert min(tally.sometimes[what] for what in SOMETIMES) > 50


SOMETIMES = (
    "an entry waited behind a gap",
    "nothing was cut, for too much was in flight",
    "a batch was tried again",
    "dispatch stopped",
    *(f"life ended: {end}" for end in LIFE_ENDS),
)


@pytest.mark.parametrize(("plan", "states"), [*zip(SMALLEST, (379, 486, 480, 218, 205, 53, 197), strict=True)], ids=str)
def test_the_smallest_stores_in_every_order(plan: Plan, states: int) -> None:
    assert in_every_way(plan).states == states


# A case is a value


def test_a_case_is_seen_again_from_its_text() -> None:
    for seed in range(40):
        world, schedule = by_chance(seed)
        case = Case.parse(str(Case(world.plan, schedule)))
        again, same = run_case(case.plan, chosen(case.schedule))
        assert (case.plan, same, again.state()) == (world.plan, schedule, world.state())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("queues=0", "a plan, a colon and a schedule"),
        ("queue=0: append", "'queue=0': expected queues, batch"),
        ("queues=a: append", "invalid literal"),
        ("queues=0: append*x", "with spaces between"),
    ],
)
def test_another_text_is_none(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        Case.parse(text)


def test_a_failure_is_told_as_a_story() -> None:
    fault = next(fault for fault in FAULTS if fault.name == "the commit position passes a gap of one")
    with fault.planted():
        failed = interleavings.some(range(100)).failures
        lines, right = story(failed[0])
        told, well = story("queues=0,0: append*2 scan*2 w1 w2 w2*2 commit.0")
    assert not right
    assert lines[-1].startswith("Departs: ")
    assert (told, well) == (STORY, False)
    assert story("queues=0,0: append*2 scan*2 w1 w2 w2*2 commit.0")[1]


STORY = [
    "queues=0,0",
    "",
    "  1. append",
    "  2. append",
    "  3. scan      queue 0: scanned 0 → 1",
    "  4. scan      queue 0: scanned 1 → 2",
    "  5. w1        queue 0: at -1 → 0, taken[0] 0 → 1",
    "  6. w2        queue 0: at 0 → 1, taken[1] 0 → 1",
    "  7. w2",
    "  8. w2        queue 0: at 1 → -1, bits[1] 0 → 1, written[1] 0 → 1",
    "  9. commit.0",
    "",
    (
        "Departs: commit 1 of T/0 was taken; the model needs: every entry before the commit position is written; "
        "otherwise consumers read an entry that is not there, skip its message, and never come back"
    ),
]


# What was recorded


def test_recorded_runs_conform(tmp_path: Path) -> None:
    assert check([_recorded(tmp_path, seed) for seed in range(40)], profile="strict").verdict == "conforms"


def test_a_recorded_fault_departs(tmp_path: Path) -> None:
    fault = next(fault for fault in FAULTS if fault.name == "the commit position passes a gap of one")
    with fault.planted():
        recorded = [_recorded(tmp_path, seed) for seed in range(40)]
    assert check(recorded, profile="strict").verdict == "departs"


def _recorded(folder: Path, seed: int) -> Path:
    """A run whose lives end as a store's do: that dispatch alone begins again, no recorder is told."""
    plan = plan_by_chance(Random(seed))
    path, ends = folder / f"{seed}.parquet", [end for end in plan.crashes if end not in {"restart", "again"}]
    with Recorder(path) as recorder, suppress(Departs):
        run_case(replace(plan, crashes=tuple(ends)), uniform(seed), recorder)
    return path


# Planted faults


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(fault: Fault) -> None:
    with fault.planted():
        assert first_failure(300) is not None
