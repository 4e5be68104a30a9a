"""Transactions behind the protocol of `docs/black-box.md`: one group of producers with scripted answers.

A half is known by its number.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import numpy as np

from gapless.impl.records.errors import Refused
from gapless.impl.store.store import Store
from gapless.impl.store.transaction_service import UndecidedHalf
from gapless.impl.transactions import names
from gapless.impl.transactions.settings import TransactionSettings

GROUP = "producers"
NEVER = 1 << 31  # ms between two rounds of checks
ALWAYS = (1 << 15) - 1  # checks
NO_PROPERTIES: dict[str, str] = {}
DECISIONS = {"commit": True, "roll_back": False}


class SpeakingTransactions:
    """The transactions of one store. `answers`: of halves by the names of their messages, where producers know."""

    def __init__(self, store: Store, wanted: dict[str, int], answers: dict[str, str]) -> None:
        self._store = store
        self._answers = answers
        self.settings = TransactionSettings(
            max_checks=wanted.get("max_checks") or ALWAYS,
            check_interval=wanted.get("ask_every") or NEVER,
            transaction_timeout=0,
            op_batch_bytes=200,
            op_batch_interval=20,
        )
        self._group = store.transactions(GROUP, self._asked, self.settings)

    def _asked(self, half: UndecidedHalf) -> bool | None:
        name = half.body.split(b".", 1)[0].decode()
        return DECISIONS.get(self._answers.get(name, ""))

    def begin(self, request: dict[str, Any]) -> list[int]:
        """The halves' numbers. One is begun by itself, and several as a batch."""
        messages = [(topic, queue, body, NO_PROPERTIES) for topic, queue, body in request["messages"]]
        if len(messages) == 1:
            topic, queue, body, _ = messages[0]
            return [self._group.begin(topic, queue, body).half.number]
        return [int(number) for number in self._group.begin_batch(messages)]

    def commit(self, request: dict[str, Any]) -> list[int]:
        """The numbers of the messages in their queues; -1 where one has expired."""
        halves = request["halves"]
        if len(halves) == 1:
            return [self._group.commit(halves[0]).number]
        return [self._number_at(int(at)) for at in self._group.commit_batch(np.array(halves, np.int64))]

    def _number_at(self, position: int) -> int:
        with suppress(Refused):
            return self._store.core.log.at(position).number
        return -1

    def roll_back(self, request: dict[str, Any]) -> bool:
        """True if it is durable."""
        halves, wait = request["halves"], request.get("durably", False)
        if len(halves) == 1:
            return self._group.roll_back(halves[0], wait=wait).durable
        self._group.roll_back_batch(np.array(halves, np.int64), wait=wait)
        return bool(wait)

    def check(self, _request: dict[str, Any]) -> None:
        """Every half that is there and undecided is asked about, or set aside."""
        time.sleep(0.002)  # a half of this very millisecond would be left alone
        self._group._service.check_round()  # noqa: SLF001 - a program has it done by itself

    def undecided(self, _request: dict[str, Any]) -> int:
        """The number of undecided halves."""
        return self._group.counts().undecided


OWN_TOPICS = {names.HALF_TOPIC, names.OP_TOPIC, names.PARKED_TOPIC}
"""Topics that no producer has written to."""
