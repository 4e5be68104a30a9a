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
from gapless.traces.sources.kafka.transactions.table import CoordinatorTable

LONGEST = 15 * 60_000
"""Ms for which a transaction may be open: `transaction.max.timeout.ms`, if a broker has no other setting."""
SLOW = 60_000
"""Ms in which each decision is complete, unless a partition has no leader."""
UNFINISHED = catalog.rule("kafka_transaction/every-decision-is-complete").id
OPEN = catalog.rule("kafka_transaction/nothing-hangs").id


class WaitingId(NamedTuple):
    """An id whose transaction keeps readers waiting. `row`: since when · `age`: ms of later rows."""

    number: int
    row: int
    age: int
    rule: str


def waiting_ids(table: CoordinatorTable) -> Iterator[WaitingId]:
    """Yield the ids whose last transaction should be over."""
    if not table.count:
        return
    last = table.begins[1:] - 1
    newest = np.zeros(int(table.table.max()) + 1, np.int64)
    np.maximum.at(newest, table.table, table.time)
    began = _began(table, last)
    age = newest[table.table[last]] - table.time[began]
    unfinished = table.is_decision[last] & (newest[table.table[last]] - table.time[last] > SLOW)
    is_open = (table.status[last] == TxnStatus.ONGOING) & (age > LONGEST)
    for number in np.flatnonzero(unfinished | is_open).tolist():
        since = int(last[number] if unfinished[number] else began[number])
        spent = int(newest[table.table[since]] - table.time[since])
        yield WaitingId(number, since, spent, UNFINISHED if unfinished[number] else OPEN)


def _began(table: CoordinatorTable, last: Ints) -> Ints:
    """The first row of the open transaction that some rows are the last of; the row itself if it is none."""
    ongoing = table.status == TxnStatus.ONGOING
    begins = np.ones(len(ongoing), np.bool_)
    begins[1:] = ~ongoing[:-1] | ~ongoing[1:] | table.is_first[1:]
    found: Ints = np.maximum.accumulate(np.where(begins, np.arange(len(ongoing)), 0))[last]
    return found
