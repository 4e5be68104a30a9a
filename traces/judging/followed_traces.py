"""Long traces that a kernel follows to their ends: past refused events, and behind departures that can be taken over.

A trace may depart again and again. The kernel finds every departure; the plain functions judge and explain those that
are reported: the first of every moment. They are called for the event that departs, and for the steps of its story, on
the state that the kernel has there, whose Maps are read where they lie. So departures cost what their stories cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from gapless.native import expecting
from gapless.spec.catalog import STRICT, State, waiving
from gapless.spec.language import ASSUMED, Refused
from gapless.traces.events.event import OUTCOMES
from gapless.traces.judging.batches import Batch, initial
from gapless.traces.judging.columns import Traces
from gapless.traces.judging.findings.explaining import naming_others
from gapless.traces.judging.findings.pictures import bitmap_of
from gapless.traces.judging.tallies import TRACES, First, RuleStep, Suspect, Tally
from gapless.traces.options import Options
from gapless.traces.replay.event_rules import REFUSED, SEEN
from gapless.traces.replay.exact import (
    REMEMBERED,
    Departure,
    Element,
    StoryStep,
    changes_of,
    elements,
    here_of,
    named,
)
from gapless.traces.replay.kernels import EXACT, Ints, Loop, Reason, kernel
from gapless.traces.replay.laid_maps import LaidMap
from gapless.traces.replay.map_columns import columns_of
from gapless.traces.replay.notation import changes
from gapless.traces.replay.possible_states import TraceEvent
from gapless.traces.replay.provenance import Reads, refused_for
from gapless.traces.report.pictures.bitmap import Bitmap

SHORT = 1000  # events of a trace that exact replay judges in no time
LONG = 50_000  # events of a trace for which it is worth to compile a kernel; shorter ones are followed if there is one
NAMED = 24  # steps that one story names
BROKER_REFUSED, UNKNOWN = (OUTCOMES.index(name) for name in ("refused", "unknown"))


class OneTrace:
    """One trace in the form of a kernel. Places are indices of its events, from 0.

    `refused`: the places of events that the broker refused.
    """

    def __init__(self, traces: Traces, trace: int, options: Options) -> None:
        self.traces, self.trace, self.options = traces, trace, options
        self.spec = traces.spec
        self.batch = Batch(traces, np.array([trace], np.int64))
        self.origins, self.widths = self.batch.windows()
        self.outcome = traces.outcome[self.batch.events]
        (self.refused,) = np.nonzero(self.outcome == BROKER_REFUSED)

    def __len__(self) -> int:
        return len(self.batch.events)

    def taken(self, place: int) -> TraceEvent:
        """Return one event."""
        traces, at, action = self.traces, int(self.batch.events[place]), int(self.batch.action[place])
        name = list(self.spec.actions)[action]
        given = {argument: int(self.batch.args[row, place]) for row, argument in enumerate(self.spec.arguments)}
        event = name, tuple(given[argument] for argument in self.spec.parameters[name])
        return TraceEvent(event, OUTCOMES[self.outcome[place]], None, int(traces.position[at]), int(traces.row[at]))

    def after(self, state: State, place: int, claim: str = "") -> State:
        """The state that the plain functions make of one event. `claim`: the rule that it breaks, if it is taken over.

        Raises Refused.
        """
        action, args = self.taken(place).event[0], named(self.spec, self.taken(place).event)
        if claim:
            return self.spec.taken_over(state, action, args, claim.partition("/")[2])
        with waiving(self.spec.name, self.options.ignored):
            return self.spec.step(state, action, args, self.options.profile)[0]


class KernelWalk:
    """A walk along one trace, by a kernel. `at`: the place of the next event · `why`: the number of the reason to stop.

    `claims`: by place, the number of the reason for which an event is refused, if it was taken over.
    """

    def __init__(self, one: OneTrace, watched: Ints | None = None) -> None:
        spec = one.spec
        self.one, self.watched = one, watched
        self.windows = np.empty((1 + int(one.widths[0]), max(1, len(spec.maps))), np.int64)
        self.windows[:-1] = [int(getattr(spec.initial, name).default) for name in spec.maps] or [0]
        self.windows[-1] = 0
        self.state = initial(spec, 1)
        self.at = self.why = 0
        self.claims = np.zeros(len(one), np.int64)
        self.covered = np.zeros(len(spec.actions), np.int64)
        self.deviated: dict[int, tuple[int, int]] = {}  # by number, how many, and the place of the first

    def to(self, place: int) -> bool:
        """Walk up to a place; False where the trace ends before that."""
        while self.at < place and not self.why:
            next_one = int(np.searchsorted(self.one.refused, self.at))
            stop = min([place, *self.one.refused[next_one : next_one + 1].tolist()])
            if self.at < stop:
                self._take(stop)
            elif self._is_refused():
                self.at += 1
            else:
                self.why = EXACT
        return not self.why

    def _take(self, stop: int) -> None:
        one = self.one
        of = kernel(one.spec, one.options.ignored)
        found = of.replay(
            np.array([self.at, stop], np.int64), one.batch.action, one.batch.args, self.state,
            origins=one.origins, widths=one.widths, rows=one.batch.rows, resident=self.windows, claims=self.claims,
            watched=self.watched, profile=one.options.profile,
        )  # fmt: skip
        self.state = found.state
        self.covered += found.covered
        for number in np.flatnonzero(found.deviated[:-1]).tolist():
            before, first = self.deviated.get(number, (0, int(found.deviated_at[number])))
            self.deviated[number] = before + int(found.deviated[number]), first
        self.at, self.why = (stop, 0) if found.bad_at[0] < 0 else (int(found.bad_at[0]), int(found.bad_why[0]))

    def _is_refused(self) -> bool:
        """True if the design refuses the next event, as the broker did."""
        one = self.one
        found = kernel(one.spec).replay(
            np.array([self.at, self.at + 1], np.int64), one.batch.action, one.batch.args, self.state,
            origins=one.origins, widths=one.widths, resident=self.windows, profile=STRICT,
        )  # fmt: skip
        return bool(found.bad_why[0] > 0)

    def plain(self) -> State:
        """Return the state for the plain functions, valid until the walk continues."""
        begin, origin = self.one.spec.initial, int(self.one.origins[0])
        values = {
            name: type(getattr(begin, name))(value)
            for name, value in zip(self.one.spec.scalars, self.state[:, 0].tolist(), strict=True)
        }
        columns = enumerate(self.one.spec.maps)
        maps = {name: LaidMap(getattr(begin, name).default, self.windows[:-1, n], origin) for n, name in columns}
        return replace(begin, **values, **maps)


class Contradiction(Exception):  # noqa: N818 - an outcome, not an error.
    """The plain functions do not refuse an event that a kernel refused."""


class FollowedTrace:
    """One trace that a kernel has followed to its end.

    `walk`: along all of it · `places`: of the events that depart · `reasons`: why each does, by the kernel's numbers.
    """

    def __init__(self, one: OneTrace) -> None:
        self.one, self.spec, self.options = one, one.spec, one.options
        self.walk = KernelWalk(one)
        self.walk.to(len(one))
        (self.places,) = np.nonzero(self.walk.claims)
        self.reasons = self.walk.claims[self.places]
        if self.walk.why > 0:
            self.places, self.reasons = np.append(self.places, self.walk.at), np.append(self.reasons, self.walk.why)

    @property
    def is_decided(self) -> bool:
        """True if the kernel knows what became of the whole trace."""
        measured = any(self.spec.deviations[number].amount for number in self.walk.deviated)
        broken = self.walk.why > 0 and self.reason(len(self.places) - 1).rule.endswith(f"/{ASSUMED}")
        return self.walk.why >= 0 and not measured and not broken

    @cached_property
    def _reasons(self) -> tuple[Reason, ...]:
        return kernel(self.spec, self.options.ignored).reasons

    def reason(self, turn: int) -> Reason:
        """The reason of a departure, by its number among them."""
        return self._reasons[int(self.reasons[turn]) - 1]

    @property
    def events(self) -> int:
        """The number of events up to the end, or to the departure behind which nothing is known."""
        return self.walk.at + (self.walk.why > 0)

    def count(self, tally: Tally) -> None:
        """Count what was taken, and what was taken over."""
        names = list(self.spec.actions)
        tally.events += self.events
        tally.cover({name: n for name, n in zip(names, self.walk.covered.tolist(), strict=True) if n})
        for number, (times, first) in self.walk.deviated.items():
            tally.deviate(self.spec.deviations[number].step.__name__, times, self.first(first))
        claimed = np.bincount(self.one.batch.action[np.flatnonzero(self.walk.claims)], minlength=len(names))
        for name, times in zip(names, claimed.tolist(), strict=True):
            if times:
                tally.taken_over[name] = tally.taken_over.get(name, 0) + times

    def clusters(self, moments: int, explained: Explains) -> Iterator[Clustered]:
        """Yield the clusters of its departures, of which the very first of each is explained. Raises Contradiction.

        `moments`: how many are kept apart.
        """
        rule, action, moment = self._signatures(moments)
        also, of = self._also(rule, moment), np.stack([rule, action, moment])
        signatures, first_turns, which = np.unique(of, axis=1, return_index=True, return_inverse=True)
        departures = self._departures(self.places[first_turns].tolist())
        for number, turn in enumerate(first_turns.tolist()):
            (turns,), last = np.nonzero(which.reshape(-1) == number), int(signatures[2, number])
            first = [self._suspect(one, last, also) for one in turns[:TRACES].tolist()]
            first[0] = explained(first[0], partial(departures.__getitem__, int(self.places[turn])))
            reason = self.reason(turn)
            yield (reason.rule, reason.action), last, len(turns), first

    def _signatures(self, moments: int) -> tuple[Ints, Ints, Ints]:
        """The rule of each departure, its action, and its moment, as numbers.

        Departures are of one moment if no step of another action was taken between them.
        """
        rules = {rule: number for number, rule in enumerate(dict.fromkeys(one.rule for one in self._reasons))}
        ids = np.array([rules[one.rule] for one in self._reasons], np.int64)
        every = self.one.batch.action
        turned = np.zeros(len(every), np.int64)
        np.cumsum(every[1:] != every[:-1], out=turned[1:])
        later = np.zeros(len(self.places), np.int64)
        np.cumsum(np.diff(turned[self.places]) > 0, out=later[1:])
        return ids[self.reasons - 1], every[self.places].astype(np.int64), np.minimum(later, moments - 1)

    def _also(self, rule: Ints, moment: Ints) -> dict[int, tuple[str, ...]]:
        """The sentence about the others that break the same rule in a moment, by the first of them."""
        found: dict[int, tuple[str, ...]] = {}
        for one in np.unique(np.stack([rule, moment]), axis=1).T.tolist():
            (turns,) = np.nonzero((rule == one[0]) & (moment == one[1]))
            if len(turns) > 1:
                events = (self.one.taken(place).event for place in self.places[turns[1 : 1 + NAMED]].tolist())
                found[int(turns[0])] = (naming_others(self.spec, events, len(turns) - 1),)
        return found

    def _suspect(self, turn: int, moment: int, also: Mapping[int, tuple[str, ...]]) -> Suspect:
        """One departure in brief."""
        place, reason = int(self.places[turn]), self.reason(turn)
        brief = Departure(
            self.spec, self.one.taken(place).event, place + 1, reason.rule, reason.because, reason.otherwise,
            {}, (), place, None,
        )  # fmt: skip
        return Suspect(self.first(place), brief, also.get(turn, ()), moment, broken=turn)

    def first(self, place: int) -> First:
        """The place in the file."""
        return self.one.traces.first(int(self.one.batch.events[place]))

    # -- stories -------------------------------------------------------------------------------------------------------

    def _departures(self, places: Sequence[int]) -> dict[int, Explanation]:
        """Explain the departures at these places, by the plain functions. Raises Contradiction."""
        walk, found = KernelWalk(self.one), dict[int, Explanation]()
        wanted: dict[int, set[Element]] = {}
        for place in sorted(places):
            walk.to(place)
            refused = self._refused(place, walk.plain())
            found[place] = replace(refused[0], state=None), bitmap_of(refused[0])
            wanted[place] = elements(refused[1])
        steps = self._that_made(wanted)
        for place, (departure, bitmap) in found.items():
            mine = tuple(steps[place])
            found[place] = replace(departure, steps=mine, left_out=place - len(mine)), bitmap
        return found

    def _refused(self, place: int, state: State) -> tuple[Departure, Reads]:
        """Return a departure without its steps, and the values that its rule reads. Raises Contradiction."""
        spec, taken, rule = self.spec, self.one.taken(place), self._rule_at(place)
        args = named(spec, taken.event)
        try:
            self.one.after(state, place)
        except Refused as refusal:
            if f"{spec.name}/{refusal.rule}" == rule:
                with waiving(spec.name, self.options.ignored):
                    reads = refused_for(spec.actions[taken.event[0]], state, args)
                return Departure(
                    spec, taken.event, place + 1, rule, refusal.because, refusal.otherwise,
                    here_of(spec, reads, args, state), (), place, state, taken.outcome,
                ), reads  # fmt: skip
        raise Contradiction

    def _rule_at(self, place: int) -> str:
        return self.reason(int(np.searchsorted(self.places, place))).rule

    def _that_made(self, wanted: Mapping[int, set[Element]]) -> dict[int, list[StoryStep]]:
        """Return the last steps that changed these values before each place, as far as stories reach back."""
        taken = np.cumsum(self.one.outcome != BROKER_REFUSED)
        reported: dict[int, dict[int, list[Element]]] = {}  # by the places of a step and of departures
        for place, last in self._last_changes(wanted).items():
            for element, at in last.items():
                if taken[place - 1] - taken[at] < REMEMBERED:
                    reported.setdefault(at, {}).setdefault(place, []).append(element)
        steps: dict[int, list[StoryStep]] = {place: [] for place in wanted}
        for at, before, after, event in self.steps(sorted(reported)):
            changed = changes(before, after)
            for place, some in reported[at].items():
                made = changes_of(some, before, after)
                steps[place].append(StoryStep(at + 1, event.event, changed, event.outcome, self.is_claimed(at), made))
        return steps

    def _last_changes(self, wanted: Mapping[int, set[Element]]) -> dict[int, dict[Element, int]]:
        """The place of the event that changed each of these values last, before each place."""
        spec, origin, width = self.spec, int(self.one.origins[0]), int(self.one.widths[0])
        watched: dict[Element, tuple[int, int]] = {}
        for name, key in set[Element]().union(*wanted.values()):
            begin = getattr(spec.initial, name)
            if key is None:
                watched[name, key] = -1 - spec.scalars.index(name), int(begin)
            elif 0 <= key - origin < width:
                watched[name, key] = (key - origin) * len(spec.maps) + spec.maps.index(name), int(begin.default)
        values = np.array([[*some, -1] for some in watched.values()], np.int64).reshape(-1, 3).T.copy()
        walk, found = KernelWalk(self.one, values), dict[int, dict[Element, int]]()
        for place in sorted(wanted):
            walk.to(place)
            last = dict(zip(watched, values[2].tolist(), strict=True))
            found[place] = {element: last[element] for element in wanted[place] if last.get(element, -1) >= 0}
        return found

    def is_claimed(self, place: int) -> bool:
        """True if the event departs, and was taken over."""
        return bool(self.walk.claims[place])

    def steps(self, places: Iterable[int]) -> Iterator[tuple[int, State, State, TraceEvent]]:
        """Yield steps that were taken or taken over, with the states before and after, by the plain functions.

        `places`: in their order. The states are valid until the next one.
        """
        walk = KernelWalk(self.one)
        for place in places:
            walk.to(place)
            before = walk.plain()
            claim = self._reasons[int(self.walk.claims[place]) - 1].rule if self.is_claimed(place) else ""
            yield place, before, self.one.after(before, place, claim), self.one.taken(place)


Explanation = tuple[Departure, Bitmap | None]
"""A departure, explained, and what is drawn of the state there."""
Explains = Callable[[Suspect, Callable[[], Explanation]], Suspect]
"""Tells the story of a departure, where one is wanted."""
Clustered = tuple[RuleStep, int, int, list[Suspect]]
"""Departures by one rule and action, and their moment: how many, and the first of them."""


def followed(traces: Traces, trace: int, options: Options) -> FollowedTrace | None:
    """Follow a trace by a kernel; None if exact replay must judge it, or may as well."""
    low, high = traces.starts[trace : trace + 2].tolist()
    events = traces.events(low, high)
    if high - low < SHORT or (traces.outcome[events] == UNKNOWN).any():
        return None
    if columns_of(traces.spec).pairs:
        return None
    if {f"{traces.spec.name}/{rule}" for rule in (REFUSED, SEEN)} & options.ignored:
        return None
    if traces.saw and np.isin(np.fromiter(traces.saw, np.int64), events).any():
        return None
    with expecting(Loop.few + 1 if high - low > LONG else 0):
        if not kernel(traces.spec, options.ignored).is_native:
            return None
        found = FollowedTrace(OneTrace(traces, trace, options))
    return found if found.is_decided else None
