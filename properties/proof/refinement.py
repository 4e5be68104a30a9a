"""Refinement: every step of one spec is a step, or a stutter, of another that says less.

An abstraction function maps a concrete state to a state of the abstract spec. Next to it, one function for
each step that shows says which abstract step that is, by taking it: `spec/refinements/`. A step without one must
leave the abstract state as it is. So what is proved of the abstract spec holds of the concrete one, seen that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import product
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from gapless.properties.proof import named_refinements as named
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
    """One spec seen as another that says less.

    `sees` is the abstraction function: the abstract state that a concrete one stands for. `steps`: of a concrete step,
    by its name, the functions of its state and arguments, one of which takes the abstract step that it is; a step
    without any is a stutter. `stutters`: whether a step that has some may be one, too · `files`: where it stands.
    """

    concrete: Spec
    abstract: Spec
    sees: Callable[[State], State]
    steps: Mapping[str, tuple[Step, ...]]
    files: tuple[ModuleType, ...]
    stutters: bool = False

    def takes(self, name: str) -> tuple[Step, ...]:
        """The abstract steps that a concrete one may be, each of its state and arguments.

        Who is at rest is at rest as the other, too.
        """
        if name == END and END in self.abstract.actions:
            return (lambda s, *_: self.abstract.actions[END](self.sees(s)),)
        chosen = self.steps.get(name, ())
        return (*chosen, self._stutter) if self.stutters or not chosen else chosen

    def _stutter(self, state: State, *_args: Any) -> State:
        return self.sees(state)

    @property
    def sentence(self) -> str:
        """The obligations of every step."""
        return f"it is a step of {self.abstract.name}, or a stutter"


def _stated(module: ModuleType) -> Refinement:
    """The refinement of a module of `spec/refinements/`. Raises ValueError where the concrete spec lacks a step."""
    concrete, abstract = (SPECS[one.__name__.rpartition(".")[2]] for one in (module.CONCRETE, module.ABSTRACT))
    steps = {step.__name__: (step,) for step in module.STEPS}
    if strange := [name for name in steps if name not in concrete.actions]:
        raise ValueError(f"{module.__name__}: {concrete.name} has no step {strange[0]}")
    return Refinement(concrete, abstract, module.SEES, steps, (module, *abstract.files))


@cache
def refinements() -> tuple[Refinement, ...]:
    """All of ours."""
    return tuple(_stated(import_module(f"{folder.__name__}.{m.name}")) for m in iter_modules(folder.__path__))


def of(spec: Spec) -> Iterator[Refinement]:
    """The refinements of a spec. A spec with a planted fault refines what the one without does. Raises ValueError."""
    yield from (one for one in refinements() if one.concrete.name == spec.name)
    for concrete, abstract, sees, steps in named.of(spec):
        yield Refinement(concrete, abstract, sees, steps, abstract.files, stutters=True)


def obligations(spec: Spec) -> Iterator[Obligation]:
    """Obligations: every step is a step or a stutter of each refined spec, from any state, and so is the beginning."""
    for one in of(spec):
        shown = _RefinementQuestions(one)
        yield Obligation(
            spec, one.sentence, INITIAL, shown.not_initially, otherwise="the abstract spec begins elsewhere"
        )
        for name, step in spec.actions.items():
            ask = partial(shown.no_step, name=name)
            title = f"{name} is no step of {one.abstract.name}, and no stutter" * one.stutters
            yield Obligation(spec, one.sentence, name, ask, steps=(step,), confirms=shown.against(name), title=title)


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
        """A step of which each abstract step is refused, or leads to another abstract state."""
        args, found = theory.ways(theory.spec.actions[name])
        with symbolic.read(theory.reading):
            takes = [symbolic.ways(take, theory.before, args) for take in self.refinement.takes(name)]
            cases = [
                all_of(way.walked, *(one.walked for one in taken), seen.walked, *self._unlike(taken, seen))
                for way in found
                if way.accepted
                for seen in symbolic.ways(self.refinement.sees, way.outcome, ())
                for taken in product(*takes)
            ]
        return Question((*theory.known, any_of(*cases)), theory.before, args)

    def _unlike(self, taken: Sequence[Way], seen: Way) -> Iterator[Any]:
        """That each abstract step that is taken leads elsewhere: two may differ at two places."""
        for n, one in enumerate(taken):
            if one.accepted:
                yield self._apart(seen.outcome, one.outcome, n)

    @staticmethod
    def _apart(one: State, other: State, number: int = 0) -> Any:
        """That two states differ: in a number, or at some key of a Map."""
        return negated(symbolic.same_at(one, other, *symbolic.unknown_keys(one, "?" * number)))

    def against(self, name: str) -> Callable[[State, Mapping[str, int], State], str]:
        """The objection of the plain functions, in a sentence."""
        whose = self.refinement.abstract.name

        def describe(before: State, args: Mapping[str, int], after: State) -> str:
            seen, wrong = self.refinement.sees(after), []
            for take in self.refinement.takes(name):
                try:
                    wanted = take(before, *args.values())
                except Refused as refusal:
                    wrong.append((take, f"needs: {refusal.because}"))
                    continue
                if seen == wanted:
                    return ""
                wrong.append((take, f"comes elsewhere: {changes_text(changes(wanted, seen))}"))
            if self.refinement.stutters:
                change = changes_text(changes(self.refinement.sees(before), seen))
                others = "".join(f"; its {take.__name__} {why}" for take, why in wrong[:-1])
                return f"{name} is seen as {change}, which {whose} does not do{others}"
            _, why = wrong[0]
            return f"{whose} {f'refuses what {name} is there, and ' if why.startswith('needs') else ''}{why}"

        return describe
