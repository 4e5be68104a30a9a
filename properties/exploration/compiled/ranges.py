"""The values that terms of a spec may have in a native search: it has 64 bits, and the spec whole numbers of any size.

Fields lie within what their packing holds, arguments and numbers within what the bound names. Where an intermediate
value may leave `SAFE`, nothing is known of what native code makes of it, and the search is left to the plain functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gapless.spec.reading.trees.terms import (
    Argument,
    At,
    Constant,
    Count,
    Field,
    Negative,
    Node,
    Operation,
    Pair,
    Quantifier,
    Term,
    Variable,
    Word,
)

Range = tuple[int, int]
SAFE = 1 << 62  # native code adds and subtracts a little more: what a field is above its least value


def unsafe(terms: Iterable[Term], known: Mapping[str, Mapping[str, Range]], keys: int) -> Term | None:
    """The first term that may leave the numbers that native code has; None where none does.

    `known`: of `fields` (of a Map: its values), `arguments` and `variables`, the least and the greatest by name ·
    `keys`: that a Map has at most.
    """
    ranges = _Ranges(known, keys)
    for term in terms:
        ranges.of(term, {})
    return ranges.unsafe


class _Ranges:
    def __init__(self, known: Mapping[str, Mapping[str, Range]], keys: int) -> None:
        self.known, self.keys = known, keys
        self.unsafe: Term | None = None
        self._free: dict[Term, Range] = {}

    def of(self, term: Term, inner: Mapping[Variable, Range]) -> Range:
        """The least and the greatest value of a term. `inner`: of the variables that are bound around it."""
        is_free = not inner or inner.keys().isdisjoint(term.reads)
        if is_free and term in self._free:
            return self._free[term]
        found = self._of(term, inner)
        if not (-SAFE < found[0] and found[1] < SAFE):
            self.unsafe = term if self.unsafe is None else self.unsafe
        if is_free:
            self._free[term] = found
        return found

    def _of(self, term: Term, inner: Mapping[Variable, Range]) -> Range:  # noqa: C901, PLR0911 - a case each
        match term:
            case Constant(value):
                return value, value
            case Field(name):
                return self.known["fields"][name]
            case At(name, key):
                self.of(key, inner)
                return self.known["fields"][name]
            case Pair(row, column):  # a place, which is compared with no number
                self.of(row, inner)
                self.of(column, inner)
                return -1, self.keys
            case Argument(name):
                return self.known["arguments"][name]
            case Variable(name):
                return inner[term] if term in inner else self.known["variables"][name]
            case Word(word, (name, _)):
                return (0, self.keys) if word == "entries" else self.known["fields"][name]
            case Negative(operand):
                low, high = self.of(operand, inner)
                return -high, -low
            case Operation(sign, left, right):
                one, other = self.of(left, inner), self.of(right, inner)
                return (0, 1) if term.compares else _combined(sign, one, other)
            case Quantifier(low, high, variable, body):
                first, last = self.of(low, inner)[0], self.of(high, inner)[1]
                self._tree(body, {**inner, variable: (first, max(first, last))})
                return 0, max(last - first, 1) if isinstance(term, Count) else 1
        raise TypeError(f"nothing is known of {term}")

    def _tree(self, node: Node, inner: Mapping[Variable, Range]) -> None:
        if isinstance(node, Term):
            self.of(node, inner)
            return
        for part in node.parts:
            if isinstance(part, Node):
                self._tree(part, inner)


def _combined(sign: str, one: Range, other: Range) -> Range:
    if sign == "+":
        return one[0] + other[0], one[1] + other[1]
    if sign == "-":
        return one[0] - other[1], one[1] - other[0]
    if sign == "*":
        ends: Sequence[int] = [a * b for a in one for b in other]
        return min(ends), max(ends)
    if sign == "//":  # a divisor is 1 at least, or -1 at most
        most = max(abs(one[0]), abs(one[1])) + 1
        return -most, most
    return min(other[0], 0), max(other[1], 0)
