"""Compiles the steps of a spec to functions of the native language: decision trees become syntax trees.

Each action is a function of its own. Its tree becomes nested `if`s, its effects assignments, its refusals numbered
reasons. A subtree that occurs several times becomes a function: trees of steps that are made of steps repeat
themselves, and compilers take longer the longer a function is.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from gapless.spec.catalog import END, Spec, claimed
from gapless.spec.language import Refused
from gapless.spec.reading.trees.decision_trees import (
    LEFT_ALONE,
    Branch,
    End,
    Tree,
    names_its_ends,
    nodes,
    obstacle,
    outcomes,
    reading,
    state_of_terms,
    tree_of,
)
from gapless.spec.reading.trees.difference_bounds import follows
from gapless.spec.reading.trees.map_effects import Put
from gapless.spec.reading.trees.ranges import LIMIT, guarded
from gapless.spec.reading.trees.ranges import computed as stored_terms
from gapless.spec.reading.trees.terms import (
    Argument,
    At,
    Constant,
    Field,
    LeafTerm,
    MapTerm,
    Negative,
    Operation,
    Pair,
    Quantifier,
    Reads,
    Term,
    Variable,
    is_truth,
    term_of,
)
from gapless.traces.replay import syntax
from gapless.traces.replay.loop import EXACT, UNKNOWN_ACTION
from gapless.traces.replay.map_columns import columns_of
from gapless.traces.replay.quantifier_functions import QuantifierFunctions

CALLED = ("e", "now", "args", "windows", "origin", "width", "escape")
DISPATCHED = (
    "act", "e", "t", "now", "args", "windows", "origin", "width", "escape", "allowed",
    "deviated", "deviated_at", "deviant", "rows", "claims",
)  # fmt: skip
SHARED, LONG = 60, 1_000  # nodes from which a subtree is a function of its own: where it is met twice; anywhere
ASKED, WRITTEN = 8, 12  # nodes of a question, and of what is written to a field, or so


@dataclass(frozen=True)
class Reason:
    """The reason for which a step is refused: the unmet need, and the consequence of that."""

    action: str
    step: str  # the action's name, or that of the deviation that was tried in its place
    rule: str  # its id, SPEC/RULE
    because: str
    otherwise: str


@dataclass(frozen=True)
class StepFunctions:
    """The functions of a spec's steps, each before its callers; the last one dispatches on the action.

    `quantifiers`: by the name of a function, the same for one number and without guards, for proofs.
    """

    reasons: tuple[Reason, ...]
    functions: tuple[ast.FunctionDef, ...]
    quantifiers: dict[str, ast.FunctionDef]


@dataclass(frozen=True)
class StepTrees:
    """The decision trees of a spec: of each action, and of the deviations and the takeovers by their number.

    `unmet`: all reasons that some path gives, also a path whose answers contradict one another.
    """

    spec: Spec
    actions: dict[str, Tree]
    deviations: dict[int, Tree]
    takeovers: dict[int, Tree]
    unmet: tuple[Reason, ...] = ()

    @property
    def obstacle(self) -> str:
        """The reason for which steps cannot be compiled exactly; empty if they can."""
        for name in self.spec.maps:
            if not -LIMIT < int(getattr(self.spec.initial, name).default) < LIMIT:
                return f"the default of the Map `{name}` is too large"
        before = state_of_terms(self.spec.initial)
        every = (*self.actions.items(), *((step.__name__, tree) for step, tree in self.stand_ins()))
        found = ((name, obstacle(before, outcome)) for name, tree in every for outcome in outcomes(tree))
        return next((f"{why}, in the step `{name}`" for name, why in found if why), "")

    def stand_ins(self) -> Iterator[tuple[Callable[..., Any], Tree]]:
        """Yield the steps that stand in for actions, each with its tree."""
        yield from ((self.spec.deviations[number].step, tree) for number, tree in self.deviations.items())
        yield from ((self.spec.takeovers[number].step, tree) for number, tree in self.takeovers.items())


def trees_of(spec: Spec) -> StepTrees:
    """Return the decision trees of a spec, without guards against numbers that are too large."""
    before = state_of_terms(spec.initial)

    unmet: dict[Reason, None] = {}

    def tree(step: Callable[..., Any], action: str) -> Tree:
        args = [Argument(name) for name in spec.parameters[action]]
        for outcome in outcomes(tree_of(step, before, *args)):
            if isinstance(outcome, Refused):
                unmet[reason_of(spec, action, step.__name__, outcome)] = None
        return tree_of(step, before, *args, known=follows)

    with reading():
        actions = {name: tree(step, name) for name, step in spec.actions.items()}
        deviations = {n: tree(d.step, d.instead_of.__name__) for n, d in enumerate(spec.deviations)}
        takeovers = {n: tree(one.step, one.instead_of.__name__) for n, one in enumerate(spec.takeovers)}
    left_alone = (need for holds in spec.at_rest if not names_its_ends(holds, before) for need in (claimed(holds),))
    unmet |= {Reason(END, END, f"{spec.name}/{one.rule}", one.because, one.otherwise): None for one in left_alone}
    return StepTrees(spec, actions, deviations, takeovers, tuple(unmet))


def reason_of(spec: Spec, action: str, step: str, refused: Refused) -> Reason:
    """Convert a refusal to the reason that a kernel numbers."""
    return Reason(action, step, f"{spec.name}/{refused.rule}", refused.because, refused.otherwise)


def steps_of(trees: StepTrees) -> StepFunctions:
    """Compile the steps of a spec to functions."""
    return StepWriter(trees).steps()


class StepWriter:
    """Makes the functions of one spec."""

    def __init__(self, trees: StepTrees) -> None:
        self.trees, self.spec = trees, trees.spec
        self.reasons: dict[Reason, int] = {}  # each with its number, from 1
        self.functions: list[ast.FunctionDef] = []
        self.quantifiers = QuantifierFunctions(self)
        self.parts = count()
        self.part_of: dict[tuple[Tree, tuple[int, ...]], str] = {}  # by tree, and the numbers of its refusals
        self.columns, self.pairs = columns_of(self.spec).of, columns_of(self.spec).pairs
        self.defaults = {name: int(getattr(self.spec.initial, name).default) for name in self.spec.maps}
        self.rows = {name: row for row, name in enumerate(self.spec.scalars)}
        self.arguments = {name: row for row, name in enumerate(self.spec.arguments)}

    def steps(self) -> StepFunctions:
        """Return all functions."""
        spec = self.spec
        for code, (name, tree) in enumerate(self.trees.actions.items()):
            self._step(f"step_{code}", guarded(tree), name, name, bounded=True)
            for number, deviation in enumerate(spec.deviations):
                if deviation.instead_of is spec.actions[name]:
                    instead = guarded(self.trees.deviations[number])
                    self._step(f"instead_{number}", instead, name, deviation.step.__name__)
            for number, takeover in enumerate(spec.takeovers):
                if takeover.instead_of is spec.actions[name]:
                    claimed_step = guarded(self.trees.takeovers[number])
                    self._step(f"over_{number}", claimed_step, name, takeover.step.__name__)
        self.functions.append(self._dispatched())
        for reason in self.trees.unmet:
            self.reasons.setdefault(reason, len(self.reasons) + 1)
        return StepFunctions(tuple(self.reasons), tuple(self.functions), self.quantifiers.bodies)

    def _dispatched(self) -> ast.FunctionDef:
        """Make the function that dispatches on the action."""
        body: list[ast.stmt] = []
        for code, name in reversed(list(enumerate(self.spec.actions))):
            own: list[ast.stmt] = [syntax.assign("why", syntax.call(f"step_{code}", *syntax.names(CALLED)))]
            for number, deviation in enumerate(self.spec.deviations):
                if deviation.instead_of is self.spec.actions[name]:
                    own.append(_instead(number))
            for number, takeover in enumerate(self.spec.takeovers):
                reasons = self._numbers_of(name, takeover.rule)  # none if the rule is ignored
                if takeover.instead_of is self.spec.actions[name] and reasons:
                    own.append(_taken_over(number, reasons))
            own.append(syntax.give(syntax.name("why")))
            test = syntax.compared(syntax.name("act"), "==", syntax.constant(code))
            body = [syntax.choose(test, own), *body]
        body.append(syntax.give(syntax.constant(UNKNOWN_ACTION)))
        return syntax.function("step", DISPATCHED, body)

    def _numbers_of(self, action: str, rule: str) -> list[int]:
        """Return the numbers of the reasons for which an action is refused for a rule."""
        broken = f"{self.spec.name}/{rule}"
        return [number for reason, number in self.reasons.items() if (reason.action, reason.rule) == (action, broken)]

    # -- one step

    def _step(self, called: str, tree: Tree, action: str, step: str, *, bounded: bool = False) -> None:
        """Make the function of a step; with `bounded`, its arguments are checked first."""
        body = _Body(self, tree, action, step)
        first = [f"a_{name}" for name in self.spec.parameters[action]] if bounded else []
        lines = body.lines(tree)
        if first:
            body.looked_at.update(Argument(name) for name in self.spec.parameters[action])
            lines = [syntax.choose(_large(first), [syntax.give(syntax.constant(EXACT))]), *lines]
        self.functions.append(syntax.function(called, CALLED, [*self.loads(body.looked_at), *lines]))

    def loads(self, looked_at: set[LeafTerm]) -> list[ast.stmt]:
        """Return the statements that load the parts of state and event that a function reads."""
        fields = [
            syntax.assign(f"s_{name}", syntax.item("now", syntax.constant(row)))
            for name, row in self.rows.items()
            if Field(name) in looked_at
        ]
        return fields + [
            syntax.assign(f"a_{name}", syntax.item("args", syntax.constant(row), syntax.name("e")))
            for name, row in self.arguments.items()
            if Argument(name) in looked_at
        ]

    def reason(self, action: str, step: str, refused: Refused) -> int:
        """Return the number of a reason for which a step is refused."""
        reason = reason_of(self.spec, action, step, refused)
        return self.reasons.setdefault(reason, len(self.reasons) + 1)

    # -- terms

    def number(self, term: Term) -> ast.expr:
        """Convert a term to an expression that is a number."""
        made = self.expression(term)
        return ast.IfExp(made, syntax.constant(1), syntax.constant(0)) if is_truth(term) else made

    def expression(self, term: Term) -> ast.expr:  # noqa: PLR0911 - a kind of term a line
        """Convert a term to an expression; a term of a boolean form becomes a boolean."""
        match term:
            case Constant(value):
                return syntax.constant(value)
            case Operation(sign, left, right) if term.compares:
                return syntax.compared(self.number(left), sign, self.number(right))
            case Operation(sign, left, right):
                return syntax.binary(self.number(left), sign, self.number(right))
            case Negative(operand):
                return ast.UnaryOp(ast.USub(), self.number(operand))
            case At(name, key):
                of = syntax.constant(self.columns[name]), syntax.constant(self.defaults[name])
                word = "at_pair" if name in self.pairs else "at"
                return syntax.call(word, syntax.name("windows"), *self.place(key), syntax.name("width"), *of)
            case Quantifier():
                return self.quantifiers.call(term)
            case LeafTerm():
                return syntax.name(name_of(term))
        raise TypeError(f"{term} is no word of a step")

    def truth(self, term: Term) -> ast.expr:
        """Convert a term to a boolean expression."""
        made = self.expression(term)
        return made if is_truth(term) else syntax.compared(made, "!=", syntax.constant(0))

    def place(self, key: Term) -> list[ast.expr]:
        """Return the place of a key in its window; of two keys, both as they are."""
        if isinstance(key, Pair):
            return [self.number(key.first), self.number(key.second)]
        return [syntax.binary(self.number(key), "-", syntax.name("origin"))]

    @staticmethod
    def name_of(leaf: Term) -> str:
        """Return the name of a field, an argument or a variable in a function."""
        return name_of(leaf)

    @staticmethod
    def plain_reads(reads: Reads) -> list[LeafTerm]:
        """Return the fields, arguments and variables among the reads."""
        return plain_reads(reads)


def name_of(leaf: Term) -> str:
    """Return the name of a field, an argument or a variable in a function."""
    assert isinstance(leaf, LeafTerm)  # noqa: S101 - for the type checker
    return {Field: "s_", Argument: "a_"}.get(type(leaf), "") + leaf.name


def plain_reads(reads: Reads) -> list[LeafTerm]:
    """Return the fields, arguments and variables among the reads, in the order of their names."""
    found = [one for one in reads if isinstance(one, Field | Argument | Variable)]
    return sorted(found, key=name_of)


def _large(some: list[str]) -> ast.expr:
    """Return the test that one of several numbers is too large for a step to read or write."""
    return syntax.any_of([syntax.not_between(-LIMIT, one, LIMIT) for one in some])


def _instead(number: int) -> ast.stmt:
    """Return the statement that tries a deviation if its action is refused."""
    tried = syntax.call(f"instead_{number}", *syntax.names(CALLED))
    given = syntax.names(("e", "t", "escape", "deviated", "deviated_at", "deviant", "rows"))
    why = syntax.call("stood_in", syntax.constant(number), syntax.name("why"), tried, *given)
    refused = syntax.compared(syntax.name("why"), ">", syntax.constant(0))
    test = ast.BoolOp(ast.And(), [refused, syntax.item("allowed", syntax.constant(number))])
    return syntax.choose(test, [syntax.assign("why", why)])


def _taken_over(number: int, reasons: list[int]) -> ast.stmt:
    """Return the statement that takes over a claim if its action is refused for one of these reasons."""
    tried = syntax.call(f"over_{number}", *syntax.names(CALLED))
    why = syntax.call("taken_over", syntax.name("why"), tried, *syntax.names(("e", "escape", "claims")))
    refused = syntax.any_of([syntax.compared(syntax.name("why"), "==", syntax.constant(one)) for one in reasons])
    asked = syntax.compared(syntax.call("len", syntax.name("claims")), ">", syntax.constant(0))
    return syntax.choose(ast.BoolOp(ast.And(), [refused, asked]), [syntax.assign("why", why)])


class _Body:
    """The lines of one function. `looked_at`: the fields and arguments that they read."""

    def __init__(self, writer: StepWriter, root: Tree, action: str, step: str) -> None:
        self.writer, self.action, self.step = writer, action, step
        self.looked_at: set[LeafTerm] = set()
        self.shared = Counter[Tree](
            child for tree in nodes(root) if isinstance(tree, Branch) for child in (tree.yes, tree.no)
        )
        self.sizes: dict[Tree, int] = {}
        self.parts: dict[Tree, str] = {}

    def lines(self, tree: Tree) -> list[ast.stmt]:
        """Return the lines of a tree; every path ends with a `return`."""
        if isinstance(tree, End):
            return self._ended(tree)
        yes, no = self._child(tree.yes), self._child(tree.no)
        return [syntax.choose(self.writer.truth(self._noted(tree.question)), yes), *no]

    def _child(self, tree: Tree) -> list[ast.stmt]:
        """Return the lines of a branch, or a call of the function that has them."""
        if tree not in self.parts:
            size = self._size(tree)
            if (size > LONG and isinstance(tree, Branch)) or (self.shared[tree] > 1 and size > SHARED):
                self.parts[tree] = self._part(tree)
        if tree in self.parts:
            return [syntax.give(syntax.call(self.parts[tree], *syntax.names(CALLED)))]
        return self.lines(tree)

    def _part(self, tree: Tree) -> str:
        """Return the name of the function that has the lines of a tree."""
        refusals = (one for one in outcomes(tree) if isinstance(one, Refused))
        key = tree, tuple(self.writer.reason(self.action, self.step, one) for one in refusals)
        if key not in self.writer.part_of:
            outside, self.looked_at = self.looked_at, set()
            lines = self.lines(tree)
            loads = self.writer.loads(self.looked_at)
            self.looked_at = outside
            self.writer.part_of[key] = called = f"part_{next(self.writer.parts)}"
            self.writer.functions.append(syntax.function(called, CALLED, [*loads, *lines]))
        return self.writer.part_of[key]

    def _size(self, tree: Tree) -> int:
        """Count the terms in the lines of a tree, without those that are functions of their own."""
        if tree in self.parts:
            return 1
        if tree not in self.sizes:
            self.sizes[tree] = (
                self._size_of_end(tree.outcome)
                if isinstance(tree, End)
                else ASKED + sum(map(self._size_within, (tree.yes, tree.no)))
            )
        return self.sizes[tree]

    def _size_of_end(self, outcome: Any) -> int:
        if outcome is LEFT_ALONE or isinstance(outcome, Refused):
            return 1
        written = sum(getattr(outcome, name) is not Field(name) for name in self.writer.rows)
        written += sum(len(getattr(outcome, name).effects) for name in self.writer.columns)
        return WRITTEN * written

    def _size_within(self, tree: Tree) -> int:
        size = self._size(tree)
        return 1 if size > LONG or (self.shared[tree] > 1 and size > SHARED) else size

    def _noted(self, term: Term) -> Term:
        self.looked_at.update(plain_reads(term.reads))
        return term

    def _ended(self, tree: End) -> list[ast.stmt]:
        if tree.outcome is LEFT_ALONE:
            return [syntax.give(syntax.constant(EXACT))]
        if isinstance(tree.outcome, Refused):
            return [syntax.give(syntax.constant(self.writer.reason(self.action, self.step, tree.outcome)))]
        return self._effect(tree.outcome)

    def _effect(self, made: Any) -> list[ast.stmt]:
        """Compute every new value before any is stored, because each may read what another replaces.

        A computed value must lie within the bound, as all inputs do. A constant that does not is not stored.
        """
        if any(isinstance(term, Constant) and not -LIMIT < term.value < LIMIT for term, _ in stored_terms(made)):
            return [syntax.give(syntax.constant(EXACT))]
        computed: list[ast.stmt] = []
        bounded: list[str] = []
        kept: dict[Term, str] = {}

        def keep(value: Any) -> ast.expr:
            term = self._noted(term_of(value))
            if isinstance(term, Constant | Field | Argument):  # names of what was loaded before anything is stored
                return self.writer.expression(term)
            if term in kept:
                return syntax.name(kept[term])
            kept[term] = called = f"t{len(computed)}"
            computed.append(syntax.assign(called, self.writer.number(term)))
            if isinstance(term, Operation | Negative) and not is_truth(term):
                bounded.append(called)
            return syntax.name(called)

        stored = [
            syntax.store("now", syntax.constant(row), keep(value))
            for name, row in self.writer.rows.items()
            if (value := getattr(made, name)) is not Field(name)
        ]
        for name, column in self.writer.columns.items():
            value = getattr(made, name)
            if isinstance(value, MapTerm):
                stored += self._written(value, column, keep)
        large = [syntax.choose(_large(bounded), [syntax.give(syntax.constant(EXACT))])] if bounded else []
        return [*computed, *large, *stored, syntax.give(syntax.constant(0))]

    def _written(self, window: MapTerm, column: int, keep: Callable[[Any], ast.expr]) -> Iterator[ast.stmt]:
        """Yield the lines that write to a Map, in order."""
        of = (syntax.constant(column), syntax.constant(window.default))
        windows, width, origin = (syntax.name(one) for one in ("windows", "width", "origin"))
        if window.empty:
            word = "clear_pairs" if window.field in self.writer.pairs else "clear"
            yield ast.Expr(syntax.call(word, windows, width, *of))
        for effect in window.effects:
            key = effect.key if isinstance(effect, Put) else effect.low
            if isinstance(key, tuple) and isinstance(effect, Put):
                keys, value = [keep(one) for one in key], keep(effect.value)
                yield ast.Expr(syntax.call("put_pair", windows, *keys, width, *of, value, syntax.name("escape")))
                continue
            place = syntax.binary(keep(key), "-", origin)
            if isinstance(effect, Put):
                yield ast.Expr(
                    syntax.call("put", windows, place, width, *of, keep(effect.value), syntax.name("escape"))
                )
            else:
                yield ast.Expr(syntax.call("forget", windows, place, width, *of))
