"""Finds the halves of a segment, and the copies of halves, to which an entry leads consumers.

A half lies in a topic without consumers. Light queues share its record all the same, and a copy of it may lie in a
topic of retries or of dead letters. Only what has its entry can be read.

Source: docs/rocketmq-transactions.md#visible-halves.
"""

from __future__ import annotations

import numpy as np

from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import among, distinct
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.segments.queue_events import queue_events
from gapless.traces.sources.rocketmq.segments.splits import Columns
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import is_read_by_consumers
from gapless.traces.sources.rocketmq.transactions.transaction_rows import COPY, HALF, KIND, PARKED, PLACE, SHOWN


def mark_visible(store: StoreDirectory, columns: Columns) -> None:
    """Writes the number of an entry to each row of a record that consumers can read, and that is no final."""
    steps = columns.steps
    copies = steps[KIND] == COPY
    if not columns.room.counters[scan.C_MULTI] and not copies.any():
        return
    (halves,) = np.nonzero((steps[KIND] == HALF) | (steps[KIND] == PARKED) | copies)
    places = steps[PLACE, halves]  # these rise
    rows = columns.rows
    owners = distinct(rows[scan.SUBJECT, among(rows[scan.PLACE], places)])
    subjects = columns.subjects()
    read = {subjects[owner] for owner in owners.tolist() if is_read_by_consumers(subjects[owner][0])}
    if not read:
        return
    numbers, positions = _entries(store, columns, read)
    mine = among(positions, places)
    rising = np.flatnonzero(mine)[::-1]  # of several entries, that of the first queue stays
    steps[SHOWN, halves[places.searchsorted(positions[rising])]] = 1 + numbers[rising]


def _entries(store: StoreDirectory, columns: Columns, queues: set[tuple[str, int]]) -> tuple[Ints, Ints]:
    """Returns number and position of each entry of these queues that points at its message."""
    found = queue_events(store, columns, lambda *queue: queue in queues)
    count, codes = int(found.starts[-1]), found.columns.spec.codes
    action, position = found.columns.action[:count], found.columns.column("position")[:count]
    (entries,) = np.nonzero((action == codes["index"]) | (action == codes["index_batch"]))
    right = entries[position[entries] == position[entries - 1]]  # a message stands right before its entry
    return found.columns.column("number")[right], position[right]
