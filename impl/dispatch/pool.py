"""The threads of dispatch: they choose which step is taken, and never what it does.

Every worker does the same: it takes the oldest batch that waits, or scans the next one where none does; builds it,
at the same time as the others; then sets its bits and commits. All steps but `build` are taken under one lock.

Ctrl-C reaches the main thread alone, and a `Condition` that it interrupts may leave its lock taken, or released twice.
So only the store's own threads wait on one; a caller waits on a lock of its own. For the same reason no thread calls
`Thread.start`, which waits on one, or `Thread.join`, which takes a thread for ended once it was interrupted.
"""

from __future__ import annotations

import threading
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Protocol

from gapless.impl.dispatch.batches import DispatchBatch
from gapless.impl.dispatch.dispatch import Dispatch
from gapless.impl.records.errors import DiskFull, StoreError


class Turn(Protocol):
    """A waiting thread: a lock that another thread releases, or a stand-in for it."""

    def release(self) -> None:
        """Wake the waiting thread, so that it looks again."""


PATIENCE = 0.02  # seconds that a worker sleeps if it is not woken
ATTENTION = 0.001  # the same where it has just had something to do: more may have come meanwhile


class Pool:
    """Workers that keep a dispatch going.

    `limit`: called for how far the log may be scanned, a position · `lock`: taken for every step; a caller that takes
    one next to the pool takes it, too · `asleep`: how many workers wait for something to happen, or are about to.

    A step that raises stops the dispatch, loudly: `error` says why, `wait` and `stop` raise it. A disk without room
    does not: `trouble` says so, and `wait` raises it, for as long as the next queue file cannot be made.
    """

    def __init__(self, dispatch: Dispatch, *, limit: Callable[[], int], workers: int = 2) -> None:
        self.dispatch = dispatch
        self.lock = threading.Lock()
        self.asleep = 0
        self._attentive = 0  # of these, those that look again within `ATTENTION` by themselves
        self.trouble: DiskFull | None = None
        self._limit = limit
        self._changed = threading.Condition(self.lock)  # for who pauses
        self._news: SimpleQueue[None] = SimpleQueue()  # for workers that sleep
        self._stopping = False
        self._pausing = self._building = 0  # who asks the workers to pause; batches that are being built
        self._working = 0  # workers that have begun and not ended
        self._turns: deque[Turn] = deque()  # who waits: each for its lock to be released
        self._workers = workers

    @property
    def error(self) -> BaseException | None:
        """The error that stopped dispatch; None while it runs."""
        return self.dispatch.error

    def start(self) -> None:
        """The workers begin."""
        for _ in range(self._workers):
            start_new_thread(self._work, ())

    def wake(self) -> None:
        """Something has changed for every worker. Cheap to leave out: they look for themselves, after a while."""
        for _ in range(self.asleep):
            self._news.put(None)

    def nudge(self) -> None:
        """The log has grown: a worker that sleeps looks at once. Takes no lock, and costs nothing where none sleeps.

        One that is attentive is woken only if a caller waits: under load, each wake-up is a turn of the
        interpreter's lock that those who append do not have.
        """
        if self.asleep and (self._turns or not self._attentive):
            self._news.put(None)

    def wait(self, until: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait for what steps bring about; False after `timeout` seconds. Raises what stopped dispatch."""
        self._wait(lambda: bool(until()) or self.is_ended, timeout)
        if not until():
            self._raise()
        return until()

    @property
    def is_ended(self) -> bool:
        """True if waiting is no use: dispatch has stopped, or is paused."""
        return bool(self._stopping or self.error or self.trouble)

    def line_up(self, turn: Turn) -> None:
        """It is released once, when something has changed."""
        self._turns.append(turn)
        if self.dispatch.has_more(self._limit()):
            self.nudge()

    def step_out(self, turn: Turn) -> None:
        """It need not be released any more."""
        with suppress(ValueError):  # it was, just now
            self._turns.remove(turn)

    def _wait(self, until: Callable[[], bool], timeout: float | None = None) -> None:
        deadline = None if timeout is None else monotonic() + timeout
        while not until():
            turn = threading.Lock()
            turn.acquire()
            self.line_up(turn)
            left = -1 if deadline is None else min(max(0, deadline - monotonic()), threading.TIMEOUT_MAX)
            if not until() and not turn.acquire(timeout=left):
                self.step_out(turn)
                return

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Meanwhile no worker does anything, and no step is taken. For threads that no signal interrupts."""
        with self.lock:
            self._pausing += 1
            try:
                self._changed.wait_for(lambda: not self._building)
                yield
            finally:
                self._pausing -= 1
                self.wake()

    def stop(self) -> None:
        """Finish and commit current batches, and begin none; no worker does anything within the context.

        Raises what had stopped dispatch before. What was scanned and not built is scanned again by the next dispatch.
        """
        with self.lock:
            self._stopping = True
            self.wake()
        self._wait(lambda: not self._working)
        if self.error is not None:
            raise self.error

    def _raise(self) -> None:
        if trouble := self.error or self.trouble:
            raise trouble

    # -- what a thread does ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        with self.lock:
            if self._stopping:
                return
            self._working += 1
        try:
            while (batch := self._next()) is not None:
                error = attempt(self.dispatch, batch)
                with self.lock:
                    self._building -= 1
                    finish(self.dispatch, batch, error)
                    if self.dispatch.has_more(self._limit()):
                        self.wake()
                    self._tell()
        except BaseException as error:  # noqa: BLE001 - a thread that ends in silence would leave everybody waiting
            with self.lock:
                self.dispatch.stop(error)
        finally:
            with self.lock:
                self._working -= 1
                self.wake()
                self._tell()

    def _tell(self) -> None:
        """Something has changed: callers who wait look again. A worker is woken where there is something for it."""
        if self._pausing:
            self._changed.notify_all()
        while self._turns:
            self._turns.popleft().release()

    def _next(self) -> DispatchBatch | None:
        """The batch that is to be built next; waits for one. None where there will be none."""
        attentive = True
        while True:
            with self.lock:
                self.asleep += 1  # before it looks, so that no nudge is lost between looking and sleeping
                if self._stopping or self.error is not None:
                    self.asleep -= 1
                    return None
                batch = None if self._pausing else self._taken()
                if batch is not None:
                    self.asleep -= 1
                    self._building += 1
                    return batch
                self._attentive += attentive
            is_called = True
            try:
                self._news.get(timeout=ATTENTION if attentive else PATIENCE)
            except Empty:
                is_called = False
            with self.lock:
                self.asleep -= 1
                self._attentive -= attentive
            attentive = attentive and is_called

    def _taken(self) -> DispatchBatch | None:
        return self.dispatch.take() or self._scanned()

    def _scanned(self) -> DispatchBatch | None:
        try:
            self.trouble, found = None, self.dispatch.scan(self._limit())
        except DiskFull as error:
            self.trouble, found = error, None
        except StoreError as error:
            if not self._building:  # what comes before the damage is made visible first
                self.dispatch.stop(error)
            found = None
        if found is not None:
            return self.dispatch.take()
        if self.error:
            self.wake()
        if self.error or self.trouble:
            self._tell()
        return None


def rebuild(dispatch: Dispatch, limit: int, workers: int = 2) -> None:
    """Everything before `limit` is in its queue and visible when this returns. Raises what stops dispatch.

    With one worker, the calling thread does it all.
    """
    if workers > 1:
        pool = Pool(dispatch, limit=lambda: limit, workers=workers)
        try:
            pool.start()
            pool.wait(lambda: dispatch.dispatched >= limit)
        finally:
            pool.stop()
        return
    while batch := dispatch.take() or (dispatch.scan(limit) and dispatch.take()):
        error = attempt(dispatch, batch)
        if not finish(dispatch, batch, error) and error:
            raise error


def attempt(dispatch: Dispatch, batch: DispatchBatch) -> Exception | None:
    """Build a batch; returns what the worker met, whatever it is, for `finish`."""
    try:
        dispatch.build(batch)
    except Exception as error:  # noqa: BLE001 - the batch is tried again
        return error
    return None


def finish(dispatch: Dispatch, batch: DispatchBatch, error: Exception | None) -> bool:
    """A worker is done with a batch: its entries are visible, or it waits for another try. False: that was the last."""
    if error is not None:
        return dispatch.failed(batch, error)
    dispatch.wrote(batch)
    dispatch.commit_all(batch)
    return True
