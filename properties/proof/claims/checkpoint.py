"""Liveness of the check service's cursors."""

from __future__ import annotations

from typing import Any

from gapless.properties.proof.claims import HelpfulStep, RankedClaim, beyond, cursor, first_gap, way_to
from gapless.spec.catalog import State
from gapless.spec.checkpoint import How
from gapless.spec.language import all_between

ROUND = "the check service comes round again"


def _half_cursor(s: State) -> Any:
    return s.half_cursor


def _is_resolved(s: State, number: Any) -> Any:
    return s.how[number] != 0


def _is_last(s: State, gap: Any) -> Any:
    """True if no half lies behind the first that is not resolved: so it was not put back."""
    return gap + 1 == s.half_end


HALF_CURSOR = RankedClaim(
    "the half cursor moves on",
    "halves behind it are asked about again after every start",
    pending=lambda s, half: s.half_cursor <= half < s.half_end,
    witness=first_gap(_half_cursor, _is_resolved),
    rank=lambda s, half, gap: 2 * way_to(s, half, gap) + (1 if gap <= half and _is_last(s, gap) else 0),
    helpful=(
        HelpfulStep(
            "half",
            lambda s, half, gap: gap <= half and _is_last(s, gap),
            lambda s, _half, _gap: {"number": s.half_end},
            f"who has not decided is asked: {ROUND}, and puts the half back",
            looks_first=True,
        ),
        HelpfulStep(
            "resolve",
            lambda s, half, gap: gap <= half and not _is_last(s, gap),
            lambda s, _half, gap: {"number": gap, "how": How.VERSION, "by": s.half_end - 1},
            f"{ROUND}: the half was put back, if no op names it and it was not set aside",
            looks_first=True,
        ),
        HelpfulStep("advance", beyond, lambda _s, _half, gap: {"to": gap}, ROUND, looks_first=True),
    ),
    done=lambda s, half: half < s.half_cursor,
    disturbances={
        "crash": "a round of the check service is lost, and perhaps the half; its cursor is where it was saved"
    },
    gap=(_half_cursor, lambda s: s.half_end, _is_resolved),
)

OP_CURSOR = cursor(
    "the op cursor moves on once the half cursor has passed what ops name",
    "every op is read again after every start",
    low=lambda s: s.op_cursor,
    high=lambda s: s.op_end,
    done=lambda s, n: s.consumed[n] == 1,
    steps=("consume_op", "advance_ops"),
    fairness=ROUND,
    disturbances={
        "crash": "a round of the check service is lost, and perhaps the op; its cursor is where it was saved"
    },
    given=lambda s, op: all_between(s.op_cursor, op + 1, lambda n: s.reaches[n] <= s.half_cursor),
)


CLAIMS = (HALF_CURSOR, OP_CURSOR)
