"""Recovery of transactions from a log: one scan from the half cursor on, and all halves are as before.

Nothing else is kept of them. What was decided and has no op waits for one again, unless nothing but the op would have
shown it: a rollback whose op is lost is undecided again (docs/rocketmq-transactions.md#op-crash).
"""

from __future__ import annotations

import numpy as np

from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import ConsumeQueue
from gapless.impl.records.record import Ints
from gapless.impl.transactions import names
from gapless.impl.transactions import scan_kernel as k
from gapless.impl.transactions.half_table import (
    COMMITTED,
    GONE,
    NAMED,
    NOT_NAMED,
    PARKED,
    REPLACED,
    ROLLED_BACK,
    UNDECIDED,
    WAITS,
    HalfTable,
)
from gapless.impl.transactions.state import TransactionState


def found_in(log: CommitLog, begin: int, end: int) -> Ints:
    """The transaction records from `begin` up to `end`: int64 [scan_kernel.ROWS, n]."""
    parts, rows, filled, at = [], np.empty((k.ROWS, 1 << 12), np.int64), 0, begin
    while at < end:
        data, base = log.view(at)
        stop = min(end - base, log.file_size)
        filled, reached = k.find(data, base, at - base, stop, rows, filled)
        if reached < stop:  # no room
            if filled < rows.shape[1] // 2:  # an op that names many
                rows = np.concatenate([rows, np.empty_like(rows)], axis=1)
            else:
                parts.append(rows[:, :filled].copy())
                filled = 0
        at = base + reached
    return np.concatenate([*parts, rows[:, :filled]], axis=1)


def recover(of: TransactionState) -> None:
    """The halves from the half cursor on are known, and what waits for an op."""
    halves, ops = of.halves_queue, of.ops_queue
    of.half_cursor = _cursor(of, halves)
    of.op_cursor = _cursor(of, ops)
    of.table = HalfTable(of.half_cursor)
    of.table.room(halves.next)
    begin = of.log.end
    if of.half_cursor < halves.committed:
        begin = int(halves.entries(of.half_cursor, of.half_cursor + 1)["position"][0])
    elif of.half_cursor < halves.next:
        begin = of.log.start
    rows = found_in(of.log, begin, of.log.end)
    ours = (rows[k.KIND] != k.HALF) | ((of.half_cursor <= rows[k.NUMBER]) & (rows[k.NUMBER] < halves.next))
    _fill(of, rows[:, ours])
    of.reaches = dict.fromkeys(range(of.op_cursor, ops.next), 0)
    marks = rows[:, rows[k.KIND] == k.MARK]
    for op, reach in zip(*_greatest(marks[k.NUMBER], marks[k.NAMES] + 1), strict=True):
        if op in of.reaches:
            of.reaches[op] = min(reach, halves.next)


def _cursor(of: TransactionState, queue: ConsumeQueue) -> int:
    kept = of.cursors.get(names.CHECKING_GROUP, queue.topic, 0) or 0
    return max(queue.first, min(kept, queue.next))


def _greatest(keys: Ints, values: Ints) -> tuple[list[int], list[int]]:
    """Each key once, and the greatest of its values."""
    order = np.lexsort([values, keys])
    keys, values = keys[order], values[order]
    last = np.ones(len(keys), np.bool_)
    last[:-1] = keys[1:] != keys[:-1]
    return keys[last].tolist(), values[last].tolist()


def _fill(of: TransactionState, rows: Ints) -> None:
    table = of.table
    halves = rows[:, rows[k.KIND] == k.HALF]
    if not halves.shape[1]:
        return
    table.add(
        halves[k.NUMBER], halves[k.POSITION], halves[k.SIZE], halves[k.TIME], halves[k.TIMES], _groups(of, halves)
    )
    newest_of = _chain(table, halves)
    table.status[halves[k.NUMBER, halves[k.USABLE] == 0] - table.base] = GONE
    records = rows[:, np.isin(rows[k.KIND], (k.HALF, k.FINAL, k.COPY))]
    numbers, others = _halves_before(records)
    newest = newest_of[numbers - table.base]
    is_final = others[k.KIND] == k.FINAL
    copies = ~is_final & (newest == numbers)  # one of an older version was resumed since
    table.status[numbers[copies] - table.base] = PARKED
    table.by[numbers[copies] - table.base] = others[k.POSITION, copies]
    named = rows[k.NAMES, rows[k.KIND] == k.MARK]
    named = named[(table.base <= named) & (named < table.end)] - table.base
    table.op[named] = NAMED
    decided = newest_of[named] - table.base
    table.op[decided] = NAMED
    table.status[decided[table.status[decided] == UNDECIDED]] = ROLLED_BACK
    finals = newest[is_final] - table.base
    table.status[finals[::-1]] = COMMITTED
    table.by[finals[::-1]] = others[k.POSITION, is_final][::-1]  # the first one stays
    waiting = np.flatnonzero((table.status == COMMITTED) & (table.op == NOT_NAMED))
    table.op[waiting] = WAITS
    of.batcher.enter((waiting[np.argsort(table.by[waiting])] + table.base).tolist(), 0)


def _chain(table: HalfTable, halves: Ints) -> Ints:
    """Versions of one half stand for one another: the newest of each, by number from the table's base on."""
    order = np.lexsort([halves[k.NUMBER], halves[k.LINEAGE]])
    numbers, lineage = halves[k.NUMBER, order], halves[k.LINEAGE, order]
    follows = lineage[1:] == lineage[:-1]
    older = numbers[:-1][follows]
    table.status[older - table.base] = REPLACED
    table.by[older - table.base] = numbers[1:][follows]
    ends = np.append(~follows, True)
    last = np.flatnonzero(ends)[np.concatenate([[0], np.cumsum(ends)[:-1]])]
    newest = np.arange(table.base, table.end)
    newest[numbers - table.base] = numbers[last]
    return newest


def _halves_before(records: Ints) -> tuple[Ints, Ints]:
    """For each final and copy whose half was found: the number of the last version before it; and these records."""
    order = np.lexsort([records[k.POSITION], records[k.LINEAGE]])
    records = records[:, order]
    is_half = records[k.KIND] == k.HALF
    last = np.maximum.accumulate(np.where(is_half, np.arange(len(order)), -1))
    found = ~is_half & (last >= 0) & (records[k.LINEAGE] == records[k.LINEAGE, np.maximum(last, 0)])
    numbers, others = records[k.NUMBER, last[found]], records[:, found]
    again = np.argsort(others[k.POSITION], kind="stable")
    return numbers[again], others[:, again]


def _groups(of: TransactionState, halves: Ints) -> Ints:
    """The group of each half's producer, as an index; -1 where it names none."""
    digests, first, inverse = np.unique(halves[k.GROUP], return_index=True, return_inverse=True)
    index = np.full(len(digests), -1, np.int64)
    for place, at in enumerate(first.tolist()):
        low, size = int(halves[k.GROUP_AT, at]), int(halves[k.GROUP_SIZE, at])
        if size:
            data, base = of.log.view(low)
            index[place] = of.table.group_index(data[low - base : low - base + size].tobytes().decode(errors="replace"))
    return index[inverse]
