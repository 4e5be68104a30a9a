"""An asyncio loop whose time is virtual: when no task is ready, time jumps to the next timer.

An hour of timeouts takes milliseconds, and the same program takes the same steps every time. Nothing outside the loop
is waited for: no sockets, no threads, no processes.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LONGEST = 30 * 86400.0  # seconds of virtual time: who is still waiting then waits for ever


class AllWait(Exception):  # noqa: N818 - it names a finding.
    """All tasks wait for each other, for ever; or only timers go off for so long that nothing else will happen."""


class _NoSelector(selectors.SelectSelector):
    """Waits for nothing: tells its loop how long it would have waited."""

    slept = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AllWait("every task waits, and no timer runs")
        if not ready and timeout:
            self.slept += timeout
        if self.slept > LONGEST:
            raise AllWait(f"nothing came to rest in {LONGEST / 86400:g} days")
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a time of its own, which begins at `start` seconds."""

    def __init__(self, start: float = 0.0) -> None:
        self._waiting = _NoSelector()
        self._start = start
        super().__init__(self._waiting)

    def time(self) -> float:
        """Seconds, by the loop's own clock."""
        return self._start + self._waiting.slept

    def now(self) -> int:
        """The same in whole milliseconds: a clock for all that is asked to have one."""
        return round(self.time() * 1000)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs it to its end in virtual time. Raises what it raises; AllWait."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
