"""Explains departures of the table of keys: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.joining.findings import Breach
from gapless.traces.sources.rocketmq.layouts.layout import Explanation
from gapless.traces.sources.rocketmq.layouts.message_database import KEYS
from gapless.traces.sources.rocketmq.layouts.message_tables import place_in


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    args, state = found.arguments, found.departure.state
    rows = f" (its rows: {found.detail})" if found.detail else ""
    if found.action == "pass_by":
        return f"the record at {found.position} has {state.keys} keys, and {state.rows} of them lead to it{rows}"
    if found.action == "find_last":
        if not args["there"]:
            return f"the table of keys ends at {args['position']}, and no record with keys lies there"
        ends = f"the table of keys ends at {args['position']}"
        return f"{ends}, and has another time for that of the last record ({found.detail})"
    lies = "no record" if state.position < 0 else "a record"
    row = f"a row for {found.position} in the table of keys, which leads to {lies},"
    return f"{row} breaks the rule: {found.departure.because}{rows}"


EXPLANATION = Explanation(place_in(KEYS, "find_last", "lastOffsetPy"), message)
