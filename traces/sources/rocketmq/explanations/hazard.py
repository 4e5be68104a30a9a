"""Explains what a broker's next start takes for entries of a queue: old bytes, or slots of an empty file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gapless.traces.problems import shown
from gapless.traces.sources.rocketmq.joining.findings import Hazard, StoreFindings
from gapless.traces.sources.rocketmq.segments.results import name_of
from gapless.traces.sources.rocketmq.store.files import QueueFile, is_hole, read_exactly
from gapless.traces.sources.rocketmq.store.selection import queue_named

FAILS = "IllegalArgumentException: newPosition < 0: (-20 < 0)"


def message(judged: StoreFindings, found: Hazard) -> str:
    """Describes the hazard in one sentence without its end."""
    if not found.files:
        return f"the broker's next start takes old bytes behind the last entry for it, in {_slots(found)}"
    fails = ", or fails" if may_fail(judged) else ""
    return f"the broker's next start takes {_slots(found)} of an empty file for {_entries(found)}{fails}"


def lines(judged: StoreFindings, found: Hazard) -> Iterator[str]:
    """Yields what the next start does, and what helps."""
    first, next_number = _first(found), _first(found) + found.slots
    if not found.files:
        since = f"since {'it points' if found.slots == 1 else 'they point'} before the log's end, {judged.end:,}"
        yield (
            f"The broker's next start takes {_slots(found)} for {_entries(found)}, {since}; the next message of the "
            f"queue gets number {next_number} (docs/rocketmq.md#old-slots)."
        )
        return
    yield (
        f"The broker's next start takes {_slots(found)} for {_entries(found)}; the next message of the queue gets "
        f"number {next_number}, and a pull that reaches {first} gets no message: brokers from 5.0 on never answer it "
        "(docs/rocketmq.md#empty-queue-file)."
    )
    if may_fail(judged):
        newest = shown(name_of(max(judged.queues, key=lambda queue: judged.queues[queue].last)))
        yield f"The newest entry, one of {newest}, is missing: RocketMQ 5.3.3 does not start then ({FAILS})."
    yield _remedy(judged, found)


def may_fail(judged: StoreFindings) -> bool:
    """True if brokers of some versions do not start."""
    return any(found.files for found in judged.hazards) and judged.newest_waits and not judged.store.before_5


def _remedy(judged: StoreFindings, found: Hazard) -> str:
    store, queue = judged.store, queue_named(found.breach.trace)
    files = [file for file in store.queues.get(queue, ()) if file.base in found.files]
    names = ", ".join(f"consumequeue/{shown(found.breach.trace)}/{file.base:020d}" for file in files)
    one = len(files) == 1
    if not all(_is_empty(judged, found, file) for file in files):
        return f"{names} {'has' if one else 'have'} other bytes further on: keep a copy of {'it' if one else 'them'}."
    if len(files) == len(store.queues[queue]) and files[0].base:
        return f"Without {names} the queue's numbers begin at 0 again: copy the queue before the start."
    return f"Delete {names} before the start: {'it has' if one else 'they have'} no entry."


def _is_empty(judged: StoreFindings, found: Hazard, file: QueueFile) -> bool:
    opened = judged.store.queue_file(queue_named(found.breach.trace), file)
    if is_hole(opened, 0, file.length):
        return True
    data = np.zeros(file.length, np.uint8)
    read_exactly(opened, 0, data.data)
    return not data.any()


def _first(found: Hazard) -> int:
    return found.breach.arguments["number"]


def _slots(found: Hazard) -> str:
    first = _first(found)
    return f"slot {first}" if found.slots == 1 else f"slots {first} to {first + found.slots - 1}"


def _entries(found: Hazard) -> str:
    return "an entry" if found.slots == 1 else "entries"
