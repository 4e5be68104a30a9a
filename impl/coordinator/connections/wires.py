"""Connections of a client and a coordinator: within a process, or over a socket, by the same few verbs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from typing import Protocol, cast

from gapless.impl.coordinator.connections.frames import OF_THE_CONNECTION, BadFrame, Content, Frames, No, Why, frame

TURN = 32  # frames of one peer that are heard at a time
LINGER = 2.0  # seconds in which a peer may read what was sent before the end


class Peer(Protocol):
    """One end of a connection: what arrives there."""

    def received(self, request: int, content: Content) -> None:
        """A frame has arrived."""

    def lost(self) -> None:
        """The connection is gone, by either side; nothing arrives any more."""


class Wire(Protocol):
    """The other end, as one sees it."""

    def send(self, request: int, content: Content) -> None:
        """A frame goes out; what was sent on a connection that is lost arrives nowhere."""

    def close(self) -> None:
        """Ends the connection; what was sent before arrives."""


class LocalWire:
    """One half of a connection within a process: frames arrive when the loop comes by, in their order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._peer: Peer | None = None  # whom `send` reaches
        self._other: LocalWire | None = None

    @classmethod
    def pair(cls, one: Peer, other: Callable[[Wire], Peer]) -> Wire:
        """Connects two; `other` makes the second, given its wire. Returns the wire of the first."""
        loop = asyncio.get_running_loop()
        mine, its = cls(loop), cls(loop)
        mine._other, its._other = its, mine
        its._peer, mine._peer = one, other(its)
        return mine

    def send(self, request: int, content: Content) -> None:
        """A frame goes out."""
        self._loop.call_soon(self._arrive, request, content)

    def _arrive(self, request: int, content: Content) -> None:
        if self._peer is not None:
            self._peer.received(request, content)

    def close(self) -> None:
        """Ends the connection, for both."""
        self._loop.call_soon(self._end)

    def _end(self) -> None:
        for half in (self, self._other):
            if half is not None and half._peer is not None:  # noqa: SLF001 - the other half is one of us
                peer, half._peer = half._peer, None  # noqa: SLF001
                peer.lost()


class SocketWire(asyncio.Protocol):
    """A connection over a socket. A peer that does not read its answers is not read from either.

    A peer that sends much takes turns with others: some frames at a time.

    `gone`: is called when the connection is gone.
    """

    def __init__(self, peer: Callable[[Wire], Peer], gone: Callable[[], None] | None = None) -> None:
        self._make = peer
        self._gone = gone
        self._lingers: asyncio.TimerHandle | None = None
        self._peer: Peer | None = None
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self._more = False  # frames may have arrived that were not heard yet
        self._full = False  # what goes out is not read
        self._paused = False  # the socket is not read from

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._transport = cast("asyncio.Transport", transport)
        self._peer = self._make(self)

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived."""
        self._frames.add(data)
        if not self._more:
            self._hear()

    def _hear(self) -> None:
        """Some frames that have arrived are heard; if there are more, when others had their turn."""
        self._more = self._full
        if self._more or self._peer is None or self._transport is None or self._transport.is_closing():
            return
        heard = 0
        try:
            with closing(self._frames.whole()) as frames:
                for request, content in islice(frames, TURN):
                    self._peer.received(request, content)
                    heard += 1
        except BadFrame as error:
            self.send(OF_THE_CONNECTION, No(Why.CONFUSED, str(error)))
            self.close()
            return
        self._more = heard == TURN
        if self._more and not self._full:
            asyncio.get_running_loop().call_soon(self._hear)
        self._regulate()

    def _regulate(self) -> None:
        """Read from the socket, or leave what arrives there."""
        if self._transport is None or self._transport.is_closing():
            return
        before, self._paused = self._paused, self._more or self._full
        if before and not self._paused:
            self._transport.resume_reading()
        elif self._paused and not before:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """The other side does not read: it shall not ask for more."""
        self._full = True
        self._regulate()

    def resume_writing(self) -> None:
        """It reads again."""
        self._full = False
        if self._more:
            self._hear()
        else:
            self._regulate()

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection is gone."""
        peer, self._peer = self._peer, None
        if self._lingers is not None:
            self._lingers.cancel()
        if peer is not None:
            peer.lost()
        if self._gone is not None:
            self._gone()

    def send(self, request: int, content: Content) -> None:
        """A frame goes out."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(request, content))

    def close(self) -> None:
        """Ends the connection; what was sent before arrives, if the other side reads it soon."""
        if self._transport is not None and self._lingers is None:
            self._lingers = asyncio.get_running_loop().call_later(LINGER, self.abort)
            self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        if self._transport is not None:
            self._transport.abort()
