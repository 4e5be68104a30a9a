"""The transactions of a store that is open: steps under the store's lock, and a thread that sees to ops and checks.

The thread writes ops when they are due, and asks producers about halves that they left undecided. Their answers are
waited for without any lock.
"""

from __future__ import annotations

from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Protocol, TypeVar

import numpy as np

from gapless.impl.environment.operating_system import Clock
from gapless.impl.environment.steady_clock import SteadyClock, passed_by
from gapless.impl.records.errors import StoreError
from gapless.impl.records.record import Ints, Record, read_properties
from gapless.impl.store.core import Core
from gapless.impl.transactions import names
from gapless.impl.transactions.finals import final_of
from gapless.impl.transactions.transactions import AT_ONCE, Transactions

T = TypeVar("T")


class Host(Protocol):
    """The store, as far as its transactions know it."""

    clock: Clock
    core: Core
    _closing: bool

    def _locked(self, what: Callable[[], T]) -> T:
        """Take a step while no thread appends. Raises Stopped if the store takes nothing any more."""

    def wait(self, position: int) -> None:
        """Returns when all before `position` is on disk."""


class UndecidedHalf:
    """A half whose producer is asked about it. It is read when it is looked at.

    `number`: of its newest version, by which a later decision can name it.
    """

    def __init__(self, service: TransactionService, number: int) -> None:
        self._service = service
        self.number = number

    @cached_property
    def record(self) -> Record:
        """The half as it lies in the log, with the store's and the sender's properties."""
        return self._service.step(lambda tx, _now: tx.half(self.number))

    @property
    def topic(self) -> str:
        """The topic that the message is for."""
        return final_of(self.record)[0][0]

    @property
    def queue(self) -> int:
        """The queue that the message is for."""
        return final_of(self.record)[0][1]

    @property
    def body(self) -> bytes:
        """The message's body."""
        return self.record.body

    @property
    def tag(self) -> str:
        """The tag, by which consumers will select."""
        return self.record.tag

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the message that its sender gave."""
        own = names.OWN_PROPERTIES
        return {name: value for name, value in read_properties(self.record.packed).items() if name not in own}

    @property
    def checks(self) -> int:
        """The number of times that its producer was asked, this time included."""
        return int(self.record.properties.get(names.CHECK_TIMES, "0"))


Check = Callable[[UndecidedHalf], bool | None]
"""Asks a producer: True to commit, False to roll back, None where it does not know yet."""


class TransactionService:
    """Transactions, and who is asked about them.

    `checks`: by group, whom to ask; a group that is not there is not asked, and no check is counted · `trouble`: what
    asking or writing raised last.
    """

    def __init__(self, store: Host, tx: Transactions) -> None:
        self.tx = tx
        self.checks: dict[str, Check] = {}
        self.trouble: BaseException | None = None
        self._store = store
        self._news: SimpleQueue[None] = SimpleQueue()  # the store closes
        self._running = Lock()  # taken for good by the thread
        self._round = Lock()
        self._time = SteadyClock(store.clock, passed_by(store.clock))
        self._checked = self._time()  # ms, when the last round began

    def step(self, what: Callable[[Transactions, int], T]) -> T:
        """Take steps while no other thread appends. Raises Stopped, and what the step raises."""

        def taken() -> T:
            now = self._store.clock()
            self.tx.ahead = now - self._time()
            return what(self.tx, now)

        return self._store._locked(taken)  # noqa: SLF001 - it is meant for us

    def start(self) -> None:
        """The thread runs; called again, it still does."""
        if not self._running.locked():
            start_new_thread(self._run, ())

    def wake(self) -> None:
        """The thread looks whether the store closes."""
        self._news.put(None)

    # -- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        if not self._running.acquire(blocking=False):
            return
        while not self._store._closing:  # noqa: SLF001 - as above
            with suppress(Empty):
                self._news.get(timeout=self._pause() / 1000)
            try:
                self._keep_on()
            except StoreError as error:  # a full disk has room again some time; a store that stopped says so itself
                self.trouble = error

    def _pause(self) -> float:
        """The time until anything can be due, in ms, as far as is known."""
        settings, now = self.tx.settings, self._time()
        until = min(self._checked + settings.check_interval, now + settings.op_batch_interval)
        if self.tx.batcher:
            until = min(until, self.tx.batcher.since + settings.op_batch_interval)
        return max(until - now, 1 if self.trouble is None else 50)

    def _keep_on(self) -> None:
        self.trouble = None
        now = self._time()
        if self.tx.batcher.is_due(now):
            self.step(lambda tx, now: tx.write_op(now))
        if now - self._checked >= self.tx.settings.check_interval:
            self._checked = now
            self.check_round()

    # -- the check round ---------------------------------------------------------------------------------------------

    def check_round(self) -> None:
        """All halves that are due are asked about, or set aside, and the cursors are saved, whatever happens.

        Raises DiskFull, Stopped, StoreError.
        """
        self.step(lambda _tx, _now: None)  # in a forked child this raises, and the lock would never be released there
        with self._round:
            try:
                self.step(lambda tx, now: tx.write_op(now))
                due = self.step(lambda tx, now: tx.due(now))
                for low in range(0, len(due), AT_ONCE):
                    self._check(due[low : low + AT_ONCE])
            finally:
                self.save()

    def _check(self, due: Ints) -> None:
        self.step(lambda tx, now: tx.park(due, now))
        groups = self.tx.table.groups
        asked = {at: self.checks[name] for at, name in enumerate(groups) if name in self.checks}
        if not asked:
            return

        def put_back(tx: Transactions, now: int) -> tuple[Ints, Ints, int]:
            of = tx.table.group[due - tx.table.base]
            _, new = tx.put_back(due[np.isin(of, list(asked))], now)
            return new, tx.table.group[new - tx.table.base].astype(np.int64), tx.log.end

        new, of, end = self.step(put_back)
        # Otherwise a crash could give a number that a producer knows to another half.
        if self._store.core.settings.synchronous:
            self._store.wait(end)
        answers = [self._ask(asked[group], number) for number, group in zip(new.tolist(), of.tolist(), strict=True)]
        yes, no = (new[[answer is decision for answer in answers]] for decision in (True, False))
        if len(yes):
            self.step(lambda tx, now: tx.commit_many(tx.undecided(yes), now))
        if len(no):
            self.step(lambda tx, now: tx.roll_back_many(tx.undecided(no), now))

    def _ask(self, check: Check, number: int) -> bool | None:
        try:
            return check(UndecidedHalf(self, number))
        except Exception as error:  # noqa: BLE001 - the producer's own: it is asked again
            self.trouble = error
            return None

    def save(self) -> None:
        """The cursors move on as far as they can, and are saved once what they rely on is on disk."""

        def advance(tx: Transactions, _now: int) -> int:
            tx.advance()
            return tx.log.end

        self._store.wait(self.step(advance))
        self.step(lambda tx, _now: tx.save())

    # -- the end -----------------------------------------------------------------------------------------------------

    def end(self, flush: Callable[[], object]) -> None:
        """A clean stop: what was decided has its op, and the cursors are saved, past all that is done with.

        No other thread appends any more. `flush`: all is on disk when it returns. Raises DiskFull, Stopped, StoreError.
        """
        self.tx.write_ops(self._store.clock())
        self.tx.move_behind(self._store.clock())
        flush()
        self.tx.save()
