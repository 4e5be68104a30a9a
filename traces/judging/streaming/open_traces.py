"""Open traces: the state of each after its events so far, kept in columns until more events come.

No event is kept. Memory contains the state, as large as a spec makes it. The compiled kernels continue from there;
a trace that needs exact replay, from then on, has the states that are possible instead. The verdicts are those of the
judge of whole traces (`judge`); tests compare the two. There is no story: it needs another reading of the trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gapless.native import expecting
from gapless.spec.catalog import END, Spec, State
from gapless.traces.judging.batches import (
    SLICE,
    Batch,
    Begun,
    asked_for,
    by_exact_replay,
    count,
    count_all,
    initial,
    measure_exactly,
    state_of,
)
from gapless.traces.judging.columns import Traces
from gapless.traces.judging.findings.explaining import explained
from gapless.traces.judging.streaming.packed_map_cells import PackedMapCells
from gapless.traces.judging.tallies import TRACES, Cluster, First, RuleStep, Suspect, Tally, added
from gapless.traces.options import Options
from gapless.traces.processes.timeouts import uninterrupted
from gapless.traces.replay.kernels import EXACT, Ints, Kernel, kernel
from gapless.traces.replay.possible_states import BrokenPromise, Departs, Replay, TooMany, World
from gapless.traces.report.outputs import verdict_table

Places = npt.NDArray[np.int64]
"""Rows of open traces in the columns."""

NO_VERDICT, CONFORMS = -1, verdict_table.VERDICTS.index("conforms")
DEPARTS, INCONCLUSIVE = (verdict_table.VERDICTS.index(name) for name in ("departs", "inconclusive"))


@dataclass
class ExactTrace:
    """A trace under exact replay, from the event in row `since`; `events`: how many it took."""

    replayed: Replay
    since: int
    events: int = 0


@dataclass
class _Known:
    """The facts about each trace, in columns of the same length."""

    last: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # the position of its last event
    events: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    judged: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))  # asked for, and opened
    over: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))  # no event changes its verdict
    rested: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    verdict: npt.NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    rule: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    position: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # of the event that departs

    def grow(self, count: int) -> None:
        """Make room for so many traces more."""
        for name, column in vars(self).items():
            fill = NO_VERDICT if name in {"verdict", "rule"} else 0
            setattr(self, name, np.concatenate([column, np.full(count, fill, column.dtype)]))


class OpenTraces:
    """Open traces of one spec; `tally` counts what was judged, as far as it is known without a story.

    Of a trace that departs by exact replay it has only the events that a kernel accepted before: its story, and all
    that may follow it, come from reading it again (`departing`).
    """

    def __init__(self, spec: Spec, options: Options, begins: int = 0) -> None:
        self.spec = spec
        self.options = options
        self.tally = Tally(begins)
        self.names: pa.Array[Any] = pa.array([], pa.string())
        self.known = _Known()
        self.state: Ints = np.zeros((len(spec.scalars), 0), np.int64)
        self.cells = PackedMapCells(spec)
        self.rules: list[str] = []
        self.exact: dict[int, ExactTrace] = {}
        self.departing: dict[int, ExactTrace] = {}  # by exact replay
        self.explained: dict[RuleStep, Suspect] = {}
        self.late_stories: dict[RuleStep, int] = {}  # by rule and step, the trace whose first story begins too late

    def __len__(self) -> int:
        return len(self.names)

    def take(self, traces: Traces) -> Places:
        """Judge more events of some traces, and return their rows."""
        self._prepare(len(traces.of))
        with uninterrupted():  # or columns would not fit together
            places = self._placed(traces)
            self._look_at_order(traces, places)
            self._count(traces, places)
            exact = self._by_kernels(traces, places)
        for trace in np.flatnonzero(exact).tolist():
            self._exactly(traces, trace, int(places[trace]))
        with uninterrupted():
            self.known.events[places] += np.diff(traces.starts)
            self.cells.forget(places[self.known.over[places]])
            self.cells.tidy()
        return places

    def _prepare(self, events: int) -> None:
        """Compile or load the kernel, if that pays for so many events; an interrupt is possible meanwhile."""
        spec, nothing = self.spec, np.zeros(0, np.int8)
        with expecting(events):
            kernel(spec, self.options.ignored).replay(
                np.zeros(1, np.int64), nothing, np.zeros((len(spec.arguments), 0), np.int64), initial(spec, 0),
                resumable=True, profile=self.options.profile,
            )  # fmt: skip

    def _by_kernels(self, traces: Traces, places: Places) -> npt.NDArray[np.bool_]:
        """Continue by the kernels, and mark the traces that are left for exact replay."""
        going = ~self.known.over[places]
        exact = by_exact_replay(traces)
        exact[np.isin(places, np.array(list(self.exact), np.int64))] = True
        for low, high in self._slices(traces, places):
            some = low + np.flatnonzero((going & ~exact)[low:high])
            if len(some):
                exact[self._compiled(kernel(self.spec, self.options.ignored), traces, places, some)] = True
        return going & exact

    def forget_stories(self) -> None:
        """Keep the verdicts, and drop what only a story or a count needs."""
        self.departing, self.explained, self.late_stories, self.tally = {}, {}, {}, Tally(self.tally.begins)
        for one in self.exact.values():
            one.replayed.worlds = [world._replace(deviated=None, undone=None) for world in one.replayed.worlds]

    def finished(self) -> Tally:
        """Return the counts, with the traces under exact replay: no more events come."""
        for place, one in self.exact.items():
            if self._bare(place, one):
                self.known.verdict[place] = INCONCLUSIVE
            self._add(place, one)
        self.exact = {}
        self.tally.traces = int(self.known.judged.sum())
        self.tally.rested = int(self.known.rested.sum())
        return self.tally

    def _add(self, place: int, one: ExactTrace) -> None:
        """Count the result of a trace's exact replay."""
        self.tally.events += one.events
        self.tally.cover(one.replayed.covered)
        for name, taken in one.replayed.deviations():
            first = First(taken.row, taken.position, self.name(place))
            self.tally.deviate(name, 1, first)
            measure_exactly(self.tally, self.spec, one.replayed, name, first)

    def _bare(self, place: int, one: ExactTrace) -> bool:
        """True if no step of a trace was surely taken: then nothing was checked."""
        return not one.replayed.covered and int(self.known.events[place]) == one.events

    def name(self, place: int) -> str:
        """Return the name of one trace."""
        return str(self.names[place].as_py())

    def rows(self, source: str, places: Places | None = None) -> pa.RecordBatch:
        """Return the rows of the verdict table, of these traces or of all that were judged."""
        known = self.known
        mine = np.flatnonzero(known.verdict >= 0) if places is None else places
        verdict = known.verdict[mine]
        bare = [place for place, one in self.exact.items() if self._bare(place, one)]
        verdict[np.isin(mine, np.array(bare, np.int64))] = INCONCLUSIVE
        return verdict_table.rows_of(
            source, self.spec.name, self.names.take(pa.array(mine, pa.int64())), verdict, known.rule[mine],
            self.rules, known.position[mine], known.events[mine],
        )  # fmt: skip

    # -- who they are ------------------------------------------------------------------------------------------------

    def _placed(self, traces: Traces) -> Places:
        """Return the rows of the traces; new traces are appended."""
        found = pc.index_in(traces.names, self.names).fill_null(-1).to_numpy().astype(np.int64)
        (new,) = np.nonzero(found < 0)
        if len(new):
            found[new] = len(self) + np.arange(len(new))
            self.names = pa.concat_arrays([self.names, traces.names.take(pa.array(new, pa.int64()))])
            self.known.grow(len(new))
            self.cells.grow(len(new))
            self.state = np.concatenate([self.state, initial(self.spec, len(new))], axis=1)
            self._open(traces, new, found[new])
        return found

    def _open(self, traces: Traces, new: Ints, places: Places) -> None:
        """Open the new traces that were asked for and begin as a trace must."""
        known, tally = self.known, self.tally
        chosen = asked_for(traces, self.options)[new]
        tally.asked += int(chosen.sum())
        known.over[places[~chosen]] = True
        known.verdict[places[chosen]], known.judged[places[chosen]] = CONFORMS, True
        if next(iter(self.spec.actions)) == "open":
            first = traces.begins()[new]
            strange = np.flatnonzero(chosen & (traces.action[first] != self.spec.codes["open"]))
            if len(strange):
                earliest = first[strange][traces.row[first[strange]].argmin()]
                tally.unopened = added(tally.unopened, len(strange), traces.first(int(earliest)))
                known.verdict[places[strange]], known.judged[places[strange]] = INCONCLUSIVE, False
                known.over[places[strange]] = True

    def _look_at_order(self, traces: Traces, places: Places) -> None:
        """Note an event whose position is lower than that of an earlier one, here or in previous batches."""
        begins, known = traces.begins(), self.known
        behind = begins[(known.events[places] > 0) & (traces.position[begins] < known.last[places])]
        falls = [traces.first(int(behind[traces.row[behind].argmin()]))] if len(behind) else []
        falls += [first for first in (self.tally.falls, traces.falls()) if first]
        self.tally.falls = min(falls, default=None)
        known.last[places] = traces.position[traces.ends()]

    def _count(self, traces: Traces, places: Places) -> None:
        """Count facts of every judged trace that do not depend on the verdict."""
        judged = self.known.judged[places]
        count_all(traces, judged, self.tally)
        resting = np.unique(traces.of[traces.action == self.spec.codes.get(END, -1)])
        self.known.rested[places[resting[judged[resting]]]] = True

    # -- by the kernels ----------------------------------------------------------------------------------------------

    def _slices(self, traces: Traces, places: Places) -> Iterator[tuple[int, int]]:
        """Yield ranges of traces that a kernel takes at once, by their events and the sizes of their Maps."""
        weights = np.cumsum(np.diff(traces.starts) + self.cells.width[places] // 4)
        cuts = np.flatnonzero(np.diff(weights // SLICE)) + 1
        return pairwise([0, *cuts.tolist(), len(places)])

    def _compiled(self, of: Kernel, traces: Traces, places: Places, some: Ints, *, whole: bool = False) -> Ints:
        """Replay the traces that are `some` by the kernel; return those that it cannot decide, unchanged.

        Cells far below are given to it only if it looks there: then the `whole` of each Map.
        """
        batch, there = Batch(traces, some), places[some]
        begun = self._begun(there, whole=whole)
        found = batch.replay(of, self.options.profile, begun)
        assert found.cells is not None  # noqa: S101 - for the type checker: it was asked for
        looked_below = begun.cells.cut & (found.bad_why == EXACT)
        unsure = np.isin(found.bad_why, of.unsure)
        departing: list[tuple[RuleStep, Ints]] = []
        for why in np.unique(found.bad_why[~unsure & (found.bad_why > 0)]).tolist():
            reason, (these,) = of.reasons[why - 1], np.nonzero(found.bad_why == why)
            broken = reason.rule, reason.action
            events = batch.events[found.bad_at[these]]
            if self._is_explained(broken, int(traces.row[events].min())) or self._explain(
                traces, events, there[these], broken
            ):
                departing.append((broken, these))
            else:
                unsure[these] = True  # the plain functions have the last word
                first = traces.first(int(events[traces.row[events].argmin()]))
                self.tally.overruled = added(self.tally.overruled, len(these), first)
        count(traces, self.tally, batch, found, 1)
        if unsure.any():
            again = Batch(traces, some[unsure])
            known = self._begun(there[unsure], whole=whole)
            count(traces, self.tally, again, again.replay(of, self.options.profile, known), -1)
        for broken, these in departing:
            self._depart(traces, batch.events[found.bad_at[these]], there[these], broken)
        continues = found.bad_why == 0
        self.state[:, there[continues]] = found.state[:, continues]
        self.cells.put(there[continues], found.cells.of(continues), whole=whole)
        if not looked_below.any():
            return some[unsure]
        left = self._compiled(of, traces, places, some[looked_below], whole=True)
        return np.concatenate([some[unsure & ~looked_below], left])

    def _begun(self, places: Places, *, whole: bool) -> Begun:
        cells = self.cells.whole(places) if whole else self.cells.of(places)
        return Begun(self.known.events[places], self.state[:, places], cells)

    def _depart(self, traces: Traces, events: Ints, places: Places, broken: RuleStep) -> None:
        """Record the traces that a kernel refuses, each at its event."""
        self.tally.events += len(events)
        self._end(places, DEPARTS, broken[0], traces.position[events])
        order = np.argsort(traces.row[events], kind="stable")
        suspects = [Suspect(traces.first(event)) for event in events[order[:TRACES]].tolist()]
        if self.explained[broken].at == suspects[0].at:
            suspects[0] = self.explained[broken]
        self.tally.gather((broken, 0), Cluster(len(events), tuple(suspects)))

    def _is_explained(self, broken: RuleStep, row: int) -> bool:
        """True if the story of this rule and step is known, and is not later than that of the event in this row."""
        known = self.explained.get(broken)
        return known is not None and known.at.row <= row

    def _explain(self, traces: Traces, events: Ints, places: Places, broken: RuleStep) -> bool:
        """Explain why the first of these events is refused, from its trace's last state; False if it is not.

        Such a story may begin too late: `late_stories` names its trace.
        """
        first = int(traces.row[events].argmin())
        place, event = int(places[first]), int(events[first])
        before = int(self.known.events[place])
        suspect = explained(traces, event, self.options, self.state_of(place) if before else None, before)
        if suspect is None or suspect.departure is None or suspect.departure.rule != broken[0]:
            return False
        self.explained[broken] = suspect
        self.late_stories.pop(broken, None)
        if before:
            self.late_stories[broken] = place
        return True

    def _end(self, places: Any, verdict: int, rule: str = "", position: Any = 0) -> None:
        """Record a final verdict of these traces."""
        known = self.known
        known.over[places], known.verdict[places], known.position[places] = True, verdict, position
        if rule:
            if rule not in self.rules:
                self.rules.append(rule)
            known.rule[places] = self.rules.index(rule)

    # -- by exact replay ---------------------------------------------------------------------------------------------

    def _exactly(self, traces: Traces, trace: int, place: int) -> None:
        """Continue one trace through the plain functions."""
        one = self.exact.get(place)
        for taken in traces.taken(trace):
            if one is None:
                one = self.exact[place] = ExactTrace(self._replay(place), taken.row)
            one.events += 1
            at = First(taken.row, taken.position, traces.name(trace))
            try:
                one.replayed.take(taken)
            except Departs as departs:
                self._end(place, DEPARTS, departs.in_brief(one.replayed).rule, taken.position)
                self.departing[place] = self.exact.pop(place)
                return
            except TooMany:
                self.tally.given_up = added(self.tally.given_up, 1, at)
            except BrokenPromise:
                self.tally.unpromised = added(self.tally.unpromised, 1, at)
            else:
                continue
            self._end(place, INCONCLUSIVE)
            self._add(place, self.exact.pop(place))
            return
        if one is not None:  # what only a story needs is forgotten
            one.replayed.worlds = [world._replace(undone=None) for world in one.replayed.worlds]

    def _replay(self, place: int) -> Replay:
        """Start exact replay of a trace from the state that the kernels left."""
        found = Replay(self.spec, self.options)
        found.number = int(self.known.events[place])
        if found.number:
            found.worlds = [World(self.state_of(place))]
        return found

    def state_of(self, place: int) -> State:
        """Return the state of a trace that the kernels left."""
        return state_of(self.spec, self.state[:, place], self.cells.whole(np.array([place])))
