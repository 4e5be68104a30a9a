"""Finds the marker of each decision in each partition, in columns.

Markers of one producer with one epoch come in the order of the decisions. Where the table or the log begins later than
the other, they are counted from their ends. What does not fit is looked at one by one, in `leftovers`.

Source: docs/kafka-transactions.md#markers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from gapless.spec.kafka_transaction import TxnStatus
from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.log.tables import Flags
from gapless.traces.sources.kafka.transactions.partitions import PartitionItems
from gapless.traces.sources.kafka.transactions.table import ELSEWHERE, NO_ROW, CoordinatorTable, Pairs

NONE = -1
EPOCHS = 1 << 16


class MarkState(IntEnum):
    """The marker of a decision in a partition."""

    MARKED = 0
    GONE = 1  # it is not here, and need not be
    OPEN = 2  # it is not here, and the decision is not complete
    MISSING = 3  # it should be here


class SpareState(IntEnum):
    """A marker of no decision."""

    OF_DECISION = 0  # it has one
    BEFORE = 1  # its decision need not be in the table
    SPARE = 2  # its decision should be in the table


class EpochGroups(NamedTuple):
    """Decisions and markers of one producer with one epoch in one partition.

    `pairs`, `marks`: int64 [groups + 1], where those of a group begin · `from_table`, `from_log`: the first ones may be
    gone from the table, from the log · `is_closed`: nothing is missing at its end · `is_gone`: the table begins behind
    it.
    """

    key: Ints
    pairs: Ints
    marks: Ints
    from_table: Flags
    from_log: Flags
    is_closed: Flags
    is_gone: Flags


class MarkerTable:
    """Decisions with their markers.

    `pairs`: decisions with their partitions · `marks`: rows of items; both in the order of their `…_key` ·
    `mark_of`: of each pair the number of its marker, or NONE · `state`: see `MarkState` · `pair_of`: of each marker ·
    `spare`: see `SpareState`.
    """

    def __init__(self, table: CoordinatorTable, found: PartitionItems) -> None:
        self.table, self.found = table, found
        self.producers = table.producers
        (rows,) = np.nonzero(table.is_decision)
        pairs = table.pairs(rows)
        pairs = pairs.of(pairs.part != ELSEWHERE)
        keys = self._key(table.producer[pairs.row], pairs.part, table.epoch[pairs.row])
        order = np.argsort(keys, kind="stable")
        self.pairs: Pairs = pairs.of(order)
        self.pair_key: Ints = keys[order]
        (marks,) = np.nonzero(found.is_mark)
        keys = self._key(found.items.producer[marks], found.part[marks], found.items.epoch[marks])
        order = np.argsort(keys, kind="stable")
        self.marks: Ints = marks[order]
        self.mark_key: Ints = keys[order]
        self.mark_of: Ints = np.full(len(self.pairs.row), NONE)
        self.state: Ints = np.full(len(self.pairs.row), MarkState.GONE, np.int64)
        self.pair_of: Ints = np.full(len(self.marks), NONE)
        self.spare: Ints = np.full(len(self.marks), SpareState.BEFORE, np.int64)
        self.first_marks = found.first_marks()
        self.groups = self._grouped()
        self.strange: Ints = self._match()

    def _key(self, producer: Ints, part: Ints, epoch: Ints) -> Ints:
        """The order of groups: by producer, partition and epoch."""
        at = self.producers.searchsorted(producer)
        keys: Ints = (at * (len(self.found.replicas) + 1) + part) * EPOCHS + (epoch & (EPOCHS - 1))
        return keys

    def _grouped(self) -> EpochGroups:
        key = np.union1d(self.pair_key, self.mark_key)
        pairs = np.append(self.pair_key.searchsorted(key), len(self.pair_key))
        marks = np.append(self.mark_key.searchsorted(key), len(self.mark_key))
        place, epoch = key // EPOCHS, key % EPOCHS
        parts = len(self.found.replicas) + 1
        part, producer = place % parts, self.producers[place // parts] if len(key) else key
        decisions, markers = np.diff(pairs), np.diff(marks)
        earlier, gone = self._behind_first_row(producer, epoch)
        later = _last_of(place, (decisions > 0) & (markers > 0))
        first = _first_of(place, markers > 0)
        number = np.arange(len(key))
        begins_late = np.array([not one.is_first for one in self.found.replicas] + [True], np.bool_)
        whole = self.found.whole()[part] & self._table_is_whole(producer) if len(key) else gone
        return EpochGroups(
            key, pairs, marks, earlier, begins_late[part] & (number <= first), (number < later) | whole, gone
        )

    def _behind_first_row(self, producer: Ints, epoch: Ints) -> tuple[Flags, Flags]:
        """True where decisions of a producer's epoch may be gone from the table; and where all of them are."""
        table = self.table
        first = table.begins[:-1][table.number[self._row_of(producer)]] if len(producer) else producer
        same = table.producer[first] == producer
        at_once = (table.status[first] == TxnStatus.EMPTY) | (table.producer[first] < 0)
        return same & (epoch == table.epoch[first]) & ~at_once, same & (epoch < table.epoch[first])

    def _row_of(self, producer: Ints) -> Ints:
        """The first row of each producer."""
        order = np.argsort(self.table.producer, kind="stable")
        return order[self.table.producer[order].searchsorted(producer)]

    def _table_is_whole(self, producer: Ints) -> Flags:
        return self.table.whole[self._row_of(producer)]

    def _match(self) -> Ints:
        """Match all groups that fit, and return the numbers of those that do not."""
        of = self.groups
        decisions, markers = np.diff(of.pairs), np.diff(of.marks)
        done = np.zeros(len(of.key), np.int64)
        has_pairs = decisions > 0
        last = of.pairs[1:][has_pairs] - 1
        done[has_pairs] = self.table.complete[self.pairs.row[last]] == NO_ROW
        is_open = done == 1
        known = ~of.from_table & ~of.from_log
        shift = np.where(~known & of.is_closed & ~is_open, markers - decisions, 0)
        skipped = of.is_gone | (~known & (~of.is_closed | is_open) & of.from_table & has_pairs)
        kinds_differ = self._mark_by_rank(shift, ~skipped)
        fewer, more = markers < decisions - done, markers > decisions
        wrong = kinds_differ | (fewer & of.is_closed & ~of.from_log) | (more & of.is_closed & ~of.from_table)
        wrong |= self._late_ones_missing()
        unsure = ~known & (~of.is_closed | is_open)
        skipped |= unsure & kinds_differ
        self._forget(skipped)
        strange = np.flatnonzero(wrong & ~skipped)
        self._settle(of, is_open)
        return strange

    def _mark_by_rank(self, shift: Ints, chosen: Flags) -> Flags:
        """Give each decision the marker of its rank in the group. True for groups in which a kind differs."""
        of = self.groups
        group = np.repeat(np.arange(len(of.key)), np.diff(of.pairs))
        at = of.marks[:-1][group] + np.arange(len(group)) - of.pairs[:-1][group] + shift[group]
        there = (at >= of.marks[:-1][group]) & (at < of.marks[1:][group]) & chosen[group]
        self.mark_of = np.where(there, at, NONE)
        self.pair_of[at[there]] = np.flatnonzero(there)
        kind = self.found.items.kind[self.marks[np.where(there, at, 0)]] if len(self.marks) else at
        commits = self.table.status[self.pairs.row] == TxnStatus.PREPARE_COMMIT
        differs = there & (kind != commits)
        return np.bincount(group[differs], minlength=len(of.key)) > 0

    def _late_ones_missing(self) -> Flags:
        """True for groups that lack a marker of a decision behind which the log surely begins."""
        of = self.groups
        group = np.repeat(np.arange(len(of.key)), np.diff(of.pairs))
        lacks = (self.mark_of == NONE) & of.from_log[group] & of.is_closed[group] & ~of.from_table[group]
        lacks &= self.table.time[self.pairs.row] > self.first_marks[self.pairs.part]
        lacks &= self.table.complete[self.pairs.row] != NO_ROW
        return np.bincount(group[lacks], minlength=len(of.key)) > 0

    def _forget(self, groups: Flags) -> None:
        """Take back what was matched in some groups."""
        of = self.groups
        self.mark_of[np.repeat(groups, np.diff(of.pairs))] = NONE
        self.pair_of[np.repeat(groups, np.diff(of.marks))] = NONE

    def _settle(self, of: EpochGroups, is_open: Flags) -> None:
        """Say of each pair and marker what it is, in groups that fit."""
        marked = self.mark_of != NONE
        self.state[marked] = MarkState.MARKED
        last = np.zeros(len(self.state), np.bool_)
        last[of.pairs[1:][is_open] - 1] = True
        self.state[last & ~marked] = MarkState.OPEN
        self.spare[self.pair_of != NONE] = SpareState.OF_DECISION


def _last_of(place: Ints, chosen: Flags) -> Ints:
    """The last chosen row with the same place as each, or -1; places lie together."""
    at = np.where(chosen, np.arange(len(place)), -1)
    begins = np.flatnonzero(np.diff(place, prepend=-1))
    return np.repeat(np.maximum.reduceat(at, begins), np.diff(np.append(begins, len(place)))) if len(place) else at


def _first_of(place: Ints, chosen: Flags) -> Ints:
    """The first chosen row with the same place as each, or one behind all."""
    at = np.where(chosen, np.arange(len(place)), len(place))
    begins = np.flatnonzero(np.diff(place, prepend=-1))
    return np.repeat(np.minimum.reduceat(at, begins), np.diff(np.append(begins, len(place)))) if len(place) else at
