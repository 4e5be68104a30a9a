"""Liveness of a permit."""

from __future__ import annotations

from gapless.properties.proof.claims import HelpfulStep, RankedClaim

EVERY_PERMIT = RankedClaim(
    "every permit comes back",
    "a client loses a permit with every silence, until all its callers wait for ever",
    # `in_use` counts who is out, for every step changes both alike (`a_permit_is_held_while_its_request_is_out`).
    pending=lambda s, request: s.returned[request] < s.taken[request] and 0 < s.in_use,
    witness=lambda _s, _request, _none: True,
    rank=lambda s, request, _none: 2 if s.clock - s.since[request] < s.timeout else 1,
    helpful=(
        HelpfulStep(
            "tick",
            lambda s, request, _none: s.clock - s.since[request] < s.timeout,
            lambda _s, _request, _none: {},
            "time goes by",
            given=lambda s, request, _none, time: s.clock <= time and s.since[request] + s.timeout <= time,
            looks_first=True,
        ),
        HelpfulStep(
            "time_out",
            lambda s, request, _none: s.timeout <= s.clock - s.since[request],
            lambda _s, request, _none: {"number": request},
            "a client looks for requests that have timed out",
        ),
    ),
    done=lambda s, request: s.taken[request] <= s.returned[request] or s.in_use <= 0,
    disturbances={},
)

CLAIMS = (EVERY_PERMIT,)
