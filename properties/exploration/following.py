"""What follows from the answers so far: a question that has but one answer left is not asked by native code.

Most questions of a step compare two numbers, and so do most properties. From `s_flushed <= a_to` and
`a_to <= s_committed` follows `s_flushed <= s_committed`, by nothing but the order of whole numbers: a sum of
differences. A step property that its step's own needs make true costs nothing then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import Any

from gapless.spec import forking

Sum = tuple[tuple[tuple[str, int], ...], int]
"""Names with their factors, in order, and what is added to them."""
Difference = tuple[str, str, int]
"""(x, y, c): x - y ≤ c. An empty name is 0."""

SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
LONGEST = 60  # questions before one: behind more of them nobody looks for what follows


def follows(path: forking.Path, question: Any) -> bool | None:
    """The answer to a question where those before it leave no other."""
    before = path.asked_before(question)
    if before is not None:
        return before
    asked = _differences(question.text)
    if asked is None or len(path.turns) > LONGEST:
        return None
    facts = [one for turn in path.turns for one in _told(turn.question.text, answer=turn.answer)]
    if all(_implied(facts, one) for one in asked):
        return True
    others = _contrary(question.text)
    return False if others and any(all(_implied(facts, one) for one in ways) for ways in others) else None


def _implied(facts: list[Difference], wanted: Difference) -> bool:
    """Whether x - y ≤ c is a sum of facts: the shortest way from y to x is no longer than c."""
    x, y, most = wanted
    far = {y: 0}
    for _ in range(len(facts) + 1):
        changed = False
        for one, other, step in facts:
            if other in far and (one not in far or far[one] > far[other] + step):
                far[one], changed = far[other] + step, True
        if not changed:
            break
    return x in far and far[x] <= most


def _told(text: str, *, answer: bool) -> Iterator[Difference]:
    """The differences that an answer tells of."""
    if answer:
        yield from _differences(text) or ()
    else:
        ways = _contrary(text)
        if len(ways) == 1:
            yield from ways[0]


@cache
def _compared(text: str) -> tuple[str, Sum] | None:
    """A comparison of a sum with 0."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    return SIGNS[type(node.ops[0])], _sum(ast.BinOp(node.left, ast.Sub(), node.comparators[0]))


def _sum(node: ast.expr) -> Sum:
    match node:
        case ast.Constant(value=int(number)):
            return (), int(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _times(_sum(operand), -1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
            one, other = _sum(left), _times(_sum(right), 1 if isinstance(sign, ast.Add) else -1)
            factors = dict(one[0])
            for name, factor in other[0]:
                factors[name] = factors.get(name, 0) + factor
            return tuple(sorted((name, factor) for name, factor in factors.items() if factor)), one[1] + other[1]
    return ((ast.unparse(node), 1),), 0


def _times(one: Sum, by: int) -> Sum:
    return tuple((name, by * factor) for name, factor in one[0]), by * one[1]


def _at_most_0(what: Sum) -> Difference | None:
    """The difference that is said by a sum being 0 or less."""
    factors, more = what
    up = [name for name, factor in factors if factor == 1]
    down = [name for name, factor in factors if factor == -1]
    if len(up) + len(down) != len(factors) or len(up) > 1 or len(down) > 1:
        return None
    return (up or [""])[0], (down or [""])[0], -more


@cache
def _differences(text: str) -> tuple[Difference, ...] | None:
    """What a comparison says, as differences that all hold; None where it says something else."""
    found = _compared(text)
    return None if found is None else _as_differences(*found)


def _as_differences(sign: str, what: Sum) -> tuple[Difference, ...] | None:
    up = what
    down = _times(what, -1)
    wanted = {
        "<=": [up], ">=": [down], "==": [up, down],
        "<": [(up[0], up[1] + 1)], ">": [(down[0], down[1] + 1)],
    }.get(sign)  # fmt: skip
    made = [_at_most_0(one) for one in wanted or ()]
    return None if not made or None in made else tuple(one for one in made if one)


@cache
def _contrary(text: str) -> tuple[tuple[Difference, ...], ...]:
    """What its being false says: one of these."""
    found = _compared(text)
    if found is None:
        return ()
    sign, what = found
    signs = {"<=": ">", ">=": "<", "<": ">=", ">": "<=", "!=": "=="}
    ways = [_as_differences(one, what) for one in ([signs[sign]] if sign in signs else ["<", ">"])]
    return tuple(one for one in ways if one is not None) if None not in ways else ()
