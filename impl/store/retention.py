"""Retention: what the settings do not reserve goes by itself, at an interval.

Nothing does unless the settings say so (`expire_interval`). Which files may go is the business of `Core.expire`. How
far consumers are is not asked, as with a broker: a consumer that is slower than expiry loses some messages, and gets an
error by `Refused`, and by the first number of `range`.
"""

from __future__ import annotations

from collections.abc import Callable

from gapless.impl.environment.operating_system import Clock
from gapless.impl.files.store_settings import KeptSettings
from gapless.impl.store.core import NEVER

HOUR = 3_600_000  # ms


class Retention:
    """Lets go what has expired. `let_go`: called with a time in ms and with bytes, as `Core.expire`.

    `looked`: ms, when it was last looked what has expired; None before the first time · `error`: what went wrong then.
    """

    def __init__(self, kept: KeptSettings, clock: Clock, let_go: Callable[[int, int], int]) -> None:
        self._kept = kept
        self._clock = clock
        self._let_go = let_go
        self.looked: int | None = None
        self.error: Exception | None = None

    def look(self) -> None:
        """Expire at the end of the interval. An error stays in `error` until the next success."""
        if self._kept.expire_interval and self._is_due(self._clock()):
            try:
                self.expire()
            except Exception as error:  # noqa: BLE001 - the store continues, and `stats` reports it
                self.error = error

    def _is_due(self, now: int) -> bool:
        """True if the interval is over at `now`, in ms, or the clock has stepped back."""
        return self.looked is None or not 0 <= now - self.looked < self._kept.expire_interval

    def expire(self) -> int:
        """Expire what the settings do not reserve; returns the log's begin. Raises as `Core.expire` does."""
        now = self.looked = self._clock()
        start = self._let_go(now - self._kept.reserved_hours * HOUR, self._kept.reserved_bytes or NEVER)
        self.error = None
        return start
