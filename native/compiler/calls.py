"""Calls: of functions of the language, of its words, of casts and of the few functions of Python's that it has."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gapless.native.compiler.arrays import Arrays
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
    returned_type,
)
from gapless.native.intrinsics import ADDRESS_OF, BYTES_AT
from gapless.native.kinds import BOOL, I64, Array, Int, Kind, leaves
from gapless.native.language import NUMPY_CASTS, Cast, Function, Intrinsic


class CallEmitter(Arrays):
    """Lowers calls."""

    def of_call(self, node: ast.Call) -> Operand:
        """A call."""
        called = self.operand(node.func)
        if not isinstance(called, KnownObject):
            raise self.refused(node, "this is no function")
        of = called.value
        of = getattr(of, "compiled", of)
        args = self._given(node.args)
        named = {one.arg or "**": self.operand(one.value) for one in node.keywords}
        if named and not isinstance(of, Function) and not hasattr(of, "_fields"):
            raise self.refused(node, "its arguments are given by position")
        if isinstance(of, Function):
            return self._called(of, args, named, node)
        if isinstance(of, type) and hasattr(of, "_fields"):
            return self._made(of, args, named, node)
        if isinstance(of, Intrinsic):
            return self._word(of, args, node)
        builtin = BUILTINS.get(of) if isinstance(of, type) or callable(of) else None
        cast = of if isinstance(of, Cast) else NUMPY_CASTS.get(of) if isinstance(of, type) else None
        if builtin is None and cast is None:
            raise self.refused(
                node, "only functions of the language are called, and len, min, max, int, bool and casts"
            )
        values = [self._number_in(one, node) if of is not len else one for one in args]
        if (len(values) != 1 and of not in {min, max}) or not values:
            raise self.refused(node, "this takes one argument, min and max several")
        if cast is not None:
            return self.cast_to(values[0], cast)  # type: ignore[arg-type]
        return builtin(self, values, node)  # type: ignore[misc]

    def _number_in(self, value: Operand, node: ast.AST) -> Value:
        if not isinstance(value, Value) or isinstance(value.kind, Array):
            raise self.refused(node, "it is given numbers")
        return value

    def _made(self, of: Any, args: list[Operand], named: dict[str, Operand], node: ast.AST) -> Members:
        fields = dict(zip(of._fields, args, strict=False)) | named
        for name, default in of._field_defaults.items():
            fields.setdefault(name, self.lifted(default, node))
        if fields.keys() != set(of._fields) or len(args) + len(named) > len(of._fields):
            raise self.refused(node, f"{of.__name__} has the members {', '.join(of._fields)}")
        return members([fields[name] for name in of._fields], of)

    def length(self, values: list[Any], node: ast.AST) -> Value:
        """The first dimension of an array, the number of a tuple's members."""
        (value,) = values
        if isinstance(value, Members):
            return number(len(value.values))
        if isinstance(value, KnownObject) and isinstance(value.value, tuple):
            return number(len(value.value))
        if isinstance(value, Value) and isinstance(value.kind, Array):
            return Value(I64, (value.shape[0],))
        raise self.refused(node, "arrays and tuples have a length")

    def _called(self, of: Function, args: list[Operand], named: dict[str, Operand], node: ast.AST) -> Lowered:
        names = of.parameters
        given = list(args)
        missing = len(names) - len(of.defaults)
        for at in range(len(args), len(names)):
            if names[at] not in named and at < missing:
                raise self.refused(node, f"{names[at]} is not given")
            given.append(named[names[at]] if names[at] in named else self.lifted(of.defaults[at - missing], node))
        if len(given) != len(names) or not named.keys() <= set(names[len(args) :]):
            raise self.refused(node, f"{of.__name__} takes {len(names)} arguments: {', '.join(names)}")
        kinds = tuple(one if isinstance(one, KnownObject) else one.kind for one in given)
        lowered = self.program.function(of, kinds)
        values = [one for one in given if not isinstance(one, KnownObject)]
        arrays = [array.origins for value in values for array in arrays_in(value)]
        for at in lowered.writes:
            if -1 in arrays[at]:
                raise self.refused(node, "a constant array is written to")
            self.writes |= arrays[at]
        words = [f"{llvm} {one}" for value in values for llvm, one in zip(leaves(value.kind), flat(value), strict=True)]
        if lowered.may_fail:
            words.append("ptr %failure")
        made = self._call(
            f'@"{lowered.name}"', lowered.answer, words, itertools.repeat(frozenset[int]().union(*arrays))
        )
        if lowered.may_fail:
            self.failed_below()
        return made

    def _call(self, name: str, answer: Kind, words: Sequence[str], origins: Iterator[frozenset[int]]) -> Lowered:
        whole, types = returned_type(answer), list(leaves(answer))
        if not types:
            self.write(f"call void {name}({', '.join(words)})")
            return NONE
        found = self.new(f"call {whole} {name}({', '.join(words)})")
        parts = (
            [found]
            if len(types) == 1
            else [self.new(f"extractvalue {whole} {found}, {at}") for at in range(len(types))]
        )
        return rebuilt(answer, iter(parts), origins)

    def _word(self, of: Intrinsic, args: list[Operand], node: ast.AST) -> Lowered:
        if of is BYTES_AT or of is ADDRESS_OF:
            return self._address_word(of, args, node)
        if len(args) != len(of.kinds):
            raise self.refused(node, f"{of.__name__} takes {len(of.kinds)} arguments")
        words = []
        for value, kind in zip(args, of.kinds, strict=True):
            made: Any = value
            if isinstance(kind, Int) and isinstance(value, Value) and isinstance(value.kind, Int):
                made = self.cast(value, kind)
            if made.kind != kind:
                raise self.refused(node, f"{of.__name__} takes values of other kinds")
            words += [f"{llvm} {one}" for llvm, one in zip(leaves(kind), flat(made), strict=True)]
        return self._call(self.program.word(of), of.answer, words, itertools.repeat(frozenset()))

    def _address_word(self, of: Intrinsic, args: list[Operand], node: ast.AST) -> Value:
        base: Any = args[0]
        if of is ADDRESS_OF:
            if not isinstance(base, Value) or not isinstance(base.kind, Array):
                raise self.refused(node, "an array has an address")
            return Value(I64, (self.new(f"ptrtoint ptr {base.parts[0]} to i64"),))
        address, length = (self.cast(self._number_in(one, node), I64).text for one in args)
        begin = self.new(f"inttoptr i64 {address} to ptr")
        return Value(Array(Int(8, signed=False), 1), (begin, length, "1"))


BUILTINS: dict[Any, Callable[[Any, list[Any], ast.AST], Operand]] = {
    len: CallEmitter.length,
    min: lambda self, values, _: self.least(values),
    max: lambda self, values, _: self.greatest(values),
    int: lambda self, values, _: self.cast(values[0], I64),
    bool: lambda self, values, _: self.cast(values[0], BOOL),
}
