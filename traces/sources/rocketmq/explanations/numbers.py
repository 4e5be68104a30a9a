"""Explains numbers that a queue gave again or left out: which causes fit, and what would tell them apart."""

from __future__ import annotations

from collections.abc import Iterator

from gapless.traces.sources.rocketmq.joining.findings import Breach, QueueProgress, StoreFindings
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.files import ENTRY
from gapless.traces.sources.rocketmq.store.selection import queue_named
from gapless.traces.sources.rocketmq.store.settings import is_slave

DELETED = "the topic was deleted and created again: then the broker's own log names the deletion"
PROMOTED = (
    "a slave was made a master while it ran, and counted from 0 (4.9.7, docs/rocketmq.md#promoted): then its own log "
    "names the change of its role, and producers were answered with these numbers"
)
FOLLOWED = (
    "this is a slave, which keeps its queue when its master's topic is deleted and created again "
    "(docs/rocketmq.md#replicas): then the master's queue begins with this message"
)
DAMAGED = "the number in the record was damaged: then the next message of the queue counts on as before"
COUNTED_ON = (
    "entries were lost before a start, which counts on behind the last one that it finds "
    "(docs/rocketmq.md#recovery-clean): then messages without an entry lie before this one"
)
LOST = "messages of the queue were lost from the log: then their producers know more of them than the log has"
FILLED = (
    "a start took empty slots of that file for entries (docs/rocketmq.md#empty-queue-file): then no pull that reaches "
    "them gets a message, and cursors of consumers before them are to be set behind them"
)
OLD = "a start took old bytes there for entries (docs/rocketmq.md#old-slots)"


def context(judged: StoreFindings, found: Breach) -> list[str]:
    """Describes what lies at the numbers in question, and the causes that fit; or is empty."""
    run = judged.queues.get(queue_named(found.trace))
    if run is None or found.database:
        return []
    return [*_of_append(judged, found)] if found.action == "append" else [*_of_entries(judged, found, run)]


def _of_entries(judged: StoreFindings, found: Breach, run: QueueProgress) -> Iterator[str]:
    """Yields the causes for numbers that start at 0 again, where the queue departs by something else."""
    if not run.restarted:
        return
    yield f"its numbers start at 0 again with the message at {run.recreated_at}"
    position, size, _ = _slot(judged, found, run.first)
    yield from _causes([FOLLOWED, PROMOTED] if size > 0 and position < run.recreated_at else [DELETED])


def _of_append(judged: StoreFindings, found: Breach) -> Iterator[str]:
    number, end = found.arguments["number"], int(found.departure.state.end)
    position, size, _ = _slot(judged, found, end)
    if number < end:
        if number in found.departure.state.sizes.entries:  # of positions, 0 is no entry
            yield f"the message at {int(found.departure.state.positions[number])} has number {number} too"
        if number == 0 and size > 0 and position == found.arguments["position"]:
            yield f"entry {end}, behind those of the messages before it, points at it"
            causes = [PROMOTED, FOLLOWED]
            yield from _causes(causes[::-1] if is_slave(judged.store.settings) else causes)
        else:
            yield from _causes([COUNTED_ON, DAMAGED, *[DELETED] * (number <= 1)])
    elif number > end:
        slots = f"slot {end} is" if number == end + 1 else f"slots {end} to {number - 1} are"
        bases = [file.base for file in judged.store.queues.get(queue_named(found.trace), ())]
        if size > 0:
            yield f"{slots} written, and no message of the queue has such a number"
            yield from _causes([OLD, LOST, DAMAGED])
        elif any(end * ENTRY <= base < number * ENTRY for base in bases):
            yield f"{slots} empty, and a file of the queue begins there"
            yield from _causes([FILLED, LOST, DAMAGED])
        else:
            yield from _causes([LOST, DAMAGED])


def _slot(judged: StoreFindings, found: Breach, number: int) -> tuple[int, int, int]:
    return file_access.read_slot(judged.store, *queue_named(found.trace), number)


def _causes(fitting: list[str]) -> Iterator[str]:
    if len(fitting) == 1:
        yield f"a cause that fits: {fitting[0]}"
    else:
        yield from (f"cause {at} of {len(fitting)} that fit: {one}" for at, one in enumerate(fitting, 1))
