"""Rules about a recorded event besides its step: its outcome, and what the broker observed afterwards."""

from __future__ import annotations

from types import MappingProxyType

REFUSED = "broker-refuses-only-what-is-not-allowed"
SEEN = "what-the-broker-saw-is-what-its-steps-made"
OF_AN_EVENT = "of recorded events"
OF_EVENTS = MappingProxyType(
    {  # the sentence of each, and what goes wrong without it
        REFUSED: (
            "only what the spec does not allow is refused",
            "a client is refused for no reason, and its request is not carried out",
        ),
        SEEN: (
            "the recorded state is the one that the steps lead to",
            "the system continues from a state that its own steps do not lead to",
        ),
    }
)
