"""One connection of a client, as a coordinator has it: who it is, what it asks for, and how long it may be silent.

A client is served once it has introduced itself by HELLO and, where there is a shared secret, has proved that it knows
the secret. All of that has a deadline. Afterwards it must send whole frames, be it HEARTBEAT, or it is taken for dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from gapless.impl.coordinator.bounded_log import BoundedLog
from gapless.impl.coordinator.connections.access import CLIENT, SERVER, is_proof, new_nonce, proof
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
from gapless.impl.coordinator.connections.wires import Wire
from gapless.impl.coordinator.core import CoordinatorCore
from gapless.impl.coordinator.errors import ForeignTransaction, OutcomeConflict, UnknownTransaction
from gapless.impl.coordinator.steps import Status
from gapless.impl.coordinator.values import Reply
from gapless.impl.records.errors import Refused, Stopped

HELLO_WITHIN = 10.0  # seconds
IDLE = 60.0  # seconds


class ConnectionTerms(NamedTuple):
    """Conditions for a client. `secret`: which it must know · `hello`, `idle`: seconds; 0: without end."""

    secret: bytes | None = None
    hello: float = 0.0
    idle: float = 0.0


WITHIN_THE_PROCESS = ConnectionTerms()


class SessionHost(Protocol):
    """The coordinator of a session."""

    core: CoordinatorCore
    log: BoundedLog

    def greet(self, session: Session, client: bytes) -> None:
        """A client has connected, perhaps again."""

    def ask(self, session: Session, request: int, content: Content) -> None:
        """A client asks for something. Raises Refused, Stopped."""

    def leave(self, session: Session) -> None:
        """The connection is gone."""


class Session:
    """One connection of a client. `client`: empty until it is served · `name`: of the connection, for the log."""

    def __init__(
        self,
        host: SessionHost,
        wire: Wire,
        terms: ConnectionTerms,
        name: str,
        welcomed: Callable[[], object] | None = None,
    ) -> None:
        """`welcomed`: is called when the client is served."""
        self.client = b""
        self.name = name
        self._host = host
        self._wire: Wire | None = wire
        self._terms = terms
        self._welcomed = welcomed
        self._claimed = b""  # by HELLO
        self._challenge = b""
        self._loop = asyncio.get_running_loop()
        self._heard = self._loop.time()
        self._timer = self._loop.call_later(terms.hello, self._look) if terms.hello else None
        host.log.note("%s: connected", name)

    def received(self, request: int, content: Content) -> None:
        """A frame has come from the client."""
        if self._wire is None:
            return
        self._heard = self._loop.time()
        match content:
            case OpenRequest() | AddName() | End() if self.client:
                self._ask(request, content)
            case Heartbeat() if self.client:
                pass
            case Hello(version, client) if not self._claimed:
                self._meet(request, version, client)
            case Proof(nonce, shown) if self._challenge and not self.client:
                self._judge(request, nonce, shown)
            case _:
                expected = "a request" if self.client else "PROOF" if self._challenge else "HELLO first"
                self._end_with(f"{type(content).__name__} came, expected {expected}")

    def _meet(self, request: int, version: int, client: bytes) -> None:
        """The client says who it is."""
        if version != VERSION:
            self._end_with(f"version {version}, expected {VERSION}: use the same release of gapless on both sides")
            return
        self._claimed = client
        if self._terms.secret is None:
            self._welcome(request, b"")
        else:
            self._challenge = new_nonce()
            self._send(request, Challenge(self._challenge))

    def _judge(self, request: int, nonce: bytes, shown: bytes) -> None:
        """The client proves that it knows the secret, or fails to."""
        of_client, of_server = (
            proof(self._terms.secret or b"", side, self._claimed, self._challenge, nonce) for side in (CLIENT, SERVER)
        )
        if is_proof(shown, of_client):
            self._welcome(request, of_server)
            return
        self._host.log.alert("secret", "%s: does not know the shared secret", self.name)
        self._end_with("the shared secret is another one", Why.SECRET)

    def _welcome(self, request: int, shown: bytes) -> None:
        self.client = self._claimed
        self._look()
        self._host.log.note("%s: is client %s", self.name, self.client[:4].hex())
        self._host.greet(self, self.client)
        if self._welcomed is not None:
            self._welcomed()
        self._send(request, Welcome(VERSION, round(self._terms.idle * 1000), shown))

    def _look(self) -> None:
        """A deadline has passed, or the client is served: if it was heard meanwhile, there is another deadline."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.client:
            self._end_with(f"not introduced within {self._terms.hello:g} s", Why.LATE)
        elif self._terms.idle:
            left = self._heard + self._terms.idle - self._loop.time()
            if left > 0:
                self._timer = self._loop.call_later(left, self._look)
            else:
                self._end_with(f"no frame within {self._terms.idle:g} s", Why.LATE)

    def _ask(self, request: int, content: Content) -> None:
        try:
            self._host.ask(self, request, content)
        except UnknownTransaction as error:
            self._refuse(request, Why.UNKNOWN, error)
        except OutcomeConflict as error:
            self._refuse(request, Why.OTHERWISE, error)
        except ForeignTransaction as error:
            self._refuse(request, Why.FOREIGN, error)
        except Refused as error:
            self._refuse(request, Why.REFUSED, error)
        except Stopped:
            self.end()

    def _refuse(self, request: int, why: Why, error: Refused) -> None:
        self._host.log.note("%s: request %d refused: %s", self.name, request, error)
        self._send(request, No(why, str(error)))

    def give(self, request: int, reply: Reply) -> None:
        """The client has its transaction, or hears why it has none."""
        if self._wire is not None and not reply.problem and reply.status == Status.OPEN:
            self._host.core.hand(reply.number)
        self.answer(request, reply)

    def answer(self, request: int, reply: Reply) -> None:
        """A request is answered, if its client is still there."""
        if self._wire is None:
            return
        self._host.log.note("%s: transaction %d: %s", self.name, reply.number, reply.problem or reply.status.name)
        if reply.problem:
            self._send(request, No(Why.FAILED, reply.problem))
            return
        if Status.COMMITTED <= reply.status:
            with suppress(UnknownTransaction):  # many ended at once, and this one's outcome is not kept any more
                self._host.core.acknowledge(reply.number)
        self._send(request, IsDone(reply.number, reply.status))

    def _send(self, request: int, content: Content) -> None:
        if self._wire is not None:
            self._wire.send(request, content)

    def _end_with(self, sentence: str, why: Why = Why.CONFUSED) -> None:
        self._send(OF_THE_CONNECTION, No(why, sentence))
        self.end(sentence)

    def end(self, why: str = "by the coordinator") -> None:
        """The coordinator ends the connection."""
        if self._wire is not None:
            self._wire.close()
            self.lost(why)

    def lost(self, why: str = "the connection ended") -> None:
        """The connection is gone."""
        if self._wire is None:
            return
        self._wire = None
        if self._timer is not None:
            self._timer.cancel()
        self._host.log.note("%s: closed: %s", self.name, why)
        self._host.leave(self)
