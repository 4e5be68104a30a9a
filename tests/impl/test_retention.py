"""Retention: what the settings do not reserve goes by itself, and nothing else does."""

import errno
import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gapless import check
from gapless.impl.files.queues import ConsumeQueue
from gapless.impl.records.errors import Refused
from gapless.impl.store.core import NEVER, Core, Settings
from gapless.impl.store.store import Store
from gapless.impl.store.upkeep.retention import HOUR
from gapless.properties.simulation.simulated_disk import SimulatedDisk, SteppedClock
from tests.support.night import NIGHT

FILE = 8192
SMALL = Settings(file_size=FILE, queue_file_size=400, pre_allocate=False)
BY_ITSELF = replace(SMALL, reserved_hours=1, expire_interval=1000)


def fill(store: Store, count: int) -> None:
    """So many messages, in turn to three queues: visible, and on disk."""
    for number in range(count):
        store.append("orders", number % 3, b"%d" % number * 20)
    for queue in range(3):
        assert store.wait_for("orders", queue, store.core.queues.named("orders", queue).next - 1)
    store.flush()


def look(store: Store) -> int:
    """The store has looked for what has expired, if it was time to; returns where the log begins."""
    store.expire(0)  # it checks after a request is done, and before the next
    return store.expire(0)


def test_what_is_older_than_the_hours_goes_by_itself(tmp_path: Path) -> None:
    clock = SteppedClock()
    with Store.open(tmp_path, BY_ITSELF, clock=clock) as store:
        fill(store, 200)
        clock.advance(HOUR // 2)
        middle = store.core.log.end
        fill(store, 200)
        assert look(store) == 0
        clock.advance(HOUR // 2 + 1)
        start = look(store)
        assert middle - FILE < start <= middle
        assert min(path.name for path in (tmp_path / "commitlog").iterdir()) == f"{start:020d}"
        low, high = store.range("orders", 0)
        assert 0 < low < high
        assert len(store.read("orders", 0, low, 1000)) == high - low
        clock.advance(HOUR)
        look(store)
        assert [store.core.log.start] == store.core.log.segments.bases, "the file that is being written to stays"
        assert store.append("orders", 0, b"next").number == high
    assert check([tmp_path], profile="strict").verdict == "conforms"


@pytest.mark.parametrize("files", [0, 1, 3])
def test_the_oldest_go_where_the_log_has_more_bytes(tmp_path: Path, files: int) -> None:
    clock = SteppedClock()
    with Store.open(tmp_path, replace(BY_ITSELF, reserved_bytes=files * FILE + 1), clock=clock) as store:
        fill(store, 400)
        assert store.core.log.end > 5 * FILE
        clock.advance(1000)
        start, end, reserved = look(store), store.core.log.end, files * FILE + 1
        assert end - start <= reserved or start == store.core.log.segments.bases[-1]
        assert start == 0 or end - (start - FILE) > reserved, "no more goes than has to"
    assert check([tmp_path], profile="strict").verdict == "conforms"


def test_nothing_goes_without_a_request(tmp_path: Path) -> None:
    clock = SteppedClock()
    with Store.open(tmp_path, SMALL, clock=clock) as store:
        fill(store, 200)
        clock.advance(1000 * HOUR)
        assert look(store) == 0
        assert store.expire() > 0


def test_what_is_not_in_its_queue_or_not_on_disk_stays(tmp_path: Path) -> None:
    with Store.open(tmp_path, replace(BY_ITSELF, workers=0, reserved_bytes=1), clock=SteppedClock()) as store:
        for number in range(200):
            store.append("orders", 0, b"%d" % number * 20)
        store.flush()
        assert look(store) == 0
    core = Core.open(SimulatedDisk(), SMALL)
    queue = core.queues.named("orders", 0)
    while core.log.end < 3 * FILE + 100:
        core.append(queue, b"x" * 100, b"", 1000)
    while (batch := core.scan() or core.dispatch.take()) is not None:
        core.dispatch.take(batch)
        core.dispatch.build(batch)
        core.dispatch.wrote(batch)
        core.dispatch.commit_all(batch)
    assert core.log.flushed == 3 * FILE, "full files are on disk, and no more"
    assert core.expire(NEVER, 1) == 2 * FILE
    core.flush()
    assert core.expire(NEVER, 1) == 3 * FILE
    core.close(1000)


def test_how_much_is_kept_is_kept_with_the_store(tmp_path: Path) -> None:
    clock = SteppedClock()
    with Store.open(tmp_path, BY_ITSELF, clock=clock) as store:
        fill(store, 200)
    with pytest.raises(Refused, match=r"expire_interval=0, and the store was made with 1000"):
        Store.open(tmp_path, Settings(expire_interval=0))
    clock.advance(2 * HOUR)
    with Store.open(tmp_path, clock=clock) as store:
        assert look(store) == 0, "the clock has to show first that it keeps step"
        clock.advance(HOUR)
        assert look(store) > 0
    with Store.open(tmp_path, Settings(expire_interval=0, change=True), clock=clock) as store:
        fill(store, 200)
        clock.advance(2 * HOUR)
        assert look(store) == look(store) < store.core.log.segments.bases[-1]


def test_the_interval_is_kept_and_a_clock_that_steps_back_does_not_stop_it(tmp_path: Path) -> None:
    clock = SteppedClock()
    with Store.open(tmp_path, replace(BY_ITSELF, expire_interval=10 * HOUR), clock=clock) as store:
        look(store)
        fill(store, 200)
        clock.advance(9 * HOUR)
        assert look(store) == 0
        clock.advance(HOUR)
        assert look(store) > 0
        looked = clock()
        clock.set_by(-HOUR)
        look(store)
        assert store._retention.looked == looked
        clock.advance(10 * HOUR)
        look(store)
        assert store._retention.looked == looked + 9 * HOUR


def test_a_disk_that_refuses_does_not_end_the_store(tmp_path: Path) -> None:
    clock, disk = SteppedClock(), SimulatedDisk()
    with Store.open(disk, BY_ITSELF, clock=clock) as store:
        fill(store, 200)
        clock.advance(2 * HOUR)
        disk.fail(errno.EIO, verb="delete", path="commitlog/*", times=1)
        look(store)
        assert "commitlog/" in str(store._retention.error)
        fill(store, 3)
        clock.advance(1000)
        look(store)
        assert store._retention.error is None
        assert store.core.log.segments.bases[0] == store.core.log.start > 0
    disk.save(tmp_path)
    assert check([tmp_path], profile="strict").verdict == "conforms"


def test_who_waits_for_the_disk_does_not_wait_for_what_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, begun, gate = SteppedClock(), threading.Event(), threading.Event()

    def waiting_forget(queue: ConsumeQueue, start: int) -> None:
        begun.set()
        assert gate.wait(20)
        forget(queue, start)

    with Store.open(tmp_path, replace(BY_ITSELF, synchronous=True), clock=clock) as store:
        fill(store, 200)
        forget = ConsumeQueue.forget_below
        monkeypatch.setattr(ConsumeQueue, "forget_below", waiting_forget)
        clock.advance(2 * HOUR)
        assert begun.wait(20)
        in_time(lambda: [store.append("orders", 0, b"x" * 100) for _ in range(200)])
        assert not gate.is_set()
        gate.set()
        assert look(store) > 0
    assert check([tmp_path], profile="strict").verdict == "conforms"


def in_time(what: Callable[[], object]) -> None:
    """This ends, as nothing holds what it needs."""
    thread = threading.Thread(target=what, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it hangs"


APPENDED = 2000 if NIGHT else 700


def test_those_who_read_while_files_go_are_refused_and_nothing_else(tmp_path: Path) -> None:
    """Readers of every kind, next to a store that keeps deleting all but its last kilobytes."""
    clock, wrong = itertools.count(0, 10), list[BaseException]()
    settings = replace(SMALL, reserved_bytes=3 * FILE, expire_interval=1, queue_flush_interval=1)
    with Store.open(tmp_path, settings, clock=clock.__next__) as store:
        store.append("orders", 0, b"0")
        over = threading.Event()

        def reading(how: Callable[[int], Any]) -> None:
            while not over.is_set():
                try:
                    how(store.range("orders", 0)[0])
                except Refused:
                    continue
                except BaseException as error:  # noqa: BLE001 - reported below
                    wrong.append(error)
                    return

        ways: list[Callable[[int], Any]] = [
            lambda low: store.read("orders", 0, low),
            lambda low: store.get("orders", 0, low),
            lambda low: store.read_batch("orders", 0, low, 100),
            lambda _low: store.number_at("orders", 0, 1000),
        ]
        threads = [threading.Thread(target=reading, args=(way,)) for way in ways]
        for thread in threads:
            thread.start()
        for number in range(1, APPENDED):
            store.append("orders", 0, b"%d" % number * 20)
        assert store.wait_for("orders", 0, APPENDED - 1)
        over.set()
        for thread in threads:
            thread.join()
        store.flush()
        store.expire()
        assert wrong == []
        assert store.core.log.start > 0
    assert check([tmp_path], profile="strict").verdict == "conforms"
