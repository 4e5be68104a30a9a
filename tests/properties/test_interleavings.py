"""Dispatch next to its model, in as many orders as fit into a few seconds: `make night` has more."""

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
from gapless.impl.recorder.recorder import StoreRecorder
from gapless.properties.faults.implementation import search
from gapless.properties.faults.planted.dispatch_faults import FAULTS
from gapless.properties.machines.dispatch_refinement import LIFE_ENDS
from gapless.properties.machines.interleavings.actors import Plan
from gapless.properties.machines.interleavings.schedule_cases import (
    SMALLEST,
    InterleavedRun,
    by_chance,
    in_every_way,
    plan_by_chance,
    run_case,
    some,
    story,
)
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.machines.stateful.dispatch_machine import OUTSIDE_THE_SPEC, DispatchMachine
from gapless.properties.reference_store.store_subject import ReferenceStore
from gapless.properties.simulation.schedules import by, chosen, uniform
from gapless.spec import dispatch as spec
from tests.support.night import NIGHT, by_day

pytestmark = pytest.mark.slow

SHARE = 2000 if NIGHT else 400  # of the 100,000 of a night

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


# Both step, or both refuse


class TestDispatch(DispatchMachine.of(ReferenceStore).TestCase):  # type: ignore[misc]
    """Hypothesis chooses every step."""

    settings = settings(max_examples=settings().max_examples, suppress_health_check=[HealthCheck.too_slow])


def test_the_machine_has_the_verbs_of_the_spec_and_no_other() -> None:
    rules = {name for name, found in inspect.getmembers(DispatchMachine) if hasattr(found, "hypothesis_stateful_rule")}
    begins = {
        name
        for name, found in inspect.getmembers(DispatchMachine)
        if hasattr(found, "hypothesis_stateful_initialize_rule")
    }
    assert rules | begins == {action.__name__ for action in spec.ACTIONS} | OUTSIDE_THE_SPEC.keys()


# In any order


@given(plan=PLANS, data=st.data())
def test_the_next_step(plan: Plan, data: st.DataObject) -> None:
    run_case(ReferenceStore, plan, by(lambda ways: data.draw(st.integers(0, ways - 1))))


def test_a_share_of_the_night() -> None:
    """No gap is passed; and what runs are to come upon, they do."""
    tally = some(ReferenceStore, range(SHARE))
    assert not tally.failures
    assert (tally.cases, len(tally.different)) == (SHARE, SHARE)
    assert min(tally.counts[what] for what in SOMETIMES) > SHARE / 20


SOMETIMES = (
    "an entry waited behind a gap",
    "nothing was cut, for too much was in flight",
    "a batch was tried again",
    "dispatch stopped",
    *(f"life ended: {end}" for end in LIFE_ENDS),
)


@pytest.mark.parametrize(
    ("plan", "states"), by_day([*zip(SMALLEST, (379, 486, 480, 218, 205, 53, 197), strict=True)]), ids=str
)
def test_the_smallest_stores_in_every_order(plan: Plan, states: int) -> None:
    assert in_every_way(ReferenceStore, plan).states == states


# A case is a value


def test_a_case_is_seen_again_from_its_text() -> None:
    for seed in range(40):
        simulation, schedule = by_chance(ReferenceStore, seed)
        case = InterleavedRun.parse(str(InterleavedRun(simulation.plan, schedule)))
        again, same = run_case(ReferenceStore, case.plan, chosen(case.schedule))
        assert (case.plan, same, again.state()) == (simulation.plan, schedule, simulation.state())


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
        InterleavedRun.parse(text)


def test_a_failure_is_reported_as_a_story() -> None:
    fault = next(fault for fault in FAULTS if fault.name == "the commit position passes a gap of one")
    with fault.planted():
        failed = some(ReferenceStore, range(100)).failures
        lines, right = story(ReferenceStore, failed[0].case)
        story_text, well = story(ReferenceStore, "queues=0,0: append*2 scan*2 w1 w2 w2*2 commit.0")
    assert not right
    assert lines[-1].startswith("Mismatch: ")
    assert (story_text, well) == (STORY, False)
    assert story(ReferenceStore, "queues=0,0: append*2 scan*2 w1 w2 w2*2 commit.0")[1]


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
        "Mismatch: commit 1 of T/0 was taken; the model needs: every entry before the commit position is written; "
        "otherwise consumers read an entry that is not there, skip its message, and never come back"
    ),
]


# What was recorded


def test_recorded_runs_conform(tmp_path: Path) -> None:
    assert (
        check([_recorded(tmp_path, seed) for seed in range(40 if NIGHT else 15)], profile="strict").verdict
        == "conforms"
    )


def test_a_recorded_fault_departs(tmp_path: Path) -> None:
    fault = next(fault for fault in FAULTS if fault.name == "the commit position passes a gap of one")
    with fault.planted():
        recorded = [_recorded(tmp_path, seed) for seed in range(40)]
    assert check(recorded, profile="strict").verdict == "departs"


def _recorded(folder: Path, seed: int) -> Path:
    """Run with lives that end as a store's do; the recorder does not notice that dispatch alone restarts."""
    plan = plan_by_chance(Random(seed))
    path, ends = folder / f"{seed}.parquet", [end for end in plan.crashes if end not in {"restart", "again"}]
    with StoreRecorder(path) as recorder, suppress(Mismatch):
        run_case(lambda: ReferenceStore(recorder), replace(plan, crashes=tuple(ends)), uniform(seed))
    return path


# Planted faults


@pytest.mark.parametrize("fault", by_day([fault.name for fault in FAULTS], 1 / 3))
def test_a_planted_fault_is_found(fault: str) -> None:
    assert search("interleavings", fault, 300).after > 0
