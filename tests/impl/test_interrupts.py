"""Ctrl-C during a call: the store continues, and a message is whole or missing."""

import errno
import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from gapless import check
from gapless.impl.files.log import CommitLog
from gapless.impl.records import kernels
from gapless.impl.records.errors import DiskFull, InUse, Stopped
from gapless.impl.records.record import Messages
from gapless.impl.store.core import Core, Settings
from gapless.impl.store.store import Store
from gapless.properties.simulation.simulated_disk import SimulatedDisk

pytestmark = pytest.mark.usefixtures("interrupts")

SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False)


def interrupted_after(what: Callable[..., Any], calls: int = 1) -> Callable[..., Any]:
    """The same, but that Ctrl-C comes right after the so many-th call."""
    left = [calls]

    def interrupted(*arguments: Any, **more: Any) -> Any:
        answer = what(*arguments, **more)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return answer

    return interrupted


def batch(count: int, queue: int = 0) -> Messages:
    return Messages.of_list([("orders", queue, b"%d" % number * 9, {}) for number in range(count)])


def require_whole(folder: Path, bodies: list[bytes]) -> None:
    """The store was closed in order, has these messages in its queue, and zeros behind its end."""
    assert check([folder], profile="strict").verdict == "conforms"
    with Store.open(folder) as store:
        assert [record.body for record in store.read("orders", 0, 0, 10_000)] == bodies
        assert not store.core.log.view(store.core.log.end - 1)[0][store.core.log.end % store.core.log.file_size :].any()


# -- append, append_batch, roll ---------------------------------------------------------------------------------------


def test_an_interrupted_batch_leaves_nothing_behind_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path, SMALL) as store:
        store.append("orders", 0, b"first")
        with monkeypatch.context() as patched:
            patched.setattr(kernels, "encode_many", interrupted_after(kernels.encode_many))
            with pytest.raises(KeyboardInterrupt) as raised:
                store.append_batch(batch(5))
        assert raised.value.__notes__ == ["the first 0 messages of the batch are in the log, and no others"]
        store.append("other", 0, b"")
        assert store.append("orders", 0, b"second").number == 1
    require_whole(tmp_path, [b"first", b"second"])


def test_the_strict_check_sees_what_is_left_behind_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path, SMALL, clock=itertools.count(0, 10).__next__) as store:
        store.append("orders", 0, b"first")
        with monkeypatch.context() as patched:
            patched.setattr(kernels, "encode_many", interrupted_after(kernels.encode_many))
            with pytest.raises(KeyboardInterrupt):
                store.append_batch(batch(5))
        store.core.log._under_way = None  # a store that forgets
        store.append("other", 0, b"")
    report = check([tmp_path], profile="strict")
    assert report.verdict == "inconclusive"
    assert "4 records behind the log's end" in str(report.sources[0].reasons)


def test_an_interrupted_batch_keeps_what_was_in_a_full_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path, SMALL) as store:
        with monkeypatch.context() as patched:
            patched.setattr(kernels, "encode_many", interrupted_after(kernels.encode_many, calls=3))
            with pytest.raises(KeyboardInterrupt) as raised:
                store.append_batch(batch(200))
        inside = int(raised.value.__notes__[0].split()[2])
        assert 50 < inside < 200
        assert store.append("orders", 0, b"next").number == inside
    require_whole(tmp_path, [b"%d" % number * 9 for number in range(inside)] + [b"next"])


def test_an_interrupt_at_the_end_of_a_file_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("_sync", "_write_to", "_flushed")):
        folder = tmp_path / str(number)
        with Store.open(folder, Settings(file_size=600, queue_file_size=400, workers=0)) as store:
            store.append("orders", 0, b"a" * 200)
            with monkeypatch.context() as patched:
                patched.setattr(CommitLog, name, interrupted_after(getattr(CommitLog, name)))
                with pytest.raises(KeyboardInterrupt):
                    store.append("orders", 0, b"b" * 300)
            assert [store.append("orders", 0, b"c").number, store.append("orders", 0, b"d" * 300).number] == [1, 2]
        require_whole(folder, [b"a" * 200, b"c", b"d" * 300])


def test_a_batch_that_a_full_disk_cuts_off_says_what_is_in_the_log() -> None:
    disk = SimulatedDisk()
    with Store.open(disk, SMALL) as store:
        store.append("orders", 0, b"first")
        store.wait_for("orders", 0, 0)
        disk.fail(errno.ENOSPC, verb="create", path="commitlog/*", times=1)
        with pytest.raises(DiskFull) as raised:
            store.append_batch(batch(100))
        assert raised.value.appended is not None
        positions, numbers = raised.value.appended
        assert numbers.tolist() == list(range(1, 1 + len(numbers)))
        assert [store.at(position).number for position in positions.tolist()] == numbers.tolist()
        assert store.append("orders", 0, b"next").number == 1 + len(numbers)


# -- waiting, expire, close ------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def ctrl_c_interrupts() -> Iterator[None]:
    """A shell starts what runs behind its back with Ctrl-C ignored, and Spark leaves a handler of its own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(what: Callable[[], object]) -> None:
    """Ctrl-C comes while this is done, again and again; none comes later."""
    main = threading.main_thread().ident
    assert main == threading.get_ident()
    presses = threading.Timer(0.005, signal.pthread_kill, (main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - until it comes
        presses.start()
        until = monotonic() + 20
        while monotonic() < until:
            what()
    presses.join()


def gated(what: Callable[..., Any], gate: threading.Event) -> Callable[..., Any]:
    """The same, once the gate is open."""

    def waits(*arguments: Any) -> Any:
        assert gate.wait(20)
        return what(*arguments)

    return waits


def in_time(what: Callable[[], object]) -> None:
    """This ends, as nothing holds what it needs."""
    thread = threading.Thread(target=what, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it hangs"


def test_an_interrupted_wait_blocks_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path, Settings(file_size=8192, queue_file_size=400, synchronous=True)) as store:
        for number in range(40):
            waits = (
                lambda: store.wait_for("orders", 0, 10**6, timeout=0.001),
                lambda: store.wait_for("orders", 0, 10**6),
                store.flush,
            )
            interrupted(waits[number % 3])
            store.append("orders", 0, b"%d" % number)
            assert store.wait_for("orders", 0, number)
        in_time(store.close)
    require_whole(tmp_path, [b"%d" % number for number in range(40)])


def test_an_interrupted_close_continues_and_may_be_called_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    monkeypatch.setattr(Core, "close", gated(Core.close, gate))
    store = Store.open(tmp_path, SMALL)
    store.append("orders", 0, b"x")
    interrupted(store.close)
    interrupted(store.close)
    with pytest.raises(InUse):
        Store.open(tmp_path)
    gate.set()
    in_time(store.close)
    assert not (tmp_path / "abort").exists()
    require_whole(tmp_path, [b"x"])


def test_an_interrupted_expire_may_be_called_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    with Store.open(tmp_path, SMALL, clock=itertools.count(0, 10).__next__) as store:
        with monkeypatch.context() as patched:
            patched.setattr(Core, "expire", gated(Core.expire, gate))
            for number in range(200):
                store.append("orders", 0, b"%d" % number)
            assert store.wait_for("orders", 0, 199)
            store.flush()
            interrupted(lambda: store.expire(300))
            gate.set()
            assert store.expire(900) > 0
        assert store.append("orders", 0, b"200").number == 200
        low, _ = store.range("orders", 0)
        assert low > 0
    with Store.open(tmp_path) as store:
        assert store.range("orders", 0) == (low, 201)
    assert check([tmp_path], profile="strict").verdict == "conforms"


def test_a_store_that_stopped_ends_all_who_ask_and_still_closes() -> None:
    disk = SimulatedDisk()
    store = Store.open(disk, SMALL)
    store.append("orders", 0, b"x")
    disk.fail(errno.EIO, verb="sync", path="commitlog/*", times=1)
    for ask in (store.flush, lambda: store.expire(0), store.close):
        with pytest.raises(Stopped):
            ask()
    store.close()
