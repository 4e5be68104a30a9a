"""Arrays: their elements and parts, within the function that is being lowered."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from typing import Any

from gapless.native.compiler.blocks import OUT_OF_BOUNDS
from gapless.native.compiler.values import (
    KnownObject,
    Lowered,
    Members,
    Operand,
    Value,
    arrays_in,
    flat,
    number,
    rebuilt,
)
from gapless.native.compiler.variables import Variables
from gapless.native.kinds import BOOL, I64, U64, Array, Int, leaves


class Arrays(Variables):
    """Reads and writes elements and parts of arrays."""

    def of_subscript(self, node: ast.Subscript) -> Operand:
        """A member of a tuple, an element or a part of an array."""
        base = self.operand(node.value)
        if isinstance(base, KnownObject):
            index = self.operand(node.slice)
            if isinstance(base.value, tuple) and isinstance(index, Value) and index.constant is not None:
                return self.lifted(base.value[index.constant], node)
            raise self.refused(
                node, "only tuples and arrays have members, and a tuple of functions has them by constants"
            )
        if isinstance(base, Members):
            return self._member(base, self.number_of(node.slice), node)
        return self.element(base, self._indices(node.slice), node)

    def _indices(self, node: ast.expr) -> list[Value | ast.Slice]:
        nodes = node.elts if isinstance(node, ast.Tuple) else [node]
        return [one if isinstance(one, ast.Slice) else self.number_of(one) for one in nodes]

    def _member(self, base: Members, index: Value, node: ast.AST) -> Lowered:
        known = index.constant
        if known is not None:
            if not -len(base.values) <= known < len(base.values):
                raise self.refused(node, f"the tuple has {len(base.values)} members")
            return base.values[known]
        kinds = set(base.kind.kinds)
        if len(kinds) != 1:
            raise self.refused(node, "members of several kinds are known by constants")
        found = list(flat(base.values[-1]))
        at = self.cast(index, I64).text
        if self.program.is_checked:
            self.failed_if(self.new(f"icmp uge i64 {at}, {len(base.values)}"), OUT_OF_BOUNDS)
        for place, one in enumerate(base.values[:-1]):
            is_it = self.new(f"icmp eq i64 {at}, {place}")
            found = [
                self.new(f"select i1 {is_it}, {llvm} {a}, {llvm} {b}")
                for llvm, a, b in zip(leaves(one.kind), flat(one), found, strict=True)
            ]
        origins = frozenset[int]().union(*(array.origins for array in arrays_in(base)))
        return rebuilt(base.values[0].kind, iter(found), itertools.repeat(origins))

    def element(self, base: Lowered, indices: Sequence[Value | ast.Slice], node: ast.AST) -> Lowered:
        """An element of an array, or a part of it."""
        if not isinstance(base, Value) or not isinstance(base.kind, Array):
            raise self.refused(node, "only tuples and arrays have members")
        part = self._part(base, indices, node)
        if part.kind.dims:  # type: ignore[union-attr]
            return part
        return self._loaded(part)

    def _loaded(self, place: Value) -> Value:
        kind: Any = place.kind
        element: Int = kind.element
        raw = self.new(f"load {element.stored}, ptr {place.parts[0]}, align {kind.alignment}")
        if element == BOOL:
            return Value(BOOL, (self.new(f"icmp ne i8 {raw}, 0"),))
        if element.bits == 64:
            return Value(element, (raw,))
        return Value(I64, (self.new(f"{'sext' if element.signed else 'zext'} {element.llvm} {raw} to i64"),))

    def put(self, target: ast.Subscript, value: Lowered) -> None:
        """Store a number into an element, or into all elements of a part."""
        base = self.value(target.value)
        if not isinstance(base, Value) or not isinstance(base.kind, Array):
            raise self.refused(target, "only arrays are written to")
        if not isinstance(value, Value):
            raise self.refused(target, "a number is stored, in one element or in many, or an array is copied")
        if -1 in base.origins:
            raise self.refused(target, "a constant array is not written to")
        self.writes |= base.origins
        place = self._part(base, self._indices(target.slice), target)
        if isinstance(value.kind, Array) and value.kind.dims != place.kind.dims:  # type: ignore[union-attr]
            raise self.refused(target, "an array is copied into a part of as many dimensions")
        self._fill(place, value)

    def _fill(self, place: Value, value: Value) -> None:
        """Store a number everywhere, or element by element what lies in another array, from the first one on."""
        kind: Any = place.kind
        if not kind.dims:
            value = self._loaded(value) if isinstance(value.kind, Array) else value
            stored = self._as_stored(value, kind.element)
            self.write(f"store {kind.element.stored} {stored}, ptr {place.parts[0]}, align {kind.alignment}")
            return
        length = place.shape[0]
        if isinstance(value.kind, Array):
            if self.program.is_checked:
                self.failed_if(self.new(f"icmp ne i64 {length}, {value.shape[0]}"), OUT_OF_BOUNDS)
            length = self.least([Value(I64, (length,)), Value(I64, (value.shape[0],))]).text
        self.count += 1
        counter = f"%c{self.count}"
        self.places.append(f"  {counter} = alloca i64")
        self.write(f"store i64 0, ptr {counter}")
        test, inside, after = self.label(), self.label(), self.label()
        self.begin(test)
        at = self.new(f"load i64, ptr {counter}")
        self.end(f"br i1 {self.new(f'icmp slt i64 {at}, {length}')}, label %{inside}, label %{after}")
        self.begin(inside)
        each = [Value(I64, (at,))]
        self._fill(self._indexed(place, each), self._indexed(value, each) if isinstance(value.kind, Array) else value)
        self.write(f"store i64 {self.new(f'add nsw i64 {at}, 1')}, ptr {counter}")
        self.end(f"br label %{test}")
        self.begin(after)

    def _as_stored(self, value: Value, element: Int) -> str:
        if element == BOOL:
            return self.new(f"zext i1 {self.cast(value, BOOL).text} to i8")
        wide = self.cast(value, I64).text if value.kind == BOOL else value.text
        return wide if element.bits == 64 else self.new(f"trunc i64 {wide} to {element.llvm}")

    def _part(self, base: Value, indices: Sequence[Value | ast.Slice], node: ast.AST) -> Value:
        """The part of an array that indices and slices leave: of no dimension, an element's place."""
        kind: Any = base.kind
        if len(indices) > kind.dims:
            raise self.refused(node, f"the array has {kind.dims} dimensions")
        if not any(isinstance(one, ast.Slice) for one in indices):
            numbers = [self._index(one, at, base, node) for at, one in enumerate(indices)]  # type: ignore[arg-type]
            return self._indexed(base, numbers)
        starts, shape, strides = [], [], []
        for at in range(kind.dims):
            one = indices[at] if at < len(indices) else ast.Slice()
            if isinstance(one, ast.Slice):
                begin, low, high = self._ends(one, base.shape[at], node)
                starts.append(begin)
                shape.append(self.new(f"sub i64 {high.text}, {low.text}"))
                strides.append(base.strides[at])
            else:
                starts.append(self._index(one, at, base, node))
        last = kind.contiguous and (kind.dims == 1 or not isinstance(indices[0], ast.Slice))
        whole_rows = kind.contiguous and kind.dims == 2 and len(indices) == 1
        made = Array(kind.element, len(shape), last or whole_rows, kind.aligned)
        return Value(made, (self._address(base, starts), *shape, *strides), base.origins)

    def _index(self, index: Value, at: int, base: Value, node: ast.AST) -> Value:
        """An index, as it is. In checked code it must lie within the array."""
        if index.constant is not None and index.kind != U64 and index.constant < 0:
            raise self.refused(node, "an index counts from the beginning: write len(…) - …")
        made = self.cast(index, I64)
        if self.program.is_checked:
            self.failed_if(self.new(f"icmp uge i64 {made.text}, {base.shape[at]}"), OUT_OF_BOUNDS)
        return made

    def _ends(self, node: ast.Slice, length: str, at: ast.AST) -> tuple[Value, Value, Value]:
        """The beginning of a slice, and both its ends within the array, as Python has them.

        One that begins beyond the array's end has no element: where it lies does not matter.
        """
        if node.step is not None:
            raise self.refused(at, "a slice has no step")
        ends, begin = [], number(0)
        for end, otherwise in ((node.lower, number(0)), (node.upper, Value(I64, (length,)))):
            if end is None:
                ends.append(otherwise)
                continue
            value = self.cast(self.number_of(end), I64)
            if value.constant is not None and value.constant < 0:
                raise self.refused(at, "an index counts from the beginning: write len(…) - …")
            if value.constant is None and self.program.is_checked:
                self.failed_if(self.new(f"icmp slt i64 {value.text}, 0"), OUT_OF_BOUNDS)
            begin = value if end is node.lower else begin
            if value.constant != 0:
                value = self.least([value, Value(I64, (length,))])
            ends.append(value)
        low, high = ends
        if node.upper is not None:
            high = self.greatest([high, low])
        return begin, low, high

    def _address(self, base: Value, indices: Sequence[Value]) -> str:
        kind: Any = base.kind
        if kind.dims == 1 and kind.contiguous:
            return self.new(f"getelementptr inbounds {kind.element.stored}, ptr {base.parts[0]}, i64 {indices[0].text}")
        at = ""
        for index, stride in zip(indices, base.strides, strict=False):
            part = self.new(f"mul nsw i64 {index.text}, {stride}")
            at = self.new(f"add nsw i64 {at}, {part}") if at else part
        return self.new(f"getelementptr inbounds i8, ptr {base.parts[0]}, i64 {at}")

    def _indexed(self, base: Value, indices: Sequence[Value]) -> Value:
        kind: Any = base.kind
        left = kind.dims - len(indices)
        made = Array(kind.element, left, kind.contiguous, kind.aligned)
        shape, strides = base.shape[len(indices) :], base.strides[len(indices) :]
        return Value(made, (self._address(base, indices), *shape, *strides), base.origins)
