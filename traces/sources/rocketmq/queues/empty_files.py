"""Empty files at the end of a queue: the next start takes slots of them for entries, or fails.

Source: docs/rocketmq.md#empty-queue-file.
"""

from __future__ import annotations

from typing import NamedTuple

from gapless.traces.sources.rocketmq.queues.joined_queues import written
from gapless.traces.sources.rocketmq.segments.results import Subject
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import ENTRY

LOOKED_AT = 3  # files, the last ones, in which a start looks for the last entry


class EmptyEnd(NamedTuple):
    """Slots that the next start takes for entries. `first`: its number · `files`: the bases of the empty files."""

    first: int
    slots: int
    files: tuple[int, ...]


def empty_end(store: StoreDirectory, subject: Subject, end: int | None) -> EmptyEnd | None:
    """The slots that the next start takes out of empty files; None if it takes none.

    `end`: the exclusive end of the entries; None if the log has no message of the queue.
    """
    files = [file for file in store.queues.get(subject, ()) if file.length >= ENTRY]
    if not files or (end is not None and files[-1].base < end * ENTRY):
        return None
    looked = max(len(files) - LOOKED_AT, 0)
    at = next((at for at in range(looked, len(files)) if not _is_entry(store, subject, files[at].base // ENTRY)), -1)
    if at < 0:
        return None
    number = files[at].base // ENTRY
    if at > looked and not _is_entry(store, subject, number - 1):
        return None  # the file before it has room, and it is deleted
    first = number if end is None else min(end, number)
    return EmptyEnd(first, number + 1 - first, tuple(file.base for file in files if file.base >= first * ENTRY))


def _is_entry(store: StoreDirectory, subject: Subject, number: int) -> bool:
    """True if a start takes this slot for an entry as it looks for the last one."""
    return written(file_access.read_slot(store, *subject, number)) is not None
