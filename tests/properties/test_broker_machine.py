"""A whole store next to `spec/broker.py`, driven by Hypothesis: every step is always offered and taken."""

import inspect

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine

from gapless.properties.machines.stateful.failure_count import first_failure
from gapless.properties.reference_store.transactional import broker_machine
from gapless.properties.reference_store.transactional.broker_machine import BrokerMachine
from gapless.properties.reference_store.transactional.injected_faults import FAULTS
from gapless.spec import broker
from tests.support.night import NIGHT

TestBroker = BrokerMachine.TestCase
TestBroker.settings = settings(max_examples=1000 if NIGHT else 40)

CASES = 1000  # until something is met: most is within the first hundred, by whatever numbers Hypothesis draws
FOUND = (
    "a second commit writes a second final [#5574]",
    "a commit after the half was set aside is taken [#8158]",
    "the counter of a version is not raised",
    "a half is set aside with checks left",
    "after a start rollbacks are forgotten [#8158]",
    *(["an old version stays open next to the new one [#n11]"] if NIGHT else []),  # after more than a hundred cases
    *(["after a start versions are all open [#n11]"] if NIGHT else []),  # after hundreds of cases
)
"""Of the others most are about several halves, the cache or the cursors, of which this spec says nothing."""
RARE = {"commit", "not commit", "not roll_back", "dispatch"}
"""Answers that are met after some fifty cases or hundreds; that faults of commits are found shows that they are met."""


def test_it_has_the_verbs_of_its_spec() -> None:
    rules = {name for name, found in inspect.getmembers(BrokerMachine) if hasattr(found, "hypothesis_stateful_rule")}
    verbs = {broker_machine.COUNTERPARTS.get(action.__name__, action.__name__) for action in broker.ACTIONS}
    assert rules == verbs - {"start"}


def test_no_step_is_never_taken_and_none_is_never_refused() -> None:
    steps = {"answer", "check", "commit", "roll_back", "mark", "park", "dispatch"}
    missing = steps | {f"not {step}" for step in steps} | {"power", "kill", "a producer does not"}
    missing -= set() if NIGHT else RARE

    class CountedBroker(BrokerMachine):
        def teardown(self) -> None:
            missing.difference_update(self.pair.tally if hasattr(self, "pair") else ())  # before rest, which takes all
            RuleBasedStateMachine.teardown(self)
            if not missing:
                raise StopIteration

    failure = first_failure(CountedBroker, CASES)
    assert failure, f"never met: {missing}"
    assert "StopIteration" in failure[1]


@pytest.mark.parametrize("name", FOUND)
def test_a_planted_fault_is_found(name: str) -> None:
    with FAULTS[name]():
        assert first_failure(BrokerMachine, CASES)
