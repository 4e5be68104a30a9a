"""The reason of a refusal: a kernel refused the event, and the plain functions have the last word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from gapless.spec.catalog import Spec, State
from gapless.traces.judging.batches import Batch, Begun, state_of
from gapless.traces.judging.columns import Traces
from gapless.traces.judging.findings.pictures import bitmap_of
from gapless.traces.judging.tallies import First, Suspect
from gapless.traces.options import Options
from gapless.traces.replay.exact import REMEMBERED, Departure, Event, call, replay
from gapless.traces.replay.kernels import kernel


def explained(
    traces: Traces, event: int, options: Options, state: State | None = None, before: int = 0
) -> Suspect | None:
    """The reason of a refusal, found by exact replay from the trace's beginning, or from `before` these events.

    None where the plain functions do not refuse it. Of a long trace kernels replay what no story reaches back to.
    """
    spec, trace, at = traces.spec, int(traces.of[event]), traces.first(event)
    low, high = traces.starts[trace : trace + 2].tolist()
    count = int(np.flatnonzero(traces.events(low, high) == event)[0])  # of events before it that are here
    begin = spec.initial if state is None else state
    if state is None and count > 2 * REMEMBERED:
        known = traces.only(trace, 0, count - REMEMBERED)
        if (reached := _reached(known, options)) is not None:
            begin, before = reached, count - REMEMBERED
            traces, trace = traces.only(trace, before, count + 1), 0
            count = REMEMBERED
    outcome = replay(
        spec, begin, _events(traces, trace, count + 1),
        profile=options.profile, ignored=options.ignored, before=before,
    )  # fmt: skip
    return stateless(at, outcome.departure) if outcome.departure else None


def _events(traces: Traces, trace: int, count: int) -> Iterator[Event]:
    return (taken.event for taken in islice(traces.taken(trace), count))


def _reached(traces: Traces, options: Options) -> State | None:
    """The state behind all events of one trace; None where a kernel cannot tell."""
    found = Batch(traces, np.zeros(1, np.int64)).replay(
        kernel(traces.spec, options.ignored), options.profile, Begun.new(traces.spec, 1)
    )
    assert found.cells is not None  # noqa: S101 - for the type checker: more events come
    return None if found.bad_why[0] else state_of(traces.spec, found.state[:, 0], found.cells)


def stateless(at: First, departure: Departure, also: tuple[str, ...] = (), moment: int = 0) -> Suspect:
    """A suspect without the state, which may be large; what is drawn of it is drawn before."""
    return Suspect(at, replace(departure, state=None), also, moment, bitmap_of(departure))


def naming_others(spec: Spec, events: Iterable[Event], count: int) -> str:
    """The sentence that names other steps that break a rule. `events`: the first of so many."""
    named = [call(spec, event) for event in events]
    more = count - len(named)
    return (
        f"Other steps break it too, and are assumed for what follows: {', '.join(named)}"
        f"{f', and {more:,} more' * (more > 0)}."
    )
