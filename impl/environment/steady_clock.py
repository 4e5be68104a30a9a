"""Time that passes, whatever the clock is set to: intervals are measured by it, and nothing that is stored.

The clock that a store is given shows the time, and may be set, forward or back. It may bring a second reading,
`passed`, as `SteppedClock` of `properties/simulation/` does; where it brings none, the machine's own is taken.
"""

from __future__ import annotations

import time

from gapless.impl.environment.operating_system import Clock


def passed_by_the_machine() -> int:
    """Milliseconds since the machine was started, those included in which it slept. Nothing sets it."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def passed_by(clock: Clock) -> Clock:
    """The reading of ms that pass, which goes with a clock: since some moment, and it never steps back."""
    passed: Clock = getattr(clock, "passed", passed_by_the_machine)
    return passed


class SteadyClock:
    """A clock that is never set: it begins with what another shows, and continues with what passes. In ms since 1970.

    `passed`: ms since some moment · `least`: it does not begin before that, as where times of before a restart are
    known.
    """

    def __init__(self, clock: Clock, passed: Clock, least: int = 0) -> None:
        self._passed = passed
        self._ahead = max(clock(), least) - passed()

    def __call__(self) -> int:
        """The time, in ms."""
        return self._ahead + self._passed()
