"""Explains departures of delayed messages: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.layout import Explanation


def place(_judged: StoreFindings, _found: Breach) -> Where | None:
    """None: it is about a message in the log."""
    return None


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    level, state = found.trace.split("/")[1], found.departure.state
    if found.action == "leave":
        return f"it was delivered {state.left + 1} times, at {found.position} again, and sent {state.entered} times"
    where = f"only {state.left} of {state.entered} came into its topic" if state.left else "it is in no topic"
    number = found.arguments.get("number", -1)
    return f"message {number} of delay level {level}, at {found.position}, was passed, and {where} ({found.detail})"


EXPLANATION = Explanation(place, message)
