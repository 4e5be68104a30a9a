"""A coordinator and its clients: what a program relies on."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gapless.impl.coordinator.client import CoordinatorClient, connect_client
from gapless.impl.coordinator.connections.frames import (
    LONGEST,
    OF_THE_CONNECTION,
    VERSION,
    BadFrame,
    Content,
    Frames,
    Hello,
    IsDone,
    No,
    OpenRequest,
    Why,
    content_of,
    frame,
)
from gapless.impl.coordinator.coordinator import Coordinator
from gapless.impl.coordinator.core import CoordinatorCore
from gapless.impl.coordinator.errors import LogFull, OutcomeConflict, TimedOut, UnknownTransaction
from gapless.impl.coordinator.log import START
from gapless.impl.coordinator.steps import Key, Status
from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.impl.records.errors import Damaged, InUse, NotAStore, Refused, Stopped, StoreError
from gapless.properties.simulation import virtual_time
from gapless.properties.simulation.simulated_disk import SimulatedDisk

DIGEST = bytes(range(16))
KEY = Key(b"a client of 16 b", 0)


def key(request: int) -> Key:
    return Key(KEY.client, request)


def cut(frames: Frames, data: bytes) -> list[tuple[int, Content]]:
    """The frames that are whole when these bytes have arrived."""
    frames.add(data)
    return list(frames.whole())


def with_one_committed(disk: SimulatedDisk, *, close: bool = True) -> CoordinatorCore:
    """A coordinator with transaction 0 committed, and 1 open."""
    core = CoordinatorCore(disk)
    core.ask(key(0), 1000, 0)
    core.ask(key(1), 1000, 0)
    core.flush()
    core.decide(0, commit=True)
    core.finish(0)
    core.flush()
    if close:
        core.close()
    return core


def in_virtual_time(
    main: Callable[[Coordinator], Awaitable[None]], settings: CoordinatorSettings | None = None
) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, virtual_time.VirtualLoop)
        async with await Coordinator.open(SimulatedDisk(), settings, clock=loop.now) as coordinator:
            await main(coordinator)

    virtual_time.run(run())


# --- The log --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_before_the_safe_position_is_reported_with_file_and_offset(bit: int) -> None:
    disk = SimulatedDisk()
    core = with_one_committed(disk)
    file = disk.open(core._log.file_name, write=True)
    for at in range(START, core._log.end, 7):
        file.data[at] ^= 1 << bit
        before = disk.files()
        with pytest.raises(Damaged, match=r"log/0{19}1, offset \d+: expected a whole group.*before offset"):
            CoordinatorCore(disk)
        assert disk.files() == before
        file.data[at] ^= 1 << bit
    assert CoordinatorCore(disk).status(0) == Status.COMMITTED


def test_a_group_that_was_never_acknowledged_and_is_torn_is_cut_off() -> None:
    disk = SimulatedDisk()
    core = with_one_committed(disk, close=False)
    end = core._log.end
    core.decide(1, commit=True)
    core.begin_flush()
    core._log._data[end + 9] ^= 1
    again = CoordinatorCore(disk.kill())
    assert (again.status(0), again.status(1)) == (Status.COMMITTED, Status.OPEN)
    assert not again._log._data[end:].any()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / f"{1:020d}").write_bytes(b"something else" * 10)
    with pytest.raises(NotAStore, match="no file of a coordinator"):
        asyncio.run(Coordinator.open(tmp_path))


def test_a_folder_has_one_coordinator(tmp_path: Path) -> None:
    async def run() -> None:
        async with await Coordinator.open(tmp_path):
            with pytest.raises(InUse, match="one coordinator at a time"):
                await Coordinator.open(tmp_path)
            (tmp_path / "lock").rename(tmp_path / "elsewhere")
            with pytest.raises(InUse, match="one coordinator at a time"):
                await Coordinator.open(tmp_path)
            (tmp_path / "elsewhere").rename(tmp_path / "lock")

    asyncio.run(run())


def test_who_asks_for_an_outcome_that_is_not_kept_does_not_get_another() -> None:
    core = CoordinatorCore(SimulatedDisk(), CoordinatorSettings(keep=1))
    for number in range(2):
        core.ask(key(number), 1000, 0)
        core.flush()
        core.decide(number, commit=True)
        core.finish(number)
        core.flush()
    with pytest.raises(UnknownTransaction, match="not kept any more"):
        core.decide(0, commit=True)
    with pytest.raises(UnknownTransaction, match="it never began"):
        core.decide(2, commit=True)


# --- Clients --------------------------------------------------------------------------------------------------


def test_at_the_limit_no_answer_comes_until_the_timeout() -> None:
    async def run(coordinator: Coordinator) -> None:
        client = await coordinator.client(timeout=3)
        loop = asyncio.get_running_loop()
        await client.begin()
        asked = loop.time()
        with pytest.raises(TimedOut, match=r"OpenRequest\) was not answered within 3 s; connected"):
            await client.begin()
        assert 3 <= loop.time() - asked < 3.01
        assert (client.late, client.permits.free, coordinator.core.ignored) == (0, 1000, 1)
        await client.close()

    in_virtual_time(run, CoordinatorSettings(max_active=1))


def test_ignored_requests_block_all_operations_of_their_client() -> None:
    """That is the back-pressure: with both permits out, even a commit waits."""

    async def run(coordinator: Coordinator) -> None:
        client = await coordinator.client(permits=2, timeout=3)
        number = await client.begin()
        ignored = [asyncio.create_task(client.begin()) for _ in range(2)]
        await asyncio.sleep(1)
        commit = asyncio.create_task(client.commit(number))
        await asyncio.sleep(1)
        assert not commit.done()
        await commit
        assert asyncio.get_running_loop().time() >= 3
        assert all(isinstance(error, TimedOut) for error in await asyncio.gather(*ignored, return_exceptions=True))
        await client.close()

    in_virtual_time(run, CoordinatorSettings(max_active=1))


def test_what_has_had_its_time_is_aborted_and_cannot_be_committed() -> None:
    async def run(coordinator: Coordinator) -> None:
        client = await coordinator.client()
        number = await client.begin(life=5)
        await asyncio.sleep(4.9)
        assert coordinator.core.status(number) == Status.OPEN
        await asyncio.sleep(0.2)
        with pytest.raises(OutcomeConflict, match="transaction 0 is ABORTED, and stays so"):
            await client.commit(number)
        await client.close()

    in_virtual_time(run)


def test_a_request_that_is_sent_again_begins_no_second_transaction() -> None:
    async def run(coordinator: Coordinator) -> None:
        client = await coordinator.client()
        asked = asyncio.create_task(client.begin())
        await asyncio.sleep(0)  # it is on its way
        assert client._wire is not None
        client._wire.close()
        assert await asked == 0
        assert coordinator.core.end == 1
        await client.close()

    in_virtual_time(run)


def test_those_who_take_part_are_reported_before_the_client_is_and_until_they_are() -> None:
    reports: list[tuple[int, bool, list[str]]] = []

    async def tell(number: int, commit: bool, names: object) -> None:  # noqa: FBT001 - as it is called
        assert isinstance(names, list)
        reports.append((number, commit, names))
        if len(reports) < 3:
            raise ConnectionError

    async def run() -> None:
        async with await Coordinator.open(SimulatedDisk(), tell=tell) as coordinator:
            client = await coordinator.client()
            async with client.transaction() as number:
                await client.add(number, "orders")
                await client.add(number, "orders")
            assert reports == [(0, True, ["orders"])] * 3
            await client.close()

    virtual_time.run(run())


def test_a_block_that_raises_aborts() -> None:
    async def run(coordinator: Coordinator) -> None:
        client = await coordinator.client()
        with pytest.raises(ZeroDivisionError):
            async with client.transaction():
                raise ZeroDivisionError
        assert coordinator.core.status(0) == Status.ABORTED
        await client.close()
        with pytest.raises(Stopped):
            await client.begin()

    in_virtual_time(run)


def test_who_waits_is_reported_when_the_client_is_closed_and_who_was_cancelled_holds_no_permit() -> None:
    async def run(coordinator: Coordinator) -> None:
        client = await coordinator.client(permits=1)
        out, cancelled, waiting = (asyncio.create_task(client.begin()) for _ in range(3))
        await out
        ignored = asyncio.create_task(client.begin())
        await asyncio.sleep(0.1)
        cancelled.cancel()
        await client.close()
        found = await asyncio.gather(cancelled, waiting, ignored, return_exceptions=True)
        assert {type(each) for each in found} <= {Stopped, asyncio.CancelledError}
        assert (client.permits.free, len(client.permits.waiting)) == (1, 0)

    in_virtual_time(run, CoordinatorSettings(max_active=1))


def test_a_full_disk_is_reported_and_passes() -> None:
    async def run() -> None:
        disk = SimulatedDisk()
        async with await Coordinator.open(disk, CoordinatorSettings(file_size=128)) as coordinator:
            client = await coordinator.client()
            disk.fail(errno.ENOSPC, verb="create", times=100)
            with pytest.raises(LogFull, match=r"No space left.*nothing was changed"):
                await asyncio.gather(*(client.begin() for _ in range(5)))
            disk.heal()
            await client.commit(await client.begin())
            await client.close()

    virtual_time.run(run())


# --- Over the loopback ----------------------------------------------------------------------------------------


def test_a_client_of_another_process_and_a_frame_that_is_none(tmp_path: Path) -> None:
    async def run() -> None:
        async with await Coordinator.open(tmp_path) as coordinator:
            host, port = await coordinator.listen()
            client: CoordinatorClient = await connect_client(host, port)
            await client.commit(await client.begin())
            for sent, why in (
                (b"\xff" * 100, "expected at most"),
                (frame(0, OpenRequest(0, 1, DIGEST)), "expected HELLO first"),
                (frame(0, Hello(9, KEY.client)), "version 9, expected 2"),
                (frame(0, IsDone(0, Status.OPEN)), "IsDone came"),
                (b"\0\0\0\x09\x63" + bytes(8), "99 is not a valid Kind"),
            ):
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(sent)
                ((request, content),) = cut(Frames(), await reader.read())
                assert request == OF_THE_CONNECTION
                assert isinstance(content, No)
                assert (content.why, why in content.sentence) == (Why.CONFUSED, True), content
                writer.close()
                await writer.wait_closed()
            await client.commit(await client.begin())
            await client.close()

    asyncio.run(run())


def test_who_does_not_read_its_answers_is_not_read_from(tmp_path: Path) -> None:
    """So that a client which floods a coordinator holds up itself, and not its memory."""

    async def run() -> None:
        async with await Coordinator.open(tmp_path) as coordinator:
            host, port = await coordinator.listen()
            _, writer = await asyncio.open_connection(host, port)
            writer.write(frame(0, Hello(VERSION, KEY.client)))
            flood = b"".join(
                frame(number, OpenRequest(0, 0, DIGEST)) for number in range(20_000)
            )  # each is refused with a sentence
            stuck = False
            for _ in range(100):
                writer.write(flood)
                try:
                    await asyncio.wait_for(writer.drain(), 0.5)
                except TimeoutError:
                    stuck = True
                    break
            assert stuck
            other = await connect_client(host, port)
            await other.commit(await other.begin())
            await other.close()
            writer.transport.abort()

    asyncio.run(run())


def test_nothing_listens_and_no_coordinator_answers() -> None:
    async def run() -> None:
        async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        with pytest.raises(StoreError, match="no coordinator answers there"):
            await connect_client(host, port)
        server.close()
        await server.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await connect_client(host, port)

    asyncio.run(run())


def test_frames_are_cut_wherever_they_arrive() -> None:
    sent = frame(3, OpenRequest(1, 2, DIGEST)) + frame(4, No(Why.OTHERWISE, "Ärger"))
    for at in range(len(sent)):
        frames = Frames()
        found = [*cut(frames, sent[:at]), *cut(frames, sent[at:])]
        assert found == [(3, OpenRequest(1, 2, DIGEST)), (4, No(Why.OTHERWISE, "Ärger"))]
    with pytest.raises(BadFrame, match=f"expected at most {LONGEST}"):
        cut(Frames(), (LONGEST + 1).to_bytes(4, "big"))
    with pytest.raises(BadFrame, match="expected at least 9"):
        content_of(b"x")


def test_what_cannot_be_is_refused() -> None:
    core = CoordinatorCore(SimulatedDisk())
    with pytest.raises(Refused, match="a life of 0 ms"):
        core.ask(KEY, 0, 0)
    with pytest.raises(Refused, match="file_size is 1"):
        CoordinatorSettings(file_size=1)
    core.ask(KEY, 1, 0)
    core.flush()
    with pytest.raises(Refused, match="a name of 0 bytes"):
        core.add(0, b"")
