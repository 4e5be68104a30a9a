"""Connections that take their time and break: between the clients of a test and whichever coordinator runs now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gapless.impl.coordinator.connections.frames import Content
from gapless.impl.coordinator.connections.wires import Peer, Wire
from gapless.properties.simulation.choices import Choose

Overhear = Callable[[int, Content], object]
DELAYS = (0,) * 12 + (1, 1, 2, 5, 20, 40, 90, 100, 101)  # ms that a frame takes: some are as long as a timeout


class SlowWire:
    """One half of a connection: frames arrive in their order, each after a while, or never."""

    def __init__(self, choose: Choose, overhear: Overhear | None = None) -> None:
        self.peer: Peer | None = None  # whom `send` reaches
        self._other: SlowWire | None = None
        self._choose = choose
        self._overhear = overhear
        self._loop = asyncio.get_running_loop()
        self._last = 0.0  # when the last frame arrives

    @classmethod
    def pair(cls, one: Peer, other: Callable[[Wire], Peer], choose: Choose, overhear: Overhear) -> SlowWire:
        """Connects a client with a coordinator; returns the client's half. `overhear`: what the coordinator sends."""
        mine, its = cls(choose), cls(choose, overhear)
        mine._other, its._other = its, mine
        its.peer, mine.peer = one, other(its)
        return mine

    def send(self, request: int, content: Content) -> None:
        """A frame goes out."""
        if self._overhear is not None:
            self._overhear(request, content)
        delay = DELAYS[self._choose(len(DELAYS))] / 1000
        self._last = max(self._last, self._loop.time() + delay)
        self._loop.call_at(self._last, self._arrive, request, content)

    def _arrive(self, request: int, content: Content) -> None:
        if self.peer is not None:
            self.peer.received(request, content)

    def close(self) -> None:
        """Ends the connection."""
        self._loop.call_at(max(self._last, self._loop.time()), self.cut)

    def cut(self) -> None:
        """The connection breaks; frames that are on their way are lost."""
        for half in (self, self._other):
            if half is not None and half.peer is not None:
                peer, half.peer = half.peer, None
                peer.lost()
