"""A spec's search as functions of native code: its steps, properties and bound, for the common loop.

A state is packed into a few words (`packing.py`), and never unpacked: a number of it is some bits of a word, and so is
what a Map holds at a key. What a step makes is that state's words with the difference added, so that only what it
writes costs anything. What is asked of what a step makes is written in `conditions.py`, how a step is tried with
all its arguments in `guarded_calls.py`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gapless.properties.exploration.compiled import syntax as tree
from gapless.properties.exploration.compiled.bit_parallel import BitParallel
from gapless.properties.exploration.compiled.conditions import Conditions, Property
from gapless.properties.exploration.compiled.guarded_calls import CALLED, MADE_WITH, GuardedCalls, Subtree
from gapless.properties.exploration.compiled.lowering import TermEmitter
from gapless.properties.exploration.compiled.syntax import Block
from gapless.spec.catalog import END, Spec
from gapless.spec.language import Refused
from gapless.spec.reading.map_keys import key_counts
from gapless.spec.reading.trees.decision_trees import LEFT_ALONE, End, Tree, outcomes, reading, state_of_terms, tree_of
from gapless.spec.reading.trees.difference_bounds import follows
from gapless.spec.reading.trees.map_effects import Put
from gapless.spec.reading.trees.terms import Argument, MapTerm, Term

EXPLAINED = 4_000  # ways through a step with properties behind them up to which what follows is looked for


class NotExact(Exception):  # noqa: N818 - its message says all.
    """A shape of a step that native code does not have."""


class SearchSteps:
    """One spec's steps, properties and bound, for states that are packed in any way.

    `alone`: what holds of every state · `pairs`: of those before and after a step · `within`: whether steps are taken
    from a state · `allowed`: which deviations may stand in for what is refused · `runs`, `numbers`: how many runs of
    calls each action has, and the last arguments of the first. Reading them raises what they raise where one cannot be
    read without being called, or NotExact.
    """

    def __init__(
        self,
        spec: Spec,
        alone: Sequence[Property],
        pairs: Sequence[Property],
        within: Callable[[Any], bool],
        allowed: Sequence[bool],
        runs: Mapping[str, int],
        numbers: Mapping[str, range],
    ) -> None:
        self.spec, self.runs, self.numbers = spec, runs, numbers
        self.state, self.counts = state_of_terms(spec.initial), key_counts(type(spec.initial))
        self.lowering = TermEmitter(spec)
        self.bits = BitParallel(self.lowering)
        self.asked = Conditions(spec, self.state, alone, pairs, within, self.lowering, self.bits)
        self.calls = GuardedCalls(spec, self.lowering, self.bits)
        self.pairs = len(pairs)
        self.ways = len(spec.deviations) + 1
        self.instead: dict[str, list[int]] = defaultdict(list)  # by action, the deviations that may stand in for it
        for number, deviation in enumerate(spec.deviations):
            if allowed[number]:
                self.instead[deviation.instead_of.__name__].append(number)
        self.reasons: dict[tuple[str, str], int] = {}  # steps and the rules for which they refuse, from 1
        self.kinds: list[tuple[str, int]] = []  # the actions, and ways to take them, that are counted
        self.copied: set[tuple[int, int]] = set()  # the Maps that are stored into other fields, and whence
        self.how: dict[int, str] = {}  # by the number of an action, how it is tried
        self._write()

    def _write(self) -> None:
        roots: dict[str, tuple[Subtree, str]] = {
            f"instead_{number}": (self._step(self.spec.deviations[number].step, action, number + 1), "")
            for action, numbers in self.instead.items()
            for number in numbers
        }
        for code, (name, action) in enumerate(self.spec.actions.items()):
            last = (self.spec.parameters[name] or ("",))[-1]
            part = self._step(action, name, 0)
            part, self.how[code] = self.calls.guarded(
                code, part, last, one_run=self.runs[name] == 1, numbers=self.numbers[name]
            )
            if self.runs[name]:
                roots[f"take_{code}"] = part, last
        self.calls.write(roots)
        for name, numbers in self.instead.items():
            lines = [
                tree.when(tree.compared(tree.call(f"instead_{number}", *CALLED), "!=", 0), [tree.answer(1)])
                for number in numbers
            ]
            self.calls.functions[f"stand_in_{name}"] = (
                tree.function(f"stand_in_{name}", CALLED, [*lines, tree.answer(0)]), False,
            )  # fmt: skip

    @property
    def functions(self) -> dict[str, tuple[ast.FunctionDef, bool]]:
        """All functions by name, with whether each stands in its callers."""
        given = "runs", "args", *MADE_WITH
        tries = [
            tree.do(tree.call(f"try_{code}", *given)) for code in self.how if f"take_{code}" in self.calls.functions
        ]
        return {
            **{name: (one, False) for name, one in (self.lowering.functions | self.asked.functions).items()},
            **self.calls.functions,
            "is_right": (self.asked.is_right(), True),
            "try_calls": (tree.function("try_calls", given, [*tries, tree.answer(0)]), True),
        }

    # -- steps

    def _step(self, function: Callable[..., Any], action: str, way: int) -> Subtree:
        arguments = [Argument(name) for name in self.spec.parameters[action]]
        with reading(follows):
            node = tree_of(function, self.state, *arguments, known=follows)
        made = [outcome for outcome in outcomes(node) if isinstance(outcome, type(self.spec.initial))]
        for state in made:
            self._refuse_shapes(state)
        kind = len(self.kinds)
        self.kinds.append((action, way))
        grown = _StepParts(self, action, function.__name__, way, kind, self.asked.check(made))
        grown.explains = len(made) * self.pairs <= EXPLAINED
        return grown.part(node, ())

    def _refuse_shapes(self, made: Any) -> None:
        """Raise NotExact for a Map that is none of the state's, or has another default than its field's."""
        for name in self.spec.maps:
            window, own = getattr(made, name), getattr(self.state, name)
            if not isinstance(window, MapTerm):
                raise NotExact(f"a constant Map is stored into the field `{name}`")
            if window.default != own.default:
                raise NotExact(f"a Map with another default is stored into the field `{name}`")

    def effect(self, made: Any) -> Block:
        """Statements that make the state `new` of `row`."""
        lines: Block = []
        for number, name in enumerate(self.spec.scalars):
            value = getattr(made, name)
            if value is not getattr(self.state, name):
                lines.append(_do(f"change_{number}", "new", f"s_{name}", self.lowering.value(value), "escape"))
        for column, name in enumerate(self.spec.maps):
            window: MapTerm = getattr(made, name)
            if window.empty:
                begin = 0 if self.counts[name] == 2 else "ORIGIN"
                lines.append(_do(f"forget_{column}", "new", begin))
            elif window.field != name:
                source = self.lowering.columns[window.field]
                self.copied.add((column, source))
                lines.append(_do(f"copy_{column}_{source}", "row", "new", "escape"))
            for effect in window.effects:
                if isinstance(effect, Put):
                    key, value = self.lowering.value(effect.key), self.lowering.value(effect.value)
                    lines.append(_do(f"put_{column}", "new", key, value, "escape"))
                else:
                    lines.append(_do(f"forget_{column}", "new", self.lowering.value(effect.low)))
        return lines

    def reason(self, step: str, rule: str) -> int:
        """The number of why a step is refused."""
        return self.reasons.setdefault((step, rule), len(self.reasons) + 1)


class _StepParts:
    """One step's decision tree with its outcomes as statements, and what led to each."""

    explains = True

    def __init__(self, of: SearchSteps, action: str, step: str, way: int, kind: int, check: int) -> None:
        self.of, self.action, self.step, self.way, self.kind, self.check = of, action, step, way, kind, check

    def part(self, node: Tree, facts: tuple[tuple[Term, bool], ...]) -> Subtree:
        """A tree behind some answers."""
        if not isinstance(node, End):
            yes = self.part(node.yes, (*facts, (node.question, True)))
            no = self.part(node.no, (*facts, (node.question, False)))
            return self.of.calls.branch(node.question, yes, no)
        outcome = node.outcome
        if isinstance(outcome, Refused):
            return self._refusal(self.of.reason(self.step, outcome.rule))
        if outcome is LEFT_ALONE:
            return self.of.calls.end(LEFT_ALONE, lambda: [tree.answer(tree.call("leave_alone", "escape"))])
        asked = self.of.asked.of_step(outcome, facts if self.explains else ())
        return self.of.calls.end((self.kind, node, asked), lambda: self._made(outcome, asked))

    def _refusal(self, reason: int) -> Subtree:
        """A refusal: it is counted, and a deviation may stand in."""
        stands_in = bool(self.of.instead.get(self.action)) and not self.way
        then = tree.call(f"stand_in_{self.action}", *CALLED) if stands_in else 0
        lines = [tree.add_to("refused", reason, 1), tree.answer(then)]
        return self.of.calls.end(
            ("refused", reason, stands_in and self.action), lambda: lines, 0 if stands_in else reason
        )

    def _made(self, made: Any, asked: Any) -> Block:
        """Statements that make a state and keep it."""
        begin = tree.binary(tree.item("fill", 0), "*", "STRIDE")
        code = tree.binary(tree.binary("e", "*", self.of.ways), "+", self.way)
        return [
            tree.assign("new", tree.part_from("after", begin)),
            _do("copy", "row", "new"),
            *self.of.effect(made),
            tree.add_to("accepted", self.kind, 1),
            tree.assign("good", 1),
            *self.of.asked.judging(asked),
            tree.assign("inside", self.of.asked.inside(made)),
            tree.answer(
                tree.call(
                    "accept", code, self.check, "good", "inside", int(self.action == END), "e", "args", "row", "new",
                    "after", "mask", "slots", "fill", "escape", "numbers", "lows", "whole",
                )
            ),
        ]  # fmt: skip


def _do(name: str, *given: tree.Expression) -> ast.stmt:
    return tree.do(tree.call(name, *given))
