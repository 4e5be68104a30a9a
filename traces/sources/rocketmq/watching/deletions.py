"""Handles topics that are deleted while the store is followed: their entries vanish legally.

The queue of a topic that is created again may continue in its old file: a broker then fills that file up to the first
new entry with slots that are no entries (docs/rocketmq.md#deleted-topics).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapless.spec.queue import BLANK_SLOT
from gapless.traces.sources.rocketmq.joining.findings import QueueProgress
from gapless.traces.sources.rocketmq.segments.results import SplitResult, Subject
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import ENTRY
from gapless.traces.sources.rocketmq.watching.readiness import Entries


def forget_deleted(
    store: StoreDirectory, queues: Mapping[Subject, QueueProgress], result: SplitResult
) -> Iterator[Subject]:
    """Restarts queues whose judged entries vanished at the first message of `result`, and yields them."""
    for segment in result.segments:
        pieces = segment.pieces
        known = [(at, run) for at, subject in enumerate(pieces.subjects) if (run := queues.get(subject)) is not None]
        for at, run in known:
            subject, number = pieces.subjects[at], int(pieces.numbers[at])
            if run.ended or number != run.end or run.indexed <= max(run.first, run.blank):
                continue
            last = pieces.edges[at, 0].item() if run.indexed == number else None
            if is_cleared(store, subject, run.indexed - 1, last):
                run.first = run.indexed = run.end = number
                run.blank, run.pending = 0, None
                yield subject


def is_cleared(store: StoreDirectory, subject: Subject, number: int, slot: tuple[int, int, int] | None = None) -> bool:
    """True if neither slot `number` nor the first slot of the queue's first file is an entry.

    `slot`: the known content of slot `number`.
    """
    if _is_entry(slot or file_access.read_slot(store, *subject, number)):
        return False
    files = store.queues.get(subject, ())
    return not files or not _is_entry(file_access.read_slot(store, *subject, files[0].base // ENTRY))


def is_recreated(store: StoreDirectory, entries: Entries, subject: Subject, number: int, reached: int) -> bool:
    """True if slot 0 (or slot `number`) shows that the topic was created again.

    Either slot 0 names a message behind the part that was read, or neither slot is an entry.
    """
    position, size, _ = file_access.read_slot(store, *subject, 0)
    if size > 0 and position >= reached:
        return True
    entries.look_again(subject)
    return is_cleared(store, subject, number)


def _is_entry(slot: tuple[int, int, int]) -> bool:
    _position, size, _tag = slot
    return size > 0 and size != BLANK_SLOT
