"""Hypothesis drives the whole of a store and `spec/broker.py`: every step is always offered, both take it or refuse it.

The rules are the steps of the spec. One transaction is looked at, among records of others; the states are compared
inside each step, whole (`broker_pair.py`). What a producer does is up to the producer, who is part of the spec.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from gapless.properties.machines.mismatch import expect
from gapless.properties.reference_store.transactional.broker_pair import BrokerPair
from gapless.spec import broker
from gapless.spec.language import Number
from gapless.spec.transaction import Phase

COUNTERPARTS = {"open": "start"}

BACK = st.sampled_from((0, 0, 0, 1, 2))  # versions, counted back from the newest
CHOICES = st.lists(st.integers(0, 11), max_size=6)


class BrokerMachine(RuleBasedStateMachine):
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
        self.pair = BrokerPair(max_checks, file_size, 1 if full else 4096)
        pay = (self.run, self.ask_to_commit, lambda: self.commit(0))
        steps: tuple[Callable[[], None], ...] = (
            lambda: self.prepare(1, 1), self.flush, self.answer, *([self.check] * checks),
            *(pay if commits else (self.ask_to_roll_back, lambda: self.roll_back(0))),
            self.mark, self.flush, self.dispatch,
        )  # fmt: skip
        for step in steps[:done]:
            step()

    def _version(self, back: int) -> Number:
        s = self.pair.model
        return s.versions[broker.Counter(max(s.checks - back, 0))]

    @rule(half=st.booleans())
    def append(self, half: bool) -> None:  # noqa: FBT001 - as above
        """A record of another sender."""
        if half:
            self.pair.append_half()
        else:
            self.pair.append()

    @rule(group=st.integers(1, 2), queue=st.integers(0, 2))
    def prepare(self, group: int, queue: int) -> None:
        """The half."""
        self.pair.prepare(group, queue)

    @rule()
    def answer(self) -> None:
        """The half is reported safe to the producer."""
        self.pair.answer()

    @rule()
    def run(self) -> None:
        """The producer runs its local transaction."""
        self.pair.producer(broker.run)

    @rule()
    def ask_to_commit(self) -> None:
        """The producer asks to commit; whichever version it names, the newest is meant."""
        self.pair.producer(lambda s: broker.ask_to_commit(s, s.newest))

    @rule()
    def ask_to_roll_back(self) -> None:
        """The producer asks to roll back."""
        self.pair.producer(lambda s: broker.ask_to_roll_back(s, s.newest))

    @rule()
    def check(self) -> None:
        """The half is put back, and a producer asked."""
        self.pair.check()

    @rule(back=BACK)
    def commit(self, back: int) -> None:
        """The request of the producer arrives."""
        self.pair.commit(self._version(back))

    @rule(back=BACK)
    def roll_back(self, back: int) -> None:
        """Likewise."""
        self.pair.roll_back(self._version(back))

    @rule()
    def mark(self) -> None:
        """An op names the half."""
        self.pair.mark()

    @rule()
    def park(self) -> None:
        """The half is set aside."""
        self.pair.park()

    @rule()
    def flush(self) -> None:
        """All is on disk."""
        self.pair.flush()

    @rule()
    def dispatch(self) -> None:
        """Consumers see what is on disk."""
        self.pair.dispatch()

    @rule(power=st.booleans(), choices=CHOICES)
    def crash(self, power: bool, choices: list[int]) -> None:  # noqa: FBT001 - as above
        """The power or the process is gone."""
        self.pair.crash(lambda ways: choices.pop() % ways if choices else 0, power=power)

    def teardown(self) -> None:
        """Everything comes to rest: the producer answers what it knows, and what the spec has at rest holds."""
        if not hasattr(self, "pair") or sys.exc_info()[0] is not None:
            return
        for _ in range(self.pair.settings.max_checks + 2):
            decide = (
                (self.ask_to_commit, self.commit) if self.pair.model.runs else (self.ask_to_roll_back, self.roll_back)
            )
            for step in (self.park, self.check, decide[0]):
                step()
            decide[1](0)
            for step in (self.mark, self.flush, self.dispatch):
                step()
        for holds in broker.AT_REST:
            expect(holds(self.pair.model), f"at rest: {holds.__name__} is false in {self.pair.model}")
        if self.pair.model.phase != Phase.ABSENT:
            event(f"ends as {Phase(self.pair.model.phase).name}")
        for what in +self.pair.tally:
            event(what)
