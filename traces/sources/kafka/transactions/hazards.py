"""Transactions that keep readers waiting: a decision that is not complete, one that is open for too long.

By the times in the coordinator's own log: what comes behind a row there shows how old it is, in a torn copy as well.

Source: docs/kafka-transactions.md#hazards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gapless.spec import catalog
from gapless.spec.kafka_transaction import TxnStatus
from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.log.tables import Flags
from gapless.traces.sources.kafka.transactions.table import CoordinatorTable

LONGEST = 15 * 60_000
"""Ms for which a transaction may be open: `transaction.max.timeout.ms`, if a broker has no other setting."""
SLOW = 60_000
"""Ms in which each decision is complete, unless a partition has no leader, and what took too long is aborted."""
NEVER = -(1 << 62)
UNFINISHED = catalog.rule("kafka_transaction/every-decision-is-complete").id
OPEN = catalog.rule("kafka_transaction/nothing-hangs").id


class WaitingId(NamedTuple):
    """An id whose transaction keeps readers waiting. `row`: since when · `age`: ms of later rows."""

    number: int
    row: int
    age: int
    rule: str


def waiting_ids(table: CoordinatorTable, starts: Ints | None) -> Iterator[WaitingId]:
    """Yield the ids whose last transaction should be over. `starts`: of brokers, in order; None if not known."""
    if not table.count:
        return
    last = table.begins[1:] - 1
    newest = np.zeros(int(table.table.max()) + 1, np.int64)
    np.maximum.at(newest, table.table, table.time)
    now = newest[table.table[last]]
    began = _began(table, last)
    unfinished = table.is_decision[last] & (now - table.time[last] > SLOW)
    is_open = (table.status[last] == TxnStatus.ONGOING) & _is_overdue(table, table.time[began], now, last, starts)
    for number in np.flatnonzero(unfinished | is_open).tolist():
        since = int(last[number] if unfinished[number] else began[number])
        spent = int(newest[table.table[since]] - table.time[since])
        yield WaitingId(number, since, spent, UNFINISHED if unfinished[number] else OPEN)


def _is_overdue(table: CoordinatorTable, began: Ints, now: Ints, last: Ints, starts: Ints | None) -> Flags:
    """True where a broker had time to abort what took too long.

    Each row has the time-out of its id, which is no longer than the broker's longest. While no broker was there,
    nothing was aborted: where it is not known when they started, no time-out counts that is shorter than the longest.
    """
    timeout = table.timeout[last]
    if starts is None:
        return now - began > np.where(timeout > LONGEST, timeout + SLOW, LONGEST)
    before = starts.searchsorted(now, side="right") - 1
    started = np.where(before >= 0, starts[np.maximum(before, 0)], NEVER) if len(starts) else np.full(len(now), NEVER)
    found: Flags = now - np.maximum(began + timeout, started) > SLOW
    return found


def _began(table: CoordinatorTable, last: Ints) -> Ints:
    """The first row of the open transaction that some rows are the last of; the row itself if it is none."""
    ongoing = table.status == TxnStatus.ONGOING
    begins = np.ones(len(ongoing), np.bool_)
    begins[1:] = ~ongoing[:-1] | ~ongoing[1:] | table.is_first[1:]
    found: Ints = np.maximum.accumulate(np.where(begins, np.arange(len(ongoing)), 0))[last]
    return found
