"""A command that runs until a signal ends it, in time: whatever it is at, and though it be in native code.

Python runs handlers of signals between two of its own steps, and a compiler or a long report may leave none for
seconds. So a thread waits for the signal: it asks for the end, breaks off what is being done when half of the time is
over, and ends the process where even that was not heard.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, get_ident
from types import FrameType
from typing import NoReturn

from gapless.traces.processes.timeouts import OUT_OF_TIME, OutOfTime

HURRY, LAST = 0.45, 0.85  # shares of the time, after which what is being done is broken off, and the process ended
ENDED = 0  # no signal has this number: the block was left


@contextmanager
def until_a_signal(came: list[int], grace: float) -> Iterator[Callable[[float], bool]]:
    """Give a function that waits for some seconds, and is true once SIGINT or SIGTERM came; `came` has its number.

    `grace`: seconds that the block has from then on. It raises OutOfTime in the block when half of them are over, and
    the process ends before all are. A second signal ends it at once.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    listener = _Listener(reader, came, grace, get_ident())
    woken = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {number: signal.signal(number, _pass) for number in (signal.SIGINT, signal.SIGTERM)}
    before[OUT_OF_TIME] = signal.signal(OUT_OF_TIME, _break_off)
    thread = Thread(target=listener.listen, daemon=True)
    thread.start()
    try:
        yield listener.stopped.wait
    finally:
        os.write(writer, bytes([ENDED]))
        thread.join()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        os.close(reader)
        os.close(writer)


def _pass(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the thread hears of the signal by itself."""


def _break_off(_number: int, _frame: FrameType | None) -> NoReturn:
    raise OutOfTime


class _Listener:
    """The thread that waits for a signal."""

    def __init__(self, reader: int, came: list[int], grace: float, main: int) -> None:
        self.reader, self.came, self.grace, self.main = reader, came, grace, main
        self.stopped = Event()

    def listen(self) -> None:
        """Wait for the first signal, and then for the end of the block, but no longer than there is time."""
        first = self._next(None)
        if not first:
            return
        self.came.append(first)
        self.stopped.set()
        end = time.monotonic() + self.grace
        second = self._next(end - (1 - HURRY) * self.grace)
        if second is None:
            signal.pthread_kill(self.main, OUT_OF_TIME)
            second = self._next(end - (1 - LAST) * self.grace)
        if second is None:
            os.write(2, b"gapless: ended before its last report was made\n")
        if second != ENDED:
            os._exit(128 + first)

    def _next(self, until: float | None) -> int | None:
        """Wait for a signal that ends the command, or for ENDED; None where time is up before."""
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self.reader], [], [], left)[0]:
                return None
            number = os.read(self.reader, 1)[0]
            if number in (ENDED, signal.SIGINT, signal.SIGTERM):
                return number
