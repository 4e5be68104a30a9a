"""A coordinator for `asyncio`: it flushes what waits, aborts what has had its time, and talks to its clients.

All that asks something while the log is flushed goes into the next flush, together.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

from gapless.impl.coordinator.bounded_log import BoundedLog
from gapless.impl.coordinator.client import PERMITS, TIMEOUT, CoordinatorClient
from gapless.impl.coordinator.connections.access import check_secret, permitted
from gapless.impl.coordinator.connections.frames import AddName, Content, End, OpenRequest
from gapless.impl.coordinator.connections.session import (
    HELLO_WITHIN,
    IDLE,
    WITHIN_THE_PROCESS,
    ConnectionTerms,
    Session,
)
from gapless.impl.coordinator.connections.socket_server import SocketServer
from gapless.impl.coordinator.connections.wires import LocalWire, Peer, Wire
from gapless.impl.coordinator.core import CoordinatorCore
from gapless.impl.coordinator.observer import CoordinatorObserver, PermitObserver
from gapless.impl.coordinator.steps import Key, Status
from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.impl.environment.operating_system import Clock, Disk, RealDisk, wall_clock
from gapless.impl.environment.steady_clock import SteadyClock
from gapless.impl.records.errors import Stopped

TELL_AGAIN_AFTER = 1.0  # seconds: a participant could not be reached
REMEMBER_FOR = 600.0  # seconds that the requests of a client without a connection are known again
REMEMBER_MOST = 100_000  # requests of all clients without a connection: those of clients that left first are forgotten

Tell = Callable[[int, bool, Sequence[str]], Awaitable[None]]
"""Tells those who take part in a transaction, by their names, whether it is committed. Tried again while it raises."""


class Coordinator:
    """A coordinator that runs, in the loop that opened it.

    `failed`: done when the disk failed while it flushed; open it again.
    """

    def __init__(self, core: CoordinatorCore, clock: Clock, tell: Tell | None, *, apart: bool) -> None:
        self.core = core
        self.failed = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        # By the loop's time: a clock that is set ends no transaction early, and none late.
        self._clock = SteadyClock(clock, lambda: round(1000 * self._loop.time()), core.newest_time)
        self._tell = tell
        self._apart = ThreadPoolExecutor(1, "gapless-coordinator") if apart else None
        self._sessions: dict[Session, None] = {}
        self._of_client: dict[bytes, Session] = {}
        self._gone: dict[
            bytes, tuple[float, int]
        ] = {}  # clients that left: until when, and how many requests, are known
        self._gone_requests = 0  # of all of them
        self._forgetting: asyncio.TimerHandle | None = None
        self._server: SocketServer | None = None
        self.log = BoundedLog(self._loop.time)
        self._flushing: asyncio.Task[None] | None = None
        self._telling: dict[int, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._not_before = 0.0  # by the loop's time: the disk was full, and what the coordinator does itself waits
        self._go_on()

    @classmethod
    async def open(
        cls,
        where: Path | str | Disk,
        settings: CoordinatorSettings | None = None,
        *,
        tell: Tell | None = None,
        observer: CoordinatorObserver | None = None,
        clock: Clock = wall_clock,
    ) -> Self:
        """Opens the coordinator of a folder, or makes a new one there; on another disk it flushes without a thread.

        `tell`: see `Tell`; without it, participants must ask · `clock`: ms since 1970, looked at once; from then on the
        loop's time counts. Raises InUse; Damaged, NotAStore; StoreError, OSError.
        """
        apart = isinstance(where, Path | str)
        disk: Disk = RealDisk(where) if isinstance(where, Path | str) else where
        return cls(CoordinatorCore(disk, settings, observer), clock, tell, apart=apart)

    async def __aenter__(self) -> Self:
        """The coordinator."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close it."""
        await self.close()

    # -- clients -----------------------------------------------------------------------------------------------------

    async def client(
        self,
        *,
        permits: int = PERMITS,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - of every request, not of this call
        observer: PermitObserver | None = None,
    ) -> CoordinatorClient:
        """A client within this process. Raises Stopped, Refused."""

        async def connect(peer: Peer) -> Wire:
            if self._closing:
                raise ConnectionRefusedError("the coordinator was closed")
            return LocalWire.pair(peer, self.accept)

        client = CoordinatorClient(connect, permits=permits, timeout=timeout, observer=observer)
        try:
            await client.connect()
        except ConnectionRefusedError as error:
            raise Stopped(str(error)) from error
        return client

    async def listen(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        secret: bytes | None = None,
        tls: ssl.SSLContext | None = None,
        hello: float = HELLO_WITHIN,
        idle: float = IDLE,
    ) -> tuple[str, int]:
        """Clients may connect here; returns the address. `port` 0: any that is free.

        `secret`: clients must know it · `tls`: a server's context; other machines reach no address without one of both
        · `hello`, `idle`: seconds in which a client introduces itself, and sends its next frame. Raises Refused,
        OSError.
        """
        terms = ConnectionTerms(None if secret is None else check_secret(secret), hello, idle)
        guarded = secret is not None or tls is not None
        found = await self._loop.run_in_executor(None, partial(permitted, host, port, guarded=guarded))
        if self._server is None:
            self._server = SocketServer(self.log)

        def accept(wire: Wire, name: str, welcomed: Callable[[], object]) -> Peer:
            return self.accept(wire, terms, name, welcomed)

        return self._server.listen(found, accept, tls, hello)

    def accept(
        self,
        wire: Wire,
        terms: ConnectionTerms = WITHIN_THE_PROCESS,
        name: str = "a client of this process",
        welcomed: Callable[[], object] | None = None,
    ) -> Peer:
        """A connection is there, over which a client may speak; returns who hears it."""
        session = Session(self, wire, terms, name, welcomed)
        self._sessions[session] = None
        return session

    async def close(self) -> None:
        """No client is heard or answered any more; what waits is written, and the log is closed."""
        if self._closing:
            return
        self._closing = True
        self._let_go()
        for task in list(self._telling.values()):
            task.cancel()
        if self._flushing is not None:
            await self._flushing
        with suppress(Stopped):
            self.core.close()
        if self._apart is not None:
            self._apart.shutdown()
        if not self.failed.done():
            self.failed.cancel()

    def abandon(self) -> None:
        """Stop as if the process had died here: without a write, or a reply. The folder may be opened again."""
        self._closing = True
        for task in (self._flushing, *self._telling.values()):
            if task is not None:
                task.cancel()
        self._let_go()
        if self.core.running:
            self.core.fail()

    def _let_go(self) -> None:
        """No client is heard any more, and no timer runs."""
        if self._server is not None:
            self._server.close()
        for session in list(self._sessions):
            session.end("the coordinator stops")
        if self._forgetting is not None:
            self._forgetting.cancel()
        if self._timer is not None:
            self._timer.cancel()

    # -- steps -------------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Begin all that may be done now: ends without participants, reports to participants, a flush, the timer."""
        if not self.core.running or self._closing:
            return
        if self._not_before <= self._loop.time():
            self._end_all()
        if self._flushing is None and self.core.waiting:
            self._flushing = self._loop.create_task(self._flush())
        self._answer()
        self._set_timer()

    def _end_all(self) -> None:
        """Finish transactions whose end has begun, or report the decision to their participants."""
        for number, to, names in self.core.undelivered():
            if not names or self._tell is None:
                self.core.finish(number)
            elif number not in self._telling:
                topics = [name.decode(errors="replace") for name in names]
                self._telling[number] = self._loop.create_task(self._tell_all(number, to, topics))

    async def _tell_all(self, number: int, to: Status, names: Sequence[str]) -> None:
        """Those who take part know what was decided: without end, for the slot is taken until they do."""
        while True:
            try:
                if self._tell is not None:
                    await self._tell(number, to == Status.COMMITTING, names)
                break
            except Exception:  # noqa: BLE001 - whatever it is, only another try helps
                await asyncio.sleep(TELL_AGAIN_AFTER)
        del self._telling[number]
        if self.core.running:
            self.core.finish(number)
            self._go_on()

    async def _flush(self) -> None:
        try:
            while self.core.begin_flush():
                if self._apart is not None:
                    await self._loop.run_in_executor(self._apart, self.core.sync)
                else:
                    await asyncio.sleep(0)
                    self.core.sync()
                self.core.end_flush()
                self._answer()
                self._end_all()
            if self.core.taken_back:
                self.core.taken_back = 0
                self._not_before = self._loop.time() + TELL_AGAIN_AFTER
                self._loop.call_at(self._not_before, self._go_on)
        except Exception as error:  # noqa: BLE001 - whatever it is, no step may be reported as durable
            self._fail(error)
        self._flushing = None
        self._go_on()

    def _fail(self, error: Exception) -> None:
        """Stop all reports: pending steps may be in the log, or not."""
        self.core.fail()
        for session in list(self._sessions):
            session.end()
        self.failed.set_result(Stopped(f"the log could not be flushed ({error}): open it again"))

    def _answer(self) -> None:
        for reply in self.core.replies():
            if callable(reply.waiter):
                reply.waiter(reply)

    def _set_timer(self) -> None:
        deadline = self.core.next_deadline()
        if deadline is None or self._closing:
            return
        at = max(self._loop.time() + max((deadline - self._clock()) / 1000, 0.001), self._not_before)
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        if self.core.running:
            now = self._clock()
            for number in self.core.due(now):
                self.log.note("transaction %d has had its time: it is aborted", number)
                self.core.time_out(number, now)
            self._go_on()

    # -- requests ----------------------------------------------------------------------------------------------------

    def greet(self, session: Session, client: bytes) -> None:
        """A client has connected, perhaps again: its other connection is no use to it any more."""
        before = self._of_client.get(client)
        self._of_client[client] = session
        self._gone_requests -= self._gone.pop(client, (0.0, 0))[1]
        if before is not None:
            before.end("its client has another connection")

    def ask(self, session: Session, request: int, content: Content) -> None:
        """A client asks for something. Raises Refused, Stopped."""
        answer = partial(session.answer, request)
        match content:
            case OpenRequest(below, life, owner):
                self.core.forget(session.client, min(below, request))
                key, give = Key(session.client, request), partial(session.give, request)
                if not self.core.ask(key, life, self._clock(), give, owner):
                    self.log.note("%s: request %d met silence: %d are active", session.name, request, self.core.active)
                    return  # nothing has changed: a flood of such requests costs no more than it must
            case AddName(number, token, name):
                self.core.check_owner(number, token)
                self.core.add(number, name, answer)
            case End(number, token, commit):
                self.core.check_owner(number, token)
                self.core.decide(number, commit=commit, waiter=answer)
        self._go_on()

    def leave(self, session: Session) -> None:
        """A connection is gone. Its client may come again, and its requests are known for a while."""
        self._sessions.pop(session, None)
        if self._of_client.get(session.client) is session:
            del self._of_client[session.client]
            if not self._closing and (requests := self.core.remembered(session.client)):
                self._gone[session.client] = (self._loop.time() + REMEMBER_FOR, requests)
                self._gone_requests += requests
                self._forget()

    def _forget(self) -> None:
        """Forget the requests of clients that left long ago, or first where these are too many."""
        while self._gone:
            client, (until, requests) = next(iter(self._gone.items()))
            if until > self._loop.time() and self._gone_requests <= REMEMBER_MOST:
                if self._forgetting is None:
                    self._forgetting = self._loop.call_at(until, self._time_to_forget)
                return
            del self._gone[client]
            self._gone_requests -= requests
            self.core.forget(client)

    def _time_to_forget(self) -> None:
        self._forgetting = None
        self._forget()
