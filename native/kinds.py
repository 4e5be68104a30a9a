"""Kinds of values in native code: integers, arrays of them, records of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

BYTE = 8


@dataclass(frozen=True, slots=True)
class Int:
    """An integer of so many bits; one bit is a boolean. Names of variables have 64 bits or one, elements any size."""

    bits: int
    signed: bool

    @property
    def llvm(self) -> str:
        """The type in LLVM's text."""
        return f"i{self.bits}"

    @property
    def stored(self) -> str:
        """The type of an array's element: a boolean fills a byte."""
        return f"i{max(self.bits, BYTE)}"

    @property
    def size(self) -> int:
        """Bytes of an array's element."""
        return max(self.bits, BYTE) // BYTE

    @property
    def wide(self) -> Int:
        """The kind as which an element of this kind is computed with: the value stays what it is."""
        return self if self.bits in {1, 64} else I64


BOOL, I64, U64 = Int(1, signed=False), Int(64, signed=True), Int(64, signed=False)


@dataclass(frozen=True, slots=True)
class Object:
    """The address of an object of Python's that a function has made, and hands to its caller."""

    llvm = "i64"


OBJECT = Object()


@dataclass(frozen=True, slots=True)
class Lane:
    """Sixteen bytes in a register of the processor."""

    llvm = "<2 x i64>"


LANE = Lane()


@dataclass(frozen=True, slots=True)
class Array:
    """An array, as it is handed over.

    `contiguous`: elements lie side by side, row by row · `aligned`: each lies at a multiple of its size.
    """

    element: Int
    dims: int
    contiguous: bool = True
    aligned: bool = True

    @property
    def alignment(self) -> int:
        """Bytes that the address of an element is a multiple of."""
        return self.element.size if self.aligned else 1

    @property
    def strided(self) -> Array:
        """The same with elements that need not lie side by side: some columns of a table, say."""
        return replace(self, contiguous=False)


@dataclass(frozen=True, slots=True)
class TupleKind:
    """A tuple: its members' kinds, and the class of a named one. It has no memory of its own."""

    kinds: tuple[Kind, ...]
    type: type | None = None


Kind = Int | Object | Lane | Array | TupleKind
NOTHING = TupleKind(())
"""The answer of a function that returns nothing."""

Signature = tuple[Kind, ...]
"""The kinds of a function's arguments."""

# Arrays as most functions take them; tables have two dimensions.
BYTES, BYTE_TABLE = Array(Int(8, signed=False), 1), Array(Int(8, signed=False), 2)
INTS, TABLE, FLAGS = Array(I64, 1), Array(I64, 2), Array(BOOL, 1)
INTS8, INTS32 = Array(Int(8, signed=True), 1), Array(Int(32, signed=True), 1)
WORDS, WORDS32, WORD32_TABLE = Array(U64, 1), Array(Int(32, signed=False), 1), Array(Int(32, signed=False), 2)


def record(of: type, *kinds: Kind) -> TupleKind:
    """The kind of a named tuple, from those of its fields in their order; all are numbers if none is given."""
    fields: tuple[str, ...] = of._fields  # type: ignore[attr-defined] # of a named tuple
    found = kinds or (I64,) * len(fields)
    assert len(found) == len(fields)  # noqa: S101 - raised when the module is imported
    return TupleKind(found, of)


def covers(wide: Kind, given: Kind) -> bool:
    """True if code for one kind can be given a value of the other."""
    if isinstance(wide, Array) and isinstance(given, Array):
        same = (wide.element, wide.dims) == (given.element, given.dims)
        return same and wide.contiguous <= given.contiguous and wide.aligned <= given.aligned
    if isinstance(wide, TupleKind) and isinstance(given, TupleKind):
        return wide.type is given.type and are_covered(wide.kinds, given.kinds)
    return wide == given


def are_covered(wide: Signature, given: Signature) -> bool:
    """True if `covers` holds for one after the other."""
    return len(wide) == len(given) and all(map(covers, wide, given))


_SIGNED = {"b": False, "u": False, "i": True}


def leaves(kind: Kind) -> Iterator[str]:
    """The LLVM types of the words of which a value consists: of an array, its address, shape and strides."""
    if isinstance(kind, Array):
        yield from ("ptr", *("i64",) * (2 * kind.dims))
    elif isinstance(kind, TupleKind):
        for member in kind.kinds:
            yield from leaves(member)
    else:
        yield kind.llvm


def kind_of(value: Any) -> Kind:
    """The kind of an argument, or of a constant. Raises TypeError."""
    if isinstance(value, np.ndarray):
        kind, flags = value.dtype.kind, value.flags
        if kind not in _SIGNED or not value.dtype.isnative or value.ndim not in {1, 2}:
            raise TypeError(f"native code reads arrays of whole numbers with one or two dimensions, not {value.dtype}")
        bits = 1 if kind == "b" else BYTE * value.itemsize
        return Array(Int(bits, _SIGNED[kind]), value.ndim, bool(flags.c_contiguous), bool(flags.aligned))
    if isinstance(value, tuple):
        return TupleKind(tuple(map(kind_of, value)), type(value) if hasattr(value, "_fields") else None)
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, np.uint64):
        return U64
    if isinstance(value, (int, np.integer)):
        return I64
    raise TypeError(f"native code reads numbers, arrays and tuples of them, not {type(value).__name__}")


def count_arrays(kind: Kind) -> int:
    """The number of arrays in a value of this kind."""
    if isinstance(kind, TupleKind):
        return sum(map(count_arrays, kind.kinds))
    return int(isinstance(kind, Array))


def kind_name(kind: Kind) -> str:
    """The kind as a message has it."""
    if isinstance(kind, Array):
        how = "" if kind.contiguous else "strided "
        return f"a {how}{kind.dims}-dimensional array of {kind_name(kind.element)}"
    if isinstance(kind, TupleKind):
        return f"a tuple of {', '.join(map(kind_name, kind.kinds)) or 'nothing'}"
    if kind == BOOL:
        return "a boolean"
    return f"{'i' if getattr(kind, 'signed', True) else 'u'}{getattr(kind, 'bits', 64)}"
