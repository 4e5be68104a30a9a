"""The coordinator's table of one cluster, transactional id by transactional id: decisions, and what they name.

Source: docs/kafka-transactions.md#table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gapless.spec.kafka_transaction import TxnStatus
from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.files.transaction_table import UNKNOWN
from gapless.traces.sources.kafka.judging.table_piece import CoordinatorRows
from gapless.traces.sources.kafka.log.tables import Flags, each

NO_ROW = -1
FAR = np.iinfo(np.int64).max
ELSEWHERE = -1
"""Instead of the number of a partition: it is not among those that were read."""


class Pairs(NamedTuple):
    """Rows with a partition that each names, in the order of rows. `part`: its number, or ELSEWHERE."""

    row: Ints
    part: Ints

    def of(self, rows: Ints | Flags) -> Pairs:
        """Some of them."""
        return Pairs(self.row[rows], self.part[rows])


class CoordinatorTable:
    """The rows of a table, by transactional id and then in their order. Columns have one place for each row.

    `number`: of the transactional id, from 0 on · `begins`: the first row of each id, and the number of rows ·
    `decision`: the row that decides the transaction of an ongoing row; NO_ROW if none does · `complete`: the row that
    completes a decision, or NO_ROW · `whole`: nothing is missing at the end of its partition of the table.
    """

    def __init__(
        self, rows: CoordinatorRows, table: Ints, whole: Flags, names: Mapping[int, str], codes: Mapping[int, Ints]
    ) -> None:
        """`table`: of each row the number of its partition · `whole`: the partitions in which nothing is missing.

        `names`: of ids, by their hashes · `codes`: see `codes_of`.
        """
        order = np.argsort(rows.id, kind="stable")
        if (rows.id[order][1:] == rows.id[order][:-1])[table[order][1:] < table[order][:-1]].any():
            order = np.lexsort((table, rows.id))
        rows = rows.of(order)
        kept = _judged(rows)
        if not kept.all():
            rows, order = rows.of(np.flatnonzero(kept)), order[kept]
        self.id, self.offset, self.producer, self.epoch = rows.id, rows.offset, rows.producer, rows.epoch
        self.status, self.set, self.protocol, self.time, self.leader, self.timeout = rows[4:]
        self.table: Ints = table[order]
        self.whole: Flags = whole[self.table]
        is_first = np.ones(len(self.id), np.bool_)
        is_first[1:] = self.id[1:] != self.id[:-1]
        (first,) = np.nonzero(is_first)
        self.begins: Ints = np.append(first, len(self.id))
        self.number: Ints = np.cumsum(is_first) - 1
        self.is_first: Flags = is_first
        self.names = [names[key] for key in self.id[first].tolist()]
        self.codes = codes
        self.decision = self._decisions()
        self.complete = self._completions()

    @property
    def count(self) -> int:
        """The number of transactional ids."""
        return len(self.names)

    @property
    def producers(self) -> Ints:
        """The producers in it, in order."""
        return np.unique(self.producer[self.producer >= 0])

    @property
    def decided(self) -> Ints:
        """The producers of ids that surely have no open transaction at the end."""
        last = self.begins[1:] - 1
        status = self.status[last]
        is_open = (status == TxnStatus.ONGOING) | self.is_decision[last]
        return np.unique(self.producer[~is_open[self.number] & self.whole])

    @property
    def is_decision(self) -> Flags:
        """True for the rows that decide."""
        found: Flags = (self.status == TxnStatus.PREPARE_COMMIT) | (self.status == TxnStatus.PREPARE_ABORT)
        return found

    def _follows(self) -> Flags:
        """True where the next row is one of the same id."""
        return np.append(~self.is_first[1:], False)[: len(self.id)]

    def _decisions(self) -> Ints:
        """The row that decides the transaction of each row, or NO_ROW."""
        count = len(self.id)
        other = np.where(self.status == TxnStatus.ONGOING, count, np.arange(count))
        ends = np.minimum.accumulate(other[::-1])[::-1]
        at = np.minimum(ends, max(count - 1, 0))
        decided: Flags = (ends < count) & (self.number[at] == self.number) & self.is_decision[at] if count else ends < 0
        return np.where(decided, ends, NO_ROW)

    def _completions(self) -> Ints:
        done = (self.status == TxnStatus.COMPLETE_COMMIT) | (self.status == TxnStatus.COMPLETE_ABORT)
        then = np.append(done[1:], False)[: len(self.id)] & self._follows() & self.is_decision
        return np.where(then, np.arange(len(self.id)) + 1, NO_ROW)

    def pairs(self, rows: Ints) -> Pairs:
        """Return the partitions that some rows name, row by row."""
        sets, of = np.unique(self.set[rows], return_inverse=True)
        codes = [self.codes.get(int(key), np.zeros(0, np.int64)) for key in sets]
        lengths = np.array([len(one) for one in codes], np.int64)
        flat = np.concatenate(codes) if codes else np.zeros(0, np.int64)
        starts = np.cumsum(lengths) - lengths
        named, nth = each(lengths[of])
        return Pairs(rows[named], flat[starts[of[named]] + nth])

    def added(self) -> Pairs:
        """Return the partitions that rows of open transactions name, and the row before did not."""
        names = (self.status == TxnStatus.ONGOING) | (self.is_decision & self.is_first)
        ongoing = np.append(False, self.status[:-1] == TxnStatus.ONGOING)[: len(self.id)] & ~self.is_first
        same = ongoing & np.append(False, self.set[1:] == self.set[:-1])[: len(self.id)]
        (rows,) = np.nonzero(names & ~same)
        now = self.pairs(rows)
        before = self.pairs(rows[ongoing[rows]] - 1)
        most = max(int(now.part.max(initial=0)), int(before.part.max(initial=0))) + 2
        known = np.isin(now.row * most + now.part, (before.row + 1) * most + before.part, kind="sort")
        return now.of(~known)


def codes_of(sets: Mapping[int, Sequence[PartitionName]], parts: Mapping[PartitionName, int]) -> dict[int, Ints]:
    """Return the numbers of the partitions in each set, or ELSEWHERE, in order."""
    return {key: np.array(sorted({parts.get(one, ELSEWHERE) for one in some}), np.int64) for key, some in sets.items()}


def _judged(rows: CoordinatorRows) -> Flags:
    """True for the rows that are judged: ids with a row that cannot be read are not, nor what is written again."""
    bad = np.isin(rows.id, rows.id[rows.status == UNKNOWN])
    again = np.zeros(len(rows.id), np.bool_)
    empty = rows.status == TxnStatus.EMPTY
    again[1:] = empty[1:] & empty[:-1]
    for column in (rows.id, rows.producer, rows.epoch):
        again[1:] &= column[1:] == column[:-1]
    return ~bad & ~again
