"""The history of one trace within a part: its steps are replayed exactly where a story is asked for."""

from __future__ import annotations

from collections import deque

from gapless.traces.judging.building import Events, Ints
from gapless.traces.options import Options
from gapless.traces.replay.exact import REMEMBERED, Departure, PastStep, replay
from gapless.traces.replay.kernels import ReplayResult
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

    def departure(self, bad: int) -> Departure | None:
        """Replay up to the event `bad`, which a kernel refused, and that one; None if it does not depart."""
        near = max(self.at, bad - REMEMBERED)
        begin = replay_rows(self.events, self.at, near, self.state, self.options).state  # no story reaches back to it
        self.taken += near - self.at
        spec = self.events.spec.name
        outcome = replay(
            spec, state_of(spec, begin[:, 0]), some(self.events, near, bad + 1), profile=self.options.profile,
            ignored=self.options.ignored, before=self.taken, history=self.steps,
        )  # fmt: skip
        departure = outcome.departure
        self.state = column_of(spec, departure.state if departure else outcome.state)
        self.taken += bad + (departure is None) - near
        self.at = bad + 1
        return departure

    def to_the_end(self) -> None:
        """Replay what is left, so that a story of what comes behind the part has its steps."""
        while (bad := int(self.replayed().bad_at[0])) >= 0:
            self.departure(bad)
        if self.at < self.high:
            self.departure(self.high - 1)
