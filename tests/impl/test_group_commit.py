"""Group commit: every thread that waits is served, by another's flush or by its own, in whatever order they come."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from threading import Event, Lock, Thread, get_ident, main_thread
from time import monotonic, sleep

import pytest

from gapless.impl.store import group_commit
from gapless.impl.store.group_commit import THE_LAST, GroupCommit

PATIENCE = 30.0  # seconds, far more than any of this takes


class Log:
    """A log that is flushed by a group commit; `flushers`: the threads that did it."""

    def __init__(self, takes: float = 0.0) -> None:
        self.end = self.flushed = 0
        self.flushers: list[int] = []
        self.failing: Exception | None = None
        self.commit = GroupCommit(self.flush)
        self._takes, self._appending, self._one = takes, Lock(), Lock()
        self._closing = False
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def flush(self) -> int:
        """One thread at a time."""
        assert self._one.acquire(blocking=False), "two threads flush at once"
        end = self.end
        sleep(self._takes)
        if self.failing is not None:
            raise self.failing
        self.flushed = end
        self.flushers.append(get_ident())
        self._one.release()
        return self.flushed

    def append(self) -> None:
        """One message more, on disk when this returns."""
        with self._appending:
            self.end += 1
            position = self.end
        self.commit.wait(lambda: self.flushed >= position or self.commit.ended, position)

    def _serve(self) -> None:
        """The store's own thread."""
        with suppress(OSError):
            while not self._closing:
                if self.commit.sleep():
                    self.commit.flush()
        self.commit.end()

    def close(self) -> None:
        """The thread has ended when this returns."""
        self._closing = True
        self.commit.call()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@pytest.fixture(autouse=True)
def _switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(count: int, log: Log, appends: int) -> None:
    """Serve all appends in threads: a thread that is never woken fails this, instead of hanging."""

    def append() -> None:
        for _ in range(appends):
            log.append()

    threads = [Thread(target=append, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    deadline = monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0, deadline - monotonic()))
    assert not any(thread.is_alive() for thread in threads), "a thread waits, and will never be woken"


@pytest.mark.parametrize("takes", [0.0, 0.0002], ids=["fast", "slow"])
@pytest.mark.parametrize("count", [1, 2, 8, 40])
def test_all_are_served(count: int, takes: float) -> None:
    log = Log(takes)
    in_threads(count, log, 4000 // count if not takes else 400 // count)
    log.close()
    assert log.flushed == log.end
    assert len(log.flushers) <= log.end


def test_a_thread_flushes_for_itself_and_the_main_thread_never_does() -> None:
    log = Log()
    in_threads(1, log, 50)
    assert log._thread.ident not in log.flushers
    assert len(log.flushers) == 50
    log.append()
    log.close()
    assert log.flushers[50:] == [log._thread.ident]
    assert main_thread().ident not in log.flushers


def test_one_flush_is_for_all_who_came_before_it() -> None:
    log, count = Log(0.02), 30
    in_threads(count, log, 4)
    log.close()
    assert len(log.flushers) < log.end // 4


def test_what_a_flush_raises_ends_waiting_for_all() -> None:
    log = Log(0.001)
    log.failing = OSError("the disk failed")
    in_threads(8, log, 1)
    log.close()
    assert log.commit.error is log.failing
    assert log.flushed == 0


def test_who_waits_for_the_end_is_reported_of_it() -> None:
    log, written = Log(), Event()
    ended = Event()

    def wait() -> None:
        log.commit.wait(ended.is_set, THE_LAST)
        written.set()

    thread = Thread(target=wait, daemon=True)
    thread.start()
    in_threads(2, log, 20)
    assert not written.is_set()
    log.close()
    ended.set()
    log.commit.answer_all()
    assert written.wait(PATIENCE)


def test_the_main_thread_flushes_apart_where_it_is_alone() -> None:
    flushed, apart = [0], list[int]()

    def flush_apart() -> None:
        apart.append(get_ident())
        flushed[0] += 1

    commit = GroupCommit(lambda: flushed[0], flush_apart)
    commit.wait(lambda: flushed[0] >= 1, 1)
    commit.wait(lambda: flushed[0] >= 1, 1)  # it is done
    assert apart == [main_thread().ident]
    commit.line_up(2, Lock())  # another one waits, and both are for the thread that serves them
    answers = iter([False, True, True])
    commit.wait(lambda: next(answers), 2)
    assert len(apart) == 1


def test_a_thread_does_not_spin_while_another_waits_for_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python calls a lock unlocked until the thread that has it runs: up to five milliseconds."""

    class TakenLock:
        """A lock that another thread has, which has not run since."""

        attempts = 0
        is_taken = True

        def acquire(self, *, blocking: bool = True) -> bool:
            assert not blocking
            self.attempts += 1
            assert self.attempts < 10, "it spins"
            return not self.is_taken

        def release(self) -> None:
            """Nothing waits."""

        def locked(self) -> bool:
            return False

    flushed, lock = [0], TakenLock()

    def flush() -> int:
        flushed[0] = 1
        return 1

    commit = GroupCommit(flush)
    commit._flushing = lock  # type: ignore[assignment]
    monkeypatch.setattr(group_commit, "sleep", lambda _: setattr(lock, "is_taken", False))
    thread = Thread(target=commit.wait, args=(lambda: flushed[0] == 1, 1))
    thread.start()
    thread.join(PATIENCE)
    assert (flushed, lock.attempts) == ([1], 2)
