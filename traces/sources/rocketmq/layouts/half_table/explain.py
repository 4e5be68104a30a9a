"""Explains departures of the table of halves: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.joining.findings import Breach
from gapless.traces.sources.rocketmq.layouts.layout import Explanation
from gapless.traces.sources.rocketmq.layouts.message_database import HALVES
from gapless.traces.sources.rocketmq.layouts.message_tables import place_in


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    args, state = found.arguments, found.departure.state
    if found.action == "miss_row":
        return f"the half at {found.position} is undecided, and the table of halves has no row for it"
    if found.action == "find_end":
        return f"the table of halves ends at {args['position']}, and no half lies there"
    row = f"the row for {found.position} in the table of halves"
    if state.position < 0:
        return f"{row} points at no half"
    if args["size"] != state.size:
        return f"{row} has {args['size']} bytes, its half {state.size}"
    of = f" of {args['limit']}" if args["limit"] else ""
    ends = f" ({found.detail})" if found.detail else ""
    return f"{row}, with {args['checks']}{of} checks, breaks the rule: {found.departure.because}{ends}"


EXPLANATION = Explanation(place_in(HALVES, "find_end", "lastOffsetPy"), message)
