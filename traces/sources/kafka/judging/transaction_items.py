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
    kind = np.where(ends[rows], heads.marker[rows], DATA)
    producer, first, last, epoch = (row[rows] for row in (heads.producer, heads.base, heads.last, heads.producer_epoch))
    return merged(TransactionItems(producer, first, last, epoch, kind, heads.max_time[rows], heads.leader_epoch[rows]))


def together(pieces: list[TransactionItems]) -> TransactionItems:
    """Put pieces of one partition together, which are in the order of their offsets; by producer, as in each."""
    if len(pieces) == 1:
        return pieces[0]
    return merged(TransactionItems(*put_together(len(TransactionItems._fields), pieces)))


def merged(items: TransactionItems) -> TransactionItems:
    """Sort what is of one partition by producer, and make one run of those that follow one another then."""
    found = items.of(np.argsort(items.producer, kind="stable"))
    return runs_of(found, np.zeros(len(found.first), np.int64))[0]


def runs_of(items: TransactionItems, part: Ints) -> tuple[TransactionItems, Ints]:
    """Make one run of those that follow one another. `part`: of each the number of its partition, as of each run."""
    count, kind = len(items.kind), items.kind
    begins = np.ones(count, np.bool_)
    begins[1:] = kind[1:] != DATA
    for column in (part, items.producer, items.epoch, items.leader, kind):
        begins[1:] |= column[1:] != column[:-1]
    (low,) = np.nonzero(begins)
    high = np.append(low, count)[1:] - 1
    found = items.of(low)
    return found._replace(last=items.last[high], time=items.time[high]), part[low]
