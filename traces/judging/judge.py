"""The judge of traces by their spec: in columns for nearly all of them, as objects for the rest.

The compiled kernel replays every trace in which all steps were taken and nothing was observed afterwards. Exact replay
(`possible_states`) takes the others, and decides whatever a kernel refused or could not decide.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gapless.spec.catalog import END
from gapless.traces.judging.batches import Batch, asked_for, by_exact_replay, count, count_all, measure_exactly, slices
from gapless.traces.judging.columns import Traces
from gapless.traces.judging.findings.explaining import explained, naming_others
from gapless.traces.judging.findings.pictures import bitmap_of
from gapless.traces.judging.followed_traces import NAMED, SHORT, UNKNOWN, Contradiction, Explanation, followed
from gapless.traces.judging.observed_traces import DepartingTraces, accepted
from gapless.traces.judging.tallies import TRACES, Cluster, First, RuleStep, Suspect, Tally, added
from gapless.traces.options import Options
from gapless.traces.replay.kernels import Ints, kernel
from gapless.traces.replay.possible_states import BrokenPromise, Departs, Replay, TooMany, TraceEvent
from gapless.traces.replay.remembered_quantifiers import quantifies
from gapless.traces.report.outputs import verdict_table

MOMENTS = 8  # of one trace that are kept apart: each has stories, and a story takes as long as replaying the trace


class Judge:
    """Judges traces, spec by spec, into a tally for each.

    `source` is how the verdict table names where the traces come from; `verdicts` are its rows, if they are wanted. Of
    `options`, `trace` is the only one that is judged.
    """

    def __init__(self, source: str, options: Options) -> None:
        self.source = source
        self.options = options
        self.tallies: dict[str, Tally] = {}
        self.verdicts: list[pa.RecordBatch] = []

    def take(self, traces: Traces, mine: npt.NDArray[np.bool_]) -> None:
        """Judge the traces of one spec that are `mine`: all of their events are here. Others of it may have come."""
        tally = Tally(int(traces.row[0]))
        tally.falls = traces.falls()
        verdicts = _Verdicts(traces)
        chosen = self._chosen(traces, mine, tally, verdicts)
        exact = by_exact_replay(traces)
        observed = exact.copy()
        count_all(traces, chosen, tally)
        refused: dict[RuleStep, Ints] = {}  # events that a kernel refused, in order, by the need that is not met
        stories: dict[RuleStep, Suspect] = {}  # why the first of each is refused
        departed = FirstDepartures()
        try:
            for low, high in slices(traces.starts):
                self._compiled(traces, tally, (low, high), chosen & ~exact, exact, refused)
            fine, departing = accepted(traces, chosen & exact & observed, self.options, tally)
            exact &= ~fine
            for action, some in chain.from_iterable(of_a_rule.by_action() for of_a_rule in departing):
                self._alike(action, some, tally, verdicts, departed, exact)
            exact |= self._overruled(traces, tally, refused, stories)
            for trace in np.flatnonzero(chosen & exact).tolist():
                if not self._followed(traces, tally, trace, verdicts, departed):
                    self._exact(traces, tally, trace, verdicts, departed)
        finally:  # also where a user has had enough
            departed.gather(tally)
            self._explain(traces, tally, refused, stories, verdicts)
            if before := self.tallies.get(traces.spec.name):
                before.add(tally, 0)
            else:
                self.tallies[traces.spec.name] = tally
        if self.options.listed:
            self.verdicts.append(verdicts.batch(self.source))

    def _chosen(
        self, traces: Traces, mine: npt.NDArray[np.bool_], tally: Tally, verdicts: _Verdicts
    ) -> npt.NDArray[np.bool_]:
        """Select the traces that were asked for, and begin as a trace must."""
        chosen = mine & asked_for(traces, self.options)
        tally.asked = int(chosen.sum())
        verdicts.verdict[chosen] = verdict_table.VERDICTS.index("conforms")
        if next(iter(traces.spec.actions)) == "open":
            first = traces.begins()
            strange = np.flatnonzero(chosen & (traces.action[first] != traces.spec.codes["open"]))
            if len(strange):
                earliest = first[strange][traces.row[first[strange]].argmin()]
                tally.unopened = len(strange), traces.first(int(earliest))
                verdicts.verdict[strange] = verdict_table.VERDICTS.index("inconclusive")
                chosen[strange] = False
        tally.traces = int(chosen.sum())
        resting = np.unique(traces.of[traces.action == traces.spec.codes.get(END, -1)])
        tally.rested = int(chosen[resting].sum())
        return chosen

    def _compiled(
        self,
        traces: Traces,
        tally: Tally,
        part: tuple[int, int],
        mine: npt.NDArray[np.bool_],
        exact: npt.NDArray[np.bool_],
        refused: dict[RuleStep, Ints],
    ) -> None:
        """Replay a part of the traces, those that are `mine`, by the kernel; what it cannot decide becomes `exact`."""
        of = kernel(traces.spec, self.options.ignored)
        low, high = part
        batch = Batch(traces, low + np.flatnonzero(mine[low:high]))
        found = batch.replay(of, self.options.profile)
        count(traces, tally, batch, found, 1)
        by_plain_functions = np.isin(found.bad_why, of.unsure)
        undecided = batch.traces[by_plain_functions]
        if len(undecided):  # they are replayed from their beginning: what was counted of them is taken back
            exact[undecided] = True
            again = Batch(traces, undecided)
            count(traces, tally, again, again.replay(of, self.options.profile), -1)
        departing = found.bad_why[(found.bad_why > 0) & ~by_plain_functions]
        tally.events += len(departing)
        for why in np.unique(departing).tolist():
            events = batch.events[found.bad_at[found.bad_why == why]]
            reason = of.reasons[why - 1]
            broken = reason.rule, reason.action
            events = np.concatenate([refused.get(broken, events[:0]), events])
            refused[broken] = events[np.argsort(traces.row[events], kind="stable")]

    def _overruled(
        self, traces: Traces, tally: Tally, refused: dict[RuleStep, Ints], stories: dict[RuleStep, Suspect]
    ) -> npt.NDArray[np.bool_]:
        """Return the traces that a kernel refuses but the plain functions accept.

        The plain functions decide, by the first trace of each rule and step. The counts of these traces are
        subtracted, and their number is reported.
        """
        traces_of_rule = np.zeros(len(traces.names), np.bool_)
        for broken, events in list(refused.items()):
            suspect = explained(traces, int(events[0]), self.options)
            if suspect is None or suspect.departure is None or suspect.departure.rule != broken[0]:
                del refused[broken]
                tally.overruled = added(tally.overruled, len(events), traces.first(int(events[0])))
                tally.events -= len(events)
                again = Batch(traces, np.unique(traces.of[events]).astype(np.int64))
                of = kernel(traces.spec, self.options.ignored)
                count(traces, tally, again, again.replay(of, self.options.profile), -1)
                traces_of_rule[again.traces] = True
            else:
                stories[broken] = suspect
        return traces_of_rule

    def _followed(
        self, traces: Traces, tally: Tally, trace: int, verdicts: _Verdicts, departed: FirstDepartures
    ) -> bool:
        """Judge one long trace by the kernel; False if it is left to exact replay.

        The plain functions have the last word on the departures that are reported.
        """
        found = followed(traces, trace, self.options)
        if found is None:
            return False
        try:
            clusters = list(found.clusters(MOMENTS, departed.explained))
        except Contradiction:
            tally.overruled = added(tally.overruled, len(found.places), found.first(int(found.places[0])))
            return False
        found.count(tally)
        for broken, moment, many, suspects in clusters:
            departed.add_many((broken, moment), many, suspects)
        if clusters:
            first = found.first(int(found.places[0]))
            rule = found.reason(0).rule
            verdicts.depart(np.array([trace]), np.array([first.position]), rule)
        elif not found.walk.covered.any():
            verdicts.give_up(trace)
        return True

    def _exact(self, traces: Traces, tally: Tally, trace: int, verdicts: _Verdicts, departed: FirstDepartures) -> None:
        """Replay one trace through the plain functions."""
        replayed = _replay_of(traces, trace, self.options)
        suspects: list[Suspect] = []
        moment, same = 0, ""  # the action that departs; other steps end the moment
        name = traces.name(trace)
        for taken in traces.taken(trace):
            tally.events += 1
            try:
                replayed.take(taken)
                same = same if taken.event[0] == same else ""
            except Departs as departs:
                departure = departs.in_brief(replayed)
                if not suspects:
                    verdicts.depart(np.array([trace]), np.array([taken.position]), departure.rule)
                moment += bool(suspects) and departure.event[0] != same and moment < MOMENTS - 1
                same = departure.event[0]
                at = First(taken.row, taken.position, name)
                suspect = Suspect(at, departure, departs.also, moment, broken=len(suspects))
                story = partial(_explanation, departs, replayed, traces.taken(trace))
                suspects.append(departed.explained(suspect, story))
                if taken.outcome == "refused" or not replayed.take_over(taken, departure.rule):
                    break
                tally.taken_over[departure.event[0]] = tally.taken_over.get(departure.event[0], 0) + 1
            except TooMany:
                tally.given_up = added(tally.given_up, 1, First(taken.row, taken.position, name))
                verdicts.give_up(trace)
                break
            except BrokenPromise:
                tally.unpromised = added(tally.unpromised, 1, First(taken.row, taken.position, name))
                verdicts.give_up(trace)
                break
        if not suspects and not replayed.covered:
            verdicts.give_up(trace)
        tally.cover(replayed.covered)
        for deviation, taken in replayed.deviations():
            first = First(taken.row, taken.position, name)
            tally.deviate(deviation, 1, first)
            measure_exactly(tally, traces.spec, replayed, deviation, first)
        for suspect in _with_others(suspects):
            departed.add(suspect)

    def _alike(
        self,
        action: str,
        some: DepartingTraces,
        tally: Tally,
        verdicts: _Verdicts,
        departed: FirstDepartures,
        exact: npt.NDArray[np.bool_],
    ) -> None:
        """Replay the first of these traces through the plain functions; if they refuse the event, count the others.

        Otherwise all of them are left to be replayed, and the disagreement is reported.
        """
        traces, rule = some.traces, some.rule
        first = int(some.events[0])
        self._exact(traces, tally, int(traces.of[first]), verdicts, departed)
        exact[traces.of[first]] = False
        others = some.others()
        if departed.is_first((rule, action), traces.first(first)):
            others.count(tally)
            departed.add_alike((rule, action), len(others.events), map(traces.first, others.events[:TRACES].tolist()))
            verdicts.depart(traces.of[others.events], traces.position[others.events], rule)
            exact[traces.of[others.events]] = False
        else:
            tally.overruled = added(tally.overruled, len(some.events), traces.first(first))

    # -- those that depart -----------------------------------------------------------------------------------------

    def _explain(
        self,
        traces: Traces,
        tally: Tally,
        refused: dict[RuleStep, Ints],
        stories: dict[RuleStep, Suspect],
        verdicts: _Verdicts,
    ) -> None:
        """Cluster traces that break one rule by one step; explain the first of each."""
        for broken, events in refused.items():
            first = stories.get(broken) or explained(traces, int(events[0]), self.options)
            if first is not None:
                others = tuple(Suspect(traces.first(event)) for event in events[1:TRACES].tolist())
                tally.gather((broken, 0), Cluster(len(events), (first, *others)))
                verdicts.depart(traces.of[events], traces.position[events], broken[0])


class FirstDepartures:
    """Departures by exact replay, clustered by rule, step and moment: how many, and the first ones.

    The very first of each cluster has a story; the others need none, and it takes long to make.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[RuleStep, int], int] = {}
        self._begins: dict[tuple[RuleStep, int], First] = {}
        self._first: dict[tuple[RuleStep, int], list[Suspect]] = {}

    def explained(self, suspect: Suspect, story: Callable[[], Explanation]) -> Suspect:
        """The same with its story, if no earlier one of its cluster is known."""
        cluster = _cluster(suspect)
        known = self._begins.setdefault(cluster, suspect.at)
        if known < suspect.at:
            return suspect
        self._begins[cluster] = suspect.at
        departure, bitmap = story()
        return replace(suspect, departure=replace(departure, state=None), bitmap=bitmap)

    def add(self, suspect: Suspect) -> None:
        """Count one more."""
        cluster = _cluster(suspect)
        self._counts[cluster] = self._counts.get(cluster, 0) + 1
        first = self._first.setdefault(cluster, [])
        if len(first) < TRACES or suspect.at < first[-1].at:
            insort(first, suspect, key=lambda one: one.at)
            del first[TRACES:]

    def add_many(self, cluster: tuple[RuleStep, int], count: int, first: list[Suspect]) -> None:
        """Count many of one cluster more, of which these are the first."""
        self._counts[cluster] = self._counts.get(cluster, 0) + count
        every = (*self._first.get(cluster, ()), *first)
        self._first[cluster] = sorted(every, key=lambda one: one.at)[:TRACES]

    def is_first(self, broken: RuleStep, at: First) -> bool:
        """True if the first one known of a rule and step is at this place."""
        return self._begins.get((broken, 0)) == at

    def add_alike(self, broken: RuleStep, count: int, first: Iterable[First]) -> None:
        """Count others that break the same rule by the same step, behind one that has a story."""
        if count:
            self._counts[broken, 0] += count
            alike = (*self._first[broken, 0], *map(Suspect, first))
            self._first[broken, 0] = sorted(alike, key=lambda one: one.at)[:TRACES]

    def gather(self, tally: Tally) -> None:
        """Add the clusters to a tally."""
        for cluster, first in self._first.items():
            tally.gather(cluster, Cluster(self._counts[cluster], tuple(first)))


def _replay_of(traces: Traces, trace: int, options: Options) -> Replay:
    """An exact replay for one trace."""
    replayed, events = Replay(traces.spec, options), traces.events(*traces.starts[trace : trace + 2].tolist())
    if len(events) > SHORT and (quantifies(traces.spec) or (traces.outcome[events] == UNKNOWN).any()):
        replayed.remember()
    return replayed


def _explanation(departs: Departs, replayed: Replay, events: Iterator[TraceEvent]) -> Explanation:
    departure = departs.departure(replayed, events)
    return departure, bitmap_of(departure)


def _cluster(suspect: Suspect) -> tuple[RuleStep, int]:
    assert suspect.departure is not None  # noqa: S101 - for the type checker: exact replay explains each
    return (suspect.departure.rule, suspect.departure.event[0]), suspect.moment


def _with_others(suspects: list[Suspect]) -> list[Suspect]:
    """Return the departures of one trace; the first of a moment names the others that break the same rule then."""
    alike: dict[str, list[Suspect]] = {}
    for suspect in suspects:
        alike.setdefault(suspect.departure.rule if suspect.departure else "", []).append(suspect)
    found = []
    for some in alike.values():
        for _, group in groupby(some, key=lambda suspect: suspect.moment):
            first, *others = group
            found += [replace(first, also=(*first.also, _others(others))) if others else first, *others]
    return found


def _others(suspects: list[Suspect]) -> str:
    """Name the other steps that break the rule."""
    departures = [suspect.departure for suspect in suspects if suspect.departure]
    return naming_others(departures[0].of, [one.event for one in departures[:NAMED]], len(departures))


class _Verdicts:
    """The rows of the verdict table, one for each of some traces."""

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        count = len(traces.names)
        self.verdict = np.full(count, -1, np.int8)  # of `verdict_table.VERDICTS`; -1: it is not judged here
        self.rule = np.full(count, -1, np.int32)
        self.position = np.zeros(count, np.int64)
        self.rules: list[str] = []

    def depart(self, some: npt.NDArray[np.integer[Any]], positions: Ints, rule: str) -> None:
        """Record that these traces depart: where, and which rule is broken."""
        self.verdict[some] = verdict_table.VERDICTS.index("departs")
        self.rule[some] = len(self.rules)
        self.position[some] = positions
        self.rules.append(rule)

    def give_up(self, trace: int) -> None:
        """Record that the trace cannot be decided, unless it has departed before."""
        if self.rule[trace] < 0:
            self.verdict[trace] = verdict_table.VERDICTS.index("inconclusive")

    def batch(self, source: str) -> pa.RecordBatch:
        """Return the rows of all that were judged."""
        mine = np.flatnonzero(self.verdict >= 0)
        return verdict_table.rows_of(
            source, self.traces.spec.name, self.traces.names.take(mine), self.verdict[mine], self.rule[mine],
            self.rules, self.position[mine], np.diff(self.traces.starts)[mine],
        )  # fmt: skip
