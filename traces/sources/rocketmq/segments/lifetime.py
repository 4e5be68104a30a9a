"""The time that a broker is known to have lived, by the times at which it stored records.

A broker that stored a record was alive then. Between two records it may have been down, or its clock may have been
set. So a pause counts for a minute at most, and a longer one than some seconds may be the end of a life. A clock that
was set back begins again: from there on nothing is known of the time before.

Source: docs/operator.md#overdue-now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from gapless.traces.sources.rocketmq.columns.bytes import Ints

COUNTED = 60_000  # ms of a pause that count, at most
QUIET = 10_000  # ms: a longer pause may be the end of one life and the begin of the next
SAMPLES = 1 << 10  # of one segment; of all there are at most eight times as many
NOTHING = np.zeros((2, 0), np.int64)


@dataclass(frozen=True)
class Lifetime:
    """Moments of a broker's life, rising, and for each the ms that it had lived since the first: [2, moments].

    `begin`: the moment from which on no pause was longer than `QUIET` · `renewed`: the clock was set back before the
    first moment.
    """

    moments: Ints = field(default_factory=lambda: NOTHING)
    begin: int = 0
    renewed: bool = False

    @property
    def now(self) -> int:
        """The last moment at which the broker is known to have lived; 0 without any."""
        return int(self.moments[0, -1]) if self.moments.shape[1] else 0

    def followed_by(self, later: Lifetime) -> Lifetime:
        """Returns this life and what follows it in the log."""
        if not later.moments.shape[1]:
            return self
        if not self.moments.shape[1] or later.renewed or later.moments[0, 0] < self.now - QUIET:
            return later
        pause = int(later.moments[0, 0]) - self.now  # below 0, some of it is known already
        times, lived = later.moments + np.array([[0], [self.moments[1, -1] + min(pause, COUNTED)]])
        behind = np.stack([np.maximum(times, self.now), np.maximum(lived, self.moments[1, -1])])
        moments = np.concatenate([self.moments, behind], axis=1)
        if moments.shape[1] > 8 * SAMPLES:
            moments = moments[:, np.append(np.arange(0, moments.shape[1] - 1, 2), moments.shape[1] - 1)]
        continues = pause <= QUIET and later.begin == later.moments[0, 0]
        return Lifetime(moments, self.begin if continues else later.begin, self.renewed)

    def since(self, due: Ints, *, in_one_life: bool) -> Ints:
        """Returns the ms that the broker has surely lived since each of these times, which may be to come.

        `in_one_life`: it was never started again. Otherwise only its time since the last pause counts.
        """
        if not self.moments.shape[1]:
            return np.zeros(len(due), np.int64)
        times, lived = self.moments
        due = np.maximum(due, times[0] if in_one_life else max(self.begin, int(times[0])))
        behind = np.minimum(times.searchsorted(due), len(times) - 1)
        part = np.minimum(times[behind] - due, lived[behind] - lived[np.maximum(behind - 1, 0)])
        found: Ints = np.where(due < self.now, lived[-1] - lived[behind] + np.maximum(part, 0), 0)
        return found


def lifetime(times: Ints) -> Lifetime:
    """Returns the life that the store times of consecutive records tell of."""
    if not len(times):
        return Lifetime()
    steps = np.diff(times)
    chosen = _samples(len(times))
    if not len(steps) or (steps.max() <= QUIET and steps.min() >= -QUIET):  # most: the samples say it all
        clock = np.maximum.accumulate(times[chosen])
        return Lifetime(np.stack([clock, clock - clock[0]]), int(clock[0]))
    back = np.flatnonzero(steps < -QUIET)
    if renewed := bool(len(back)):
        times, steps = times[back[-1] + 1 :], steps[back[-1] + 1 :]
    clock = np.maximum.accumulate(times)
    steps = np.diff(clock)
    lived = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.minimum(steps, COUNTED))])
    pauses = np.flatnonzero(steps > QUIET)
    begin = int(clock[pauses[-1] + 1]) if len(pauses) else int(clock[0])
    return Lifetime(np.stack([clock, lived])[:, _samples(len(clock))], begin, renewed)


@lru_cache(maxsize=4)
def _samples(count: int) -> Ints:
    """Returns the places of about `SAMPLES` of `count` records, the first and the last among them."""
    every = -(-count // SAMPLES)
    return np.append(np.arange(0, count - 1, every), count - 1)
