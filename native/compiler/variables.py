"""Variables: names and what they stand for, within the function that is being lowered."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from gapless.native.compiler.arithmetic import Arithmetic
from gapless.native.compiler.values import (
    NONE,
    KnownObject,
    Lowered,
    Members,
    Operand,
    Value,
    arrays_in,
    flat,
    members,
    number,
    rebuilt,
    truth,
)
from gapless.native.kinds import BOOL, I64, U64, Array, Int, Kind, TupleKind, count_arrays, kind_name, leaves


class Again(Exception):  # noqa: N818 - a signal within this module, not an error
    """The kind of a variable turned out to be another one: the function is lowered again."""


class Variables(Arithmetic):
    """Keeps variables, and finds what names stand for."""

    def store(self, name: str, value: Lowered, node: ast.AST) -> None:
        """Assign to a variable; its first kind is the one it keeps."""
        if name not in self.variables:
            kind = self.forced.get(name, value.kind)
            places = []
            for llvm in leaves(kind):
                self.count += 1
                self.places.append(f"  %v{self.count} = alloca {llvm}")
                places.append(f"%v{self.count}")
            self.variables[name] = kind, places
        kind, places = self.variables[name]
        value = self.fitted(value, kind, name, node)
        for llvm, place, one in zip(leaves(kind), places, flat(value), strict=True):
            self.write(f"store {llvm} {one}, ptr {place}")
        for at, array in enumerate(arrays_in(value)):
            key = f"{name} {at}"
            self.origins[key] = self.origins.get(key, frozenset()) | array.origins
        self.assigned.add(name)

    def load(self, name: str) -> Lowered:
        """The value of a variable."""
        kind, places = self.variables[name]
        words = [self.new(f"load {llvm}, ptr {place}") for llvm, place in zip(leaves(kind), places, strict=True)]
        origins = (self.origins.get(f"{name} {at}", frozenset()) for at in range(count_arrays(kind)))
        return rebuilt(kind, iter(words), origins)

    def fitted(self, value: Lowered, kind: Kind, name: str | None, node: ast.AST) -> Lowered:
        """The value as one of this kind. Raises Again where the variable's kind has to be a wider one."""
        wanted = self._joined(kind, value)
        if wanted is None:
            of = "the answer" if name is None else name
            raise self.refused(
                node, f"{of} is {kind_name(kind)} elsewhere, and {kind_name(value.kind)} here: a variable has one kind"
            )
        if wanted != kind:
            self.forced[name] = wanted
            raise Again
        return self._as(value, kind)

    def _joined(self, kind: Kind, value: Lowered) -> Kind | None:  # noqa: PLR0911 - a pair of kinds a case
        """The kind that has room for all of a kind and for a value, if there is one."""
        if value.kind == kind:
            return kind
        if isinstance(value, Members) and isinstance(kind, TupleKind) and len(value.values) == len(kind.kinds):
            every = [self._joined(one, member) for one, member in zip(kind.kinds, value.values, strict=True)]
            named = kind.type if kind.type is value.kind.type else None
            return None if None in every else TupleKind(tuple(every), named)  # type: ignore[arg-type]
        if isinstance(kind, Array) and isinstance(value.kind, Array):
            if (kind.element, kind.dims) != (value.kind.element, value.kind.dims):
                return None
            is_contiguous = kind.contiguous and value.kind.contiguous
            return Array(kind.element, kind.dims, is_contiguous, kind.aligned and value.kind.aligned)
        if not isinstance(kind, Int) or not isinstance(value.kind, Int):
            return None
        if {kind, value.kind} == {BOOL, I64}:
            return I64
        known = value.constant
        return kind if kind == U64 and known is not None and known >= 0 else None

    def _as(self, value: Lowered, kind: Kind) -> Lowered:
        """The value as one of a kind that has room for it."""
        if isinstance(value, Members) and isinstance(kind, TupleKind):
            fits = (self._as(one, other) for one, other in zip(value.values, kind.kinds, strict=True))
            return Members(kind, tuple(fits))
        if isinstance(value, Value) and isinstance(kind, Int) and value.kind != kind:
            return self.cast(value, kind)
        return Value(kind, value.parts, value.origins) if isinstance(value, Value) else value  # type: ignore[arg-type]

    # -- names and members

    def lifted(self, value: Any, node: ast.AST) -> Operand:
        """A Python object as an operand."""
        if isinstance(value, (bool, np.bool_)):
            return truth(value=bool(value))
        if isinstance(value, np.uint64):
            return Value(U64, (number(int(value)).text,))
        if isinstance(value, (int, np.integer)):
            if not -(1 << 63) <= value < 1 << 64:
                raise self.refused(node, f"{value} has more than 64 bits")
            return number(int(value))
        if isinstance(value, np.ndarray):
            return self.program.array(value)
        if isinstance(value, tuple):
            made = [self.lifted(one, node) for one in value]
            if all(isinstance(one, (Value, Members)) for one in made):
                return members(made, type(value) if hasattr(value, "_fields") else None)  # type: ignore[arg-type]
        return KnownObject(value)

    def of_constant(self, node: ast.Constant) -> Operand:
        """A number that stands there, or None."""
        if node.value is None:
            return NONE
        if isinstance(node.value, float):
            raise self.refused(node, "the language has whole numbers only")
        return self.lifted(node.value, node)

    def of_name(self, node: ast.Name) -> Operand:
        """A variable, a parameter or a global name."""
        name = node.id
        if name in self.variables:
            if name not in self.assigned:
                raise self.refused(node, "it may have no value here: assign one on every way that leads here")
            return self.load(name)
        if name in self.parameters:
            return self.parameters[name]
        if name in self.stored:
            raise self.refused(node, "it is assigned later on: assign a value before")
        try:
            return self.lifted(self.of.named(name), node)
        except KeyError:
            raise self.refused(
                node, "there is no such name: native code sees parameters, variables and globals"
            ) from None

    def of_attribute(self, node: ast.Attribute) -> Operand:
        """A member of a named tuple, an array's shape, or what a module or class has."""
        base = self.operand(node.value)
        if isinstance(base, KnownObject):
            found = getattr(base.value, node.attr)
            return self.lifted(getattr(found, "compiled", found), node)
        if isinstance(base, Members) and base.kind.type and node.attr in base.kind.type._fields:  # type: ignore[attr-defined]
            return base.values[base.kind.type._fields.index(node.attr)]  # type: ignore[attr-defined]
        if isinstance(base, Value) and isinstance(base.kind, Array):
            if node.attr == "shape":
                return members([Value(I64, (one,)) for one in base.shape])
            if node.attr == "size" and base.kind.dims == 1:
                return Value(I64, (base.shape[0],))
        raise self.refused(node, "named tuples have members, arrays a shape, and nothing else")

    def of_tuple(self, node: ast.Tuple) -> Operand:
        """A tuple."""
        return members(self._given(node.elts))  # type: ignore[arg-type]

    def _given(self, nodes: Sequence[ast.expr]) -> list[Operand]:
        found: list[Operand] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                value = self.operand(node.value)
                if not isinstance(value, Members):
                    raise self.refused(node, "a tuple is asked for")
                found += value.values
            else:
                found.append(self.operand(node))
        return found

    def of_named(self, node: ast.NamedExpr) -> Operand:
        """A value, which a variable keeps."""
        value = self.value(node.value)
        self.store(node.target.id, value, node)
        return value
