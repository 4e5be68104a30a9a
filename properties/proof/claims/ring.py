"""Liveness of a batch."""

from __future__ import annotations

from gapless.properties.proof.claims import HelpfulStep, RankedClaim

DRAINS = RankedClaim(
    "the ring drains",
    "its messages are in the log and no consumer ever receives them",
    pending=lambda s, batch: 0 < s.slots and s.next <= batch < s.cut,
    witness=lambda _s, _batch, _none: True,
    rank=lambda s, batch, _none: 2 * (batch - s.next) + (1 if s.decoded[s.next] == 0 else 0),
    helpful=(
        HelpfulStep(
            "decode",
            lambda s, _batch, _none: s.decoded[s.next] == 0,
            lambda s, _batch, _none: {"batch": s.next},
            "a worker that has a batch decodes it, and puts it into the ring as soon as that has room",
        ),
        HelpfulStep(
            "dispatch",
            lambda s, _batch, _none: s.decoded[s.next] == 1,
            lambda s, _batch, _none: {"batch": s.next},
            "the thread that empties the ring comes round again",
        ),
    ),
    done=lambda s, batch: batch < s.next,
    disturbances={"truncate": "a log is not cut off for ever; what is left of it is cut into batches again"},
)

CLAIMS = (DRAINS,)
