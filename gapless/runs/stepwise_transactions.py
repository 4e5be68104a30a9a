"""The transactions of a stepwise run: producers decide, and are asked about what they and crashes left open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gapless.impl.records.errors import DiskFull, Refused
from gapless.impl.records.input_checks import sound
from gapless.impl.store.groups import GroupCursors
from gapless.impl.transactions.transactions import AT_ONCE, Transactions
from gapless.impl.workloads.producers import GROUP, ROUNDS, SETTINGS, BegunHalf, Producers, key_prefix
from gapless.impl.workloads.workload import BEGIN, PlannedSend, Result, messages_of

if TYPE_CHECKING:
    import random

    from gapless.impl.environment.operating_system import Disk
    from gapless.impl.records.record import Ints
    from gapless.impl.store.core import Core
    from gapless.impl.workloads.trial import Trial

Answer = Callable[[Result], None]


class StepwiseTransactions:
    """Steps that a run chooses among.

    `wait`: has an answer given once the log is flushed up to a position, or `unknown` where it never is · `flush`:
    flushes the log, and gives the answers that are due.
    """

    def __init__(
        self,
        trial: Trial,
        chance: random.Random,
        wait: Callable[[int, Answer], None],
        flush: Callable[[Core], None],
    ) -> None:
        self._trial = trial
        self._chance = chance
        self._wait = wait
        self._flush = flush
        self._producers = Producers(trial.client)
        self._at_work: list[BegunHalf] = []  # their producers decide some time
        self._checked = BEGIN
        self._lives = 0
        self._tx: Transactions

    def open(self, core: Core, disk: Disk) -> None:
        """They are found again. Raises StoreError."""
        self._tx = Transactions.open(core.log, core.queues, GroupCursors(disk, core.queues.all), SETTINGS)
        self._tx.key_prefix = key_prefix(self._trial.workload.seed, self._lives)
        self._lives += 1

    def begin(self, sends: Sequence[PlannedSend], now: int) -> None:
        """These are sent as halves. Raises DiskFull, Stopped."""
        tx = self._tx
        halves = self._producers.begin(sends, tx)
        try:
            if len(sends) == 1:
                send = sends[0]
                number, position, _ = tx.prepare(send.topic, send.queue, send.body, send.properties, GROUP, now)
                places = [(number, position)]
            else:
                numbers, positions = tx.prepare_many(sound(messages_of(sends)), GROUP, now)
                places = list(zip(numbers.tolist(), positions.tolist(), strict=True))
        except BaseException as error:
            self._producers.not_begun(halves, error)
            raise
        for half, (number, position) in zip(halves, places, strict=True):
            self._wait(tx.log.end, partial(self._answered, half, number, position))

    def _answered(self, half: BegunHalf, number: int, position: int, result: Result) -> None:
        place = (number, position) if result == "ok" else (None, None)
        self._producers.answered(half, result, *place)
        if result == "ok" and half.decision != "unknown":
            self._at_work.append(half)

    def decide(self, now: int) -> None:
        """Some producer is done with its work. Raises DiskFull, Stopped: the first of them asks again."""
        if not self._at_work:
            return
        half = self._at_work.pop(self._chance.randrange(len(self._at_work)))
        half.decided = True
        try:
            self._name_its_newest_version(half)
            durable = self._decide(half, now)
        except Refused:  # it was set aside
            self._producers.ended(half, "fail")
        except DiskFull:
            self._producers.ended(half, "fail")
            self._at_work.append(half)
            raise
        except BaseException:
            self._producers.ended(half, "unknown")
            raise
        else:
            if durable:
                self._wait(self._tx.log.end, partial(self._producers.ended, half))
            else:
                self._producers.ended(half, "ok")

    def _name_its_newest_version(self, half: BegunHalf) -> None:
        """Let a decision count for the newest version, also if a crash came before the producer was asked."""
        half.number = self._tx.table.newest(half.number)
        half.position = self._tx.half(half.number).position

    def _decide(self, half: BegunHalf, now: int) -> bool:
        """Apply the decision; True if the answer waits for the disk."""
        if half.decision == "commit":
            self._tx.commit(half.number, now)
            return True
        self._tx.roll_back(half.number, now)
        if half.durably:
            self._tx.write_ops(now)
        return half.durably

    def write_op(self, now: int) -> None:
        """An op is written if one is due. Raises DiskFull, Stopped."""
        if self._tx.op_is_due(now):
            self._tx.write_op(now)

    def check(self, core: Core, now: int) -> None:
        """A round of checks, if one is due. Raises DiskFull, Stopped."""
        if now - self._checked >= SETTINGS.check_interval:
            self._checked = now
            self._check_all(core, now)

    def _check_all(self, core: Core, now: int) -> None:
        tx = self._tx
        tx.write_op(now)
        due = tx.due(now)
        for low in range(0, len(due), AT_ONCE):
            some = due[low : low + AT_ONCE]
            tx.park(some, now)
            _, new = tx.put_back(some, now)
            self._flush(core)  # so that no producer knows of a version that a crash could take
            self._ask(new, now)
        tx.advance()
        self._flush(core)
        tx.save()

    def _ask(self, new: Ints, now: int) -> None:
        answers = [self._producers.ask(self._tx.half(number)) for number in new.tolist()]
        yes, no = (np.array([answer is wanted for answer in answers], np.bool_) for wanted in (True, False))
        self._tx.commit_many(new[yes], now)
        self._tx.roll_back_many(new[no], now)

    def finish(self, core: Core, now: int, *, rest: bool) -> int:
        """A clean stop; returns what time it is then. `rest`: after all is decided or set aside.

        Raises DiskFull, Stopped.
        """
        if rest:
            while self._at_work:
                self.decide(now)
            for _ in range(ROUNDS):
                now += SETTINGS.check_interval
                self._check_all(core, now)
        self._tx.write_ops(now)
        self._tx.advance()
        self._flush(core)
        self._tx.save()
        return now
