"""Traces with observations in columns: what was refused must be refused, and what was seen must be there.

Kernels replay such traces in segments that end where something was observed, the same segment of many traces at once.
Steps of unknown outcome are left out where nothing follows them: whatever became of them, nothing speaks against it.
Traces in which something else was seen, or an allowed step was refused, are counted once exact replay has refused the
first of them for it. All others are left for exact replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import STRICT
from gapless.traces.events.event import OUTCOMES, TAKEN
from gapless.traces.judging.batches import Batch, Begun, initial
from gapless.traces.judging.columns import Traces
from gapless.traces.judging.streaming.packed_map_cells import PackedMapCells
from gapless.traces.judging.tallies import Tally
from gapless.traces.options import Options
from gapless.traces.replay.event_rules import REFUSED, SEEN
from gapless.traces.replay.kernels import Ints, kernel
from gapless.traces.replay.possible_states import STATES

ENOUGH = 64  # traces for which replaying a segment of each in columns is the faster way
BROKER_REFUSED, UNKNOWN = (OUTCOMES.index(name) for name in ("refused", "unknown"))

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TraceSegments:
    """Parts of some traces. `low`, `high`: of each, its events in the order of traces · `trace`: its number.

    `turn`: how many segments of its trace come before it · `refused`: it is one event, which the broker refused.
    """

    low: Ints
    high: Ints
    trace: Ints
    turn: Ints
    refused: Flags

    @classmethod
    def of(cls, traces: Traces, order: Ints, some: Flags, seen: Flags) -> TraceSegments:
        """Cut the traces that are `some` behind every event with an observation, and around every refused one."""
        count = len(order)
        refused = traces.outcome[order] == BROKER_REFUSED
        cut = np.zeros(count + 1, np.bool_)
        unknown = traces.outcome[order] == UNKNOWN
        cut[:-1] |= refused | unknown
        cut[1:] |= refused | unknown | seen[order]
        cut[traces.starts] = True
        (bounds,) = np.nonzero(cut)
        low, high = bounds[:-1], bounds[1:]
        trace = traces.of[order[low]].astype(np.int64)
        first = np.searchsorted(low, traces.starts[:-1])
        turn = np.arange(len(low)) - first[trace]
        mine = some[trace] & ~unknown[low]
        return cls(low[mine], high[mine], trace[mine], turn[mine], refused[low[mine]])

    def chosen(self, which: Ints) -> TraceSegments:
        """Some of the segments."""
        return TraceSegments(
            self.low[which], self.high[which], self.trace[which], self.turn[which], self.refused[which]
        )


class ObservedTraces:
    """The states of traces with observations, as kernels replay segment by segment.

    `accepted`: so far · `departing`: by rules of events, the place in the order of the event of each trace that breaks
    that rule; -1 where none does.
    """

    def __init__(self, traces: Traces, options: Options, accepted: Flags) -> None:
        count = len(traces.names)
        self.traces, self.options, self.accepted = traces, options, accepted
        self.order = traces.events(0, len(traces.of))
        self.state = initial(traces.spec, count)
        self.cells = PackedMapCells(traces.spec)
        self.cells.grow(count)
        self.events = np.zeros(count, np.int64)
        self.departing = {rule: np.full(count, -1, np.int64) for rule in (SEEN, REFUSED)}
        self.seen, self.fields = self._observations()

    def _observations(self) -> tuple[Flags, list[tuple[int, Ints, Ints]]]:
        """The events with observations; and for each field of the state, its row, the events, and what was seen."""
        traces, scalars = self.traces, {name: row for row, name in enumerate(self.traces.spec.scalars)}
        seen = np.zeros(len(traces.of), np.bool_)
        seen[list(traces.saw)] = True
        found: dict[int, tuple[list[int], list[int]]] = {}
        for event, saw in traces.saw.items():
            for name, value in saw.items():
                events, values = found.setdefault(scalars[name], ([], []))
                events.append(event)
                values.append(int(value))
        return seen, [(row, np.array(e, np.int64), np.array(v, np.int64)) for row, (e, v) in found.items()]

    def replay(self) -> None:
        """Replay all, one segment of each trace after the other, as long as there are enough of them."""
        segments = TraceSegments.of(self.traces, self.order, self.accepted, self.seen)
        by_turn = np.argsort(segments.turn, kind="stable")
        ends = np.cumsum(np.bincount(segments.turn)).tolist()
        low = 0
        for high in ends:
            here = segments.chosen(by_turn[low:high])
            here = here.chosen(np.flatnonzero(self.accepted[here.trace]))
            if len(here.trace) < ENOUGH:
                self.accepted[here.trace] = False
                return
            for is_refused in (False, True):
                some = here.chosen(np.flatnonzero(here.refused == is_refused))
                if len(some.trace):
                    self._take(some, is_refused=is_refused)
            self.cells.tidy()
            low = high

    def _take(self, some: TraceSegments, *, is_refused: bool) -> None:
        """Continue by the kernel: some traces take their next segments, or refuse them by the design."""
        traces, trace = self.traces, some.trace
        lengths = some.high - some.low
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.repeat(some.low - starts[:-1], lengths) + np.arange(starts[-1])
        alone = Traces(
            traces.spec, traces.names, traces.of, self.order[places], starts,
            traces.row, traces.position, traces.action, traces.outcome, traces.args, {},
        )  # fmt: skip
        of = kernel(traces.spec, frozenset() if is_refused else self.options.ignored)
        begun = Begun(self.events[trace], self.state[:, trace], self.cells.of(trace))
        batch = Batch(alone, np.arange(len(trace)))
        found = batch.replay(of, STRICT if is_refused else self.options.profile, begun)
        assert found.cells is not None  # noqa: S101 - for the type checker: it was asked for
        if is_refused:
            kept = (found.bad_why > 0) & ~np.isin(found.bad_why, of.unsure)
            allowed = found.bad_why == 0
            self.departing[REFUSED][trace[allowed]] = some.high[allowed] - 1
        else:
            kept = (found.bad_why == 0) & (found.deviant == 0)
            self.state[:, trace[kept]] = found.state[:, kept]
            self.cells.put(trace[kept], found.cells.of(kept), whole=False)
            self.events[trace] += lengths
        self.accepted[trace[~kept]] = False
        self._compare(some.chosen(np.flatnonzero(kept)))

    def _compare(self, some: TraceSegments) -> None:
        """Compare what was seen after the last events of segments with the states there."""
        last = self.order[some.high - 1]
        here, differs = np.zeros((2, len(self.traces.of)), np.bool_)
        here[last[self.seen[last]]] = True
        for row, events, values in self.fields:
            mine = here[events]
            trace = self.traces.of[events[mine]]
            differs[events[mine][self.state[row, trace] != values[mine]]] = True
        wrong = differs[last]
        self.accepted[some.trace[wrong]] = False
        self.departing[SEEN][some.trace[wrong]] = some.high[wrong] - 1


class DepartingTraces:
    """Traces with an event that breaks a rule of events, and all is right before that.

    `events`: in each, the event that does, in the order of the file.
    """

    def __init__(self, traces: Traces, rule: str, order: Ints, places: Ints) -> None:
        self.rule = f"{traces.spec.name}/{rule}"
        places = places[np.argsort(traces.row[order[places]], kind="stable")]
        self.traces, self._rule, self._order, self._places = traces, rule, order, places
        self.events = order[places]

    def by_action(self) -> Iterator[tuple[str, DepartingTraces]]:
        """Yield those of each action."""
        for name, code in self.traces.spec.codes.items():
            mine = self.traces.action[self.events] == code
            if mine.any():
                yield name, self._of(self._places[mine])

    def others(self) -> DepartingTraces:
        """All but the first."""
        return self._of(self._places[1:])

    def _of(self, places: Ints) -> DepartingTraces:
        return DepartingTraces(self.traces, self._rule, self._order, places)

    def count(self, tally: Tally) -> None:
        """Count the events up to there, and those that were taken before."""
        begins = self.traces.starts[self.traces.of[self.events]]
        tally.events += int((self._places + 1 - begins).sum())
        inside = np.zeros(len(self._order) + 1, np.int64)
        np.add.at(inside, begins, 1)
        np.add.at(inside, self._places, -1)
        _cover(self.traces, self._order[np.cumsum(inside)[:-1] > 0], tally)


def accepted(traces: Traces, chosen: Flags, options: Options, tally: Tally) -> tuple[Flags, list[DepartingTraces]]:
    """Mark those of the chosen traces whose steps and observations the kernels accept, and count them.

    Traces in which nothing was surely taken are left for exact replay, as those that deviate. Also returned: those that
    break a rule of events, which are not counted.
    """
    none = np.zeros(len(traces.names), np.bool_)
    if {f"{traces.spec.name}/{rule}" for rule in (REFUSED, SEEN)} & options.ignored or chosen.sum() < ENOUGH:
        return none, []
    some = chosen & _any_of(traces, TAKEN[traces.outcome]) & _ends_openly(traces)
    observed = ObservedTraces(traces, options, some)
    observed.replay()
    (mine,) = np.nonzero(some[traces.of])
    tally.events += len(mine)
    _cover(traces, mine, tally)
    departing = observed.departing.items()
    return some, [DepartingTraces(traces, rule, observed.order, places[places >= 0]) for rule, places in departing]


def _cover(traces: Traces, events: Ints, tally: Tally) -> None:
    """Count those of the events that were taken."""
    taken = events[TAKEN[traces.outcome[events]]]
    covered = np.bincount(traces.action[taken], minlength=len(traces.spec.actions))
    tally.cover({name: n for name, n in zip(traces.spec.actions, covered.tolist(), strict=True) if n})


def _any_of(traces: Traces, events: Flags | Ints) -> Flags:
    """Mark the traces that have any of these events."""
    found = np.zeros(len(traces.names), np.bool_)
    found[traces.of[events]] = True
    return found


def _ends_openly(traces: Traces) -> Flags:
    """Mark traces whose steps of unknown outcome, if any, are few and the last, without observations."""
    order = traces.events(0, len(traces.of))
    unknown, of = traces.outcome == UNKNOWN, traces.of[order]
    seen = np.zeros(len(order), np.bool_)
    seen[list(traces.saw)] = True
    followed = unknown[order[:-1]] & ~unknown[order[1:]] & (of[:-1] == of[1:])
    states = 1 << np.minimum(np.bincount(traces.of[unknown], minlength=len(traces.names)), 62)
    return (states <= STATES) & ~_any_of(traces, order[:-1][followed]) & ~_any_of(traces, unknown & seen)
