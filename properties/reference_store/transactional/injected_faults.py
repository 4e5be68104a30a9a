"""Faults to plant in the implementation's transactions; those in brackets are like defects that brokers really had.

A number with a hash is an issue of RocketMQ's; docs/rocketmq-transactions.md tells of most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from gapless.impl.transactions import copy_kernel, recovery, transactions
from gapless.impl.transactions.half_cache import HalfCache
from gapless.impl.transactions.half_table import COMMITTED, NOT_NAMED, PARKED, REPLACED, ROLLED_BACK, UNDECIDED
from gapless.impl.transactions.op_batcher import OpBatcher
from gapless.impl.transactions.transactions import Transactions

Injection = Callable[[], AbstractContextManager[Any]]


def _before(name: str, change: Callable[..., None]) -> Injection:
    """Something is done before a step."""
    kept = getattr(Transactions, name)

    def planted(self: Transactions, *args: Any, **more: Any) -> Any:
        change(self, *args)
        return kept(self, *args, **more)

    return lambda: patch.object(Transactions, name, planted)


def _after(where: Any, name: str, change: Callable[[Any, Any], Any]) -> Injection:
    """The answer is another, or something is done after a step. `change`: from the object and the answer."""
    kept = getattr(where, name)

    def planted(self: Any, *args: Any, **more: Any) -> Any:
        return change(self, kept(self, *args, **more))

    return lambda: patch.object(where, name, planted)


def _forget_decision(status: int) -> Callable[..., None]:
    def change(self: Transactions, number: int, *_more: object) -> None:
        at = number - self.table.base
        if 0 <= at < self.table.end - self.table.base and self.table.status[at] == status:
            self.table.status[at] = UNDECIDED

    return change


def _without_the_last(_: OpBatcher, answer: tuple[list[int], bytes]) -> tuple[list[int], bytes]:
    numbers, _body = answer
    return numbers, b"".join(b"%d," % number for number in numbers[:-1] or numbers)


def _spend_all(self: Transactions, *_more: object) -> None:
    self.table.checks += 1


def _old_stays_open(self: Transactions, answer: Any) -> Any:
    self.table.status[self.table.status == REPLACED] = UNDECIDED
    return answer


def _nothing_waits(self: OpBatcher, _answer: None) -> None:
    if self.size > 7:
        self._waiting.clear()
        self._size = 0


def _leave_out(self: HalfCache, number: int) -> bytes | None:
    return self._records.get(number)


def _newest_out(self: HalfCache, _answer: None) -> None:
    if len(self._records) == self.capacity > 1:
        self._records.popitem(last=True)


def _ahead(self: Transactions, _answer: None) -> None:
    self.half_cursor = min(self.half_cursor + 1, self.table.end)


def _ops_ahead(self: Transactions, _answer: None) -> None:
    if self.reaches:
        self.op_cursor += 1


FAULTS: dict[str, Injection] = {
    "a second commit writes a second final [#5574]": _before("commit", _forget_decision(COMMITTED)),
    "a commit after a rollback is taken [#8158]": _before("commit", _forget_decision(ROLLED_BACK)),
    "a commit after the half was set aside is taken [#8158]": _before("commit", _forget_decision(PARKED)),
    "a rollback after a commit is taken": _before("roll_back", _forget_decision(COMMITTED)),
    "an old version stays open next to the new one [#n11]": _after(Transactions, "put_back", _old_stays_open),
    "an op does not name the last of its halves": _after(OpBatcher, "batch", _without_the_last),
    "what waits is dropped when it gets long [#batching]": _after(OpBatcher, "enter", _nothing_waits),
    "an op comes a second late [#10199]": lambda: patch.object(
        OpBatcher, "is_due", lambda self, now: len(self) > 0 and (self.is_full or now - self.since >= 4000)
    ),
    "a full batch is joined [#op-size]": lambda: patch.object(
        OpBatcher, "is_full", property(lambda self: self.size > self.limit + 3)
    ),
    "the half cursor passes an open half": _after(Transactions, "advance", _ahead),
    "the op cursor passes an op that is needed [#7240]": _after(Transactions, "advance", _ops_ahead),
    "cursors are saved before what they rely on is safe": lambda: patch.object(
        Transactions, "can_be_saved", property(lambda _: True)
    ),
    "the counter of a version is not raised": lambda: patch.object(transactions, "AS_VERSION", copy_kernel.AS_COPY),
    "a half is set aside with checks left": _before("park", _spend_all),
    "a hit leaves its half in the cache": lambda: patch.object(HalfCache, "take", _leave_out),
    "the newest half leaves the cache": _after(HalfCache, "put", _newest_out),
    "after a start a final without op stays so [#op-crash]": lambda: patch.object(recovery, "NOT_NAMED", NOT_NAMED + 9),
    "after a start rollbacks are forgotten [#8158]": lambda: patch.object(recovery, "ROLLED_BACK", UNDECIDED),
    "after a start versions are all open [#n11]": lambda: patch.object(recovery, "REPLACED", UNDECIDED),
}
