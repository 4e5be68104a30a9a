"""The coordinator and its clients next to their specs, and in cases of all failures: `make night` has more."""

import inspect
import re
from types import ModuleType

import pytest
from hypothesis.stateful import RuleBasedStateMachine

from gapless.impl.coordinator import coordinator as coordinator_module
from gapless.impl.coordinator.recorder import CoordinatorRecorder, PermitRecorder
from gapless.impl.environment.operating_system import Clock
from gapless.properties.campaign import first_failure, judged
from gapless.properties.faults.implementation import search
from gapless.properties.faults.planted.coordination_faults import COORDINATOR, PERMITS
from gapless.properties.faults.planted.fault_injection import replacing
from gapless.properties.reference_store.coordination.coordination_cases import CoordinationCase
from gapless.properties.reference_store.coordination.coordinator import machine as coordinator_machine
from gapless.properties.reference_store.coordination.coordinator.machine import CoordinatorMachine
from gapless.properties.reference_store.coordination.coordinator.programs import run_program
from gapless.properties.reference_store.coordination.crowds import crowd_outside, crowd_within
from gapless.properties.reference_store.coordination.permits import machine as permits_machine
from gapless.properties.reference_store.coordination.permits.machine import PermitsMachine
from gapless.spec import coordinator, permits
from tests.support.night import by_day

TestCoordinator = CoordinatorMachine.TestCase
TestPermits = PermitsMachine.TestCase

MACHINES: tuple[tuple[type[RuleBasedStateMachine], ModuleType, dict[str, str], dict[str, str]], ...] = (
    (CoordinatorMachine, coordinator, coordinator_machine.COUNTERPARTS, coordinator_machine.OUTSIDE_THE_SPEC),
    (PermitsMachine, permits, permits_machine.COUNTERPARTS, {}),
)
CASES = 60  # as many as the profile `ci` tries


@pytest.mark.parametrize(("machine", "spec", "counterparts", "outside"), MACHINES)
def test_a_machine_has_the_verbs_of_its_spec(
    machine: type[RuleBasedStateMachine], spec: ModuleType, counterparts: dict[str, str], outside: dict[str, str]
) -> None:
    rules = {name for name, found in inspect.getmembers(machine) if hasattr(found, "hypothesis_stateful_rule")}
    verbs = {counterparts.get(action.__name__, action.__name__) for action in spec.ACTIONS}
    assert rules - outside.keys() == verbs - {"start"}
    assert counterparts.keys() <= {action.__name__ for action in spec.ACTIONS}


def test_nothing_goes_wrong_that_may_not() -> None:
    tally = judged(range(CASES), CoordinationCase)
    assert not tally.failures
    happened = tally.counts
    faults = "a crash", "a kill", "a close", "a cut", "a full disk", "a disk that fails", "a clock that is set"
    assert all(happened[what] for what in faults)
    assert happened["timed out"] > happened["reported COMMITTED"] > CASES


def test_a_clock_that_is_believed_is_found() -> None:
    def believed(clock: Clock, *_steady: object) -> Clock:
        return clock

    with replacing(coordinator_module, "SteadyClock", believed):
        wrong = [failed.wrong for failed in judged((27, 40), CoordinationCase).failures]
    assert ["lived for" in each for each in wrong] == [True, True], wrong


def test_a_case_is_the_same_again() -> None:
    assert judged([7], CoordinationCase) == judged([7], CoordinationCase)


@pytest.mark.parametrize(
    ("recorder", "untold", "needs"),
    [
        (CoordinatorRecorder, "decided", "the outcome is the one that was decided"),
        (
            CoordinatorRecorder,
            "finished",
            "(the outcome that is reported is in the log|a slot is free|the limit leaves room)",
        ),
        (PermitRecorder, "timed_out", "a permit is free"),
        (PermitRecorder, "acquired", "the request holds a permit"),
    ],
)
def test_what_is_recorded_is_replayed(recorder: type, untold: str, needs: str) -> None:
    """A recording that leaves a step out is none of a lawful run."""
    with replacing(recorder, untold, lambda *_step: None):
        wrong = [failed.wrong for failed in judged(range(8), CoordinationCase).failures]
    assert wrong
    assert any(re.search(needs, each) for each in wrong), wrong


def test_long_programs_are_as_the_model_says() -> None:
    assert first_failure(run_program, CASES) is None


@pytest.mark.parametrize("fault", by_day([fault.name for fault in COORDINATOR], 1 / 8))
def test_a_fault_of_the_coordinator_is_found(fault: str) -> None:
    assert search("coordinator", fault, CASES).after > 0


@pytest.mark.parametrize("fault", by_day([fault.name for fault in PERMITS], 1 / 8))
def test_a_fault_of_a_client_is_found(fault: str) -> None:
    assert search("permits", fault, CASES).after > 0


def test_a_crowd_within_the_process() -> None:
    crowd = crowd_within(300, 20)
    assert crowd.peak == 20
    assert crowd.ignored > 400
    assert crowd.events > 1000


def test_a_crowd_over_the_loopback() -> None:
    crowd = crowd_outside(30, 5, timeout=1.0, rounds=1)
    assert (crowd.peak, crowd.served, crowd.ignored) == (5, 5, 25)
