"""Explains departures of a queue's extension: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.layout import OF_QUEUES, Explanation
from gapless.traces.sources.rocketmq.queues.extension_units import unit_place
from gapless.traces.sources.rocketmq.store.selection import queue_named


def place(judged: StoreFindings, found: Breach) -> Where:
    """Returns the file and offset of a unit, or the end of a file."""
    file, offset = unit_place(judged.store, queue_named(found.trace), int(found.detail))
    return Where(file=file, offset=found.arguments["length"] if found.action == "find_file" else offset)


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    args = found.arguments
    if found.action == "find_file":
        return f"a file of {args['length']} bytes, where others have {args['full']}"
    unit = f"the unit at {found.detail} that entry {args['number']} names"
    if not args["whole"]:
        return f"entry {args['number']} names a unit at {found.detail}, and none lies there"
    if not args["timely"]:
        return f"{unit} has another store time than the message at {found.position}"
    return f"{unit} has {args['size']} bytes, {args['bitmap']} of them for filters, and {args['room']} behind it"


EXPLANATION = Explanation(place, message, rank=OF_QUEUES)
