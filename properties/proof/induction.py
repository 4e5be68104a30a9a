"""Proofs by induction: initial states satisfy every invariant, and every step keeps it, from any state.

What must be shown is a list of obligations, each a question to Z3 of which the answer must be *no*: is there a state
in which all invariants hold, and a step from it, after which this one does not? A state is any state: no reachability
is assumed, no bound, no depth. And the converse, so that nothing holds for want of cases: every step *can happen*, in
a state in which all invariants hold.

`unknown` is a failure. What Z3 finds against a claim, or for a step that can happen, is looked for again with small
numbers, and replayed by the plain functions before anybody sees it (`counterexamples.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations
from operator import methodcaller
from typing import Any, Literal

import z3

from gapless.properties.proof import symbolic
from gapless.properties.proof.symbolic import Quantification, State, Unknown, Way
from gapless.properties.proof.terms.boolean_terms import TRUE, all_of, any_of, negated
from gapless.properties.proof.terms.counts import are_counted, laws
from gapless.spec.catalog import Spec, assumed
from gapless.spec.language import waived

WORK = 20_000_000  # Z3's own measure of work that one obligation may cost: some seconds; all of ours cost far less

Predicate = Callable[..., Any]
Step = Callable[..., State]

CAN_HAPPEN = "can happen"
EXCLUSIVE = "at most one deviation accepts"
COVERED = "the ways cover every input, and no two overlap"
LOST = "an input takes no way through it, or two: what is proved of the ways is not proved of it"
INITIAL = "INITIAL"
ALWAYS = "ALWAYS"


@dataclass(frozen=True)
class Question:
    """A question to Z3: are all these terms satisfiable? And the terms by which an answer is read."""

    terms: tuple[Any, ...]
    before: State = None
    args: dict[str, Any] = field(default_factory=dict)
    free: dict[str, Unknown] = field(default_factory=dict)  # values of the property's universal parameters


@dataclass(frozen=True)
class _Read:
    """A cache of readings: the ways through each step from any state, its violations, and its properties."""

    before: State
    ways: dict[Step, tuple[dict[str, Any], list[Way]]] = field(default_factory=dict)
    broken: dict[tuple[Step, Predicate, int], Any] = field(default_factory=dict)
    formulas: dict[Predicate, Any] = field(default_factory=dict)


class Theory:
    """A spec as Z3 knows it: any state before a step, the invariants of it, and the ways through every step.

    With `weak`, the steps that a real broker takes count too, and `GIVEN_UP` holds no more. `reading` says
    how quantifiers are read; `dropped`, a step and a rule, that this step does not need it. What `shared` has read of
    steps and properties is not read again: another theory that differs in `weak` alone.
    """

    def __init__(
        self,
        spec: Spec,
        *,
        weak: bool = False,
        reading: Quantification | None = None,
        dropped: tuple[Step, str] | None = None,
        shared: Theory | None = None,
    ) -> None:
        self.spec = spec
        self.weak = weak
        self.reading = reading or Quantification()
        self.dropped = dropped
        self.read: _Read = shared.read if shared else _Read(symbolic.unknown_state(spec.initial))
        self.before = self.read.before
        self.invariants: tuple[Predicate, ...] = spec.invariants(weak=weak)
        self.step_properties: tuple[Predicate, ...] = spec.step_properties(weak=weak)

    @cached_property
    def known(self) -> tuple[Any, ...]:
        """That every invariant holds of the state before the step."""
        return _known(self.spec.initial, self.invariants, self.reading)

    def ways(self, step: Step) -> tuple[dict[str, Any], list[Way]]:
        """The arguments of a step, and every way through it."""
        if step not in self.read.ways:
            args = symbolic.unknown_arguments(step)
            need = frozenset({self.dropped[1]}) if self.dropped and self.dropped[0] is step else frozenset()
            token = waived.set(need)
            try:
                with symbolic.read(self.reading):
                    self.read.ways[step] = args, symbolic.ways(step, self.before, args)
            finally:
                waived.reset(token)
        return self.read.ways[step]

    def tried(self, step: Step) -> tuple[Any, ...]:
        """The condition of trying the step: for a deviation, that the action it stands in for refuses."""
        return tuple(
            negated(symbolic.taken(self.ways(deviation.instead_of)[1]))
            for deviation in self.spec.deviations
            if deviation.step is step
        )

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step that may be taken."""
        return self.spec.steps if self.weak else tuple(self.spec.actions.values())

    # -- what Z3 is asked ------------------------------------------------------------------------------------------

    def not_initially(self, holds: Predicate) -> Question:
        """A way in which the initial state does not satisfy an invariant."""
        initial = symbolic.symbolic(self.spec.initial)
        free = symbolic.unknown_arguments(holds, tag="some ")
        with symbolic.read(self.reading):
            return Question((negated(symbolic.formula(holds, initial, *free.values())),), initial, {}, free)

    def begun(self, start: Step) -> Question:
        """A way in which a function of INITIALS makes an initial state."""
        initial, args, found = self._starting(start)
        return Question((symbolic.taken(found),), initial, args)

    def wrongly_begun(self, start: Step, holds: Predicate) -> Question:
        """An initial state that a function of INITIALS makes, and that does not satisfy an invariant."""
        initial, args, found = self._starting(start)
        free = symbolic.unknown_arguments(holds, tag="some ")
        with symbolic.read(self.reading):
            broken = [
                all_of(way.walked, negated(symbolic.formula(holds, way.outcome, *free.values())))
                for way in found
                if way.accepted
            ]
        return Question((any_of(*broken),), initial, args, free)

    def uncovered_start(self, start: Step) -> Question:
        """Arguments for which no way through a function of INITIALS is walked, or two are."""
        _, args, found = self._starting(start)
        return Question((symbolic.uncovered([way.facts for way in found]),), args=args)

    def initial_states(self) -> Iterator[tuple[Any, State]]:
        """Every initial state, each behind what must be so for it."""
        yield TRUE, symbolic.symbolic(self.spec.initial)
        for start in self.spec.starts.values():
            yield from ((way.walked, way.outcome) for way in self._starting(start)[2] if way.accepted)

    def _starting(self, start: Step) -> tuple[State, dict[str, Any], list[Way]]:
        """The state that a function of INITIALS is called with, its arguments, and the ways through it."""
        initial = symbolic.symbolic(self.spec.initial)
        args = symbolic.unknown_arguments(start)
        with symbolic.read(self.reading):
            return initial, args, symbolic.ways(start, initial, args)

    def broken(self, step: Step, holds: Predicate, states: int) -> Question:
        """A step from a state with all invariants, after which (with two `states`: across which) this is false."""
        args, found = self.ways(step)
        free = symbolic.unknown_arguments(holds, states, tag="some ")
        key = step, holds, states
        if key not in self.read.broken:
            broken = []
            with symbolic.read(self.reading):
                for way in found:
                    if way.accepted:
                        seen = (self.before, way.outcome)[2 - states :]
                        goal = symbolic.formula(holds, *seen, *free.values())
                        broken.append(all_of(way.walked, negated(goal)))
            self.read.broken[key] = any_of(*broken)
        terms = (*self.known, *self.tried(step), *self._at_hand(holds, free), self.read.broken[key])
        return Question(terms, self.before, args, free)

    def _at_hand(self, holds: Predicate, free: Mapping[str, Unknown]) -> tuple[Any, ...]:
        """The assumption that an invariant was true before the step for the values that may break it.

        `known` says that it was true for all. Where a step does not touch it, Z3 need not look for the values.
        """
        if holds not in self.invariants:
            return ()
        if holds not in self.read.formulas:
            with symbolic.read(self.reading):
                self.read.formulas[holds] = symbolic.formula(holds, self.before, *free.values())
        return (self.read.formulas[holds],)

    def uncovered(self, step: Step) -> Question:
        """A state and arguments for which no way through the step is walked, or two are."""
        args, found = self.ways(step)
        return Question((symbolic.uncovered([way.facts for way in found]),), args=args)

    def disabled(self, holds: Predicate) -> Question:
        """A state in which all invariants hold, and a step that should be possible is not."""
        free = symbolic.unknown_arguments(holds, tag="some ")
        with symbolic.read(self.reading):
            return Question(
                (*self.known, negated(symbolic.formula(holds, self.before, *free.values()))), self.before, {}, free
            )

    def accepted(self, *steps: Step) -> Question:
        """A state with all invariants, in which these steps are tried and accepted with the same arguments."""
        args = self.ways(steps[0])[0]
        terms = [term for step in steps for term in (*self.tried(step), symbolic.taken(self.ways(step)[1]))]
        return Question((*self.known, *terms), self.before, args)


@cache
def _known(initial: State, invariants: tuple[Predicate, ...], reading: Quantification) -> tuple[Any, ...]:
    """That every invariant holds of a state of which nothing else is known; faults planted in steps change nothing."""
    before = symbolic.unknown_state(initial)
    with symbolic.read(reading):
        return tuple(reading.everywhere(invariant, before) for invariant in invariants)


@cache
def theory(
    spec: Spec,
    weak: bool,  # noqa: FBT001 - cached by what it is of
    window: range | None,
    dropped: tuple[Step, str] | None = None,
) -> Theory:
    """The theory of a spec, made once."""
    shared = theory(spec, False, window, dropped) if weak else None  # noqa: FBT003 - as above
    return Theory(spec, weak=weak, reading=Quantification(window), dropped=dropped, shared=shared)


@dataclass(frozen=True)
class Obligation:
    """One thing to prove. `step` is the step that must keep `invariant`, or `INITIAL`, or `ALWAYS`.

    `assumes`: its assumptions in addition to those of its steps · `otherwise`: what it means that it
    is false, where no example can be replayed, for it is about the reading · `confirms`, where the plain functions
    are asked otherwise than by `holds`: why an example of a state, the step's arguments and the state after it speaks
    against the obligation, in a sentence; empty where it does not · `settled`: proves it otherwise than by one
    question, and is given the obligation, Z3's work and seed · `title`: of the story of an example.
    """

    spec: Spec
    invariant: str
    step: str
    ask: Callable[[Theory], Question]
    weak: bool = False
    wanted: Literal["unsat", "sat"] = "unsat"
    steps: tuple[Step, ...] = ()  # that are taken
    holds: Predicate | None = None  # the invariant or step property
    states: int = 1  # that it looks at: one, or the two before and after a step
    dropped: tuple[Step, str] | None = None  # a step, and the rule that it shall not need
    subject: str = ""  # what it is about, where that is no spec
    otherwise: str = ""
    assumes: tuple[str, ...] = ()
    confirms: Callable[[State, Mapping[str, int], State], str] | None = None
    settled: Callable[..., Any] | None = None
    title: str = ""

    @property
    def granted(self) -> tuple[str, ...]:
        """The assumptions of its proof: about the environment of its steps, and its own."""
        return (*dict.fromkeys(sentence for step in self.steps for sentence in assumed(step)), *self.assumes)

    @property
    def begins(self) -> bool:
        """True if it is about an initial state."""
        return self.step == INITIAL or self.step in self.spec.starts

    @property
    def about(self) -> str:
        """The spec's name, or what else it is about."""
        return self.subject or self.spec.name

    def question(self, window: range | None = None) -> Question:
        """The question for Z3, with every number, or those of a window."""
        return self.ask(theory(self.spec, self.weak, window, self.dropped))


def obligations(spec: Spec) -> Iterator[Obligation]:
    """All that must be shown of a spec."""
    yield from inductive(spec, weak=False)
    if spec.deviations:
        yield from inductive(spec, weak=True)
        yield from exclusive(spec)
    yield from covering(spec)
    yield from enabled(spec)


def inductive(spec: Spec, *, weak: bool, only: Sequence[Step] | None = None) -> Iterator[Obligation]:
    """The obligations of invariants: the initial state satisfies them, and each step can happen and keeps them."""
    of = theory(spec, weak, None)
    for holds in of.invariants if only is None else ():
        yield Obligation(spec, holds.__name__, INITIAL, methodcaller("not_initially", holds), weak, holds=holds)
    for start in spec.starts.values() if only is None else ():
        name = start.__name__
        yield Obligation(spec, CAN_HAPPEN, name, methodcaller("begun", start), weak, "sat", (start,))
        for holds in of.invariants:
            asked = methodcaller("wrongly_begun", start, holds)
            yield Obligation(spec, holds.__name__, name, asked, weak, "unsat", (start,), holds)
    for step in of.steps if only is None else only:
        yield Obligation(spec, CAN_HAPPEN, step.__name__, methodcaller("accepted", step), weak, "sat", (step,))
        for properties, states in ((of.invariants, 1), (of.step_properties, 2)):
            for holds in properties:
                yield Obligation(
                    spec, holds.__name__, step.__name__,
                    methodcaller("broken", step, holds, states), weak, "unsat", (step,), holds, states,
                )  # fmt: skip


def exclusive(spec: Spec) -> Iterator[Obligation]:
    """That of the deviations which stand in for one action, at most one accepts: replay need not choose."""
    for one, other in combinations(spec.deviations, 2):
        if one.instead_of is other.instead_of and one.profiles & other.profiles:
            both = (one.step, other.step)
            steps = " and ".join(step.__name__ for step in both)
            yield Obligation(spec, EXCLUSIVE, steps, methodcaller("accepted", *both), weak=True, steps=both)


def covering(spec: Spec) -> Iterator[Obligation]:
    """That the ways through every step cover every input, and no two overlap: only then proofs of them are of it."""
    for step in spec.steps:
        yield Obligation(spec, COVERED, step.__name__, methodcaller("uncovered", step), otherwise=LOST)
    for start in spec.starts.values():
        yield Obligation(spec, COVERED, start.__name__, methodcaller("uncovered_start", start), otherwise=LOST)


def enabled(spec: Spec) -> Iterator[Obligation]:
    """That what ENABLED says is so wherever all invariants hold: a step that became too strict breaks it."""
    for weak in (False, True):
        for holds in spec.enabled(weak=weak):
            yield Obligation(spec, holds.__name__, ALWAYS, methodcaller("disabled", holds), weak, holds=holds)


# -- answers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SolverAnswer:
    """Z3's answer: `sat`, `unsat` or `unknown`; its work in Z3's own measure, and a model if there is one."""

    verdict: Literal["sat", "unsat", "unknown"]
    work: int
    why: str = ""
    model: Any = None


def ask(terms: Sequence[Any], *, work: int = WORK, seed: int = 0) -> SolverAnswer:
    """Ask Z3 about all of the terms together."""
    solver = z3.Solver()
    solver.set("rlimit", work)
    solver.set("random_seed", seed)
    solver.add(*terms, *(laws() if are_counted(terms) else ()))
    before = _work_so_far(solver)
    verdict = str(solver.check())
    spent = _work_so_far(solver) - before
    if verdict == "sat":
        return SolverAnswer("sat", spent, model=solver.model())
    return (
        SolverAnswer("unsat", spent) if verdict == "unsat" else SolverAnswer("unknown", spent, solver.reason_unknown())
    )


def _work_so_far(solver: Any) -> int:
    """The work of all questions of this process: Z3 counts on."""
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in statistics.keys() else 0  # noqa: SIM118
