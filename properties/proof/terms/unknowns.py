"""Numbers, truth values and Maps of a spec that are known only as Z3's terms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import z3

from gapless.properties.proof.terms.boolean_terms import FALSE, TRUE, negated
from gapless.spec import forking


class Unknown:
    """A number or a truth value that is known only as a Z3 term.

    A function is run once for each way through it, and every run begins like others. So what was `made` of a value is
    kept with it, by the operator and the other operand: what is written again is the same value, not a new term.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: Any) -> None:
        self.term = term
        self.made: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    @cached_property
    def number(self) -> Any:
        """The value as an integer term; truth is 1 or 0, as in events."""
        return z3.If(self.term, z3.IntVal(1), z3.IntVal(0)) if z3.is_bool(self.term) else self.term

    @cached_property
    def truth(self) -> Any:
        """The value as a boolean term; all but 0 is true."""
        return self.term if z3.is_bool(self.term) else self.term != 0

    @cached_property
    def untruth(self) -> Any:
        """That it is not so."""
        return negated(self.truth)

    @cached_property
    def key(self) -> int:
        """The key of the value as a question: Z3 has each term once, as long as it is referenced."""
        return int(self.truth.get_id())

    @cached_property
    def plain(self) -> bool | None:
        """The answer, where it answers itself."""
        found = z3.simplify(self.truth)
        return bool(z3.is_true(found)) if z3.is_true(found) or z3.is_false(found) else None

    def __bool__(self) -> bool:
        return forking.decide(self)

    def __neg__(self) -> Unknown:
        return Unknown(-self.number)

    def __repr__(self) -> str:
        return f"Unknown({self.term})"


T = TypeVar("T")


def _once(made: dict[tuple[Any, ...], tuple[Any, Any]], how: str, other: Any, make: Callable[[], T]) -> T:
    """A value made of two others. Both are kept with it: an object's id is its own while it lives."""
    key = (how, other) if other.__class__ is int else (how, "of", id(other))
    found = made.get(key)
    if found is None:
        found = made[key] = make(), other
    return found[0]


def number(value: Any) -> Any:
    """The value as an integer term; truth is 1 or 0, as in events."""
    if isinstance(value, Unknown):
        return value.number
    return Unknown(value).number if z3.is_expr(value) else _literal(int(value))


def truth(value: Any) -> Any:
    """The value as a boolean term; what is not 0 is true."""
    if isinstance(value, Unknown):
        return value.truth
    if z3.is_expr(value):
        return Unknown(value).truth
    return TRUE if value else FALSE


@lru_cache(maxsize=1024)
def _literal(value: int) -> Any:
    return z3.IntVal(value)


def _overloaded(name: str) -> Callable[[Any, Any], Unknown]:
    def operator(a: Unknown, b: Any) -> Unknown:
        return _once(a.made, name, b, lambda: Unknown(getattr(a.number, name)(number(b))))

    return operator


for _name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Unknown, f"__{_name}__", _overloaded(f"__{_name}__"))
for _name in ("add", "sub", "mul"):
    setattr(Unknown, f"__r{_name}__", _overloaded(f"__r{_name}__"))


def _divided(name: str) -> Callable[[Any, Any], Unknown]:
    def by(dividend: Any, divisor: Any) -> Unknown:
        if isinstance(divisor, int) and divisor > 0:
            return Unknown(getattr(number(dividend), name)(number(divisor)))
        return _by_an_unknown(divisor, dividend)

    return by


def _by_an_unknown(_divisor: Any, _dividend: Any) -> Unknown:
    raise TypeError("divide by a positive constant: by other numbers, Python and Z3 do not round alike")


for _name, _z3 in (("floordiv", "div"), ("mod", "mod")):
    setattr(Unknown, f"__{_name}__", _divided(f"__{_z3}__"))
    setattr(Unknown, f"__r{_name}__", _by_an_unknown)


class UnknownMap:
    """A `Map` that is known only as a Z3 array of integers; what was made of it is kept, too.

    One of two keys is an array of arrays: the first key finds the row in which the second one is.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, default: int | None, term: Any, keys: int = 1) -> None:
        self.default = default
        self.term = term
        self.keys = keys
        self.made: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def __eq__(self, _other: object) -> bool:
        raise TypeError("compare Maps key by key: an invariant speaks of all keys by a parameter")

    def __getitem__(self, key: Any) -> Unknown:
        if self.keys == 1:
            return _once(self.made, "at", key, lambda: Unknown(z3.Select(self.term, number(key))))
        first, second = key
        row: dict[tuple[Any, ...], tuple[Any, Any]] = _once(self.made, "row", first, dict)
        return _once(row, "at", second, lambda: Unknown(z3.Select(self._row(first), number(second))))

    def set(self, *place: Any) -> UnknownMap:
        """The Map with an entry, as `Map.set`."""
        made = self.made
        for key in place[:-1]:
            made = _once(made, "set", key, dict[tuple[Any, ...], tuple[Any, Any]])
        return _once(made, "to", place[-1], lambda: self._of(self._stored(*place)))

    def _stored(self, key: Any, *rest: Any) -> Any:
        *second, value = rest
        if not second:
            return z3.Store(self.term, number(key), number(value))
        return z3.Store(self.term, number(key), z3.Store(self._row(key), number(second[0]), number(value)))

    def _row(self, first: Any) -> Any:
        return z3.Select(self.term, number(first))

    def cleared(self) -> UnknownMap:
        """The Map without its entries, as `Map.cleared`."""
        self._require_default()
        return _once(self.made, "cleared", None, lambda: self._of(empty_array(number(self.default), self.keys)))

    def forget_from(self, low: Any) -> UnknownMap:
        """The Map without keys from a number on, as `Map.forget_from`."""
        self._require_default()
        if self.keys == 2:
            raise TypeError("a Map of two keys forgets none of them: set each element, or clear it")
        return _once(self.made, "forget from", low, lambda: self._of(self._kept(number(low))))

    def _kept(self, low: Any) -> Any:
        key = z3.Int("k!forgotten")  # bound at once, so that a second call makes the same term
        return z3.Lambda([key], z3.If(key < low, z3.Select(self.term, key), number(self.default)))

    def _require_default(self) -> None:
        if self.default is None:
            raise TypeError("a Map that makes an initial state is neither cleared nor forgotten: set what differs")

    def _of(self, term: Any) -> UnknownMap:
        return UnknownMap(self.default, term, self.keys)


def any_array(name: str, keys: int, values: Any = None) -> Any:
    """An array of which nothing is known, from so many keys to values: integers, if nothing else is asked for."""
    sort = z3.IntSort() if values is None else values
    for _ in range(keys):
        sort = z3.ArraySort(z3.IntSort(), sort)
    return z3.Const(name, sort)


def empty_array(default: Any, keys: int) -> Any:
    """An array of so many keys that has one value everywhere."""
    for _ in range(keys):
        default = z3.K(z3.IntSort(), default)
    return default
