"""Hypothesis drives a client's permits and their model: every step is always offered; both take it, or both refuse.

The rules are the steps of `spec/permits.py`, under the names of those that the implementation takes (`COUNTERPARTS`).
The states are compared inside each step (`coordination/permits_refinement.py`).
"""

from __future__ import annotations

import sys

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from gapless.impl.coordinator.coordinator_recorder import StepTape
from gapless.properties.machines.stateful import failure_count
from gapless.properties.reference_store.coordination.permits_refinement import PermitsRefinement
from gapless.properties.reference_store.recorded_conformance import require_conformance

COUNTERPARTS = {"open": "start", "wait": "ask", "acquire": "ask", "late_reply": "reply"}
"""Steps of the spec that are part of another one's rule: the permits themselves say who waits and who is woken."""

NUMBERS = st.integers(-1, 10)


class PermitsMachine(RuleBasedStateMachine):
    """The permits of one client, and the model."""

    @initialize(permits=st.integers(1, 3), timeout=st.sampled_from((1, 10, 100)))
    def start(self, permits: int, timeout: int) -> None:
        """A new client."""
        self.tape = StepTape()
        self.pair = PermitsRefinement(permits, timeout, self.tape.client("client"))

    @rule()
    def ask(self) -> None:
        """A new request."""
        self.pair.ask()

    @rule(number=NUMBERS)
    def reply(self, number: int) -> None:
        """An answer, in time or late."""
        self.pair.reply(number)

    @rule(by=st.sampled_from((0, 1, 5, 10, 99, 100)))
    def tick(self, by: int) -> None:
        """Time goes by."""
        self.pair.tick(by)

    @rule(number=NUMBERS)
    def time_out(self, number: int) -> None:
        """A request is given up."""
        self.pair.time_out(number)

    @rule()
    def disconnect(self) -> None:
        """The connection is lost."""
        self.pair.disconnect()

    @rule()
    def rest(self) -> None:
        """All has come to rest for now."""
        self.pair.rest()

    def teardown(self) -> None:
        """No answers come any more: every permit comes back, and the recording conforms."""
        if hasattr(self, "pair") and sys.exc_info()[0] is None:  # otherwise the machine has failed already
            self.pair.drain()
            for what in +self.pair.sometimes:
                event(what)
            require_conformance(self.tape)


def first_failure(cases: int) -> tuple[int, str] | None:
    """Run `failure_count.first_failure`."""
    return failure_count.first_failure(PermitsMachine, cases)
