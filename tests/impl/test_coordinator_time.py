"""A coordinator whose clock is set: transactions live their time, and slots come free, as if it had not been."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from gapless.impl.coordinator.client import CoordinatorClient
from gapless.impl.coordinator.coordinator import Coordinator
from gapless.impl.coordinator.errors import OutcomeConflict, TimedOut
from gapless.impl.coordinator.recorder import StepTape
from gapless.impl.coordinator.steps import Status
from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.properties.reference_store.recorded_conformance import require_conformance
from gapless.properties.simulation import virtual_time
from gapless.properties.simulation.simulated_disk import SimulatedDisk

NOW = 1_700_000_000_000  # ms since 1970
HOUR = 3_600_000  # ms
YEARS = 10 * 365 * 24 * HOUR
LIFE = 60.0  # seconds
LIMIT = CoordinatorSettings(max_active=3)


class Life:
    """A coordinator in virtual time, and the clock that it is given. `set_by`: ms that this is ahead of the loop's."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, virtual_time.VirtualLoop)
        self.loop, self.set_by = loop, NOW
        self.disk, self.tape = SimulatedDisk(), StepTape()
        self.observer = self.tape.coordinator()

    async def open(self) -> tuple[Coordinator, CoordinatorClient]:
        """A coordinator on what the disk has, and a client."""
        coordinator = await Coordinator.open(
            self.disk, LIMIT, observer=self.observer, clock=lambda: self.loop.now() + self.set_by
        )
        return coordinator, await coordinator.client(timeout=0.05)


def in_virtual_time(main: Callable[[Life], Awaitable[None]]) -> None:
    """It runs to its end, and what was recorded conforms."""

    async def run() -> StepTape:
        life = Life()
        await main(life)
        return life.tape

    require_conformance(virtual_time.run(run()))


async def has_room(client: CoordinatorClient) -> bool:
    """True if another transaction may begin: it is aborted at once."""
    try:
        await client.abort(await client.begin(LIFE))
    except TimedOut:
        return False
    return True


@pytest.mark.parametrize("by", [-YEARS, -HOUR, HOUR, YEARS])
def test_a_transaction_lives_its_time_and_its_slot_is_free_then(by: int) -> None:
    async def run(life: Life) -> None:
        coordinator, client = await life.open()
        numbers = [await client.begin(LIFE) for _ in range(LIMIT.max_active)]
        life.set_by += by
        await asyncio.sleep(LIFE - 1)
        assert not await has_room(client)
        assert {coordinator.core.status(number) for number in numbers} == {Status.OPEN}
        await asyncio.sleep(1)
        assert {coordinator.core.status(number) for number in numbers} == {Status.ABORTED}
        assert await has_room(client)
        with pytest.raises(OutcomeConflict):
            await client.commit(numbers[0])
        await coordinator.close()

    in_virtual_time(run)


@pytest.mark.parametrize("by", [-YEARS, -HOUR, HOUR, YEARS])
def test_no_restart_gives_a_transaction_more_than_its_life(by: int) -> None:
    """A clock that was set back gives it its life again at most; one that is ahead at the start is believed."""

    async def run(life: Life) -> None:
        coordinator, client = await life.open()
        number = await client.begin(LIFE)
        await asyncio.sleep(LIFE / 2)
        coordinator.abandon()
        life.set_by += by
        coordinator, client = await life.open()
        await asyncio.sleep(0.01)
        assert coordinator.core.status(number) == (Status.OPEN if by < 0 else Status.ABORTED)
        await asyncio.sleep(LIFE + 0.01)
        assert coordinator.core.status(number) == Status.ABORTED
        later = await client.begin(LIFE)
        coordinator.abandon()
        life.set_by -= by
        coordinator, client = await life.open()
        await asyncio.sleep(LIFE + 0.01)
        assert coordinator.core.status(later) == Status.ABORTED
        await coordinator.close()

    in_virtual_time(run)


@pytest.mark.parametrize("seed", range(3))
def test_the_limit_is_exact_while_the_clock_jumps(seed: int) -> None:
    """A request is answered if and only if fewer are open than the limit, by the time that has passed."""

    async def run(life: Life) -> None:
        chance = random.Random(seed)
        coordinator, client = await life.open()
        ends: dict[int, float] = {}
        for _ in range(100):
            life.set_by += round(chance.choice((-1, 1)) * 10 ** chance.uniform(0, 11.5))
            await asyncio.sleep(chance.choice((0.02, 1.02, 5.02)))
            now = life.loop.time()
            ends = {number: end for number, end in ends.items() if end > now}
            assert coordinator.core.active == len(ends)
            if ends and chance.random() < 0.2:
                number = chance.choice(list(ends))
                await (client.commit if chance.random() < 0.5 else client.abort)(number)
                del ends[number]
            may_live = chance.choice((0.5, 3.5, 30.5))
            asked = life.loop.time()
            try:
                ends[await client.begin(may_live)] = asked + may_live
            except TimedOut:
                assert len(ends) == LIMIT.max_active
            assert coordinator.core.peak <= LIMIT.max_active
        await asyncio.sleep(LIFE)
        assert coordinator.core.active == 0
        await coordinator.close()

    in_virtual_time(run)
