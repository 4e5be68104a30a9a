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

from collections.abc import Sequence
from dataclasses import fields
from importlib import import_module
from itertools import product
from types import SimpleNamespace
from typing import Any

from gapless.spec.catalog import Spec, State
from gapless.spec.language import Bound, Map
from gapless.spec.reading.trees.map_effects import Window

__all__ = [
    "FLAG",
    "Bound",
    "NoBound",
    "arguments",
    "bound_of",
    "count_entries",
    "has_wide",
    "most",
    "one_wrong",
    "universal",
    "untouched",
]  # fmt: skip

FLAG = (1, 0)
MOST = 1 << 24  # tuples of arguments of one step: they are kept in memory, and tried in every state


def arguments(bound: Bound, spec: Spec, step: str) -> list[tuple[int, ...]]:
    """Every tuple of arguments that a step is tried with, each once. Raises NoBound."""
    names = spec.parameters[step]
    _require_few(bound, spec, step)
    every = product(*(_numbers(bound, spec, name, step) for name in names))
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
    return list(product(*(_numbers(bound, spec, name) for name in names)))


def _require_few(bound: Bound, spec: Spec, step: str) -> None:
    """Raise NoBound where a step would be tried with more arguments than anybody waits for."""
    tried = 1
    for name in spec.parameters[step]:
        some = _declared(bound, name, step)
        if some is not None:
            endless = isinstance(some, range) and some[MOST : MOST + 1]  # len() fails of very long ones
            tried *= MOST + 1 if endless else len(some)
    if tried > MOST:
        raise NoBound(
            f"the bound of {spec.name} tries {step} with more than {MOST:,} combinations of arguments in each state: "
            "name fewer numbers"
        )


def _declared(bound: Bound, name: str, step: str) -> Sequence[int] | None:
    """The numbers that a bound names for an argument: those for this step before those for all."""
    return bound.numbers.get(f"{step}.{name}", bound.numbers.get(name))


def _numbers(bound: Bound, spec: Spec, name: str, step: str = "") -> Sequence[int]:
    some = _declared(bound, name, step)
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
