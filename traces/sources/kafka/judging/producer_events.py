"""The `producer` events of a part of a segment: batches and markers of each producer, and its lines in snapshots.

Source: docs/kafka.md#producers, #snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Events, Ints
from gapless.traces.sources.kafka.files.snapshots import ProducerSnapshot
from gapless.traces.sources.kafka.judging.event_order import EventOrder, beginnings
from gapless.traces.sources.kafka.log.batches import Batches
from gapless.traces.sources.kafka.log.tables import Flags

ABORT, COMMIT = 0, 1
SNAPSHOT, OF_BATCH, KINDS = range(3)  # in this order at one offset
NO_PRODUCER = -2
EXPIRED = 0
"""The time that a producer was idle is in no file: it is taken to be as long as the limit."""


class ProducerEvents(NamedTuple):
    """Events of producers, one producer behind the other. `starts`: int64 [producers + 1] · `offset`: of each event."""

    producers: Ints
    starts: Ints
    events: Events
    offset: Ints


def producer_events(heads: Batches, snapshots: list[ProducerSnapshot]) -> ProducerEvents:
    """Make the events of all producers of a part, each in the order of the log."""
    order, groups = EventOrder(SPECS["producer"]), []
    of = (heads.producer >= 0) & heads.is_sound
    data = _those(heads, of & ~heads.is_control)
    marks = _those(heads, of & ((heads.marker == ABORT) | (heads.marker == COMMIT)))
    if len(data):
        groups.append(data.producer)
        order.add(
            "append", data.base * KINDS + OF_BATCH, epoch=data.producer_epoch, sequence=data.sequence,
            first=data.base, last=data.last, transactional=data.is_transactional.astype(np.int64), time=data.max_time,
        )  # fmt: skip
    if len(marks):
        groups.append(marks.producer)
        order.add(
            "mark", marks.base * KINDS + OF_BATCH, epoch=marks.producer_epoch, offset=marks.base,
            coordinator=marks.coordinator, time=marks.max_time,
        )  # fmt: skip
    for one in snapshots:
        groups += _add_snapshot(order, one, heads.producer[of & (heads.base < one.offset)])
    events, keys, owners = order.events(groups)
    begins = beginnings(owners, NO_PRODUCER)
    return ProducerEvents(owners[begins], np.append(begins, len(owners)), events, keys // KINDS)


def _those(heads: Batches, chosen: Flags) -> Batches:
    """Some batches; all of them, as a rule, and then they are not copied."""
    return heads if chosen.all() else Batches(heads.table[:, chosen])


def _add_snapshot(order: EventOrder, one: ProducerSnapshot, seen: Ints) -> Iterator[Ints]:
    """Add the lines of a snapshot, and yield whose they are. `seen`: the producers that wrote here before it."""
    if len(one):
        order.add(
            "snapshot", np.full(len(one), one.offset * KINDS + SNAPSHOT), at=one.offset, epoch=one.epoch,
            sequence=one.sequence, offset=one.last, delta=one.delta, time=one.time, coordinator=one.coordinator,
            transaction=one.first_open,
        )  # fmt: skip
        yield one.producer
    if len(gone := np.setdiff1d(seen, one.producer)):
        order.add("expire", np.full(len(gone), one.offset * KINDS + SNAPSHOT), idle=EXPIRED, limit=EXPIRED)
        yield gone
