"""Looks one by one at decisions and markers that do not fit: which are missing, which are spare, and which may be.

A marker lies between its decision and the completion, by the clocks of brokers. They show which of several is missing;
their numbers and kinds alone show that one is.

Source: docs/kafka-transactions.md#markers.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from gapless.spec.kafka_transaction import TxnStatus
from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.log.tables import Flags
from gapless.traces.sources.kafka.transactions.markers import NONE, MarkerTable, MarkState, SpareState
from gapless.traces.sources.kafka.transactions.partitions import NEVER
from gapless.traces.sources.kafka.transactions.table import NO_ROW

MOST = 2000
"""EpochGroups that are looked at one by one; of more, no marker is asked for."""


class Leftovers:
    """Looks at the groups that do not fit."""

    def __init__(self, matching: MarkerTable) -> None:
        self.of = matching
        self.table, self.found = matching.table, matching.found

    def settle(self) -> int:
        """Match what fits in each group, and say of the rest what it is. Returns how many groups were left out."""
        strange = self.of.strange.tolist()
        for group in strange[:MOST]:
            self._match(group)
        for group in strange[:MOST]:
            self._judge(group)
        self._match_others()
        return len(strange[MOST:])

    def _match(self, group: int) -> None:
        """Match a group from both ends as far as kinds and times agree, and what is between by its times."""
        of = self.of
        low, high = of.groups.pairs[group : group + 2].tolist()
        begin, end = of.groups.marks[group : group + 2].tolist()
        of.mark_of[low:high], of.pair_of[begin:end] = NONE, NONE
        head = self._agreeing(low, high, begin, end, 1)
        tail = min(self._agreeing(low, high, begin, end, -1), high - low - head, end - begin - head)
        for number in range(head):
            self._put(low + number, begin + number)
        for number in range(tail):
            self._put(high - 1 - number, end - 1 - number)
        is_closed = bool(of.groups.is_closed[group])
        self._match_between(low + head, high - tail, begin + head, end - tail, is_closed=is_closed)
        self._take_first(begin, end)

    def _take_first(self, begin: int, end: int) -> None:
        """Give a decision the first of two markers that follow one another: the second is one that was sent again."""
        of, kind = self.of, self.found.items.kind
        if end - begin < 2:
            return
        spare = np.flatnonzero((of.pair_of[begin : end - 1] == NONE) & (of.pair_of[begin + 1 : end] != NONE)) + begin
        for mark in spare[::-1].tolist():
            item, pair = int(of.marks[mark]), int(of.pair_of[mark + 1])
            follows = int(of.marks[mark + 1]) == item + 1 and kind[item] == kind[item + 1]
            if follows and self._in_time(np.array([pair]), np.array([mark]))[0]:
                of.pair_of[mark + 1] = NONE
                self._put(pair, mark)

    def _put(self, pair: int, mark: int) -> None:
        self.of.mark_of[pair], self.of.pair_of[mark] = mark, pair

    def _agreeing(self, low: int, high: int, begin: int, end: int, step: int) -> int:
        """The number of pairs and markers that agree, from one end on."""
        count = min(high - low, end - begin)
        pairs, marks = np.arange(low, high)[::step][:count], np.arange(begin, end)[::step][:count]
        differs = ~self._agree(pairs, marks)
        return int(differs.argmax()) if differs.any() else count

    def _agree(self, pairs: Ints, marks: Ints) -> Flags:
        row, item = self.of.pairs.row[pairs], self.of.marks[marks]
        commits = self.table.status[row] == TxnStatus.PREPARE_COMMIT
        found: Flags = (self.found.items.kind[item] == commits) & self._in_time(pairs, marks)
        return found

    def _in_time(self, pairs: Ints, marks: Ints) -> Flags:
        """True where a marker was written between a decision and its completion, by the clocks of brokers."""
        row, time = self.of.pairs.row[pairs], self.found.items.time[self.of.marks[marks]]
        slack = np.array([one.slack for one in self.found.replicas], np.int64)[self.of.pairs.part[pairs]]
        done = self.table.complete[row]
        late = np.where(done == NO_ROW, NEVER, self.table.time[done])
        found: Flags = (self.table.time[row] - slack <= time) & (time <= late + slack)
        return found

    def _match_between(self, low: int, high: int, begin: int, end: int, *, is_closed: bool) -> None:
        """Match what is left in the middle, in its order, as far as times allow it.

        Where the table may be older than the log, the marker of the other kind may be of a decision that is to come.
        """
        starts = self.table.time[self.of.pairs.row[low:high]].tolist()
        taken = -1
        for mark in range(begin, end):
            last = bisect_right(starts, int(self.found.items.time[self.of.marks[mark]])) - 1
            near = [at for at in (last - 1, last) if taken < at]
            fits = [at for at in near if self._agree(np.array([low + at]), np.array([mark]))[0]]
            fits += [at for at in near[::-1] if self._may_be_its(low + at, mark, is_closed=is_closed)]
            if fits:
                taken = fits[0]
                self._put(low + taken, mark)

    def _may_be_its(self, pair: int, mark: int, *, is_closed: bool) -> bool:
        one, other = np.array([pair]), np.array([mark])
        is_open = self.table.complete[self.of.pairs.row[pair]] == NO_ROW
        fits = self._agree(one, other) if is_open and not is_closed else self._in_time(one, other)
        return bool(fits[0])

    # -- what is left over ---------------------------------------------------------------------------------------------

    def _judge(self, group: int) -> None:
        """Say of each pair and marker of a group what it is."""
        of, groups = self.of, self.of.groups
        low, high = groups.pairs[group : group + 2].tolist()
        begin, end = groups.marks[group : group + 2].tolist()
        marked = np.flatnonzero(of.mark_of[low:high] != NONE) + low
        first, last = (int(marked[0]), int(marked[-1])) if len(marked) else (high, low - 1)
        for pair in range(low, high):
            may_be_gone = bool(pair < first and groups.from_log[group] and not self._is_later(pair))
            may_come = pair > last and not groups.is_closed[group]
            of.state[pair] = self._of_pair(pair, may_be_gone=may_be_gone or may_come)
        marks = np.flatnonzero(of.pair_of[begin:end] != NONE) + begin
        first, last = (int(marks[0]), int(marks[-1])) if len(marks) else (end, begin - 1)
        for mark in range(begin, end):
            before = mark < first and groups.from_table[group]
            behind = mark > last and not groups.is_closed[group]
            of.spare[mark] = self._of_mark(mark, may_be=bool(before or behind))

    def _is_later(self, pair: int) -> bool:
        """True if the log surely begins before a decision."""
        row, part = int(self.of.pairs.row[pair]), int(self.of.pairs.part[pair])
        return bool(self.table.time[row] > self.of.first_marks[part])

    def _of_pair(self, pair: int, *, may_be_gone: bool) -> MarkState:
        if self.of.mark_of[pair] != NONE:
            return MarkState.MARKED
        row = int(self.of.pairs.row[pair])
        if self.table.complete[row] == NO_ROW:
            return MarkState.OPEN
        return MarkState.GONE if may_be_gone or self._may_be_lost(pair) else MarkState.MISSING

    def _may_be_lost(self, pair: int) -> bool:
        """True if a broker may have started again before anything else was written, after a loss of power."""
        row, part = int(self.of.pairs.row[pair]), int(self.of.pairs.part[pair])
        replica, times = self.found.replicas[part], self.found.replicas[part].mark_times
        done = int(self.table.time[self.table.complete[row]])
        at = int(times.searchsorted(done + replica.slack, side="right"))
        until = times[at] if at < len(times) else NEVER
        return bool(replica.may_lose(self.table.time[row : row + 1], np.array([until]))[0])

    def _neighbours(self, pair: int) -> tuple[int, int]:
        """The items of the markers before and behind the place of a missing one, of its producer, or NONE."""
        of = self.of
        row, part = int(of.pairs.row[pair]), int(of.pairs.part[pair])
        producer = int(self.table.producer[row])
        (same,) = np.nonzero((of.pairs.part == part) & (self.table.producer[of.pairs.row] == producer))
        same = same[of.mark_of[same] != NONE]
        rows = of.pairs.row[same]
        before, behind = same[rows < row], same[rows > row]
        return (
            int(of.marks[of.mark_of[before[rows[rows < row].argmax()]]]) if len(before) else NONE,
            int(of.marks[of.mark_of[behind[rows[rows > row].argmin()]]]) if len(behind) else NONE,
        )

    def _of_mark(self, mark: int, *, may_be: bool) -> SpareState:
        if self.of.pair_of[mark] != NONE:
            return SpareState.OF_DECISION
        return SpareState.BEFORE if may_be or self._rows_may_be_lost(mark) else SpareState.SPARE

    def _rows_may_be_lost(self, mark: int) -> bool:
        """True if another coordinator took over behind the decision before a marker: rows may be lost."""
        of, table = self.of, self.table
        item = int(of.marks[mark])
        same = self.found.items.producer[of.marks] == self.found.items.producer[item]
        same &= (self.found.part[of.marks] == self.found.part[item]) & (of.marks < item) & (of.pair_of != NONE)
        (before,) = np.nonzero(same)
        if not len(before):
            return False
        row = int(of.pairs.row[of.pair_of[before[of.marks[before].argmax()]]])
        row = max(row, int(table.complete[row]))
        behind = row + 1 < len(table.id) and table.number[row + 1] == table.number[row]
        leader = table.leader[row + 1] if behind else table.leader[table.table == table.table[row]].max()
        return bool(table.leader[row] < leader)

    def _match_others(self) -> None:
        """Match each decision that lacks a marker with a spare one at its place: it is another than it should be."""
        of = self.of
        (missing,) = np.nonzero(of.state == MarkState.MISSING)
        for pair in missing.tolist():
            before, behind = self._neighbours(pair)
            (spare,) = np.nonzero(of.spare == SpareState.SPARE)
            item = of.marks[spare]
            row = int(of.pairs.row[pair])
            fits = (self.found.part[item] == of.pairs.part[pair]) & (item > before)
            fits &= self.found.items.producer[item] == self.table.producer[row]
            fits &= (item < behind) if behind != NONE else True
            if fits.any():
                mark = int(spare[fits][0])
                self._put(pair, mark)
                of.state[pair], of.spare[mark] = MarkState.MARKED, SpareState.OF_DECISION
