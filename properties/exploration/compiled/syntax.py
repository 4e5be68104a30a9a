"""Syntax trees of functions in the language of native code: expressions and statements of few words."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Expression = ast.expr | str | int
"""An expression: a syntax tree, a name, or a number."""
Block = list[ast.stmt]

_OPERATORS: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "&": ast.BitAnd, "|": ast.BitOr, "<<": ast.LShift,
}  # fmt: skip
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "==": ast.Eq, "!=": ast.NotEq,
}  # fmt: skip
_LOAD, _STORE = ast.Load(), ast.Store()


def expression(of: Expression) -> ast.expr:
    """A name, a number or a tree as an expression."""
    if isinstance(of, str):
        return ast.Name(of, _LOAD)
    if isinstance(of, int):
        return ast.Constant(of) if of >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-of))
    return of


def binary(left: Expression, sign: str, right: Expression) -> ast.expr:
    """An operation on two numbers."""
    return ast.BinOp(expression(left), _OPERATORS[sign](), expression(right))


def joined(sign: str, parts: Sequence[Expression], none: int) -> ast.expr:
    """The operation on all parts, from left to right; `none` where there are none."""
    made = expression(parts[0] if parts else none)
    for part in parts[1:]:
        made = binary(made, sign, part)
    return made


def inverted(bits: Expression) -> ast.expr:
    """The other bits."""
    return ast.UnaryOp(ast.Invert(), expression(bits))


def negative(value: Expression) -> ast.expr:
    """The number with the other sign."""
    return ast.UnaryOp(ast.USub(), expression(value))


def compared(left: Expression, sign: str, right: Expression, *more: Any) -> ast.expr:
    """A comparison, or a chain of them."""
    chain = [sign, right, *more]
    signs = [_COMPARISONS[one]() for one in chain[::2]]
    return ast.Compare(expression(left), signs, [expression(one) for one in chain[1::2]])


def no(truth: ast.expr) -> ast.expr:
    """The contrary."""
    return ast.UnaryOp(ast.Not(), truth)


def all_of(truths: Sequence[ast.expr]) -> ast.expr:
    """All of them, of which there are some."""
    return truths[0] if len(truths) == 1 else ast.BoolOp(ast.And(), list(truths))


def call(function: str, *given: Expression) -> ast.expr:
    """A call."""
    return ast.Call(expression(function), [expression(one) for one in given], [])


def as_number(truth: ast.expr) -> ast.expr:
    """1 or 0."""
    return call("int64", truth)


def item(array: str, at: Expression) -> ast.Subscript:
    """An element of an array."""
    return ast.Subscript(expression(array), expression(at), _LOAD)


def part_from(array: str, at: Expression) -> ast.expr:
    """An array from an index on."""
    return ast.Subscript(expression(array), ast.Slice(expression(at)), _LOAD)


def assign(name: str, value: Expression) -> ast.stmt:
    """An assignment to a name."""
    return ast.Assign([ast.Name(name, _STORE)], expression(value))


def add_to(array: str, at: int, value: Expression) -> ast.stmt:
    """An element of an array becomes so much more."""
    place = ast.Subscript(expression(array), expression(at), _STORE)
    return ast.AugAssign(place, ast.Add(), expression(value))


def do(value: ast.expr) -> ast.stmt:
    """An expression, for what it does."""
    return ast.Expr(value)


def when(test: ast.expr, then: Block, otherwise: Block | None = None) -> ast.stmt:
    """A case distinction."""
    return ast.If(test, then or [ast.Pass()], otherwise or [])


def unless(test: ast.expr, then: Block) -> ast.stmt:
    """Statements for where a test fails."""
    return when(no(test), then)


def for_each(name: str, low: Expression, high: Expression, body: Block) -> ast.stmt:
    """A loop over the numbers between two, the second exclusive."""
    return ast.For(ast.Name(name, _STORE), call("range", low, high), body, [])


def as_long_as(test: ast.expr, body: Block) -> ast.stmt:
    """A loop."""
    return ast.While(test, body, [])


def answer(*values: Expression) -> ast.stmt:
    """The end of a function, with one value or several."""
    made = [expression(one) for one in values]
    return ast.Return(made[0] if len(made) == 1 else ast.Tuple(made, _LOAD))


def function(name: str, given: Iterable[str], body: Block) -> ast.FunctionDef:
    """A function."""
    arguments = ast.arguments([], [ast.arg(one) for one in given], None, [], [], None, [])
    made: Any = ast.FunctionDef(name, arguments, body, [], None)
    made.type_params = []  # as Python 3.12 and later have it
    return made  # type: ignore[no-any-return]


def names_in(*nodes: ast.AST) -> list[str]:
    """The names that are looked up in syntax trees, each once, in order."""
    return list(dict.fromkeys(_names(nodes)))


def _names(nodes: Iterable[Any]) -> Iterator[str]:
    pending = list(reversed(list(nodes)))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                yield node.id
            continue
        for name in reversed(node._fields):
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                pending.append(value)
            elif isinstance(value, list):
                pending += [one for one in reversed(value) if isinstance(one, ast.AST)]


def size(body: Block) -> int:
    """The number of expressions and statements."""
    return sum(isinstance(node, (ast.expr, ast.stmt)) for one in body for node in ast.walk(one))
