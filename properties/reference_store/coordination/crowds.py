"""A coordinator under a crowd: many more clients than it has slots, within the process or over the loopback.

At no time more are active than the limit; ignored clients heard nothing until their timeouts; and when all is over,
every slot is free and every permit is back.
"""

from __future__ import annotations

import asyncio
import resource
import tempfile
from dataclasses import dataclass, field

from gapless.impl.coordinator.client import CoordinatorClient, connect_client
from gapless.impl.coordinator.coordinator import Coordinator
from gapless.impl.coordinator.errors import TimedOut
from gapless.impl.coordinator.recorder import StepTape
from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.impl.environment.operating_system import wall_clock
from gapless.properties.machines.mismatch import expect
from gapless.properties.reference_store.recorded_conformance import require_conformance
from gapless.properties.simulation import virtual_time
from gapless.properties.simulation.simulated_disk import SimulatedDisk

PERMITS = 2
LIFE = 2.0  # seconds: what a client forgets is aborted then


@dataclass
class Crowd:
    """The result of a crowd. `waited`: seconds of each request without an answer."""

    clients: int
    peak: int = 0
    ignored: int = 0
    served: int = 0
    forgotten: int = 0
    events: int = 0
    waited: list[float] = field(default_factory=list)


def crowd_within(clients: int, most: int, *, timeout: float = 1.0, rounds: int = 2) -> Crowd:
    """Clients within the process, in virtual time, recorded. Raises Mismatch, Nonconformance."""
    seen, tape = Crowd(clients), StepTape()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, virtual_time.VirtualLoop)  # noqa: S101 - `run` sees to it
        settings, observer = CoordinatorSettings(most), tape.coordinator()
        coordinator = await Coordinator.open(SimulatedDisk(), settings, clock=loop.now, observer=observer)
        made = [
            await coordinator.client(permits=PERMITS, timeout=timeout, observer=tape.client(f"client-{n}"))
            for n in range(clients)
        ]
        await _press(coordinator, made, seen, timeout, rounds)

    virtual_time.run(run())
    seen.events = require_conformance(tape)["events"]
    return seen


def crowd_outside(clients: int, most: int, *, timeout: float = 1.0, rounds: int = 2) -> Crowd:
    """Clients over the loopback, in a folder, by the machine's clock. Raises Mismatch."""
    seen = Crowd(clients)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * clients + 256)), hard))

    async def run(folder: str) -> None:
        coordinator = await Coordinator.open(folder, CoordinatorSettings(most), clock=wall_clock)
        host, port = await coordinator.listen()
        made = [await connect_client(host, port, permits=PERMITS, timeout=timeout) for _ in range(clients)]
        await _press(coordinator, made, seen, timeout, rounds)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))
    return seen


async def _press(
    coordinator: Coordinator, clients: list[CoordinatorClient], seen: Crowd, given_up_after: float, rounds: int
) -> None:
    for _ in range(rounds):
        await asyncio.gather(*(_one(client, number, seen) for number, client in enumerate(clients)))
    while coordinator.core.table:  # noqa: ASYNC110 - what empties it is time
        await asyncio.sleep(LIFE / 2)
    core = coordinator.core
    seen.peak, seen.ignored = core.peak, core.ignored
    expect(core.peak <= core.limit, f"{core.peak} were active at once, of {core.limit}")
    expect(core.ignored == len(seen.waited), f"{core.ignored} were ignored, and {len(seen.waited)} timed out")
    soonest = min(seen.waited, default=given_up_after)
    expect(soonest > given_up_after - 0.002, f"a request was given up after {soonest} s, of {given_up_after} s")
    for client in clients:
        expect(client.permits.free == PERMITS, f"{len(client.permits.in_use)} permits are in use at rest")
        expect(not client.late, f"{client.late} answers came late: silence was broken")
        await client.close()
    await coordinator.close()


async def _one(client: CoordinatorClient, number: int, seen: Crowd) -> None:
    """A transaction, or the wait for one: some clients commit, some abort, and some forget it."""
    loop = asyncio.get_running_loop()
    asked = loop.time()
    try:
        transaction = await client.begin(LIFE)
    except TimedOut:
        seen.waited.append(loop.time() - asked)
        return
    seen.served += 1
    await asyncio.sleep(0.01)
    match number % 3:
        case 0:
            await client.commit(transaction)
        case 1:
            await client.abort(transaction)
        case _:
            seen.forgotten += 1
