"""A coordinator for `asyncio`: it flushes what waits, aborts what has had its time, and talks to its clients.

All that asks something while the log is flushed goes into the next flush, together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

from gapless.impl.coordinator.coordinator_client import PERMITS, TIMEOUT, CoordinatorClient
from gapless.impl.coordinator.coordinator_core import CoordinatorCore
from gapless.impl.coordinator.coordinator_errors import OutcomeConflict, UnknownTransaction
from gapless.impl.coordinator.coordinator_observer import CoordinatorObserver, PermitObserver
from gapless.impl.coordinator.coordinator_values import CoordinatorSettings, Reply
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
from gapless.impl.coordinator.steps import Key, Status
from gapless.impl.coordinator.wires import LocalWire, Peer, SocketWire, Wire
from gapless.impl.environment.operating_system import Clock, Disk, RealDisk, wall_clock
from gapless.impl.environment.steady_clock import SteadyClock
from gapless.impl.records.errors import Refused, Stopped

TELL_AGAIN_AFTER = 1.0  # seconds: a participant could not be reached
REMEMBER_FOR = 600.0  # seconds that the requests of a client without a connection are known again

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
        self._sessions: dict[_Session, None] = {}
        self._of_client: dict[bytes, _Session] = {}
        self._servers: list[asyncio.Server] = []
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

    async def listen(self, host: str = "127.0.0.1", port: int = 0) -> tuple[str, int]:
        """Clients may connect here; returns the address. `port` 0: any that is free. Raises OSError."""
        server = await self._loop.create_server(lambda: SocketWire(self.accept), host, port, backlog=1024)
        self._servers.append(server)
        host, port = server.sockets[0].getsockname()[:2]
        return host, port

    def accept(self, wire: Wire) -> Peer:
        """A connection is there, over which a client may speak; returns who hears it."""
        session = _Session(self, wire)
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
        for server in self._servers:
            server.close()
        for session in list(self._sessions):
            session.end()
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
                self.core.time_out(number, now)
            self._go_on()

    # -- requests ----------------------------------------------------------------------------------------------------

    def greet(self, session: _Session, client: bytes) -> None:
        """A client has connected, perhaps again: its other connection is no use to it any more."""
        before = self._of_client.get(client)
        self._of_client[client] = session
        if before is not None:
            before.end()

    def ask(self, session: _Session, request: int, content: Content) -> None:
        """A client asks for something. Raises Refused, Stopped."""
        answer = partial(session.answer, request)
        match content:
            case OpenRequest(below, life):
                self.core.forget(session.client, min(below, request))
                self.core.ask(Key(session.client, request), life, self._clock(), partial(session.give, request))
            case AddName(number, name):
                self.core.add(number, name, answer)
            case End(number, commit):
                self.core.decide(number, commit=commit, waiter=answer)
        self._go_on()

    def leave(self, session: _Session) -> None:
        """A connection is gone. Its client may come again, and its requests are known for a while."""
        self._sessions.pop(session, None)
        if self._of_client.get(session.client) is session:
            del self._of_client[session.client]
            if not self._closing:
                self._loop.call_later(REMEMBER_FOR, self._forget, session.client)

    def _forget(self, client: bytes) -> None:
        if client not in self._of_client:
            self.core.forget(client)


class _Session:
    """One connection of a client, as the coordinator has it."""

    def __init__(self, coordinator: Coordinator, wire: Wire) -> None:
        self.client = b""
        self._coordinator = coordinator
        self._wire: Wire | None = wire

    def received(self, request: int, content: Content) -> None:
        """A frame has come from the client."""
        if self._wire is None:
            return
        match content:
            case Hello(version, client) if not self.client:
                if version != VERSION:
                    self._end_with(f"version {version}, expected {VERSION}")
                    return
                self.client = client
                self._coordinator.greet(self, client)
                self._wire.send(request, Welcome(VERSION))
            case OpenRequest() | AddName() | End() if self.client:
                self._ask(request, content)
            case _:
                expected = "a request" if self.client else "HELLO first"
                self._end_with(f"{type(content).__name__} came, expected {expected}")

    def _ask(self, request: int, content: Content) -> None:
        try:
            self._coordinator.ask(self, request, content)
        except UnknownTransaction as error:
            self._send(request, No(Why.UNKNOWN, str(error)))
        except OutcomeConflict as error:
            self._send(request, No(Why.OTHERWISE, str(error)))
        except Refused as error:
            self._send(request, No(Why.REFUSED, str(error)))
        except Stopped:
            self.end()

    def give(self, request: int, reply: Reply) -> None:
        """The client has its transaction, or hears why it has none."""
        if self._wire is not None and not reply.problem and reply.status == Status.OPEN:
            self._coordinator.core.hand(reply.number)
        self.answer(request, reply)

    def answer(self, request: int, reply: Reply) -> None:
        """A request is answered, if its client is still there."""
        if self._wire is None:
            return
        if reply.problem:
            self._send(request, No(Why.FAILED, reply.problem))
            return
        if Status.COMMITTED <= reply.status:
            with suppress(UnknownTransaction):  # many ended at once, and this one's outcome is not kept any more
                self._coordinator.core.acknowledge(reply.number)
        self._send(request, IsDone(reply.number, reply.status))

    def _send(self, request: int, content: Content) -> None:
        if self._wire is not None:
            self._wire.send(request, content)

    def _end_with(self, sentence: str) -> None:
        self._send(OF_THE_CONNECTION, No(Why.CONFUSED, sentence))
        self.end()

    def end(self) -> None:
        """The coordinator ends the connection."""
        if self._wire is not None:
            self._wire.close()
            self.lost()

    def lost(self) -> None:
        """The connection is gone."""
        self._wire = None
        self._coordinator.leave(self)
