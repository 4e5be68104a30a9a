"""A client of a coordinator, for `asyncio`: permits, timeouts, late answers, and connections that are lost.

A request takes its permit before it goes out and keeps it until it is answered or given up, whatever becomes of the
connection: when there is one again, all requests that are out are sent again, with their numbers, in their order. The
coordinator knows these again, so that none is done twice.

A client remembers the tokens of the transactions that it began; for one of another client, the token is given.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from gapless.impl.coordinator.connections.access import (
    CLIENT,
    SERVER,
    TOKEN,
    check_secret,
    digest_of,
    is_proof,
    new_nonce,
    new_token,
    proof,
)
from gapless.impl.coordinator.connections.frames import (
    OF_THE_CONNECTION,
    VERSION,
    AddName,
    Challenge,
    Content,
    End,
    Heartbeat,
    Hello,
    IsDone,
    No,
    OpenRequest,
    Proof,
    Welcome,
    Why,
)
from gapless.impl.coordinator.connections.wires import Peer, SocketWire, Wire
from gapless.impl.coordinator.errors import (
    ForeignTransaction,
    LogFull,
    OutcomeConflict,
    TimedOut,
    UnknownTransaction,
    WrongSecret,
)
from gapless.impl.coordinator.observer import PermitObserver
from gapless.impl.coordinator.permits import Permits
from gapless.impl.coordinator.steps import check_name
from gapless.impl.records.errors import Refused, Stopped, StoreError

PERMITS = 1000
TIMEOUT = 30.0  # seconds, from when a request has its permit
LIFE = 60.0  # seconds that a transaction may stay open
GREETING = 10.0  # seconds in which a coordinator welcomes a client
HEARTBEATS = 3  # in the time after which the coordinator ends a connection without frames
REMEMBERED = 100_000  # tokens, the newest: so many outcomes a coordinator keeps
NO_TOKEN = bytes(TOKEN)
AGAIN_AFTER = (0.1, 6.0)  # seconds: how soon a connection is tried again at first, and at most

Connect = Callable[[Peer], Awaitable[Wire]]

_ERRORS: dict[Why, type[StoreError]] = {
    Why.UNKNOWN: UnknownTransaction,
    Why.OTHERWISE: OutcomeConflict,
    Why.REFUSED: Refused,
    Why.FAILED: LogFull,
    Why.CONFUSED: StoreError,
    Why.FOREIGN: ForeignTransaction,
    Why.SECRET: WrongSecret,
    Why.LATE: StoreError,
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
        secret: bytes | None = None,
    ) -> None:
        """`secret`: the coordinator must know it, too. Raises Refused."""
        self.permits = Permits(permits, round(timeout * 1000), observer)
        self.late = 0
        self._connect = connect
        self._id = os.urandom(16)
        self._secret = None if secret is None else check_secret(secret)
        self._tokens: dict[int, bytes] = {}  # of the transactions that this client began
        self._loop = asyncio.get_running_loop()
        self._calls: dict[int, _Call] = {}  # requests that are out, or whose callers wait, the eldest first
        self._wire: Wire | None = None
        self._ready = False  # the coordinator has welcomed us
        self._welcome = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._pulse: asyncio.TimerHandle | None = None  # ends a connection without a welcome; then, the next HEARTBEAT
        self._expected = b""  # the coordinator's proof
        self._again: asyncio.Task[None] | None = None
        self._delay = AGAIN_AFTER[0]
        self._wrong = "there is none yet"  # with the connection
        self._problem: StoreError | None = None  # with the first one
        self._closed = False

    # -- what a program asks for -------------------------------------------------------------------------------------

    async def begin(self, life: float = LIFE) -> int:
        """A new transaction's number; it is aborted if it is still open after `life` seconds.

        Raises TimedOut: at the coordinator's limit there is no answer; Refused: it may not stay open so long; LogFull,
        Stopped.
        """
        self._check_open()
        token, time = new_token(), round(life * 1000)
        if not 0 <= time < 2**63:
            raise Refused(f"a life of {life} s, expected a positive number")
        owner = digest_of(token)
        number = (await self._ask(lambda: OpenRequest(next(iter(self._calls)), time, owner))).number
        self._tokens[number] = token
        if len(self._tokens) > REMEMBERED:
            del self._tokens[next(iter(self._tokens))]
        return number

    def token(self, number: int) -> str:
        """The token of a transaction that this client began: with it, another client may end it, too.

        Raises ForeignTransaction.
        """
        if number not in self._tokens:
            raise ForeignTransaction(f"transaction {number} was not begun by this client, or very long ago")
        return self._tokens[number].hex()

    async def add(self, number: int, name: str, *, token: str | None = None) -> None:
        """A topic or a subscription takes part in the transaction. Raises as `commit`; Refused: no such name."""
        self._check_open()
        data = name.encode()
        check_name(data)
        content = AddName(number, self._token_of(number, token), data)
        await self._ask(lambda: content)

    async def commit(self, number: int, *, token: str | None = None) -> None:
        """The transaction is committed, for ever, once it returns. To ask again does no harm.

        `token`: of a transaction that another client began. Raises OutcomeConflict, UnknownTransaction;
        ForeignTransaction: it is not this client's; TimedOut: it may be committed, ask again; LogFull, Stopped.
        """
        content = End(number, self._token_of(number, token), commit=True)
        await self._ask(lambda: content)

    async def abort(self, number: int, *, token: str | None = None) -> None:
        """The transaction is aborted, for ever, once it returns. Raises as `commit`."""
        content = End(number, self._token_of(number, token), commit=False)
        await self._ask(lambda: content)

    def _token_of(self, number: int, token: str | None) -> bytes:
        """The token by which a transaction is named; one that fits nothing where none is known."""
        if not 0 <= number < 2**64:
            raise UnknownTransaction(f"transaction {number} is not known: it never began")
        if token is None:
            return self._tokens.get(number, NO_TOKEN)
        try:
            found = bytes.fromhex(token)
        except ValueError:
            found = b""
        if len(found) != TOKEN:
            raise Refused(f"a token of {len(token)} letters, expected {2 * TOKEN} hexadecimal digits")
        return found

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
        self._beat(0, None)
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
        """Connects for the first time.

        Raises OSError: no server is there; WrongSecret; StoreError: it is no coordinator; TimedOut: no answer came.
        """
        try:
            async with asyncio.timeout(GREETING):
                self._greet(await self._connect(self))
                await self._welcome.wait()
        except TimeoutError as error:
            if error.errno is not None:  # the system's own
                raise
            await self.close()
            raise TimedOut(f"no coordinator answers there within {GREETING:g} s") from None
        if not self._ready:
            raise self._problem or StoreError(f"no coordinator answers there: {self._wrong}")

    def _greet(self, wire: Wire) -> None:
        """A connection is there: it is given up where no welcome comes."""
        self._wire, self._expected = wire, b""
        wire.send(0, Hello(VERSION, self._id))
        self._beat(GREETING, lambda: self._leave("it does not answer HELLO"))

    def _beat(self, after: float, what: Callable[[], None] | None) -> None:
        """Do this next, instead of what was to be done by the connection's own timer."""
        if self._pulse is not None:
            self._pulse.cancel()
        self._pulse = self._loop.call_later(after, what) if what is not None else None

    def _keep_alive(self, every: float) -> None:
        if self._wire is not None:
            self._wire.send(0, Heartbeat())
            self._beat(every, lambda: self._keep_alive(every))

    def _leave(self, why: str) -> None:
        """The connection is of no use: end it."""
        self._wrong = why
        if self._wire is not None:
            self._wire.close()

    async def _connect_again(self) -> None:
        while not self._closed:
            await asyncio.sleep(self._delay)
            self._delay = min(2 * self._delay, AGAIN_AFTER[1])
            try:
                self._greet(await self._connect(self))
            except OSError as error:
                self._wrong = error.strerror or str(error)
                continue
            return

    def received(self, request: int, content: Content) -> None:
        """A frame has come from the coordinator."""
        match content:
            case Challenge(nonce) if not self._ready:
                self._prove(nonce)
            case Welcome(_, idle, shown) if not self._ready:
                self._enter(idle / 1000, shown)
            case No(why, sentence) if request == OF_THE_CONNECTION:
                self._wrong = sentence
                self._problem = WrongSecret(sentence) if why == Why.SECRET else None
            case IsDone():
                self._answered(request, content)
            case No(why, sentence):
                self._answered(request, _ERRORS[why](sentence))
            case _:
                self._leave(f"it sends {type(content).__name__}, as a client does")

    def _prove(self, challenge: bytes) -> None:
        if self._secret is None:
            self._distrust("the coordinator asks for a shared secret: give it as `secret`")
        elif self._wire is not None:
            nonce = new_nonce()
            mine, its = (proof(self._secret, side, self._id, challenge, nonce) for side in (CLIENT, SERVER))
            self._expected = its
            self._wire.send(0, Proof(nonce, mine))

    def _enter(self, idle: float, shown: bytes) -> None:
        """The coordinator welcomes us; requests that are out are sent again."""
        if self._secret is not None and not (self._expected and is_proof(shown, self._expected)):
            self._distrust("what answers there does not know the shared secret")
            return
        self._ready = True
        self._welcome.set()
        self._delay = AGAIN_AFTER[0]
        self._beat(idle / HEARTBEATS, (lambda: self._keep_alive(idle / HEARTBEATS)) if idle else None)
        for number in list(self.permits.in_use):
            if self._wire is not None and number in self._calls:
                self._wire.send(number, self._calls[number].content)

    def _distrust(self, why: str) -> None:
        self._problem = WrongSecret(why)
        self._leave(why)

    def _answered(self, request: int, answer: IsDone | StoreError) -> None:
        try:
            self._end(request, answer)
        except Refused as error:
            self._leave(str(error))

    def lost(self) -> None:
        """The connection is gone."""
        was_ready, self._ready, self._wire = self._ready, False, None
        self._beat(0, None)
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
    secret: bytes | None = None,
    tls: ssl.SSLContext | None = None,
) -> CoordinatorClient:
    """A client of the coordinator that listens there.

    `secret`: which both sides must know (`read_secret`) · `tls`: a context as `ssl.create_default_context` makes it.
    Raises OSError, StoreError, TimedOut.
    """

    async def connect(peer: Peer) -> Wire:
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(lambda: SocketWire(lambda _wire: peer), host, port, ssl=tls))[1]

    client = CoordinatorClient(connect, permits=permits, timeout=timeout, observer=observer, secret=secret)
    await client.connect()
    return client
