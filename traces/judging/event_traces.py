"""Event traces held against the specs: columns for nearly all of them, objects for the few that need more.

A trace in which every step was taken, and nothing was reported afterwards, is replayed by the compiled kernel, from the
spec's initial state. Exact replay (`worlds.py`) takes the others, and has the last word on whatever a kernel refused or
could not decide.

A file is judged in stretches, each by a task that reads it. A trace that lies wholly in one is judged there. What may
go on in a neighbour, the first and the last trace of a stretch, is handed on as rows, and judged where all of it comes
together. Whether that is all is seen from the hashes of the names: where another trace occurs in several stretches,
these are read once more, and that trace is put together too. Only a stretch is held as columns, 0.2 kB for an event.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gapless.spec.catalog import SPECS, Spec, rule_id
from gapless.traces.events import files
from gapless.traces.events.event import OUTCOMES, TAKEN
from gapless.traces.events.files import Stretch
from gapless.traces.judging.columns import First, Hashes, Packed, Traces, gathered, hashed, packed, unpacked
from gapless.traces.judging.tallies import NO_HASHES, TRACES, Cluster, Judged, Suspect, Tally, added
from gapless.traces.options import Options
from gapless.traces.parts import Parts, Progress
from gapless.traces.problems import Unreadable, shown
from gapless.traces.replay.exact import replay, story
from gapless.traces.replay.kernels import EXACT, LIMIT, Ints, Kernel, Replayed, kernel
from gapless.traces.replay.possible_states import STATES, Departs, Replay, TooMany
from gapless.traces.report import verdict_table
from gapless.traces.report.values import Finding, Source, SourceKind, VerdictName, Where
from gapless.traces.rules import SEEN
from gapless.traces.sources.rocketmq import splits

SLICE = 1 << 20  # events that are replayed at once, or one trace if it has more


Run = Callable[[Callable[[Stretch], Judged], Sequence[Stretch], int], Iterator[Judged]]
"""Runs a task for every stretch, so many bytes in all, and gives the answers in order."""


class Engine(Protocol):
    """Who runs the tasks: this process, or a cluster."""

    buckets: int
    """Into how many the traces are divided that several stretches hold."""
    most: int
    """Events that a task may hand on by itself; where there are more, they travel when it is known which."""

    def each(self, judge: Callable[[Stretch], Judged], stretches: Sequence[Stretch]) -> Iterator[Judged]:
        """Every stretch judged, in the file's order."""

    def joined(
        self,
        judge: Callable[[Stretch], Judged],
        stretches: Sequence[Stretch],
        loose: Sequence[Packed],
        join: Callable[[Sequence[Packed]], Judged],
    ) -> Iterator[Judged]:
        """Stretches judged once more, then what they hand on and what is `loose` already, bucket by bucket."""


class Here:
    """All on this machine: in this process, one task after the other, unless `run` knows better."""

    buckets = 64
    most = 1 << 62

    def __init__(self, run: Run | None = None) -> None:
        self.run = run

    def each(self, judge: Callable[[Stretch], Judged], stretches: Sequence[Stretch]) -> Iterator[Judged]:
        """As `Engine` says."""
        if self.run is None:
            return map(judge, stretches)
        return self.run(judge, stretches, sum(stretch.bytes for stretch in stretches))

    def joined(
        self,
        judge: Callable[[Stretch], Judged],
        stretches: Sequence[Stretch],
        loose: Sequence[Packed],
        join: Callable[[Sequence[Packed]], Judged],
    ) -> Iterator[Judged]:
        """As `Engine` says."""
        buckets: dict[int, list[Packed]] = {}
        for part in loose:
            buckets.setdefault(part.bucket, []).append(part)
        for judged in map(judge, stretches):
            for part in judged.packed:
                buckets.setdefault(part.bucket, []).append(part)
            judged.packed = []
            yield judged
        while buckets:
            yield join(buckets.pop(min(buckets)))


def check_events(
    path: Path,
    options: Options,
    *,
    trace: str | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    table: tuple[Path, str] | None = None,
) -> Parts:
    """Hold a file of events against the specs; with `trace`, only the traces of that name. Raises Unreadable.

    `table`: where the verdict of every trace is written down, and by which name this file goes there.
    """
    engine = engine or Here()
    stretches = files.stretches(path, options.split or splits.SPLIT)
    work = Work(path, replace(options, trace=trace), min(engine.buckets, len(stretches)), engine.most, table)
    found = _Found(stretches, progress)
    try:
        for judged in engine.each(partial(judge_stretch, work, None), stretches):
            found.take(judged)
        shared, again = found.scattered()
        judge, join = partial(judge_stretch, work, shared), partial(judge_packed, work, found.first_rows())
        for judged in engine.joined(judge, again, found.loose(), join):
            found.take(judged)
    except KeyboardInterrupt:
        found.interrupted = True
        found.scattered()
    teller = Teller(of_events(path, found.records), options, trace)
    return teller.parts(found.tallies(), listed=found.listed, interrupted=found.interrupted)


@dataclass(frozen=True)
class Work:
    """What every task of one file needs to know. Of `options`, the trace is the only one that is judged."""

    path: Path
    options: Options
    buckets: int
    most: int
    table: tuple[Path, str] | None

    def list(self, part: str, batches: Sequence[pa.RecordBatch]) -> int:
        """Write verdicts down, if they are wanted, and say how many."""
        if self.table is None:
            return 0
        return verdict_table.write(self.table[0], f"{self.table[1]}-{part}", batches)


class _Found:
    """What the tasks said so far, by stretch: what is said of one again counts in place of what was said before."""

    def __init__(self, stretches: Sequence[Stretch], progress: Progress | None) -> None:
        self.stretches = stretches
        self.progress = progress
        self.done = 0
        self.total = sum(stretch.bytes for stretch in stretches)
        self.judged: dict[int, Judged] = {}
        self.joined: list[Judged] = []
        self.interrupted = False

    def take(self, judged: Judged) -> None:
        """Keep what one task said. Raises Unreadable, KeyboardInterrupt."""
        if judged.problem:
            raise Unreadable(judged.problem)
        if judged.stretch is None:
            self.joined.append(judged)
        else:
            self.judged[judged.stretch] = judged
            self.done += self.stretches[judged.stretch].bytes
            if self.progress:
                self.progress(self.done, self.total)
        if judged.interrupted:
            raise KeyboardInterrupt

    def scattered(self) -> tuple[Hashes, list[Stretch]]:
        """The traces that occur in several stretches, and the stretches that must be read again for them."""
        every = np.sort(np.concatenate([NO_HASHES, *(h for j in self.judged.values() for h in (j.whole, j.loose))]))
        shared = np.unique(every[1:][every[1:] == every[:-1]])
        again = [
            self.stretches[number]
            for number, judged in self.judged.items()
            if judged.too_many or _among(judged.whole, shared).any()
        ]
        for judged in self.judged.values():
            judged.whole = judged.loose = NO_HASHES
        for stretch in again:  # what was said of half a trace counts for nothing
            self.judged[stretch.number] = Judged(stretch.number, self.judged[stretch.number].records)
        self.total += sum(stretch.bytes for stretch in again)
        return shared, again

    def loose(self) -> list[Packed]:
        """The events that were handed on by stretches that need not be read again."""
        loose = [part for judged in self.judged.values() for part in judged.packed]
        for judged in self.judged.values():
            judged.packed = []
        return loose

    def first_rows(self) -> Ints:
        """The row of the file at which every stretch begins."""
        records = [self.judged[stretch.number].records for stretch in self.stretches]
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(records, dtype=np.int64)])

    def tallies(self) -> dict[str, Tally]:
        """All that was said, by spec, in the order in which the specs appear in the file."""
        total: dict[str, Tally] = {}
        rows = 0
        for _, judged in sorted(self.judged.items()):
            for name, tally in judged.tallies.items():
                total.setdefault(name, Tally(tally.begins + rows)).add(tally, rows)
            rows += judged.records
        for judged in self.joined:
            for name, tally in judged.tallies.items():
                total.setdefault(name, Tally(tally.begins)).add(tally, 0)
        return dict(sorted(total.items(), key=lambda item: item[1].begins))

    @property
    def records(self) -> int:
        """Events that were read."""
        return sum(judged.records for judged in self.judged.values())

    @property
    def listed(self) -> int:
        """Verdicts that were written down."""
        return sum(judged.listed for judged in (*self.judged.values(), *self.joined))


def _among(hashes: Hashes, chosen: Hashes) -> npt.NDArray[np.bool_]:
    """Which of the hashes are in `chosen`, which is sorted."""
    if not len(chosen):
        return np.zeros(len(hashes), np.bool_)
    at = np.minimum(np.searchsorted(chosen, hashes), len(chosen) - 1)
    among: npt.NDArray[np.bool_] = chosen[at] == hashes
    return among


# -- what a task does ----------------------------------------------------------------------------------------------


def judge_stretch(work: Work, shared: Hashes | None, stretch: Stretch) -> Judged:
    """Judge the traces that lie wholly in a stretch, and hand on the others: those that are `shared`.

    As long as nobody knows which are (None), the first and the last may be: they go on in a neighbour more often than
    not.
    """
    judged = Judged(stretch.number)
    try:
        every = gathered(files.read(work.path, stretch))
    except Unreadable as problem:
        judged.problem = str(problem)
        return judged
    judged.records = sum(len(traces.of) for traces in every)
    judge = Judge(work)
    try:
        for traces in every:
            judge.take(traces, ~_loose(work, traces, shared, stretch, judged))
    except KeyboardInterrupt:
        judged.interrupted = True
    judged.tallies = judge.tallies
    judged.listed = work.list(f"{stretch.number:06d}", judge.verdicts)
    return judged


def _loose(
    work: Work, traces: Traces, shared: Hashes | None, stretch: Stretch, judged: Judged
) -> npt.NDArray[np.bool_]:
    """The traces that are not judged here, with their events packed into `judged`."""
    loose = np.zeros(len(traces.names), np.bool_)
    if stretch.first and stretch.last:
        return loose
    hashes = hashed(traces)
    if shared is not None:
        loose = _among(hashes, shared)
    else:
        loose[traces.of[0]] |= traces.row[0] == 0 and not stretch.first
        loose[traces.of[-1]] |= traces.row[-1] == judged.records - 1 and not stretch.last
        judged.whole = np.concatenate([judged.whole, hashes[~loose]])
        judged.loose = np.concatenate([judged.loose, hashes[loose]])
        if int(np.diff(traces.starts)[loose].sum()) > work.most:
            judged.too_many = True
            return loose
    if loose.any():
        judged.packed += packed(traces, hashes, loose, stretch.number, work.buckets)
    return loose


def judge_packed(work: Work, first_rows: Ints, parts: Sequence[Packed]) -> Judged:
    """Judge the traces of one bucket, put together from what several stretches handed on."""
    judged = Judged(None)
    judge = Judge(work)
    try:
        for traces in unpacked(parts, first_rows):
            judge.take(traces, np.ones(len(traces.names), np.bool_))
    except KeyboardInterrupt:
        judged.interrupted = True
    judged.tallies = judge.tallies
    judged.listed = work.list(f"joined-{parts[0].bucket:06d}", judge.verdicts)
    return judged


# -- every trace ---------------------------------------------------------------------------------------------------


class Judge:
    """Takes traces, those of one spec after those of the other."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.options = work.options
        self.tallies: dict[str, Tally] = {}
        self.verdicts: list[pa.RecordBatch] = []

    def take(self, traces: Traces, mine: npt.NDArray[np.bool_]) -> None:
        """Judge the traces of one spec that are `mine`: all of their events are here."""
        tally = self.tallies[traces.spec.name] = Tally(int(traces.row[0]))
        tally.falls = traces.falls()
        listed = _Listed(traces)
        chosen = self._chosen(traces, mine, tally, listed)
        exact = np.zeros(len(traces.names), np.bool_)
        exact[traces.of[~TAKEN[traces.outcome]]] = True
        exact[traces.of[list(traces.saw)]] = True
        tally.inferred = _inferred(traces, chosen)
        refused: dict[str, list[Ints]] = {}  # events that a kernel refused, by the need that is not met
        suspects: list[Suspect] = []
        try:
            for low, high in _slices(traces.starts):
                self._compiled(traces, tally, (low, high), chosen & ~exact, exact, refused)
            for trace in np.flatnonzero(chosen & exact).tolist():
                suspects += self._exact(traces, tally, trace, listed)
        finally:  # also where a user has had enough
            self._tell(traces, tally, refused, suspects, listed)
        if self.work.table is not None:
            self.verdicts.append(listed.batch(shown(self.work.path)))

    def _chosen(
        self, traces: Traces, mine: npt.NDArray[np.bool_], tally: Tally, listed: _Listed
    ) -> npt.NDArray[np.bool_]:
        """The traces that were asked for, and begin as a trace must."""
        chosen = mine.copy()
        if self.options.trace is not None:
            chosen &= [name == self.options.trace for name in traces.names.to_pylist()]
        if self.options.topic is not None and traces.spec.name == "queue":
            chosen &= [str(n).rpartition("/")[0] == self.options.topic for n in traces.names.to_pylist()]
        tally.asked = int(chosen.sum())
        listed.verdict[chosen] = verdict_table.VERDICTS.index("conforms")
        if next(iter(traces.spec.actions)) == "open":
            first = traces.begins()
            strange = np.flatnonzero(chosen & (traces.action[first] != traces.spec.codes["open"]))
            if len(strange):
                earliest = first[strange][traces.row[first[strange]].argmin()]
                tally.unopened = len(strange), traces.first(int(earliest))
                listed.verdict[strange] = verdict_table.VERDICTS.index("inconclusive")
                chosen[strange] = False
        tally.traces = int(chosen.sum())
        return chosen

    def _compiled(
        self,
        traces: Traces,
        tally: Tally,
        part: tuple[int, int],
        mine: npt.NDArray[np.bool_],
        exact: npt.NDArray[np.bool_],
        refused: dict[str, list[Ints]],
    ) -> None:
        """Replay a part of the traces, those that are `mine`, by the kernel; what it cannot decide becomes `exact`."""
        of = kernel(traces.spec.name, self.options.ignored)
        low, high = part
        batch = _Batch(traces, low + np.flatnonzero(mine[low:high]))
        found = batch.replay(of, self.options.profile)
        _count(traces, tally, batch, found, 1)
        undecided = batch.traces[found.bad_why == EXACT]
        if len(undecided):  # they are replayed from their beginning: what was counted of them is taken back
            exact[undecided] = True
            again = _Batch(traces, undecided)
            _count(traces, tally, again, again.replay(of, self.options.profile), -1)
        tally.events += int((found.bad_why > 0).sum())
        for why in np.unique(found.bad_why[found.bad_why > 0]).tolist():
            events = batch.events[found.bad_at[found.bad_why == why]]
            refused.setdefault(of.reasons[why - 1].because, []).append(events)

    def _exact(self, traces: Traces, tally: Tally, trace: int, listed: _Listed) -> list[Suspect]:
        """Replay one trace through the plain functions."""
        replayed = Replay(traces.spec, self.options)
        suspects = []
        for taken in traces.taken(trace):
            tally.events += 1
            at = First(taken.row, taken.position, traces.name(trace))
            try:
                replayed.take(taken)
            except Departs as departs:
                told = departs.departure(replayed, traces.taken(trace))
                suspects.append(Suspect(at, replace(told, state=None), departs.also))
                listed.depart(np.array([trace]), np.array([taken.position]), told.because)
                break
            except TooMany:
                tally.given_up = added(tally.given_up, 1, at)
                listed.give_up(trace)
                break
        if not suspects and not replayed.covered:
            listed.give_up(trace)
        tally.cover(replayed.covered)
        for name, taken in replayed.deviations():
            tally.deviate(name, 1, First(taken.row, taken.position, traces.name(trace)))
        return suspects

    # -- those that depart -----------------------------------------------------------------------------------------

    def _tell(
        self, traces: Traces, tally: Tally, refused: dict[str, list[Ints]], suspects: list[Suspect], listed: _Listed
    ) -> None:
        """One cluster for all that break the same rule; of those that a kernel refused, the first is explained."""
        for suspect in suspects:
            assert suspect.departure is not None  # noqa: S101 - for the type checker: exact replay explains each
            because = suspect.departure.because
            one = Cluster(1, (suspect,))
            tally.clusters[because] = tally.clusters[because] + one if because in tally.clusters else one
        for because, some in refused.items():
            events = np.concatenate(some)
            events = events[np.argsort(traces.row[events], kind="stable")]
            events, first = self._explained(traces, events)
            if first is not None:
                others = tuple(Suspect(traces.first(event)) for event in events[1:TRACES].tolist())
                cluster = Cluster(len(events), (first, *others))
                tally.clusters[because] = tally.clusters[because] + cluster if because in tally.clusters else cluster
                listed.depart(traces.of[events], traces.position[events], because)

    def _explained(self, traces: Traces, events: Ints) -> tuple[Ints, Suspect | None]:
        """The events from the first on that the plain functions refuse too, and why they do."""
        for number, event in enumerate(events.tolist()):
            at = traces.first(event)
            path = [t.event for t in takewhile(lambda t: t.row <= at.row, traces.taken(int(traces.of[event])))]  # noqa: B023 - used at once
            spec, options = traces.spec, self.options
            outcome = replay(spec.name, spec.initial, path, profile=options.profile, ignored=options.ignored)
            if outcome.departure:
                return events[number:], Suspect(at, replace(outcome.departure, state=None))
        return events[:0], None


def _count(traces: Traces, tally: Tally, batch: _Batch, found: Replayed, sign: int) -> None:
    """Add what a kernel accepted, or take it back."""
    tally.events += sign * int(found.covered.sum())
    tally.cover({name: sign * n for name, n in zip(traces.spec.actions, found.covered.tolist(), strict=True)})
    for number, deviation in enumerate(traces.spec.deviations):
        if count := int(found.deviated[number]):
            first = traces.first(int(batch.events[found.deviated_at[number]]))
            tally.deviate(deviation.step.__name__, sign * count, first)


class _Listed:
    """The rows of the verdict table, one for each of some traces."""

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        count = len(traces.names)
        self.verdict = np.full(count, -1, np.int8)  # of `verdict_table.VERDICTS`; -1: it is not judged here
        self.rule = np.full(count, -1, np.int32)
        self.position = np.zeros(count, np.int64)
        self.rules: list[str] = []

    def depart(self, some: npt.NDArray[np.integer[Any]], positions: Ints, because: str) -> None:
        """These traces depart: where, and which need is not met."""
        self.verdict[some] = verdict_table.VERDICTS.index("departs")
        self.rule[some] = len(self.rules)
        self.position[some] = positions
        self.rules.append(rule_id(self.traces.spec.name, because))

    def give_up(self, trace: int) -> None:
        """Nobody can say whether this trace departs."""
        self.verdict[trace] = verdict_table.VERDICTS.index("inconclusive")

    def batch(self, source: str) -> pa.RecordBatch:
        """The rows of all that were judged."""
        mine = np.flatnonzero(self.verdict >= 0)
        departs = self.rule[mine] >= 0
        rules = pa.array(self.rule[mine], pa.int32(), mask=~departs)
        columns = [
            pa.repeat(source, len(mine)),
            pa.repeat(self.traces.spec.name, len(mine)),
            self.traces.names.take(mine),
            pa.array(verdict_table.VERDICTS, pa.string()).take(self.verdict[mine]),
            pa.DictionaryArray.from_arrays(rules, pa.array(self.rules, pa.string())).dictionary_decode(),
            pa.array(self.position[mine], mask=~departs),
            pa.array(np.diff(self.traces.starts)[mine]),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=verdict_table.SCHEMA)


# -- traces by the kernel ------------------------------------------------------------------------------------------


def _inferred(traces: Traces, chosen: npt.NDArray[np.bool_]) -> dict[str, int]:
    """How many events of the chosen traces nobody saw, by action."""
    events = np.flatnonzero(traces.outcome == OUTCOMES.index("inferred"))
    counts = np.bincount(traces.action[events[chosen[traces.of[events]]]], minlength=len(traces.spec.actions))
    return {name: int(count) for name, count in zip(traces.spec.actions, counts, strict=True) if count}


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
    found = np.zeros((len(spec.actions), len(spec.arguments)), np.bool_)
    for code, (name, action) in enumerate(spec.actions.items()):
        for parameter in spec.parameters[name]:
            found[code, spec.arguments.index(parameter)] = (
                signature(action).parameters[parameter].annotation in spec.key_types
            )
    return found


# -- what it comes to ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recorded:
    """Where events were recorded.

    `path`: what a user names · `file`: where in it an event is told of · `place`: the kind and the number of a place in
    that file, such as line 7, by the row of an event · `steps`: the same, for the numbers of a story's steps.
    """

    path: Path
    kind: SourceKind
    bytes: int
    records: int
    file: str
    place: Callable[[int], tuple[str, int]]
    steps: Callable[[int], str] | None = None
    profile: str = "rocketmq"  # which it is judged by where nobody asks for another


def of_events(path: Path, records: int) -> Recorded:
    """A file of events."""
    return Recorded(path, "event-trace", path.stat().st_size, records, path.name, partial(files.place, path))


class Teller:
    """Tells of one source what was found out."""

    def __init__(self, recorded: Recorded, options: Options, only: str | None) -> None:
        self.recorded = recorded
        self.path = recorded.path
        self.options = options
        self.only = only

    def parts(self, tallies: dict[str, Tally], *, listed: int = 0, interrupted: bool = False) -> Parts:
        """The verdict, the numbers and the findings. Raises Unreadable."""
        self._check_order(tallies)
        parts = Parts(Source(path=shown(self.path), kind=self.recorded.kind, verdict="inconclusive"))
        parts.interrupted = interrupted
        parts.listed = listed
        for spec, tally in tallies.items():
            parts.events[spec] = tally.events
            parts.traces += tally.traces
            parts.coverage |= {f"{spec}.{action}": count for action, count in tally.covered.items()}
            parts.not_exercised += self._not_exercised(SPECS[spec], tally)
            clusters = sorted(tally.clusters.values(), key=lambda cluster: cluster.first[0].at)
            parts.findings += [self._finding(spec, cluster) for cluster in clusters]
        for spec, tally in sorted(tallies.items()):
            for name, (count, first) in sorted(tally.anomalies.items()):
                if count:
                    parts.anomalies[name] = count
                    parts.findings.append(self._anomaly(spec, name, count, first))
        parts.total = sum(f.count for f in parts.findings if f.severity == "violation")
        reasons = list(self._reasons(tallies, parts))
        verdict: VerdictName = "departs" if parts.total else "inconclusive" if reasons else "conforms"
        parts.source = Source(
            path=shown(self.path), kind=self.recorded.kind, bytes=self.recorded.bytes, records=self.recorded.records,
            verdict=verdict, reasons=[shown(reason) for reason in reasons],
        )  # fmt: skip
        return parts

    def _check_order(self, tallies: dict[str, Tally]) -> None:
        falls = min((tally.falls for tally in tallies.values() if tally.falls), default=None)
        if falls:
            raise Unreadable(
                f"{shown(self.path)}, {self._place(falls)}: position {falls.position} of {shown(falls.trace)} is lower "
                "than the one before: expected the events of a trace in the order in which they took effect; sort them "
                "by position"
            )

    def _place(self, first: First) -> str:
        kind, number = self.recorded.place(first.row)
        return f"{kind} {number}"

    def _not_exercised(self, spec: Spec, tally: Tally) -> list[str]:
        return [
            f"{spec.name}.{action}: no such step in {shown(self.recorded.file)}"
            for action in spec.actions
            if tally.traces and action not in tally.covered
        ] + [
            f"{spec.name}.{action}: every such step in {shown(self.recorded.file)} is inferred, and none was seen"
            for action, count in tally.inferred.items()
            if tally.covered.get(action, 0) <= count
        ]

    def _reasons(self, tallies: dict[str, Tally], parts: Parts) -> Iterator[str]:
        """Why not everything was checked. Vacuity is not conformance."""
        told = False
        for reason in self._unjudged(tallies, parts):
            told = True
            yield reason
        if not self.recorded.records and not parts.interrupted:
            yield "no event in it: nothing was checked"
        elif not parts.traces and not told:
            what = f"of topic {self.options.topic}" if self.only is None else f"called {self.only}"
            yield f"no trace {what} in it: nothing was checked"
        elif not parts.coverage and not told:
            yield "no step in it that was surely taken: nothing was checked"

    def _unjudged(self, tallies: dict[str, Tally], parts: Parts) -> Iterator[str]:
        for spec, tally in tallies.items():
            if tally.unopened:
                count, first = tally.unopened
                yield (
                    f"{count} of {tally.asked} {spec} traces do not begin with open, and were not judged; "
                    f"{first.trace} at {self._place(first)} is one: open says which state a trace begins in, mid-life "
                    "or new"
                )
        if parts.interrupted:
            yield "interrupted: what was judged until then is reported"
        given_up = [tally.given_up for tally in tallies.values() if tally.given_up]
        if given_up:
            first = min(first for _, first in given_up)
            yield (
                f"{sum(count for count, _ in given_up)} of {sum(tally.traces for tally in tallies.values())} traces "
                f"have so many steps of unknown outcome that more than {STATES} states are possible, {first.trace} "
                f"after {self._place(first)} for one: the rest was not judged"
            )

    def _finding(self, spec: str, cluster: Cluster) -> Finding:
        first = cluster.first[0]
        departure = first.departure
        assert departure is not None  # noqa: S101 - for the type checker: the first of a cluster is explained
        trace, (kind, number) = shown(first.at.trace), self.recorded.place(first.at.row)
        file = shown(self.recorded.file)
        lines = story(
            departure,
            title=f"{spec} {trace} departs at {file}, {kind} {number}.",
            also=first.also,
            where=self.recorded.steps,
            again=f"gapless explain {shlex.quote(shown(self.path))} --trace {shlex.quote(trace)}" + self._asked(),
        )
        if departure.because == SEEN:
            call = 2 + len(departure.steps)  # a title and an empty line come before the steps
            lines[call] = f"{lines[call].removesuffix('refused')}taken, and then seen otherwise"
        return Finding(
            rule=rule_id(spec, departure.because), severity="violation", spec=spec, trace=trace,
            source=shown(self.path),
            position=first.at.position, where=Where(file=file, offset=number),
            message=f"{trace}: {departure.event[0]} at {kind} {number}, not so: {departure.because}",
            needs=departure.because, otherwise=departure.otherwise, here=departure.here, story=lines,
            count=cluster.count,
            traces=list(dict.fromkeys(shown(suspect.at.trace) for suspect in cluster.first)),
        )  # fmt: skip

    def _asked(self) -> str:
        """What must be asked for again."""
        return "" if self.options.profile == self.recorded.profile else f" --profile {self.options.profile}"

    def _anomaly(self, spec: str, name: str, count: int, first: First) -> Finding:
        deviation = next(d for d in SPECS[spec].deviations if d.step.__name__ == name)
        sentence = name.replace("_", " ")
        return Finding(
            rule=rule_id(spec, sentence), severity="anomaly", spec=spec, trace=shown(first.trace),
            source=shown(self.path), position=first.position,
            where=Where(file=shown(self.recorded.file), offset=self.recorded.place(first.row)[1]),
            message=f"{sentence} ({deviation.seen})", needs=sentence,
            otherwise="nothing: this is legal, and counted", here={}, story=[], count=count,
            traces=[shown(first.trace)],
        )  # fmt: skip
