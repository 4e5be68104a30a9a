"""Explains departures of the timer wheel: the place, and the violation in one sentence."""

from __future__ import annotations

from pathlib import Path

from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.joining.findings import Breach
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.timer_files import (
    SLOTS,
    TURN,
    TimerLog,
    place_in_log,
    timer_files,
    wheel_of,
)


def place(store: StoreDirectory, found: Breach) -> Where | None:
    """A unit in the timer log, or a slot of the wheel; nothing where it is about the message in the log."""
    timers = timer_files(Path(store.path), store.settings)
    if found.action == "schedule" and timers:
        file, offset = place_in_log(timers, found.arguments["position"])
        return Where(file=file, offset=offset)
    if found.action == "turn" and timers:
        precision = TimerLog(timers).precision(store.settings, wheel_of(timers))
        turn = int(found.trace.rpartition("/")[2]) // precision
        return Where(file=timers.wheel_name, offset=turn % SLOTS * TURN.itemsize)
    return None


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    state, args = found.departure.state, found.arguments
    match found.action:
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
