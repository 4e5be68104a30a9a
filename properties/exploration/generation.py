"""Few short runs of a spec that together take every step, and meet every rule: one that accepts, and one that refuses.

The states are explored from the initial one, breadth first, until all is covered or there are too many; what is not
covered by then is looked for on walks at random, and then from the states that `INITIALS` make, where a recording
cannot begin. A run leads to a step that is wanted by a shortest path. On its way, each state is asked what it refuses:
so one run covers much. Further runs at random come to rules in other states than the nearest ones.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from gapless.properties.exploration.bounds import Bound, arguments, initial_states
from gapless.properties.exploration.graph import Call
from gapless.properties.exploration.walks import Coverage, Walker, rules_of
from gapless.spec import language
from gapless.spec.catalog import END, Spec, State, needs
from gapless.spec.language import APPLIES, ASSUMED, Refused

STATES = 20_000  # that are explored
WALKS = 300  # for what is not covered then
LENGTH = 60  # steps of a walk
REFUSALS = 2  # at most, among the steps of a run at random, for each that is taken
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
class GeneratedRun:
    """A run: the state in which it begins, and its steps."""

    start: State
    steps: tuple[RunStep, ...]


@dataclass(frozen=True)
class Suite:
    """The runs of a spec, and what they do not cover."""

    spec: Spec
    bound: Bound
    seed: int
    runs: tuple[GeneratedRun, ...]
    wanted: frozenset[Target]
    missing: tuple[Target, ...]
    options: str = ""  # of the command, besides the seed

    @property
    def steps(self) -> int:
        """The number of all steps, accepted and refused."""
        return sum(len(run.steps) for run in self.runs)

    @property
    def recorded(self) -> tuple[GeneratedRun, ...]:
        """The runs that begin where a recording does, at INITIAL; the others begin in states that INITIALS make."""
        return tuple(run for run in self.runs if run.start == self.spec.initial)

    @property
    def covered(self) -> float:
        """The share of targets that the runs cover."""
        return 1 - len(self.missing) / len(self.wanted) if self.wanted else 1.0


@dataclass
class _Found:
    """A way to cover a target: where it begins, the calls that lead to a state, and the one that is wanted there."""

    start: State
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
    steps: Sequence[str]
    calls: list[Call] = field(default_factory=list)
    found: dict[Target, _Found] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.calls = [Call(name, args) for name in self.steps for args in arguments(self.bound, self.spec, name)]
        self.opening = [call for call in self.calls if call.action == OPEN]
        self.wanted = frozenset(one for one in targets_of(self.spec, self.cover) if one.step in self.steps)
        self.walker = Walker(self.spec, self.bound)

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

    @property
    def is_done(self) -> bool:
        """True if every target is found."""
        return len(self.found) == len(self.wanted)

    def search(self, starts: Sequence[State], states: int, seed: int) -> None:
        """Look for targets from some states: in all that can be reached, or where these are too many on walks, too."""
        if not self.explore(starts, states) or self.bound.worth:  # walks try what is not worth trying everywhere
            self.walk(starts, seed)

    def explore(self, starts: Iterable[State], states: int) -> bool:
        """Look at states, breadth first, until every target is found or there are too many; True if that were all."""
        met: dict[State, tuple[State, Call] | None] = dict.fromkeys(starts)
        waiting = deque(met)
        while waiting and len(met) <= states and not self.is_done:
            state = waiting.popleft()
            for call in self.offered(state) if self.bound.within(state) else ():
                step, covers = self.tried(state, call)
                for target in covers:
                    if target not in self.found and target in self.wanted:
                        self.found[target] = _Found(*_way(met, state), call)
                if not step.refused and step.after not in met:
                    met[step.after] = state, call
                    waiting.append(step.after)
        return not waiting

    def walk(self, starts: Sequence[State], seed: int) -> None:
        """Look for what is not found yet on walks at random."""
        for number in range(WALKS):
            if self.is_done:
                return
            chance = random.Random(f"{seed} {number}")  # noqa: S311 - no secret.
            start = state = chance.choice(starts)
            way = list[Call]()
            for call, after in self.walked(start, chance):
                further = [self.walker.call(self.steps, chance, Coverage())] if way or not self.opening else []
                for tried in (call, *further):
                    for target in self.tried(state, tried)[1]:
                        if target not in self.found and target in self.wanted:
                            self.found[target] = _Found(start, tuple(way), tried)
                way.append(call)
                state = after

    def walked(self, state: State, chance: random.Random) -> Iterator[tuple[Call, State]]:
        """The steps of a walk at random: `open` first, where a spec has that step."""
        if state == self.spec.initial and self.opening:
            opened = [step for step in (self.tried(state, call)[0] for call in self.opening) if not step.refused]
            if not opened:
                return
            call, _, state = chance.choice(opened)
            yield call, state
        yield from self.walker.walk(state, chance, Coverage(), LENGTH, self.steps)

    def at_random(self, chance: random.Random) -> GeneratedRun:
        """A run at random from the initial state, with calls among its steps that are refused."""
        state, steps = self.spec.initial, list[RunStep]()
        for call, after in self.walked(state, chance):
            if steps or not self.opening:
                tried = (self.walker.call(self.steps, chance, Coverage()) for _ in range(REFUSALS))
                tries = [self.tried(state, one)[0] for one in tried]
                steps += [step for step in tries if step.refused not in ("", APPLIES, ASSUMED)]
            steps.append(RunStep(call, "", after))
            state = after
        return GeneratedRun(self.spec.initial, tuple(steps))

    def runs(self) -> Iterator[GeneratedRun]:
        """The runs, the one with the longest way first; each covers what the ones before it do not."""
        open_ = set(self.found)
        for target in sorted(self.found, key=lambda one: (-len(self.found[one].way), one)):
            if target in open_:
                yield GeneratedRun(self.found[target].start, tuple(self.run(self.found[target], open_)))

    def run(self, found: _Found, open_: set[Target]) -> Iterator[RunStep]:
        """The steps to a target, among them those that are refused on the way and cover something."""
        state = found.start
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


def _way(met: dict[State, tuple[State, Call] | None], state: State) -> tuple[State, tuple[Call, ...]]:
    """The beginning of the path by which a state was met, and the calls along it."""
    way = list[Call]()
    while (origin := met[state]) is not None:
        state = origin[0]
        way.append(origin[1])
    return state, tuple(reversed(way))


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


def generate(
    spec: Spec,
    bound: Bound,
    *,
    seed: int = 0,
    states: int = STATES,
    cover: str = "rules",
    walks: int = 0,
    without: Sequence[str] = (),
) -> Suite:
    """Make runs that cover all that a spec can do within a bound, and some at random. Raises NoBound.

    `without`: steps that the runs leave out.
    """
    generator = _Generator(spec, bound, cover, [name for name in spec.actions if name not in without])
    generator.search([spec.initial], states, seed)
    if spec.starts and not generator.is_done:
        generator.search(list(islice(initial_states(bound, spec), states)), states, seed)
    chances = (random.Random(f"{seed} run {number}") for number in range(walks))  # noqa: S311 - no secret.
    runs = (*generator.runs(), *map(generator.at_random, chances))
    options = "".join(f" --without {name}" for name in without) + f" --walks {walks}" * bool(walks)
    missing = sorted(generator.wanted - generator.found.keys())
    return Suite(spec, bound, seed, tuple(run for run in runs if run.steps), generator.wanted, tuple(missing), options)
