"""Once a store is open, no caller's thread compiles anything: `open` does, and the store's own threads do."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from threading import Event, current_thread, main_thread
from typing import Any
from unittest import mock

from gapless.impl.environment.memory import MemoryDisk
from gapless.impl.files.log import LARGE
from gapless.impl.records.record import Messages
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.impl.store.view import StoreView
from gapless.native.objects.object_code import ObjectCode

PATIENCE = 30.0  # seconds, far more than any of this takes
SMALL = Settings(file_size=1 << 16, queue_file_size=4000)
MANY = [("orders", 0, b"many", {"KEYS": "key"})] * 9


def test_callers_compile_nothing_once_a_store_is_open() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # here, functions may be loaded already
        in_open, after = pool.submit(calls_that_compile).result()
    assert in_open == ["records.kernels.scan", "records.read_kernel.visible"], (
        "the rest is for the thread of `open_async`"
    )
    assert after == []


def calls_that_compile() -> tuple[list[str], list[str]]:
    """The functions that callers load while a store is opened, and later: with an empty cache they are compiled."""
    in_open, after = list[str](), list[str]()
    current = in_open
    load = ObjectCode._load

    def noted(code: ObjectCode, kinds: Any) -> Callable[..., Any]:
        if current_thread() is main_thread():
            current.append(code._name.removeprefix("gapless.impl."))
        return load(code, kinds)

    disk, nothing = MemoryDisk(), mock.PropertyMock(return_value=False)
    with mock.patch.object(ObjectCode, "_load", noted), mock.patch.object(ObjectCode, "is_kept", nothing):
        with asyncio.run(Store.open_async(disk, SMALL)) as store, store.transactions("producers") as tx:
            tx.begin("orders", 0, b"to be found again")
        with Store.open(disk, SMALL) as store:
            current = after
            _call(store)
            asyncio.run(_call_async(store))
            current = in_open
        with StoreView.open(disk) as view:
            current = after
            _read(view)
    return in_open, after


def _call(store: Store) -> None:
    store.append("orders", 0, b"one", tag="new")
    store.append("orders", 0, bytes(LARGE), tag="large")
    store.append_batch(MANY)
    store.append_batch(Messages.of_list(MANY))
    store.wait_for("orders", 0, 19)
    _read(store)
    group = store.group("billing")
    group.poll("orders", 0)
    group.poll_batch("orders", 0)
    group.commit("orders", 0)
    with store.transactions("producers", lambda _half: None) as tx:
        tx.begin("orders", 0, b"one").commit()
        tx.begin("orders", 0, bytes(LARGE)).roll_back(wait=True)
        halves = tx.begin_batch(MANY)
        tx.commit_batch(halves[:4])
        tx.roll_back_batch(halves[4:8])
    store.expire()
    store.stats()


def _read(of: Store | StoreView) -> None:
    for number in (0, 0, 1):
        of.get("orders", 0, number)
    of.at(0)
    of.read("orders", 0, 0)
    of.read_batch("orders", 0, 0, tag="new")
    of.number_at("orders", 0, 0)
    list(of.find("orders", 0, "key"))
    list(of.follow({("orders", 0): 0}, timeout=0))


async def _call_async(store: Store) -> None:
    number = (await store.append_async("orders", 0, b"one")).number
    await store.append_batch_async(MANY)
    await store.wait_for_async("orders", 0, number)
    async for _ in store.follow_async({("orders", 0): 0}, timeout=0):
        pass
    with store.transactions("others") as tx:
        async with await tx.begin_async("orders", 0, b"one"):
            pass
    await store.flush_async()


def test_a_store_whose_opening_was_cancelled_is_closed_again() -> None:
    disk, opened, closed = MemoryDisk(), Event(), Event()

    class SlowStore(Store):
        @classmethod
        def open(cls, *args: Any, **more: Any) -> Any:
            assert opened.wait(PATIENCE)
            return super().open(*args, **more)

        def close(self) -> None:
            super().close()
            closed.set()

    async def cancel() -> None:
        opening = asyncio.ensure_future(SlowStore.open_async(disk, SMALL))
        await asyncio.sleep(0)
        opening.cancel()
        with suppress(asyncio.CancelledError):
            await opening
        opened.set()
        await asyncio.to_thread(closed.wait, PATIENCE)

    asyncio.run(cancel())
    assert closed.is_set()
    Store.open(disk, SMALL).close()
