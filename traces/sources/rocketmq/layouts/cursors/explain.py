"""Explains departures of a cursor: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.layout import Explanation


def place(_judged: StoreFindings, found: Breach) -> Where:
    """The file that holds it, and where in it its table begins."""
    file, _, at = found.detail.rpartition("+")
    return Where(file=file, offset=int(at))


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    return f"the cursor is {found.arguments['to']}, and the numbers of the queue end at {found.departure.state.end}"


EXPLANATION = Explanation(place, message, feared=("with the next messages of its queue", ()))
