"""Bounds for user specs without one: numbers grow until there are too many states to wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from enum import IntEnum
from functools import cache
from inspect import signature
from math import prod
from typing import Any, get_origin

from gapless.properties.exploration.bounds import FLAG, Bound, NoBound, NotSymbolic, bound_of
from gapless.properties.exploration.liveness.eventually import claims_of
from gapless.properties.exploration.search import STATES, Exploration, How, OnCompile, OnProgress, explore
from gapless.spec.catalog import Spec, State
from gapless.spec.language import Map
from gapless.spec.reading.map_keys import numbers_of
from gapless.spec.reading.trees.map_effects import Window
from gapless.traces.specs import GivenSpec

ENOUGH = 20_000  # states of a bound that is found
CALLS = 3_000_000  # that are tried at most within it
GREATEST = 9  # the greatest number that is tried


def bound_for(spec: Spec, profile: str | None = None) -> Bound:
    """The bound of a spec: its own, or that in `bounds/`; for a user's spec without one, as wide as pays.

    Raises NoBound, ForeignWords.
    """
    if spec.bound is not None or not isinstance(spec, GivenSpec):
        return bound_of(spec, profile)
    return _grown(spec, profile).bound


def explored(
    spec: Spec,
    *,
    profile: str | None = None,
    wide: bool = False,
    limit: int = STATES,
    progress: OnProgress | None = None,
    how: How = "auto",
    compiling: OnCompile | None = None,
    symmetry: bool = False,
) -> Exploration:
    """Explore a spec within `bound_for` it, or as far as native code gets. Raises NoBound, NotSymmetric."""
    if wide and isinstance(spec, GivenSpec):
        raise NoBound(f"{spec.called} has no bound that is wide: write a greater one as BOUND, and leave --wide out")
    if spec.bound is None and isinstance(spec, GivenSpec) and not symmetry:
        return _grown(spec, profile)
    bound = bound_for(spec, profile) if symmetry else bound_of(spec, profile, wide=wide)
    return explore(
        spec, bound, profile=profile, limit=limit, progress=progress, how=how, compiling=compiling, symmetry=symmetry
    )


@cache
def _grown(spec: Spec, profile: str | None) -> Exploration:
    """The widest exploration within `ENOUGH` and `CALLS`, or the first that finds something."""
    found: Exploration | None = None
    more = "with larger ones, too many states"
    for number in range(1, GREATEST + 1):
        bound = up_to(spec, number)
        if found and len(found.graph.states) * _calls(spec, bound) > CALLS:
            break
        wider = explore(spec, bound, profile=profile, limit=ENOUGH)
        if not (wider.complete or wider.broken):
            break
        same = found is not None and wider.states == found.states and not wider.graph.beyond
        if wider.broken or (same and not wider.never):
            return wider
        found = wider
    else:
        more = "larger ones are not tried, unless its file says BOUND = Bound(…)"
    if found is None:
        raise NoBound(
            f"{spec.called} has more than {ENOUGH:,} states with numbers up to 1: write how far it is to be explored, "
            "`BOUND = Bound(says=…, within=…, numbers=…)` in its file"
        )
    return replace(found, bound=replace(found.bound, says=f"{found.bound.says}: {more}"))


def up_to(spec: Spec, number: int) -> Bound:
    """All small numbers, flags, and members of IntEnums: steps are taken where none is beyond a number."""
    kinds = dict(_parameters(spec))
    return Bound(
        says=f"found by itself: numbers from -1 to {number}",
        within=_within(spec.initial, number),
        numbers={name: _tried(kind, number) for name, kind in kinds.items()},
    )


def _parameters(spec: Spec) -> Iterator[tuple[str, Any]]:
    """Every parameter that a step or a property has behind its states, and its type."""
    for name, step in (*spec.starts.items(), *spec.actions.items()):
        for one in list(signature(step).parameters.values())[1:]:
            if get_origin(one.annotation) is Map:
                raise NoBound(
                    f"{name} of {spec.called} is given a Map: write which ones, "
                    f'`"{one.name}": every_map(range(3), (0, 1), 0)`, into the numbers of a BOUND'
                )
            yield f"{name}.{one.name}", one.annotation
    claimed = (function for claim in claims_of(spec) for function in claim.functions)
    for holds in (*spec.invariants(), *spec.step_properties(), *claimed):
        for one in signature(holds).parameters.values():
            yield one.name, one.annotation


def _tried(kind: Any, number: int) -> Sequence[int]:
    if kind is bool:
        return FLAG
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return tuple(map(int, kind))
    return range(-1, number + 2)


def _within(initial: State, number: int) -> Callable[[State], bool]:
    names = [field.name for field in fields(initial)]

    def within(s: State) -> bool:
        return all(_near(getattr(s, name), getattr(initial, name), number) for name in names)

    return within


def _near(value: Any, begun: Any, number: int) -> bool:
    """True if a number, or every entry of a Map, is initial or small."""
    if isinstance(value, Window):
        raise NotSymbolic("a bound that is found by itself looks at all that a Map holds")
    if isinstance(value, Map):
        keys = (part for key in value.entries for part in numbers_of(key))
        near = (_near(entry, begun.default, number) for entry in value.entries.values())
        return all(-1 <= part <= number for part in keys) and all(near)
    return bool(value == begun or -1 <= value <= number)


def _calls(spec: Spec, bound: Bound) -> int:
    """The number of calls tried in each state."""
    sizes = {name: [len(_tried_with(bound, f"{name}.{one}")) for one in spec.parameters[name]] for name in spec.actions}
    return sum(prod(several) for several in sizes.values())


def _tried_with(bound: Bound, argument: str) -> Sequence[int]:
    """The numbers of an argument in a bound that is found: none depend on others."""
    some = bound.numbers[argument]
    assert not callable(some)  # noqa: S101 - for the type checker
    return some
