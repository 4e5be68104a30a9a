"""Group commit: one flush is for all who wait.

A thread that waits flushes by itself if no thread does, for all who have appended by then (the *leader*). Those who
come meanwhile wait for its end: they are served by then, or one of them leads next. So a flush needs no thread to be
woken together with those that wait for it, and the processor does not go to and fro between them.

Ctrl-C reaches the main thread alone, and may come anywhere. A flush that it broke off would have others wait forever,
so the main thread never leads, and nor does an event loop, which others need: the store's own thread does it for them.
Where the main thread is alone, it flushes *apart*: in a way that keeps no other thread from flushing, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, get_ident, main_thread
from time import sleep

from gapless.impl.dispatch.pool import Turn

THE_LAST = 1 << 63  # a position that no log reaches: who waits for it waits until the store has ended


class GroupCommit:
    """Group commit: which threads wait for a flush, and which one flushes.

    `flush`: flushes once, and returns how far the log is on disk then; one thread is in it at a time · `apart`: does
    the same if it can, at any time, and may be interrupted; the main thread calls it · `error`: what `flush` raised; no
    thread flushes after that.
    """

    def __init__(self, flush: Callable[[], int], apart: Callable[[], None] = lambda: None) -> None:
        self.error: BaseException | None = None
        self._flush = flush
        self._apart = apart
        self._flushing = Lock()
        self._wanted: SimpleQueue[None] = SimpleQueue()  # what the store's own thread sleeps on
        self._served: deque[tuple[int, Turn]] = deque()  # who waits for a position, and never leads
        self._leading: deque[tuple[int, Turn]] = deque()  # who may lead next
        self.ended = False  # no thread flushes any more

    # -- for who waits -----------------------------------------------------------------------------------------------

    def wait(self, done: Callable[[], bool], position: int) -> None:
        """Return once the log is flushed up to a position (`done`), or flushing has ended."""
        if position == THE_LAST:
            self._be_served(done, position)
            return
        if get_ident() == main_thread().ident:
            if self._is_led and not (self._served or self._leading or self._flushing.locked() or done()):
                self._apart()
            self._be_served(done, position)
            return
        while not done():
            if self._lead():
                continue
            turn = Lock()
            turn.acquire()
            self._leading.append((position, turn))
            over = done()
            if not over and (self._flushing.locked() or not self._is_led):
                turn.acquire()  # the flushing thread hands over
                continue
            try:
                self._leading.remove((position, turn))
                if not over:  # a thread that has the lock of the flush waits for the interpreter to say so
                    sleep(0)
            except ValueError:  # it was answered, or is to lead
                if over:
                    self._hand_over()

    def _be_served(self, done: Callable[[], bool], position: int) -> None:
        """Each waits with a lock of its own: Ctrl-C harms none."""
        while not done():
            turn = Lock()
            turn.acquire()
            self.line_up(position, turn)
            if not done():
                turn.acquire()

    def line_up(self, position: int, turn: Turn) -> None:
        """It is released when the log is flushed up to there, or the store has ended. The store's thread sees to it."""
        self._served.append((position, turn))
        self._wanted.put(None)

    @property
    def _is_led(self) -> bool:
        return self.error is None and not self.ended

    def _lead(self) -> bool:
        """Flush for all, unless another thread does."""
        if not self._is_led or not self._flushing.acquire(blocking=False):
            return False
        try:
            if self._is_led:
                self._answer(self._flush())
        except BaseException as error:  # noqa: BLE001 - every waiting thread raises it, this one too
            self.error = error
            self.call()
        finally:
            self._flushing.release()
        self._hand_over()
        return True

    def _answer(self, flushed: int) -> None:
        """Those who wait for no more than this look again. The others have come since, and are for the next flush."""
        for waiting in (self._served, self._leading):
            for position, turn in waiting.copy():
                if position <= flushed:
                    with suppress(ValueError):  # it stepped out, or is to lead
                        waiting.remove((position, turn))
                        turn.release()

    def _hand_over(self) -> None:
        """Have one of the waiting threads flush if none does. Every thread that has flushed, or leaves, calls it."""
        if self._leading and not self._flushing.locked():
            with suppress(IndexError):  # another saw to it
                self._leading.popleft()[1].release()

    # -- for the store's own thread ----------------------------------------------------------------------------------

    def call(self) -> None:
        """The store's thread looks."""
        self._wanted.put(None)

    def sleep(self, timeout: float | None = None) -> bool:
        """Until it is called, or so many seconds; whether anybody waits for a flush. Raises what a flush has raised."""
        with suppress(Empty):
            self._wanted.get(timeout=timeout)
            while True:
                self._wanted.get_nowait()  # one flush is for all of them
        if self.error is not None and not self.ended:
            raise self.error
        return bool(self._served or self._leading)

    def flush(self) -> None:
        """Flush for all, after the current flush. Raises what the flush raises, or has raised."""
        with self._flushing:
            if self.error is not None:
                raise self.error
            self._answer(self._flush())
        self._hand_over()

    def end(self) -> None:
        """End flushing; all waiting threads look again."""
        self.ended = True
        self._flushing.acquire()
        self.answer_all()

    def answer_all(self) -> None:
        """All who wait look again."""
        self._answer(THE_LAST)
