"""A coordinator among strangers: whose a transaction is, the shared secret, deadlines, and how long one may be open."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from gapless.impl.coordinator import coordinator as coordinator_module
from gapless.impl.coordinator.bounded_log import EVERY, LOGGER, BoundedLog
from gapless.impl.coordinator.client import CoordinatorClient
from gapless.impl.coordinator.connections.access import (
    CLIENT,
    SHORTEST_SECRET,
    addresses,
    digest_of,
    is_loopback,
    new_token,
    proof,
    read_secret,
)
from gapless.impl.coordinator.connections.frames import (
    OF_THE_CONNECTION,
    VERSION,
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
    content_of,
    frame,
)
from gapless.impl.coordinator.connections.session import WITHIN_THE_PROCESS, ConnectionTerms
from gapless.impl.coordinator.connections.wires import TURN, LocalWire, Peer, SocketWire, Wire
from gapless.impl.coordinator.coordinator import Coordinator
from gapless.impl.coordinator.core import CoordinatorCore
from gapless.impl.coordinator.errors import (
    ForeignTransaction,
    OutcomeConflict,
    TimedOut,
    UnknownTransaction,
    WrongSecret,
)
from gapless.impl.coordinator.steps import Key, Status
from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.impl.records.errors import Refused
from gapless.properties.simulation import virtual_time
from gapless.properties.simulation.simulated_disk import SimulatedDisk

SECRET = b"0123456789abcdef0123456789abcdef"
DEADLINES = ConnectionTerms(hello=10.0, idle=60.0)
GUARDED = ConnectionTerms(SECRET, hello=10.0, idle=60.0)
HELLO = Hello(VERSION, b"a client of 16 b")


class Stranger:
    """A peer that sends what a test wants it to. `heard`: what came back · `gone`: when the connection ended."""

    def __init__(self, coordinator: Coordinator, terms: ConnectionTerms = WITHIN_THE_PROCESS) -> None:
        self.heard: list[Content] = []
        self.gone: float | None = None
        self.wire = LocalWire.pair(self, lambda wire: coordinator.accept(wire, terms))

    def received(self, _request: int, content: Content) -> None:
        """A frame came."""
        self.heard.append(content)

    def lost(self) -> None:
        """The connection is gone."""
        self.gone = asyncio.get_running_loop().time()

    async def say(self, *contents: Content) -> Content:
        """The last answer to what is sent."""
        for request, content in enumerate(contents):
            self.wire.send(request, content)
        await asyncio.sleep(0.001)
        return self.heard[-1]


async def served(coordinator: Coordinator, terms: ConnectionTerms, secret: bytes | None = None) -> CoordinatorClient:
    """A client that is connected on these terms."""

    async def connect(peer: Peer) -> Wire:
        return LocalWire.pair(peer, lambda wire: coordinator.accept(wire, terms))

    client = CoordinatorClient(connect, secret=secret)
    await client.connect()
    return client


def in_virtual_time(
    main: Callable[[Coordinator], Awaitable[None]],
    settings: CoordinatorSettings | None = None,
    disk: SimulatedDisk | None = None,
) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, virtual_time.VirtualLoop)
        async with await Coordinator.open(disk or SimulatedDisk(), settings, clock=loop.now) as coordinator:
            await main(coordinator)

    virtual_time.run(run())


# --- Deadlines ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "says"), [(DEADLINES, []), (GUARDED, []), (GUARDED, [HELLO])], ids=["silent", "no secret", "no proof"]
)
def test_a_client_that_does_not_introduce_itself_is_not_waited_for(terms: ConnectionTerms, says: list[Content]) -> None:
    async def run(coordinator: Coordinator) -> None:
        stranger = Stranger(coordinator, terms)
        for content in says:
            stranger.wire.send(0, content)
        await asyncio.sleep(100)
        assert stranger.gone == pytest.approx(10.0)
        assert stranger.heard[-1] == No(Why.LATE, "not introduced within 10 s")

    in_virtual_time(run)


class FakeTransport(asyncio.Transport):
    """The socket under a wire, without a network. `ended`: when the connection was ended."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.ended: float | None = None
        self.reading = True

    def pause_reading(self) -> None:
        """No bytes are wanted."""
        self.reading = False

    def resume_reading(self) -> None:
        """Bytes are wanted again."""
        self.reading = True

    def is_closing(self) -> bool:
        """True if it was ended."""
        return self.ended is not None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Bytes go out."""
        self.written.append(bytes(data))

    def close(self) -> None:
        """It is ended."""
        self.ended = asyncio.get_running_loop().time()

    def abort(self) -> None:
        """It is ended at once."""


@pytest.mark.parametrize("before", [b"", frame(0, HELLO)], ids=["of HELLO", "of a request"])
def test_bytes_that_dribble_in_are_no_frame_and_gain_no_time(before: bytes) -> None:
    async def run(coordinator: Coordinator) -> None:
        wire = SocketWire(lambda wire: coordinator.accept(wire, DEADLINES))
        transport = FakeTransport()
        wire.connection_made(transport)
        wire.data_received(before)
        for byte in bytes([0, 0, 0, 99, 1]) + bytes(90):
            wire.data_received(bytes([byte]))
            await asyncio.sleep(1)
        assert transport.ended == pytest.approx(60.0 if before else 10.0)
        wire.connection_lost(None)
        assert not coordinator._sessions

    in_virtual_time(run)


def test_a_peer_that_sends_much_takes_turns_with_others() -> None:
    async def run(coordinator: Coordinator) -> None:
        flooding, other, transports = [], [], (FakeTransport(), FakeTransport())
        wires = [SocketWire(lambda wire: coordinator.accept(wire, DEADLINES)) for _ in transports]
        for wire, transport in zip(wires, transports, strict=True):
            wire.connection_made(transport)
            wire.data_received(frame(0, Hello(VERSION, bytes([wires.index(wire)]) * 16)))
        refused = b"".join(frame(number, OpenRequest(0, 0, bytes(16))) for number in range(3 * TURN + 5))
        wires[0].data_received(refused[:-1])
        wires[1].data_received(frame(7, OpenRequest(0, 0, bytes(16))))
        for _ in range(5):
            flooding.append((len(transports[0].written) - 1, transports[0].reading))
            other.append(len(transports[1].written) - 1)
            await asyncio.sleep(0)
        wires[0].data_received(refused[-1:])
        assert flooding == [
            (TURN, False),
            (2 * TURN, False),
            (3 * TURN, False),
            (3 * TURN + 4, True),
            (3 * TURN + 4, True),
        ]
        assert other == [1] * 5
        assert [int.from_bytes(each[5:13]) for each in transports[0].written[1:]] == list(range(3 * TURN + 5))

    in_virtual_time(run)


def test_a_peer_that_reads_again_is_heard_from_where_it_was_left() -> None:
    async def run(coordinator: Coordinator) -> None:
        wire, transport = SocketWire(lambda wire: coordinator.accept(wire, DEADLINES)), FakeTransport()
        wire.connection_made(transport)
        wire.data_received(frame(0, HELLO))
        asked = b"".join(frame(number, OpenRequest(0, 0, bytes(16))) for number in range(TURN + 1))
        for _ in range(2):
            transport.written.clear()
            wire.pause_writing()
            wire.data_received(asked)
            await asyncio.sleep(1)
            assert (transport.written, transport.reading) == ([], False)
            wire.resume_writing()
            assert (len(transport.written), transport.reading) == (TURN, False)
            await asyncio.sleep(1)
            assert (len(transport.written), transport.reading) == (TURN + 1, True)

    in_virtual_time(run)


def test_a_client_that_sends_no_frame_is_taken_for_dead_and_one_that_pings_is_not() -> None:
    async def run(coordinator: Coordinator) -> None:
        dead, alive = Stranger(coordinator, DEADLINES), await served(coordinator, DEADLINES)
        dead.wire.send(0, HELLO)
        await asyncio.sleep(30)
        dead.wire.send(0, Heartbeat())
        number = await alive.begin(life=800)
        await asyncio.sleep(700)
        assert dead.gone == pytest.approx(90.0)
        assert dead.heard[-1] == No(Why.LATE, "no frame within 60 s")
        assert alive.permits.cuts == 0
        await alive.commit(number)
        await alive.close()

    in_virtual_time(run)


def test_what_an_idle_client_left_open_is_bounded_by_its_life_and_by_no_more_than_max_life() -> None:
    async def run(coordinator: Coordinator) -> None:
        dead = Stranger(coordinator, DEADLINES)
        token = new_token()
        done = await dead.say(HELLO, OpenRequest(0, 100_000, digest_of(token)))
        assert done == IsDone(0, Status.OPEN)
        await asyncio.sleep(90)
        assert (dead.gone is not None, coordinator.core.status(0)) == (True, Status.OPEN)
        await asyncio.sleep(20)
        assert coordinator.core.status(0) == Status.ABORTED
        client = await coordinator.client()
        await client.begin(life=100)
        for life in (100.002, 86400.0 * 365):
            with pytest.raises(Refused, match=r"expected 1 to 100000, the coordinator's max_life"):
                await client.begin(life=life)
        await client.close()

    in_virtual_time(run, CoordinatorSettings(max_life=100))


def test_a_client_of_a_coordinator_that_never_answers_gives_up() -> None:
    async def run() -> None:
        async def connect(peer: Peer) -> Wire:
            return LocalWire.pair(peer, lambda _wire: Silence())

        client = CoordinatorClient(connect, timeout=1000)
        with pytest.raises(TimedOut, match="no coordinator answers there within 10 s"):
            await client.connect()
        assert asyncio.get_running_loop().time() == pytest.approx(10.0)

    virtual_time.run(run())


class Silence:
    """A server that hears, and answers nothing."""

    def received(self, request: int, content: Content) -> None:
        """A frame came."""

    def lost(self) -> None:
        """The connection is gone."""


# --- Whose a transaction is -----------------------------------------------------------------------------------


def test_no_other_connection_changes_or_ends_a_transaction_or_hears_of_its_outcome() -> None:
    async def run(coordinator: Coordinator) -> None:
        owner, other = await coordinator.client(), await coordinator.client()
        ended, still_open = await owner.begin(), await owner.begin()
        await owner.commit(ended)
        for number in (ended, still_open):
            for token in (None, "00" * 16, owner.token(1 - number)):
                for ask in (other.commit, other.abort):
                    with pytest.raises(ForeignTransaction, match=f"transaction {number} is another client's"):
                        await ask(number, token=token)
                with pytest.raises(ForeignTransaction):
                    await other.add(number, "orders", token=token)
        with pytest.raises(UnknownTransaction):
            await other.commit(2)
        with pytest.raises(ForeignTransaction, match="not begun by this client"):
            other.token(still_open)
        assert coordinator.core.status(still_open) == Status.OPEN
        await owner.add(still_open, "orders")
        await other.abort(still_open, token=owner.token(still_open))
        with pytest.raises(OutcomeConflict, match="ABORTED, and stays so"):
            await owner.commit(still_open)
        await owner.close()
        await other.close()

    in_virtual_time(run)


def test_every_guess_of_a_stranger_is_refused_without_a_step() -> None:
    async def run(coordinator: Coordinator) -> None:
        owner, stranger = await coordinator.client(), Stranger(coordinator)
        number = await owner.begin()
        await stranger.say(HELLO)
        before = coordinator.core.waiting
        for token in (bytes(16), b"\xff" * 16, digest_of(bytes.fromhex(owner.token(number)))):
            answer = await stranger.say(End(number, token, commit=True))
            assert isinstance(answer, No)
            assert answer.why == Why.FOREIGN
        assert coordinator.core.waiting == before
        await owner.close()

    in_virtual_time(run)


def test_a_request_that_is_sent_again_with_another_token_is_refused() -> None:
    async def run(coordinator: Coordinator) -> None:
        stranger = Stranger(coordinator)
        mine, other = (digest_of(new_token()) for _ in range(2))
        await stranger.say(HELLO, OpenRequest(0, 1000, mine))
        assert await stranger.say(Heartbeat(), OpenRequest(0, 1000, mine)) == IsDone(0, Status.OPEN)
        answer = await stranger.say(Heartbeat(), OpenRequest(0, 1000, other))
        assert isinstance(answer, No)
        assert answer.why == Why.FOREIGN

    in_virtual_time(run)


@pytest.mark.parametrize("size", [128, 1 << 14], ids=["files that are begun again", "one file"])
def test_tokens_outlive_a_kill_and_only_their_digests_are_on_the_disk(size: int) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, virtual_time.VirtualLoop)
        settings, disk = CoordinatorSettings(file_size=size), SimulatedDisk()
        running = await Coordinator.open(disk, settings, clock=loop.now)

        async def connect(peer: Peer) -> Wire:
            return LocalWire.pair(peer, running.accept)

        client = CoordinatorClient(connect)
        await client.connect()
        numbers = [await client.begin()]
        await client.commit(numbers[0])
        numbers += [await client.begin() for _ in range(3)]
        tokens = [bytes.fromhex(client.token(number)) for number in numbers]
        running.abandon()
        disk = disk.kill()
        written = b"".join(disk.files().values())
        assert all(token not in written and digest_of(token) in written for token in tokens)
        running = await Coordinator.open(disk, settings, clock=loop.now)
        await client.commit(numbers[0])
        await client.commit(numbers[1])  # the same client, over a new connection
        other = await running.client()
        with pytest.raises(ForeignTransaction):
            await other.abort(numbers[2])
        await other.abort(numbers[2], token=tokens[2].hex())
        await other.close()
        await client.close()
        await running.close()

    virtual_time.run(run())


def test_a_token_is_forgotten_with_the_outcome_and_with_what_was_not_written() -> None:
    core = CoordinatorCore(SimulatedDisk(), CoordinatorSettings(keep=1))
    for number in range(3):
        core.ask(Key(HELLO.client, number), 1000, 0, owner=bytes([number]) * 16)
        core.flush()
        core.decide(number, commit=True)
        core.finish(number)
        core.flush()
    assert core.owners == {2: b"\2" * 16}
    core.ask(Key(HELLO.client, 3), 1000, 0, owner=b"\3" * 16)
    core._take_back("no room")
    assert core.owners == {2: b"\2" * 16}


def test_a_nonsense_token_or_number_is_refused_by_the_client() -> None:
    async def run(coordinator: Coordinator) -> None:
        client = await coordinator.client(permits=1)
        for token in ("", "no token", "00" * 15):
            with pytest.raises(Refused, match="expected 32 hexadecimal digits"):
                await client.commit(0, token=token)
        for number in (-1, 2**64):
            with pytest.raises(UnknownTransaction, match="it never began"):
                await client.abort(number)
        for life in (-1.0, 1e20):
            with pytest.raises(Refused, match="expected a positive number"):
                await client.begin(life)
        assert client.permits.free == 1
        await client.close()

    in_virtual_time(run)


# --- The shared secret ----------------------------------------------------------------------------------------


def test_both_sides_prove_that_they_know_the_secret_and_neither_sends_it() -> None:
    sent: list[bytes] = []

    class Tap:
        """One way of a connection that is overheard."""

        def __init__(self, wire: Wire) -> None:
            self.wire = wire

        def send(self, request: int, content: Content) -> None:
            sent.append(frame(request, content))
            self.wire.send(request, content)

        def close(self) -> None:
            self.wire.close()

    async def run(coordinator: Coordinator) -> None:
        async def connect(peer: Peer) -> Wire:
            return Tap(LocalWire.pair(peer, lambda wire: coordinator.accept(Tap(wire), GUARDED)))

        client = CoordinatorClient(connect, secret=SECRET)
        await client.connect()
        await client.commit(await client.begin())
        await client.close()

    in_virtual_time(run)
    kinds = [type(content_of(each[4:])[1]) for each in sent[:4]]
    assert kinds == [Hello, Challenge, Proof, Welcome]
    assert SECRET not in b"".join(sent)


def test_without_the_secret_no_client_is_served_and_no_server_is_believed() -> None:
    async def run(coordinator: Coordinator) -> None:
        with pytest.raises(WrongSecret, match="the shared secret is another one"):
            await served(coordinator, GUARDED, SECRET[::-1])
        with pytest.raises(WrongSecret, match="asks for a shared secret"):
            await served(coordinator, GUARDED)
        with pytest.raises(WrongSecret, match="does not know the shared secret"):
            await served(coordinator, DEADLINES, SECRET)
        stranger = Stranger(coordinator, GUARDED)
        answer = await stranger.say(HELLO, OpenRequest(0, 1000, bytes(16)))
        assert answer == No(Why.CONFUSED, "OpenRequest came, expected PROOF")
        assert coordinator.core.end == 0

    in_virtual_time(run)


def test_a_proof_that_was_overheard_is_worth_nothing_on_another_connection() -> None:
    async def run(coordinator: Coordinator) -> None:
        first, second = Stranger(coordinator, GUARDED), Stranger(coordinator, GUARDED)
        challenge = await first.say(HELLO)
        assert isinstance(challenge, Challenge)
        shown = Proof(bytes(32), proof(SECRET, CLIENT, HELLO.client, challenge.nonce, bytes(32)))
        assert isinstance(await first.say(shown), Welcome)
        assert isinstance(await second.say(HELLO), Challenge)
        assert await second.say(shown) == No(Why.SECRET, "the shared secret is another one")
        assert second.gone is not None

    in_virtual_time(run)


def test_a_secret_that_could_be_guessed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    assert read_secret(tmp_path / "secret") == SECRET
    (tmp_path / "secret").write_bytes(b" " * 100 + b"x" * (SHORTEST_SECRET - 1) + b"\n")
    with pytest.raises(Refused, match=r"secret has 15 bytes, expected at least 16"):
        read_secret(tmp_path / "secret")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True),
        ("", False), ("0.0.0.0", False), ("::", False), ("192.0.2.1", False), ("::ffff:192.0.2.1", False),  # noqa: S104
    ],
)  # fmt: skip
def test_what_other_machines_reach_needs_a_secret_or_tls(host: str, loopback: bool) -> None:  # noqa: FBT001 - a case
    assert all(map(is_loopback, addresses(host, 0))) == loopback

    async def run() -> None:
        async with await Coordinator.open(SimulatedDisk()) as coordinator:
            with pytest.raises(Refused, match=r"reached from other machines.*--secret-file.*--tls-cert"):
                await coordinator.listen(host)

    if not loopback:
        asyncio.run(run())


# --- What is kept, and what is logged --------------------------------------------------------------------------


def test_requests_of_clients_that_left_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_module, "REMEMBER_MOST", 20)

    async def run(coordinator: Coordinator) -> None:
        for number in range(10):
            stranger = Stranger(coordinator)
            asked = (OpenRequest(0, 1000, bytes(16)) for _ in range(5))
            stranger.wire.send(0, Hello(VERSION, bytes([number]) * 16))
            for request, content in enumerate(asked):
                stranger.wire.send(request, content)
            stranger.wire.close()
            await asyncio.sleep(0.001)
        assert sum(map(len, coordinator.core._asked.values())) == 20
        await asyncio.sleep(coordinator_module.REMEMBER_FOR + 1)
        assert not coordinator.core._asked

    in_virtual_time(run, CoordinatorSettings(max_active=1))


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """The log of a coordinator that is asked to log all."""
    with caplog.at_level(logging.INFO, LOGGER.name):
        yield caplog


def test_each_connection_and_decision_is_a_line_without_a_secret_or_a_token(lines: pytest.LogCaptureFixture) -> None:
    async def run(coordinator: Coordinator) -> None:
        client = await served(coordinator, GUARDED, SECRET)
        first, _ = await client.begin(), await client.begin(life=5)
        with pytest.raises(TimedOut):
            await client.begin()
        await client.commit(first)
        with pytest.raises(WrongSecret):
            await served(coordinator, GUARDED, SECRET[::-1])
        stranger = await coordinator.client()
        with pytest.raises(ForeignTransaction):
            await stranger.abort(first)
        await stranger.close()
        await client.close()
        await asyncio.sleep(1)
        kept = client.token(first)
        assert kept not in lines.text
        assert kept[:8] not in lines.text

    in_virtual_time(run, CoordinatorSettings(max_active=2))
    text = [record.getMessage().partition(": ")[2] for record in lines.records]
    for line in (
        "connected",
        "transaction 0: OPEN",
        "request 2 met silence: 2 are active",
        "transaction 0: COMMITTED",
        "does not know the shared secret",
        "closed: the shared secret is another one",
        "request 0 refused: transaction 0 is another client's: its token is needed",
        "closed: the connection ended",
    ):
        assert line in text, text
    assert "transaction 1 has had its time: it is aborted" in lines.messages
    assert SECRET.decode() not in lines.text


def test_warnings_of_a_kind_come_once_a_minute(lines: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = BoundedLog(lambda: now)
    seen: list[float] = []
    for _ in range(1000):
        log.alert("full", "%d connections", 7)
        log.alert("secret", "another")
        if len(lines.records) > len(seen):
            seen = [*seen, *[now] * (len(lines.records) - len(seen))]
        now += 1.0
    times = seen[::2]
    assert seen[1::2] == times
    assert all(after - before >= EVERY for before, after in pairwise(times))
    assert lines.messages[2] == "7 connections (and 59 times since the last such line)"


def test_frames_of_version_1_are_answered_by_the_version_that_is_needed() -> None:
    async def run(coordinator: Coordinator) -> None:
        old = Stranger(coordinator, DEADLINES)
        answer = await old.say(content_of(b"\1" + bytes(8) + b"\0\1" + bytes(16))[1])
        assert answer == No(
            Why.CONFUSED, f"version 1, expected {VERSION}: use the same release of gapless on both sides"
        )
        assert frame(OF_THE_CONNECTION, answer)[4] == 19  # as version 1 has it

    in_virtual_time(run)
