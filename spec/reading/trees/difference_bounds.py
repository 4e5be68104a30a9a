"""Consequences of the answers so far: a question that has but one answer left is not asked by compiled code.

Most questions of a step compare two numbers, and so do most properties. From `flushed <= to` and `to <= committed`
follows `flushed <= committed`, by nothing but the order of whole numbers: a sum of differences. A step property that
its step's own needs make true costs nothing then.

`Answers(turns).known` is a `forking.Known` for `trees.tree_of`: it knows what follows from these answers, given as
(question, answer), and from the path so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gapless.spec import forking
from gapless.spec.reading.trees.terms import CONTRARY, Constant, Negative, Operation, Term

Sum = tuple[tuple[tuple[Term, int], ...], int]
"""Terms with their factors, in order, and what is added to them."""
Difference = tuple[Term | None, Term | None, int]
"""(x, y, c): x - y ≤ c. None is 0."""

LONGEST = 60  # questions before one: behind more of them what follows is not looked for
KEPT = 1 << 16  # terms of which the differences are kept


class Answers:
    """Answers that were given before a function is read: `known` says what follows from them and the path so far."""

    def __init__(self, turns: Sequence[tuple[Term, bool]] = ()) -> None:
        self.met = dict(turns)
        self.count = len(turns)
        self._facts = _by_y(one for question, answer in turns for one in _bounds_of(question, answer))
        self._distances: dict[tuple[Term | None, tuple[Difference, ...]], dict[Term | None, int]] = {}

    def known(self, path: forking.Path, question: Any) -> bool | None:
        """The answer to a question where those before it leave no other."""
        before = self._met(path, question)
        if before is not None:
            return before
        if isinstance(question, Operation) and question.compares:
            before = self._met(path, Operation(CONTRARY[question.sign], question.left, question.right))
            if before is not None:
                return not before
        yes, no = _ways(question), _contrary(question)
        if not yes or self.count + len(path.turns) > LONGEST:
            return None
        more = tuple(  # what is settled follows from the others, and adds nothing
            one for turn in path.turns if not turn.settled for one in _bounds_of(turn.question, turn.answer)
        )
        for answer, ways in ((True, yes), (False, no)):
            if any(all(self._implied(more, one) for one in way) for way in ways):
                return answer
        return None

    def _met(self, path: forking.Path, question: Any) -> bool | None:
        """The answer that this very question was given."""
        before = path.asked_before(question)
        return self.met.get(question) if before is None else before

    def _implied(self, more: tuple[Difference, ...], wanted: Difference) -> bool:
        """True if x - y ≤ c is a sum of facts: the shortest way from y to x is no longer than c."""
        x, y, most = wanted
        if (y, more) not in self._distances:
            self._distances[y, more] = _distances(y, self._facts, _by_y(more))
        return self._distances[y, more].get(x, most + 1) <= most


def follows(path: forking.Path, question: Any) -> bool | None:
    """The answer to a question where those before it on its path leave no other."""
    return Answers().known(path, question)


_ByY = Mapping[Term | None, Sequence[tuple[Term | None, int]]]
"""By y: x and c, where x - y ≤ c."""


def _by_y(differences: Iterable[Difference]) -> _ByY:
    ways: dict[Term | None, list[tuple[Term | None, int]]] = {}
    for x, y, most in differences:
        ways.setdefault(y, []).append((x, most))
    return ways


def _distances(y: Term | None, *facts: _ByY) -> dict[Term | None, int]:
    """The most by which each x is greater than y.

    A shortest way passes nothing twice, unless facts contradict one another: then this is never reached, and any answer
    is right.
    """
    far: dict[Term | None, int] = {y: 0}
    changed, rounds = [y], 0
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


@lru_cache(maxsize=KEPT)
def _bounds_of(question: Term, answer: bool) -> tuple[Difference, ...]:
    """The differences that an answer tells of."""
    ways = _ways(question) if answer else _contrary(question)
    return ways[0] if len(ways) == 1 else ()


@lru_cache(maxsize=KEPT)
def _ways(question: Term) -> tuple[tuple[Difference, ...], ...]:
    """Meanings of its being true, one of which holds; none where it is no comparison of such sums."""
    return _of_sign(question.sign, question) if isinstance(question, Operation) and question.compares else ()


@lru_cache(maxsize=KEPT)
def _contrary(question: Term) -> tuple[tuple[Difference, ...], ...]:
    """Meanings of its being false, one of which holds."""
    compares = isinstance(question, Operation) and question.compares
    return _of_sign(CONTRARY[question.sign], question) if compares else ()  # type: ignore[attr-defined]


def _of_sign(sign: str, question: Any) -> tuple[tuple[Difference, ...], ...]:
    what = _plus(sum_of(question.left), _times(sum_of(question.right), -1))
    ways = [_as_differences(one, what) for one in (["<", ">"] if sign == "!=" else [sign])]
    found = tuple(one for one in ways if one is not None)
    return found if len(found) == len(ways) else ()


@lru_cache(maxsize=KEPT)
def sum_of(term: Term) -> Sum:
    """A term as a sum; what is no sum is a part of its own."""
    match term:
        case Constant(number):
            return (), number
        case Negative(operand):
            return _times(sum_of(operand), -1)
        case Operation("+", left, right):
            return _plus(sum_of(left), sum_of(right))
        case Operation("-", left, right):
            return _plus(sum_of(left), _times(sum_of(right), -1))
    return ((term, 1),), 0


def _plus(one: Sum, other: Sum) -> Sum:
    factors = dict(one[0])
    for term, factor in other[0]:
        factors[term] = factors.get(term, 0) + factor
    return tuple((term, factor) for term, factor in factors.items() if factor), one[1] + other[1]


def _times(one: Sum, by: int) -> Sum:
    return tuple((term, by * factor) for term, factor in one[0]), by * one[1]


def _at_most_0(what: Sum) -> Difference | None:
    """The difference that a sum of 0 or less expresses."""
    factors, more = what
    up = [term for term, factor in factors if factor == 1]
    down = [term for term, factor in factors if factor == -1]
    if len(up) + len(down) != len(factors) or len(up) > 1 or len(down) > 1:
        return None
    return up[0] if up else None, down[0] if down else None, -more


def _as_differences(sign: str, what: Sum) -> tuple[Difference, ...] | None:
    """The meaning of a comparison with 0, as differences that all hold; None where it means something else."""
    up, down = what, _times(what, -1)
    wanted = {
        "<=": [up], ">=": [down], "==": [up, down],
        "<": [(up[0], up[1] + 1)], ">": [(down[0], down[1] + 1)],
    }.get(sign, ())  # fmt: skip
    made = [_at_most_0(one) for one in wanted]
    found = tuple(one for one in made if one is not None)
    return found if made and len(found) == len(made) else None
