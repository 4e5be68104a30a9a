"""A client of a coordinator, for `asyncio`: permits, timeouts, late answers, and connections that are lost.

A request takes its permit before it goes out and keeps it until it is answered or given up, whatever becomes of the
connection: when there is one again, all requests that are out are sent again, with their numbers, in their order. The
coordinator knows these again, so that none is done twice.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from gapless.impl.coordinator.coordinator_errors import LogFull, OutcomeConflict, TimedOut, UnknownTransaction
from gapless.impl.coordinator.coordinator_observer import PermitObserver
from gapless.impl.coordinator.frames import (
    OF_THE_CONNECTION,
    VERSION,
    AddName,
    Content,
    End,
    Hello,
    IsDone,
    No,
    OpenRequest,
    Welcome,
    Why,
)
from gapless.impl.coordinator.permits import Permits
from gapless.impl.coordinator.steps import check_name
from gapless.impl.coordinator.wires import Peer, SocketWire, Wire
from gapless.impl.records.errors import Refused, Stopped, StoreError

PERMITS = 1000
TIMEOUT = 30.0  # seconds, from when a request has its permit
LIFE = 60.0  # seconds that a transaction may stay open
AGAIN_AFTER = (0.1, 6.0)  # seconds: how soon a connection is tried again at first, and at most

Connect = Callable[[Peer], Awaitable[Wire]]

_ERRORS: dict[Why, type[StoreError]] = {
    Why.UNKNOWN: UnknownTransaction,
    Why.OTHERWISE: OutcomeConflict,
    Why.REFUSED: Refused,
    Why.FAILED: LogFull,
    Why.CONFUSED: StoreError,
}


class _Call(NamedTuple):
    content: Content
    answer: asyncio.Future[IsDone]


class CoordinatorClient:
    """A client; `connect_client` makes one that is connected, and so does `Coordinator.client`.

    `permits`: who holds them, and who waits. `late`: answers that came to requests which had been given up.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        permits: int = PERMITS,
        timeout: float = TIMEOUT,
        observer: PermitObserver | None = None,
    ) -> None:
        self.permits = Permits(permits, round(timeout * 1000), observer)
        self.late = 0
        self._connect = connect
        self._id = os.urandom(16)
        self._loop = asyncio.get_running_loop()
        self._calls: dict[int, _Call] = {}  # requests that are out, or whose callers wait, the eldest first
        self._wire: Wire | None = None
        self._ready = False  # the coordinator has welcomed us
        self._welcome = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._again: asyncio.Task[None] | None = None
        self._delay = AGAIN_AFTER[0]
        self._wrong = "there is none yet"  # with the connection
        self._closed = False

    # -- what a program asks for -------------------------------------------------------------------------------------

    async def begin(self, life: float = LIFE) -> int:
        """A new transaction's number; it is aborted if it is still open after `life` seconds.

        Raises TimedOut: at the coordinator's limit there is no answer; Refused, LogFull, Stopped.
        """
        self._check_open()
        return (await self._ask(lambda: OpenRequest(next(iter(self._calls)), round(life * 1000)))).number

    async def add(self, number: int, name: str) -> None:
        """A topic or a subscription takes part in the transaction. Raises as `commit`; Refused: no such name."""
        self._check_open()
        data = name.encode()
        check_name(data)
        await self._ask(lambda: AddName(number, data))

    async def commit(self, number: int) -> None:
        """The transaction is committed, for ever, once it returns. To ask again does no harm.

        Raises OutcomeConflict, UnknownTransaction; TimedOut: it may be committed, ask again; LogFull, Stopped.
        """
        await self._ask(lambda: End(number, commit=True))

    async def abort(self, number: int) -> None:
        """The transaction is aborted, for ever, once it returns. Raises as `commit`."""
        await self._ask(lambda: End(number, commit=False))

    @asynccontextmanager
    async def transaction(self, life: float = LIFE) -> AsyncIterator[int]:
        """A transaction that is committed at the end of the block, and aborted if that raises. Raises as `commit`."""
        number = await self.begin(life)
        try:
            yield number
        except BaseException:
            with suppress(StoreError):  # what the block raised says more
                await self.abort(number)
            raise
        await self.commit(number)

    async def close(self) -> None:
        """End all calls that wait for an answer or for a permit: none will come."""
        if self._closed:
            return
        self._closed = True
        if self._again is not None:
            self._again.cancel()
            with suppress(asyncio.CancelledError):
                await self._again
        while self.permits.in_use:
            self._end(next(iter(self.permits.in_use)), Stopped("the client was closed"))
        self._set_timer()
        self.permits.rest()
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    # -- requests ----------------------------------------------------------------------------------------------------

    async def _ask(self, make: Callable[[], Content]) -> IsDone:
        self._check_open()
        number, has_permit = self.permits.ask(self._now())
        self._calls[number] = call = _Call(Welcome(0), self._loop.create_future())
        self._calls[number] = call._replace(content=make())
        if has_permit:
            self._send(number)
        return await call.answer

    def _send(self, number: int) -> None:
        """The request has its permit. Where its caller has gone meanwhile, it gives it back at once."""
        call = self._calls[number]
        if call.answer.cancelled():
            self._end(number, Stopped("its caller has gone"))
            return
        if self._ready and self._wire is not None:
            self._wire.send(number, call.content)
        self._set_timer()

    def _end(self, number: int, answer: IsDone | StoreError) -> None:
        """The request is answered: its permit goes to the next, and then its caller hears of it."""
        woken = self.permits.reply(number, self._now())
        if woken is None:
            self.late += 1
            return
        self._tell(number, answer, woken)

    def _tell(self, number: int, answer: IsDone | StoreError, woken: list[int]) -> None:
        call = self._calls.pop(number)
        for other in woken:
            self._send(other)
        if call.answer.done():
            return
        if isinstance(answer, IsDone):
            call.answer.set_result(answer)
        else:
            call.answer.set_exception(answer)

    def _time_out(self) -> None:
        self._timer = None
        now = self._now()
        for number in self.permits.due(now):
            content = self._calls[number].content
            woken = self.permits.time_out(number, now)
            connection = "connected" if self._ready else f"not connected: {self._wrong}"
            self._tell(
                number,
                TimedOut(
                    f"request {number} ({type(content).__name__}) was not answered within "
                    f"{self.permits.timeout / 1000:g} s; {connection}; {len(self.permits.waiting)} wait for a permit"
                ),
                woken,
            )
        self._set_timer()

    def _set_timer(self) -> None:
        """One timer runs, for the eldest request; if that is answered, the timer finds a younger one."""
        due = self.permits.next_timeout()
        if self._closed and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif due is not None and self._timer is None:
            self._timer = self._loop.call_at(max(due / 1000, self._loop.time() + 0.0005), self._time_out)

    def _now(self) -> int:
        return int(self._loop.time() * 1000)

    def _check_open(self) -> None:
        if self._closed:
            raise Stopped("the client was closed; make another")

    # -- the connection ----------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Connects for the first time. Raises OSError: no server is there; StoreError: it is no coordinator."""
        self._wire = await self._connect(self)
        self._wire.send(0, Hello(VERSION, self._id))
        await self._welcome.wait()
        if not self._ready:
            raise StoreError(f"no coordinator answers there: {self._wrong}")

    async def _connect_again(self) -> None:
        while not self._closed:
            await asyncio.sleep(self._delay)
            self._delay = min(2 * self._delay, AGAIN_AFTER[1])
            try:
                self._wire = await self._connect(self)
            except OSError as error:
                self._wrong = error.strerror or str(error)
                continue
            self._wire.send(0, Hello(VERSION, self._id))
            return

    def received(self, request: int, content: Content) -> None:
        """A frame has come from the coordinator."""
        match content:
            case Welcome():
                self._ready = True
                self._welcome.set()
                self._delay = AGAIN_AFTER[0]
                for number in list(self.permits.in_use):
                    if self._wire is not None and number in self._calls:
                        self._wire.send(number, self._calls[number].content)
            case No(_, sentence) if request == OF_THE_CONNECTION:
                self._wrong = sentence
            case IsDone():
                self._answered(request, content)
            case No(why, sentence):
                self._answered(request, _ERRORS[why](sentence))
            case _:
                self._wrong = f"it sends {type(content).__name__}, as a client does"
                if self._wire is not None:
                    self._wire.close()

    def _answered(self, request: int, answer: IsDone | StoreError) -> None:
        try:
            self._end(request, answer)
        except Refused as error:
            self._wrong = str(error)
            if self._wire is not None:
                self._wire.close()

    def lost(self) -> None:
        """The connection is gone."""
        was_ready, self._ready, self._wire = self._ready, False, None
        if self._closed:
            return
        self.permits.disconnect()
        if not was_ready and not self._welcome.is_set():
            self._wrong = self._wrong if self._wrong != "there is none yet" else "the connection was closed"
            self._welcome.set()  # the first one wakes `connect`
            return
        if was_ready:
            self._wrong = "it was lost"
        self._again = self._loop.create_task(self._connect_again())


async def connect_client(
    host: str,
    port: int,
    *,
    permits: int = PERMITS,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - of every request, not of this call
    observer: PermitObserver | None = None,
) -> CoordinatorClient:
    """A client of the coordinator that listens there. Raises OSError, StoreError."""

    async def connect(peer: Peer) -> Wire:
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(lambda: SocketWire(lambda _wire: peer), host, port))[1]

    client = CoordinatorClient(connect, permits=permits, timeout=timeout, observer=observer)
    await client.connect()
    return client
