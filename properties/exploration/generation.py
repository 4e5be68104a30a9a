"""Few short runs of a spec that together take every step, and meet every rule: one that accepts, and one that refuses.

The states are explored from the initial one, breadth first, until all is covered or there are too many; what is not
covered by then is looked for on walks at random. A run leads to a step that is wanted by a shortest path. On its way,
each state is asked what it refuses: so one run covers much.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from gapless.properties.exploration.bounds import Bound, arguments
from gapless.properties.exploration.graph import Call
from gapless.properties.exploration.walks import Coverage, Walker, rules_of
from gapless.spec import language
from gapless.spec.catalog import END, Spec, State, needs
from gapless.spec.language import APPLIES, ASSUMED, Refused

STATES = 20_000  # that are explored
WALKS = 300  # for what is not covered then
LENGTH = 60  # steps of a walk
OPEN = "open"
"""The step with which every trace of a broker begins: it says in which state, new or in the middle of its life."""


class Target(NamedTuple):
    """One thing to cover: a step, or a rule of it, that accepts or refuses."""

    step: str
    rule: str  # empty for the step itself, which is taken
    outcome: str  # "ok" or "refused"

    def __str__(self) -> str:
        """The target in words."""
        return (
            f"{self.step}: {self.rule} {'accepts' if self.outcome == 'ok' else 'refuses'}" if self.rule else self.step
        )


class RunStep(NamedTuple):
    """A step of a run: the call, the rule that refuses it if one does, and the state behind it."""

    call: Call
    refused: str
    after: State


@dataclass(frozen=True)
class Suite:
    """The runs of a spec, and what they do not cover."""

    spec: Spec
    bound: Bound
    seed: int
    runs: tuple[tuple[RunStep, ...], ...]
    wanted: frozenset[Target]
    missing: tuple[Target, ...]

    @property
    def steps(self) -> int:
        """The number of all steps, accepted and refused."""
        return sum(map(len, self.runs))

    @property
    def covered(self) -> float:
        """The share of targets that the runs cover."""
        return 1 - len(self.missing) / len(self.wanted) if self.wanted else 1.0


@dataclass
class _Found:
    """A way to cover a target: the calls that lead to a state, and the one that is wanted there."""

    way: tuple[Call, ...]
    call: Call


COVERS = ("rules", "steps")


def targets_of(spec: Spec, cover: str = "rules") -> frozenset[Target]:
    """All that the runs of a spec shall cover: every step, and every rule if that is wanted."""
    taken = frozenset(Target(name, "", "ok") for name in spec.actions)
    if cover == "steps":
        return taken
    return frozenset(taken | {Target(*one, outcome) for one in rules_of(spec) for outcome in ("ok", "refused")})


@dataclass
class _Generator:
    """The search for runs."""

    spec: Spec
    bound: Bound
    cover: str
    calls: list[Call] = field(default_factory=list)
    found: dict[Target, _Found] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.calls = [Call(name, args) for name in self.spec.actions for args in arguments(self.bound, self.spec, name)]
        self.opening = [call for call in self.calls if call.action == OPEN]
        self.wanted = targets_of(self.spec, self.cover)

    def tried(self, state: State, call: Call) -> tuple[RunStep, list[Target]]:
        """A call in a state, and what it covers."""
        with _evaluated(self.spec) as rules:
            try:
                after = self.spec.actions[call.action](state, *call.args)
            except Refused as refusal:
                met = [Target(call.action, rule, "ok") for rule in rules if rule != refusal.rule]
                if refusal.rule in (APPLIES, ASSUMED):
                    return RunStep(call, refusal.rule, state), []
                return RunStep(call, refusal.rule, state), [*met, Target(call.action, refusal.rule, "refused")]
        if call.action == END:
            rules = [need.rule for need in needs(self.spec.actions[END])]
        taken = [Target(call.action, rule, "ok") for rule in rules]
        return RunStep(call, "", after), [Target(call.action, "", "ok"), *taken]

    def offered(self, state: State) -> Sequence[Call]:
        """The calls that are tried in a state: the first of a recording is `open`, where a spec has that step."""
        return self.opening if state == self.spec.initial and self.opening else self.calls

    def explore(self, states: int) -> None:
        """Look at states, breadth first, until every target is found or there are too many."""
        met: dict[State, tuple[State, Call] | None] = {self.spec.initial: None}
        waiting = deque([self.spec.initial])
        while waiting and len(met) <= states and len(self.found) < len(self.wanted):
            state = waiting.popleft()
            for call in self.offered(state) if self.bound.within(state) else ():
                step, covers = self.tried(state, call)
                for target in covers:
                    if target not in self.found and target in self.wanted:
                        self.found[target] = _Found(_way(met, state), call)
                if not step.refused and step.after not in met:
                    met[step.after] = state, call
                    waiting.append(step.after)

    def walk(self, seed: int) -> None:
        """Look for what is not found yet on walks at random."""
        walker = Walker(self.spec, self.bound)
        for number in range(WALKS):
            if len(self.found) == len(self.wanted):
                return
            chance = random.Random(f"{seed} {number}")  # noqa: S311 - no secret.
            way, state = list[Call](), self.spec.initial
            if self.opening:
                way.append(chance.choice(self.opening))
                opened = self.tried(state, way[0])[0]
                if opened.refused:
                    continue
                state = opened.after
            for call, after in walker.walk(state, chance, Coverage(), LENGTH):
                for tried in (call, walker.call(tuple(self.spec.actions), chance, Coverage())):
                    for target in self.tried(state, tried)[1]:
                        if target not in self.found and target in self.wanted:
                            self.found[target] = _Found(tuple(way), tried)
                way.append(call)
                state = after

    def runs(self) -> Iterator[tuple[RunStep, ...]]:
        """The runs, the one with the longest way first; each covers what the ones before it do not."""
        open_ = set(self.found)
        for target in sorted(self.found, key=lambda one: (-len(self.found[one].way), one)):
            if target in open_:
                yield tuple(self.run(self.found[target], open_))

    def run(self, found: _Found, open_: set[Target]) -> Iterator[RunStep]:
        """The steps to a target, among them those that are refused on the way and cover something."""
        state = self.spec.initial
        for call in [*found.way, found.call]:
            for step, covers in self.refused(state, open_):
                open_.difference_update(covers)
                yield step
            step, covers = self.tried(state, call)
            if not step.refused or not open_.isdisjoint(covers):
                open_.difference_update(covers)
                yield step
            state = step.after

    def refused(self, state: State, open_: set[Target]) -> Iterator[tuple[RunStep, list[Target]]]:
        """The calls that a state refuses by a rule of which no run shows that yet."""
        wanted = {target.step for target in open_ if target.outcome == "refused"}
        for call in self.offered(state) if wanted else ():
            if call.action in wanted:
                step, covers = self.tried(state, call)
                if step.refused and any(one.outcome == "refused" and one in open_ for one in covers):
                    yield step, covers


def _way(met: dict[State, tuple[State, Call] | None], state: State) -> tuple[Call, ...]:
    """The calls along the path by which a state was met."""
    way = list[Call]()
    while (origin := met[state]) is not None:
        state = origin[0]
        way.append(origin[1])
    return tuple(reversed(way))


@contextmanager
def _evaluated(spec: Spec) -> Iterator[list[str]]:
    """Within, the ids of the rules that steps ask, in their order."""
    asked = list[str]()

    def require(condition: bool, rule: str, *, because: str, otherwise: str) -> None:  # noqa: FBT001 - as the word
        asked.append(rule)
        language.require(condition, rule, because=because, otherwise=otherwise)

    modules = [vars(module) for module in spec.files]
    using = [names for names in modules if names.get("require") is language.require]
    try:
        for names in using:
            names["require"] = require
        yield asked
    finally:
        for names in using:
            names["require"] = language.require


def generate(spec: Spec, bound: Bound, *, seed: int = 0, states: int = STATES, cover: str = "rules") -> Suite:
    """Make runs that cover all that a spec can do within a bound. Raises NoBound."""
    generator = _Generator(spec, bound, cover)
    generator.explore(states)
    generator.walk(seed)
    runs = tuple(generator.runs())
    missing = sorted(generator.wanted - generator.found.keys())
    return Suite(spec, bound, seed, runs, generator.wanted, tuple(missing))
