"""Walks at random through the states of a spec, where there are too many to explore them all.

A walk takes steps that are chosen at random, with arguments from the bound, until it leaves the bound, or finds nothing
more to do, or is long enough. Each walk leaves out some of the steps, others each time: so one that ends all, such as
an abort, does not end every walk (Holzmann's swarms). The same seed walks the same way. What a walk finds broken is
shortened: calls are left out as long as the rest still breaks the same property. That nothing is broken proves nothing;
the coverage says how much was tried.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from gapless.properties.exploration.bounds import Bound, initial_states, numbers_of, universal
from gapless.properties.exploration.graph import Call
from gapless.properties.exploration.search import BrokenProperty
from gapless.spec.catalog import Spec, State, needs
from gapless.spec.language import APPLIES, ASSUMED, Refused

LENGTH = 200  # steps of a walk
KEPT = 2 / 3  # of the steps of a spec, those that one walk takes
TRIES = 200  # calls in a row that are refused, or change nothing, after which a walk ends


@dataclass
class Coverage:
    """The coverage of some runs: how often each step was taken, and refused by which rule."""

    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)

    def never_taken(self, spec: Spec) -> list[str]:
        """The steps that were never taken."""
        return [name for name in spec.actions if not self.accepted[name]]

    def never_refused(self, spec: Spec) -> list[tuple[str, str]]:
        """The steps and rules of which no run shows a refusal."""
        return [one for one in rules_of(spec) if not self.refused[one]]


@dataclass(frozen=True)
class BrokenRun:
    """A run at whose end a property is false, and its states: one more than it has calls."""

    broken: BrokenProperty
    states: tuple[State, ...]


@dataclass(frozen=True)
class Walks:
    """The result of some walks."""

    spec: Spec
    bound: Bound
    seed: int
    count: int
    steps: int
    coverage: Coverage
    met: int  # different states
    broken: BrokenRun | None


def rules_of(spec: Spec) -> list[tuple[str, str]]:
    """Each step with each rule that it needs; what it applies to and what is assumed are no rules."""
    return [
        (name, need.rule)
        for name, step in spec.actions.items()
        for need in needs(step)
        if need.rule not in (APPLIES, ASSUMED)
    ]


class Walker:
    """Runs through the states of a spec within a bound, step by step."""

    def __init__(self, spec: Spec, bound: Bound) -> None:
        self.spec, self.bound = spec, bound
        self.numbers: dict[tuple[str, str], Sequence[int]] = {}
        self.starts = list(initial_states(bound, spec))
        self.alone = [(holds, self._rows(holds, 1)) for holds in spec.invariants()]
        self.pairs = [(holds, self._rows(holds, 2)) for holds in spec.step_properties()]

    def _tried(self, step: str, argument: str, given: Mapping[str, int]) -> Sequence[int]:
        """The numbers of an argument, behind those that were chosen before it. Raises NoBound."""
        if callable(self.bound.numbers.get(f"{step}.{argument}", self.bound.numbers.get(argument))):
            return numbers_of(self.bound, self.spec, argument, step, given)
        if (step, argument) not in self.numbers:
            self.numbers[step, argument] = numbers_of(self.bound, self.spec, argument, step)
        return self.numbers[step, argument]

    def _rows(self, holds: Callable[..., bool], states: int) -> list[tuple[int, ...]]:
        return universal(self.bound, self.spec, tuple(signature(holds).parameters)[states:])

    def call(self, steps: Sequence[str], chance: random.Random, coverage: Coverage) -> Call:
        """A call that is chosen at random: of two steps, the one that was taken less often."""
        name = min(chance.choice(steps), chance.choice(steps), key=coverage.accepted.__getitem__)
        given: dict[str, int] = {}
        for argument in self.spec.parameters[name]:
            given[argument] = chance.choice(self._tried(name, argument, given))
        return Call(name, tuple(given.values()))

    def tried(self, state: State, call: Call, coverage: Coverage) -> State | None:
        """The state after a call; None where it is refused."""
        try:
            after = self.spec.actions[call.action](state, *call.args)
        except Refused as refusal:
            coverage.refused[call.action, refusal.rule] += 1
            return None
        coverage.accepted[call.action] += 1
        return after

    def broken(self, states: Sequence[State]) -> tuple[Callable[..., bool], tuple[int, ...], int] | None:
        """The first property that is false of the last state, or of the step there."""
        for properties, count in ((self.alone, 1), (self.pairs, 2)):
            seen = states[-count:]
            for holds, rows in properties if len(seen) == count else ():
                for row in rows:
                    if not holds(*seen, *row):
                        return holds, row, count
        return None

    def walk(
        self, state: State, chance: random.Random, coverage: Coverage, length: int, among: Sequence[str] = ()
    ) -> Iterator[tuple[Call, State]]:
        """The steps of one walk from a state, chosen among those of the spec, or fewer."""
        idle = 0
        every = list(among or self.spec.actions)
        steps = [name for name in every if chance.random() < KEPT] or every
        while length and idle < TRIES and self.bound.within(state):
            call = self.call(steps, chance, coverage)
            after = self.tried(state, call, coverage)
            if after is None or after == state:
                idle += 1
                continue
            state, idle, length = after, 0, length - 1
            yield call, state

    def shortened(self, state: State, calls: Sequence[Call], holds: Callable[..., bool]) -> BrokenRun:
        """The run from a state without calls that do not matter."""
        run = self._run(state, calls, holds)
        assert run is not None  # noqa: S101 - it was broken just now
        at = len(run.broken.path) - 1
        while at >= 0:
            fewer = self._run(state, [*run.broken.path[:at], *run.broken.path[at + 1 :]], holds)
            if fewer is not None:
                run, at = fewer, min(at, len(fewer.broken.path))
            at -= 1
        return run

    def _run(self, state: State, calls: Sequence[Call], holds: Callable[..., bool]) -> BrokenRun | None:
        """The run up to where the property is false; None where it never is, or a call is refused."""
        states, taken, unseen = [state], list[Call](), Coverage()
        for call in [None, *calls]:
            if call is not None:
                after = self.tried(states[-1], call, unseen)
                if after is None:
                    return None
                states.append(after)
                taken.append(call)
            found = self.broken(states)
            if found is not None:
                return self._broken_run(*found, taken, states) if found[0] is holds else None
        return None

    @staticmethod
    def _broken_run(
        holds: Callable[..., bool], row: tuple[int, ...], count: int, taken: Sequence[Call], states: Sequence[State]
    ) -> BrokenRun:
        names = tuple(signature(holds).parameters)[count:]
        broken = BrokenProperty(
            holds=holds,
            sentence=holds.__name__,
            otherwise=(holds.__doc__ or "").strip(),
            witness=dict(zip(names, row, strict=True)),
            path=tuple(taken),
            way=tuple(range(len(states))),
            states=count,
        )
        return BrokenRun(broken, tuple(states))


def walks(spec: Spec, bound: Bound, count: int, seed: int = 0, length: int = LENGTH) -> Walks:
    """Walk so many times; of the runs that break a property, the shortest is kept. Raises NoBound."""
    walker, coverage = Walker(spec, bound), Coverage()
    met: set[Any] = set()
    shortest: BrokenRun | None = None
    steps = 0
    for number in range(count):
        chance = random.Random(f"{seed} {number}")  # noqa: S311 - no secret.
        states, calls = [chance.choice(walker.starts)], list[Call]()
        met.add(states[0])
        for call, state in walker.walk(states[0], chance, coverage, length):
            calls.append(call)
            states.append(state)
            met.add(state)
            steps += 1
            found = walker.broken(states)
            if found is not None:
                run = walker.shortened(states[0], calls, found[0])
                shortest = min((one for one in (shortest, run) if one), key=lambda one: len(one.broken.path))
                break
    return Walks(spec, bound, seed, count, steps, coverage, len(met), shortest)
