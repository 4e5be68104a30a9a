"""A coordinator and its clients as they run, with `asyncio`, in virtual time: seeded cases of all that may go wrong.

Clients begin transactions, add, commit, abort, go away, are cancelled. Frames take their time, so that answers race
timeouts; connections break; participants cannot be reached; the disk is full, or fails; the clock is set; the
coordinator's process dies or its power fails, in the midst of a flush too, and it is opened again with another limit.
Meanwhile

- no two requests are given one transaction, and no client hears two outcomes of one;
- no more are active than the limit, but for those that were when it was opened;
- a request that met silence is never answered in the coordinator's life, and its client waits for its timeout;
- a client that hears of an outcome hears the one in the log, and the participants have heard of it before;
- no transaction is aborted before its time, whatever the clock was set to; but a clock that is ahead when the
  coordinator is opened is believed.

Then faults stop, and everything comes to rest: every slot is free, every permit is back, nobody waits. What was
recorded conforms.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from gapless.impl.coordinator.client import CoordinatorClient
from gapless.impl.coordinator.connections.frames import Content, IsDone, No
from gapless.impl.coordinator.connections.wires import Peer, Wire
from gapless.impl.coordinator.coordinator import Coordinator
from gapless.impl.coordinator.errors import LogFull, OutcomeConflict, TimedOut, UnknownTransaction
from gapless.impl.coordinator.observer import Found
from gapless.impl.coordinator.recorder import CoordinatorRecorder, StepTape
from gapless.impl.coordinator.steps import Key, Status
from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.properties.campaign import answers
from gapless.properties.machines.mismatch import expect
from gapless.properties.reference_store.coordination.simulated_network import Overhear, SlowWire
from gapless.properties.reference_store.recorded_conformance import require_conformance
from gapless.properties.simulation import virtual_time
from gapless.properties.simulation.choices import Choose
from gapless.properties.simulation.simulated_disk import SimulatedDisk

TIMEOUT = 0.1  # seconds: of a client's requests
LIVES = (0.05, 0.1, 0.3)  # seconds: of transactions
START = 1_700_000_000_000  # ms since 1970
SETTINGS_OF_THE_CLOCK = (-10 * 365 * 86_400_000, -200, 200, 10 * 365 * 86_400_000)  # ms by which it is set


class _Watch(CoordinatorRecorder):
    """The recorder, which also knows who met silence in this life, and how long transactions live.

    `set_by`: ms by which the clock was ahead when the coordinator was opened, each time · `early`: which were aborted
    before their time.
    """

    silent: set[Key]

    def __init__(self, tape: StepTape, trace: int) -> None:
        super().__init__(tape, trace)
        self.set_by: list[int] = []
        self.early: list[str] = []
        self._asked: dict[Key, tuple[float, int]] = {}  # when, and in which life of the coordinator
        self._keys: dict[int, tuple[Key, int]] = {}  # of each transaction: its request, and the ms that it may live

    def recovered(self, limit: int, found: Sequence[Found]) -> None:
        self.silent = set()
        self._keys |= {each.number: (each.key, each.life) for each in found if each.key is not None}
        super().recovered(limit, found)

    def admitted(self, key: Key) -> None:
        self._asked[key] = asyncio.get_running_loop().time(), len(self.set_by)
        super().admitted(key)

    def begun(self, number: int, key: Key, time: int, life: int) -> None:
        self._keys[number] = key, life
        super().begun(number, key, time, life)

    def decided(self, number: int, to: Status, time: int | None) -> None:
        if time is not None:
            key, life = self._keys[number]
            asked, opened = self._asked[key]
            lived = 1000 * (asyncio.get_running_loop().time() - asked)
            ahead = max(self.set_by[opened - 1 :]) - self.set_by[opened - 1]  # at a start the clock is believed
            if lived + ahead < life - 1:  # raised from here, it would be taken for an error of the disk
                self.early.append(f"transaction {number} lived for {lived:.0f} ms, of {life}")
        super().decided(number, to, time)

    def ignored(self, key: Key) -> None:
        self.silent.add(key)
        super().ignored(key)


class CoordinationCase:
    """One case, which runs once. `tally`: how often what happened."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.tally: Counter[str] = Counter()
        self.tape = StepTape()
        self.set_by = START  # ms that the clock is ahead of the loop's time
        self.watch = _Watch(self.tape, self.tape._trace("coordinator", "coordinator"))  # noqa: SLF001 - ours, as a class
        self.disk = SimulatedDisk(page=64, sector=16)
        self.coordinator: Coordinator | None = None
        self.wires: list[SlowWire] = []
        self.given: dict[int, str] = {}  # of each transaction: the request that was given it
        self.reported: dict[int, Status] = {}  # of each transaction: the outcome that any client heard
        self.reported_parts: dict[int, set[bool]] = {}
        self.with_parts: set[int] = set()
        self.faulty = True
        self.wrong: list[BaseException] = []

    def run(self) -> None:
        """Run all of it. Raises Mismatch, Nonconformance, and what the implementation should not have raised."""
        virtual_time.run(self._run())
        for error in self.wrong:
            raise error
        self.tally += require_conformance(self.tape)

    def _went_wrong(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something was raised where nobody waits for it: it ends the case."""
        self.wrong.append(context.get("exception") or RuntimeError(context["message"]))

    async def _run(self) -> None:
        choose = self.choose
        asyncio.get_running_loop().set_exception_handler(self._went_wrong)
        await self._open()
        clients = [await self._client(number) for number in range(1 + choose(4))]
        programs = [asyncio.create_task(self._program(client)) for client in clients for _ in range(1 + choose(4))]
        for _ in range(choose(5)):
            await asyncio.sleep(choose(200) / 1000)
            await self._go_wrong()
        await asyncio.gather(*programs)
        self.faulty = False
        self.disk.heal()
        for client in clients:
            await client.close()
            expect(
                client.permits.free == client.permits.count, f"{len(client.permits.in_use)} permits are in use at rest"
            )
            expect(not client.permits.waiting, f"{client.permits.waiting} wait at rest")
        await asyncio.sleep(10)  # more than any life, and than what is tried again takes
        await self._rest()

    async def _rest(self) -> None:
        coordinator = self._running()
        expect(not self.watch.early, "; ".join(self.watch.early))
        expect(not coordinator.core.table, f"{coordinator.core.table} take slots at rest")
        for number, status in self.reported.items():
            expect(coordinator.core.status(number) == status, f"transaction {number}: a client heard {status!r}")
        await coordinator.close()

    # -- the coordinator ---------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        limit = (1, 2, 3, 0)[self.choose(4)]
        size = (256, 1 << 12)[self.choose(2)]
        loop = asyncio.get_running_loop()
        assert isinstance(loop, virtual_time.VirtualLoop)  # noqa: S101 - `run` sees to it
        settings = CoordinatorSettings(limit, 1000, size)
        self.watch.set_by.append(self.set_by)
        self.coordinator = await Coordinator.open(
            self.disk, settings, tell=self._tell, observer=self.watch, clock=lambda: loop.now() + self.set_by
        )

    def _running(self) -> Coordinator:
        expect(self.coordinator is not None, "no coordinator runs")
        assert self.coordinator is not None  # noqa: S101 - as above
        core = self.coordinator.core
        within = core.limit == 0 or core.peak <= max(core.loaded, core.limit)
        expect(within, f"{core.peak} were active, of {core.limit}; {core.loaded} at first")
        return self.coordinator

    async def _tell(self, number: int, commit: bool, names: Sequence[str]) -> None:  # noqa: FBT001 - as it is called
        expect(bool(names), "no participant is informed")
        await asyncio.sleep(self.choose(30) / 1000)
        if self.faulty and not self.choose(3):
            self.tally["participants could not be reached"] += 1
            raise ConnectionError("not now")
        self.reported_parts.setdefault(number, set()).add(commit)
        expect(
            len(self.reported_parts[number]) == 1,
            f"transaction {number}: some participants are to commit, and some to abort",
        )

    async def _go_wrong(self) -> None:
        self._running()
        if not self.choose(3):
            self.set_by += SETTINGS_OF_THE_CLOCK[self.choose(4)]
            self.tally["a clock that is set"] += 1
        what = ("a cut", "a crash", "a kill", "a close", "a full disk", "a disk that fails")[self.choose(6)]
        self.tally[what] += 1
        match what:
            case "a cut":
                wires = [wire for wire in self.wires if wire.peer is not None]
                if wires:
                    wires[self.choose(len(wires))].cut()
            case "a full disk":
                self.disk.fail(errno.ENOSPC, verb="create", times=1 + self.choose(3))
            case "a disk that fails":
                self.disk.fail(errno.EIO, verb="sync", forget=True)
                await asyncio.sleep(0.3)
                if self._running().failed.done():
                    await self._again(self.disk.crash(self.choose))
                self.disk.heal()
            case "a close":
                await self._running().close()
                await self._again(self.disk)
            case _:
                await self._again((self.disk.crash if what == "a crash" else self.disk.kill)(self.choose))

    async def _again(self, disk: SimulatedDisk) -> None:
        coordinator, self.coordinator = self.coordinator, None
        if coordinator is not None:
            coordinator.abandon()
        for wire in self.wires:
            wire.cut()
        self.wires.clear()
        self.disk = disk
        await asyncio.sleep(self.choose(100) / 1000)
        await self._open()

    # -- clients -----------------------------------------------------------------------------------------------------

    async def _client(self, number: int) -> CoordinatorClient:
        async def connect(peer: Peer) -> Wire:
            if self.coordinator is None:
                raise ConnectionRefusedError("no server listens")
            wire = SlowWire.pair(peer, self.coordinator.accept, self.choose, self._overheard(client_id))
            self.wires.append(wire)
            return wire

        permits = 1 + self.choose(3)
        client = CoordinatorClient(connect, permits=permits, timeout=TIMEOUT, observer=self.tape.client(f"c{number}"))
        client_id = client._id  # noqa: SLF001 - to know whom an answer is for
        await client.connect()
        return client

    def _overheard(self, client: bytes) -> Overhear:
        def overhear(request: int, content: Content) -> None:
            met_silence = isinstance(content, IsDone | No) and Key(client, request) in self.watch.silent
            expect(not met_silence, f"request {request} met silence, and is answered: {content}")

        return overhear

    async def _program(self, client: CoordinatorClient) -> None:
        for _ in range(1 + self.choose(4)):
            with suppress(TimedOut, LogFull, OutcomeConflict, UnknownTransaction):
                await self._transaction(client)
            await asyncio.sleep(self.choose(50) / 1000)

    async def _transaction(self, client: CoordinatorClient) -> None:
        number = await self._begin(client)
        if number is None:
            return
        if self.choose(2):
            await client.add(number, f"topic-{self.choose(2)}")
            self.with_parts.add(number)
        await asyncio.sleep(self.choose(80) / 1000)
        end = self.choose(4)
        if end == 0:
            return  # the client forgets it
        commit = end != 1
        for _ in range(1 + self.choose(3)):
            await (client.commit if commit else client.abort)(number)
            outcome = Status.COMMITTED if commit else Status.ABORTED
            expect(self.reported.setdefault(number, outcome) == outcome, f"transaction {number} has two outcomes")
            if number in self.with_parts:
                expect(
                    self.reported_parts.get(number) == {commit},
                    f"transaction {number}: those who take part know nothing",
                )
            self.tally[f"reported {outcome.name}"] += 1

    async def _begin(self, client: CoordinatorClient) -> int | None:
        loop = asyncio.get_running_loop()
        life = LIVES[self.choose(len(LIVES))]
        asked = loop.time()
        task = asyncio.create_task(client.begin(life))
        if not self.choose(8):
            await asyncio.sleep(self.choose(100) / 1000)
            task.cancel()
            with suppress(asyncio.CancelledError, TimedOut, LogFull):
                await task
            self.tally["cancelled"] += 1
            return None
        try:
            number = await task
        except TimedOut:
            self.tally["timed out"] += 1
            expect(loop.time() - asked > TIMEOUT - 0.0015, "given up before the timeout")
            raise
        request = f"{id(client)}: {asked}"
        expect(number not in self.given, f"transaction {number} is given to two clients")
        self.given[number] = request
        return number


def run_case(seed: int) -> None:
    """Run the case of a seed."""
    CoordinationCase(answers(f"seed {seed}")).run()
