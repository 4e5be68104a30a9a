"""Replays the units of a segment's entries, in the worker that has read these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.options import Options
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq.layouts.layout import SegmentView, WorkerSide
from gapless.traces.sources.rocketmq.queues.extension_units import RefusedUnit

SPEC = SPECS["extension"]


class ReplayedUnits(NamedTuple):
    """The first refused unit of each queue, and the number of accepted ones."""

    refused: list[RefusedUnit]
    accepted: int


def replayed_units(view: SegmentView, options: Options) -> ReplayedUnits | None:
    """Replays the units that entries name, queue by queue, up to the first refused one in each; None without units."""
    units = view.entries.units
    if units is None:
        return None
    of, starts = kernel(SPEC.name, options.ignored), units.starts
    state = np.zeros((len(SPEC.scalars), len(starts) - 1), np.int64)
    replayed = of.replay(starts, units.events.action, units.events.args, state, profile=options.profile)
    refused = [
        RefusedUnit(units.queues[n], units.events.at(at), int(units.positions[at]), int(units.offsets[at]))
        for n, at in enumerate(replayed.bad_at.tolist())
        if at >= 0
    ]
    return ReplayedUnits(refused, int(replayed.covered[SPEC.codes["find_unit"]]))


WORKER = WorkerSide(examine=replayed_units)
