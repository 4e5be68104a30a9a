"""What follows from the answers so far: a question that has but one answer left is not asked by native code.

Most questions of a step compare two numbers, and so do most properties. From `s_flushed <= a_to` and
`a_to <= s_committed` follows `s_flushed <= s_committed`, by nothing but the order of whole numbers: a sum of
differences. A step property that its step's own needs make true costs nothing then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from gapless.spec import forking

Sum = tuple[tuple[tuple[str, int], ...], int]
"""Names with their factors, in order, and what is added to them."""
Difference = tuple[str, str, int]
"""(x, y, c): x - y ≤ c. An empty name is 0."""

SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
LONGEST = 60  # questions before one: behind more of them nobody looks for what follows


class Answers:
    """What has been answered before a function is read: `known` says what follows from it, and from the path so far."""

    def __init__(self, turns: Sequence[forking.Turn] = ()) -> None:
        self.met = {turn.question.text: turn.answer for turn in turns}
        self.count = len(turns)
        self._facts = _by_y(one for turn in turns for one in _told(turn.question.text, turn.answer))
        self._distances: dict[tuple[str, tuple[Difference, ...]], dict[str, int]] = {}

    def known(self, path: forking.Path, question: Any) -> bool | None:
        """The answer to a question where those before it leave no other."""
        before = path.asked_before(question)
        if before is None:
            before = self.met.get(question.text)
        if before is not None:
            return before
        yes, no = _ways(question.text), _contrary(question.text)
        if not yes or self.count + len(path.turns) > LONGEST:
            return None
        more = tuple(  # what is settled follows from the others, and adds nothing
            one for turn in path.turns if not turn.settled for one in _told(turn.question.text, turn.answer)
        )
        for answer, ways in ((True, yes), (False, no)):
            if any(all(self._implied(more, one) for one in way) for way in ways):
                return answer
        return None

    def _implied(self, more: tuple[Difference, ...], wanted: Difference) -> bool:
        """Whether x - y ≤ c is a sum of facts: the shortest way from y to x is no longer than c."""
        x, y, most = wanted
        if (y, more) not in self._distances:
            self._distances[y, more] = _distances(y, self._facts, _by_y(more))
        return self._distances[y, more].get(x, most + 1) <= most


def follows(path: forking.Path, question: Any) -> bool | None:
    """The answer to a question where those before it on its path leave no other."""
    return Answers().known(path, question)


_ByY = Mapping[str, Sequence[tuple[str, int]]]
"""By y: x and c, where x - y ≤ c."""


def _by_y(differences: Iterable[Difference]) -> _ByY:
    ways: dict[str, list[tuple[str, int]]] = {}
    for x, y, most in differences:
        ways.setdefault(y, []).append((x, most))
    return ways


def _distances(y: str, *facts: _ByY) -> dict[str, int]:
    """How much each x is greater than y at most.

    A shortest way passes nothing twice, unless facts contradict one another: then nobody comes here, and any answer is
    right.
    """
    far, changed, rounds = {y: 0}, [y], 0
    while changed and rounds <= len(far):
        rounds += 1
        nearer = []
        for other in changed:
            for ways in facts:
                for one, step in ways.get(other, ()):
                    if one not in far or far[one] > far[other] + step:
                        far[one] = far[other] + step
                        nearer.append(one)
        changed = nearer
    return far


@cache
def _told(text: str, answer: bool) -> tuple[Difference, ...]:  # noqa: FBT001 - a function that is cached by both.
    """The differences that an answer tells of."""
    if answer:
        return _differences(text) or ()
    ways = _contrary(text)
    return ways[0] if len(ways) == 1 else ()


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
def _ways(text: str) -> tuple[tuple[Difference, ...], ...]:
    """What its being true says: one of these."""
    found = _compared(text)
    if found is None:
        return ()
    ways = [_as_differences(one, found[1]) for one in (["<", ">"] if found[0] == "!=" else [found[0]])]
    return tuple(one for one in ways if one is not None) if None not in ways else ()


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
