"""Transactions next to their spec, driven by Hypothesis: every step is always offered and taken."""

import inspect
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine

from gapless.properties.machines.stateful.failure_count import first_failure
from gapless.properties.reference_store.transactional import transaction_machine
from gapless.properties.reference_store.transactional.injected_faults import FAULTS
from gapless.properties.reference_store.transactional.transaction_machine import TransactionMachine
from gapless.spec import transaction
from tests.support.night import NIGHT, by_day

TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(max_examples=1000 if NIGHT else 10)

CASES = 400 if NIGHT else 60
NOT_FOUND = {
    "a commit after a rollback is taken [#8158]",
    "after a start a final without op stays so [#op-crash]",
}
"""Within so few programs. Random walks find them, the second one also these programs in the night."""


def test_it_has_the_verbs_of_its_spec() -> None:
    rules = {
        name for name, found in inspect.getmembers(TransactionMachine) if hasattr(found, "hypothesis_stateful_rule")
    }
    names = {action.__name__ for action in transaction.ACTIONS}
    verbs = {
        transaction_machine.COUNTERPARTS.get(name, name) for name in names - transaction_machine.NO_COUNTERPART.keys()
    }
    assert rules - transaction_machine.OUTSIDE_THE_SPEC.keys() == verbs - {"start"}
    assert transaction_machine.COUNTERPARTS.keys() | transaction_machine.NO_COUNTERPART.keys() <= names


def test_no_step_is_never_taken() -> None:
    tally: Counter[str] = Counter()

    class CountedTransactions(TransactionMachine):
        def teardown(self) -> None:
            tally.update(self.pair.tally if hasattr(self, "pair") else ())  # before rest, which takes them all
            RuleBasedStateMachine.teardown(self)

    assert first_failure(CountedTransactions, CASES // 3) is None
    steps = {"COMMITTED", "ROLLED_BACK", "put back", "set aside", "power", "kill"}
    refusals = {"again", "unknown", "refused", "not put back", "not set aside", "not safe yet"}
    assert steps | refusals <= tally.keys()


@pytest.mark.parametrize("name", by_day([name for name in FAULTS if name not in NOT_FOUND]))
def test_a_planted_fault_is_found(name: str) -> None:
    with FAULTS[name]():
        assert first_failure(TransactionMachine, CASES)
