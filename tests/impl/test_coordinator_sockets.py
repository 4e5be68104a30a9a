"""A coordinator at the limit of its connections, and on TLS: who is served stays served, whatever strangers do."""

import asyncio
import errno
import logging
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gapless.impl.coordinator.bounded_log import LOGGER, BoundedLog
from gapless.impl.coordinator.client import CoordinatorClient, connect_client
from gapless.impl.coordinator.connections import socket_server, wires
from gapless.impl.coordinator.connections.frames import VERSION, Frames, Hello, OpenRequest, Welcome, frame
from gapless.impl.coordinator.connections.socket_server import RESERVED, SocketServer, room
from gapless.impl.coordinator.coordinator import Coordinator
from gapless.impl.coordinator.errors import WrongSecret
from gapless.impl.records.errors import Refused, StoreError
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from tests.support.command_line import ROOT

PEM = ROOT / "tests/support/loopback.pem"
SECRET = b"0123456789abcdef0123456789abcdef"
AT_MOST = 60.0  # seconds: what never ends is given up then, and fails


def on_loopback(main: Callable[[Coordinator, SocketServer], Awaitable[None]], most: int = 6) -> None:
    """Run with a coordinator that has room for few connections."""

    async def run() -> None:
        async with await Coordinator.open(SimulatedDisk()) as coordinator:
            coordinator._server = server = SocketServer(coordinator.log, most)
            async with asyncio.timeout(AT_MOST):
                await main(coordinator, server)

    asyncio.run(run())


def connected(address: tuple[str, int]) -> socket.socket:
    """A connection without a word."""
    return socket.create_connection(address, AT_MOST)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a connection makes true."""
    while not condition():  # noqa: ASYNC110 - what sockets do is not ours to signal
        await asyncio.sleep(0.001)


async def work(client: CoordinatorClient) -> None:
    """A transaction of a client that is served."""
    await client.commit(await client.begin())


def test_silent_connections_make_room_for_clients_and_clients_for_none(caplog: pytest.LogCaptureFixture) -> None:
    async def run(coordinator: Coordinator, server: SocketServer) -> None:
        address = await coordinator.listen(hello=AT_MOST)
        first = await connect_client(*address)
        silent = []
        for _ in range(50):
            silent.append(connected(address))
            await work(first)
        await until(lambda: server.dropped == 50 + 1 - server.most)
        second = await connect_client(*address)
        await work(second)
        await work(first)
        assert (first.permits.cuts, second.permits.cuts) == (0, 0)
        assert (server.dropped, len(server._wires)) == (52 - server.most, server.most)
        for each in silent:
            each.close()
        await until(lambda: len(server._wires) == 2)
        await first.close()
        await second.close()

    with caplog.at_level(logging.WARNING, LOGGER.name):
        on_loopback(run)
    assert caplog.messages == ["6 connections, as many as there is room for"]


def test_a_flood_from_one_address_leaves_others_their_time() -> None:
    async def run(coordinator: Coordinator, server: SocketServer) -> None:
        address = await coordinator.listen(hello=AT_MOST)
        slow = socket.create_connection(address, AT_MOST, source_address=("127.0.0.2", 0))
        silent = [connected(address) for _ in range(50)]
        await until(lambda: server.dropped == 51 - server.most)
        slow.setblocking(False)  # noqa: FBT003 - the only way to say it
        slow.sendall(frame(0, Hello(VERSION, bytes(16))))
        async with asyncio.timeout(AT_MOST):
            frames = Frames()
            frames.add(await asyncio.get_running_loop().sock_recv(slow, 4096))
        ((_, welcome),) = frames.whole()
        assert isinstance(welcome, Welcome)
        for each in (slow, *silent):
            each.close()

    on_loopback(run)


def test_where_all_are_served_others_wait_until_one_leaves() -> None:
    async def run(coordinator: Coordinator, server: SocketServer) -> None:
        address = await coordinator.listen()
        clients = [await connect_client(*address) for _ in range(server.most)]
        later = asyncio.create_task(connect_client(*address))
        await until(lambda: server._paused)
        for client in clients:
            await work(client)
        assert (later.done(), server.dropped) == (False, 0)
        await clients.pop().close()
        await work(await later)
        for client in [*clients, await later]:
            assert client.permits.cuts == 0
            await client.close()

    on_loopback(run)


def test_a_system_without_descriptors_is_asked_again_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class FullSystem:
        """A socket that listens, where no descriptor is left."""

        calls = 0

        def accept(self) -> tuple[socket.socket, tuple[str, int]]:
            self.calls += 1
            raise OSError(errno.EMFILE, "Too many open files")

    async def run(coordinator: Coordinator, server: SocketServer) -> None:
        address = await coordinator.listen(hello=AT_MOST)
        first = await connect_client(*address)
        for _ in range(100):
            server._take(FullSystem(), lambda *_: first, None, 0)  # type: ignore[arg-type]
        paused = [server._paused]
        await work(first)
        second = await connect_client(*address)
        assert [*paused, server._paused] == [True, False]
        await first.close()
        await second.close()

    monkeypatch.setattr(socket_server, "PAUSE", 0.01)
    with caplog.at_level(logging.WARNING, LOGGER.name):
        on_loopback(run)
    assert caplog.messages == ["no connection can be taken: Too many open files"]


def test_a_peer_that_does_not_read_is_ended_with_what_it_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(coordinator: Coordinator, server: SocketServer) -> None:
        address = await coordinator.listen(idle=0.05)
        for each in server._sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        other = await connect_client(*await coordinator.listen())
        with socket.socket() as stuck:
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stuck.connect(address)
            stuck.setblocking(False)  # noqa: FBT003 - the only way to say it
            flood = frame(0, Hello(VERSION, bytes(16))) + frame(1, OpenRequest(0, 0, bytes(16))) * 1000
            await until(lambda: len(server._wires) == 2)
            while (
                len(server._wires) == 2
            ):  # each request is refused with a sentence, until the coordinator reads no more
                try:
                    flood = flood[stuck.send(flood) :] or frame(1, OpenRequest(0, 0, bytes(16))) * 1000
                except BlockingIOError:
                    await asyncio.sleep(0.01)
                except ConnectionError:
                    break
                await asyncio.sleep(0)
            await until(lambda: len(server._wires) == 1)
        await work(other)
        await other.close()

    monkeypatch.setattr(wires, "LINGER", 0.05)
    on_loopback(run)


def test_random_bytes_and_half_closed_sockets_leave_no_connection() -> None:
    async def run(coordinator: Coordinator, server: SocketServer) -> None:
        address = await coordinator.listen()
        for sent in (b"", b"\0", b"\0\0\0\x19", b"GET / HTTP/1.1\r\n\r\n", frame(0, Hello(VERSION, bytes(16)))):
            with connected(address) as half:
                half.sendall(sent)
                half.shutdown(socket.SHUT_WR)
                await until(lambda: server._number > 0 and not server._wires)
        assert not coordinator._sessions

    on_loopback(run)


def test_the_room_for_connections_is_what_the_process_may_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (256, 256))
    assert 128 < room() <= 256 - RESERVED
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (8, 256))
    with pytest.raises(Refused, match=r"may open 8 files here \(ulimit -n\)"):
        room()
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (resource.RLIM_INFINITY, 256))
    assert room() == socket_server.MOST


def test_addresses_are_taken_together_or_not_at_all() -> None:
    async def run(coordinator: Coordinator, server: SocketServer) -> None:
        host, port = await coordinator.listen()
        with pytest.raises(OSError, match="Address already in use"):
            await coordinator.listen(host, port)
        with pytest.raises(OSError, match="Address already in use"):
            server.listen([(socket.AF_INET, (host, 0)), (socket.AF_INET, (host, port))], lambda *_: None, None, 0)  # type: ignore[arg-type]
        assert len(server._sockets) == 1
        assert SocketServer(BoundedLog(lambda: 0.0), 1).most == 1

    on_loopback(run)


# --- TLS -------------------------------------------------------------------------------------------------------


def server_tls(*, clients: bool = False) -> ssl.SSLContext:
    """The server's side. `clients`: they need a certificate, too."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=PEM if clients else None)
    context.load_cert_chain(PEM)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def test_over_tls_a_client_is_served_and_silence_is_not_waited_for() -> None:
    async def run(coordinator: Coordinator, server: SocketServer) -> None:
        address = await coordinator.listen(secret=SECRET, tls=server_tls(), hello=AT_MOST)
        trusting = ssl.create_default_context(cafile=PEM)
        client = await connect_client(*address, secret=SECRET, tls=trusting)
        with pytest.raises(WrongSecret):
            await connect_client(*address, tls=trusting)
        with pytest.raises(ssl.SSLCertVerificationError):
            await connect_client(*address, secret=SECRET, tls=ssl.create_default_context())
        silent = [connected(address) for _ in range(10)]
        plain = connected(address)
        plain.sendall(frame(0, Hello(VERSION, bytes(16))))
        await until(lambda: server.dropped >= 6)
        await work(client)
        other = await connect_client(*address, secret=SECRET, tls=trusting)
        await work(other)
        assert client.permits.cuts == 0
        for each in (*silent, plain):
            each.close()
        await until(lambda: len(server._wires) == 2)
        await client.close()
        await other.close()

    on_loopback(run)


def test_a_handshake_has_a_deadline_and_clients_may_need_certificates() -> None:
    async def run(coordinator: Coordinator, server: SocketServer) -> None:
        with connected(await coordinator.listen(tls=server_tls(), hello=0.05)):
            await until(lambda: server._number == 1 and not server._wires)
        address = await coordinator.listen(tls=server_tls(clients=True))
        trusting = ssl.create_default_context(cafile=PEM)
        with pytest.raises((OSError, StoreError)):
            await connect_client(*address, tls=trusting)
        trusting.load_cert_chain(PEM)
        client = await connect_client(*address, tls=trusting)
        await work(client)
        await client.close()

    on_loopback(run)


def test_a_secret_alone_lets_other_machines_in(tmp_path: Path) -> None:
    async def run() -> None:
        async with await Coordinator.open(tmp_path) as coordinator:
            _, port = await coordinator.listen("0.0.0.0", secret=SECRET)  # noqa: S104 - the subject of this test
            client = await connect_client("127.0.0.1", port, secret=SECRET)
            await work(client)
            await client.close()

    asyncio.run(run())
