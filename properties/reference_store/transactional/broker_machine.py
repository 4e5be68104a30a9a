"""Hypothesis drives the whole of a store and `spec/broker.py`: every step is always offered, both take it or refuse it.

The rules are the steps of the spec. One transaction is looked at, among records of others; the states are compared
inside each step, whole (`broker_pair.py`). What a producer does is up to the producer, who is part of the spec.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from gapless.properties.machines.stateful.refinement_machine import CHOICES, RefinementMachine, chosen, offered
from gapless.properties.reference_store.transactional.broker_pair import BrokerPair
from gapless.spec.transaction import Phase

COUNTERPARTS = {"open": "start"}

BACK = st.sampled_from((0, 0, 0, 1, 2))  # versions, counted back from the newest


class BrokerMachine(RefinementMachine):
    """One store on a simulated disk, its producer, and the model."""

    @initialize(
        max_checks=st.integers(1, 3),
        file_size=st.sampled_from((1 << 16, 2048)),
        full=st.booleans(),
        done=st.integers(0, 9),
        commits=st.booleans(),
        checks=st.integers(0, 3),
    )
    def start(self, max_checks: int, file_size: int, full: bool, done: int, commits: bool, checks: int) -> None:  # noqa: FBT001 - drawn by name
        """A new store, and so many steps in the life of a transaction, without which programs would do little.

        `full`: an op batch has room for one half.
        """
        self.pair = pair = BrokerPair(max_checks, file_size, 1 if full else 4096)
        steps: tuple[Callable[[], None], ...] = (
            lambda: pair.prepare(1, 1), pair.flush, pair.answer, *([pair.check] * checks),
            *((pair.run, pair.ask_to_commit, pair.commit) if commits else (pair.ask_to_roll_back, pair.roll_back)),
            pair.mark, pair.flush, pair.dispatch,
        )  # fmt: skip
        for step in steps[:done]:
            step()

    append = offered(BrokerPair.append, half=st.booleans())
    prepare = offered(BrokerPair.prepare, group=st.integers(1, 2), queue=st.integers(0, 2))
    answer = offered(BrokerPair.answer)
    run = offered(BrokerPair.run)
    ask_to_commit = offered(BrokerPair.ask_to_commit)
    ask_to_roll_back = offered(BrokerPair.ask_to_roll_back)
    check = offered(BrokerPair.check)
    commit = offered(BrokerPair.commit, back=BACK)
    roll_back = offered(BrokerPair.roll_back, back=BACK)
    mark = offered(BrokerPair.mark)
    park = offered(BrokerPair.park)
    flush = offered(BrokerPair.flush)
    dispatch = offered(BrokerPair.dispatch)
    crash = offered(
        lambda pair, power, choices: pair.crash(chosen(choices), power=power), power=st.booleans(), choices=CHOICES
    )

    def come_to_rest(self) -> None:
        """Everything comes to rest: the producer answers what it knows, and what the spec has at rest holds."""
        self.pair.rest()
        if self.pair.model.phase != Phase.ABSENT:
            event(f"ends as {Phase(self.pair.model.phase).name}")
