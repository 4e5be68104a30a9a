"""Blocks: the text of a function that is being lowered, and where it stands."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from gapless.native.compiler.values import KnownObject, Lowered, Operand, Value
from gapless.native.kinds import Array, Kind
from gapless.native.language import Function, Intrinsic, LanguageError

OUT_OF_BOUNDS, BY_ZERO = 1, 2
"""Reasons for which native code ends before it has an answer."""


@dataclass(frozen=True)
class LoweredFunction:
    """A function as LLVM has it.

    `may_fail`: it is handed the place where a failure is noted, last · `writes`: the arrays among its parameters, by
    number, into which it writes.
    """

    name: str
    answer: Kind
    may_fail: bool
    writes: frozenset[int]


class ProgramText(Protocol):
    """The functions, constants and intrinsics of one piece of object code, collected during lowering."""

    @property
    def is_checked(self) -> bool:
        """True if every index is compared with the array's shape."""

    def function(self, of: Function, kinds: tuple[Any, ...]) -> LoweredFunction:
        """The function for arguments of these kinds."""

    def array(self, value: np.ndarray[Any, Any]) -> Value:
        """A constant array."""

    def word(self, of: Intrinsic) -> str:
        """The name of an intrinsic's function."""


class BlockWriter:
    """Writes the text of a function, block by block.

    `forced`: the kinds of variables that an earlier round has found, None for the answer · `origins`: of variables.
    """

    expressions: ClassVar[Mapping[type, Callable[[Any, Any], Operand]]]
    """The method that lowers each kind of expression."""

    def __init__(
        self, program: ProgramText, of: Function, forced: dict[str | None, Kind], origins: dict[str, frozenset[int]]
    ) -> None:
        self.program, self.of, self.forced, self.origins = program, of, forced, origins
        self.node = of.node
        self.lines: list[str] = []
        self.places: list[str] = []
        self.count = 0
        self.variables: dict[str, tuple[Kind, list[str]]] = {}
        self.parameters: dict[str, Operand] = {}
        self.assigned: set[str] = set()
        self.stored: set[str] = set()
        self.reached: dict[str, set[str]] = {}
        self.choices = 0
        self.is_ended = False
        self.may_fail = False
        self.failures: set[int] = set()
        self.writes: set[int] = set()

    # -- pieces of text

    def new(self, what: str) -> str:
        """A value of LLVM's."""
        self.count += 1
        self.lines.append(f"  %t{self.count} = {what}")
        return f"%t{self.count}"

    def write(self, line: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {line}")

    def label(self) -> str:
        """A name for a block."""
        self.count += 1
        return f"l{self.count}"

    def begin(self, label: str) -> None:
        """A block begins; the one before it leads there unless it has ended."""
        if not self.is_ended:
            self.write(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.is_ended = False

    def arrive(self, label: str) -> None:
        """A block begins to which conditions have led: assigned is what is so on each way."""
        self.assigned = set(self.reached.get(label, self.assigned))
        self.begin(label)

    def begin_at(self, label: str) -> None:
        """A block begins among lines that are put in their place later."""
        self.lines.append(f"{label}:")
        self.is_ended = False

    def end(self, line: str) -> None:
        """The block ends with this instruction."""
        if not self.is_ended:
            self.write(line)
            self.is_ended = True

    def failed_if(self, condition: str, code: int) -> None:
        """End with a failure where the condition is true."""
        self.may_fail = True
        self.failures.add(code)
        on = self.label()
        self.end(f"br i1 {condition}, label %failed.{code}, label %{on}")
        self.begin(on)

    def failed_below(self) -> None:
        """End where a function that was called has failed."""
        self.may_fail = True
        noted = self.new("load i64, ptr %failure")
        on = self.label()
        self.end(f"br i1 {self.new(f'icmp ne i64 {noted}, 0')}, label %failed, label %{on}")
        self.begin(on)

    def refused(self, node: ast.AST, why: str) -> LanguageError:
        """An error that names the place."""
        line = getattr(node, "lineno", None)
        place = f"{self.of.file}:{line}" if line else self.of.file
        text = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
        return LanguageError(f"{place}: {self.of.__name__}: {text[:120]}: {why}")

    # -- operands

    def operand(self, node: ast.expr) -> Operand:
        """A value, or an object that is known while the function is lowered."""
        lower = self.expressions.get(type(node))
        if lower is None:
            raise self.refused(node, "the language has no such expression")
        return lower(self, node)

    def value(self, node: ast.expr) -> Lowered:
        """A value."""
        found = self.operand(node)
        if isinstance(found, KnownObject):
            raise self.refused(node, "this is known while a function is compiled, and no value of the language")
        return found

    def number_of(self, node: ast.expr) -> Value:
        """A number."""
        found = self.operand(node)
        if not isinstance(found, Value) or isinstance(found.kind, Array):
            raise self.refused(node, "a number is asked for")
        return found
