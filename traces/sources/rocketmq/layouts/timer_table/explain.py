"""Explains departures of the table of timers: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.joining.findings import Breach
from gapless.traces.sources.rocketmq.layouts.layout import Explanation
from gapless.traces.sources.rocketmq.layouts.message_database import TIMERS
from gapless.traces.sources.rocketmq.layouts.message_tables import place_in


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    args, state = found.arguments, found.departure.state
    both = f" ({found.detail})" if found.detail else ""
    match found.action:
        case "read_to":
            return f"the table of timers has read {args['number']} waiting messages, and there are {args['end']}"
        case "seek":
            return f"the message at {state.last} waits, and the table of timers has no row for it{both}"
        case "deliver":
            return f"the message at {state.last} was due, and lies {args['copies']} times in its topic{both}"
    return (
        f"a row of the table of timers, which names {found.position}, breaks the rule: {found.departure.because}{both}"
    )


EXPLANATION = Explanation(place_in(TIMERS, "read_to", "sys_topic_scan_offset_checkpoint", "number"), message)
