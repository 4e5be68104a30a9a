"""Conditions on a state that a step makes: only those that neither the step's own needs nor the state before imply.

A state that is left has been judged: all invariants were true there, for every number, or the search had ended. An
invariant that looks at none of the fields that a step wrote says the same as before; one that speaks of a Map at its
own number alone says the same for all numbers but those where something was put. Of a step property, what is left
behind the answers that led to the step's end is asked (`spec/reading/trees/difference_bounds.py`).
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gapless.properties.exploration.compiled import syntax as tree
from gapless.properties.exploration.compiled.bit_parallel import MANY, BitParallel
from gapless.properties.exploration.compiled.lowering import TermEmitter, field_of, loads, reads_field
from gapless.properties.exploration.compiled.syntax import Block
from gapless.spec import forking
from gapless.spec.catalog import Spec
from gapless.spec.reading.trees.decision_trees import FALSE, TRUE, Branch, End, Tree, always, answered, reading, tree_of
from gapless.spec.reading.trees.difference_bounds import Answers, follows
from gapless.spec.reading.trees.map_effects import Put
from gapless.spec.reading.trees.terms import (
    AFTER,
    At,
    Constant,
    MapTerm,
    Operation,
    Pair,
    Term,
    Variable,
    Word,
    term_of,
)

Property = tuple[Callable[..., bool], Sequence[str], Sequence[tuple[int, ...]]]
"""A function of states and numbers that holds, the numbers' names, and the rows of numbers that it is asked for."""
Numbers = tuple[str, ...]
Question = tuple[Numbers, Term | None, tuple[Tree, ...]]
"""Trees that are asked of numbers of these names: of all, or of the one that a key is."""

FEW_KEYS = 2  # that a step puts something at, up to which invariants are asked of these alone
JUDGED = "e", "args", "row", "old", "escape", "numbers", "lows"
ALL = None  # in the place of a key: it may be any


class Conditions:
    """Reads a spec's properties and bound, and writes what is asked of states. Raises what reading them raises."""

    def __init__(
        self, spec: Spec, state: Any, alone: Sequence[Property], pairs: Sequence[Property],
        within: Callable[[Any], bool], lowering: TermEmitter, bits: BitParallel,
    ) -> None:  # fmt: skip
        self.spec, self.state, self.pairs, self.lowering, self.bits = spec, state, pairs, lowering, bits
        self.rows = {tuple(names): rows for _, names, rows in (*alone, *pairs)}
        self.spoken_of: dict[Numbers, int] = {}  # by names of numbers, where these stand
        self.functions: dict[str, ast.FunctionDef] = {}
        self._checks: dict[Any, int] = {}
        self._bounds: dict[Tree, str] = {}
        with reading(follows):
            self._alone = [
                (tuple(names), tree_of(holds, state, *_variables(names), known=follows)) for holds, names, _ in alone
            ]
            self._within = answered(tree_of(within, state, known=follows), {})

    # -- what a step writes

    def written(self, made: Sequence[Any]) -> dict[str, dict[Term | None, None]]:
        """The fields that a step writes in one of its ways, and at which keys: ALL where that is not known."""
        keys: dict[str, dict[Term | None, None]] = {}
        for state in made:
            for name in self.spec.scalars:
                if getattr(state, name) is not getattr(self.state, name):
                    keys[name] = {ALL: None}
            for name in self.spec.maps:
                window: MapTerm = getattr(state, name)
                if window.untouched and window.field == name:
                    continue
                there = keys.setdefault(name, {})
                if window.empty or window.field != name:
                    there[ALL] = None
                there.update({term_of(e.key) if isinstance(e, Put) else ALL: None for e in window.effects})
        return keys

    # -- the bound

    def inside(self, made: Any) -> ast.expr:
        """1 if the state that a step leads to is within the bound, 0 otherwise: the state that it leaves is."""
        put: list[ast.expr] = []

        def is_put(question: Any) -> bool:
            """True if a Map holds no more than so much wherever what the step puts there is no more."""
            match question:
                case Operation("<=", Word("most", (name, _)), Constant(limit)):
                    window: MapTerm = getattr(made, name)
                case _:
                    return False
            if window.empty or window.field != name or len(window.effects) != 1 or window.default > limit:
                return False
            (effect,) = window.effects
            if isinstance(effect, Put):
                put.append(tree.compared(self.lowering.value(effect.value), "<=", limit))
            return True

        left = _left_of(self._within, self.written([made]), is_put)
        if not always(left):
            if left not in self._bounds:
                self._bounds[left] = name = f"is_within_{len(self._bounds)}"
                body = [*self.lowering.refusing(left), tree.answer(1)]
                self.functions[name] = tree.function(name, ("row", "escape"), [*loads(body, self.spec), *body])
            put.append(tree.compared(tree.call(self._bounds[left], "new", "escape"), "!=", 0))
        return tree.as_number(tree.all_of(put)) if put else tree.expression(1)

    # -- step properties

    def of_step(self, made: Any, facts: Sequence[tuple[Term, bool]]) -> tuple[Question, ...]:
        """The conditions on a step that led to a state, behind these answers."""
        after = {
            name: getattr(self.state, name) if window.untouched and window.field == name
            else MapTerm(name, window.default, version=AFTER)
            for name in self.spec.maps for window in [getattr(made, name)]
        }  # fmt: skip
        state = replace(made, **after)
        asked: dict[tuple[Numbers, Term | None], tuple[Tree, ...]] = {}
        known = Answers(facts).known
        with reading(follows):
            for one in self.pairs:
                for where, node in self._of_pair(one, made, state, known):
                    if not always(node):
                        asked[tuple(one[1]), where] = (*asked.get((tuple(one[1]), where), ()), node)
        return tuple((names, where, trees) for (names, where), trees in asked.items())

    def _of_pair(
        self, one: Property, made: Any, after: Any, known: forking.Known
    ) -> Iterator[tuple[Term | None, Tree]]:
        """The trees that a step property asks of its numbers: where something was put, and of all.

        One that looks into Maps at its own number alone is asked with the numbers where something was put as they are
        written, if it needs not be asked of others: there, Maps are unchanged.
        """
        holds, names, rows = one
        before, asked = self.state, _variables(names)
        reads = dict[Term, None]()

        def noting(path: forking.Path, question: Any) -> bool | None:
            reads.update(dict.fromkeys(question.reads))
            return known(path, question)

        node = tree_of(holds, before, after, *asked, known=noting)
        keys = self.written([made])
        written = [name for name in self.spec.maps if name in keys]
        wheres = {where: None for name in written for where in keys[name]}
        looked = *reads, *node.reads
        if (
            len(names) == 1 and between(rows) is not None and written and ALL not in wheres and len(wheres) <= FEW_KEYS
            and not any(isinstance(where, Pair) for where in wheres)
            and all(isinstance(r, At) and r.key is asked[0] for r in looked if field_of(r) in self.spec.maps)
        ):  # fmt: skip
            still = replace(made, **{name: getattr(before, name) for name in written})
            if always(tree_of(holds, before, still, *asked, known=known)):
                for where in wheres:
                    yield where, tree_of(holds, before, made, where, known=known)
                return
        yield ALL, node

    def judging(self, asked: Sequence[Question]) -> Block:
        """Statements that set `good` to 0 if a step property is false."""
        lines: Block = []
        for names, where, trees in asked:
            body = [line for node in trees for line in self.lowering.flagging(node)]
            lines += self._each(names, body, where, of_old=False)
        return lines

    # -- invariants

    def check(self, made: Sequence[Any]) -> int:
        """The number of what is asked of a state that a step leads to, in one of these ways."""
        keys = self.written(made)
        at_once: list[tuple[Numbers, Tree]] = []
        asked: dict[tuple[Numbers, Term | None], tuple[Tree, ...]] = {}
        for names, node in self._alone:
            reads = [read for read in node.reads if field_of(read) in keys]
            if not reads or always(node):
                continue
            wheres: dict[Term | None, None] = {ALL: None}
            if len(names) == 1 and between(self.rows[names]) and all(
                isinstance(read, At) and read.key is Variable(f"q_{names[0]}") for read in reads
            ):  # fmt: skip
                wheres = {where: None for name in self.spec.maps for where in keys.get(name, ())
                          if any(field_of(read) == name for read in reads)}  # fmt: skip
            few = ALL not in wheres and len(wheres) <= FEW_KEYS
            if not few and len(names) == 1 and self._of_all(node, names[0], itertools.count()):
                at_once.append((names, node))
                continue
            for where in wheres if few else [ALL]:
                asked[names, where] = (*asked.get((names, where), ()), node)
        key = tuple(at_once), tuple(asked.items())
        if key not in self._checks:
            self._checks[key] = number = len(self._checks)
            self._write_check(f"right_{number}", at_once, asked)
        return self._checks[key]

    def _write_check(self, name: str, at_once: Sequence[Any], asked: Mapping[Any, Sequence[Tree]]) -> None:
        counted = itertools.count()
        body: Block = []
        for names, node in at_once:
            body += self._of_all(node, names[0], counted) or []
        for (names, where), trees in asked.items():
            lines = [line for node in trees for line in self.lowering.refusing(node)]
            body += self._each(names, lines, where, of_old=True)
        body.append(tree.answer(1))
        self.functions[name] = tree.function(name, JUDGED, [*loads(body, self.spec), *body])

    def is_right(self) -> ast.FunctionDef:
        """The function that asks what has a number, which its callers know."""
        lines: Block = []
        for number in self._checks.values():
            asked = tree.call(f"right_{number}", *JUDGED)
            lines.append(tree.when(tree.compared("check", "==", number), [tree.answer(asked)]))
        return tree.function("is_right", ("check", *JUDGED), [*lines, tree.answer(1)])

    def _of_all(self, node: Tree, name: str, count: Iterator[int]) -> Block | None:
        """Statements that end with 0 where a tree's outcome is false for some number; None where that needs a loop."""
        ends, of = between(self.rows[name,]), Variable(f"q_{name}")
        if ends is None or not ends[0] < ends[1] <= ends[0] + MANY:
            return None
        numbers = range(*ends)
        lines: Block = []
        wrong: list[tree.Expression] = []
        pending: list[tuple[Tree, tree.Expression]] = [(node, (1 << len(numbers)) - 1)]
        while pending:
            one, within = pending.pop()
            if isinstance(one, End) and isinstance(one.outcome, bool):
                wrong += [] if one.outcome else [within]
                continue
            asked = one.outcome if isinstance(one, End) else one.question
            bits = self.bits.bits(asked, of, numbers) if isinstance(asked, (Term, int)) else None
            if bits is None:
                return None
            at = next(count)
            lines.append(tree.assign(f"is_{at}", bits))
            if isinstance(one, End):
                wrong.append(tree.binary(within, "&", tree.inverted(f"is_{at}")))
                continue
            answers = ("yes", one.yes, tree.expression(f"is_{at}")), ("no", one.no, tree.inverted(f"is_{at}"))
            for answer, child, right in answers:
                if child is not TRUE:
                    lines.append(tree.assign(f"{answer}_{at}", tree.binary(within, "&", right)))
                    pending.append((child, f"{answer}_{at}"))
        return [*lines, tree.when(tree.compared(tree.joined("|", wrong, 0), "!=", 0), [tree.answer(0)])]

    def _each(self, names: Numbers, body: Block, where: Term | None, *, of_old: bool) -> Block:
        """Statements for all numbers, or for the one that `where` is, of the state before if `of_old`."""
        if not names or not body:
            return body
        ends = between(self.rows[names]) if len(names) == 1 else None
        if where is not ALL and ends:
            here = tree.compared(ends[0], "<=", "key", "<", ends[1])
            key = tree.assign("key", self.lowering.value(where, of_old=of_old))
            return [key, tree.when(here, [tree.assign(f"v_q_{names[0]}", "key"), *body])]
        if ends:
            return [tree.for_each(f"v_q_{names[0]}", ends[0], ends[1], body)]
        number = self.spoken_of.setdefault(names, len(self.spoken_of))
        given = [
            tree.assign(f"v_q_{name}", tree.item("numbers", tree.binary(tree.binary("r", "*", "ROW"), "+", column)))
            for column, name in enumerate(names)
        ]
        return [tree.for_each("r", tree.item("lows", number), tree.item("lows", number + 1), [*given, *body])]


def _variables(names: Sequence[str]) -> list[Variable]:
    return [Variable(f"q_{name}") for name in names]


def between(rows: Sequence[tuple[int, ...]]) -> tuple[int, int] | None:
    """From which number on, and up to which, rows of one number speak; None where some are left out."""
    if not rows or len(rows[0]) != 1:
        return None
    numbers = sorted({row[0] for row in rows})
    return (numbers[0], numbers[-1] + 1) if numbers == list(range(numbers[0], numbers[-1] + 1)) else None


def _left_of(node: Tree, written: Mapping[str, Any], is_put: Callable[[Any], bool]) -> Tree:
    """The rest of a property to check after a step that wrote these fields, if it was true before.

    As long as all questions were answered alike of both states, what looks at nothing that was written is known.
    `is_put`: whether something else is asked instead of a question that must be true of both states.
    """
    if isinstance(node, End):
        return node if node is FALSE or (reads_field(node, written) and not is_put(node.outcome)) else TRUE
    if not reads_field(node.question, written):
        if FALSE in {node.yes, node.no}:
            return _left_of(node.no if node.yes is FALSE else node.yes, written, is_put)
        yes, no = (_left_of(child, written, _nothing_put) for child in (node.yes, node.no))
        return Branch(node.question, yes, no)
    if node.no is FALSE:
        yes = _left_of(node.yes, written, is_put)
        return yes if is_put(node.question) else Branch(node.question, yes, node.no)
    return Branch(node.question, node.yes, _left_of(node.no, written, is_put) if node.yes is FALSE else node.no)


def _nothing_put(_: Any) -> bool:
    return False
