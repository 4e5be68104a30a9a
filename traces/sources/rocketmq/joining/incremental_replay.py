"""Replays one long trace incrementally; its events are produced while the log is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gapless.spec.catalog import SPECS, State
from gapless.traces.judging.building import Events, states
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, Event, replay
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings


class IncrementalReplay:
    """One trace of a spec without Maps, and its state."""

    def __init__(self, judged: StoreFindings, options: Options, spec: str, name: str) -> None:
        self.judged = judged
        self.options = options
        self.spec = SPECS[spec]
        self.name = name
        self.state = states(self.spec, 1)

    @property
    def reached(self) -> State:
        """The state after the accepted events."""
        return replace(self.spec.initial, **dict(zip(self.spec.scalars, self.state[:, 0].tolist(), strict=True)))

    def replay(self, events: Events) -> tuple[int, Departure] | None:
        """Replays further events; returns the first refused one with its departure, or None."""
        spec, count = self.spec, len(events.action)
        replayed = kernel(spec.name, self.options.ignored).replay(
            np.array([0, count], np.int64), events.action, events.args, self.state, profile=self.options.profile
        )
        self.state = replayed.state
        self.judged.cover(spec.name, dict(zip(spec.actions, replayed.covered.tolist(), strict=True)))
        bad = int(replayed.bad_at[0])
        if self.judged.exported:
            self._export([events.at(n) for n in range(count if bad < 0 else bad)])
        if bad < 0:
            return None
        event = events.at(bad)
        outcome = replay(spec.name, self.reached, [event], profile=self.options.profile, ignored=self.options.ignored)
        if outcome.departure:
            return bad, outcome.departure
        self._export([event])
        self.state = states(spec, 1, **{name: int(getattr(outcome.state, name)) for name in spec.scalars})
        after = self.replay(Events(spec, events.action[bad + 1 :], np.ascontiguousarray(events.args[:, bad + 1 :])))
        return (bad + 1 + after[0], after[1]) if after else None

    def skip_to(self, covered: dict[str, int], **reached: int) -> None:
        """Continues from a state to which another replay led: its accepted steps, and the values of its state."""
        self.judged.cover(self.spec.name, covered)
        for name, value in reached.items():
            self.state[self.spec.scalars.index(name), 0] = value

    def report(self, position: int, departure: Departure, detail: str = "") -> None:
        """Reports the departure of a refused event."""
        self._export([departure.event])
        self.judged.report(self.name, position, departure, detail)

    def _export(self, steps: list[Event]) -> None:
        self.judged.joint(self.judged.end, self.spec.name, self.name, steps)
