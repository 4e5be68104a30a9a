"""What departs of a cursor, told: where it stands, and what is wrong, in one sentence."""

from __future__ import annotations

from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.joining.findings import Breach
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory


def place(_store: StoreDirectory, found: Breach) -> Where:
    """The file that holds it, and where in it its table begins."""
    file, _, at = found.detail.rpartition("+")
    return Where(file=file, offset=int(at))


def message(found: Breach) -> str:
    """What is wrong, in one sentence without its end."""
    return f"the cursor is {found.arguments['to']}, and the numbers of the queue end at {found.departure.state.end}"
