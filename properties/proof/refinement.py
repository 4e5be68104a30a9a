"""Refinement: every step of one spec is a step, or a stutter, of another that says less.

An abstraction function maps a concrete state to a state of the abstract spec. Next to it, one function for
each step that shows says which abstract step that is, by taking it: `spec/refinements/`. A step without one must
leave the abstract state as it is. So what is proved of the abstract spec holds of the concrete one, seen that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from gapless.properties.proof import symbolic
from gapless.properties.proof.induction import INITIAL, Obligation, Question, Theory
from gapless.properties.proof.symbolic import State, Way
from gapless.properties.proof.terms.boolean_terms import all_of, any_of, negated
from gapless.spec import refinements as folder
from gapless.spec.catalog import END, SPECS, Spec, Step
from gapless.spec.language import Refused
from gapless.traces.replay.notation import changes, changes_text


@dataclass(frozen=True)
class Refinement:
    """One spec seen as another that says less: a module of `spec/refinements/`, as data.

    Raises ValueError where it tells of a step that the concrete spec has not.
    `sees` is the abstraction function: the abstract state that a concrete one stands for. Each of `steps`, by the name
    of a concrete step and with its arguments, takes the abstract step that it is; a step without one is a stutter.
    """

    module: ModuleType

    def __post_init__(self) -> None:
        if strange := [name for name in self.steps if name not in self.concrete.actions]:
            raise ValueError(f"{self.module.__name__}: {self.concrete.name} has no step {strange[0]}")

    @property
    def concrete(self) -> Spec:
        """The spec that refines."""
        return SPECS[_last(self.module.CONCRETE)]

    @property
    def abstract(self) -> Spec:
        """The spec that is refined."""
        return SPECS[_last(self.module.ABSTRACT)]

    @property
    def sees(self) -> Callable[[State], State]:
        """The abstraction function."""
        function: Callable[[State], State] = self.module.SEES
        return function

    @cached_property
    def steps(self) -> Mapping[str, Step]:
        """The abstract steps of each concrete step, by its name."""
        return {step.__name__: step for step in self.module.STEPS}

    def takes(self, name: str) -> Step:
        """The abstract step that a concrete one is: of its state and arguments, or of its state, for a stutter.

        Who is at rest is at rest as the other, too.
        """
        if name == END and END in self.abstract.actions:
            return lambda s: self.abstract.actions[END](self.sees(s))
        return self.steps.get(name, self.sees)

    @property
    def sentence(self) -> str:
        """The obligations of every step."""
        return f"it is a step of {self.abstract.name}, or a stutter"


def _last(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


@cache
def refinements() -> tuple[Refinement, ...]:
    """All that there are."""
    return tuple(Refinement(import_module(f"{folder.__name__}.{m.name}")) for m in iter_modules(folder.__path__))


def of(spec: Spec) -> Iterator[Refinement]:
    """The refinements of a spec. A spec with a planted fault refines what the one without does."""
    return (one for one in refinements() if one.concrete.name == spec.name)


def obligations(spec: Spec) -> Iterator[Obligation]:
    """Obligations: every step is a step or a stutter of each refined spec, from any state, and so is the beginning."""
    for one in of(spec):
        shown = _RefinementQuestions(one)
        yield Obligation(
            spec, one.sentence, INITIAL, shown.not_initially, otherwise="the abstract spec begins elsewhere"
        )
        for name, step in spec.actions.items():
            ask = partial(shown.no_step, name=name)
            yield Obligation(spec, one.sentence, name, ask, steps=(step,), confirms=shown.against(name))


@dataclass(frozen=True)
class _RefinementQuestions:
    """One refinement, as questions."""

    refinement: Refinement

    def not_initially(self, theory: Theory) -> Question:
        """That the abstract state of an initial state is not the initial one."""
        wanted = symbolic.symbolic(self.refinement.abstract.initial)
        apart = []
        with symbolic.read(theory.reading):
            for begun, initial in theory.initial_states():
                seen = symbolic.ways(self.refinement.sees, initial, ())
                apart += [all_of(begun, way.walked, self._apart(way.outcome, wanted)) for way in seen]
        return Question((any_of(*apart),))

    def no_step(self, theory: Theory, name: str) -> Question:
        """A step that the abstract step refuses, or after which the abstract state is another."""
        args, found = theory.ways(theory.spec.actions[name])
        with symbolic.read(theory.reading):
            takes = symbolic.ways(self.refinement.takes(name), theory.before, self._some(name, args))
            cases = [
                all_of(way.walked, taken.walked, seen.walked, *self._unlike(taken, seen))
                for way in found
                if way.accepted
                for seen in symbolic.ways(self.refinement.sees, way.outcome, ())
                for taken in takes
            ]
        return Question((*theory.known, any_of(*cases)), theory.before, args)

    def _some(self, name: str, args: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a step, or none, where it must be a stutter."""
        return tuple(args.values()) if name in self.refinement.steps else ()

    def _unlike(self, taken: Way, seen: Way) -> tuple[Any, ...]:
        return (self._apart(seen.outcome, taken.outcome),) if taken.accepted else ()

    @staticmethod
    def _apart(one: State, other: State) -> Any:
        """That two states differ: in a number, or at some key of a Map."""
        return negated(symbolic.same_at(one, other, *symbolic.unknown_keys(one)))

    def against(self, name: str) -> Callable[[State, Mapping[str, int], State], str]:
        """The objection of the plain functions, in a sentence."""

        def describe(before: State, args: Mapping[str, int], after: State) -> str:
            whose = self.refinement.abstract.name
            seen = self.refinement.sees(after)
            try:
                wanted = self.refinement.takes(name)(before, *self._some(name, args))
            except Refused as refusal:
                return f"{whose} refuses what {name} is there, and needs: {refusal.because}"
            if seen == wanted:
                return ""
            return f"{whose} comes elsewhere: {changes_text(changes(wanted, seen))}"

        return describe
