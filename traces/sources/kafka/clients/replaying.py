"""Replays the traces of answers, and yields those that depart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import Spec
from gapless.traces.judging import building
from gapless.traces.judging.building import Events, Ints
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, replay
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.kafka.joining.findings import LogFindings
from gapless.traces.sources.kafka.joining.states import some
from gapless.traces.sources.kafka.judging.producer_pieces import counts


class DepartingTrace(NamedTuple):
    """A trace that departs. `event`: the number among all events of the one that does."""

    number: int
    event: int
    departure: Departure


def departing(
    spec: Spec, events: Events, starts: Ints, found: LogFindings, options: Options,
    dense: tuple[Events, Ints] | None = None,
) -> Iterator[DepartingTrace]:  # fmt: skip
    """Replay all traces: each that departs is replayed by the plain functions.

    `dense`: the same events with the keys of Maps counted from 0, and how many each trace has; else they have one.
    """
    count = len(starts) - 1
    counted, widths = dense or (events, np.ones(count, np.int64))
    if not count:
        return
    replayed = kernel(spec, options.ignored).replay(
        starts, counted.action, counted.args, building.states(spec, count), origins=np.zeros(count, np.int64),
        widths=widths, profile=options.profile,
    )  # fmt: skip
    found.cover(spec.name, counts(spec, replayed.covered))
    for trace in np.flatnonzero(replayed.bad_at >= 0).tolist():
        low, high = starts[trace : trace + 2].tolist()
        shown = list(some(events, low, high))
        departure = replay(spec, spec.initial, shown, profile=options.profile, ignored=options.ignored).departure
        if departure is not None:
            yield DepartingTrace(trace, low + departure.number - 1, departure)
