"""Event traces held against the specs: columns for nearly all of them, objects for the few that need more.

A trace in which every step was taken, and nothing was reported afterwards, is replayed by the compiled kernel, from the
spec's initial state. Exact replay takes the others: steps that the broker refused (then the model must refuse them
too), steps with an unknown outcome (then every state that is still possible is kept), and what the broker saw. It also
has the last word on whatever a kernel refused or could not decide.

The columns of a whole file are held, 8 bytes for every argument of an event's spec and 30 more. With the names of all
traces, and a slice of events while they are replayed, that is 0.2 kB for an event (measured: 2 GB for ten million).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import signature
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gapless.spec.language import Map, Refused, waived
from gapless.traces import schema
from gapless.traces.kernels import EXACT, LIMIT, Ints, Kernel, Replayed, kernel
from gapless.traces.options import Options
from gapless.traces.parts import Parts
from gapless.traces.problems import Unreadable, shown
from gapless.traces.replay import Departure, Event, Step, named, replay, story
from gapless.traces.rules import OF_EVENTS, REFUSED, SEEN
from gapless.traces.schema import OUTCOMES, STEPS
from gapless.traces.specs import SPECS, Spec, State, rule_id
from gapless.traces.verdicts import Finding, Source, VerdictName, Where

SLICE = 1 << 20  # events that are replayed at once, or one trace if it has more
STATES = 64  # possible states that are kept for one trace
TRACES = 5  # traces named in a cluster of findings


def check_events(path: Path, options: Options, *, trace: str | None = None) -> Parts:
    """Hold a file of events against the specs; with `trace`, only the traces of that name. Raises Unreadable."""
    judge = _Judge(path, options, trace)
    interrupted = False
    try:
        for traces in _gathered(path):
            judge.take(traces)
    except KeyboardInterrupt:
        interrupted = True
        judge.reasons.append("interrupted: what was judged until then is reported")
    parts = judge.finish()
    parts.interrupted = interrupted
    return parts


# -- events as columns ---------------------------------------------------------------------------------------------


class Taken(NamedTuple):
    """One event of a trace, with its row in the file."""

    event: Event
    outcome: str
    saw: dict[str, int] | None
    position: int
    row: int


@dataclass(frozen=True)
class Traces:
    """All events of one spec, a column each, in the file's order.

    `names`: of the traces · `of`: int32, the trace of an event · `order`: the events trace by trace, None where they
    lie like that already · `starts`: int64 [traces + 1], where each begins in that order · `row`, `position`: int64 ·
    `action`, `outcome`: int8, codes · `args`: int64, a column for every argument of the spec · `saw`: by event.
    """

    spec: Spec
    names: pa.Array[Any]
    of: npt.NDArray[np.int32]
    order: Ints | None
    starts: Ints
    row: Ints
    position: Ints
    action: npt.NDArray[np.int8]
    outcome: npt.NDArray[np.int8]
    args: list[Ints]
    saw: dict[int, dict[str, int]]

    def name(self, trace: int) -> str:
        """The name of one trace."""
        return str(self.names[trace].as_py())

    def events(self, low: int, high: int) -> Ints:
        """The events that stand at `low:high` when they are ordered by trace."""
        return np.arange(low, high) if self.order is None else self.order[low:high]

    def taken(self, trace: int) -> Iterator[Taken]:
        """The events of one trace, one by one."""
        names = list(self.spec.actions)
        places = {name: [self.spec.arguments.index(a) for a in self.spec.parameters[name]] for name in names}
        for low in range(self.starts[trace], self.starts[trace + 1], SLICE):
            for at in self.events(low, min(low + SLICE, int(self.starts[trace + 1]))).tolist():
                name = names[self.action[at]]
                event = name, tuple(int(self.args[place][at]) for place in places[name])
                outcome = OUTCOMES[self.outcome[at]]
                yield Taken(event, outcome, self.saw.get(at), int(self.position[at]), int(self.row[at]))


class _Gathering:
    """The columns of one spec, while a file is read."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.first_step = STEPS.index((spec.name, next(iter(spec.actions))))
        self.traces: list[pa.DictionaryArray[Any, Any]] = []
        self.saw: dict[int, dict[str, int]] = {}
        self.count = 0
        kinds: list[type[np.signedinteger[Any]]] = [
            np.int64,
            np.int64,
            np.int8,
            np.int8,
            *[np.int64] * len(spec.arguments),
        ]
        self.columns: list[npt.NDArray[Any]] = [np.empty(schema.ROWS, kind) for kind in kinds]

    def take(self, batch: pa.RecordBatch, step: Ints, row: Ints) -> None:
        """Add the events of `batch`, all of this spec."""
        self.traces.append(batch.column("trace").dictionary_encode())
        values = [
            row,
            batch.column("position").to_numpy(),
            step - self.first_step,
            schema.codes(batch.column("outcome"), OUTCOMES),
            *(schema.argument(batch, name).fill_null(0).to_numpy() for name in self.spec.arguments),
        ]
        count = self.count + batch.num_rows
        for at, new in enumerate(values):
            if count > len(self.columns[at]):
                self.columns[at] = _grown(self.columns[at], 2 * count)
            self.columns[at][self.count : count] = new
        saw = batch.column("saw")
        if saw.null_count < len(saw):
            self.saw |= {
                self.count + at: schema.seen(text) for at, text in enumerate(saw.to_pylist()) if text is not None
            }
        self.count = count

    def done(self) -> Traces:
        """All that was taken."""
        row, position, action, outcome, *args = (column[: self.count] for column in self.columns)
        chunks: list[Any] = pa.chunked_array(self.traces).unify_dictionaries().chunks
        names, of = chunks[0].dictionary, np.concatenate([chunk.indices.to_numpy() for chunk in chunks])
        starts = np.zeros(len(names) + 1, np.int64)
        np.cumsum(np.bincount(of, minlength=len(names)), out=starts[1:])
        order = None if (of[1:] >= of[:-1]).all() else np.argsort(of, kind="stable")
        return Traces(self.spec, names, of, order, starts, row, position, action, outcome, args, self.saw)


def _grown(column: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """The column with room for `size` values; room that is not used takes no memory."""
    grown = np.empty(size, column.dtype)
    grown[: len(column)] = column
    return grown


def _gathered(path: Path) -> list[Traces]:
    """The file's events by spec. Raises Unreadable, also where the events of a trace do not stand in their order."""
    found: dict[str, _Gathering] = {}
    row = 0
    for batch in schema.read(path):
        step = schema.steps(batch)
        spec_of = schema.codes(batch.column("spec"), SPECS)
        for code, spec in enumerate(SPECS.values()):
            mine = np.flatnonzero(spec_of == code)
            if len(mine):
                part = batch if len(mine) == batch.num_rows else batch.take(pa.array(mine, pa.int64()))
                found.setdefault(spec.name, _Gathering(spec)).take(part, step[mine], row + mine)
        row += batch.num_rows
    gathered = [gathering.done() for gathering in found.values()]
    for traces in gathered:
        _check_order(path, traces)
    return gathered


def _check_order(path: Path, traces: Traces) -> None:
    events = traces.events(0, len(traces.of))
    position, of = traces.position[events], traces.of[events]
    back = np.flatnonzero((position[1:] < position[:-1]) & (of[1:] == of[:-1]))
    if len(back):
        at = events[back + 1][traces.row[events[back + 1]].argmin()]
        kind, number = schema.place(path, int(traces.row[at]))
        name = shown(traces.name(int(traces.of[at])))
        raise Unreadable(
            f"{shown(path)}, {kind} {number}: position {traces.position[at]} of {name} is lower than the one before: "
            "expected the events of a trace in the order in which they took effect; sort them by position"
        )


# -- every trace ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Suspect:
    """A trace that departs; the departure is None as long as only a kernel says so."""

    row: int
    position: int
    trace: int
    because: str
    departure: Departure | None = None
    also: tuple[str, ...] = ()


class _First(NamedTuple):
    """Where something was seen first."""

    row: int
    position: int
    trace: str


class _Judge:
    """Takes the traces of one spec after the other."""

    def __init__(self, path: Path, options: Options, only: str | None) -> None:
        self.path = path
        self.options = options
        self.only = only
        self.records = 0
        self.judged = Parts(Source(path=shown(path), kind="event-trace", verdict="inconclusive"))
        self.reasons: list[str] = []
        self.anomalies: dict[tuple[str, str], tuple[int, _First]] = {}  # by spec and deviation
        self.given_up: list[_First] = []  # traces with too many possible states, and where they became too many

    def take(self, traces: Traces) -> None:
        """Judge all traces of one spec."""
        spec, judged = traces.spec, self.judged
        self.records += len(traces.of)
        chosen = self._chosen(traces)
        exact = np.zeros(len(traces.names), np.bool_)
        exact[traces.of[traces.outcome != OUTCOMES.index("ok")]] = True
        exact[traces.of[list(traces.saw)]] = True
        judged.traces += int(chosen.sum())
        judged.events.setdefault(spec.name, 0)
        suspects: list[_Suspect] = []
        try:
            for low, high in _slices(traces.starts):
                suspects += self._compiled(traces, low, high, chosen & ~exact, exact)
            for trace in np.flatnonzero(chosen & exact).tolist():
                suspects += self._exact(traces, trace)
        finally:  # also where a user has had enough
            self._tell(traces, suspects)
        judged.not_exercised += [
            f"{spec.name}.{action}: no such step in {shown(self.path.name)}"
            for action in spec.actions
            if chosen.any() and f"{spec.name}.{action}" not in judged.coverage
        ]

    def _chosen(self, traces: Traces) -> npt.NDArray[np.bool_]:
        """The traces that were asked for, and begin as a trace must."""
        chosen = np.ones(len(traces.names), np.bool_)
        if self.only is not None:
            chosen &= [name == self.only for name in traces.names.to_pylist()]
        if self.options.topic is not None and traces.spec.name == "queue":
            chosen &= [str(n).rpartition("/")[0] == self.options.topic for n in traces.names.to_pylist()]
        if next(iter(traces.spec.actions)) != "open":
            return chosen
        first = traces.starts[:-1] if traces.order is None else traces.order[traces.starts[:-1]]
        strange = np.flatnonzero(chosen & (traces.action[first] != traces.spec.codes["open"]))
        if len(strange):
            name = traces.name(int(strange[0]))
            kind, number = schema.place(self.path, int(traces.row[first[strange[0]]]))
            self.reasons.append(
                f"{len(strange)} of {int(chosen.sum())} {traces.spec.name} traces do not begin with open, and were not "
                f"judged; {name} at {kind} {number} is one: open says which state a trace begins in, mid-life or new"
            )
        chosen[strange] = False
        return chosen

    def _compiled(
        self, traces: Traces, low: int, high: int, mine: npt.NDArray[np.bool_], exact: npt.NDArray[np.bool_]
    ) -> list[_Suspect]:
        """Replay the traces `low:high` that are `mine` by the kernel; those that it cannot decide become `exact`."""
        of = kernel(traces.spec.name, self.options.ignored)
        batch = _Batch(traces, low + np.flatnonzero(mine[low:high]))
        found = batch.replay(of, self.options.profile)
        self._count(traces, batch, found, 1)
        undecided = batch.traces[found.bad_why == EXACT]
        if len(undecided):  # they are replayed from their beginning: what was counted of them is taken back
            exact[undecided] = True
            again = _Batch(traces, undecided)
            self._count(traces, again, again.replay(of, self.options.profile), -1)
        refused = np.flatnonzero(found.bad_why > 0)
        self.judged.events[traces.spec.name] += len(refused)
        events = batch.events[found.bad_at[refused]]
        return [
            _Suspect(row, position, trace, of.reasons[why - 1].because)
            for row, position, trace, why in zip(
                traces.row[events].tolist(), traces.position[events].tolist(),
                batch.traces[refused].tolist(), found.bad_why[refused].tolist(), strict=True,
            )
        ]  # fmt: skip

    def _count(self, traces: Traces, batch: _Batch, found: Replayed, sign: int) -> None:
        """Add what a kernel accepted, or take it back."""
        self.judged.events[traces.spec.name] += sign * int(found.covered.sum())
        for action, count in zip(traces.spec.actions, found.covered.tolist(), strict=True):
            self._cover(traces.spec, action, sign * count)
        for number, deviation in enumerate(traces.spec.deviations):
            if count := int(found.deviated[number]):
                at = int(batch.events[found.deviated_at[number]])
                first = _First(int(traces.row[at]), int(traces.position[at]), traces.name(int(traces.of[at])))
                self._deviate(traces.spec, deviation.step.__name__, sign * count, first)

    def _cover(self, spec: Spec, action: str, count: int) -> None:
        name = f"{spec.name}.{action}"
        if total := self.judged.coverage.pop(name, 0) + count:
            self.judged.coverage[name] = total

    def _deviate(self, spec: Spec, name: str, count: int, first: _First) -> None:
        before, earlier = self.anomalies.get((spec.name, name), (0, first))
        self.anomalies[spec.name, name] = (before + count, min(earlier, first))

    def _exact(self, traces: Traces, trace: int) -> list[_Suspect]:
        """Replay one trace through the plain functions."""
        spec = traces.spec
        replayed = _Replay(spec, self.options)
        suspects = []
        for taken in traces.taken(trace):
            self.judged.events[spec.name] += 1
            try:
                replayed.take(taken)
            except _Departs as departs:
                told = departs.departure(replayed, traces.taken(trace))
                suspects.append(_Suspect(taken.row, taken.position, trace, told.because, told, departs.also))
                break
            except _TooMany:
                self.given_up.append(_First(taken.row, taken.position, traces.name(trace)))
                break
        for action, count in replayed.covered.items():
            self._cover(spec, action, count)
        for name, at in replayed.deviations():
            self._deviate(spec, name, 1, _First(at.row, at.position, traces.name(trace)))
        return suspects

    # -- what it comes to ------------------------------------------------------------------------------------------

    def _tell(self, traces: Traces, suspects: list[_Suspect]) -> None:
        """Findings from suspects: one for all that break the same rule, told by the first of them in the file."""
        clusters: dict[str, list[_Suspect]] = {}
        for suspect in sorted(suspects, key=lambda s: s.row):
            told = clusters.setdefault(suspect.because, [])
            confirmed = suspect if told or suspect.departure else self._confirmed(traces, suspect)
            if confirmed:
                told.append(confirmed)
        self.judged.findings += [self._finding(traces, cluster) for cluster in clusters.values() if cluster]

    def _confirmed(self, traces: Traces, suspect: _Suspect) -> _Suspect | None:
        """The suspect with its departure, or None where the plain functions find nothing wrong with the trace."""
        events = [t.event for t in takewhile(lambda t: t.row <= suspect.row, traces.taken(suspect.trace))]
        spec, options = traces.spec, self.options
        outcome = replay(spec.name, spec.initial, events, profile=options.profile, ignored=options.ignored)
        return replace(suspect, departure=outcome.departure) if outcome.departure else None

    def _finding(self, traces: Traces, cluster: list[_Suspect]) -> Finding:
        first, spec = cluster[0], traces.spec.name
        departure = first.departure
        assert departure is not None  # noqa: S101 - for the type checker: the first of a cluster is told
        trace, (kind, number) = shown(traces.name(first.trace)), schema.place(self.path, first.row)
        file = shown(self.path.name)
        lines = story(
            departure,
            title=f"{spec} {trace} departs at {file}, {kind} {number}.",
            also=first.also,
            again=f"gapless explain {shown(self.path)} --trace {trace}",
        )
        if departure.because == SEEN:
            call = 2 + len(departure.steps)  # a title and an empty line come before the steps
            lines[call] = f"{lines[call].removesuffix('refused')}taken, and then seen otherwise"
        return Finding(
            rule=rule_id(spec, departure.because), severity="violation", spec=spec, trace=trace,
            source=shown(self.path),
            position=first.position, where=Where(file=file, offset=number),
            message=f"{trace}: {departure.event[0]} at {kind} {number}, not so: {departure.because}",
            needs=departure.because, otherwise=departure.otherwise, here=departure.here, story=lines,
            count=len(cluster),
            traces=list(dict.fromkeys(shown(traces.name(s.trace)) for s in cluster[:TRACES])),
        )  # fmt: skip

    def finish(self) -> Parts:
        """All traces are judged: the verdict."""
        judged = self.judged
        for (spec, name), (count, first) in sorted(self.anomalies.items()):
            if count:
                judged.anomalies[name] = count
                judged.findings.append(self._anomaly(spec, name, count, first))
        judged.total = sum(f.count for f in judged.findings if f.severity == "violation")
        if self.given_up:
            first, (kind, number) = min(self.given_up), schema.place(self.path, min(self.given_up).row)
            self.reasons.append(
                f"{len(self.given_up)} of {judged.traces} traces have so many steps of unknown outcome that more than "
                f"{STATES} states are possible, {first.trace} after {kind} {number} for one: the rest was not judged"
            )
        if not self.records:
            self.reasons.append("no event in it: nothing was checked")
        elif not judged.traces and not self.reasons:
            what = f"of topic {self.options.topic}" if self.only is None else f"called {self.only}"
            self.reasons.append(f"no trace {what} in it: nothing was checked")
        elif not judged.coverage and not self.reasons:
            self.reasons.append("no step in it that was surely taken: nothing was checked")
        verdict: VerdictName = "departs" if judged.total else "inconclusive" if self.reasons else "conforms"
        judged.source = Source(
            path=shown(self.path), kind="event-trace", bytes=self.path.stat().st_size, records=self.records,
            verdict=verdict, reasons=[shown(reason) for reason in self.reasons],
        )  # fmt: skip
        return judged

    def _anomaly(self, spec: str, name: str, count: int, first: _First) -> Finding:
        deviation = next(d for d in SPECS[spec].deviations if d.step.__name__ == name)
        sentence = name.replace("_", " ")
        return Finding(
            rule=rule_id(spec, sentence), severity="anomaly", spec=spec, trace=shown(first.trace),
            source=shown(self.path), position=first.position,
            where=Where(file=shown(self.path.name), offset=schema.place(self.path, first.row)[1]),
            message=f"{sentence} ({deviation.seen})", needs=sentence,
            otherwise="nothing: this is legal, and counted", here={}, story=[], count=count,
            traces=[shown(first.trace)],
        )  # fmt: skip


# -- traces by the kernel ------------------------------------------------------------------------------------------


def _slices(starts: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of traces with about `SLICE` events each."""
    low = 0
    while low < len(starts) - 1:
        high = max(low + 1, int(np.searchsorted(starts, starts[low] + SLICE, side="right")) - 1)
        yield low, high
        low = high


class _Batch:
    """Some traces as a kernel takes them."""

    def __init__(self, traces: Traces, chosen: Ints) -> None:
        self.spec = traces.spec
        self.traces = chosen
        lengths = np.diff(traces.starts)[chosen]
        self.starts = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(lengths, out=self.starts[1:])
        within = np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], lengths)
        places = np.repeat(traces.starts[chosen], lengths) + within
        self.events = places if traces.order is None else traces.order[places]
        self.action = traces.action[self.events]
        self.args = np.empty((len(traces.args), len(self.events)), np.int64)
        for row, column in enumerate(traces.args):
            np.take(column, self.events, out=self.args[row])

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
            named_here = keys[self.action, argument]
            value = self.args[argument]
            low = np.where(named_here, np.minimum(low, value), low)
            high = np.where(named_here, np.maximum(high, value), high)
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
    types = {get_args(hint)[0] for hint in get_type_hints(type(spec.initial)).values() if _is_map(hint)}
    found = np.zeros((len(spec.actions), len(spec.arguments)), np.bool_)
    for code, (name, action) in enumerate(spec.actions.items()):
        for parameter in spec.parameters[name]:
            found[code, spec.arguments.index(parameter)] = signature(action).parameters[parameter].annotation in types
    return found


def _is_map(hint: Any) -> bool:
    return getattr(hint, "__origin__", None) is Map


# -- traces by the plain functions ---------------------------------------------------------------------------------


class _World(NamedTuple):
    """One state that is still possible, and what must be so for it; linked lists, newest first."""

    state: State
    anomalies: int = 0  # how many deviations it needs
    deviated: Any = None  # ((deviation, event), those before it)
    undone: Any = None  # (number of an event with unknown outcome that did not happen, those before it)

    def deviating(self, deviation: str, taken: Taken) -> _World:
        """The same, with one deviation more."""
        return self._replace(anomalies=self.anomalies + 1, deviated=((deviation, taken), self.deviated))

    def without(self, number: int) -> _World:
        """The same, for event `number` did not happen."""
        return self._replace(undone=(number, self.undone))


class _TooMany(Exception):  # noqa: N818 - an outcome, not an error.
    """More states are possible than are kept."""


class _Departs(Exception):  # noqa: N818 - an outcome, not an error.
    """No state that is still possible explains the event; told for the first of them."""

    def __init__(self, rule: str | None, number: int, taken: Taken, world: _World, also: tuple[str, ...]) -> None:
        super().__init__(rule)
        self.rule = rule  # None: the event is refused, and the plain function knows why
        self.number = number
        self.taken = taken
        self.world = world
        self.also = also

    def departure(self, replayed: _Replay, events: Iterator[Taken]) -> Departure:
        """Why, as data: the path that leads to the world, and the rule that is broken there."""
        path = list(replayed.path(events, self.number, self.world))
        spec, options, event = replayed.spec, replayed.options, self.taken.event
        if self.rule is None:
            outcome = replay(
                spec.name, spec.initial, [*path, event], profile=options.profile, ignored=options.ignored
            )  # fmt: skip
            assert outcome.departure is not None  # noqa: S101 - the same functions refused it a moment ago
            return outcome.departure
        state, here = self.world.state, self._here(spec)
        steps = tuple(replayed.makers(path, [name for name in here if name in spec.scalars]))
        return Departure(
            spec.name, event, len(path) + 1, self.rule, OF_EVENTS[self.rule], here, steps, len(path) - len(steps), state
        )  # fmt: skip

    def _here(self, spec: Spec) -> dict[str, int]:
        state = self.world.state
        if self.rule == SEEN:
            differs = {name: seen for name, seen in (self.taken.saw or {}).items() if getattr(state, name) != seen}
            return {name: int(getattr(state, name)) for name in differs} | {f"{n} seen": v for n, v in differs.items()}
        reasons = [reason for reason in kernel(spec.name).reasons if reason.action == self.taken.event[0]]
        read = {name for reason in reasons for name, _ in reason.fields}
        return {name: int(getattr(state, name)) for name in spec.scalars if name in read}


class _Replay:
    """One trace, with every state that is possible after the events so far."""

    def __init__(self, spec: Spec, options: Options) -> None:
        self.spec = spec
        self.options = options
        self.worlds = [_World(spec.initial)]
        self.number = 0
        self.covered: dict[str, int] = {}

    def take(self, taken: Taken) -> None:
        """Go on to the states that are possible after the event. Raises _Departs, _TooMany."""
        before = self.worlds
        match taken.outcome:
            case "ok":
                after = self._accepting(taken)
                rule = None
            case "unknown":
                after = [*self._accepting(taken), *(world.without(self.number) for world in before)]
                rule = None
            case _:
                after = [world for world in before if self._refuses(world, taken)]
                rule = REFUSED
        if not after:
            raise _Departs(rule, self.number, taken, before[0], self._also())
        if taken.saw is not None and SEEN not in self.options.ignored:
            seen = [w for w in after if all(getattr(w.state, name) == value for name, value in taken.saw.items())]
            if not seen:
                raise _Departs(SEEN, self.number, taken, after[0], self._also())
            after = seen
        if taken.outcome == "ok":
            self.covered[taken.event[0]] = self.covered.get(taken.event[0], 0) + 1
        self.worlds = _distinct(after, self.spec.scalars)
        self.number += 1
        if len(self.worlds) > STATES:
            raise _TooMany

    def _accepting(self, taken: Taken) -> list[_World]:
        """The worlds after the step, where it can be taken."""
        found = []
        action, args = taken.event[0], named(self.spec.name, taken.event)
        with _waiving(self.options.ignored):
            for world in self.worlds:
                try:
                    state, deviation = self.spec.step(world.state, action, args, self.options.profile)
                except Refused:
                    continue
                after = world._replace(state=state)
                found.append(after.deviating(deviation, taken) if deviation else after)
        return found

    def _refuses(self, world: _World, taken: Taken) -> bool:
        """Whether the design refuses the step too: with all its needs, and whatever real brokers allow themselves."""
        if REFUSED in self.options.ignored:
            return True
        try:
            self.spec.actions[taken.event[0]](world.state, *taken.event[1])
        except Refused:
            return True
        return False

    def _also(self) -> tuple[str, ...]:
        """What the story must say of the states that it does not tell."""
        if len(self.worlds) == 1:
            return ()
        told = f"{len(self.worlds)} states were possible, for outcomes before this are unknown, and none explains it."
        return told, "The story is told for one of them."

    def deviations(self) -> Iterator[tuple[str, Taken]]:
        """The deviations that every explanation needs, newest first."""
        link = self.worlds[0].deviated
        while link is not None:
            yield link[0]
            link = link[1]

    def path(self, events: Iterator[Taken], end: int, world: _World) -> Iterator[Event]:
        """The steps that were taken before event number `end`, as `world` has it."""
        undone, link = set(), world.undone
        while link is not None:
            undone.add(link[0])
            link = link[1]
        for number, taken in enumerate(events):
            if number >= end:
                return
            if taken.outcome != "refused" and number not in undone:
                yield taken.event

    def makers(self, path: Sequence[Event], wanted: Sequence[str]) -> list[Step]:
        """The last step that changed each of the wanted fields."""
        last: dict[str, Step] = {}
        state = self.spec.initial
        with _waiving(self.options.ignored):
            for number, event in enumerate(path, 1):
                after, _ = self.spec.step(state, event[0], named(self.spec.name, event), self.options.profile)
                changes = [(n, int(getattr(state, n)), int(getattr(after, n))) for n in self.spec.scalars]
                changed = tuple(change for change in changes if change[1] != change[2])
                last |= {name: Step(number, event, changed) for name, _, _ in changed if name in wanted}
                state = after
        return sorted(dict.fromkeys(last.values()), key=lambda step: step.number)


@contextmanager
def _waiving(ignored: frozenset[str]) -> Iterator[None]:
    """Let the needs in `ignored` pass."""
    token = waived.set(ignored)
    try:
        yield
    finally:
        waived.reset(token)


def _distinct(worlds: list[_World], integers: Sequence[str]) -> list[_World]:
    """One world for every state, those that need the fewest deviations first."""
    if len(worlds) == 1:
        return worlds
    worlds.sort(key=lambda world: world.anomalies)
    alike: dict[tuple[int, ...], list[_World]] = {}  # by the integers of the state, for Maps are slow to compare
    for world in worlds:
        others = alike.setdefault(tuple(getattr(world.state, name) for name in integers), [])
        if all(world.state != other.state for other in others):
            others.append(world)
    return list(chain.from_iterable(alike.values()))
