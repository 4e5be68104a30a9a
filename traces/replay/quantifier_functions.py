"""Compiles quantifiers and counts to loops, over hardly more numbers than a window has.

Beyond its window a Map has its default, so a loop may look there; one that is too long is left to exact replay.
"""

from __future__ import annotations

import ast
from typing import Protocol

from gapless.spec.reading.trees.decision_trees import LEFT_ALONE, Branch, End, Tree
from gapless.spec.reading.trees.terms import Count, LeafTerm, Quantifier, Reads, Term
from gapless.traces.replay import syntax

WINDOW = ("windows", "origin", "width", "escape")
FALSE = syntax.give(ast.Constant(value=False))
GIVEN_UP = (syntax.store("escape", syntax.constant(0), syntax.constant(1)), FALSE)
"""The lines that leave a trace to exact replay."""


class TermWriter(Protocol):
    """A writer of a spec's functions, as far as quantifiers need it: terms as expressions, and the functions so far."""

    functions: list[ast.FunctionDef]

    def number(self, term: Term) -> ast.expr:
        """Convert a term to an expression that is a number."""

    def truth(self, term: Term) -> ast.expr:
        """Convert a term to a boolean expression."""

    def name_of(self, leaf: Term) -> str:
        """Return the name of a field, an argument or a variable in a function."""

    def plain_reads(self, reads: Reads) -> list[LeafTerm]:
        """Return the fields, arguments and variables among the reads."""


class QuantifierFunctions:
    """The functions of one spec's quantifiers: `holds_0` …, and `count_0` … with its `one_of_count_0`.

    `bodies`: by the name of a function, the same for one number and without guards.
    """

    def __init__(self, writer: TermWriter) -> None:
        self.writer = writer
        self.called: dict[tuple[type, Term, Tree], tuple[str, list[LeafTerm]]] = {}
        self.bodies: dict[str, ast.FunctionDef] = {}

    def call(self, quantifier: Quantifier) -> ast.expr:
        """Return the call that evaluates it."""
        key = type(quantifier), quantifier.variable, quantifier.body
        if key not in self.called:
            reads = self.writer.plain_reads(quantifier.body.reads)
            given = [one for one in reads if one is not quantifier.variable]
            lines, plain = self._truth(quantifier.body), self._truth(quantifier.body, guards=False)
            word = "count" if isinstance(quantifier, Count) else "holds"
            self.called[key] = called, _ = f"{word}_{len(self.called)}", given  # behind those within
            names = [self.writer.name_of(one) for one in given]
            one = syntax.function(f"one_of_{called}", (quantifier.variable.name, *names, *WINDOW), [*plain, TRUE])
            self.bodies[called] = one
            if isinstance(quantifier, Count):
                self._count(called, quantifier.variable.name, names, lines)
            else:
                self._every(called, quantifier.variable.name, names, lines)
        called, given = self.called[key]
        ends = self.writer.number(quantifier.low), self.writer.number(quantifier.high)
        return syntax.call(called, *ends, *syntax.names(map(self.writer.name_of, given)), *syntax.names(WINDOW))

    def _every(self, called: str, variable: str, given: list[str], lines: list[ast.stmt]) -> None:
        """Write the function that asks until one is false."""
        body = [syntax.choose(_too_long(), [*GIVEN_UP]), _each(variable, lines), TRUE]
        self.writer.functions.append(syntax.function(called, ("low", "high", *given, *WINDOW), body))

    def _count(self, called: str, variable: str, given: list[str], lines: list[ast.stmt]) -> None:
        """Write the function that counts, and the one that it asks of each number."""
        is_one = f"is_of_{called}"
        self.writer.functions.append(syntax.function(is_one, (variable, *given, *WINDOW), [*lines, TRUE]))
        counted = syntax.choose(
            syntax.call(is_one, *syntax.names((variable, *given, *WINDOW))),
            [syntax.assign("total", syntax.binary(syntax.name("total"), "+", syntax.constant(1)))],
        )
        left = [GIVEN_UP[0], syntax.give(syntax.constant(0))]
        body = [
            syntax.choose(_too_long(), left),
            syntax.assign("total", syntax.constant(0)),
            _each(variable, [counted]),
            syntax.give(syntax.name("total")),
        ]
        self.writer.functions.append(syntax.function(called, ("low", "high", *given, *WINDOW), body))

    def _truth(self, tree: Tree, *, guards: bool = True) -> list[ast.stmt]:
        """Return the lines that return False where a tree's outcome is false.

        Without `guards`, no number is too large: a function that gives up has no answer that could be wrong.
        """
        if not guards and isinstance(tree, Branch):
            for child, other in ((tree.yes, tree.no), (tree.no, tree.yes)):
                if isinstance(child, End) and child.outcome is LEFT_ALONE:
                    return self._truth(other, guards=False)
        if isinstance(tree, End):
            if tree.outcome is LEFT_ALONE:
                return [*GIVEN_UP]
            if not isinstance(tree.outcome, Term):
                return [ast.Pass() if tree.outcome else FALSE]
            return [syntax.choose(ast.UnaryOp(ast.Not(), self.writer.truth(tree.outcome)), [FALSE])]
        yes, no = self._truth(tree.yes, guards=guards), self._truth(tree.no, guards=guards)
        return [syntax.choose(self.writer.truth(tree.question), yes, no)]


TRUE = syntax.give(ast.Constant(value=True))


def _each(variable: str, lines: list[ast.stmt]) -> ast.stmt:
    """Make the loop over all numbers between."""
    ends = syntax.call("range", *syntax.names(("low", "high")))
    return ast.For(ast.Name(variable, ast.Store()), ends, lines, [])


def _too_long() -> ast.expr:
    """Make the test that a loop would be too long."""
    return syntax.call("is_too_long", *syntax.names(("low", "high", "width")))
