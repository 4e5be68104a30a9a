"""Transactions for programs: consumers see a message only if the work that belongs to it has succeeded.

with store.transactions(group="billing", check=was_it_paid) as tx:
    with tx.begin("orders", 0, b"paid"):
        charge_the_card()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from gapless.impl.records.errors import Refused, StoreError
from gapless.impl.records.input_checks import sound
from gapless.impl.records.record import Ints, Listed, Messages
from gapless.impl.store.transaction_service import Check, TransactionService
from gapless.impl.store.upkeep.maintenance import Maintenance
from gapless.impl.transactions.settings import (
    CommitResult,
    HalfPlace,
    RolledBack,
    TransactionCounts,
    TransactionSettings,
)
from gapless.impl.transactions.transactions import Transactions

T = TypeVar("T")


class TransactionCalls(Maintenance):
    """The calls of a store that are about transactions."""

    _appending: Lock
    _service: TransactionService | None = None

    def _locked(self, what: Callable[[], T]) -> T:
        """Take a step while no thread appends. Raises Stopped if the store takes nothing any more."""
        with self._appending:
            if self._closing or self._error or self.core.dispatch.error:
                self._raise_stopped()
            answer = what()
        return answer  # noqa: RET504 - an interrupt before a `return` within `with` would leave the lock taken

    def transactions(
        self, group: str, check: Check | None = None, settings: TransactionSettings | None = None
    ) -> ProducerGroup:
        """Transactions of a group of producers, to be used with `with`.

        `check` is asked about halves that were left undecided, in a thread of the store's own: True commits, False
        rolls back, None means that it is not known yet, and so does whatever it raises. It is asked again and again,
        and after the last time the half is set aside. Without it no producer is asked, and nothing counted. `settings`:
        those of all transactions of this store, given by the first caller.
        Raises Refused where the group is open already, or the settings are others; Damaged, StoreError, Stopped.
        """
        self._require_open()
        self._cursors.require_sound()

        def opened() -> TransactionService:
            if self._service is None:
                found = Transactions.open(self.core.log, self.core.queues, self._cursors, settings, self.clock())
                self._service = TransactionService(self, found)
            return self._service

        service = self._locked(opened)
        if settings is not None and service.tx.settings != settings:
            raise Refused(f"transactions have {service.tx.settings}, expected {settings}: one store has one kind")
        service.start()
        return ProducerGroup(self, service, group, check)

    def _end_transactions(self) -> None:
        """A clean stop of them, while nothing else happens any more. Raises StoreError."""
        if self._service is not None:
            self._service.wake()
            with self._appending:
                self._service.end(self.core.flush)


class ProducerGroup:
    """Producers that know of one another's transactions. Any thread may call anything."""

    def __init__(self, store: TransactionCalls, service: TransactionService, name: str, check: Check | None) -> None:
        if name in service.checks:
            raise Refused(f"group {name!r} is open already, and its producers are asked; close it first")
        self.name = name
        self._store = store
        self._service = service
        if check is not None:
            service.checks[name] = check

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the checks, and write an op that names all decided halves. Undecided halves stay so."""
        self._service.checks.pop(self.name, None)
        if not self._store._closing:  # noqa: SLF001 - a store that is closed has done it itself
            self._service.step(lambda tx, now: tx.write_op(now))

    # -- one by one --------------------------------------------------------------------------------------------------

    def begin(
        self,
        topic: str,
        queue: int,
        body: bytes,
        *,
        tag: str = "",
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        born: int | None = None,
        wait: bool = True,
    ) -> OpenTransaction:
        """A half: the message is in the store, and no consumer sees it. In a synchronous store it is on disk.

        Use it with `with`: leaving the block commits, raising rolls back. What is given is as for `append`; `wait`: for
        the disk; without it a crash before the commit may leave no half to ask about. Raises Refused, DiskFull,
        Stopped: then there is no half, and the block is not entered.
        """
        given = {"TAGS": tag, **(properties or {})} if tag else properties or {}
        half = self._service.step(
            lambda tx, now: tx.prepare(topic, queue, body, given, self.name, now, flag=flag, born=born)
        )
        if wait:
            self._wait(half.position + half.size)
        return OpenTransaction(self, half)

    def commit(self, number: int) -> CommitResult:
        """The half becomes a message that consumers see, once, however often this is called.

        In a synchronous store it is on disk when this returns. Raises Refused where it was decided otherwise or set
        aside, DiskFull, Stopped.
        """
        done = self._service.step(lambda tx, now: tx.commit(number, now))
        self._wait(done.position + 1)
        return done

    def roll_back(self, number: int, *, wait: bool = False) -> RolledBack:
        """The message will never be seen. What says so is an op, which is written within a few seconds with others.

        `wait`: it is written at once, and on disk when this returns. The answer says whether it is: until then a crash
        undoes the rollback, and the producer is asked. Raises as `commit` does.
        """
        end = self._roll_back(lambda tx, now: tx.roll_back(number, now), durably=wait)
        if wait:
            self._store.wait(end)
        return RolledBack(number, wait)

    def _roll_back(self, how: Callable[[Transactions, int], None], *, durably: bool) -> int:
        """It is rolled back, and if that is wanted, the op is in the log: where the log ends then."""

        def rolled_back(tx: Transactions, now: int) -> int:
            how(tx, now)
            if durably:
                tx.write_ops(now)
            return tx.log.end

        return self._service.step(rolled_back)

    def _wait(self, position: int) -> None:
        if self._store.core.settings.synchronous:
            self._store.wait(position)
        else:
            self._store._pool.nudge()  # noqa: SLF001 - dispatch has something to do

    # -- many at once ------------------------------------------------------------------------------------------------

    def begin_batch(self, messages: Messages | Listed) -> Ints:
        """Many halves at once, in columns or as a list: their numbers, int64 [n]. Raises as `Store.append_batch`."""
        columns = sound(messages if isinstance(messages, Messages) else Messages.of_list(messages))
        numbers, end = self._service.step(lambda tx, now: (tx.prepare_many(columns, self.name, now)[0], tx.log.end))
        self._wait(end)
        return numbers

    def commit_batch(self, numbers: Ints) -> Ints:
        """Many halves become messages: their positions, int64 [n]. Refused is refused whole; else as `commit`."""
        positions, end = self._service.step(lambda tx, now: (tx.commit_many(numbers, now), tx.log.end))
        self._wait(end)
        return positions

    def roll_back_batch(self, numbers: Ints, *, wait: bool = False) -> None:
        """Many halves will never be seen. Refused is refused whole; else as `roll_back`."""
        end = self._roll_back(lambda tx, now: tx.roll_back_many(numbers, now), durably=wait)
        if wait:
            self._store.wait(end)

    # -- in asyncio --------------------------------------------------------------------------------------------------

    async def begin_async(self, topic: str, queue: int, body: bytes, **more: Any) -> OpenTransaction:
        """Begin a transaction: `begin` for `async with await tx.begin_async(…)`."""
        begun = self.begin(topic, queue, body, wait=False, **more)
        await self._wait_async(begun.half.position + begun.half.size)
        return begun

    async def commit_async(self, number: int) -> CommitResult:
        """Commit: `commit` as a coroutine."""
        done = self._service.step(lambda tx, now: tx.commit(number, now))
        await self._wait_async(done.position + 1)
        return done

    async def roll_back_async(self, number: int, *, wait: bool = False) -> RolledBack:
        """Roll back: `roll_back` as a coroutine."""
        end = self._roll_back(lambda tx, now: tx.roll_back(number, now), durably=wait)
        if wait:
            await self._store.wait_async(end)
        return RolledBack(number, wait)

    async def _wait_async(self, position: int) -> None:
        if self._store.core.settings.synchronous:
            await self._store.wait_async(position)
        else:
            self._store._pool.nudge()  # noqa: SLF001 - as above

    # -- how it is doing ---------------------------------------------------------------------------------------------

    def counts(self) -> TransactionCounts:
        """Counts of all groups since the store was opened: ops, checks, and the use of the cache."""
        return self._service.step(lambda tx, _now: tx.counts())

    @property
    def trouble(self) -> BaseException | None:
        """The last error of a check or an op; both are tried again."""
        return self._service.trouble


class OpenTransaction:
    """A half that is not decided yet. Leaving its block commits it, raising rolls it back. `half`: where it is."""

    def __init__(self, group: ProducerGroup, half: HalfPlace) -> None:
        self._group = group
        self.half = half
        self._is_decided = False

    def commit(self) -> CommitResult:
        """Commit, as `ProducerGroup.commit`."""
        done = self._group.commit(self.half.number)
        self._is_decided = True
        return done

    def roll_back(self, *, wait: bool = False) -> RolledBack:
        """Roll back, as `ProducerGroup.roll_back`."""
        done = self._group.roll_back(self.half.number, wait=wait)
        self._is_decided = True
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_decided:
            return
        if error is None:
            self.commit()
            return
        try:
            self.roll_back()
        except StoreError as failed:  # what the block raised counts
            error.add_note(f"half {self.half.number} could not be rolled back, and its producer is asked: {failed}")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None or self._is_decided:
            self.__exit__(kind, error, trace)
        else:
            await self._group.commit_async(self.half.number)
            self._is_decided = True
