"""The history of one trace within a part: its steps are replayed exactly where a story is asked for."""

from __future__ import annotations

from collections import deque

from gapless.traces.judging.building import Events, Ints
from gapless.traces.options import Options
from gapless.traces.replay.exact import REMEMBERED, Departure, PastStep, replay
from gapless.traces.replay.kernels import EXACT, ReplayResult
from gapless.traces.sources.kafka.joining.states import column_of, some, state_of
from gapless.traces.sources.kafka.judging.part_results import replay_rows


class PartHistory:
    """Follows one trace through its events in a part; an event that departs is left out of what comes behind it.

    `state`: int64 [scalars, 1], behind the `taken` events before number `at` · `steps`: the last of them.
    """

    def __init__(self, events: Events, low: int, high: int, begin: Ints, options: Options) -> None:
        self.events = events
        self.at, self.high = low, high
        self.state = begin
        self.options = options
        self.taken = 0
        self.steps: deque[PastStep] = deque(maxlen=REMEMBERED)

    def replayed(self) -> ReplayResult:
        """Replay the rest by a kernel, which says where it departs."""
        return replay_rows(self.events, self.at, self.high, self.state, self.options)

    @property
    def is_over(self) -> bool:
        """True if no event is left."""
        return self.at == self.high

    def departure(self, found: ReplayResult) -> Departure | None:
        """Replay up to the event that a kernel refused, and that one; None if it does not depart.

        Numbers that are too large for a kernel are left to the plain functions, and so are all events behind them.
        """
        if found.bad_why[0] == EXACT:
            return self._exact(self.at, self.high)
        return self._up_to(int(found.bad_at[0]) + 1)

    def _up_to(self, high: int) -> Departure | None:
        """Replay the events before number `high`, which are accepted but for the last one."""
        near = max(self.at, high - 1 - REMEMBERED)
        self.state = replay_rows(self.events, self.at, near, self.state, self.options).state  # no story reaches so far
        self.taken += near - self.at
        return self._exact(near, high)

    def _exact(self, low: int, high: int) -> Departure | None:
        """Replay some events by the plain functions, up to the first that departs."""
        spec = self.events.spec.name
        outcome = replay(
            spec, state_of(spec, self.state[:, 0]), some(self.events, low, high), profile=self.options.profile,
            ignored=self.options.ignored, before=self.taken, history=self.steps,
        )  # fmt: skip
        departure = outcome.departure
        self.state = column_of(spec, departure.state if departure else outcome.state)
        self.at = low + departure.number - self.taken if departure else high
        self.taken += self.at - low - (departure is not None)
        return departure

    def to_the_end(self) -> None:
        """Replay what is left, so that a story of what comes behind the part has its steps."""
        while not self.is_over and (found := self.replayed()).bad_at[0] >= 0:
            self.departure(found)
        if not self.is_over:
            self._up_to(self.high)
