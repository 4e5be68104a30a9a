"""Hypothesis drives a coordinator and its model: every step is always offered, and both take it, or both refuse.

The rules are the steps of `spec/coordinator.py`, under the names of those that the implementation takes
(`COUNTERPARTS`). The states are compared inside each step (`coordination/coordinator_refinement.py`), the log by its
bytes on disk. In the end everything comes to rest, and the checker replays what was recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from gapless.impl.coordinator.coordinator_recorder import StepTape
from gapless.impl.coordinator.coordinator_values import CoordinatorSettings
from gapless.properties.reference_store.coordination.coordinator_refinement import CoordinatorRefinement
from gapless.properties.reference_store.recorded_conformance import require_conformance

COUNTERPARTS = {
    "open": "start",
    "admit": "ask",
    "ignore": "ask",
    "begin": "flush",
    "burn": "flush_full",
    "unload": "crash",
    "load": "crash",
    "recover": "crash",
}
"""Steps of the spec that are part of another one's rule. The coordinator itself says whom it admits and ignores."""

OUTSIDE_THE_SPEC = {
    "wait": "time is an argument of the steps",
    "race": "a client and the clock ask for the end of one transaction at once",
    "live": "the steps of a client from its request up to some point, so that much is done in a program",
}

LIMITS = st.sampled_from((3, 0, 1, 2, 3, 0, -1))
NUMBERS = st.sampled_from((0, 0, 0, 1, 1, 2, 3, -1, 99))  # counted back from the newest transaction
AGAIN = st.sampled_from((None, None, None, 0, 1, 2, 4))  # a request is new, or was made so many requests ago
LIVES = st.sampled_from((1, 99, 100, 5000))
ENDS = st.sampled_from((None,) * 2 + ("close", "kill", "lose", "kill in a flush", "lose in a flush", "lose in a use"))
WAYS = ("takes part", "hurry", "full")  # how a client and its disk may be
CHOICES = st.lists(st.integers(0, 11), max_size=6)


class CoordinatorMachine(RuleBasedStateMachine):
    """One coordinator on a simulated disk, and the model."""

    recorded = True

    @initialize(limit=LIMITS, keep=st.sampled_from((1, 1, 2, 100)), size=st.sampled_from((128, 128, 1 << 14)))
    def start(self, limit: int, keep: int, size: int) -> None:
        """A new coordinator. Its files are so small that it begins another one now and then."""
        self.tape = StepTape()
        self.newest = -1
        self.pair = CoordinatorRefinement(CoordinatorSettings(limit, keep, size), self.tape.coordinator())

    @rule(again=AGAIN, life=LIVES)
    def ask(self, again: int | None, life: int) -> None:
        """A request to begin."""
        if again is None:
            self.newest += 1
        self.pair.ask(max(self.newest - (again or 0), 0), life)

    @rule(number=NUMBERS)
    def hand(self, number: int) -> None:
        """A client is given its transaction."""
        self.pair.hand(self.newest_number - number)

    @rule(number=NUMBERS, flush=st.booleans())
    def add(self, number: int, flush: bool) -> None:  # noqa: FBT001 - drawn by name
        """A participant joins."""
        self.pair.add(self.newest_number - number)
        if flush:
            self.pair.flush()

    @rule(number=NUMBERS, commit=st.booleans())
    def decide(self, number: int, commit: bool) -> None:  # noqa: FBT001 - drawn by name
        """A client ends its transaction."""
        self.pair.decide(self.newest_number - number, commit=commit)

    @rule(number=NUMBERS)
    def time_out(self, number: int) -> None:
        """A transaction has had its time, or has not."""
        self.pair.time_out(self.newest_number - number)

    @rule(number=NUMBERS)
    def finish(self, number: int) -> None:
        """All that take part know the outcome."""
        self.pair.finish(self.newest_number - number)

    @rule(number=NUMBERS)
    def acknowledge(self, number: int) -> None:
        """A client hears the outcome."""
        self.pair.acknowledge(self.newest_number - number)

    @rule()
    def flush(self) -> None:
        """The pending group takes effect."""
        self.pair.flush()

    @rule()
    def flush_full(self) -> None:
        """The same, and the disk has no room for another file."""
        self.pair.flush(full=True)

    @rule(upto=st.integers(2, 10), ways=st.sets(st.sampled_from(WAYS)), commit=st.booleans())
    def live(self, upto: int, ways: set[str], commit: bool) -> None:  # noqa: FBT001 - as above
        """A client does what clients do, and stops somewhere."""
        pair = self.pair

        def newest() -> int:
            return self.newest_number

        self.newest += 1
        steps: tuple[Callable[[], None], ...] = (
            lambda: pair.ask(self.newest, 100),
            lambda: pair.flush(full="full" in ways),
            lambda: pair.hand(newest()),
            lambda: pair.add(newest()) if "takes part" in ways else None,
            lambda: pair.decide(newest(), commit=commit),
            lambda: None if "hurry" in ways else pair.flush(full="full" in ways),
            lambda: pair.finish(newest()),
            pair.flush,
            lambda: pair.acknowledge(newest()),
            lambda: pair.ask(max(self.newest - 1, 0), 100),
        )
        for step in (*steps[:upto], steps[-1]):
            step()

    @rule(number=NUMBERS, commit=st.booleans(), first=st.booleans())
    def race(self, number: int, commit: bool, first: bool) -> None:  # noqa: FBT001 - as above
        """A client ends its transaction when that has just had its time, and nothing is flushed between."""
        self.pair.now += 5000
        if first:
            self.decide(number, commit=commit)
        self.time_out(number)
        if not first:
            self.decide(number, commit=commit)

    @rule(by=st.sampled_from((1, 50, 100, 5000)))
    def wait(self, by: int) -> None:
        """Time goes by."""
        self.pair.now += by

    @rule(end=ENDS, limit=LIMITS, choices=CHOICES)
    def crash(self, end: str | None, limit: int, choices: list[int]) -> None:
        """This life ends, perhaps, and another begins."""
        if end is not None:
            self.pair.crash(end, limit, lambda ways: choices.pop() % ways if choices else 0)

    @property
    def newest_number(self) -> int:
        """Choose among the transactions that have begun, or are about to."""
        return max(self.pair.core.table, default=self.pair.core.end - 1)

    def teardown(self) -> None:
        """Everything comes to rest, and what was recorded conforms."""
        if hasattr(self, "pair") and sys.exc_info()[0] is None:  # otherwise the machine has failed already
            self.pair.rest()
            for what in +self.pair.sometimes:
                event(what)
            if self.recorded:
                require_conformance(self.tape)
