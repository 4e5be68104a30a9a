"""Our implementation writes transactions, continues those of a broker, and reports its steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import sleep

from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.impl.store.transaction_calls import ProducerGroup
from gapless.impl.store.transaction_service import UndecidedHalf
from gapless.impl.transactions import names
from gapless.impl.transactions.settings import TransactionSettings
from tests.interop import ours
from tests.interop.broker import LOG_FILE, QUEUE_FILE
from tests.interop.halves.comparing import compare, compare_asked
from tests.interop.halves.ledger import (
    AWAY,
    COMMIT,
    GROUP,
    MAX_CHECKS,
    OPEN,
    PARKED,
    ROLLBACK,
    TOPIC,
    Ledger,
    Transaction,
    answer,
)
from tests.interop.rounds import Step
from tests.support.rocketmq.stores import Queue

QUEUES = 4
PLAIN = 200  # messages between which transactions lie
BY_HAND = TransactionSettings(
    max_checks=MAX_CHECKS, check_interval=1 << 30, transaction_timeout=0, op_batch_interval=1 << 30
)
"""Rounds and ops happen when we say so."""


class TransactionWriter:
    """A store of ours that is open, with a group of producers.

    `knows`: whether they answer when they are asked · `asked`: the bodies of those about which they were.
    """

    def __init__(self, ledger: Ledger, settings: Settings | None = None) -> None:
        self.ledger = ledger
        self.knows = False
        self.asked: list[bytes] = []
        self.last: dict[Queue, int] = {}  # what was committed last
        self.store = Store.open(ledger.home / "store", settings)
        self.group: ProducerGroup = self.store.transactions(GROUP, self._ask, BY_HAND)
        assert self.store._service
        self._service = self.store._service

    def send(self, count: int) -> None:
        """Messages without a transaction, one for each queue in turn."""
        for at in range(count):
            body, queue = self.ledger.body("plain"), (TOPIC, at % QUEUES)
            properties = {"UNIQ_KEY": f"{self.ledger.serial:032X}"}
            placed = self.store.append(*queue, body, tag="sent", properties=properties)
            self.ledger.plain[body] = queue
            self.ledger.sent("send", queue, body, placed.number, placed.position)

    def begin(self, count: int, first: str, asked: str, *, durably: bool = True) -> None:
        """Transactions that are decided at once, by `first`, and what their producers will answer when asked.

        `durably`: an op names what was rolled back before the call returns. Otherwise nothing but memory tells of it.
        """
        for at in range(count):
            body, queue = self.ledger.body(first, asked), (TOPIC, at % QUEUES)
            begun = self.group.begin(*queue, body, tag="sent", properties={"KEYS": f"key-{at}"})
            number, position, _ = begun.half
            self.ledger.sent("half", queue, body, number, position)
            fate = OPEN
            if first == COMMIT:
                self.last[queue] = begun.commit().number
                fate = COMMIT
            elif first == ROLLBACK:
                begun.roll_back(wait=durably)
                fate = ROLLBACK if durably else OPEN
            self.ledger.transactions[body] = Transaction(queue, fate)
            if fate == COMMIT and not durably:
                self.ledger.asked_again.add(body)
            if first in (COMMIT, ROLLBACK):
                self.ledger.ended(number, position, first, "ok")

    def begin_away(self) -> None:
        """A half of a group that is not there any more, here or with the broker."""
        body, queue = self.ledger.body("open", "never"), (TOPIC, 0)
        with self.store.transactions("away") as away:
            number, position, _ = away.begin(*queue, body, tag="sent").half
        self.ledger.sent("half", queue, body, number, position)
        self.ledger.transactions[body] = Transaction(queue, AWAY)

    def write_ops(self) -> None:
        """Ops name all that was decided."""
        self._service.step(lambda tx, now: tx.write_ops(now))

    def round(self) -> None:
        """All that is open is put back, or set aside, and its producers are asked."""
        sleep(0.005)  # what was stored in this millisecond is not due
        self._service.check_round()

    def _ask(self, half: UndecidedHalf) -> bool | None:
        self.asked.append(half.body)
        self.ledger.checked(half.number, half.record.position, half.checks)
        decision = answer(half.body).removeprefix("later-") if self.knows else "unknown"
        self.ledger.ended(half.number, half.record.position, decision, "ok", asked=True)
        return {COMMIT: True, ROLLBACK: False}.get(decision)


def write(home: Path, *, clean: bool) -> Ledger:
    """A store of ours with transactions of every kind, closed in order or abandoned, and its ledger.

    Abandoned twice: what was decided before the first time, and had no op, was found by our own recovery.
    """
    ledger = Ledger(home)
    settings = Settings(file_size=LOG_FILE, queue_file_size=QUEUE_FILE)
    writing = TransactionWriter(ledger, settings)
    try:
        writing.send(PLAIN)
        writing.begin(3, "open", "never")
        for _ in range(MAX_CHECKS + 1):
            writing.round()
        ledger.resolve(parks=True)
        if clean:
            writing.begin_away()
        writing.begin(5, "open", COMMIT)
        writing.begin(4, "open", ROLLBACK)
        writing.begin(2, "open", "never")
        writing.round()  # they are put back, once, behind the one without a producer
        writing.begin(40, COMMIT, "none")
        writing.begin(20, ROLLBACK, "none")
        writing.send(PLAIN)
        writing.begin(12, "open", COMMIT)
        writing.begin(8, "open", ROLLBACK)
        if clean:
            writing.begin(6, COMMIT, "none")
            writing.store.close()
        else:
            writing.write_ops()
            writing.begin(5, COMMIT, COMMIT)
            writing.begin(5, ROLLBACK, ROLLBACK, durably=False)
    finally:
        writing.store.abandon()
    if not clean:
        _die_again(ledger)
    ledger.write_client_log()
    return ledger


def _die_again(ledger: Ledger) -> None:
    writing = TransactionWriter(ledger, Settings(workers=0))
    try:
        writing.write_ops()  # of what the first life has committed
        writing.begin(6, "open", COMMIT)
        writing.begin(6, "open", ROLLBACK)
        writing.begin(4, COMMIT, COMMIT, durably=False)
        writing.begin(4, ROLLBACK, ROLLBACK, durably=False)
        writing.send(20)
    finally:
        writing.store.abandon()


def visit(ledger: Ledger) -> Iterator[Step]:
    """Our implementation opens what a broker left, asks about what is open, and closes it. It leaves some open too."""
    folder = ledger.home / "store"
    writing = TransactionWriter(ledger)
    store = writing.store
    try:
        writing.knows = True
        expected = ledger.of_fate(OPEN)
        counts = writing.group.counts()
        seen = f"{counts.undecided} halves are undecided, cursors {counts.half_cursor} and {counts.op_cursor}"
        yield Step("our implementation opens it", seen)
        writing.round()
        yield compare_asked(writing.asked, expected, "our implementation asks")
        for body in expected:
            decision = answer(body).removeprefix("later-")
            ledger.transactions[body].fate = decision if decision in (COMMIT, ROLLBACK) else OPEN
        writing.begin(4, COMMIT, "none")
        writing.begin(4, ROLLBACK, "none")
        for queue, number in writing.last.items():
            store.wait_for(*queue, number)
        yield compare(ledger, lambda queue: ours.consume(store, queue), "we hand out")
        parked = ours.consume(store, (names.PARKED_TOPIC, 0)).records
        there = {record.body for record in parked}
        missing = ledger.of_fate(PARKED) - there
        wrong = [f"not set aside: {sorted(missing)[:3]}"] if missing else []
        yield Step("undecided halves are set aside", f"{len(there)} transactions", wrong)
        store.close()
    finally:
        store.abandon()
    ledger.write_client_log()
    yield Step("it closes the store", f"{sum(1 for _ in folder.rglob('*'))} files")
