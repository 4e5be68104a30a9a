"""Backup: a copy made while a store is written to opens as a store, and lacks nothing that was acknowledged."""

import errno
import itertools
import os
import shutil
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Self

import pytest

from gapless import check
from gapless.impl.environment import mapped_file
from gapless.impl.environment.operating_system import RealDisk
from gapless.impl.files.cursors import CURSORS
from gapless.impl.files.queues import ConsumeQueue
from gapless.impl.records.errors import DiskFull, NotAStore, Refused, Stopped, StoreError
from gapless.impl.records.record import Messages
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.impl.store.upkeep.backup import StoreCopy
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from tests.support.night import by_day
from tests.support.rocketmq.recordings import LAB, recording

SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False)


def conforms(folder: Path, profile: str = "strict") -> bool:
    return check([folder], profile=profile).verdict == "conforms"


def bodies(store: Store, topic: str = "orders") -> dict[int, list[bytes]]:
    """The messages of each queue, from the first that is kept."""
    found = {}
    for queue in [queue for queue in store.core.queues.all if queue.topic == topic]:
        low, high = store.range(topic, queue.id)
        found[queue.id] = [record.body for record in store.read(topic, queue.id, low, high - low)]
    return found


def no_more_than(folder: Path, *names: str) -> bool:
    """Nothing is in the folder but these."""
    return sorted(path.name for path in folder.iterdir()) == sorted(names)


def test_a_copy_has_all_that_the_store_has_and_goes_its_own_way(tmp_path: Path) -> None:
    clock = itertools.count(1000, 10).__next__
    with Store.open(tmp_path / "store", replace(SMALL, delays=(7, 8), reserved_hours=9), clock=clock) as store:
        for number in range(300):
            store.append("orders", number % 3, b"%d" % number * 9, tag="t")
        assert store.wait_for("orders", 0, 50)
        store.group("billing").commit("orders", 0, 50, durable=False)
        end = store.backup(tmp_path / "copies" / "first")
        assert end == store.core.log.end
        before = bodies(store)
        store.append("orders", 0, b"later")
    assert conforms(tmp_path / "copies" / "first")
    assert no_more_than(tmp_path / "copies", "first")
    with Store.open(tmp_path / "copies" / "first", clock=clock) as copy:
        assert copy.core.recovered < 100, "it was closed: one file alone is looked at"
        assert bodies(copy) == before
        assert copy.group("billing").cursor("orders", 0) == 50
        assert (copy.core.kept.delays, copy.core.kept.reserved_hours) == ((7, 8), 9)
        assert copy.append("orders", 0, b"its own").number == len(before[0])
        copy.backup(tmp_path / "copies" / "second")
    assert conforms(tmp_path / "copies" / "first")
    assert conforms(tmp_path / "copies" / "second")
    assert conforms(tmp_path / "store")


def test_what_has_no_entry_yet_is_waited_for(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store", replace(SMALL, batch_records=10, workers=1)) as store:
        store.append_batch(Messages.of_list([("orders", number % 3, b"%d" % number * 9, {}) for number in range(3000)]))
        store.backup(tmp_path / "copy")
    assert not (tmp_path / "copy" / "abort").exists()
    assert conforms(tmp_path / "copy")


def test_a_copy_takes_room_for_what_is_in_it(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        store.append("orders", 0, b"x" * (3 << 20))
        store.backup(tmp_path / "copy")
    files = [file for file in (tmp_path / "copy").rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) > 1 << 30
    assert sum(512 * file.stat().st_blocks for file in files) < 4 << 20
    assert conforms(tmp_path / "copy")


class Busy:
    """A store to whose two queues two threads append, while all but its last files expire.

    `acknowledged`: how many messages of each queue `append` has returned for · `wrong`: what ended a thread.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.acknowledged = [0, 0]
        self.wrong: list[BaseException] = []
        self._over = threading.Event()
        whats = [partial(self._append_to, 0), partial(self._append_to, 1), self._expire]
        self._threads = [threading.Thread(target=self._do, args=(what,)) for what in whats]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def wait(self, messages: int) -> None:
        """So many of each queue are acknowledged."""
        while min(self.acknowledged) < messages:
            assert not self.wrong
            self._over.wait(0.001)

    @staticmethod
    def body(queue: int, number: int) -> bytes:
        """The body of a message."""
        return b"%d of %d." % (number, queue) * (number % 20)

    def _append_to(self, queue: int) -> None:
        for number in itertools.count():
            if self._over.is_set():
                return
            assert self.store.append("orders", queue, self.body(queue, number)).number == number
            assert number < 100 or self.store.wait_for("orders", queue, number - 100, 60)  # before that, none expires
            self.acknowledged[queue] = number + 1

    def _expire(self) -> None:
        while not self._over.wait(0.001):
            self.store.expire()

    def _do(self, what: Callable[[], None]) -> None:
        try:
            what()
        except BaseException as error:  # noqa: BLE001 - reported
            self.wrong.append(error)


@pytest.mark.parametrize("synchronous", [True, False])
def test_copies_are_consistent_while_others_append_and_files_expire(tmp_path: Path, *, synchronous: bool) -> None:
    settings = replace(SMALL, synchronous=synchronous, reserved_bytes=6 << 13, expire_interval=1)
    low, ends = 0, [0]
    with Store.open(tmp_path / "store", settings, clock=itertools.count(1000).__next__) as store, Busy(store) as busy:
        for number in range(6):
            busy.wait(100 * number)
            acknowledged, copied = list(busy.acknowledged), tmp_path / str(number)
            ends.append(store.backup(copied))
            assert conforms(copied)
            with Store.open(copied, replace(settings, expire_interval=0, change=True)) as copy:
                assert copy.core.log.end == ends[-1] > ends[-2]
                for queue in range(2):
                    low, high = copy.range("orders", queue)
                    assert high >= acknowledged[queue], "what was acknowledged before is there"
                    bodies = [record.body for record in copy.read("orders", queue, low, high - low)]
                    assert bodies == [busy.body(queue, number) for number in range(low, high)]
    assert not busy.wrong
    assert low > 0, "some had expired"
    assert conforms(tmp_path / "store")


def test_what_is_appended_while_it_is_made_is_not_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same queue, others, and new files of both, after the end was taken, before entries are copied."""
    with Store.open(tmp_path / "store", SMALL) as store:
        for number in range(100):
            store.append("orders", number % 2, b"%d" % number * 9)
        assert store.wait_for("orders", 1, 49)
        before = bodies(store)

        def late(copy: StoreCopy, queue: ConsumeQueue, end: int, made: list[Any]) -> bool:
            monkeypatch.undo()
            for number in range(100):
                store.append("orders", number % 4, b"late")
            assert store.wait_for("orders", 3, 24)
            assert store.wait_for("orders", 0, 60)
            store.group("g").commit("orders", 0, 60)
            return copied(copy, queue, end, made)

        copied = StoreCopy._copy_queue
        monkeypatch.setattr(StoreCopy, "_copy_queue", late)
        store.backup(tmp_path / "copy")
    assert conforms(tmp_path / "copy")
    assert not (tmp_path / "copy" / CURSORS).exists()
    with Store.open(tmp_path / "copy") as copy:
        assert bodies(copy) == before
        assert [copy.append("orders", queue, b"").number for queue in range(4)] == [50, 50, 0, 0]


@pytest.mark.parametrize("name", ["normal", *LAB[:3]])
def test_a_brokers_store_is_copied(tmp_path: Path, name: str) -> None:
    shutil.copytree(recording(name), tmp_path / "store")
    with Store.open(tmp_path / "store") as store:
        store.append("orders", 0, b"ours")
        store.backup(tmp_path / "copy")
    assert conforms(tmp_path / "store", "rocketmq") == conforms(tmp_path / "copy", "rocketmq")
    names = [{str(path.relative_to(tmp_path / of)) for path in (tmp_path / of).rglob("*")} for of in ("store", "copy")]
    assert names[0] - names[1] <= {"abort"}
    with Store.open(tmp_path / "store") as store, Store.open(tmp_path / "copy") as copy:
        for queue in store.core.queues.all:
            assert copy.range(queue.topic, queue.id) == store.range(queue.topic, queue.id)


def test_a_store_without_workers_or_messages_is_copied_too(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store", replace(SMALL, workers=0)) as store:
        assert store.backup(tmp_path / "empty") == 0
        for number in range(200):
            store.append("orders", 0, b"%d" % number * 9)
        assert store.backup(tmp_path / "unbuilt") == store.core.log.end
    assert (tmp_path / "unbuilt" / "abort").exists(), "the next start knows that entries are missing"
    with Store.open(tmp_path / "empty") as copy:
        assert copy.append("orders", 0, b"x").number == 0
    with Store.open(tmp_path / "unbuilt") as copy:
        assert bodies(copy) == {0: [b"%d" % number * 9 for number in range(200)]}
    assert conforms(tmp_path / "unbuilt")


# -- what is refused, and what goes wrong ------------------------------------------------------------------------------


def test_where_something_is_or_the_store_lies_no_copy_is_made(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "into").symlink_to(tmp_path / "store")
    with Store.open(tmp_path / "store", SMALL) as store:
        store.append("orders", 0, b"x")
        for name in ("empty", "file", "link", "store"):
            with pytest.raises(Refused, match=f"{name}: it is there already"):
                store.backup(tmp_path / name)
        for name in ("store/copy", "into/copy", "store/config/copy"):
            with pytest.raises(Refused, match="it lies in the store itself"):
                store.backup(tmp_path / name)
        with pytest.raises(StoreError, match="file"):
            store.backup(tmp_path / "file" / "copy")
        assert no_more_than(tmp_path, "empty", "file", "into", "link", "store")
        assert no_more_than(tmp_path / "empty")
        assert store.append("orders", 0, b"y").number == 1
    with pytest.raises(Stopped):
        store.backup(tmp_path / "copy")


@pytest.mark.parametrize("room", [0, 5, 15, 60])
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    with Store.open(tmp_path / "store", SMALL) as store:
        for number in range(300):
            store.append("orders", number % 3, b"%d" % number * 9)
        assert store.wait_for("orders", 2, 99)
        left = [room]

        def reserve(descriptor: int, low: int, high: int) -> None:
            if not left[0]:
                raise OSError(errno.ENOSPC, "no room")
            left[0] -= 1
            before(descriptor, low, high)

        before = mapped_file._reserve
        with monkeypatch.context() as patched:
            patched.setattr(mapped_file, "_reserve", reserve)
            if room < 60:
                with pytest.raises(DiskFull, match=r"copy: there is no copy, .* no room on the disk"):
                    store.backup(tmp_path / "copy")
                assert no_more_than(tmp_path, "store")
        assert store.backup(tmp_path / "copy") == store.core.log.end
    assert conforms(tmp_path / "copy")


def test_a_store_that_closes_ends_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(tmp_path / "store", SMALL)
    for number in range(100):
        store.append("orders", 0, b"%d" % number * 9)

    def closing(copy: StoreCopy, queue: ConsumeQueue, end: int, made: list[Any]) -> bool:
        store.close()
        return copied(copy, queue, end, made)

    copied = StoreCopy._copy_queue
    monkeypatch.setattr(StoreCopy, "_copy_queue", closing)
    with pytest.raises(Stopped):
        store.backup(tmp_path / "copy")
    assert no_more_than(tmp_path, "store")
    assert conforms(tmp_path / "store")


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("files", by_day([1, 4, 12]))
def test_an_interrupted_backup_leaves_nothing_and_the_store_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """Ctrl-C comes when the copy is at its so many-th file."""
    before, left = signal.signal(signal.SIGINT, signal.default_int_handler), [files]

    def filling(copy: StoreCopy, *of: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            deadline = monotonic() + 20
            while monotonic() < deadline:
                copy._go_on()  # until it says that it was cancelled
        return fill(copy, *of)

    fill = StoreCopy._fill
    try:
        with Store.open(tmp_path / "store", SMALL) as store:
            for number in range(300):
                store.append("orders", number % 3, b"%d" % number * 9)
            with monkeypatch.context() as patched:
                patched.setattr(StoreCopy, "_fill", filling)
                with pytest.raises(KeyboardInterrupt):
                    store.backup(tmp_path / "copy")
            assert no_more_than(tmp_path, "store")
            assert store.expire(0) == 0
            store.backup(tmp_path / "copy")
    finally:
        signal.signal(signal.SIGINT, before)
    assert conforms(tmp_path / "copy")


def test_who_wants_files_deleted_waits_for_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And does not keep the thread that flushes the log busy meanwhile."""
    gate, begun = threading.Event(), threading.Event()

    def waiting_fill(copy: StoreCopy, *of: Any) -> Any:
        begun.set()
        assert gate.wait(20)
        return fill(copy, *of)

    fill = StoreCopy._fill
    with Store.open(tmp_path / "store", SMALL, clock=itertools.count(1000).__next__) as store:
        for number in range(300):
            store.append("orders", number % 3, b"%d" % number * 9)
        monkeypatch.setattr(StoreCopy, "_fill", waiting_fill)
        flushes: list[int] = []
        copying = threading.Thread(target=store.backup, args=(tmp_path / "copy",))
        expiring = threading.Thread(target=store.expire, args=(10**9,))
        copying.start()
        assert begun.wait(20)
        monkeypatch.setattr(store.core.log, "flush", lambda: flushes.append(1))
        expiring.start()
        store._house.call()
        expiring.join(0.1)
        assert expiring.is_alive()
        assert store.core.log.start == 0
        assert len(flushes) < 3
        monkeypatch.undo()
        gate.set()
        copying.join()
        expiring.join()
        assert store.core.log.start > 0
    with Store.open(tmp_path / "copy") as copy:
        assert copy.range("orders", 0) == (0, 100)


def test_no_copy_that_was_killed_is_taken_for_a_store(tmp_path: Path) -> None:
    """A child copies, and is killed after one file more each time, until it gets through."""
    with Store.open(tmp_path / "store", SMALL) as store:
        for number in range(40):
            store.append("orders", number % 2, b"%d" % number * 9)
    target, steps = tmp_path, 0
    while True:
        steps += 1
        target = tmp_path / str(steps)
        target.mkdir()
        child = os.fork()
        if not child:
            try:
                _die_after(steps)
                Store.open(tmp_path / "store").backup(target / "copy")
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        for found in target.iterdir():
            if found.name == "copy" or (found / "commitlog").exists():
                assert conforms(found)
                Store.open(found).close()
            elif {path.name for path in found.iterdir()} - {"lock"}:
                with pytest.raises(NotAStore):
                    Store.open(found)
        if not os.waitstatus_to_exitcode(status):
            break
    assert no_more_than(target, "copy")
    assert steps > 10


def _die_after(steps: int) -> None:
    """Kill this process before a numbered file operation of a copy: create, write, sync or rename."""
    left = itertools.count(steps, -1)

    def counted(what: Callable[..., Any]) -> Callable[..., Any]:
        def some(*arguments: Any, **more: Any) -> Any:
            if not next(left):
                os.kill(os.getpid(), 9)
            return what(*arguments, **more)

        return some

    for name in ("create", "write", "sync"):
        setattr(RealDisk, name, counted(getattr(RealDisk, name)))
    Path.rename = counted(Path.rename)  # type: ignore[method-assign]


def test_a_copy_onto_a_simulated_disk_survives_the_loss_of_power(tmp_path: Path) -> None:
    """All that a copy promises is durable before its checkpoint is."""
    with Store.open(tmp_path / "store", SMALL) as store:
        for number in range(100):
            store.append("orders", number % 3, b"%d" % number * 9)
        end, newest = store._end_of_what_is_visible()
        disk, before = SimulatedDisk(), bodies(store)
        copy = StoreCopy(store.core, disk, lambda: None)
        copy.copy_others()
        copy.copy_messages(end, newest, 1000)
        copy.write_checkpoint()
        found = disk.crash()
        assert found.files() == disk.files()
        with Store.open(found) as copied:
            assert bodies(copied) == before
        full = SimulatedDisk(capacity=10_000)
        with pytest.raises(DiskFull):
            StoreCopy(store.core, full, lambda: None).copy_messages(end, newest, 1000)
    found.save(tmp_path / "copy")
    assert conforms(tmp_path / "copy")
