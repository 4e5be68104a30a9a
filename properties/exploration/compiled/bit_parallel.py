"""Questions about many numbers at once: a word with a bit for each number, set where the answer is yes.

A step is tried with a number of arguments, and an invariant speaks of a number of keys. Where there are few of them,
no loop goes from one to the next: each question is answered for all, by a comparison with a bound, by the bits of a
Map, or one by one where there is nothing better. Then what a decision tree says is some bits, too.
"""

from __future__ import annotations

import ast
from typing import Any

from gapless.properties.exploration.compiled import syntax as tree
from gapless.properties.exploration.compiled.lowering import TermEmitter, quantifies
from gapless.spec.reading.trees.terms import AFTER, TURNED, At, Constant, Operation, Term, replaced, term_of

MANY = 24  # numbers that a question is asked of at once
WORDS = {"<": "less", "<=": "most", ">": "more", ">=": "least", "==": "same", "!=": "other"}
PAST = {"<": (0, False), ">=": (0, True), "<=": (1, False), ">": (1, True)}
"""A comparison of a number with a bound: what is added to the bound, and whether the bits are inverted."""


class BitParallel:
    """Writes questions as bits. `functions`: those of Maps that are called, by name: their parts."""

    def __init__(self, lowering: TermEmitter) -> None:
        self.lowering = lowering
        self.functions: dict[str, tuple[Any, ...]] = {}

    def bits(self, question: Any, of: Term, numbers: range) -> ast.expr | None:
        """The numbers for which a question is true; None where that may end the search, or there are too many."""
        question = term_of(question)
        if len(numbers) > MANY or quantifies(question):
            return None
        if of not in question.reads:
            return tree.negative(tree.as_number(self.lowering.truth(question)))
        if isinstance(question, Operation) and question.compares:
            made = self._compared(question, of, numbers)
            if made is not None:
                self.lowering.terms[question] = None
                return made
        each = [
            tree.binary(tree.as_number(self.lowering.truth(replaced(question, {of: Constant(value)}))), "<<", n)
            for n, value in enumerate(numbers)
        ]
        return tree.joined("|", each, 0)

    def _compared(self, question: Operation, of: Term, numbers: range) -> ast.expr | None:
        sign, left, right = question.sign, question.left, question.right
        if of in right.reads and of not in left.reads:
            sign, left, right = TURNED[sign], right, left
        if of in right.reads:
            return self._between_maps(left, sign, right, of, numbers)
        if left is of:
            return self._bounded(sign, right, numbers)
        if isinstance(left, At) and left.key is of and sign in {"==", "!="} and isinstance(right, Constant):
            name = self._equal(left.name, len(numbers))
            found = tree.call(name, _row(left), numbers[0], right.value)
            return found if sign == "==" else tree.inverted(found)
        return None

    def _bounded(self, sign: str, bound: Term, numbers: range) -> ast.expr:
        """The numbers that a bound leaves."""
        at = self.lowering.value(bound)
        if sign in PAST:
            more, turned = PAST[sign]
            found = tree.call("below", tree.binary(at, "-", numbers[0] - more))
            return tree.inverted(found) if turned else found
        upto = tree.call("below", tree.binary(at, "-", numbers[0]))
        past = tree.call("below", tree.binary(at, "-", numbers[0] - 1))
        found = tree.binary(past, "&", tree.inverted(upto))
        return found if sign == "==" else tree.inverted(found)

    def _between_maps(self, left: Term, sign: str, right: Term, of: Term, numbers: range) -> ast.expr | None:
        """The numbers at which two Maps compare so."""
        if not (isinstance(left, At) and isinstance(right, At) and left.key is of and right.key is of):
            return None
        one, other = (self.lowering.columns[at.name] for at in (left, right))
        for at in (left, right):
            self._equal(at.name, len(numbers))
        name = f"compared_{one}_{other}_{WORDS[sign]}_{len(numbers)}"
        self.functions[name] = "compared", one, other, sign, len(numbers)
        return tree.call(name, _row(left), _row(right), numbers[0])

    def _equal(self, field: str, count: int) -> str:
        column = self.lowering.columns[field]
        name = f"equal_{column}_{count}"
        self.functions[name] = "equal", column, count
        return name


def _row(at: At) -> str:
    return "new" if at.version == AFTER else "row"
