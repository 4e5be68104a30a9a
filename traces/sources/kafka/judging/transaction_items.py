"""The batches of transactions in a part of a segment: runs of data, and markers, of each producer.

Source: docs/kafka-transactions.md#partitions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.log.batches import Batches
from gapless.traces.sources.kafka.log.tables import put_together

ABORT, COMMIT, DATA = 0, 1, -1


class TransactionItems(NamedTuple):
    """Runs of data and markers, a column each, by producer and then by offset.

    A run is batches of one producer, one behind the other, with one epoch and under one leader. `kind`: ABORT, COMMIT,
    or DATA for a run · `time`: of the last batch · `leader`: the leader's epoch.
    """

    producer: Ints
    first: Ints
    last: Ints
    epoch: Ints
    kind: Ints
    time: Ints
    leader: Ints

    def of(self, rows: Ints) -> TransactionItems:
        """Some of them, in this order."""
        return TransactionItems(*(column[rows] for column in self))


def transaction_items(heads: Batches) -> TransactionItems:
    """Return the runs and the markers of some batches."""
    ends = (heads.marker == ABORT) | (heads.marker == COMMIT)
    data = heads.is_transactional & ~heads.is_control
    (rows,) = np.nonzero((heads.producer >= 0) & heads.is_sound & (ends | data))
    rows = rows[np.argsort(heads.producer[rows], kind="stable")]
    kind = np.where(ends[rows], heads.marker[rows], DATA)
    producer, first, last, epoch = (row[rows] for row in (heads.producer, heads.base, heads.last, heads.producer_epoch))
    return _runs(TransactionItems(producer, first, last, epoch, kind, heads.max_time[rows], heads.leader_epoch[rows]))


def together(pieces: list[TransactionItems]) -> TransactionItems:
    """Put pieces of one partition together, which are in the order of their offsets; by producer, as in each."""
    if len(pieces) == 1:
        return pieces[0]
    whole = TransactionItems(*put_together(len(TransactionItems._fields), pieces))
    return _runs(whole.of(np.argsort(whole.producer, kind="stable")))


def _runs(items: TransactionItems) -> TransactionItems:
    """Make one run of those that follow one another."""
    count, kind = len(items.kind), items.kind
    begins = np.ones(count, np.bool_)
    same = (items.producer, items.epoch, items.leader, kind)
    begins[1:] = (kind[1:] != DATA) | np.any([column[1:] != column[:-1] for column in same], axis=0)
    (low,) = np.nonzero(begins)
    high = np.append(low, count)[1:] - 1
    found = items.of(low)
    return found._replace(last=items.last[high], time=items.time[high])
