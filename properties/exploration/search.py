"""Every state of a spec within a bound, breadth first, by calling the plain functions; nothing is sampled.

Every state is held against the invariants when it is first met, every pair of states that a step joins against the step
properties. As the search is by breadth, the first thing found broken has a shortest path, and the search ends there.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from inspect import signature
from itertools import starmap
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from gapless.properties.exploration.bounds import Bound
from gapless.properties.exploration.graph import StateGraph
from gapless.spec.catalog import Spec, State
from gapless.spec.language import Map, Refused

Result = Literal["holds", "breaks", "unfinished", "vacuous"]
Sentences = Sequence[tuple[Callable[..., bool], Sequence[tuple[int, ...]]]]
"""Invariants or step properties, each with the numbers that it is tried with."""

Progress = Callable[[int, int], None]
"""Told now and then how many states are explored, and how many are known."""

PROGRESS_EVERY = 500  # states
STATES = 1_000_000  # that are kept at most, unless the user allows more


class Call(NamedTuple):
    """A step that was tried: the action and its arguments, and the deviation that was taken in its place, if any."""

    action: str
    args: tuple[int, ...]
    deviation: str | None = None


@dataclass(frozen=True)
class Broken:
    """What does not hold: an invariant in the state where the path ends, or a step property of its last step."""

    sentence: str  # the name of the invariant or step property
    otherwise: str
    witness: Mapping[str, int]  # the numbers for which it does not hold
    path: tuple[Call, ...]
    way: tuple[int, ...]  # the states along the path by number, from the one where exploration began


@dataclass(frozen=True)
class Explored:
    """All that was found out about a spec within a bound."""

    spec: Spec
    bound: Bound
    profile: str | None
    graph: StateGraph[State, Call]
    accepted: Mapping[str, int]  # how often each action and deviation was taken
    refused: Mapping[tuple[str, str], int]  # how often each (action or deviation, rule) refused
    broken: Broken | None
    complete: bool  # whether the bound was reached
    seconds: float

    @property
    def tried(self) -> int:
        """Calls of a step, each of which was accepted or refused."""
        return sum(self.accepted.values()) + sum(self.refused.values())

    @property
    def states(self) -> int:
        """States within the bound."""
        return len(self.graph.states) - len(self.graph.beyond)

    @cached_property
    def transitions(self) -> int:
        """Accepted steps between states within the bound."""
        return sum(target not in self.graph.beyond for target in self.graph.targets)

    @cached_property
    def never(self) -> tuple[str, ...]:
        """Steps that were never taken: what is said of them is said of nothing."""
        return tuple(name for name, count in self.accepted.items() if not count)

    @property
    def result(self) -> Result:
        """Whether all held. What was not explored, or never happened, does not count as holding."""
        if self.broken:
            return "breaks"
        if not self.complete:
            return "unfinished"
        return "vacuous" if self.never else "holds"


def explore(
    spec: Spec,
    bound: Bound,
    *,
    profile: str | None = None,
    limit: int = STATES,
    progress: Progress | None = None,
) -> Explored:
    """Every state within `bound`; with the deviations of `profile`, if one is named.

    Deviations leave only the weak invariants and the weak step properties: after one of them, the design's own steps
    need not keep the others either.
    """
    began = time.perf_counter()
    search = _Search(spec, bound, profile, limit)
    broken = search.run(progress)
    return Explored(
        spec=spec,
        bound=bound,
        profile=profile,
        graph=search.graph,
        accepted=search.accepted(),
        refused={(step, rule): n for step, needs in search.refused.items() for rule, n in needs.items()},
        broken=broken,
        complete=search.complete,
        seconds=time.perf_counter() - began,
    )


class _Search:
    """One search in progress."""

    def __init__(self, spec: Spec, bound: Bound, profile: str | None, limit: int) -> None:
        self.spec = spec
        self.bound = bound
        self.limit = limit
        self.complete = False
        self.graph: StateGraph[State, Call] = StateGraph()
        self.known: dict[Any, int] = {}  # the number of every state that was met, by what it holds
        self.read = _whole(bound.initial[0] if bound.initial else spec.initial)
        self.refused: dict[str, Counter[str]] = defaultdict(Counter)
        self.stand_ins = {name: spec.stand_ins(name, profile) if profile else () for name in spec.actions}
        self.moves = [
            (
                action,
                [(Call(name, args), args) for args in bound.arguments(spec, name)],
                self.refused[name],
                self.stand_ins[name],
            )
            for name, action in spec.actions.items()
        ]
        weak = any(self.stand_ins.values())
        self.invariants = self.universal(spec.invariants(weak=weak), 1)
        self.step_properties = self.universal(spec.step_properties(weak=weak), 2)

    def universal(self, sentences: Sequence[Callable[..., bool]], states: int) -> Sentences:
        """Sentences about so many states, each with the numbers that it is tried with."""
        return [(holds, self.bound.universal(self.spec, _asked(holds, states))) for holds in sentences]

    def accepted(self) -> dict[str, int]:
        """How often each action was taken, and each deviation that may stand in for one."""
        taken = Counter(call.deviation or call.action for call in self.graph.calls)
        deviations = (d.step.__name__ for stand_ins in self.stand_ins.values() for d in stand_ins)
        return {name: taken[name] for name in (*self.spec.actions, *deviations)}

    def run(self, progress: Progress | None) -> Broken | None:
        """Leave every state in every way, in the order in which they were met; None if nothing was found broken."""
        graph = self.graph
        for held, state in {self.read(state): state for state in self.bound.initial or (self.spec.initial,)}.items():
            broken = self.meet(state, held, None)
            if broken:
                return broken
        while graph.explored < len(graph.states):
            if len(graph.states) > self.limit:
                return None
            if progress and not graph.explored % PROGRESS_EVERY:
                progress(graph.explored, len(graph.states))
            if graph.explored not in graph.beyond:
                broken = self.leave(graph.explored)
                if broken:
                    return broken
            graph.starts.append(len(graph.targets))
        self.complete = True
        return None

    def leave(self, source: int) -> Broken | None:
        """Try every step in a state. Most are refused: what stands in this loop is what exploration costs."""
        before = self.graph.states[source]
        read, number = self.read, self.known.get
        lead, by = self.graph.targets.append, self.graph.calls.append
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
                held = read(after)
                target = number(held)
                if target is None:
                    target = len(self.graph.states)
                    broken = self.meet(after, held, (source, call))
                    if broken:
                        return broken
                lead(target)
                by(call)
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

    def meet(self, state: State, held: object, origin: tuple[int, Call] | None) -> Broken | None:
        """Number a state that was not known, and hold it against the invariants."""
        graph = self.graph
        number = self.known[held] = len(graph.states)
        graph.states.append(state)
        graph.met.append(origin)
        if not self.bound.within(state):
            graph.beyond.add(number)
        return self.judge(self.invariants, (state,), origin, number)

    def judge(
        self, sentences: Sentences, states: tuple[State, ...], origin: tuple[int, Call] | None, target: int
    ) -> Broken | None:
        """The first sentence that is not true of `states`, the last of which is `target`, where `origin` led."""
        for holds, witnesses in sentences:
            if not all(starmap(partial(holds, *states), witnesses)):
                witness = next(numbers for numbers in witnesses if not holds(*states, *numbers))
                before = self.graph.way(origin[0]) if origin else ()
                return Broken(
                    sentence=holds.__name__,
                    otherwise=(holds.__doc__ or "").strip(),
                    witness=dict(zip(_asked(holds, len(states)), witness, strict=True)),
                    path=(*self.graph.path(before), origin[1]) if origin else (),
                    way=(*before, target),
                )
        return None


def _asked(holds: Callable[..., bool], states: int) -> tuple[str, ...]:
    """The parameters after the states: it holds for all of them."""
    return tuple(signature(holds).parameters)[states:]


def _whole(state: State) -> Callable[[State], Hashable]:
    """Reads all that a state holds as one value, equal for equal states only, and hashed without a call back here."""
    maps = [f.name for f in fields(state) if isinstance(getattr(state, f.name), Map)]
    scalars = [f.name for f in fields(state) if f.name not in maps]
    return attrgetter(*scalars, *(f"{name}.{part}" for name in maps for part in ("entries", "default")))
