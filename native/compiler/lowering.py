"""Lowering: a function of the language, and the kinds of its arguments, to LLVM's text.

A function is walked once, statement by statement. Every variable has a place on the stack, which LLVM turns into
registers. A function is lowered once for each choice of kinds; what it calls is lowered on the way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from gapless.native.compiler.blocks import LoweredFunction
from gapless.native.compiler.statements import OpenLoop, Statements
from gapless.native.compiler.values import NONE, KnownObject, Operand, Value, rebuilt, returned_type
from gapless.native.compiler.variables import Again
from gapless.native.kinds import NOTHING, Array, Int, Kind, count_arrays, leaves
from gapless.native.language import Function, Intrinsic, LanguageError

ROUNDS = 12  # in which the kinds of a function's variables are settled


class Program:
    """Functions of one piece of object code.

    `features`: of the processor · `is_checked`: every index is compared with the array's shape.
    """

    def __init__(self, features: str = "", *, is_checked: bool = False) -> None:
        self.features = set(features.split(","))
        self.is_checked = is_checked
        self.texts: list[str] = []
        self._functions: dict[Any, LoweredFunction] = {}
        self._constants: dict[int, tuple[Any, Value]] = {}
        self._words: dict[int, tuple[Intrinsic, str]] = {}
        self._declared: set[str] = set()
        self._pending: list[Function] = []
        self._alive: list[Function] = []
        self._count = 0

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n".join(self.texts)

    def function(self, of: Function, kinds: tuple[Any, ...]) -> LoweredFunction:
        """The function for arguments of these kinds. Raises LanguageError."""
        key = id(of), kinds
        if key not in self._functions:
            if any(one is of for one in self._pending):
                raise LanguageError(f"{of.file}: {of.__name__} calls itself: the language has no recursion")
            self._pending.append(of)
            self._count += 1
            name = f"{of.__name__}.{self._count}"
            forced: dict[str | None, Kind] = {}
            origins: dict[str, frozenset[int]] = {}
            for _ in range(ROUNDS):
                lowering = FunctionEmitter(self, of, kinds, name, forced, origins)
                if lowering.settled():
                    break
            else:
                raise LanguageError(f"{of.file}: {of.__name__}: the kinds of its variables do not settle")
            self._pending.pop()
            self.texts.append(lowering.text())
            self._functions[key] = LoweredFunction(
                name, lowering.answer or NOTHING, lowering.may_fail, frozenset(lowering.writes)
            )
            self._alive.append(of)  # its address is a key
        return self._functions[key]

    def array(self, value: np.ndarray[Any, Any]) -> Value:
        """A constant array."""
        if id(value) not in self._constants:
            element = (
                Int(1, signed=False) if value.dtype.kind == "b" else Int(8 * value.itemsize, value.dtype.kind == "i")
            )
            data = np.ascontiguousarray(value)
            bits = data.view(f"i{data.itemsize}").ravel().tolist()
            name = f"@constant.{len(self._constants)}"
            body = ", ".join(f"{element.stored} {one}" for one in bits)
            self.texts.append(f"{name} = internal constant [{len(bits)} x {element.stored}] [{body}], align 16")
            shape, strides = map(str, data.shape), map(str, data.strides)
            made = Value(Array(element, data.ndim), (name, *shape, *strides), frozenset({-1}))
            self._constants[id(value)] = value, made
        return self._constants[id(value)][1]

    def word(self, of: Intrinsic) -> str:
        """The name of an intrinsic's function."""
        if id(of) not in self._words:
            name = f'@"word.{of.__name__}.{len(self._words)}"'
            self._words[id(of)] = of, name
            for line in of.declares:
                if line not in self._declared:
                    self._declared.add(line)
                    self.texts.append(line)
            body = of.otherwise if of.needs and of.needs not in self.features else of.llvm
            given = ", ".join(_parameters_of(of))
            head = f"define internal {returned_type(of.answer)} {name}({given}) alwaysinline nounwind {{"
            self.texts.append("\n".join([head, body.strip("\n"), "}"]))
        return self._words[id(of)][1]


def _parameters_of(of: Intrinsic) -> Iterator[str]:
    for name, kind in zip(of.parameters, of.kinds, strict=True):
        for at, one in enumerate(leaves(kind)):
            yield f"{one} %{name}{f'.{at}' if at else ''}"


class FunctionEmitter(Statements):
    """One function, lowered for arguments of some kinds."""

    expressions: ClassVar[Mapping[type, Callable[[Any, Any], Operand]]] = {
        ast.Constant: Statements.of_constant,
        ast.Name: Statements.of_name,
        ast.Attribute: Statements.of_attribute,
        ast.Tuple: Statements.of_tuple,
        ast.NamedExpr: Statements.of_named,
        ast.Subscript: Statements.of_subscript,
        ast.Call: Statements.of_call,
        ast.Compare: Statements.of_comparison,
        ast.BoolOp: Statements.of_logic,
        ast.IfExp: Statements.of_choice,
        ast.BinOp: Statements.of_operation,
        ast.UnaryOp: Statements.of_sign,
    }

    def __init__(
        self,
        program: Program,
        of: Function,
        kinds: Sequence[Any],
        name: str,
        forced: dict[str | None, Kind],
        origins: dict[str, frozenset[int]],
    ) -> None:
        super().__init__(program, of, forced, origins)
        self.kinds, self.name = kinds, name
        self.answer: Kind | None = forced.get(None)
        self.loops: list[OpenLoop] = []
        self.given: list[str] = []
        self._origins_before = dict(origins)

    def settled(self) -> bool:
        """Lower it. True if the kinds of all variables are known."""
        try:
            self._bind_parameters()
            self.block(self.node.body)
            if not self.is_ended:
                self.leave(NONE)
        except Again:
            return False
        return self.origins == self._origins_before

    def _bind_parameters(self) -> None:
        stored = {n.id for n in ast.walk(self.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.stored = stored
        arrays = 0
        if self.node.args.kwonlyargs or self.node.args.vararg or self.node.args.kwarg:
            raise self.refused(self.node, "parameters are given by position alone")
        for parameter, kind in zip(self.node.args.args, self.kinds, strict=True):
            if isinstance(kind, KnownObject):
                self.parameters[parameter.arg] = kind
                continue
            words = []
            for llvm in leaves(kind):
                words.append(f"%a{len(self.given)}")
                distinct = " noalias" if llvm == "ptr" and self.of.distinct else ""
                self.given.append(f"{llvm}{distinct} %a{len(self.given)}")
            numbers = iter([frozenset({arrays + at}) for at in range(count_arrays(kind))])
            arrays += count_arrays(kind)
            value = rebuilt(kind, iter(words), numbers)
            if parameter.arg in stored:
                self.store(parameter.arg, value, self.node)
            else:
                self.parameters[parameter.arg] = value

    def text(self) -> str:
        """The function."""
        kind = self.answer or NOTHING
        how = " alwaysinline" if self.of.inline else " noinline" if self.of.apart else ""
        given = [*self.given, *(["ptr noalias %failure"] if self.may_fail else [])]
        body = [*self.places, *self.lines]
        nothing = "ret void" if returned_type(kind) == "void" else f"ret {returned_type(kind)} zeroinitializer"
        if returned_type(kind) in {"i64", "i1"}:
            nothing = f"ret {returned_type(kind)} 0"
        for code in sorted(self.failures):
            body += [f"failed.{code}:", f"  store i64 {code}, ptr %failure", f"  {nothing}"]
        if self.may_fail:
            body += ["failed:", f"  {nothing}"]
        head = f'define internal {returned_type(kind)} @"{self.name}"({", ".join(given)}){how} nounwind {{'
        return "\n".join([head, *body, "}"])
