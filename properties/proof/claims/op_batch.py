"""Liveness of entries that wait for their op."""

from __future__ import annotations

from typing import Any

from gapless.properties.proof.claims import HelpfulStep, RankedClaim
from gapless.spec.catalog import State
from gapless.spec.language import greatest


def _time_left(s: State) -> Any:
    """Ms until the interval of the first that waits is over."""
    return s.since + s.interval - s.clock


A_BATCH_IS_WRITTEN = RankedClaim(
    "a batch that waits is written",
    "decided halves wait for ever, and are asked about again",
    pending=lambda s, place: s.written <= place < s.entered and 0 < s.interval and s.restarted == 0,
    witness=lambda _s, _place, _none: True,
    rank=lambda s, _place, _none: greatest(0, _time_left(s)) + 1,
    helpful=(
        HelpfulStep(
            "tick",
            lambda s, _place, _none: 0 < _time_left(s),
            lambda _s, _place, _none: {},
            "time goes by, and the batcher looks at the clock before the interval is over",
            given=lambda s, _place, _none, time: s.clock < time <= s.since + s.interval,
        ),
        HelpfulStep(
            "write",
            lambda s, _place, _none: _time_left(s) <= 0,
            lambda s, _place, _none: {
                "count": s.entered - s.written,
                "size": s.size,
                "last": s.longest,
                "legible": True,
                "listed": True,
            },
            "the batcher comes round when the interval is over",
            looks_first=True,
        ),
    ),
    done=lambda s, place: place < s.written,
    disturbances={
        "crash": "what waits is lost with the memory of the broker, and its halves are asked about again",
        "restart": "the limit of an earlier life is not known",
    },
)

CLAIMS = (A_BATCH_IS_WRITTEN,)
