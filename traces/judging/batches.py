"""Batches of traces for a kernel, each replayed from the spec's initial state, or from a later one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import signature
from typing import Any, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import Spec, State
from gapless.spec.language import Map
from gapless.spec.reading.trees.ranges import LIMIT
from gapless.traces.events.event import OUTCOMES, TAKEN
from gapless.traces.judging.columns import Traces
from gapless.traces.judging.tallies import LARGEST, Amount, First, Key, Tally
from gapless.traces.options import Options
from gapless.traces.replay.event_rules import REFUSED, SEEN
from gapless.traces.replay.kernels import Cells, Ints, Kernel, ReplayResult
from gapless.traces.replay.map_columns import columns_of
from gapless.traces.replay.possible_states import Replay

ROWS = 3  # of a table, for each element that it may get
MOST_ROWS = 1 << 22  # of a table: a trace that needs more is left to exact replay
SLICE = 1 << 16  # events that are replayed at once, or one trace if it has more: memory of that size is used again


def slices(starts: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of traces with about `SLICE` events each."""
    low = 0
    while low < len(starts) - 1:
        high = max(low + 1, int(np.searchsorted(starts, starts[low] + SLICE, side="right")) - 1)
        yield low, high
        low = high


@dataclass(frozen=True)
class Begun:
    """The states of traces after their last judged events.

    `events`: int64 [traces], how many each has had · `state`: int64 [scalars, traces] · `cells`: the elements of its
    Maps.
    """

    events: Ints
    state: Ints
    cells: Cells

    @classmethod
    def new(cls, spec: Spec, count: int) -> Begun:
        """Return so many traces without events."""
        none = np.zeros(count, np.int64)
        nothing = np.zeros((len(columns_of(spec)), 0), np.int64)
        cells = Cells(none, np.zeros(count + 1, np.int64), nothing, np.zeros(count, np.bool_))
        return cls(none, initial(spec, count), cells)


def initial(spec: Spec, count: int) -> Ints:
    """Return the scalars of a spec's initial state, for so many traces."""
    begin = np.array([int(getattr(spec.initial, name)) for name in spec.scalars], np.int64)
    return np.repeat(begin[:, None], count, axis=1)


def state_of(spec: Spec, scalars: Ints, cells: Cells) -> State:
    """Build the state of one trace for the plain functions, from its scalars and the cells of its Maps."""
    values: dict[str, Any] = dict(zip(spec.scalars, scalars.tolist(), strict=True))
    for name in spec.maps:
        entries = columns_of(spec).elements(name, cells.values, int(cells.origins[0]))
        values[name] = Map(getattr(spec.initial, name).default, entries)
    return replace(spec.initial, **values)


class Batch:
    """Some traces in the form of a kernel."""

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
        self.rows = traces.row[here] if self.spec.deviations else None
        self.args = np.empty((len(traces.args), len(self.events)), np.int64)
        for row, column in enumerate(traces.args):
            self.args[row] = column[here]

    def replay(self, of: Kernel, profile: str, begun: Begun | None = None) -> ReplayResult:
        """Replay all from the spec's initial state, or from their own: then more events may come."""
        state = initial(self.spec, len(self.traces)) if begun is None else begun.state
        origins, widths = self.windows(begun)
        found = of.replay(
            self.starts, self.action, self.args, state, origins=origins, widths=widths,
            cells=begun.cells if begun else None, resumable=begun is not None,
            rows=self.rows, profile=profile,
        )  # fmt: skip
        columns = columns_of(self.spec)
        return replace(found, cells=_trimmed(found.cells, columns.defaults)) if columns.pairs and found.cells else found

    def windows(self, begun: Begun | None = None) -> tuple[Ints, Ints]:
        """Return the keys that the Maps of each trace may have, and room for tables of those of two keys."""
        origins, widths = self._windows_of_keys(begun)
        if not columns_of(self.spec).pairs:
            return origins, widths
        used = np.zeros(len(self.traces), np.int64)
        if begun is not None:
            used = columns_of(self.spec).used(begun.cells.values, begun.cells.starts)
            widths = np.maximum(widths, begun.cells.widths)
        rows = np.minimum(ROWS * (used + np.diff(self.starts)) + ROWS, np.maximum(MOST_ROWS, 2 * used))
        return origins, np.maximum(widths, rows)

    def _windows_of_keys(self, begun: Begun | None) -> tuple[Ints, Ints]:
        """Return the keys that the Maps of each trace may have: all that its events name, if they lie close together.

        Otherwise one of them is far off: the window lies at the first, and a write outside of it goes to exact replay.
        Existing elements are always within, and none below a cut.
        """
        origins, widths = np.zeros((2, len(self.traces)), np.int64)
        keys = _keys(self.spec)
        if not keys.any() or not len(self.events):
            return origins, widths
        low = np.full(len(self.events), LIMIT, np.int64)
        high = np.full(len(self.events), -LIMIT, np.int64)
        action = self.action.astype(np.intp)
        for argument in np.flatnonzero(keys[np.flatnonzero(np.bincount(action))].any(axis=0)):
            named_here, value = keys[:, argument].take(action), self.args[argument]
            np.minimum(low, np.where(named_here, value, LIMIT), out=low)
            np.maximum(high, np.where(named_here, value, -LIMIT), out=high)
        first, events = low[self.starts[:-1]], np.diff(self.starts)
        lowest = np.minimum.reduceat(low, self.starts[:-1])
        highest = np.maximum.reduceat(high, self.starts[:-1])
        present = np.zeros(len(first), np.int64)
        if begun is not None:
            present, kept = begun.cells.widths, begun.cells.origins
            some, events = present > 0, events + begun.events
            lowest = np.where(begun.cells.cut, kept, np.where(some, np.minimum(lowest, kept), lowest))
            highest = np.where(some, np.maximum(highest, kept + present - 1), highest)
            first = np.where(some, kept, first)
        room, needed = 2 * events + 64, highest.astype(np.float64) - lowest + 1
        close = needed <= room
        origins = np.where(close, lowest, first)
        widths = np.where(close, np.maximum(needed, 0), np.maximum(room, present)).astype(np.int64)
        usable = (-LIMIT < origins) & (origins < LIMIT)
        return np.where(usable, origins, 0), np.where(usable, widths, 0)


def _trimmed(cells: Cells, defaults: Ints) -> Cells:
    """The cells without the last ones of each trace that have defaults: most of the room for tables stays unused."""
    within = np.arange(cells.starts[-1]) - np.repeat(cells.starts[:-1], cells.widths)
    ends = np.where((cells.values != defaults[:, None]).any(axis=0), within + 1, 0)
    widths = np.maximum.reduceat(ends, cells.starts[:-1]) if len(cells.widths) else cells.widths
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])
    return Cells(cells.origins, starts, cells.values[:, within < np.repeat(widths, cells.widths)], cells.cut)


def count(traces: Traces, tally: Tally, batch: Batch, found: ReplayResult, sign: int) -> None:
    """Add what a kernel accepted, or subtract it."""
    tally.events += sign * int(found.covered.sum())
    tally.cover({name: sign * n for name, n in zip(traces.spec.actions, found.covered.tolist(), strict=True)})
    for number, deviation in enumerate(traces.spec.deviations):
        if times := int(found.deviated[number]):
            first = traces.first(int(batch.events[found.deviated_at[number]]))
            tally.deviate(deviation.step.__name__, sign * times, first)
            if deviation.amount:
                amounts = _amounts(traces, batch, found, number, deviation.amount)
                tally.measure(deviation.step.__name__, amounts, sign)


def _amounts(traces: Traces, batch: Batch, found: ReplayResult, number: int, field: str) -> Iterator[Amount]:
    """Yield the largest amounts of a deviation, as the states of its traces have them."""
    scalars = traces.spec.scalars
    (deviant,) = np.nonzero(found.deviant >> number & 1)
    amount = found.state[scalars.index(field), deviant]
    for trace in deviant[np.argsort(-amount, kind="stable")[:LARGEST]].tolist():
        values = dict(zip(scalars, found.state[:, trace].tolist(), strict=True))
        last = int(batch.events[batch.starts[trace + 1] - 1])
        yield Amount(values[field], traces.first(last), values)


def measure_exactly(tally: Tally, spec: Spec, replayed: Replay, name: str, first: First) -> None:
    """Add the amount of a deviation that exact replay has taken, if it has one."""
    field = next(one.amount for one in spec.deviations if one.step.__name__ == name)
    if field:
        state = replayed.worlds[0].state
        values = {scalar: int(getattr(state, scalar)) for scalar in spec.scalars}
        tally.measure(name, [Amount(values[field], first, values)])


def asked_for(traces: Traces, options: Options) -> npt.NDArray[np.bool_]:
    """Mark the traces that the user asked for."""
    chosen = np.ones(len(traces.names), np.bool_)
    if options.trace is not None:
        chosen &= [name == options.trace for name in traces.names.to_pylist()]
    if options.topic is not None and traces.spec.name == "queue":
        chosen &= [str(name).rpartition("/")[0] == options.topic for name in traces.names.to_pylist()]
    return chosen


def by_exact_replay(traces: Traces) -> npt.NDArray[np.bool_]:
    """Mark the traces that no kernel can judge: some step may not have been taken, or there are observations."""
    exact = np.zeros(len(traces.names), np.bool_)
    exact[traces.of[~TAKEN[traces.outcome]]] = True
    exact[traces.of[list(traces.saw)]] = True
    return exact


def count_all(traces: Traces, chosen: npt.NDArray[np.bool_], tally: Tally) -> None:
    """Count facts of the chosen traces that do not depend on the verdict: events by outcome, rules about events."""
    mine = chosen[traces.of]
    inferred = traces.action[mine & (traces.outcome == OUTCOMES.index("inferred"))]
    names = list(traces.spec.actions)
    _add_counts(tally.inferred, names, inferred)
    _add_counts(tally.recorded, names, traces.action[mine])
    for outcome in ("unknown", "refused"):
        of_it = traces.action[mine & (traces.outcome == OUTCOMES.index(outcome))]
        _add_counts(tally.doubtful, [(name, outcome) for name in names], of_it)
    if any(outcome == "refused" for _, outcome in tally.doubtful):
        tally.checked.add(REFUSED)
    if mine[[at for at, fields in traces.saw.items() if fields]].any():  # no field, no observation
        tally.checked.add(SEEN)


def _add_counts(counts: dict[Key, int], keys: Sequence[Key], actions: npt.NDArray[np.integer[Any]]) -> None:
    """Add how often each action occurs, by the key of the action."""
    for key, times in zip(keys, np.bincount(actions, minlength=len(keys)).tolist(), strict=True):
        if times:
            counts[key] = counts.get(key, 0) + times


@cache
def _keys(spec: Spec) -> npt.NDArray[np.bool_]:
    """Mark the arguments of each action that have the type of the key of a Map that has one."""
    hints = get_type_hints(type(spec.initial))
    kinds = {get_args(hints[name])[0] for name in columns_of(spec).singles}
    found = np.zeros((len(spec.actions), len(spec.arguments)), np.bool_)
    for code, (name, action) in enumerate(spec.actions.items()):
        for parameter in spec.parameters[name]:
            found[code, spec.arguments.index(parameter)] = signature(action).parameters[parameter].annotation in kinds
    return found
