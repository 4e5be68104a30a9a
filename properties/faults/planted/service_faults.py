"""Faults in the thread that sees to ops and checks, and in what it asks of transactions.

Each function below stands in for one of `impl/`; its docstring says what it breaks.
"""

from __future__ import annotations

from contextlib import suppress
from queue import Empty
from typing import Any

import numpy as np

from gapless.impl.records.errors import Refused, StoreError
from gapless.impl.records.record import Ints
from gapless.impl.store.transaction_service import Check, TransactionService, UndecidedHalf
from gapless.impl.transactions.half_table import UNDECIDED
from gapless.impl.transactions.transactions import Transactions
from gapless.properties.faults.planted.fault_injection import Faults, replacing

FAULTS = Faults()
fault = FAULTS.plant

_check_round, _check, _pause, _end = (
    TransactionService.check_round,
    TransactionService._check,
    TransactionService._pause,
    TransactionService.end,
)
_commit_many = Transactions.commit_many


def _nothing(*_anything: object) -> None:
    """Not done."""


@fault("a round that is broken off moves no cursor", TransactionService, "check_round", "T06")
def _no_finally(service: TransactionService) -> None:
    """Resolved halves are read again and again, until a round never gets through them."""
    service.step(lambda tx, now: tx.write_op(now))
    due = service.step(lambda tx, now: tx.due(now))
    service._check(due)
    service.save()


@fault("the pool of those who ask is full", TransactionService, "_check", "T05")
def _full_pool(service: TransactionService, due: Ints) -> None:
    """Halves are put back without a question: their checks are spent."""
    _check(service, due[:1])
    if len(due) > 1:
        service.step(lambda tx, now: tx.put_back(due[1:], now))
        raise Refused("the pool is full")


@fault("a final for which there was no room costs a check", Transactions, "commit_many", "T14")
def _costs_a_check(transactions: Transactions, numbers: Ints, now: int) -> Ints:
    """A message is set aside that its producer committed."""
    try:
        return _commit_many(transactions, numbers, now)
    except StoreError:
        at = numbers - transactions.table.base
        transactions.table.checks[at[transactions.table.status[at] == UNDECIDED]] += 1
        raise


@fault("a producer that raises ends the thread", TransactionService, "_ask", "T20")
def _lets_it_pass(service: TransactionService, check: Check, number: int) -> bool | None:
    """Producers are never asked again, and no op is written in time."""
    return check(UndecidedHalf(service, number))


@fault("a check that reaches no producer is counted", TransactionService, "_check", "T22")
def _counts_in_vain(service: TransactionService, due: Ints) -> None:
    """A half is set aside though its producer was never asked about it."""
    everybody = dict.fromkeys(service.tx.table.groups, _nothing)
    known, service.checks = service.checks, {**everybody, **service.checks}
    try:
        _check(service, due)
    finally:
        service.checks = known


@fault("a group without an answer yet is taken for gone", TransactionService, "check_round", "T23")
def _forgets_who_answers(service: TransactionService) -> None:
    """Its halves stay undecided for ever."""
    service.checks.clear()
    _check_round(service)


@fault("the thread wakes for a batch that is empty", TransactionService, "_pause", "T25")
def _spins(service: TransactionService) -> float:
    """A core does nothing else."""
    due = service.tx.batcher.since + service.tx.settings.op_batch_interval - service._time()
    return max(min(_pause(service), due), 1)


@fault("the thread outlives its store", TransactionService, "_run", "T26")
def _never_stops(service: TransactionService) -> None:
    """Something is written where nothing is open any more."""
    while True:
        with suppress(Empty):
            service._news.get(timeout=service._pause() / 1000)
        with suppress(StoreError):
            service._keep_on()


@fault("what waits when the store is closed has no op", TransactionService, "end", "T27")
def _drops_the_batch(service: TransactionService, flush: Any) -> None:
    """Decided halves are asked about again after the next start."""
    with replacing(Transactions, "write_ops", _nothing):
        _end(service, flush)


@fault("a half is as old as its producer says", Transactions, "due", "T35")
def _by_the_producers_clock(transactions: Transactions, now: int) -> Ints:
    """A producer whose clock is behind is asked while it works."""
    latest = now - transactions.settings.transaction_timeout
    numbers = transactions.undecided(np.arange(transactions.half_cursor, transactions.table.end))
    known: Ints = numbers[transactions.table.group[numbers - transactions.table.base] >= 0]
    return known[[transactions.half(number).born_time < latest for number in known.tolist()]]
