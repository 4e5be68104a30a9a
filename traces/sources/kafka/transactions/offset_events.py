"""Makes the events of `group_offsets`: what a group committed in a partition, and the markers that it waits for.

Source: docs/kafka-transactions.md#groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Events, Ints
from gapless.traces.sources.kafka.files.group_offsets import DELETED
from gapless.traces.sources.kafka.judging.event_order import EventOrder
from gapless.traces.sources.kafka.judging.offset_piece import NONE, CommittedOffsets
from gapless.traces.sources.kafka.judging.transaction_items import DATA, TransactionItems

SPEC = SPECS["group_offsets"]
FIRST, LAST = -1, np.iinfo(np.int64).max


class OffsetEvents(NamedTuple):
    """Events of offsets, trace by trace. `keys`: of each trace · `starts`: int64 [traces + 1] · `at`: positions."""

    events: Events
    keys: Ints
    starts: Ints
    at: Ints


def offset_events(found: CommittedOffsets, items: TransactionItems, start: int, decided: Ints) -> OffsetEvents:
    """Make the events of one partition of `__consumer_offsets`.

    `start`: the position below which markers may be gone · `decided`: producers whose markers are surely there.
    """
    marks = items.of(np.flatnonzero(items.kind != DATA))
    ended = _markers(found, marks)
    known = (found.producer == NONE) | (ended != NONE) | (found.at >= start)
    found, ended = found.of(np.flatnonzero(known)), ended[known]
    keys, of = np.unique(found.key, return_inverse=True)
    order, groups = EventOrder(SPEC), list[Ints]()

    def add(action: str, traces: Ints, position: Ints, /, **args: Ints | int) -> None:
        if len(traces):
            groups.append(traces)
            order.add(action, position, **args)

    add("open", np.arange(len(keys)), np.full(len(keys), FIRST), at=0, offset=NONE)
    (plain,) = np.nonzero((found.producer == NONE) & (found.committed != DELETED))
    add("commit", of[plain], found.at[plain], at=found.at[plain], offset=found.committed[plain])
    (waits,) = np.nonzero((found.producer != NONE) & (found.committed != DELETED))
    add(
        "commit_in_transaction", of[waits], found.at[waits], at=found.at[waits], pid=found.producer[waits],
        offset=found.committed[waits],
    )  # fmt: skip
    (gone,) = np.nonzero(found.committed == DELETED)
    add("tombstone", of[gone], found.at[gone], at=found.at[gone])
    pairs = np.unique(np.stack([of[waits], ended[waits]]), axis=1)
    trace, mark = pairs[:, pairs[1] != NONE]
    add("mark", trace, marks.first[mark], at=marks.first[mark], pid=marks.producer[mark], commit=marks.kind[mark])
    still = waits[ended[waits] == NONE]
    trace, producer = np.unique(np.stack([of[still], found.producer[still]]), axis=1)
    undecided = 1 - np.isin(producer, decided).astype(np.int64)
    add("settle", trace, np.full(len(trace), LAST), pid=producer, undecided=undecided)
    events, at, owners = order.events(groups)
    return OffsetEvents(events, keys, owners.searchsorted(np.arange(len(keys) + 1)), at)


def _markers(found: CommittedOffsets, marks: TransactionItems) -> Ints:
    """The number of the marker that ends the transaction of each record; NONE where there is none."""
    order = np.lexsort((marks.first, marks.producer))
    rows = np.lexsort((found.at, found.producer))
    number = np.full(len(found.at), NONE)
    if not len(order):
        return number
    both = np.concatenate([marks.producer[order], found.producer[rows]])
    place = np.concatenate([marks.first[order], found.at[rows]])
    merged = np.lexsort((place, both))
    is_mark = merged < len(order)
    behind = np.minimum.accumulate(np.where(is_mark, np.arange(len(merged)), len(merged))[::-1])[::-1]
    there = behind < len(merged)
    at = merged[np.minimum(behind, len(merged) - 1)]
    there &= both[at] == both[merged]
    mine = ~is_mark & there
    number[rows[merged[mine] - len(order)]] = order[at[mine]]
    return number
