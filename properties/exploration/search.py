"""Every state of a spec within a bound, breadth first, by calling the plain functions; nothing is sampled.

Every state is checked against the invariants when it is first met, every pair of states that a step joins against the
step properties. Where states are never left again, the system has come to rest: one of them must be as `AT_REST`
says. The search is breadth first, so the first property found broken has a shortest path; the search ends there.

A search that takes long is done by native code, which finds the same states in the same order (`native/search.py`).
The plain functions are the second opinion: they can be had alone, and judge whatever is found to be broken.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property, partial
from inspect import signature
from itertools import starmap
from operator import attrgetter
from typing import Any, Literal

from gapless.properties.exploration.bounds import Bound, arguments, initial_states, universal
from gapless.properties.exploration.graph import Call, StateGraph
from gapless.properties.exploration.liveness.eventually import ClaimResult, judged
from gapless.properties.exploration.native.search import (
    BROKEN_STATE,
    BROKEN_STEP,
    DONE,
    NativeFound,
    NativeSearch,
    NotCompilable,
    SearchEnd,
    SearchTask,
)
from gapless.properties.exploration.symmetry import SymmetryGroup, folding
from gapless.spec.catalog import Spec, State
from gapless.spec.language import Map, Refused
from gapless.spec.reading.checking import checked
from gapless.spec.reading.quantification import counterexample

How = Literal["auto", "plain", "native"]
"""By whom states are explored: by calling the plain functions, by native code, or by that where it pays."""

SearchResult = Literal["holds", "breaks", "unfinished", "vacuous", "undecided"]
Properties = Sequence[tuple[Callable[..., bool], Sequence[tuple[int, ...]]]]
"""Invariants or step properties, each with the numbers that it is checked for."""

OnProgress = Callable[[int, int], None]
"""Called now and then with the number of states that are explored, and of those that were met."""

OnCompile = Callable[[str], None]
"""Called with the name of a spec whose search is about to be compiled, which takes ten seconds or more."""

PROGRESS_EVERY = 500  # states
STATES = 8_000_000  # states that are kept, unless the user allows more
SHORT = 20_000  # calls that plain functions try before anybody asks whether there is native code
PATIENCE = 1_000_000  # calls that they try before native code is made


@dataclass(frozen=True)
class BrokenProperty:
    """A broken property: an invariant in the path's last state, or a step property of its last step."""

    holds: Callable[..., bool]
    sentence: str  # the name of the invariant or step property
    otherwise: str
    witness: Mapping[str, int]  # the numbers for which it is false
    path: tuple[Call, ...]
    way: tuple[int, ...]  # the numbers of the states along the path, from the one where exploration began
    states: int  # of how many it tells: of a state, or of those before and after a step


@dataclass(frozen=True)
class Exploration:
    """The result of exploring a spec within a bound."""

    spec: Spec
    bound: Bound
    profile: str | None
    graph: StateGraph
    accepted: Mapping[str, int]  # how often each action and deviation was taken
    refused: Mapping[tuple[str, str], int]  # how often each (action or deviation, rule) refused
    broken: BrokenProperty | None
    complete: bool  # whether the bound was reached
    seconds: float
    native: bool = False  # whether native code explored it
    not_native: str = ""  # why native code was left out of a search that takes long
    folding: SymmetryGroup | None = None  # by which states that differ in names alone are explored once
    claims: tuple[ClaimResult, ...] = ()  # what was decided of them, where all else holds

    @property
    def unfolded(self) -> int:
        """The number of states within the bound, those that were folded among them."""
        if self.folding is None:
            return self.states
        inside = (state for n, state in enumerate(self.graph.states) if n not in self.graph.beyond)
        return sum(map(self.folding.size, inside))

    @property
    def tried(self) -> int:
        """The number of accepted or refused calls of a step."""
        return sum(self.accepted.values()) + sum(self.refused.values())

    @property
    def states(self) -> int:
        """The number of states within the bound."""
        return self.graph.inside

    @property
    def transitions(self) -> int:
        """The number of accepted steps that join states within the bound."""
        return self.graph.transitions

    @cached_property
    def never(self) -> tuple[str, ...]:
        """Steps that were never taken: whatever holds of them holds vacuously."""
        return tuple(name for name, count in self.accepted.items() if not count)

    @property
    def result(self) -> SearchResult:
        """True if no property is broken. An unexplored state, or a step never taken, makes it False."""
        verdicts = {claim.verdict for claim in self.claims}
        if self.broken or "breaks" in verdicts:
            return "breaks"
        if not self.complete:
            return "unfinished"
        if self.never:
            return "vacuous"
        return "undecided" if "undecided" in verdicts else "holds"


def explore(
    spec: Spec,
    bound: Bound,
    *,
    profile: str | None = None,
    limit: int = STATES,
    progress: OnProgress | None = None,
    how: How = "auto",
    compiling: OnCompile | None = None,
    symmetry: bool = False,
) -> Exploration:
    """Explore every state within `bound`; with the deviations of `profile`, if one is named.

    With `symmetry`, states that differ only in the numbers of interchangeable things are explored once, by the plain
    functions. Raises NotSymmetric.

    With deviations, only the weak invariants and the weak step properties are checked: after a deviation, the design's
    own steps need not keep the others either. `how`: what cannot be compiled is plain, whatever is asked for.
    Raises ForeignWords, NoBound.
    """
    checked(spec)
    began = time.perf_counter()
    search = _Search(spec, bound, profile, limit)
    folded = folding(spec, bound) if symmetry else None
    if folded:
        search.fold(folded.key)
        how = "plain"
    broken = _searched(search, how, progress, compiling)
    decides = search.complete and not (broken or profile)
    return Exploration(
        spec=spec,
        bound=bound,
        profile=profile,
        graph=search.graph,
        accepted=search.accepted(),
        refused=search.refusals(),
        broken=broken,
        complete=search.complete,
        seconds=time.perf_counter() - began,
        native=search.found is not None,
        not_native=search.not_native,
        folding=folded,
        claims=judged(spec, bound, search.graph, folded=folded is not None) if decides else (),
    )


class _TakesLong(Exception):  # noqa: N818 - no error.
    """More calls were tried than patience allows."""


def _searched(
    search: _Search, how: How, progress: OnProgress | None, compiling: OnCompile | None
) -> BrokenProperty | None:
    """Search by plain functions, or by native code where that is wanted, or pays."""
    if how == "plain":
        return search.run(progress)
    try:
        if how == "auto":
            return search.run(progress, SHORT)
    except _TakesLong:
        pass
    try:
        native = search.native()
        if how == "auto" and not native.is_compiled:
            with suppress(_TakesLong):
                return search.run(progress, PATIENCE)
        if compiling and not native.is_compiled:
            compiling(search.spec.name)
        return search.run_natively(native, progress)
    except NotCompilable as reason:
        search.not_native = str(reason)
        return search.run(progress)


class _Search:
    """One search in progress."""

    def __init__(self, spec: Spec, bound: Bound, profile: str | None, limit: int) -> None:
        self.spec = spec
        self.bound = bound
        self.limit = limit
        self.complete = False
        self.graph = StateGraph()
        self.found: NativeFound | None = None  # by native code
        self.not_native = ""  # why there is no native code
        self.recounted = False  # whether plain functions counted what the last state refused
        self.numbers: dict[Any, int] = {}  # the number of every state that was met, by its contents
        self.read = _contents(spec.initial)
        self.starts = list({self.read(state): state for state in initial_states(bound, spec)}.values())
        self.refused: dict[str, Counter[str]] = defaultdict(Counter)
        self.stand_ins = {name: spec.stand_ins(name, profile) if profile else () for name in spec.actions}
        self.moves = [
            (
                action,
                [(Call(name, args), args) for args in arguments(bound, spec, name)],
                self.refused[name],
                self.stand_ins[name],
            )
            for name, action in spec.actions.items()
        ]
        weak = any(self.stand_ins.values())
        self.invariants = self.universal(spec.invariants(weak=weak), 1)
        self.step_properties = self.universal(spec.step_properties(weak=weak), 2)
        self.at_rest = () if weak else spec.at_rest

    def fold(self, read: Callable[[State], Hashable]) -> None:
        """Let states be one for which `read` gives the same."""
        self.read = read
        self.starts = list({read(state): state for state in reversed(self.starts)}.values())[::-1]

    def universal(self, properties: Sequence[Callable[..., bool]], states: int) -> Properties:
        """Properties of so many states, each with the numbers that it is checked for."""
        return [(holds, universal(self.bound, self.spec, _universal(holds, states))) for holds in properties]

    def run_natively(self, native: NativeSearch, progress: OnProgress | None) -> BrokenProperty | None:
        """Run by native code; the plain functions confirm what is broken. Raises NotCompilable."""
        if any(self.judge(self.invariants, (state,), None, 0) for state in self.starts):
            raise NotCompilable("the search ends where it begins")
        found = native.run(self.limit, progress)
        graph, end = found.graph(), found.ended
        broken = self._broken_by_python(graph, end) if end.status in {BROKEN_STATE, BROKEN_STEP} else None
        self.found, self.graph, self.complete = found, graph, end.status == DONE
        return self.come_to_rest() if self.complete else broken

    def _broken_by_python(self, graph: StateGraph, end: SearchEnd) -> BrokenProperty:
        """The broken property, confirmed by the plain functions. Raises NotCompilable if they disagree."""
        self.graph, kept = graph, self.graph
        before, after, origin = graph.states[end.source], graph.states[end.target], graph.met[end.target]
        if end.status == BROKEN_STATE:
            broken = self.judge(self.invariants, (after,), origin, end.target)
        else:
            origin = end.source, graph.calls[-1]
            broken = self.judge(self.step_properties, (before, after), origin, end.target)
        if broken is None:
            self.graph = kept
            raise NotCompilable("native code calls broken what the plain functions do not")
        if origin:
            self.recount(before, origin[1])
        return broken

    def recount(self, before: State, last: Call) -> None:
        """Count what steps refuse in a state, up to a call: with it native code stopped, and counted nothing there."""
        self.recounted = True
        for needs in self.refused.values():
            needs.clear()
        for action, calls, needs, _ in self.moves:
            for call, args in calls:
                try:
                    action(before, *args)
                except Refused as refusal:
                    needs[refusal.rule] += 1
                    self.stand_in(before, call)
                if call[:2] == last[:2]:
                    return

    def native(self) -> NativeSearch:
        """The same as native code. Raises NotCompilable."""
        spec = self.spec
        allowed = [any(d in stand_ins for stand_ins in self.stand_ins.values()) for d in spec.deviations]
        asked = [
            [(holds, _universal(holds, states), rows) for holds, rows in properties]
            for properties, states in ((self.invariants, 1), (self.step_properties, 2))
        ]
        calls = {
            name: [args for _, args in calls] for name, (_, calls, _, _) in zip(spec.actions, self.moves, strict=True)
        }
        return NativeSearch(spec, self.bound, allowed, SearchTask(self.starts, calls, *asked))

    def refusals(self) -> dict[tuple[str, str], int]:
        """The number of refusals of each action or deviation, by rule."""
        if self.found is not None:
            return self.found.refusals() + (self.counted() if self.recounted else Counter())
        return self.counted()

    def counted(self) -> Counter[tuple[str, str]]:
        """The number of refusals by plain functions."""
        return Counter({(step, rule): count for step, needs in self.refused.items() for rule, count in needs.items()})

    def accepted(self) -> dict[str, int]:
        """The number of times that each action, and each deviation that stands in for one, was taken."""
        if self.found is not None:
            return self.found.accepted()
        taken = Counter(call.deviation or call.action for call in self.graph.calls)
        deviations = (d.step.__name__ for stand_ins in self.stand_ins.values() for d in stand_ins)
        return {name: taken[name] for name in (*self.spec.actions, *deviations)}

    def run(self, progress: OnProgress | None, patience: int | None = None) -> BrokenProperty | None:
        """Take every step from every state, in the order in which states were met; None if nothing is broken.

        Raises _TakesLong after so many calls; called again, it continues.
        """
        graph = self.graph
        calls = sum(len(calls) for _, calls, _, _ in self.moves)
        for state in () if graph.states else self.starts:
            broken = self.meet(state, self.read(state), None)
            if broken:
                return broken
        while graph.explored < len(graph.states):
            if len(graph.states) > self.limit:
                return None
            if progress and not graph.explored % PROGRESS_EVERY:
                progress(graph.explored, len(graph.states))
            if patience is not None and graph.explored * calls > patience:
                raise _TakesLong
            if graph.explored not in graph.beyond:
                broken = self.leave(graph.explored)
                if broken:
                    return broken
            graph.starts.append(len(graph.targets))
        self.complete = True
        return self.come_to_rest()

    def come_to_rest(self) -> BrokenProperty | None:
        """The broken property of rest in states that are never left again: work is left there."""
        graph = self.graph
        for states in graph.terminal if self.at_rest else ():
            unrest = [self.judge_at_rest(n) for n in states]
            if all(unrest):
                return unrest[0]
        return None

    def judge_at_rest(self, number: int) -> BrokenProperty | None:
        """The first property at rest that a state breaks, for any number: a bound says nothing of them."""
        state, origin = self.graph.states[number], self.graph.met[number]
        for holds in self.at_rest:
            if (found := counterexample(holds, state)) is not None:
                return self.broken(holds, found, origin, number, states=1)
        return None

    def leave(self, source: int) -> BrokenProperty | None:
        """Try every step in a state. Most are refused: this loop is what exploration costs."""
        before = self.graph.states[source]
        read, number = self.read, self.numbers.get
        add_target, add_call = self.graph.targets.append, self.graph.calls.append
        judged: set[int] = set()
        for action, calls, needs, deviations in self.moves:
            for offered, args in calls:
                call = offered
                try:
                    after = action(before, *args)
                except Refused as refusal:
                    needs[refusal.rule] += 1
                    stood_in = self.stand_in(before, call) if deviations else None
                    if stood_in is None:
                        continue
                    call, after = stood_in
                key = read(after)
                target = number(key)
                if target is None:
                    target = len(self.graph.states)
                    broken = self.meet(after, key, (source, call))
                    if broken:
                        return broken
                add_target(target)
                add_call(call)
                if target not in judged:
                    judged.add(target)
                    broken = self.judge(self.step_properties, (before, after), (source, call), target)
                    if broken:
                        return broken
        return None

    def stand_in(self, before: State, call: Call) -> tuple[Call, State] | None:
        """The deviation that is taken in place of a refused action, and where it leads."""
        for deviation in self.stand_ins[call.action]:
            try:
                after = deviation.step(before, *call.args)
            except Refused as refusal:
                self.refused[deviation.step.__name__][refusal.rule] += 1
            else:
                return call._replace(deviation=deviation.step.__name__), after
        return None

    def meet(self, state: State, key: object, origin: tuple[int, Call] | None) -> BrokenProperty | None:
        """Number a new state, and check it against the invariants."""
        graph = self.graph
        number = self.numbers[key] = len(graph.states)
        graph.states.append(state)
        graph.met.append(origin)
        if not self.bound.within(state):
            graph.beyond.add(number)
        return self.judge(self.invariants, (state,), origin, number)

    def judge(
        self, properties: Properties, states: tuple[State, ...], origin: tuple[int, Call] | None, target: int
    ) -> BrokenProperty | None:
        """The first broken property of `states`, the last of which is `target`, where `origin` led."""
        for holds, witnesses in properties:
            if not all(starmap(partial(holds, *states), witnesses)):
                witness = next(numbers for numbers in witnesses if not holds(*states, *numbers))
                named = dict(zip(_universal(holds, len(states)), witness, strict=True))
                return self.broken(holds, named, origin, target, states=len(states))
        return None

    def broken(
        self,
        holds: Callable[..., bool],
        witness: Mapping[str, int],
        origin: tuple[int, Call] | None,
        target: int,
        *,
        states: int,
    ) -> BrokenProperty:
        """A property that is false for some numbers, in a state where `origin` led."""
        before = self.graph.way(origin[0]) if origin else ()
        return BrokenProperty(
            holds=holds,
            sentence=holds.__name__,
            otherwise=(holds.__doc__ or "").strip(),
            witness=witness,
            path=(*self.graph.path(before), origin[1]) if origin else (),
            way=(*before, target),
            states=states,
        )


def _universal(holds: Callable[..., bool], states: int) -> tuple[str, ...]:
    """The universal parameters of a property: those after the states."""
    return tuple(signature(holds).parameters)[states:]


def _contents(state: State) -> Callable[[State], Hashable]:
    """A function that reads a state's fields as one value: equal for equal states only, and hashed in C."""
    maps = [f.name for f in fields(state) if isinstance(getattr(state, f.name), Map)]
    scalars = [f.name for f in fields(state) if f.name not in maps]
    return attrgetter(*scalars, *(f"{name}.{part}" for name in maps for part in ("entries", "default")))
