"""Terms of a spec, and trees of them, as expressions and statements of the language of native code.

In a generated function a field is `s_NAME`, or `o_NAME` of the state before; an argument `a_NAME`, or `g_NAME` with a
state that is judged later; a variable `v_NAME`. `loads` gives them their values, by what the function's body names.
`row` is the packed state that terms speak of, `new` the one that a step makes, `old` the one before it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gapless.properties.exploration.compiled import syntax as tree
from gapless.properties.exploration.compiled.syntax import Block
from gapless.spec.catalog import Spec
from gapless.spec.reading.trees.decision_trees import LEFT_ALONE, End, Tree
from gapless.spec.reading.trees.terms import (
    AFTER,
    Argument,
    At,
    Constant,
    Count,
    Every,
    Field,
    Negative,
    Node,
    Operation,
    Pair,
    Quantifier,
    Term,
    Variable,
    Word,
    term_of,
)

MANY_KEYS = 4096  # that a quantifier goes through at most
DIVIDED = {"//": "quotient", "%": "rest_of"}
FREE = "s_", "o_", "a_", "g_", "v_"  # the names that stand for terms
STATES = "row", "new", "old"


class TermEmitter:
    """Terms as expressions. Quantifiers become functions of their own, in `functions`."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.columns = {name: column for column, name in enumerate(spec.maps)}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.terms: dict[Term, None] = {}  # all that were lowered, for their ranges
        self._quantifiers: dict[tuple[type, Variable, Any], tuple[str, tuple[str, ...]]] = {}

    def value(self, term: Any, *, of_old: bool = False) -> ast.expr:
        """A term as a number. `of_old`: of the state before the one that is judged."""
        term = term_of(term)
        self.terms[term] = None
        return self._value(term, of_old)

    def _value(self, term: Term, of_old: bool) -> ast.expr:  # noqa: C901, FBT001, PLR0911 - a case for each term
        match term:
            case Constant(number):
                return tree.expression(number)
            case Field(name):
                return tree.expression(f"{'o' if of_old else 's'}_{name}")
            case Argument(name):
                return tree.expression(f"{'g' if of_old else 'a'}_{name}")
            case Variable(name):
                return tree.expression(f"v_{name}")
            case At(name, key, version):
                return tree.call(f"at_{self.columns[name]}", self._state(version, of_old), self._value(key, of_old))
            case Pair(first, second):
                return tree.call("pair_key", self._value(first, of_old), self._value(second, of_old))
            case Word(word, (name, version)):
                return tree.call(f"{word}_{self.columns[name]}", self._state(version, of_old))
            case Negative(operand):
                return tree.negative(self._value(operand, of_old))
            case Operation(sign, left, right) if not term.compares:
                one, other = self._value(left, of_old), self._value(right, of_old)
                return tree.call(DIVIDED[sign], one, other) if sign in DIVIDED else tree.binary(one, sign, other)
            case Operation():
                return tree.as_number(self._truth(term, of_old))
            case Quantifier():
                return self._every("count" if isinstance(term, Count) else "holds", term, of_old)
        raise TypeError(f"native code does not know {term}")

    def truth(self, term: Any, *, of_old: bool = False) -> ast.expr:
        """A term as a condition."""
        term = term_of(term)
        self.terms[term] = None
        return self._truth(term, of_old)

    def _truth(self, term: Term, of_old: bool) -> ast.expr:  # noqa: FBT001 - as above
        if isinstance(term, Operation) and term.compares:
            return tree.compared(self._value(term.left, of_old), term.sign, self._value(term.right, of_old))
        return tree.compared(self._value(term, of_old), "!=", 0)

    @staticmethod
    def _state(version: str, of_old: bool) -> str:  # noqa: FBT001 - as above
        return "old" if of_old else "new" if version == AFTER else "row"

    # -- quantifiers

    def up_to(self, every: Every, high: ast.expr) -> ast.expr:
        """The first number from `every.low` on for which the body is false, or `high`."""
        self.terms[every] = None
        return self._every("until", every, False, high)  # noqa: FBT003 - as above

    def _every(self, word: str, every: Quantifier, of_old: bool, high: ast.expr | None = None) -> ast.expr:  # noqa: FBT001 - as above
        if of_old:
            raise TypeError("a quantifier is part of a key")
        name, given = self._quantifier(every)
        end = high or self._value(every.high, of_old)
        return tree.call(f"{word}_{name}", self._value(every.low, of_old), end, *given, "escape")

    def _quantifier(self, every: Quantifier) -> tuple[str, tuple[str, ...]]:
        key = type(every), every.variable, every.body
        if key not in self._quantifiers:
            variable = f"v_{every.variable.name}"
            terms, self.terms = self.terms, {}  # the ranges of what is inside are those of the quantifier
            body = self.refusing(every.body)
            self.terms = terms
            names = tree.names_in(*body)
            given = tuple(one for one in names if one != variable and (one[:2] in FREE or one in STATES))
            name = str(len(self._quantifiers))
            self._quantifiers[key] = name, given
            if isinstance(every, Count):
                self._count(name, every, given)
                return self._quantifiers[key]
            few = tree.compared(tree.binary("high", "-", "low"), ">", MANY_KEYS)
            parameters = "low", "high", *given, "escape"
            self.functions[f"holds_{name}"] = tree.function(
                f"holds_{name}", parameters,
                [tree.when(few, [tree.do(tree.call("leave_alone", "escape")), tree.answer(0)]),
                 tree.for_each(variable, "low", "high", body), tree.answer(1)],
            )  # fmt: skip
            one = tree.call(f"holds_{name}", "n", tree.binary("n", "+", 1), *given, "escape")
            self.functions[f"until_{name}"] = tree.function(
                f"until_{name}", parameters,
                [tree.when(few, [tree.do(tree.call("leave_alone", "escape")), tree.answer("low")]),
                 tree.assign("n", "low"),
                 tree.as_long_as(
                     tree.compared("n", "<", "high"),
                     [tree.when(tree.compared(one, "==", 0), [tree.answer("n")]),
                      tree.assign("n", tree.binary("n", "+", 1))],
                 ),
                 tree.answer("n")],
            )  # fmt: skip
        return self._quantifiers[key]

    def _count(self, name: str, count: Count, given: Sequence[str]) -> None:
        """Write the function that counts."""
        terms, self.terms = self.terms, {}
        fewer = self._where_false(count.body, [tree.assign("total", tree.binary("total", "-", 1))])
        self.terms = terms
        body = [tree.assign("total", tree.binary("total", "+", 1)), *fewer]
        many = tree.compared(tree.binary("high", "-", "low"), ">", MANY_KEYS)
        self.functions[f"count_{name}"] = tree.function(
            f"count_{name}", ("low", "high", *given, "escape"),
            [tree.when(many, [tree.do(tree.call("leave_alone", "escape")), tree.answer(0)]),
             tree.assign("total", 0),
             tree.for_each(f"v_{count.variable.name}", "low", "high", body),
             tree.answer("total")],
        )  # fmt: skip

    # -- trees

    def refusing(self, node: Tree) -> Block:
        """Statements that end a function with 0 where the outcome of a tree is false."""
        return self._where_false(node, [tree.answer(0)])

    def flagging(self, node: Tree) -> Block:
        """Statements that set `good` to 0 where the outcome of a tree is false."""
        return self._where_false(node, [tree.assign("good", 0)])

    def _where_false(self, node: Tree, then: Block) -> Block:
        if isinstance(node, End):
            outcome = node.outcome
            if outcome is LEFT_ALONE:
                return [tree.do(tree.call("leave_alone", "escape"))]
            if isinstance(outcome, Term):
                return [tree.unless(self.truth(outcome), then)]
            return [] if bool(outcome) else list(then)
        yes, no = self._where_false(node.yes, then), self._where_false(node.no, then)
        return [tree.when(self.truth(node.question), yes, no)] if yes or no else []


def loads(
    body: Sequence[ast.stmt], spec: Spec, *, row: str = "row", own: Mapping[str, ast.expr] | None = None
) -> Block:
    """Statements that give the fields and arguments that a body names their values; `own`: of some of them."""
    arguments = {name: number for number, name in enumerate(spec.arguments)}
    fields = {name: number for number, name in enumerate(spec.scalars)}
    made: Block = []
    for name in tree.names_in(*body):
        kind, of = name[:2], name[2:]
        if own and name in own:
            made.append(tree.assign(name, own[name]))
        elif kind in {"s_", "o_"}:
            made.append(tree.assign(name, tree.call(f"number_{fields[of]}", row if kind == "s_" else "old")))
        elif kind in {"a_", "g_"}:
            at = tree.binary(tree.binary(arguments[of], "*", "CALLS"), "+", "e")
            made.append(tree.assign(name, tree.item("args", at)))
    return made


# -- terms, looked at ------------------------------------------------------------------------------------------------


def field_of(read: Term) -> str | None:
    """The field of the state that is looked at; None where it is none."""
    if isinstance(read, (Field, At)):
        return read.name
    return str(read.given[0]) if isinstance(read, Word) else None


def reads_field(node: Node, fields: Any) -> bool:
    """True if a term or tree looks at one of these fields."""
    return any(field_of(read) in fields for read in node.reads)


def arguments_in(term: Term) -> list[Argument]:
    """The arguments that a term looks at."""
    return [read for read in term.reads if isinstance(read, Argument)]


def quantifies(term: Any) -> bool:
    """True if there is a quantifier in a term, or it is one."""
    return any(isinstance(one, Quantifier) for one in subterms(term))


def subterms(node: Node) -> Iterator[Node]:
    """A term, and all that it is made of, each once."""
    seen, pending = set[Node](), [node]
    while pending:
        one = pending.pop()
        if one not in seen:
            seen.add(one)
            yield one
            pending += [part for part in one.parts if isinstance(part, Node)]
