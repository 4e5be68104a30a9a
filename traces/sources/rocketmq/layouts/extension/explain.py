"""Explains departures of a queue's extension: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.joining.findings import Breach
from gapless.traces.sources.rocketmq.layouts.extension.units import EXTENDED, FOLDER, LOWEST
from gapless.traces.sources.rocketmq.layouts.layout import OF_QUEUES, Explanation
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.selection import queue_named


def place(store: StoreDirectory, found: Breach) -> Where:
    """Returns the file and offset of a unit, or the end of a file."""
    where = _in_file(store, found.trace, int(found.detail))
    return where.model_copy(update={"offset": found.arguments["length"]}) if found.action == "find_file" else where


def of_entry(store: StoreDirectory, trace: str, number: int) -> Where | None:
    """Returns the place of the unit that an entry names in its tag code, if it does."""
    *_, tag = file_access.read_slot(store, *queue_named(trace), number)
    return _in_file(store, trace, tag ^ LOWEST) if tag <= EXTENDED else None


def _in_file(store: StoreDirectory, trace: str, at: int) -> Where:
    files = store.extension.get(queue_named(trace), ())
    base = max((file.base for file in files if file.base <= at), default=0)
    return Where(file=f"{FOLDER}/{trace}/{base:020d}", offset=at - base)


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
