"""The thread that sees to ops and checks, and a whole store with its threads: nothing is found but what is planted."""

import pytest

from gapless.impl.environment.operating_system import Clock
from gapless.impl.store import transaction_service
from gapless.properties.campaign import first_failure
from gapless.properties.faults.planted import service_faults, storage_faults
from gapless.properties.faults.planted.fault_injection import InjectedFault, replacing
from gapless.properties.reference_store.transactional.service_walk import CHECKS, walk
from gapless.properties.reference_store.whole_store import life_of_a_store
from tests.support.night import NIGHT

WALKS = 2000 if NIGHT else 40
TRIES = 150  # walks until a fault is found


def test_nothing_goes_wrong() -> None:
    assert first_failure(walk, WALKS) is None


def test_walks_come_upon_what_they_are_to_come_upon() -> None:
    walks = [walk(seed) for seed in range(12)]
    assert {(one.faulty, one.hurried) for one in walks} == {(a, b) for a in (True, False) for b in (True, False)}
    assert all(one.wakes for one in walks if not one.hurried)
    assert {name for one in walks for name in one.tally} == {
        "no room",
        "raises",
        "does not know",
        "rolls back",
        "commits",
        "the clock is set",
    }
    assert max(max(one.asked.values()) for one in walks) == CHECKS


@pytest.mark.parametrize("fault", service_faults.FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(fault: InjectedFault) -> None:
    with fault.planted():
        assert first_failure(walk, TRIES) is not None


def test_a_clock_that_is_believed_is_found() -> None:
    def believed(clock: Clock, *_steady: object) -> Clock:
        return clock

    with replacing(transaction_service, "SteadyClock", believed):
        assert first_failure(walk, TRIES) is not None


def test_a_whole_store_keeps_what_it_says() -> None:
    assert first_failure(life_of_a_store, 20 if NIGHT else 2) is None


@pytest.mark.parametrize("fault", storage_faults.WHOLE_STORE, ids=lambda fault: fault.name)
def test_a_planted_fault_of_a_whole_store_is_found(fault: InjectedFault) -> None:
    with fault.planted():
        assert first_failure(life_of_a_store, 2) is not None
