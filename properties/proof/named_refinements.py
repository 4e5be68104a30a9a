"""The refinements that a spec file names as `REFINES`: each of its steps may be some steps of another spec, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import immutables

from gapless.properties.proof import symbolic
from gapless.properties.proof.symbolic import State, UnknownMap
from gapless.spec.catalog import SPECS, Spec, Step, text_of
from gapless.spec.language import Map, Refines, reader, seen_as
from gapless.spec.reading.map_keys import key_counts, numbers_of
from gapless.traces.specs import load


class NamedRefinement(NamedTuple):
    """A spec, another that says less, the state there, and the steps there that each step may be."""

    concrete: Spec
    abstract: Spec
    sees: Callable[[State], State]
    steps: Mapping[str, tuple[Step, ...]]


def of(spec: Spec) -> Iterator[NamedRefinement]:
    """The refinements that the file of a spec names. Raises ValueError where the other spec lacks what is named."""
    for one in getattr(spec.module, "REFINES", ()):
        abstract = _abstract(spec, one)
        sees = _Abstraction(spec, abstract, one)
        yield NamedRefinement(spec, abstract, sees, _Steps(spec, abstract, one, sees).by_name())


def _abstract(spec: Spec, stated: Refines) -> Spec:
    """The spec that is refined: one of ours, or in a file next to this one."""
    if stated.spec in SPECS:
        return SPECS[stated.spec]
    found = load(Path(spec.module.__file__ or "").parent / stated.spec)
    if found.starts:
        raise _wrong(spec, f"{stated.spec} has several initial states, by INITIALS", "a spec that has INITIAL alone")
    return found


class _Abstraction:
    """The abstract state of a concrete one: fields of the same name, or what functions give."""

    def __init__(self, spec: Spec, abstract: Spec, stated: Refines) -> None:
        self.spec, self.abstract, self.functions = spec, abstract, stated.sees
        names = [field.name for field in fields(abstract.initial)]
        if strange := [name for name in stated.sees if name not in names]:
            raise _wrong(spec, f"{abstract.name} has no field {strange[0]}", f"a field of it: {', '.join(names)}")
        for name in names:
            self._require(name)

    def _require(self, name: str) -> None:
        """Raise ValueError unless a field of the abstract state is given, and in its kind."""
        spec, there, own = self.spec, _keys(self.abstract, name), _keys(self.spec, name)
        shown = "a number" if not there else f"a Map of {'one key' if there == 1 else 'two keys'}"
        if name in self.functions:
            function = self.functions[name]
            taken = len(signature(function).parameters) - 1
            if taken != there:
                takes = f"`{function.__name__}` takes {taken} behind the state"
                word = f"{name} of {self.abstract.name} is {shown}, and {takes}"
                raise _wrong(spec, word, f"a function of the state {TAKES[there or 0]}")
            return
        advice = f'`sees={{"{name}": function}}`'
        if own is None:
            raise _wrong(spec, f"{self.abstract.name} has a field {name}, and this spec has none", advice)
        if own != there or (there and self._default(spec, name) != self._default(self.abstract, name)):
            raise _wrong(spec, f"{name} of {self.abstract.name} is {shown}, and another kind of value here", advice)

    @staticmethod
    def _default(spec: Spec, name: str) -> int:
        return int(getattr(spec.initial, name).default)

    def __call__(self, s: State) -> State:
        """The abstract state."""
        found = {field.name: self._field(field.name, s) for field in fields(self.abstract.initial)}
        return seen_as(self.abstract.initial, **found)

    def _field(self, name: str, s: State) -> Any:
        function, keys = self.functions.get(name), _keys(self.abstract, name)
        if function is None:
            return getattr(s, name)
        return _everywhere(partial(function, s), self._default(self.abstract, name), s, keys) if keys else function(s)


def _keys(spec: Spec, name: str) -> int | None:
    """The number of keys of a Map in the state of a spec, 0 for a number; None where there is no such field."""
    if name in spec.scalars:
        return 0
    return key_counts(type(spec.initial))[name] if name in spec.maps else None


def _everywhere(function: Callable[..., Any], default: int, s: State, keys: int) -> Any:
    """The Map of a function's values: at every key where numbers are unknown, else at all around those of a state."""
    if reader.get() is not None:
        return UnknownMap(default, symbolic.at_every_key(function, keys), keys)
    every = product(_around(s), repeat=keys)
    values = {key if keys == 2 else key[0]: function(*key) for key in every}
    return Map(default, immutables.Map({key: one for key, one in values.items() if one != default}))


def _around(s: State) -> list[int]:
    """The numbers that a state mentions, and those next to them."""
    found = {0}
    for field in fields(s):
        value = getattr(s, field.name)
        parts = [n for key in value.entries for n in numbers_of(key)] if isinstance(value, Map) else [int(value)]
        found |= {*parts, *map(int, value.entries.values())} if isinstance(value, Map) else {*parts}
    return sorted({n + far for n in found for far in (-1, 0, 1)})


TAKES = ("alone", "and a key", "and two keys")


class _Steps:
    """The abstract steps that each concrete one may be, as functions of its state and arguments."""

    def __init__(self, spec: Spec, abstract: Spec, stated: Refines, sees: Callable[[State], State]) -> None:
        self.spec, self.abstract, self.stated, self.sees = spec, abstract, stated, sees

    def by_name(self) -> dict[str, tuple[Step, ...]]:
        """The steps, by the name of a concrete one. Raises ValueError."""
        known = [f"{step}.{name}" for step, names in self.abstract.parameters.items() for name in names]
        if strange := [name for name in self.stated.args if name not in known]:
            raise _wrong(
                self.spec,
                f"{self.abstract.name} has no argument {strange[0]}",
                f"one of its steps': {', '.join(known)}",
            )
        return {
            own.__name__: tuple(
                self._taken(own.__name__, one) for one in ((names,) if isinstance(names, str) else names)
            )
            for own, names in self.stated.steps.items()
        }

    def _taken(self, own: str, name: str) -> Step:
        """The abstract step of a name, given the arguments of a concrete one."""
        if name not in self.abstract.actions:
            known = f"one of its steps: {', '.join(self.abstract.actions)}"
            raise _wrong(self.spec, f"{self.abstract.name} has no step {name}, which {own} is to be", known)
        gives = [self._given(own, name, one) for one in self.abstract.parameters[name]]

        def take(s: State, *values: Any) -> State:
            args = dict(zip(self.spec.parameters[own], values, strict=True))
            return self.abstract.actions[name](self.sees(s), *(give(s, args) for give in gives))

        take.__name__ = name
        return take

    def _given(self, own: str, name: str, argument: str) -> Callable[[State, Mapping[str, Any]], Any]:
        """An argument of an abstract step, of the state and the arguments of a concrete one."""
        function = self.stated.args.get(f"{name}.{argument}")
        if function is None and argument in self.spec.parameters[own]:
            return lambda _s, args: args[argument]
        advice = f'`args={{"{name}.{argument}": function}}`'
        if function is None:
            word = f"{name} of {self.abstract.name} has an argument {argument}, and {own} has none of that name"
            raise _wrong(self.spec, word, advice)
        taken = tuple(signature(function).parameters)[1:]
        if strange := [one for one in taken if one not in self.spec.parameters[own]]:
            word = f"`{function.__name__}` takes {strange[0]}, and {own} has no such argument"
            raise _wrong(
                self.spec, word, f"a function of arguments that {own} has: {', '.join(self.spec.parameters[own])}"
            )
        chosen = function
        return lambda s, args: chosen(s, *(args[one] for one in taken))


def _wrong(spec: Spec, what: str, instead: str) -> ValueError:
    """The error about a refinement, with its file and line."""
    lines = text_of(spec.module).splitlines()
    line = next((n for n, text in enumerate(lines, 1) if text.startswith("REFINES")), 1)
    return ValueError(f"{spec.called}:{line}: {what}: write {instead}")
