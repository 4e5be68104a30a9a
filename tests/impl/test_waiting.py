"""Waiting in `asyncio`: many coroutines wait for one flush, none of them in a thread of its own."""

import asyncio
import threading
from pathlib import Path

import pytest

from gapless.impl.records.errors import Refused, Stopped
from gapless.impl.records.record import Messages
from gapless.impl.store.async_calls import FutureTurn
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.properties.simulation.simulated_disk import SimulatedDisk

SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False, synchronous=True)


def test_many_coroutines_wait_for_one_flush(tmp_path: Path) -> None:
    async def run(store: Store) -> None:
        threads = threading.active_count()
        appended = [store.append_async("orders", 0, b"%d" % number, tag="t") for number in range(200)]
        placed = await asyncio.gather(*appended)
        assert threading.active_count() == threads
        assert [place.number for place in placed] == list(range(200))
        assert store.core.log.flushed == store.core.acknowledged == placed[-1].position + placed[-1].size
        positions, numbers = await store.append_batch_async(Messages.of_list([("orders", 1, b"x", {})] * 50))
        assert numbers.tolist() == list(range(50))
        assert store.core.log.flushed > positions[-1]
        assert await store.flush_async() == store.core.log.end
        assert await store.wait_for_async("orders", 1, 49)
        assert not await store.wait_for_async("orders", 1, 50, timeout=0.01)
        assert not store._pool._turns  # a waiter that gave up has left the queue
        with pytest.raises(Refused):
            await store.wait_async(store.core.log.end + 1)

    with Store.open(tmp_path, SMALL) as store:
        asyncio.run(run(store))


def test_queues_are_followed_until_the_store_closes(tmp_path: Path) -> None:
    found: list[tuple[int, int]] = []
    all_there = asyncio.Event()

    async def follow(store: Store) -> None:
        async for record in store.follow_async({("orders", 0): 3, ("orders", 1): 0}, tag="even"):
            found.append((record.queue, record.number))
            if len(found) == 48:
                all_there.set()

    async def run(store: Store) -> None:
        following = asyncio.create_task(follow(store))
        for number in range(100):
            await store.append_async("orders", number % 2, b"", tag="even" if number % 4 < 2 else "odd")
        await asyncio.wait_for(all_there.wait(), 30)
        await asyncio.to_thread(store.close)
        await following

    with Store.open(tmp_path, SMALL) as store:
        asyncio.run(run(store))
        with pytest.raises(Stopped):
            asyncio.run(store.wait_for_async("orders", 0, 0))
    assert sorted(found) == [(0, n) for n in range(4, 50, 2)] + [(1, n) for n in range(0, 50, 2)]


def test_who_is_cancelled_leaves_the_others_waiting() -> None:
    async def run(store: Store) -> None:
        two = [asyncio.create_task(store.wait_for_async("orders", 0, 0)) for _ in range(2)]
        await asyncio.sleep(0)
        two[0].cancel()
        await store.append_async("orders", 0, b"")
        assert await two[1]
        with pytest.raises(asyncio.CancelledError):
            await two[0]

    with Store.open(SimulatedDisk(), SMALL) as store:
        asyncio.run(run(store))


def test_a_loop_that_was_closed_does_no_harm() -> None:
    async def run(store: Store) -> None:
        waiting = asyncio.create_task(store.wait_for_async("orders", 0, 0, timeout=None))
        await asyncio.sleep(0)
        waiting.cancel()

    with Store.open(SimulatedDisk(), SMALL) as store:
        turns = store._pool._turns
        asyncio.run(run(store))
        assert not turns
        turns.append(asyncio.run(_turn()))
        store.append("orders", 0, b"")
        assert store.wait_for("orders", 0, 0)


async def _turn() -> FutureTurn:
    return FutureTurn()


def test_a_store_that_closes_ends_waiting(tmp_path: Path) -> None:
    async def run(store: Store) -> bool:
        waiting = asyncio.create_task(store.wait_for_async("orders", 0, 5, timeout=None))
        await asyncio.sleep(0.01)
        await asyncio.to_thread(store.close)
        return await waiting

    with Store.open(tmp_path, SMALL) as store:
        assert asyncio.run(run(store)) is False
