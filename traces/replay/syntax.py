"""Short constructors for syntax trees of the native language."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "//": ast.FloorDiv, "%": ast.Mod,
}  # fmt: skip
COMPARED: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq, "!=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip


def name(of: str) -> ast.Name:
    """Make a name that is read."""
    return ast.Name(of, ast.Load())


def constant(value: int) -> ast.expr:
    """Make a number."""
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def binary(left: ast.expr, sign: str, right: ast.expr) -> ast.BinOp:
    """Make an operation on numbers."""
    return ast.BinOp(left, BINARY[sign](), right)


def compared(left: ast.expr, sign: str, right: ast.expr) -> ast.Compare:
    """Make a comparison of two numbers."""
    return ast.Compare(left, [COMPARED[sign]()], [right])


def not_between(low: int, value: str, high: int) -> ast.expr:
    """Make the test that a number lies outside of two others, or is one of them."""
    between = ast.Compare(constant(low), [ast.Lt(), ast.Lt()], [name(value), constant(high)])
    return ast.UnaryOp(ast.Not(), between)


def any_of(some: Sequence[ast.expr]) -> ast.expr:
    """Make the test that one of several is true."""
    return some[0] if len(some) == 1 else ast.BoolOp(ast.Or(), list(some))


def call(function: str, *args: ast.expr) -> ast.Call:
    """Make a call by position."""
    return ast.Call(name(function), list(args), [])


def names(some: Iterable[str]) -> list[ast.expr]:
    """Make several names that are read."""
    return [name(one) for one in some]


def item(array: str, *places: ast.expr) -> ast.Subscript:
    """Make an element of an array."""
    return ast.Subscript(name(array), _places(places), ast.Load())


def _places(places: Sequence[ast.expr]) -> ast.expr:
    return places[0] if len(places) == 1 else ast.Tuple(list(places), ast.Load())


def assign(target: str, value: ast.expr) -> ast.stmt:
    """Make an assignment to a name."""
    return ast.Assign([ast.Name(target, ast.Store())], value)


def store(array: str, place: ast.expr, value: ast.expr) -> ast.stmt:
    """Make an assignment to an element."""
    return ast.Assign([ast.Subscript(name(array), place, ast.Store())], value)


def give(value: ast.expr) -> ast.stmt:
    """Make a `return`."""
    return ast.Return(value)


def choose(test: ast.expr, then: list[ast.stmt], otherwise: list[ast.stmt] | None = None) -> ast.stmt:
    """Make an `if`."""
    return ast.If(test, then, otherwise or [])


def function(called: str, parameters: Iterable[str], body: list[ast.stmt]) -> ast.FunctionDef:
    """Make a function; every node of it has a line."""
    given = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
    made: ast.FunctionDef = _definition(name=called, args=given, body=body, decorator_list=[])
    return ast.fix_missing_locations(made)


_definition: Callable[..., ast.FunctionDef] = ast.FunctionDef  # whose fields are others in each version of Python
