"""The thread that sees to ops and checks, and a whole store with its threads: nothing is found but what is planted."""

from random import Random

import pytest

from gapless.impl.environment.operating_system import Clock
from gapless.impl.store import transaction_service
from gapless.properties.faults import service_faults, storage_faults
from gapless.properties.faults.fault_injection import InjectedFault, replacing
from gapless.properties.reference_store import whole_store
from gapless.properties.reference_store.transactional import service_walk
from gapless.properties.reference_store.transactional.service_walk import CHECKS, ServiceWalk
from tests.support.night import NIGHT

WALKS = 2000 if NIGHT else 40
TRIES = 150  # walks until a fault is found


def test_nothing_goes_wrong() -> None:
    assert service_walk.first_failure(WALKS) is None


def test_walks_come_upon_what_they_are_to_come_upon() -> None:
    walks = [ServiceWalk(Random(seed).randrange).run() for seed in range(12)]
    assert {(walk.faulty, walk.hurried) for walk in walks} == {(a, b) for a in (True, False) for b in (True, False)}
    assert all(walk.wakes for walk in walks if not walk.hurried)
    assert {name for walk in walks for name in walk.tally} == {
        "no room",
        "raises",
        "does not know",
        "rolls back",
        "commits",
        "the clock is set",
    }
    assert max(max(walk.asked.values()) for walk in walks) == CHECKS


@pytest.mark.parametrize("fault", service_faults.FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(fault: InjectedFault) -> None:
    with fault.planted():
        assert service_walk.first_failure(TRIES) is not None


def test_a_clock_that_is_believed_is_found() -> None:
    def believed(clock: Clock, *_steady: object) -> Clock:
        return clock

    with replacing(transaction_service, "SteadyClock", believed):
        assert service_walk.first_failure(TRIES) is not None


def test_a_whole_store_keeps_what_it_says() -> None:
    assert whole_store.first_failure(20 if NIGHT else 2) is None


@pytest.mark.parametrize("fault", storage_faults.WHOLE_STORE, ids=lambda fault: fault.name)
def test_a_planted_fault_of_a_whole_store_is_found(fault: InjectedFault) -> None:
    with fault.planted():
        assert whole_store.first_failure(2) is not None
