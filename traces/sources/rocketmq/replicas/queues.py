"""Compares the consume queues of two replicas entry by entry, up to the end that both have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import by_python
from gapless.traces.problems import shown
from gapless.traces.sources.rocketmq.columns.bytes import java_hash
from gapless.traces.sources.rocketmq.explanations import finding as explain
from gapless.traces.sources.rocketmq.queues.extension_units import EXTENDED
from gapless.traces.sources.rocketmq.replicas.side import Side
from gapless.traces.sources.rocketmq.replicas.values import EntryCopy, EntryDifference
from gapless.traces.sources.rocketmq.store.file_access import read_entries, record_at
from gapless.traces.sources.rocketmq.store.files import ENTRY, SLOT, Queue
from gapless.traces.sources.rocketmq.store.names import DELAYING

BLOCK = 1 << 16  # entries of either queue in memory
NOTHING = 0x7FFFFFFF  # the size in a slot that was filled with a blank (docs/rocketmq.md#pre-blank)

Slots = npt.NDArray[Any]


class QueueComparison(NamedTuple):
    """The result of comparing all queues."""

    queues: int
    entries: int
    apart: list[EntryDifference]
    only: tuple[list[str], list[str]]  # queues that one alone has


def compare_queues(one: Side, other: Side, block: int = BLOCK) -> QueueComparison:
    """Compare the entries that both have. Raises Unreadable where a file changes meanwhile."""
    queues = entries = 0
    apart = []
    mine, theirs = (_queues(side) for side in (one, other))
    for queue in sorted(mine & theirs):
        queues += 1
        first: EntryDifference | None = None
        count = 0
        for number, a, b in _blocks(one, other, queue, block):
            compared, differing = _differing(one, other, queue, a, b)
            entries += compared
            for slot in np.flatnonzero(differing).tolist():
                if first is None:
                    first = _apart(one, other, queue, number + slot, (a[slot], b[slot]))
                count += first is not None
                if count:
                    count += int(np.count_nonzero(differing[slot + 1 :]))
                    break
        if first is not None:
            apart.append(first.model_copy(update={"count": count}))
    only = [f"{topic}/{queue}" for topic, queue in sorted(mine - theirs)]
    others = [f"{topic}/{queue}" for topic, queue in sorted(theirs - mine)]
    return QueueComparison(queues, entries, apart, (only, others))


def _queues(side: Side) -> set[Queue]:
    """The queues with entries of the usual form."""
    return {queue for queue, files in side.store.queues.items() if files and queue not in side.store.batched}


def _blocks(one: Side, other: Side, queue: Queue, block: int) -> Iterator[tuple[int, Slots, Slots]]:
    """Yields the slots with entries in both queues: the number of the first, and the slots of each."""
    low = max(side.store.queues[queue][0].base // ENTRY for side in (one, other))
    high = min(_end(side, queue) for side in (one, other))
    for number in range(low, high, block):
        pair = [np.zeros(min(block, high - number) * ENTRY, np.uint8) for _ in range(2)]
        for side, data in zip((one, other), pair, strict=True):
            read_entries(side.store, *queue, number, data.data)
        yield number, pair[0].view(SLOT), pair[1].view(SLOT)


def _end(side: Side, queue: Queue) -> int:
    """Returns the exclusive end of a queue's entries: that of its files if the check has none."""
    last = side.store.queues[queue][-1]
    full = (last.base + last.length) // ENTRY
    return min(full, side.ends.get((shown(queue[0]), queue[1]), full))


def _differing(one: Side, other: Side, queue: Queue, a: Slots, b: Slots) -> tuple[int, npt.NDArray[np.bool_]]:
    """Returns the number of compared slots, and the mask of those that differ.

    Entries count if they point into the part that both logs have: others are of messages that one lacks.
    """
    low, high = max(one.start, other.start), min(one.end, other.end)
    compared = np.ones(len(a), np.bool_)
    for slots in (a, b):
        compared &= (slots["size"] > 0) & (slots["size"] != NOTHING)
        compared &= (slots["position"] >= low) & (slots["position"] + slots["size"] <= high)
    apart = (a["position"] != b["position"]) | (a["size"] != b["size"])
    tags = a["tag"] != b["tag"]
    if queue[0] in DELAYING:  # the time of delivery, by the delays that this broker was set to
        tags &= False
    if one.store.extended or other.store.extended:
        tags &= (a["tag"] > EXTENDED) & (b["tag"] > EXTENDED)
    return int(np.count_nonzero(compared)), compared & (apart | tags)


# -- one entry that differs ----------------------------------------------------------------------------------------


def _apart(one: Side, other: Side, queue: Queue, number: int, slots: tuple[Any, Any]) -> EntryDifference | None:
    """Describes an entry that differs; None if it does so lawfully."""
    entries = [_entry(side, queue, number, slot) for side, slot in zip((one, other), slots, strict=True)]
    mine, theirs = entries
    if (mine.position, mine.size) == (theirs.position, theirs.size) and _is_unsure(one, mine.position):
        return None
    name = shown(f"{queue[0]}/{queue[1]}")
    return EntryDifference(queue=name, number=number, entries=entries, why=_why(mine, theirs, number), count=1)


def _entry(side: Side, queue: Queue, number: int, slot: Any) -> EntryCopy:
    position, size, tag = slot.item()
    record = record_at(side.store, position)
    right = record is not None and (record.topic, record.queue, record.number) == (*queue, number)
    if right and record is not None and queue[0] not in DELAYING:
        text = np.frombuffer(record.properties.get("TAGS", "").encode(), np.uint8)
        code, sure = by_python(java_hash)(text, 0, len(text))
        right = tag == int(code) or not sure or tag <= EXTENDED
    where = explain.slot(side.store, f"{queue[0]}/{queue[1]}", number)
    return EntryCopy(
        role=side.role,
        file=shown(where.file),
        offset=where.offset,
        position=position,
        size=size,
        tag=tag,
        right=right,
    )


def _is_unsure(side: Side, position: int) -> bool:
    """True if versions of the broker read the tags of a message differently.

    Source: docs/rocketmq.md#client-batches.
    """
    record = record_at(side.store, position)
    return record is not None and "\x01" in record.properties.get("TAGS", "")


def _why(mine: EntryCopy, theirs: EntryCopy, number: int) -> str:
    """Explains two entries that differ although the logs agree."""
    if mine.right and theirs.right:
        new, old = (mine, theirs) if mine.position > theirs.position else (theirs, mine)
        return (
            f"both logs have two messages with number {number}: if the topic was deleted and created again, the "
            f"{old.role}'s queue is that of the topic before, where the {new.role}'s is the new one; a broker may also "
            f"have counted from 0 again as it became the master"
        )
    if mine.right or theirs.right:
        right, wrong = (mine, theirs) if mine.right else (theirs, mine)
        return f"the {right.role}'s entry is that of the message with number {number}, and the {wrong.role}'s is not"
    return f"neither points at a message that names number {number} of this queue"
