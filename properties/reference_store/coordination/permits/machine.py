"""Hypothesis drives a client's permits and their model.

The steps are those of `spec/permits.py`, under the names of those that the implementation takes (`COUNTERPARTS`).
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from gapless.impl.coordinator.recorder import StepTape
from gapless.properties.machines.stateful.refinement_machine import RefinementMachine, offered
from gapless.properties.reference_store.coordination.permits.refinement import PermitsRefinement
from gapless.properties.reference_store.recorded_conformance import require_conformance

COUNTERPARTS = {"open": "start", "wait": "ask", "acquire": "ask", "late_reply": "reply"}
"""Steps of the spec that are part of another one's rule: the permits themselves say who waits and who is woken."""

NUMBERS = st.integers(-1, 10)


class PermitsMachine(RefinementMachine):
    """The permits of one client, and the model."""

    @initialize(permits=st.integers(1, 3), timeout=st.sampled_from((1, 10, 100)))
    def start(self, permits: int, timeout: int) -> None:
        """A new client."""
        self.tape = StepTape()
        self.pair = PermitsRefinement(permits, timeout, self.tape.client("client"))

    ask = offered(PermitsRefinement.ask)
    reply = offered(PermitsRefinement.reply, number=NUMBERS)
    tick = offered(PermitsRefinement.tick, by=st.sampled_from((0, 1, 5, 10, 99, 100)))
    time_out = offered(PermitsRefinement.time_out, number=NUMBERS)
    disconnect = offered(PermitsRefinement.disconnect)
    rest = offered(PermitsRefinement.rest)

    def come_to_rest(self) -> None:
        """No answers come any more: every permit comes back, and the recording conforms."""
        self.pair.drain()
        require_conformance(self.tape)
