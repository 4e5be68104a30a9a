"""Decides whether a property holds of one state for every number, by calling the property itself.

What holds at rest may speak of any message: `def is_done(s: State, message: Message) -> bool`. There is no end of
numbers, and yet few cases: between two numbers that a property compares with, or two keys of a Map, all numbers get the
same answers. So the property is called with a `SweptNumber` that knows its value, and notes up to which number every
answer stays the same. The next call is for the number behind that. Where nothing bounds the answers any more, all
numbers are covered, above and below. Two parameters are swept one within the other; the bounds of the inner one are
sums over the outer one, so that its answers are noted, too.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from inspect import signature
from typing import Any

from gapless.spec.language import Map, Reader, reader
from gapless.spec.reading.map_keys import numbers_of
from gapless.spec.reading.trees.map_effects import Effect, Window

CASES = 1_000_000
"""The calls of a property in one state after which there seems to be no end of cases."""


class EndlessCases(ValueError):  # noqa: N818 - its message says all.
    """A property has another answer for ever more numbers: no state can be judged by it."""


def for_every_number(holds: Callable[..., Any], state: Any) -> Any:
    """True if `holds(state, …)` for all values of the parameters behind the state; a reader may answer its own way."""
    if not parameters(holds):
        return holds(state)
    at_work = reader.get()
    if at_work is not None:
        return at_work.for_every_number(holds, state)
    return counterexample(holds, state) is None


def counterexample(holds: Callable[..., Any], state: Any, *, cases: int = CASES) -> dict[str, int] | None:
    """The first numbers for which a property of a state is false; None where there are none.

    Raises EndlessCases after more `cases` than any state needs that is worth a check.
    """
    names = parameters(holds)
    if not names:
        return None if holds(state) else {}
    token = reader.set(_READER)
    try:
        return _Sweep(holds, state, names, cases).counterexample()
    finally:
        reader.reset(token)


@cache
def parameters(holds: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a property behind its state, and what each is annotated with."""
    return {one.name: one.annotation for one in list(signature(holds).parameters.values())[1:]}


def is_flag(annotation: Any) -> bool:
    """True if a parameter is a truth value."""
    return annotation in (bool, "bool")


# -- sums over the numbers that are swept --------------------------------------------------------------------------


@dataclass
class _Swept:
    """A number that is swept, by how many others it lies within. `value`: of which the property is asked now.

    `bound`: the last number, in the direction of the sweep, that gets the same answers; None where all do.
    """

    depth: int
    upwards: bool = True
    value: _Sum = field(default_factory=lambda: _Sum(0))
    bound: _Sum | None = None


@dataclass(frozen=True)
class _Sum:
    """A sum of multiples of swept numbers, the outermost first, and a constant."""

    constant: int
    terms: tuple[tuple[_Swept, int], ...] = ()

    @cached_property
    def now(self) -> int:
        """The value for the numbers of which the property is asked."""
        return self.constant + sum(times * swept.value.now for swept, times in self.terms)

    def plus(self, other: _Sum, times: int = 1) -> _Sum:
        """The sum of this and a multiple of another."""
        if not other.terms:
            return _Sum(self.constant + times * other.constant, self.terms)
        found = {id(swept): (swept, count) for swept, count in self.terms}
        for swept, count in other.terms:
            found[id(swept)] = swept, found.get(id(swept), (swept, 0))[1] + times * count
        left = sorted((one for one in found.values() if one[1]), key=lambda one: one[0].depth)
        return _Sum(self.constant + times * other.constant, tuple(left))

    def times(self, number: int) -> _Sum:
        """A multiple of it."""
        return _Sum(0).plus(self, number)


def _is_positive(one: _Sum) -> bool:
    """True if a sum is 0 or more; notes for which numbers that stays so."""
    answer = one.now >= 0
    _note(one if answer else _Sum(-1).plus(one, -1))
    return answer


def _note(fact: _Sum) -> None:
    """Note that a sum is 0 or more: it bounds the innermost number in it, and for its value, those around it."""
    if not fact.terms:
        return
    *outer, (swept, times) = fact.terms
    rest = _Sum(fact.constant, tuple(outer))
    if (times < 0) == swept.upwards:
        reach = rest if abs(times) == 1 else _Sum(_pinned(rest) // abs(times))
        bound, further = (reach, 1) if times < 0 else (reach.times(-1), -1)
        if swept.bound is None or _is_positive(swept.bound.plus(bound, -1).times(further).plus(_Sum(-1))):
            swept.bound = bound
    _note(rest.plus(swept.value, times))


def _equals(one: _Sum, other: _Sum) -> bool:
    """True if two sums are equal; notes for which numbers that stays so."""
    apart = one.plus(other, -1)
    if apart.now > 0:
        _note(_Sum(-1).plus(apart))
    elif apart.now < 0:
        _note(_Sum(-1).plus(apart, -1))
    else:
        _note(apart)
        _note(apart.times(-1))
    return apart.now == 0


def _pinned(one: _Sum) -> int:
    """The value of a sum; its numbers are noted to have this answer alone."""
    for swept, _ in one.terms:
        own = _Sum(0, ((swept, 1),))
        _equals(own, _Sum(own.now))
    return one.now


# -- what a property is called with --------------------------------------------------------------------------------


class SweptNumber:
    """A number or truth value that is computed on demand: one that no answer needs bounds nothing."""

    __slots__ = ("_found", "_make")

    def __init__(self, make: Callable[[], _Sum]) -> None:
        self._make = make
        self._found: _Sum | None = None

    @property
    def sum(self) -> _Sum:
        """The value, as a sum."""
        if self._found is None:
            self._found = self._make()
        return self._found

    def __bool__(self) -> bool:
        return not _equals(self.sum, _Sum(0))

    def __index__(self) -> int:
        return _pinned(self.sum)

    def __hash__(self) -> int:
        return hash(_pinned(self.sum))

    def __neg__(self) -> SweptNumber:
        return SweptNumber(lambda: self.sum.times(-1))


def _sum_of(value: Any) -> _Sum:
    return value.sum if isinstance(value, SweptNumber) else _Sum(operator.index(value))


def _multiplied(a: _Sum, b: _Sum) -> _Sum:
    if not a.terms:
        return b.times(a.constant)
    return a.times(_pinned(b))


def _quotient(a: _Sum, b: _Sum) -> _Sum:
    """The quotient, a constant as long as it is the same."""
    divisor = _pinned(b)
    found = a.now // divisor
    if divisor < 0:
        return _Sum(_pinned(a) // divisor)
    _is_positive(a.plus(_Sum(divisor * found), -1))
    _is_positive(_Sum(divisor * (found + 1) - 1).plus(a, -1))
    return _Sum(found)


def _remainder(a: _Sum, b: _Sum) -> _Sum:
    return a.plus(_quotient(a, b), -_pinned(b))


def _truth(answer: bool) -> _Sum:
    return _Sum(int(answer))


OPERATIONS: Mapping[str, Callable[[_Sum, _Sum], _Sum]] = {
    "add": lambda a, b: a.plus(b),
    "sub": lambda a, b: a.plus(b, -1),
    "mul": _multiplied,
    "floordiv": _quotient,
    "mod": _remainder,
    "eq": lambda a, b: _truth(_equals(a, b)),
    "ne": lambda a, b: _truth(not _equals(a, b)),
    "ge": lambda a, b: _truth(_is_positive(a.plus(b, -1))),
    "le": lambda a, b: _truth(_is_positive(b.plus(a, -1))),
    "gt": lambda a, b: _truth(not _is_positive(b.plus(a, -1))),
    "lt": lambda a, b: _truth(not _is_positive(a.plus(b, -1))),
}


def _overloaded(apply: Callable[[_Sum, _Sum], _Sum]) -> Iterator[Callable[[Any, Any], SweptNumber]]:
    yield lambda a, b: SweptNumber(lambda: apply(_sum_of(a), _sum_of(b)))
    yield lambda a, b: SweptNumber(lambda: apply(_sum_of(b), _sum_of(a)))


for _name, _apply in OPERATIONS.items():
    _forward, _reflected = _overloaded(_apply)
    setattr(SweptNumber, f"__{_name}__", _forward)
    if _name in ("add", "sub", "mul", "floordiv", "mod"):
        setattr(SweptNumber, f"__r{_name}__", _reflected)


class _SweptMap(Window):
    """A Map that is asked for swept numbers: between two of its keys there is its default."""

    def __init__(
        self, kept: Map[Any, int], name: str, keys: Sequence[Sequence[int]], *, empty: bool = False,
        effects: tuple[Effect, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(name, kept.default, empty=empty, effects=effects)
        self.kept, self.keys = kept, keys

    def there(self, key: Any) -> Any:
        """The value at `key` as the state has it."""
        parts = key if isinstance(key, tuple) else (key,)
        if not any(isinstance(part, SweptNumber) for part in parts):
            return self.kept[key]
        return SweptNumber(lambda: self._found([_sum_of(part) for part in parts]))

    def _found(self, parts: Sequence[_Sum]) -> _Sum:
        for part, keys in zip(parts, self.keys, strict=False):
            at = bisect_left(keys, part.now)
            if part.terms and not (at < len(keys) and _equals(part, _Sum(keys[at]))) and at:
                _equals(part, _Sum(keys[at - 1]))
        numbers = tuple(part.now for part in parts)
        return _Sum(int(self.kept[numbers if len(numbers) > 1 else numbers[0]]))

    def like(self, *, empty: bool, effects: tuple[Effect, ...]) -> _SweptMap:
        """The same Map with other effects."""
        return _SweptMap(self.kept, self.field, self.keys, empty=empty, effects=effects)


class _SweepReader(Reader):
    """Reads *every number between* step by step: its ends may be swept."""

    def all_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> SweptNumber:
        """The word of the spec language, counted on demand."""
        return SweptNumber(lambda: _truth(self._holds(_sum_of(low), _sum_of(high), holds)))

    def count_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> SweptNumber:
        """The word of the spec language, counted on demand."""
        return SweptNumber(lambda: _Sum(self._counted(_sum_of(low), _sum_of(high), holds)))

    @staticmethod
    def _counted(low: _Sum, high: _Sum, holds: Callable[[Any], Any]) -> int:
        number, found = low, 0
        while _is_positive(high.plus(number, -1).plus(_Sum(-1))):
            found += bool(holds(_given(number)))
            number = number.plus(_Sum(1))
            _count()
        return found

    @staticmethod
    def _holds(low: _Sum, high: _Sum, holds: Callable[[Any], Any]) -> bool:
        number = low
        while _is_positive(high.plus(number, -1).plus(_Sum(-1))):
            if not holds(_given(number)):
                return False
            number = number.plus(_Sum(1))
            _count()
        return True


_READER = _SweepReader()
_counted: ContextVar[Callable[[], None]] = ContextVar("counted")


def _count() -> None:
    _counted.get()()


def _given(one: _Sum) -> Any:
    """A sum, as a property is given it: a plain number where it is one."""
    return SweptNumber(lambda: one) if one.terms else one.constant


def _coordinates(kept: Map[Any, int]) -> list[list[int]]:
    """The numbers of which the keys of a Map are made: of the first one, and of the second if there are two."""
    return [sorted(set(column)) for column in zip(*map(numbers_of, kept.entries), strict=True)] or [[], []]


def _behind(swept: _Swept) -> _Sum | None:
    """The number behind the last that gets the same answers; None where all do."""
    return swept.bound.plus(_Sum(1 if swept.upwards else -1)) if swept.bound else None


# -- the sweep -----------------------------------------------------------------------------------------------------


class _Sweep:
    """The sweep of one property over all values of its parameters, in one state."""

    def __init__(self, holds: Callable[..., Any], state: Any, names: Mapping[str, Any], cases: int) -> None:
        self.holds, self.names, self.left = holds, names, cases
        found: dict[str, Any] = {}
        for one in fields(state):
            value = getattr(state, one.name)
            found[one.name] = _SweptMap(value, one.name, _coordinates(value)) if isinstance(value, Map) else value
        self.state = type(state)(**found)

    def counterexample(self) -> dict[str, int] | None:
        """The first numbers for which the property is false."""
        with self._counting():
            return self._first(list(self.names), ())

    @contextmanager
    def _counting(self) -> Iterator[None]:
        token = _counted.set(self._count)
        try:
            yield
        finally:
            _counted.reset(token)

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise EndlessCases(
                f"{self.holds.__name__} has another answer for ever more numbers: say for which it is meant, such as "
                f"`implies(0 <= {next(iter(self.names))} and {next(iter(self.names))} < s.end, …)`"
            )

    def _first(self, names: Sequence[str], given: tuple[Any, ...]) -> dict[str, int] | None:
        if not names:
            self._count()
            return None if self.holds(self.state, *given) else {}
        own, *rest = names
        for value, choose in self._values(own, len(given)):
            found = self._first(rest, (*given, value))
            if found is not None:
                return {own: choose(), **found}
        return None

    def _values(self, name: str, depth: int) -> Iterator[tuple[Any, Callable[[], int]]]:
        """The values to try of a parameter, each with a function that tells the number."""
        if is_flag(self.names[name]):
            for flag in (False, True):
                yield flag, lambda flag=flag: int(flag)  # type: ignore[misc] # bound at once
            return
        for upwards, begin in ((True, 0), (False, -1)):
            next_one: _Sum | None = _Sum(begin)
            swept = _Swept(depth, upwards)
            while next_one is not None:
                swept.value, swept.bound = next_one, None
                own = _Sum(0, ((swept, 1),))
                yield _given(own), lambda own=own: own.now  # type: ignore[misc] # bound at once
                next_one = _behind(swept)
