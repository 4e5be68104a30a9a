"""Rules about what a recorded event says beside its step: its outcome, and what the broker saw afterwards."""

from __future__ import annotations

from types import MappingProxyType

REFUSED = "broker-refuses-only-what-is-not-allowed"
SEEN = "what-the-broker-saw-is-what-its-steps-made"
OF_AN_EVENT = "of recorded events"
OF_EVENTS = MappingProxyType(
    {  # the sentence of each, and what goes wrong without it
        REFUSED: (
            "the broker refuses only what is not allowed",
            "a client is turned away for no reason, and what it wanted done stays undone",
        ),
        SEEN: (
            "what the broker saw is what its steps made",
            "the broker goes on from a state that its own steps do not lead to",
        ),
    }
)
