"""Bounds of exploration: the numbers that steps are tried with, and the states that no step is taken from.

A spec knows no bounds: they lie here, as TLA+ keeps them in a model next to the specification. The bound of the spec
NAME is `BOUND` in `bounds/NAME.py`. Where deviations make too many states, `WITH_DEVIATIONS` in the same file is a
closer one; `WIDE` is one that only native code reaches.

The numbers reach a little beyond what a state within the bound may have. Then every requirement is refused somewhere,
and a state in which no step is possible is distinguished from one in which no further step was tried.

Some specs accept steps before their subject is opened, on a state of zeros. Most bounds judge where such a step leads
and take no step from there: the states after `open` show more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from inspect import signature
from itertools import product
from types import MappingProxyType, SimpleNamespace
from typing import Any

from gapless.spec.catalog import Spec, State
from gapless.spec.language import Bound, Map, Refused
from gapless.spec.reading.trees.map_effects import Window

__all__ = [
    "FLAG",
    "Bound",
    "NoBound",
    "arguments",
    "bound_of",
    "count_entries",
    "has_wide",
    "initial_states",
    "most",
    "numbers_of",
    "one_wrong",
    "universal",
    "untouched",
]  # fmt: skip

FLAG = (1, 0)
MOST = 1 << 24  # tuples of arguments of one step: they are kept in memory, and tried in every state


def arguments(bound: Bound, spec: Spec, step: str) -> list[tuple[int, ...]]:
    """Every tuple of arguments that a step is tried with, each once. Raises NoBound."""
    names = tuple(signature({**spec.actions, **spec.starts}[step]).parameters)[1:]
    _require_few(bound, spec, step, names)
    every = _tuples(bound, spec, names, step)
    worth = bound.worth.get(step)
    if worth is None:
        return list(every)
    given = SimpleNamespace()
    named = vars(given)
    made = []
    for args in every:
        named.update(zip(names, args, strict=True))
        if worth(given):
            made.append(args)
    return made


def universal(bound: Bound, spec: Spec, names: Sequence[str]) -> list[tuple[int, ...]]:
    """Every tuple of numbers for which a property is checked. Raises NoBound."""
    return list(_tuples(bound, spec, names))


def initial_states(bound: Bound, spec: Spec) -> Iterator[State]:
    """The states in which exploration begins: those that INITIALS make, else INITIAL alone. Raises NoBound."""
    if not spec.starts:
        yield spec.initial
    begun = False
    for name, start in spec.starts.items():
        for args in arguments(bound, spec, name):
            try:
                state = start(spec.initial, *args)
            except Refused:
                continue
            begun = True
            _require_defaults(spec, name, state)
            yield state
    if spec.starts and not begun:
        raise NoBound(f"no function of INITIALS applies within the bound of {spec.called}: name other numbers")


def _require_defaults(spec: Spec, start: str, state: State) -> None:
    """Raise NoBound where a Map of a state has another default than its field's: it would be another type of Map."""
    for name in spec.maps:
        found, own = getattr(state, name).default, getattr(spec.initial, name).default
        if found != own:
            raise NoBound(
                f"{start} gives {name} a Map whose default is {found}, and that of INITIAL is {own}: "
                f"write `every_map(keys, values, {own})`"
            )


def _tuples(bound: Bound, spec: Spec, names: Sequence[str], step: str = "") -> Iterator[tuple[Any, ...]]:
    """Every tuple of what arguments are tried with; the last one changes first."""
    if not any(callable(_declared(bound, name, step)) for name in names):
        yield from product(*(numbers_of(bound, spec, name, step) for name in names))
        return
    for tried, args in enumerate(_dependent(bound, spec, names, step, ())):
        _require_fewer(spec, step, tried)
        yield args


def _dependent(
    bound: Bound, spec: Spec, names: Sequence[str], step: str, before: tuple[Any, ...]
) -> Iterator[tuple[Any, ...]]:
    """The same behind some arguments, where these decide which numbers the next ones are tried with."""
    if len(before) == len(names):
        yield before
        return
    given = dict(zip(names, before, strict=False))
    for value in numbers_of(bound, spec, names[len(before)], step, given):
        yield from _dependent(bound, spec, names, step, (*before, value))


def _require_few(bound: Bound, spec: Spec, step: str, names: Sequence[str]) -> None:
    """Raise NoBound where a step would be tried with more arguments than anybody waits for."""
    tried = 1
    for name in names:
        some = _declared(bound, name, step)
        if some is not None and not callable(some):
            tried *= _count(some)
    _require_fewer(spec, step, tried)


def _count(some: Sequence[Any]) -> int:
    """The length, or more than are tried: len() fails of very long ranges."""
    return MOST + 1 if isinstance(some, range) and some[MOST : MOST + 1] else len(some)


def _require_fewer(spec: Spec, step: str, tried: int) -> None:
    if tried > MOST:
        raise NoBound(
            f"the bound of {spec.name} tries {step} with more than {MOST:,} combinations of arguments in each state: "
            "name fewer numbers"
        )


def _declared(bound: Bound, name: str, step: str) -> Sequence[Any] | Callable[..., Sequence[Any]] | None:
    """The numbers that a bound names for an argument: those for this step before those for all."""
    return bound.numbers.get(f"{step}.{name}", bound.numbers.get(name))


def numbers_of(
    bound: Bound, spec: Spec, name: str, step: str = "", given: Mapping[str, Any] = MappingProxyType({})
) -> Sequence[Any]:
    """The numbers of an argument, once each; `given`: the arguments before it, which may decide."""
    some = _declared(bound, name, step)
    if callable(some):
        asked = tuple(signature(some).parameters)
        if unknown := [one for one in asked if one not in given]:
            raise NoBound(
                f"the numbers of {name} in the bound of {spec.called} depend on {unknown[0]}, which is no earlier "
                f"argument{f' of {step}' if step else ''}: name the arguments before {name}"
            )
        some = some(*(given[one] for one in asked))
        _require_fewer(spec, step, _count(some))
    if some is not None:
        return tuple(dict.fromkeys(some))
    where = f" of the step {step}" if step else ", over which an invariant speaks,"
    raise NoBound(f"the bound of {spec.name} does not say which numbers {name}{where} is tried with")


class NotSymbolic(TypeError):  # noqa: N818 - its message says all.
    """A bound that can be called and not compiled."""


class NoBound(Exception):  # noqa: N818 - its message says all.
    """A spec cannot be explored, for nothing says how far."""


def bound_of(spec: Spec, profile: str | None = None, *, wide: bool = False) -> Bound:
    """The bound of a spec, with a profile's deviations; or the widest. Raises NoBound."""
    if spec.bound is not None and not wide:
        return spec.bound
    name = f"{__name__}.{spec.name}"
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise NoBound(
            f"{spec.name} has no bound: write `BOUND = Bound(…)` into properties/exploration/bounds/{spec.name}.py"
        ) from None
    if wide and not hasattr(module, "WIDE"):
        raise NoBound(f"{spec.name} has no bound that is wide: leave --wide out")
    deviates = profile is not None and spec.allowed(profile)
    if wide and deviates:
        raise NoBound(f"no bound is wide with deviations: leave --wide out, or --profile {profile}")
    bound: Bound = module.WIDE if wide else module.BOUND
    return getattr(module, "WITH_DEVIATIONS", bound) if deviates else bound


def has_wide(spec: Spec) -> bool:
    """True if a spec has a wide bound."""
    try:
        bound_of(spec, wide=True)
    except NoBound:
        return False
    return True


# -- words for bounds ----------------------------------------------------------------------------------------------
#
# A bound is read two ways: called, and compiled for the native search. A Map is a `MapTerm` then.


def one_wrong(*flags: int) -> bool:
    """At most one of the flags is 0: what is wrong in two ways is refused for the first of them."""
    return flags.count(0) <= 1


def untouched(s: State) -> bool:
    """True if nothing has happened yet."""
    begun = type(s)()
    pairs = ((getattr(s, field.name), getattr(begun, field.name)) for field in fields(begun))
    return all(count_entries(now) == 0 if isinstance(then, Map) else now == then for now, then in pairs)


def most(counts: Map[Any, int]) -> int:
    """The greatest value that was put into a map; its default where none was."""
    some: Any = counts
    if isinstance(some, Window):
        return some.counted("most")  # type: ignore[attr-defined,no-any-return]
    return max(counts.entries.values(), default=counts.default)


def count_entries(counts: Map[Any, int]) -> int:
    """The number of keys of a map with another value than its default."""
    some: Any = counts
    return some.counted("entries") if isinstance(some, Window) else len(counts.entries)  # type: ignore[attr-defined]
