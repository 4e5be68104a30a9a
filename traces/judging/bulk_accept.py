"""Replays many short traces in one kernel call. Only refused traces need exact replay, which is 20 times slower."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging import building
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event
from gapless.traces.replay.kernels import Ints, kernel


def accepted(
    spec: str, traces: Sequence[Sequence[Event]], options: Options, **begin: Ints | Sequence[int] | int
) -> list[bool]:
    """Mark the traces that are accepted to their end; False also if only exact replay can decide.

    `begin`: the states in which the traces begin, as `building.states` takes them. No event makes an entry of a Map.
    """
    of = kernel(spec, options.ignored)
    try:
        events = building.Events.of(SPECS[spec], list(chain.from_iterable(traces)))
    except OverflowError:  # a setting may be any number
        return [False] * len(traces)
    replayed = of.replay(
        np.array([0, *accumulate(map(len, traces))], np.int64),
        events.action,
        events.args,
        building.states(SPECS[spec], len(traces), **begin),
        profile=options.profile,
    )
    accepts: list[bool] = (replayed.bad_at < 0).tolist()
    return accepts
