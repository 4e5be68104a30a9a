"""Native code is loaded where no interrupt comes: by `NativeCode`, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import sleep

import pytest

from gapless.impl.dispatch.pool import Pool
from gapless.impl.environment import native_code
from gapless.impl.store.store import use_everything

PROGRAM = """
import asyncio, sys
from pathlib import Path
from numba.core import dispatcher
from gapless.impl.environment import native_code

outside, numba_compiles = [], dispatcher.Dispatcher._compile_for_args

def compiles(kernel, *args, **kw):
    if not native_code._LOADING.locked():
        outside.append(f"{kernel.py_func.__module__}.{kernel.py_func.__name__}{tuple(map(str, map(type, args)))}")
    return numba_compiles(kernel, *args, **kw)

dispatcher.Dispatcher._compile_for_args = compiles
folder = Path(sys.argv[1])
"""

STORES = """
from gapless.impl.recorder.recorder import Recorder
from gapless.store import Messages, Settings, Store
small = Settings(file_size=1 << 14, queue_file_size=2000, synchronous=False)

def append(store, count):
    for number in range(count):
        store.append("orders", number % 2, b"x" * (number % 3000), tag="t" * (number % 3), properties={"KEYS": "k"})
    store.append_batch([("orders", queue % 3, b"listed", {"DELAY": "3"}) for queue in range(count)])
    store.append_batch(Messages.of_list([("new", 0, b"column", {})] * count))

def read(store):
    store.wait_for("orders", 0, 5)
    store.read("orders", 0, *store.range("orders", 0)[:1])
    store.read_batch("orders", 0, store.range("orders", 0)[0], tag="t")
    store.get("orders", 0, store.range("orders", 0)[1] - 1)
    store.number_at("orders", 0, 1_700_000_000_000)
    list(store.find("orders", 0, "k"))

with Store.open(folder / "a", small) as store:
    append(store, 40)
    read(store)
    with Store.open_read_only(folder / "a") as view:
        read(view)
        view.refresh()
    group = store.group("billing")
    group.poll("orders", 0)
    group.commit("orders", 0)
    store.backup(folder / "b")
    store.stats()
for end in (Store.abandon, Store.close):
    store = Store.open(folder / "a")
    append(store, 5)
    end(store)
Store.open(folder / "b").close()
with Store.open(folder / "b") as store:
    append(store, 60)
    store.flush()
    store.expire(1 << 60)
    append(store, 2)
    store.abandon()
with Store.open(folder / "b") as store:
    append(store, 2)
"""

TRANSACTIONS = """
from gapless.store import Store
from gapless.impl.transactions.settings import TransactionSettings
for end in (Store.abandon, Store.close, Store.close):
    store = Store.open(folder / "c")
    settings = TransactionSettings(max_checks=1, transaction_timeout=0, check_interval=1)
    with store.transactions("g", lambda half: half.body == b"yes" or None, settings) as tx:
        for body in (b"yes", b"no", b"later"):
            tx.begin("orders", 0, body)
        tx.begin("orders", 0, b"1").commit()
        tx.begin("orders", 0, b"2").roll_back(wait=True)
        numbers = tx.begin_batch([("orders", 0, b"many", {})] * 9)
        tx.commit_batch(numbers[:4])
        tx.roll_back_batch(numbers[4:6])
        for _ in range(3):
            store._service.check_round()
        tx.counts()
    end(store)
"""

RECORDED = """
import os
from gapless.impl.recorder.recorder import Recorder
from gapless.store import Settings, Store
for at in range(2):
    with Recorder(folder / f"recorded{at}.parquet") as taken:
        with Store.open(folder / "d", Settings(file_size=1 << 14, queue_file_size=2000), recorder=taken) as store:
            store.append("orders", 0, b"one", tag="t")
            store.append_batch([("orders", queue % 3, b"listed" * 99, {"DELAY": "3"}) for queue in range(60)])
            store.wait_for("orders", 0, 10)
            if not at:
                store.abandon()
"""


def _run(folder: Path, part: str) -> str:
    """What is loaded outside of the threads that are for that, in a process that has loaded nothing."""
    ran = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}{part}\nprint(*outside, sep='\\n')", str(folder)],
        timeout=300, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return ran.stdout.strip()


def test_no_call_of_a_store_loads_native_code_itself(tmp_path: Path) -> None:
    assert _run(tmp_path, STORES) == ""


def test_a_view_loads_its_own(tmp_path: Path) -> None:
    _run(tmp_path, STORES)
    view = "from gapless.store import Store\nwith Store.open_read_only(folder / 'a') as store:\n    "
    assert _run(tmp_path, f"{view}store.read('orders', 0, 0); store.read_batch('orders', 0, 0)") == ""


def test_no_call_of_a_transaction_loads_native_code_itself(tmp_path: Path) -> None:
    assert _run(tmp_path, TRANSACTIONS) == ""


def test_no_call_of_a_store_that_is_recorded_loads_native_code_itself(tmp_path: Path) -> None:
    assert _run(tmp_path, RECORDED) == ""


def test_what_is_loaded_outside_is_noticed(tmp_path: Path) -> None:
    assert "kernels.scan" in _run(tmp_path, f"native_code.NativeCode.load = lambda code: None\n{STORES}")


def test_who_loads_it_waits_for_as_long_as_compiling_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """After ten seconds it read what was not there yet, and the rest was compiled where signals come."""
    patience: list[float | None] = []
    wait = Pool.wait

    def noted(pool: Pool, until: Callable[[], bool], timeout: float | None = None) -> bool:
        patience.append(timeout)
        return wait(pool, until, timeout)

    monkeypatch.setattr(Pool, "wait", noted)
    use_everything()
    assert set(patience) == {None}


def test_whoever_waits_long_is_told_why_and_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    native_code._tell.cache_clear()
    with caplog.at_level("INFO", "gapless"):
        native_code.NativeCode(lambda: None).load()
        assert not caplog.messages, "what is loaded soon is not worth a line"
        monkeypatch.setattr(native_code, "QUIET", 0.0)
        for _ in range(2):
            native_code.NativeCode(lambda: sleep(0.05)).load()
    assert caplog.messages == ["compiling native code, once"]
