"""Ranges of the numbers that a compiled step computes with: every one of them must lie within 64 bits.

Whatever goes into a step (arguments, fields, values in Maps) lies within `LIMIT` of 0: a compiled reading looks at that
before a step, and at what it stores. The rest is an analysis of intervals over terms, which knows what the answers so
far say of single fields and arguments. `too_large` names the operations that may leave 64 bits. `guarded` makes a tree
that never computes them with such operands: it asks first how large these are, and where they are too large, the
outcome is LEFT_ALONE, for the plain functions to decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import product
from typing import Any

from gapless.spec.reading.trees.decision_trees import LEFT_ALONE, Branch, End, Tree, nodes
from gapless.spec.reading.trees.map_effects import Put
from gapless.spec.reading.trees.terms import (
    CONTRARY,
    NOTHING,
    TURNED,
    At,
    Constant,
    Count,
    MapTerm,
    Negative,
    Operation,
    Pair,
    Quantifier,
    Reads,
    Term,
    Variable,
    term_of,
)

LIMIT = 2**60  # all that goes into a step and comes out of it is less far from 0
WORD = 2**63
PLACE = 2**62  # keys and the ends of quantifiers: differences of two of them are computed as well
MOST = 20_000  # branches of a tree with guards; of a larger one, nothing is decided

Range = tuple[int, int]
"""The least and the greatest value, both inclusive."""
Known = Mapping[Term, Range]
"""The ranges of fields, arguments, variables and Map accesses of which more is known than that they are inputs."""

Offence = tuple[Term, int]
"""A term that may be farther from 0 than its bound, and the bound."""

INPUT: Range = (1 - LIMIT, LIMIT - 1)
COUNTED: Range = (-2 * LIMIT, 2 * LIMIT)  # the numbers that a quantifier goes through; of others, it decides nothing
MOST_COUNTED = 2**40  # a quantifier goes through no more numbers than there are keys in a window, and a few
TRUTH: Range = (0, 1)


def range_of(term: Term, known: Known) -> Range:  # noqa: PLR0911 - a kind of term a case
    """The least and greatest value of a term, computed without bounds."""
    match term:
        case Constant(value):
            return value, value
        case Operation(sign, left, right) if not term.compares:
            return _computed(sign, range_of(left, known), range_of(right, known))
        case Count(begin, end):
            return 0, min(max(range_of(end, known)[1] - range_of(begin, known)[0], 0), MOST_COUNTED)
        case Operation() | Quantifier():
            return TRUTH
        case Negative(operand):
            low, high = range_of(operand, known)
            return -high, -low
        case Variable():
            return known.get(term, COUNTED)
        case Pair(first, second):  # of both keys
            (one, most), (other, high) = range_of(first, known), range_of(second, known)
            return min(one, other), max(most, high)
    return known.get(term, INPUT)


def _computed(sign: str, one: Range, other: Range) -> Range:  # noqa: PLR0911 - a sign a case
    if sign == "+":
        return one[0] + other[0], one[1] + other[1]
    if sign == "-":
        return one[0] - other[1], one[1] - other[0]
    if sign == "*":
        corners = [a * b for a, b in product(one, other)]
        return min(corners), max(corners)
    if sign == "//":
        if other[0] > 0:
            corners = [a // b for a, b in product(one, other)]
            return min(corners), max(corners)
        far = max(map(abs, one))
        return -far - 1, far + 1
    if other[0] > 0:
        return (0, min(one[1], other[1] - 1)) if one[0] >= 0 else (0, other[1] - 1)
    far = max(map(abs, other))
    return -far, far


def too_large(term: Term, known: Known) -> Iterator[Offence]:
    """The parts of a term, innermost first, that may leave 64 bits, or, as a key, its half; not those of a body."""
    match term:
        case Operation(left=one, right=other) | Pair(one, other):
            yield from too_large(one, known)
            yield from too_large(other, known)
        case Negative(operand):
            yield from too_large(operand, known)
        case At(key=key):
            yield from too_large(key, known)
            yield from _beyond(key, known, PLACE)
        case Quantifier(low, high):
            for end in (low, high):
                yield from too_large(end, known)
                yield from _beyond(end, known, PLACE)
    yield from _beyond(term, known, WORD)


def _beyond(term: Term, known: Known, bound: int) -> Iterator[Offence]:
    if _is_beyond(term, known, bound):
        yield term, bound


def _is_beyond(term: Term, known: Known, bound: int) -> bool:
    low, high = range_of(term, known)
    return not -bound < low <= high < bound


def learned(question: Term, known: Known, *, answer: bool) -> dict[Term, Range]:
    """The ranges behind the answer to a question: a comparison bounds both of its sides."""
    found = dict(known)
    if isinstance(question, Operation) and question.compares:
        sign = question.sign if answer else CONTRARY[question.sign]
        _learn(found, question.left, sign, question.right)
        _learn(found, question.right, TURNED[sign], question.left)
    return found


def _learn(known: dict[Term, Range], one: Term, sign: str, other: Term) -> None:
    if one not in one.reads:  # neither a field nor an argument, a variable or what a Map holds
        return
    (low, high), (least, most) = range_of(one, known), range_of(other, known)
    if sign in {"<", "<=", "=="}:
        high = min(high, most - (sign == "<"))
    if sign in {">", ">=", "=="}:
        low = max(low, least + (sign == ">"))
    if low <= high:  # otherwise this is never reached
        known[one] = low, high


def within(every: Quantifier, known: Known) -> dict[Term, Range]:
    """The ranges in the body of a quantifier."""
    low, high = range_of(every.low, known)[0], range_of(every.high, known)[1] - 1
    low, high = max(low, COUNTED[0]), min(high, COUNTED[1])
    return {**known, every.variable: (low, max(low, high))}


# -- trees ---------------------------------------------------------------------------------------------------------


def computed(outcome: Any) -> Iterator[tuple[Term, int]]:
    """The terms of an outcome, each with the bound that it must keep to."""
    if isinstance(outcome, Term):
        yield outcome, WORD
    elif isinstance(outcome, MapTerm):
        for effect in outcome.effects:
            if isinstance(effect, Put):
                yield term_of(effect.key), PLACE
                yield term_of(effect.value), WORD
            else:
                yield term_of(effect.low), PLACE
    elif is_dataclass(outcome):
        for field in fields(outcome):
            value = getattr(outcome, field.name)
            yield from computed(value if isinstance(value, MapTerm) else term_of(value)) if _is_read(value) else ()


def _is_read(value: Any) -> bool:
    return isinstance(value, Term | MapTerm | int)


def _asked(tree: Tree) -> list[tuple[Term, int]]:
    """The terms that a branch or an end computes itself."""
    return [(tree.question, WORD)] if isinstance(tree, Branch) else list(computed(tree.outcome))


def terms_of(tree: Tree) -> list[Term]:
    """The terms that a branch or an end computes itself."""
    return [term for term, _ in _asked(tree)]


def offences(tree: Tree, known: Known) -> list[Offence]:
    """List the operations of a branch or an end that may leave 64 bits, but for the bodies of quantifiers."""
    return [
        one for term, bound in _asked(tree) for one in (*too_large(term, known), *_beyond(term, known, bound))
    ]  # fmt: skip


def quantifiers(term: Term) -> Iterator[Quantifier]:
    """The quantifiers in a term, but for those within one another's bodies."""
    match term:
        case Quantifier():
            yield term
        case Operation(left=one, right=other) | Pair(one, other):
            yield from quantifiers(one)
            yield from quantifiers(other)
        case Negative(operand):
            yield from quantifiers(operand)
        case At(key=key):
            yield from quantifiers(key)


def is_within_64_bits(tree: Tree, known: Known | None = None) -> bool:
    """True if nothing that a tree computes can leave 64 bits, whatever has been answered before."""
    for node in nodes(tree):
        if offences(node, known or {}):
            return False
        for term, _ in _asked(node):
            for every in quantifiers(term):
                if not is_within_64_bits(every.body, within(every, known or {})):
                    return False
    return True


def guarded(tree: Tree) -> Tree:
    """The tree itself where nothing can leave 64 bits; otherwise one that asks first how large operands are."""
    return tree if is_within_64_bits(tree) else _GuardInsertion(tree).tree(tree, {})


class _GuardInsertion:
    """Puts guards into a tree. `looked_at`: the terms that what can be too large is made of."""

    def __init__(self, tree: Tree) -> None:
        self.looked_at = _looked_at(tree, {})
        self.made: dict[tuple[Tree, frozenset[tuple[Term, Range]]], Tree] = {}

    def tree(self, tree: Tree, known: Known) -> Tree:
        """The same tree with guards."""
        known = {term: found for term, found in known.items() if term in self.looked_at}
        key = tree, frozenset(known.items())
        if key not in self.made:
            if len(self.made) > MOST:
                return End(LEFT_ALONE)
            self.made[key] = self._made(tree, known)
        return self.made[key]

    def _made(self, tree: Tree, known: Known) -> Tree:
        for offence, _ in offences(tree, known):
            return self._asked_first(offence, tree, known)
        if isinstance(tree, End):
            return self._ended(tree, known)
        question = self.term(tree.question, known)
        yes, no = (
            self.tree(child, learned(tree.question, known, answer=answer))
            for answer, child in ((True, tree.yes), (False, tree.no))
        )
        return Branch(question, yes, no)

    def _asked_first(self, offence: Term, tree: Tree, known: Known) -> Tree:
        """The tree behind a look at the first operand that is not known to be small enough."""
        bound = _bound_for(offence, known)
        for leaf in sorted(offence.reads, key=repr):
            low, high = range_of(leaf, known)
            if bound and leaf in leaf.reads and not -bound < low <= high < bound:
                alone: Tree = End(LEFT_ALONE)
                made = self.tree(tree, {**known, leaf: (max(low, 1 - bound), min(high, bound - 1))})
                if high >= bound:
                    made = Branch(Operation("<", leaf, bound), made, alone)
                if low <= -bound:
                    made = Branch(Operation("<", -bound, leaf), made, alone)
                return made
        return End(LEFT_ALONE)

    def term(self, term: Any, known: Known) -> Any:
        """The same term, whose quantifiers have guards in their bodies."""
        match term:
            case Quantifier(low, high, variable, body):
                low, high = self.term(low, known), self.term(high, known)
                return type(term)(low, high, variable, self.tree(body, within(term, known)))
            case Pair(first, second):
                return Pair(self.term(first, known), self.term(second, known))
            case Operation(sign, left, right):
                return Operation(sign, self.term(left, known), self.term(right, known))
            case Negative(operand):
                return Negative(self.term(operand, known))
            case At(name, key, version):
                return At(name, self.term(key, known), version)
        return term

    def _ended(self, tree: End, known: Known) -> End:
        """The end itself, unless a quantifier in it needs guards: then it is left alone, which is rare and right."""
        if isinstance(tree.outcome, Term):
            return End(self.term(tree.outcome, known))
        for term, _ in _asked(tree):
            for every in quantifiers(term):
                if not is_within_64_bits(every.body, within(every, known)):
                    return End(LEFT_ALONE)
        return tree


def _bound_for(offence: Term, known: Known) -> int:
    """The greatest power of two within which all operands keep an operation small enough; 0 where none does."""
    for power in range(59, -1, -1):
        bound, small = 1 << power, dict(known)
        for leaf in offence.reads:
            low, high = range_of(leaf, known)
            small[leaf] = max(low, 1 - bound), min(high, bound - 1)
            if small[leaf][0] > small[leaf][1]:
                small[leaf] = low, high
        if not _is_beyond(offence, small, PLACE):
            return bound
    return 0


def _looked_at(tree: Tree, known: Known) -> Reads:
    """All that is read by what may be too large, and what it is compared with."""
    found = NOTHING
    for node in nodes(tree):
        for one, _ in offences(node, known):
            found |= one.reads
        for term, _ in _asked(node):
            for every in quantifiers(term):
                found |= _looked_at(every.body, within(every, known))
    return found
