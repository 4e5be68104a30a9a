"""Waiting in `asyncio`: what a store has its callers wait for, without a thread for each of them.

A waiting thread has a lock that another thread releases. Here a future of the event loop stands in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

from gapless.impl.dispatch.pool import Pool
from gapless.impl.records.record import Ints, Listed, Messages, Record
from gapless.impl.store.append_result import AppendResult
from gapless.impl.store.core import Core
from gapless.impl.store.group_commit import GroupCommit
from gapless.impl.store.read_calls import ReadCalls


class FutureTurn:
    """A turn that another thread releases; the event loop learns of it. Made in the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.came: asyncio.Future[None] = self._loop.create_future()

    def release(self) -> None:
        """Called by any thread."""
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._come)

    def _come(self) -> None:
        if not self.came.done():
            self.came.set_result(None)


class AsyncCalls(ReadCalls):
    """The calls of a store that wait, as coroutines. Each raises what the call without `_async` does.

    One that is cancelled has no effect on the store: a message that was appended stays, and others go on waiting.
    """

    core: Core
    _pool: Pool
    _commit: GroupCommit

    def append(
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
        allow_system: bool = False,
    ) -> AppendResult:
        """Append a message: `Store.append` as a coroutine."""
        raise NotImplementedError

    def _put_many(self, messages: Messages | Listed, *, allow_system: bool) -> Ints:
        """Append messages: `Store._put_many` as a coroutine."""
        raise NotImplementedError

    def wait(self, position: int) -> None:
        """Wait for a flush: `Store.wait` as a coroutine."""
        raise NotImplementedError

    async def append_async(self, topic: str, queue: int, body: bytes, **more: Any) -> AppendResult:
        """A message at the end of its queue: `append`, with its arguments. Many may wait for one flush together."""
        placed = self.append(topic, queue, body, wait=False, **more)
        if self.core.settings.synchronous:
            await self.wait_async(placed.position + placed.size)
        return placed

    async def append_batch_async(self, messages: Messages | Listed, *, allow_system: bool = False) -> tuple[Ints, Ints]:
        """Many messages at once: `append_batch`."""
        placed = self._put_many(messages, allow_system=allow_system)
        if self.core.settings.synchronous and placed.shape[1]:
            await self.wait_async(int(placed[0, -1] + placed[1, -1]))
        return placed[0], placed[3]

    async def wait_async(self, position: int) -> None:
        """Returns when all before `position` is on disk: `wait`."""
        log = self.core.log
        while position <= log.end and log.flushed < position and not self._commit.ended:
            turn = FutureTurn()
            self._commit.line_up(position, turn)
            if log.flushed < position and not self._commit.ended:
                await turn.came
        self.wait(position)  # at once; or it raises

    async def flush_async(self) -> int:
        """All that was appended is on disk: `flush`."""
        end = self.core.log.end
        await self.wait_async(end)
        return end

    async def wait_for_async(self, topic: str, queue: int, number: int, timeout: float | None = 10.0) -> bool:  # noqa: ASYNC109 - as in threads
        """Returns when consumers see `number`: `wait_for`."""
        return await self.wait_for_any_async({(topic, queue): number}, timeout)

    async def wait_for_any_async(self, queues: Mapping[tuple[str, int], int], timeout: float | None = 10.0) -> bool:  # noqa: ASYNC109 - as in threads
        """Returns when consumers see one of these numbers: `wait_for_any`."""
        self._require_open()
        return await self._visible(lambda: self._any_visible(queues), timeout)

    async def follow_async(
        self,
        queues: Mapping[tuple[str, int], int],
        *,
        tag: str = "",
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> AsyncIterator[Record]:
        """The messages of several queues as they become visible: `follow`."""
        following, before = dict(queues), None
        while not self._closing:
            if following == before and not await self._visible(lambda: self._any_visible(following), timeout):
                return
            before = dict(following)
            for record in self._pass(following, tag):
                yield record
        self._require_own()

    async def _visible(self, until: Callable[[], bool], timeout: float | None) -> bool:  # noqa: ASYNC109 - as above
        deadline = None if timeout is None else monotonic() + timeout
        while not until() and not self._pool.is_ended:
            turn = FutureTurn()
            self._pool.line_up(turn)
            left = None if deadline is None else max(0, deadline - monotonic())
            if not until() and not self._pool.is_ended:
                try:
                    done, _ = await asyncio.wait([turn.came], timeout=left)
                finally:
                    self._pool.step_out(turn)
                if not done:
                    break
        return self._pool.wait(until, timeout=0)  # at once; or it raises
