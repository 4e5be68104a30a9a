"""Liveness of a check service."""

from __future__ import annotations

from typing import Any

from gapless.properties.proof.claims import HelpfulStep, RankedClaim
from gapless.spec.catalog import State
from gapless.spec.check_service import waits
from gapless.spec.transaction import Phase


def _waits(s: State) -> Any:
    return waits(s, s.newest)


EVERY_DECIDED_HALF_GETS_ITS_OP = RankedClaim(
    "every decided half gets its op",
    "a producer that was heard is asked again, and may say something else",
    pending=lambda s, _half: Phase.COMMITTED <= s.phase and s.phase <= Phase.ROLLED_BACK and s.op < 0,
    witness=lambda _s, _half, _none: True,
    rank=lambda s, _half, _none: 1 if _waits(s) else 2,
    helpful=(
        HelpfulStep(
            "enqueue",
            lambda s, _half, _none: not _waits(s),
            lambda s, _half, _none: {"number": s.newest},
            "a decision enters its half, and after a crash recovery enters finals without an op",
            given=lambda _s, _half, _none, length: 0 < length,
        ),
        HelpfulStep(
            "write",
            lambda s, _half, _none: _waits(s),
            lambda _s, _half, _none: {},
            "the batcher comes round when a batch is full, or its interval is over",
            looks_first=True,
        ),
    ),
    done=lambda s, _half: 0 <= s.op,
    disturbances={"crash": "what waits is lost: the half is entered again, or its rollback is undone"},
)

CLAIMS = (EVERY_DECIDED_HALF_GETS_ITS_OP,)
