"""The sockets on which a coordinator listens, and the connections that come in: no more than there are descriptors for.

Some descriptors are left for the log and for the program around it. When all others are in use, a connection whose
client has not introduced itself makes room for a new one: the eldest from the address that has most of them, so that a
flood from one machine leaves the others time. Where every client is served, new ones wait until a connection ends. Few
are taken at a time, so that those that wait for a welcome are heard before they have to make room.
"""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gapless.impl.coordinator.bounded_log import BoundedLog
from gapless.impl.coordinator.connections.access import Address
from gapless.impl.coordinator.connections.wires import Peer, SocketWire, Wire
from gapless.impl.records.errors import Refused

BACKLOG = 1024
MOST = 10_000  # connections at once
RESERVED = 24  # descriptors for the log and the program
AT_A_TIME = 4  # connections that are taken before those that are there are heard
PAUSE = 1.0  # seconds in which no connection is taken after the system refused one
NOT_HERE = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}

Accept = Callable[[Wire, str, Callable[[], object]], Peer]
"""Makes the session of a connection: its wire, the name for the log, and what to call when the client is served."""


class SocketServer:
    """All connections of one coordinator over sockets. `most`: at once · `dropped`: those that made room for others."""

    def __init__(self, log: BoundedLog, most: int | None = None) -> None:
        """Raises Refused: there are too few descriptors."""
        self.most = room() if most is None else most
        self.dropped = 0
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._sockets: dict[socket.socket, Callable[[], None]] = {}  # and what to do when a connection waits there
        self._silent: dict[str, dict[int, asyncio.Task[None]]] = {}  # by address and number: not served yet
        self._wires: dict[int, SocketWire] = {}
        self._number = 0
        self._paused = False

    def listen(
        self, found: list[Address], accept: Accept, tls: ssl.SSLContext | None, handshake: float
    ) -> tuple[str, int]:
        """Clients may connect at these addresses; returns the first. `handshake`: seconds for TLS's. Raises OSError."""
        made: list[socket.socket] = []
        problem: OSError | None = None
        for family, (host, port) in found:
            try:
                made.append(_listening(family, host, port or (made[0].getsockname()[1] if made else 0)))
            except OSError as error:
                problem = error
                if error.errno not in NOT_HERE:
                    break
        if problem is not None and (not made or problem.errno not in NOT_HERE):
            for one in made:
                one.close()
            raise problem
        for one in made:
            self._sockets[one] = partial(self._take_some, one, accept, tls, handshake)
            if not self._paused:
                self._loop.add_reader(one, self._sockets[one])
        host, port = made[0].getsockname()[:2]
        return host, port

    def close(self) -> None:
        """No connection comes in any more, and those that are not served yet are ended."""
        self._paused = True
        for one in self._sockets:
            self._loop.remove_reader(one)
            one.close()
        self._sockets.clear()
        while self._silent:
            self._drop()

    # -- connections -------------------------------------------------------------------------------------------------

    def _take_some(
        self, listening: socket.socket, accept: Accept, tls: ssl.SSLContext | None, handshake: float
    ) -> None:
        """Connections wait: some are taken, and then those before them are heard."""
        for _ in range(AT_A_TIME):
            if self._paused or not self._take(listening, accept, tls, handshake):
                return

    def _take(self, listening: socket.socket, accept: Accept, tls: ssl.SSLContext | None, handshake: float) -> bool:
        """Take a connection, if one waits and there is room; whether it was so."""
        if len(self._wires) >= self.most:
            self._log.alert("full", "%d connections, as many as there is room for", len(self._wires))
            if not self._silent:
                self._pause()
                return False
        try:
            connection, address = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as error:  # no descriptor or no memory, for the program around has taken them
            self._log.alert("accept", "no connection can be taken: %s", error.strerror)
            if self._silent:
                self._drop()
            self._pause()
            self._loop.call_later(PAUSE, self._go_on)
            return False
        number, self._number = self._number, self._number + 1
        host, name = str(address[0]), f"connection {number} from {address[0]}:{address[1]}"
        welcomed, gone = partial(self._forget, host, number), partial(self._end, host, number)
        wire = SocketWire(lambda wire: accept(wire, name, welcomed), gone)
        if len(self._wires) >= self.most:
            self._drop()
        self._wires[number] = wire
        task = self._loop.create_task(self._attach(wire, connection, tls, handshake))
        task.add_done_callback(partial(self._attached, host, number, connection))
        self._silent.setdefault(host, {})[number] = task
        return True

    async def _attach(
        self, wire: SocketWire, connection: socket.socket, tls: ssl.SSLContext | None, handshake: float
    ) -> None:
        connection.setblocking(False)  # noqa: FBT003 - the only way to say it
        limit = handshake if tls is not None and handshake else None
        await self._loop.connect_accepted_socket(lambda: wire, connection, ssl=tls, ssl_handshake_timeout=limit)

    def _attached(self, host: str, number: int, connection: socket.socket, task: asyncio.Task[None]) -> None:
        """The connection is there, or came to nothing: the client went away, failed at TLS, or made room."""
        problem = "it made room" if task.cancelled() else task.exception()
        if problem is not None:
            connection.close()
            self._end(host, number)
            self._log.note("connection %d from %s: not made: %s", number, host, str(problem) or type(problem).__name__)

    def _forget(self, host: str, number: int) -> asyncio.Task[None] | None:
        """The connection makes room for no other any more: its client is served, or it is gone."""
        silent = self._silent.get(host, {})
        task = silent.pop(number, None)
        if not silent:
            self._silent.pop(host, None)
        return task

    def _drop(self) -> None:
        """End a connection that is not served."""
        host = max(self._silent, key=lambda each: len(self._silent[each]))
        number = next(iter(self._silent[host]))
        task, wire = self._forget(host, number), self._wires.pop(number)
        self.dropped += 1
        if task is not None:
            task.cancel()
        wire.abort()

    def _end(self, host: str, number: int) -> None:
        """A connection is gone: there is room for another."""
        self._forget(host, number)
        if self._wires.pop(number, None) is not None:
            self._go_on()

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            for one in self._sockets:
                self._loop.remove_reader(one)

    def _go_on(self) -> None:
        if self._paused:
            self._paused = False
            for one, take in self._sockets.items():
                self._loop.add_reader(one, take)


def room() -> int:
    """The connections for which this process has descriptors. Raises Refused: there are none."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST
    left = min(MOST, soft - len(list(Path("/proc/self/fd").iterdir())) - RESERVED)
    if left < 1:
        raise Refused(f"a process may open {soft} files here (ulimit -n): that leaves no room for connections")
    return left


def _listening(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises OSError."""
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setblocking(False)  # noqa: FBT003 - as above
        made.bind((host, port))
        made.listen(BACKLOG)
    except BaseException:
        made.close()
        raise
    return made
