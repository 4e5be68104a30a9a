"""Values while a function is lowered: names of LLVM's for the words that each consists of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gapless.native.kinds import BOOL, I64, NOTHING, U64, Array, Int, Kind, Lane, Object, TupleKind, leaves

WORD = 64


@dataclass(frozen=True, slots=True)
class Value:
    """A number, or an array: its address, shape and strides.

    `origins`: the arrays among a function's parameters that it may be a part of, by their numbers; -1 is a constant.
    """

    kind: Int | Object | Lane | Array
    parts: tuple[str, ...]
    origins: frozenset[int] = frozenset()

    @property
    def text(self) -> str:
        """A number, as LLVM's text names it."""
        return self.parts[0]

    @property
    def constant(self) -> int | None:
        """The number, if it is known while the function is lowered."""
        text = self.parts[0]
        if isinstance(self.kind, Int) and not text.startswith("%"):
            return int(text) if self.kind.signed or self.kind == BOOL else int(text) % (1 << WORD)
        return None

    @property
    def shape(self) -> tuple[str, ...]:
        """The number of an array's elements in each direction."""
        return self.parts[1 : 1 + len(self.parts) // 2]

    @property
    def strides(self) -> tuple[str, ...]:
        """The bytes between neighbours of an array in each direction."""
        return self.parts[1 + len(self.parts) // 2 :]


@dataclass(frozen=True, slots=True)
class Members:
    """A tuple."""

    kind: TupleKind
    values: tuple[Value | Members, ...]


@dataclass(frozen=True, slots=True)
class KnownObject:
    """An object that is known while the function is lowered: a function, a module, a class."""

    value: Any


Lowered = Value | Members
Operand = Value | Members | KnownObject


def number(value: int) -> Value:
    """A constant number."""
    return Value(I64, (str(value),)) if value < 1 << (WORD - 1) else Value(U64, (str(value - (1 << WORD)),))


def truth(*, value: bool) -> Value:
    """A constant boolean."""
    return Value(BOOL, ("1" if value else "0",))


NONE = Members(NOTHING, ())


def members(values: Sequence[Lowered], named: type | None = None) -> Members:
    """A tuple of these values."""
    return Members(TupleKind(tuple(value.kind for value in values), named), tuple(values))


def flat(value: Lowered) -> Iterator[str]:
    """The words of a value."""
    if isinstance(value, Members):
        for member in value.values:
            yield from flat(member)
    else:
        yield from value.parts


def arrays_in(value: Lowered) -> Iterator[Value]:
    """The arrays in a value."""
    if isinstance(value, Members):
        for member in value.values:
            yield from arrays_in(member)
    elif isinstance(value.kind, Array):
        yield value


def rebuilt(kind: Kind, words: Iterator[str], origins: Iterator[frozenset[int]]) -> Lowered:
    """A value of this kind from its words; `origins`: of its arrays."""
    if isinstance(kind, TupleKind):
        return Members(kind, tuple(rebuilt(member, words, origins) for member in kind.kinds))
    if isinstance(kind, Array):
        parts = [next(words) for _ in range(1 + 2 * kind.dims)]
        if kind.contiguous:
            parts[-1] = str(kind.element.size)
        return Value(kind, tuple(parts), next(origins))
    return Value(kind, (next(words),))


def returned_type(kind: Kind) -> str:
    """The LLVM type of what a function with this answer returns."""
    types = list(leaves(kind))
    if not types:
        return "void"
    return types[0] if len(types) == 1 else "{" + ", ".join(types) + "}"
