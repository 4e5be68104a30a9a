"""What the check service's cursors do in the end."""

from __future__ import annotations

from gapless.properties.proof.claims import cursor
from gapless.spec.language import all_between

ROUND = "the check service comes round again"

HALF_CURSOR = cursor(
    "the half cursor moves on",
    "halves behind it are asked about again after every start",
    low=lambda s: s.half_cursor,
    high=lambda s: s.half_end,
    done=lambda s, n: s.resolved[n] == 1,
    steps=("resolve", "advance"),
    fairness=ROUND,
)

OP_CURSOR = cursor(
    "the op cursor moves on once the half cursor has passed what ops name",
    "every op is read again after every start",
    low=lambda s: s.op_cursor,
    high=lambda s: s.op_end,
    done=lambda s, n: s.consumed[n] == 1,
    steps=("consume_op", "advance_ops"),
    fairness=ROUND,
    given=lambda s, op: all_between(s.op_cursor, op + 1, lambda n: s.reaches[n] <= s.half_cursor),
)


CLAIMS = (HALF_CURSOR, OP_CURSOR)
