"""A durable step costs as few syncs as the promises allow, and is promised only if they succeed."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread
from time import sleep
from unittest import mock

import pytest

from gapless.impl.dispatch.pool import Pool
from gapless.impl.environment.memory import FileInMemory, MemoryDisk
from gapless.impl.records.errors import Stopped
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store

PATIENCE = 30.0  # seconds, far more than any of this takes
LOG_FILE = 1 << 16
NEVER = 1 << 31  # ms: no flush but for callers
DURABLE = Settings(file_size=LOG_FILE, queue_file_size=4000, synchronous=True, flush_interval=NEVER, pre_allocate=False)


class Syncs:
    """The syncs of a log's files. `before`: called by each, in the thread that syncs."""

    def __init__(self) -> None:
        self.count = 0
        self.before: Callable[[], None] = lambda: None

    @contextmanager
    def counted(self, expected: int) -> Iterator[None]:
        """A block with so many of them."""
        begin = self.count
        yield
        assert self.count - begin == expected


@pytest.fixture
def syncs() -> Syncs:
    return Syncs()


@pytest.fixture
def store(syncs: Syncs) -> Iterator[Store]:
    class CountedFile(FileInMemory):
        def sync(self) -> None:
            if len(self.data) == LOG_FILE:
                syncs.count += 1
                syncs.before()

    opened = Store.open(MemoryDisk(CountedFile), DURABLE)
    opened.append("orders", 0, b"the first one")
    yield opened
    opened.abandon()


def in_a_thread(what: Callable[[], object]) -> None:
    """It is done by a thread that is not the main one."""
    thread = Thread(target=what, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.parametrize("by", [lambda what: what(), in_a_thread], ids=["main thread", "other thread"])
def test_a_durable_append_costs_one_sync(
    store: Store, syncs: Syncs, by: Callable[[Callable[[], object]], None]
) -> None:
    with syncs.counted(20):
        by(lambda: [store.append("orders", 0, b"one") for _ in range(20)])


@pytest.mark.parametrize("by", [lambda what: what(), in_a_thread], ids=["main thread", "other thread"])
def test_a_durable_transaction_costs_two_syncs_and_one_where_its_half_is_not_waited_for(
    store: Store, syncs: Syncs, by: Callable[[Callable[[], object]], None]
) -> None:
    with store.transactions("producers") as tx:
        with syncs.counted(20):
            by(lambda: [tx.begin("orders", 0, b"one").commit() for _ in range(10)])
        with syncs.counted(10):
            by(lambda: [tx.begin("orders", 0, b"one", wait=False).commit() for _ in range(10)])
        with syncs.counted(0):
            by(lambda: tx.begin("orders", 0, b"one", wait=False).roll_back())


def test_begins_and_commits_of_many_threads_share_one_sync(store: Store, syncs: Syncs) -> None:
    begun, over = Event(), Event()

    def block() -> None:
        if not begun.is_set():
            begun.set()
            assert over.wait(PATIENCE)

    with store.transactions("producers") as tx:
        open_ = [tx.begin("orders", 0, b"one") for _ in range(4)]
        syncs.before = block
        with syncs.counted(2):
            first = Thread(target=store.append, args=("orders", 0, b"one"), daemon=True)
            first.start()
            assert begun.wait(PATIENCE)
            calls = [half.commit for half in open_] + [lambda: tx.begin("orders", 0, b"one")] * 4
            others = [Thread(target=call, daemon=True) for call in calls]
            for other in others:
                other.start()
            while len(store._commit._leading) < len(others):
                sleep(0.001)
            over.set()
            for thread in (first, *others):
                thread.join(PATIENCE)
                assert not thread.is_alive()


def test_a_disk_that_fails_in_the_main_thread_stops_the_store(store: Store, syncs: Syncs) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, "the disk failed")

    syncs.before = fail
    with syncs.counted(1), pytest.raises(Stopped, match="the disk failed"):
        store.append("orders", 0, b"one")
    syncs.before = lambda: None
    with pytest.raises(Stopped):  # a second try could succeed and have written nothing
        store.append("orders", 0, b"one")
    with pytest.raises(Stopped):
        store.close()


def test_an_interrupted_sync_of_the_main_thread_keeps_no_other_thread_waiting(store: Store, syncs: Syncs) -> None:
    def interrupt() -> None:
        syncs.before = lambda: None
        raise KeyboardInterrupt

    syncs.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        store.append("orders", 0, b"one")
    assert store.core.log.flushed < store.core.log.end
    in_a_thread(lambda: store.append("orders", 0, b"two"))
    assert store.append("orders", 0, b"three").number == 3
    assert store.core.log.flushed == store.core.log.end


def test_the_main_thread_syncs_through_a_descriptor_of_its_own(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store", DURABLE) as store:
        log = store.core.log
        for _ in range(3 * LOG_FILE // 5000):
            store.append("orders", 0, bytes(4000))
            usual, apart = log.segments.file(log.end - 1), log.segments._apart
            assert apart is not None
            assert apart[1].path == usual.path  # type: ignore[attr-defined]  # files of a real disk
            assert apart[1].descriptor != usual.descriptor  # type: ignore[attr-defined]
    assert log.segments._apart is None


def test_a_caller_who_waits_wakes_a_worker_that_looks_again_soon() -> None:
    pool = Pool(mock.Mock(has_more=lambda limit: limit > 0), limit=lambda: 1)
    pool.asleep = pool._attentive = 1
    pool.nudge()
    assert pool._news.empty()
    pool.line_up(Lock())
    assert not pool._news.empty()
