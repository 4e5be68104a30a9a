"""The statistics of a store, compared with known values."""

import errno
import os
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from gapless.impl.records.errors import Stopped
from gapless.impl.records.record import Messages
from gapless.impl.store.core import Core, Settings
from gapless.impl.store.store import Store
from gapless.impl.store.upkeep import stats
from gapless.impl.store.upkeep.stats import Meter
from gapless.properties.simulation.simulated_disk import SimulatedDisk, SteppedClock

SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False)


def test_they_agree_with_what_was_appended_and_is_on_the_disk(tmp_path: Path) -> None:
    clock = SteppedClock()
    with Store.open(tmp_path, SMALL, clock=clock) as store:
        for number in range(30):
            store.append("before", number % 2, b"x" * 100)
    with Store.open(tmp_path, clock=clock) as store:
        begin = store.core.log.end
        for number in range(100):
            store.append("orders", number % 3, b"x" * 100)
        store.append_batch(Messages.of_list([("orders", 0, b"y", {})] * 20))
        store.flush()
        assert store.wait_for("orders", 0, 53)
        assert store.wait_for("orders", 1, 32)
        assert store.wait_for("orders", 2, 32)
        found, end = store.stats(), store.core.log.end
        assert (found.time, found.log_start, found.log_end) == (clock.now, 0, end)
        assert (found.flushed, found.acknowledged, found.dispatched) == (end, end, end)
        assert (found.messages, found.appended_bytes, found.queues) == (120, end - begin, 5)
        assert (found.dispatch_lag, found.dispatch_lag_ms) == (0, 0)
        assert 0 < found.messages_per_second
        assert found.bytes_per_second > 100 * found.messages_per_second
        assert (found.expired_bytes, found.expiry_time, found.expiry_error, found.trouble) == (0, None, None, None)
        for folder, counted in (("commitlog", found.log_bytes), ("consumequeue", found.queue_bytes)):
            taken = sum(512 * file.stat().st_blocks for file in (tmp_path / folder).rglob("*") if file.is_file())
            assert counted <= taken <= counted + 4096 * 40, folder
        assert found.mapped_files > 5
        assert store.expire(clock.now + 1) == (expired := store.stats()).log_start > 0
        assert (expired.expired_bytes, expired.messages) == (expired.log_start, 120)
    with pytest.raises(FrozenInstanceError):
        found.flushes = 0  # type: ignore[misc]
    with pytest.raises(Stopped):
        store.stats()


def test_flushes_are_timed_and_only_the_last_ones_count(tmp_path: Path) -> None:
    with Store.open(tmp_path, replace(SMALL, synchronous=True)) as store:
        assert (store.stats().flushes, store.stats().last_flush_ms, store.stats().p99_flush_ms) == (0, 0, 0)
        for _ in range(5):
            store.append("orders", 0, b"x")
        found = store.stats()
        assert found.flushes == 5
        assert 0 < found.median_flush_ms <= found.p99_flush_ms
        assert 0 < found.last_flush_ms <= found.p99_flush_ms * 2
        store.flush()
        assert store.stats().flushes == 5, "there was nothing to flush"
    core = Core.open(SimulatedDisk(), SMALL)
    meter = Meter(core)
    for ms in range(stats.FLUSHES + 100):
        meter.flushed(ms)
    measured = meter.stats(0, expiry_time=None, unproven=0, expiry_error=None, trouble=None)
    assert (measured.flushes, measured.last_flush_ms) == (1124, 1123)
    assert measured.median_flush_ms == pytest.approx(611.5)
    assert measured.p99_flush_ms == pytest.approx(1112.77)
    core.abandon()


def test_what_consumers_do_not_see_yet_is_the_lag() -> None:
    clock = SteppedClock()
    with Store.open(SimulatedDisk(), replace(SMALL, workers=0), clock=clock) as store:
        store.append("orders", 0, b"x" * 8000)  # a blank follows, and then the next file
        clock.advance(1000)
        store.append("orders", 0, b"x" * 8000)
        clock.advance(500)
        found = store.stats()
        assert (found.dispatched, found.dispatch_lag, found.dispatch_lag_ms) == (0, store.core.log.end, 1500)
        for _ in range(2):
            batch = store.core.scan()
            assert batch is not None
            store.core.dispatch.take(batch)
            store.core.dispatch.build(batch)
            store.core.dispatch.wrote(batch)
            store.core.dispatch.commit_all(batch)
            lag = store.stats().dispatch_lag_ms
            assert lag == (0 if store.core.dispatch.dispatched == store.core.log.end else 500)


def test_rates_are_those_of_the_last_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 0.0
    monkeypatch.setattr(stats, "monotonic", lambda: seconds)
    core = Core.open(SimulatedDisk(), SMALL)
    meter, queue = Meter(core), core.queues.named("orders", 0)
    for second in range(100):
        seconds = float(second)
        for _ in range(10 if second >= 80 else 1):
            core.append(queue, b"x" * 100, b"", second)
        meter.sample()
    measured = meter.stats(0, expiry_time=None, unproven=0, expiry_error=None, trouble=None)
    assert measured.messages == 80 + 200
    assert measured.messages_per_second == 10
    core.abandon()


def test_what_stops_or_hinders_a_store_is_reported() -> None:
    disk = SimulatedDisk()
    store = Store.open(disk, SMALL)
    store.append("orders", 0, b"x")
    disk.fail(errno.EIO, verb="sync", path="commitlog/*", times=1)
    with pytest.raises(Stopped):
        store.flush()
    assert "the disk failed" in str(store.stats().trouble)
    with pytest.raises(Stopped):
        store.close()
    disk = SimulatedDisk()
    with Store.open(disk, replace(SMALL, pre_allocate=True)) as store:
        disk.fail(errno.ENOSPC, verb="create", path="commitlog/*8192", times=1 << 30)
        store.append("orders", 0, b"x" * 7000)
        store.expire(0)
        store.expire(0)
        assert "no room on the disk" in str(store.stats().trouble)
        disk.heal()
        store.expire(0)
        store.expire(0)
        assert store.stats().trouble is None


def test_a_forked_child_is_reported_nothing_and_copies_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        store.append("orders", 0, b"x")
        heard, writer = os.pipe()
        if not (child := os.fork()):
            answers = []
            for ask in (store.stats, lambda: store.backup(tmp_path.parent / "copy")):
                try:
                    ask()
                    answers.append("done")
                except Exception as error:  # noqa: BLE001 - reported
                    answers.append(type(error).__name__)
            os.write(writer, " ".join(answers).encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(heard, 99) == b"Stopped Stopped"
        assert not (tmp_path.parent / "copy").exists()
        os.close(heard)
        os.close(writer)
