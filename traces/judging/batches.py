"""Traces as a kernel takes them: in batches, each trace replayed from the spec's initial state."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import Spec
from gapless.traces.judging.columns import Traces
from gapless.traces.replay.kernel_source import LIMIT
from gapless.traces.replay.kernels import Ints, Kernel, Replayed

SLICE = 1 << 20  # events that are replayed at once, or one trace if it has more


def slices(starts: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of traces with about `SLICE` events each."""
    low = 0
    while low < len(starts) - 1:
        high = max(low + 1, int(np.searchsorted(starts, starts[low] + SLICE, side="right")) - 1)
        yield low, high
        low = high


class Batch:
    """Some traces as a kernel takes them."""

    def __init__(self, traces: Traces, chosen: Ints) -> None:
        self.spec = traces.spec
        self.traces = chosen
        lengths = np.diff(traces.starts)[chosen]
        self.starts = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(lengths, out=self.starts[1:])
        low, high = (traces.starts[chosen[0]], traces.starts[chosen[-1] + 1]) if len(chosen) else (0, 0)
        in_one = int(high - low) == int(self.starts[-1])  # they lie side by side, as they mostly do
        if in_one:
            self.events = traces.events(int(low), int(high))
        else:
            within = np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], lengths)
            places = np.repeat(traces.starts[chosen], lengths) + within
            self.events = places if traces.order is None else traces.order[places]
        here: slice | Ints = slice(int(low), int(high)) if in_one and traces.order is None else self.events
        self.action = traces.action[here]
        self.args = np.empty((len(traces.args), len(self.events)), np.int64)
        for row, column in enumerate(traces.args):
            self.args[row] = column[here]

    def replay(self, of: Kernel, profile: str) -> Replayed:
        """Replay all from the spec's initial state."""
        spec = self.spec
        begin = np.array([int(getattr(spec.initial, name)) for name in spec.scalars], np.int64)
        state = np.repeat(begin[:, None], len(self.traces), axis=1)
        origins, widths = self.windows()
        return of.replay(self.starts, self.action, self.args, state, origins=origins, widths=widths, profile=profile)

    def windows(self) -> tuple[Ints, Ints]:
        """The keys that the Maps of each trace may hold: all that its events name, where they lie close together.

        Where they do not, one of them is far off: the window lies at the first, and what is written outside of it
        goes to exact replay.
        """
        origins, widths = np.zeros((2, len(self.traces)), np.int64)
        keys = _keys(self.spec)
        if not keys.any() or not len(self.events):
            return origins, widths
        low = np.full(len(self.events), LIMIT, np.int64)
        high = np.full(len(self.events), -LIMIT, np.int64)
        for argument in np.flatnonzero(keys.any(axis=0)):
            named_here = keys[:, argument][self.action]
            value = self.args[argument]
            np.minimum(low, value, out=low, where=named_here)
            np.maximum(high, value, out=high, where=named_here)
        first, room = low[self.starts[:-1]], 2 * np.diff(self.starts) + 64
        lowest = np.minimum.reduceat(low, self.starts[:-1])
        needed = np.maximum.reduceat(high, self.starts[:-1]).astype(np.float64) - lowest + 1
        close = needed <= room
        origins = np.where(close, lowest, first)
        widths = np.where(close, np.maximum(needed, 0), room).astype(np.int64)
        usable = (-LIMIT < origins) & (origins < LIMIT)
        return np.where(usable, origins, 0), np.where(usable, widths, 0)


def _keys(spec: Spec) -> npt.NDArray[np.bool_]:
    """Which arguments of which action have the type of a Map's key."""
    found = np.zeros((len(spec.actions), len(spec.arguments)), np.bool_)
    for code, (name, action) in enumerate(spec.actions.items()):
        for parameter in spec.parameters[name]:
            found[code, spec.arguments.index(parameter)] = (
                signature(action).parameters[parameter].annotation in spec.key_types
            )
    return found
