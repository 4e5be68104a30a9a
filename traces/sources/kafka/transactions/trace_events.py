"""Makes the events of `kafka_transaction`: rows of the table, with what lies in the partitions between them.

Source: docs/kafka-transactions.md#partitions, #markers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.spec.kafka_transaction import TxnStatus
from gapless.traces.judging.building import Events, Ints
from gapless.traces.sources.kafka.files.transaction_table import TOMBSTONE
from gapless.traces.sources.kafka.judging.event_order import EventOrder
from gapless.traces.sources.kafka.judging.transaction_items import DATA
from gapless.traces.sources.kafka.log.tables import Flags
from gapless.traces.sources.kafka.transactions.markers import NONE, MarkerTable, MarkState, SpareState
from gapless.traces.sources.kafka.transactions.table import ELSEWHERE, NO_ROW, Pairs

SPEC = SPECS["kafka_transaction"]
COMPLETES = TxnStatus.COMPLETE_COMMIT - TxnStatus.PREPARE_COMMIT
"""The status of a complete transaction is that of its decision and this."""
PROTOCOL = 2  # that raises the epoch with each decision
OPEN, ADD, EARLY, OPERATOR, WRITE, DECIDE, MARK, AGAIN, DONE, BEHIND, SLOTS = range(11)
"""The places of events next to a row of the table, in this order."""


class PartNumbers(NamedTuple):
    """The partitions of all ids, numbered within each. `key`: of each, in order · `begins`: int64 [ids + 1]."""

    key: Ints
    begins: Ints
    parts: int

    def of(self, number: Ints, part: Ints, shadow: Flags | Ints) -> Ints:
        """The numbers of partitions. `shadow`: the partition with what is in no file."""
        key = _part_key(number, part, shadow, self.parts)
        at = self.key.searchsorted(key)
        found: Ints = at - self.begins[number]
        return found

    @property
    def widths(self) -> Ints:
        """The number of partitions of each id."""
        return np.diff(self.begins)

    def names(self, number: int) -> list[tuple[int, bool]]:
        """The partitions of an id, and whether each stands for what is in no file."""
        keys = self.key[self.begins[number] : self.begins[number + 1]] % (2 * self.parts)
        return [(int(key) // 2 - 1, bool(key % 2)) for key in keys]


def _part_key(number: Ints, part: Ints, shadow: Flags | Ints, parts: int) -> Ints:
    return number * (2 * parts) + (part + 1) * 2 + shadow


class TraceEvents(NamedTuple):
    """Events, trace by trace. `starts`: int64 [traces + 1] · `row`: of the table, that an event lies next to."""

    events: Events
    starts: Ints
    row: Ints
    parts: PartNumbers


class TracePlaces:
    """The places of runs and markers in the traces: a key of each item, or NONE for what is not judged."""

    def __init__(self, of: MarkerTable) -> None:
        self.of, self.table, self.found = of, of.table, of.found
        items = self.found.items
        self.count = len(items.first)
        self.number_of = self._numbers()
        self.key = self._keys()

    def _numbers(self) -> Ints:
        """The number of the id of each item."""
        order = np.argsort(self.table.producer, kind="stable")
        at = self.table.producer[order].searchsorted(self.found.items.producer)
        return self.table.number[order[at]] if self.count else at

    def _keys(self) -> Ints:
        of, found = self.of, self.found
        key = np.full(self.count, NONE, np.int64)
        if not self.count:
            return key
        place = np.zeros(self.count, np.int64)  # of each sequence of items: one partition, one producer
        new = (found.part[1:] != found.part[:-1]) | (found.items.producer[1:] != found.items.producer[:-1])
        place[1:] = np.cumsum(new)
        decided = np.full(self.count, NONE, np.int64)  # the row that a marker is of
        spare = np.zeros(self.count, np.bool_)
        matched = of.pair_of != NONE
        decided[of.marks[matched]] = of.pairs.row[of.pair_of[matched]]
        spare[of.marks[of.spare == SpareState.SPARE]] = True
        is_mark = found.is_mark
        marked = is_mark & (decided != NONE)
        key[marked] = decided[marked] * SLOTS + MARK
        before, behind = _nearest(place, marked, decided), _nearest(place[::-1], marked[::-1], decided[::-1])[::-1]
        if spare.any():
            self._place_spare(np.flatnonzero(spare), key, before, behind)
        self._place_data(place, key, decided, before)
        return key

    def _place_spare(self, spare: Ints, key: Ints, before: Ints, behind: Ints) -> None:
        """Put each marker of no decision next to the decisions around it, by the clocks of brokers."""
        table, found = self.table, self.found
        for item in spare.tolist():
            row, following, time = int(before[item]), int(behind[item]), int(found.items.time[item])
            has_data = item > 0 and found.items.kind[item - 1] == DATA and self._same(item - 1, item)
            done = int(table.complete[row]) if row != NONE else NO_ROW
            if row != NONE and not has_data and (done == NO_ROW or time <= table.time[done]):
                key[item] = row * SLOTS + AGAIN
            elif following != NONE and (has_data or table.time[self._begin(following)] <= time):
                key[item] = following * SLOTS + OPERATOR
            elif row != NONE:
                key[item] = max(row, done) * SLOTS + BEHIND
            else:
                key[item] = int(table.begins[int(self.number_of[item])]) * SLOTS + BEHIND

    def _same(self, one: int, other: int) -> bool:
        items, part = self.found.items, self.found.part
        return bool(part[one] == part[other] and items.producer[one] == items.producer[other])

    def _begin(self, row: int) -> int:
        """The first row of a transaction that is decided in a row."""
        while row > 0 and self.table.decision[row - 1] == self.table.decision[row]:
            row -= 1
        return row

    def _place_data(self, place: Ints, key: Ints, decided: Ints, before: Ints) -> None:
        """Put runs before the decision of the marker behind them; those behind all markers where they belong."""
        table, found = self.table, self.found
        is_mark = found.is_mark
        number = np.arange(self.count)
        behind = np.minimum.accumulate(np.where(is_mark, number, self.count)[::-1])[::-1]
        at = np.minimum(behind, self.count - 1)
        ended = ~is_mark & (behind < self.count) & (place[at] == place)
        late = ended & (table.is_first[np.maximum(decided[at], 0)]) & (decided[at] != NONE)
        early = key[at] - (key[at] % SLOTS == OPERATOR)
        of_mark = np.where(decided[at] != NONE, decided[at] * SLOTS + WRITE, early)
        key[ended] = np.where(late, NONE, of_mark)[ended]
        self._leave_lost(key, decided, ended, at)
        unknown = _nearest(place, is_mark, (decided == NONE).astype(np.int64)) == 1
        (tail,) = np.nonzero(~is_mark & ~ended)
        key[tail] = self._of_tail(tail, before, unknown)

    def _leave_lost(self, key: Ints, decided: Ints, ended: Flags, at: Ints) -> None:
        """Leave out runs whose marker may be lost with the power, so that they run into the next transaction."""
        of, items = self.of, self.found.items
        (early,) = np.nonzero(ended & (decided[at] != NONE))
        early = early[items.epoch[early] < self._epoch_of(decided[at[early]])]
        for part in np.unique(self.found.part[early]).tolist():
            rows = early[self.found.part[early] == part]
            until = items.time[rows + 1]  # a marker, at least, lies behind it
            key[rows[self.found.replicas[part].may_lose(items.time[rows], until)]] = NONE
        gone = of.state == MarkState.GONE
        if not gone.any() or not ended.any():
            return
        for pair in np.flatnonzero(gone & np.isin(of.pair_key, of.groups.key[of.strange])).tolist():
            row, part = int(of.pairs.row[pair]), int(of.pairs.part[pair])
            mine = (self.found.part == part) & (items.producer == self.table.producer[row]) & ended
            behind = key[at] // SLOTS > row
            rows = np.flatnonzero(mine & behind)
            if len(rows):
                key[rows[at[rows] == at[rows[0]]]] = NONE

    def _epoch_of(self, decision: Ints) -> Ints:
        """The epoch of the records of transactions that are decided in these rows."""
        before = np.maximum(decision - 1, 0)
        ongoing = (self.table.status[before] == TxnStatus.ONGOING) & ~self.table.is_first[decision]
        return np.where(ongoing, self.table.epoch[before], self.table.epoch[decision])

    def _of_tail(self, tail: Ints, before: Ints, unknown: Flags) -> Ints:
        """The places of runs behind the last marker of their producer in a partition.

        They wait for the marker of the decision that has none there, or are of a transaction that is open, or hang.
        Where a marker is gone behind the last one, they may have been its. Where the table may be older than the
        partition, they are of its last transaction only if nothing is here that it does not know.
        """
        table, found = self.table, self.found
        before, part, producer = before[tail], found.part[tail], found.items.producer[tail]
        last = table.begins[1:][self.number_of[tail]] - 1
        waiting, gone = (
            self._last_decision(tail, states) for states in ((MarkState.OPEN, MarkState.MISSING), (MarkState.GONE,))
        )
        waits = waiting > before
        names = self._names(last, part) & (table.status[last] == TxnStatus.ONGOING) & (table.producer[last] == producer)
        certain = found.whole()[part] & table.whole[last]
        known = (found.items.epoch[tail] == table.epoch[last]) & ~unknown[tail]
        in_time = waits & (found.items.epoch[tail] == self._epoch_of(np.maximum(waiting, 0)))
        done = np.maximum(before, table.complete[np.maximum(before, 0)])
        hangs = np.where(before != NONE, done, last) * SLOTS + BEHIND
        key = np.where(waits, waiting * SLOTS + WRITE, np.where(names, last * SLOTS + BEHIND, hangs))
        judged = (gone <= before) & ~(waits & table.is_first[waiting]) & (in_time | (names & known) | certain)
        return np.where(judged, key, NONE)

    def _last_decision(self, tail: Ints, states: Sequence[MarkState]) -> Ints:
        """The last decision on the partition, of the producer, of each item in one of these states, or NONE."""
        of, found = self.of, self.found
        parts = len(found.replicas) + 1
        mine = np.isin(of.state, states)
        row, part = of.pairs.row[mine], of.pairs.part[mine]
        place = of.producers.searchsorted(self.table.producer[row]) * parts + part
        order = np.lexsort((row, place))
        wanted = of.producers.searchsorted(found.items.producer[tail]) * parts + found.part[tail]
        at = place[order].searchsorted(wanted, side="right") - 1
        if not len(order):
            return np.full(len(tail), NONE)
        there = (at >= 0) & (place[order[np.maximum(at, 0)]] == wanted)
        return np.where(there, row[order[np.maximum(at, 0)]], NONE)

    def _names(self, rows: Ints, part: Ints) -> Flags:
        """True where a row names a partition."""
        every = self.table.pairs(np.unique(rows))
        parts = len(self.found.replicas) + 1
        return np.isin(rows * parts + part, every.row * parts + every.part)


def _nearest(place: Ints, chosen: Flags, values: Ints) -> Ints:
    """The value of the last chosen item before each in its sequence, or of itself; NONE if there is none."""
    number = np.arange(len(place))
    at = np.maximum.accumulate(np.where(chosen, number, -1))
    there = (at >= 0) & (place[np.maximum(at, 0)] == place)
    return np.where(there, values[np.maximum(at, 0)], NONE)


class TraceMaker:
    """Makes the events of some ids."""

    def __init__(self, of: MarkerTable) -> None:
        self.of, self.table, self.found = of, of.table, of.found
        self.placing = TracePlaces(of)
        added = self.table.added()
        self.added = added
        self.shadow = self._shadows(added)
        self.parts = self._part_numbers()

    def _shadows(self, added: Pairs) -> Flags:
        """True for partitions of a transaction of which no file has what it should: they are taken for marked."""
        of, parts = self.of, len(self.found.replicas) + 1
        known = of.pairs.row * parts + of.pairs.part
        order = np.argsort(known, kind="stable")
        row = self.table.decision[added.row]
        at = known[order].searchsorted(row * parts + added.part)
        at = np.minimum(at, max(len(order) - 1, 0))
        there = (known[order[at]] == row * parts + added.part) if len(order) else np.zeros(len(row), np.bool_)
        state = of.state[order[at]] if len(order) else at
        real = np.where(row == NO_ROW, added.part != ELSEWHERE, there & (state != MarkState.GONE))
        shadows: Flags = ~real
        return shadows

    def _part_numbers(self) -> PartNumbers:
        parts = len(self.found.replicas) + 1
        placed = self.placing.key != NONE
        keys = [
            _part_key(self.table.number[self.added.row], self.added.part, self.shadow, parts),
            _part_key(
                self.placing.number_of[placed], self.found.part[placed], np.zeros(int(placed.sum()), np.int64), parts
            ),
        ]
        key = np.unique(np.concatenate(keys))
        begins = key.searchsorted(np.arange(self.table.count + 1) * (2 * parts))
        return PartNumbers(key, begins, parts)

    def made(self) -> TraceEvents:
        """Make the events of all ids."""
        order, groups = EventOrder(SPEC), list[Ints]()
        self._add_rows(order, groups)
        self._add_partitions(order, groups)
        self._add_items(order, groups)
        self._add_inferred(order, groups)
        events, keys, owners = order.events(groups)
        starts = owners.searchsorted(np.arange(self.table.count + 1))
        return TraceEvents(events, starts, keys // SLOTS, self.parts)

    def _add_rows(self, order: EventOrder, groups: list[Ints]) -> None:
        table = self.table
        status, protocol = table.status, table.protocol
        raises = table.is_decision & (protocol >= PROTOCOL)

        def add(action: str, rows: Ints, slot: int, **args: Ints | int) -> None:
            if len(rows):
                groups.append(table.number[rows])
                order.add(action, rows * SLOTS + slot, **args)

        (first,) = np.nonzero(table.is_first)
        known = status[first] != TOMBSTONE
        phase = np.where(table.is_decision, TxnStatus.ONGOING, np.where(status == TOMBSTONE, TxnStatus.ABSENT, status))
        add(
            "open", first, OPEN, phase=phase[first], pid=np.where(known, table.producer[first], NONE),
            epoch=np.where(known, table.epoch[first] - raises[first], NONE),
        )  # fmt: skip
        later = ~table.is_first
        (rows,) = np.nonzero(later & (status == TxnStatus.EMPTY))
        add("init", rows, DONE, pid=table.producer[rows], epoch=table.epoch[rows])
        (rows,) = np.nonzero(later & (status == TOMBSTONE))
        add("expire", rows, DONE)
        before = np.maximum(np.arange(len(status)) - 1, 0)
        complete = later & ((status == TxnStatus.COMPLETE_COMMIT) | (status == TxnStatus.COMPLETE_ABORT))
        other = complete & table.is_decision[before] & (status - status[before] != COMPLETES)
        for rows in (np.flatnonzero(complete), np.flatnonzero(other)):  # the other outcome was never decided
            add("complete", rows, DONE, pid=table.producer[rows], epoch=table.epoch[rows])
        ongoing = later & (status[before] == TxnStatus.ONGOING)
        whole = np.where(ongoing, table.set == table.set[before], table.is_first | (table.set == 0)).astype(np.int64)
        fenced = ongoing & (status == TxnStatus.PREPARE_ABORT) & (protocol < PROTOCOL)
        fenced &= table.epoch == table.epoch[before] + 1
        (rows,) = np.nonzero(fenced)
        add("time_out", rows, DECIDE, epoch=table.epoch[rows], whole=whole[rows])
        (rows,) = np.nonzero(table.is_decision & ~fenced)
        add(
            "decide", rows, DECIDE, commit=(status[rows] == TxnStatus.PREPARE_COMMIT).astype(np.int64),
            epoch=table.epoch[rows], protocol=protocol[rows], whole=whole[rows],
        )  # fmt: skip

    def _add_partitions(self, order: EventOrder, groups: list[Ints]) -> None:
        table, added = self.table, self.added
        if len(added.row):
            number = table.number[added.row]
            raises = table.is_decision[added.row] & (table.protocol[added.row] >= PROTOCOL)
            groups.append(number)
            order.add(
                "add", added.row * SLOTS + ADD, part=self.parts.of(number, added.part, self.shadow),
                epoch=table.epoch[added.row] - raises,
            )  # fmt: skip

    def _add_items(self, order: EventOrder, groups: list[Ints]) -> None:
        """Add runs and markers. The entries of the index of aborted transactions are judged by `aborted_index`."""
        key, found = self.placing.key, self.found
        placed = key != NONE
        items, is_mark = found.items, found.is_mark
        number = self.placing.number_of
        (rows,) = np.nonzero(placed)
        rows = rows[np.argsort(items.first[rows], kind="stable")]
        part = np.zeros(len(key), np.int64)
        part[rows] = self.parts.of(number[rows], found.part[rows], np.zeros(len(rows), np.int64))
        runs = rows[~is_mark[rows]]
        if len(runs):
            groups.append(number[runs])
            order.add("write", key[runs], part=part[runs], first=items.first[runs], last=items.last[runs],
                      epoch=items.epoch[runs])  # fmt: skip
        marks = rows[is_mark[rows]]
        if len(marks):
            groups.append(number[marks])
            order.add("mark", key[marks], part=part[marks], commit=items.kind[marks], epoch=items.epoch[marks],
                      offset=items.first[marks])  # fmt: skip

    def _add_inferred(self, order: EventOrder, groups: list[Ints]) -> None:
        """Add markers that no file has, and need not have."""
        table = self.table
        decided = self.added.row[self.shadow]
        rows = table.decision[decided]
        mine = rows != NO_ROW
        rows, part = rows[mine], self.added.part[self.shadow][mine]
        if len(rows):
            number = table.number[rows]
            groups.append(number)
            order.add(
                "mark", rows * SLOTS + MARK, part=self.parts.of(number, part, np.ones(len(rows), np.int64)),
                commit=(table.status[rows] == TxnStatus.PREPARE_COMMIT).astype(np.int64), epoch=table.epoch[rows],
                offset=rows,
            )  # fmt: skip
