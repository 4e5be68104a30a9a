"""Retention: what the settings do not reserve goes by itself, at an interval.

Nothing does unless the settings say so (`expire_interval`). Which files may go is the business of `Core.expire`. How
far consumers are is not asked, as with a broker: a consumer that is slower than expiry loses some messages, and gets an
error by `Refused`, and by the first number of `range`.

A clock may be wrong, and what has expired does not come back. So files go by a time that has proved itself
(`ProvenTime`), and what this store has seen stored within the reserved hours stays, whatever the clock says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from gapless.impl.environment.operating_system import Clock
from gapless.impl.environment.steady_clock import passed_by
from gapless.impl.files.log import CommitLog
from gapless.impl.files.store_settings import KeptSettings
from gapless.impl.store.core import NEVER

HOUR = 3_600_000  # ms
SETTLED = HOUR  # ms for which a clock keeps step with what passes, before files go by it
STEP = 60_000  # ms by which it may differ meanwhile
MARKS = 64  # ends of the log that are remembered, within the reserved hours


class ProvenTime:
    """The time by which files may go, in ms since 1970: never later than the clock, and never far ahead with it.

    It begins with what the log says, and continues with what passes. The clock's own it becomes when that has kept step
    for an hour: a clock that is ahead for less than that, from its start or from a moment on, counts for nothing.
    """

    def __init__(self, clock: Clock, log: CommitLog) -> None:
        self._clock, self._passed = clock, passed_by(clock)
        self._since = self._passed()  # when the clock began to keep step
        self._lead = clock() - self._since  # what it is ahead of what passes
        self._proven: int | None = None  # the same of the time that has proved itself
        self._log, self._end, self._newest, self._opened = log, log.end, log.newest, self._since

    def __call__(self) -> int:
        """The time. To be called now and then, so that a clock that is set is noticed. Raises StoreError."""
        now, passed = self._clock(), self._passed()
        if self._proven is None:
            self._proven = self._known() - self._opened
        if abs(now - passed - self._lead) > STEP:
            self._lead, self._since = now - passed, passed
        if passed - self._since >= SETTLED:
            self._proven = now - passed
        return min(now, passed + self._proven)

    def _known(self) -> int:
        """The time by the log, in ms: of the first record in the newest file that is an hour older than the log's end.

        What a wrong clock wrote within the last hour says nothing. Without records, it is the clock's.
        """
        found = self._lead + self._opened
        for base in reversed(self._log.segments.bases):
            if self._log.start <= base < self._end:
                found = self._log.time_at(base)
                if found <= self._newest - SETTLED:
                    break
        return found


class Retention:
    """Lets go what has expired. `let_go`: called with a time in ms, bytes and a position, as `Core.expire`.

    `looked`: ms, when it was last looked what has expired; None before the first time · `unproven`: ms that the clock
    was ahead then of the time by which files go · `error`: what went wrong then.
    """

    def __init__(
        self, kept: KeptSettings, clock: Clock, log: CommitLog, let_go: Callable[[int, int, int], int]
    ) -> None:
        self._kept = kept
        self._clock, self._passed = clock, passed_by(clock)
        self._log = log
        self._let_go = let_go
        self._time = ProvenTime(clock, log)
        self._marks = deque([(self._passed(), log.end)])  # what had passed, and how far the log was
        self._at: int | None = None  # what had passed when it was last looked
        self.looked: int | None = None
        self.unproven = 0
        self.error: Exception | None = None

    def look(self) -> None:
        """Expire at the end of the interval. An error stays in `error` until the next success."""
        if self._kept.expire_interval and self._is_due():
            try:
                self.expire()
            except Exception as error:  # noqa: BLE001 - the store continues, and `stats` reports it
                self.error = error

    def _is_due(self) -> bool:
        return self._at is None or self._passed() - self._at >= self._kept.expire_interval

    def expire(self) -> int:
        """Expire what the settings do not reserve; returns the log's begin. Raises as `Core.expire` does."""
        self._at, self.looked, time = self._passed(), self._clock(), self._time()
        self.unproven = max(0, self.looked - time)
        reserved = self._kept.reserved_hours * HOUR
        start = self._let_go(time - reserved, self._kept.reserved_bytes or NEVER, self._young(self._at, reserved))
        self.error = None
        return start

    def _young(self, passed: int, reserved: int) -> int:
        """The position behind which all was stored within the reserved hours, as this store has seen itself."""
        if passed - self._marks[-1][0] >= reserved // MARKS:
            self._marks.append((passed, self._log.end))
        while self._marks and passed - self._marks[0][0] > reserved:
            self._marks.popleft()
        return self._marks[0][1]
