"""The transactions of a run with threads: a producer that begins and decides halves, and is asked about the rest.

Rounds of checks come when the senders' clock says so, in the sender's own thread: the same seed gives the same store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gapless.impl.records.errors import DiskFull
from gapless.impl.store.store import Store
from gapless.impl.store.transaction_service import TransactionService
from gapless.impl.workloads.producers import GROUP, SETTINGS, BegunHalf, Producers, key_prefix
from gapless.impl.workloads.trial import Trial
from gapless.impl.workloads.workload import BEGIN, PlannedSend, Result, messages_of

BY_HAND = replace(SETTINGS, check_interval=1 << 31, op_batch_interval=1 << 31)


class ThreadedTransactions:
    """The producers of one run, over a store that is open."""

    def __init__(self, store: Store, trial: Trial) -> None:
        self._producers = Producers(trial.client)
        self._group = store.transactions(GROUP, lambda half: self._producers.ask(half.record), BY_HAND)
        assert store._service is not None  # noqa: S101, SLF001 - there it is
        self._service: TransactionService = store._service  # noqa: SLF001 - its rounds come when we say so
        self._service.tx.key_prefix = key_prefix(trial.workload.seed, 0)
        self._checked = BEGIN

    def send(self, sends: Sequence[PlannedSend], now: int) -> None:
        """These are sent as halves and decided, but for those that are left open. Then a round, if one is due.

        Raises StoreError, for what a producer can do nothing about.
        """
        if sends:
            halves = self._begin(sends)
            self._decide([half for half in halves if half.decision == "commit"])
            self._decide([half for half in halves if half.decision == "rollback"])
        if now - self._checked >= SETTINGS.check_interval:
            self._checked = now
            self.check()

    def _begin(self, sends: Sequence[PlannedSend]) -> list[BegunHalf]:
        """Those that are there."""
        tx = self._service.tx
        halves = self._producers.begin(sends, tx)
        try:
            if len(sends) == 1:
                send = sends[0]
                begun = self._group.begin(send.topic, send.queue, send.body, properties=send.properties).half
                places = [(begun.number, begun.position)]
            else:
                numbers = self._group.begin_batch(messages_of(sends)).tolist()
                places = [(number, tx.half(number).position) for number in numbers]
        except BaseException as error:
            self._producers.not_begun(halves, error)
            if isinstance(error, DiskFull):
                return []
            raise
        for half, (number, position) in zip(halves, places, strict=True):
            self._producers.answered(half, "ok", number, position)
        return halves

    def _decide(self, halves: Sequence[BegunHalf]) -> None:
        """All of them the same way. Where the disk is full they are asked back."""
        if not halves:
            return
        result: Result = "unknown"
        for half in halves:
            half.decided = True
        try:
            numbers = np.array([half.number for half in halves])
            if halves[0].decision == "rollback":
                self._group.roll_back_batch(numbers, wait=halves[0].durably)
            elif len(halves) == 1:
                self._group.commit(halves[0].number)
            else:
                self._group.commit_batch(numbers)
            result = "ok"
        except DiskFull:
            result = "fail"
        finally:
            for half in halves:
                self._producers.ended(half, result)

    def check(self) -> None:
        """A round of checks. Raises StoreError."""
        self._service.check_round()
