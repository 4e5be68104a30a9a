"""Counts as Z3 knows them: a function of a set of numbers and of two ends, with laws.

Nothing says what a count is, but what any count of a finite range is: that it lies between 0 and the length of the
range, that two sets which count more than the range has numbers share one, and so on. From laws that are true of
counts only true things follow; that these are is tested on all small sets. What does not follow from them is unknown.

Each law speaks of the numbers that show it: of one that is in both sets, for example, if there is any. So it is a
statement without a quantifier within, and Z3 applies it to the counts at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import z3

_SETS = z3.ArraySort(z3.IntSort(), z3.BoolSort())


@cache
def _count() -> Any:
    """The function, which is there once something is counted."""
    return z3.Function("count", _SETS, z3.IntSort(), z3.IntSort(), z3.IntSort())


def counted(members: Any, low: Any, high: Any) -> Any:
    """The count of the members of a set, an array of truth values, from `low` up to `high`."""
    return _count()(members, low, high)


@dataclass(frozen=True)
class Logic:
    """The words in which laws are written: of Z3, or of plain numbers, on which they are tested."""

    both: Callable[..., Any]
    either: Callable[..., Any]
    opposite: Callable[[Any], Any]
    chosen: Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class CountedSet:
    """A set and its count; `has` says whether a number is in it."""

    has: Callable[[Any], Any]
    count: Any


@dataclass(frozen=True)
class CountedRange:
    """The numbers from `low` up to `high`, that are counted."""

    low: Any
    high: Any

    def has(self, of: Logic, number: Any) -> Any:
        """True of a number between the ends."""
        return of.both(self.low <= number, number < self.high)

    @property
    def size(self) -> Any:
        """The length, where it is no less than 0."""
        return self.high - self.low


# -- the laws ------------------------------------------------------------------------------------------------------


def lies_between(of: Logic, within: CountedRange, one: CountedSet) -> Any:
    """A count is no less than 0, and no more than there are numbers."""
    fits = of.chosen(within.low <= within.high, one.count <= within.size, one.count == 0)
    return of.both(0 <= one.count, fits)


def share_one(of: Logic, within: CountedRange, one: CountedSet, other: CountedSet, shared: Any) -> Any:
    """Two sets that count more than there are numbers share one: two majorities have a common member."""
    few = of.either(within.high < within.low, one.count + other.count <= within.size)
    return of.either(few, of.both(within.has(of, shared), one.has(shared), other.has(shared)))


def leave_one(of: Logic, within: CountedRange, one: CountedSet, other: CountedSet, left: Any) -> Any:
    """Two sets that count less than there are numbers leave one out."""
    many = of.either(within.high < within.low, one.count + other.count >= within.size)
    return of.either(many, of.both(within.has(of, left), of.opposite(one.has(left)), of.opposite(other.has(left))))


def grow(of: Logic, within: CountedRange, one: CountedSet, other: CountedSet, more: Any) -> Any:
    """A set counts no more than another, unless it has a number that the other one has not."""
    own = of.both(within.has(of, more), one.has(more), of.opposite(other.has(more)))
    return of.either(one.count <= other.count, own)


def differ_by_one(of: Logic, within: CountedRange, one: CountedSet, other: CountedSet, first: Any, second: Any) -> Any:
    """Sets that differ in no number count the same; in one alone, one more or less."""

    def differs(number: Any) -> Any:
        return of.both(within.has(of, number), one.has(number) != other.has(number))

    change = of.chosen(differs(first), of.chosen(one.has(first), 1, -1), 0)
    more = of.both(differs(first), differs(second), first != second)
    return of.either(one.count - other.count == change, more)


def count_the_next(of: Logic, low: Any, high: Any, one: CountedSet, longer: Any) -> Any:
    """A range that is one number longer counts one more if that is in the set. `longer`: the count of that range."""
    return of.either(high < low, longer == one.count + of.chosen(one.has(high), 1, 0))


# -- as Z3 is given them -------------------------------------------------------------------------------------------

PAIRS: Sequence[tuple[Callable[..., Any], int]] = (
    (share_one, 1), (leave_one, 1), (grow, 1), (differ_by_one, 2),
)  # fmt: skip
"""The laws of two sets in one range, and how many numbers show each."""

OF_Z3 = Logic(z3.And, z3.Or, z3.Not, z3.If)


@cache
def laws() -> tuple[Any, ...]:
    """All laws, for all sets and ranges."""
    return tuple(_laws())


def _laws() -> Iterator[Any]:
    a, b = z3.Const("one set", _SETS), z3.Const("other set", _SETS)
    low, high = z3.Int("low end"), z3.Int("high end")
    within = CountedRange(low, high)
    one, other = (CountedSet(partial(z3.Select, s), _count()(s, low, high)) for s in (a, b))
    yield z3.ForAll([a, low, high], lies_between(OF_Z3, within, one), patterns=[one.count])
    both = z3.MultiPattern(one.count, other.count)
    for law, shown in PAIRS:
        sorts = _SETS, _SETS, z3.IntSort(), z3.IntSort(), z3.IntSort()
        numbers = [z3.Function(f"{law.__name__} {n}", *sorts)(a, b, low, high) for n in range(shown)]
        yield z3.ForAll([a, b, low, high], law(OF_Z3, within, one, other, *numbers), patterns=[both])
    end = z3.Int("longer end")
    longer = _count()(a, low, end)
    follows = z3.Implies(end == high + 1, count_the_next(OF_Z3, low, high, one, longer))
    yield z3.ForAll([a, low, high, end], follows, patterns=[z3.MultiPattern(one.count, longer)])


_known: dict[int, tuple[Any, bool]] = {}
"""Terms by Z3's number, and whether something is counted in them. They are kept, or a number would be another's."""

KEPT = 100_000  # terms


def are_counted(terms: Sequence[Any]) -> bool:
    """True if something is counted in some terms; they are looked through once anything was, and each term once."""
    if not _count.cache_info().currsize:
        return False
    if len(_known) > KEPT:
        _known.clear()
    return any(_is_counted(term) for term in terms)


def _is_counted(term: Any) -> bool:
    """True if something is counted in a term."""
    pending = [term]
    while pending:
        one = pending[-1]
        if one.get_id() in _known:
            pending.pop()
            continue
        parts = [one.body()] if z3.is_quantifier(one) else one.children()
        if unknown := [part for part in parts if part.get_id() not in _known]:
            pending += unknown
            continue
        is_one = z3.is_app(one) and one.decl().eq(_count())
        _known[one.get_id()] = one, is_one or any(_known[part.get_id()][1] for part in parts)
    return _known[term.get_id()][1]
