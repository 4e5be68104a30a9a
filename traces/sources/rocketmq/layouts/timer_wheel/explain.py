"""Explains departures of the timer wheel: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.spec.catalog import rule
from gapless.traces.problems import shown
from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.explanations.record_places import whereabouts
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.layout import Explanation
from gapless.traces.sources.rocketmq.layouts.timer_wheel.files import (
    SLOTS,
    TURN,
    TimerLog,
    opened_timers,
    place_in_log,
    wheel_of,
)

NAMES = rule("timer/unit-names-a-message-that-waits").id
REGROWN = (
    "cause 1 of 2 that fit: the log lost its end before a start, and grew again (docs/rocketmq.md#timers-beyond): then "
    "what lies there was stored after the unit was written"
)
CAUSES = (REGROWN, "cause 2 of 2 that fit: the unit is damaged: then a message that waits has no unit")
BEYOND = (
    "A start keeps the unit. If a record begins there when the unit's time has come, it is delivered then, though it "
    "may have been delivered before. Without timerlog/, timerwheel and config/timercheck a start reads what waits from "
    "the log again, and delivers again what is still there of the past (docs/rocketmq.md#timers-beyond)."
)


def place(judged: StoreFindings, found: Breach) -> Where | None:
    """A unit in the timer log, or a slot of the wheel; nothing where it is about the message in the log."""
    timers = opened_timers(judged)
    if found.action == "schedule" and timers:
        file, offset = place_in_log(timers, found.arguments["position"])
        return Where(file=file, offset=offset)
    if found.action == "turn" and timers:
        precision = TimerLog(timers).precision(judged.store.settings, wheel_of(timers))
        turn = int(found.trace.rpartition("/")[2]) // precision
        return Where(file=timers.wheel_name, offset=turn % SLOTS * TURN.itemsize)
    return None


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    state, args = found.departure.state, found.arguments
    match found.action:
        case "schedule" if found.detail:
            return (
                f"the unit at {args['position']} of the timer log names a message at {found.position}, {found.detail}"
            )
        case "schedule":
            return f"the unit at {args['position']} of the timer log breaks the rule: {found.departure.because}"
        case "turn":
            return (
                f"its slot names {args['first']} to {args['last']} and counts {args['count']}; its units in the timer "
                f"log are {state.first} to {state.last}, and {state.count} count"
            )
        case "seek":
            return f"no unit of the timer log names the message at {found.position}, number {args['number']}"
    return f"the message at {found.position} was due, and lies {args['copies']} times in its topic"


def subject(found: Breach) -> str:
    """Names the time of the wheel that departs."""
    return f"the time {shown(found.trace.rpartition('/')[2])} of the timer wheel"


def context(judged: StoreFindings, found: Breach) -> list[str]:
    """Describes what a unit points at, and what may be the cause, if it names no message that waits."""
    if found.rule != NAMES or found.detail:
        return []
    return [f"at {found.position} is {whereabouts(judged, found.position)}", *CAUSES]


EXPLANATION = Explanation(place, message, context, subject, feared=("when the log has other messages there", (BEYOND,)))
