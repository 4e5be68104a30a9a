"""Makes the traces of `partition_client`: one for each acknowledged record, one for each session of a reader."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Events, Ints
from gapless.traces.sources.kafka.clients.client_log import AnsweredRecords
from gapless.traces.sources.kafka.clients.outcomes import BASE, COMMIT, CONTROL, LAST, PRODUCER, AnsweredBatches
from gapless.traces.sources.kafka.judging.event_order import EventOrder
from gapless.traces.sources.kafka.log.tables import Flags

SPEC = SPECS["partition_client"]
NONE = -1
OPEN, SHOW, ANSWER, SLOTS = range(4)
"""The steps of the trace of an acknowledged record, in order."""


class SentTraces(NamedTuple):
    """Traces of records that were acknowledged. `batch`: with the record's offset, or -1."""

    events: Events
    starts: Ints
    batch: Ints


class Runs(NamedTuple):
    """Records that follow one another, by their first and last offsets."""

    first: Ints
    last: Ints

    def within(self, low: int, high: int) -> Runs:
        """The part of them from an offset up to another, which is exclusive."""
        rows = slice(int(self.last.searchsorted(low)), int(self.first.searchsorted(high)))
        return Runs(np.maximum(self.first[rows], low), np.minimum(self.last[rows], high - 1))

    def have(self, offset: Ints) -> Flags:
        """True for offsets that are among them."""
        run = self.first.searchsorted(offset, side="right") - 1
        found: Flags = (run >= 0) & (offset <= np.append(self.last, NONE)[run])
        return found


def sent_traces(batches: AnsweredBatches, sent: AnsweredRecords) -> SentTraces:
    """Make a trace of each record: the batch that has its offset, if there is one, and the answer."""
    order, batch = EventOrder(SPEC), batches.at(sent.offset)
    places = np.arange(len(batch)) * SLOTS
    order.add("open", places + OPEN, at=0, reads=0)
    (rows,) = np.nonzero(batches.is_record(batch))
    first, last = (batches.column(of)[batch[rows]] for of in (BASE, LAST))
    order.add("show", places[rows] + SHOW, first=first, last=last)
    order.add("acknowledge", places + ANSWER, offset=sent.offset)
    events, keys, _ = order.events()
    return SentTraces(events, keys.searchsorted(np.arange(len(batch) + 1) * SLOTS), batch)


def committed_runs(batches: AnsweredBatches) -> Runs:
    """The records that readers of committed transactions can see."""
    (rows,) = np.nonzero(
        (batches.column(CONTROL) == 0) & ((batches.column(PRODUCER) == NONE) | (batches.commit == COMMIT))
    )
    first, last = batches.column(BASE)[rows], batches.column(LAST)[rows]
    begins = _begins(first, last)
    return Runs(first[begins], last[np.append(begins[1:], np.ones(min(1, len(begins)), np.bool_))])


def _begins(first: Ints, last: Ints) -> Flags:
    """True where what has a first and a last offset does not follow the one before it."""
    found = np.ones(len(first), np.bool_)
    found[1:] = first[1:] != last[:-1] + 1
    return found


def session_trace(committed: Runs, begin: int, stop: int, offset: Ints) -> Events:
    """Make the trace of a session: the records that it could see, and what it received, in the order of its lines."""
    order = EventOrder(SPEC)
    high = max(stop, int(offset.max(initial=NONE)) + 1)
    seen = committed.within(begin, high)
    cut = _begins(offset, offset)
    cut |= np.isin(offset, seen.first) | np.isin(offset, seen.last + 1)
    (first,) = np.nonzero(cut)
    last = np.append(first[1:], len(offset))[: len(first)] - 1
    risen = np.maximum.accumulate(offset[last]) if len(last) else offset[last]
    order.add("open", np.full(1, -1), at=begin, reads=1)
    order.add("show", risen.searchsorted(seen.first) * 2, first=seen.first, last=seen.last)
    order.add("receive", np.arange(len(first)) * 2 + 1, first=offset[first], last=offset[last])
    if stop != NONE:
        order.add("stop", np.full(1, 2 * len(first) + 1), at=stop)
    return order.events()[0]
