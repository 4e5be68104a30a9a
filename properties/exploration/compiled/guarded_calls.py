"""A step as functions that try it with all its arguments: of many calls at once, as far as that can be.

A need that comes first and does not look at the arguments is asked once, for all of them; one that compares the last
argument with something else says where in a run of calls to begin or to end, and so does one that asks something of
all numbers up to the last. Where all calls are one run, the other needs are asked of all calls before any is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from gapless.properties.exploration.compiled import syntax as tree
from gapless.properties.exploration.compiled.bit_parallel import BitParallel
from gapless.properties.exploration.compiled.lowering import TermEmitter, arguments_in, loads
from gapless.properties.exploration.compiled.syntax import Block
from gapless.spec.catalog import Spec
from gapless.spec.reading.trees.terms import CONTRARY, TURNED, Argument, Every, Operation, Term

QUESTIONS = 8  # of a step up to which all its calls are asked before any is taken
SHARED, LONG = 40, 650  # nodes from which a subtree is a function of its own: where it is met twice; anywhere
MADE_WITH = (
    "row", "after", "mask", "slots", "fill", "accepted", "refused", "escape", "numbers", "lows", "whole",
)  # fmt: skip
CALLED = "e", "args", *MADE_WITH
"""The parameters of functions that take a step."""


@dataclass(frozen=True, eq=False)
class Subtree:
    """A step's decision tree, or what is left of it behind some answers: a question, or statements that end a function.

    Parts that are alike are one object. `reason`: of a refusal with nothing that may stand in, its number.
    """

    question: Term | None = None
    yes: Subtree | None = None
    no: Subtree | None = None
    lines: Sequence[Any] = ()
    reason: int = 0


@dataclass
class Guards:
    """Questions before a step is taken: of all calls, of a run, and of all calls of the one run at once."""

    refused: Block = field(default_factory=list)
    narrowed: Block = field(default_factory=list)
    asked: Block = field(default_factory=list)
    is_exact: bool = False  # one call of a run is left


class GuardedCalls:
    """Writes the functions of steps, in `functions` by name, with whether each stands in its caller."""

    def __init__(self, spec: Spec, lowering: TermEmitter, bits: BitParallel) -> None:
        self.spec, self.lowering, self.bits = spec, lowering, bits
        self.functions: dict[str, tuple[Any, bool]] = {}
        self._parts: dict[Any, Subtree] = {}
        self._numbered = count()

    # -- parts

    def branch(self, question: Term, yes: Subtree, no: Subtree) -> Subtree:
        """A question; where both answers have the same consequences there is none."""
        if yes is no:
            return yes
        return self._parts.setdefault((question, id(yes), id(no)), Subtree(question, yes, no))

    def end(self, key: Any, lines: Any, reason: int = 0) -> Subtree:
        """An outcome that is known by a key. `lines`: what makes its statements, where there are none yet."""
        if key not in self._parts:
            self._parts[key] = Subtree(lines=lines(), reason=reason)
        return self._parts[key]

    # -- functions

    def write(self, roots: dict[str, tuple[Subtree, str]]) -> None:
        """Functions of these names. For each part: the last argument where the function knows `low`, or nothing."""
        shared = Counter[Subtree]()
        pending = [part for part, _ in roots.values()]
        seen = set(pending)
        while pending:
            part = pending.pop()
            for child in (part.yes, part.no):
                if child is not None:
                    shared[child] += 1
                    pending += [] if child in seen else [child]
                    seen.add(child)
        bodies: dict[Subtree, Block] = {}
        for name, (part, last) in roots.items():
            body = self._body(part, shared, bodies)
            if not name.startswith("take_"):
                self.functions[name] = self._function(name, body), False
                continue
            own = {f"a_{last}": tree.binary("e", "-", "low")} if last else {}
            whole = [*loads(body, self.spec, own=own), *body]
            self.functions[name] = tree.function(name, ("e", "low", "args", *MADE_WITH), whole), True

    def _function(self, name: str, body: Block) -> Any:
        return tree.function(name, CALLED, [*loads(body, self.spec), *body])

    def _body(self, part: Subtree, shared: Counter[Subtree], bodies: dict[Subtree, Block]) -> Block:
        if part not in bodies:
            if part.question is None or part.yes is None or part.no is None:
                bodies[part] = list(part.lines)
                return bodies[part]
            yes, no = (self._body(child, shared, bodies) for child in (part.yes, part.no))
            body: Block = [tree.when(self.lowering.truth(part.question), yes), *no]
            length = tree.size(body)
            if length > LONG or (shared[part] > 1 and length > SHARED):
                name = f"part_{next(self._numbered)}"
                self.functions[name] = self._function(name, body), False
                body = [tree.answer(tree.call(name, *CALLED))]
            bodies[part] = body
        return bodies[part]

    # -- guards

    def guarded(self, code: int, part: Subtree, last: str, *, one_run: bool, numbers: range) -> tuple[Subtree, str]:
        """Write what is asked of a step's calls first; what is left to be asked of each, and how it is tried."""
        made, argument = Guards(), Argument(last)
        while part.question is not None and part.yes is not None and part.no is not None:
            refused, kept = (part.yes, part.no) if part.yes.reason else (part.no, part.yes)
            if not refused.reason or not self._guard(
                made, code, part.question, argument, refused.reason, kept is part.yes
            ):
                break
            part = kept
        if one_run and not made.is_exact:
            made.asked = self._asked(part, argument, numbers)
            if made.asked:
                part = self._taken(part) or part
        self._write_guards(made, code)
        return part, "try_at_once" if made.asked else "try_one_run" if one_run else "try_runs"

    def _guard(self, made: Guards, code: int, question: Term, last: Argument, reason: int, wanted: bool) -> bool:  # noqa: FBT001
        """Ask a need once for many calls; False where that cannot be."""
        test = self.lowering.truth(question)
        outcome = tree.no(test) if wanted else test
        arguments = arguments_in(question)
        if not arguments and not made.narrowed:
            every = tree.binary(f"CALLS_{code}_END", "-", f"CALLS_{code}_FIRST")
            made.refused.append(tree.when(outcome, [tree.add_to("refused", reason, every), tree.answer(1)]))
        elif not any(one is last for one in arguments):
            left = tree.binary("last", "-", "first")
            made.narrowed.append(
                tree.when(outcome, [tree.add_to("refused", reason, left), tree.answer("first", "first")])
            )
        else:
            found = self._range(question, last, wanted=wanted)
            if found is None:
                return False
            made.narrowed += _narrowing(*found, reason)
            made.is_exact |= found[0] == "=="
        return True

    def _range(self, question: Term, last: Argument, *, wanted: bool) -> tuple[str, Any] | None:
        """The sign and the bound of a question about a call's number; None where it is none about the last argument."""
        if isinstance(question, Every):
            inside = question.low.reads | (question.body.reads - {question.variable})
            if not wanted or question.high is not last or last in inside:
                return None
            low = self.lowering.value(question.low)
            high = tree.call("max", low, tree.binary(tree.binary("last", "-", "low"), "-", 1))
            return "<=", tree.binary("low", "+", self.lowering.up_to(question, high))
        if not isinstance(question, Operation) or not question.compares:
            return None
        if question.left is last:
            sign, bound = question.sign, question.right
        elif question.right is last:
            sign, bound = TURNED[question.sign], question.left
        else:
            return None
        sign = sign if wanted else CONTRARY[sign]
        if last in bound.reads or sign == "!=" or (not wanted and sign == "=="):
            return None
        return sign, tree.binary("low", "+", self.lowering.value(bound))

    def _taken(self, part: Subtree) -> Subtree | None:
        """The tree that is left for calls that are not refused; None where all are."""
        if part.question is None or part.yes is None or part.no is None:
            return None if part.reason else part
        yes, no = self._taken(part.yes), self._taken(part.no)
        return self.branch(part.question, yes, no) if yes and no else yes or no

    def _asked(self, part: Subtree, last: Argument, numbers: range) -> Block:
        """Statements that ask all calls of a run, none for another; none where nothing is asked, or not for sure."""
        lines: Block = []
        anything, asked = False, 0
        taken, pending = [tree.expression(0)], [(part, "every")]
        while pending:
            one, within = pending.pop()
            if one.question is None or one.yes is None or one.no is None:
                if one.reason:
                    lines.append(tree.add_to("refused", one.reason, tree.call("count_bits", within)))
                else:
                    taken.append(tree.expression(within))
                continue
            asked += 1
            bits = self.bits.bits(one.question, last, numbers) if asked <= QUESTIONS else None
            if bits is None:
                return []
            anything |= last in one.question.reads
            lines += [
                tree.assign(f"is_{asked}", bits),
                tree.assign(f"yes_{asked}", tree.binary(within, "&", f"is_{asked}")),
                tree.assign(f"no_{asked}", tree.binary(within, "&", tree.inverted(f"is_{asked}"))),
            ]
            pending += [(one.yes, f"yes_{asked}"), (one.no, f"no_{asked}")]
        return [*lines, tree.answer(tree.joined("|", taken, 0))] if anything else []

    def _write_guards(self, made: Guards, code: int) -> None:
        if made.refused:
            body = [*made.refused, tree.answer(0)]
            self._add(f"is_refused_{code}", ("row", "refused", "escape"), body)
        if made.narrowed:
            body = [*made.narrowed, tree.answer("first", "last")]
            self._add(f"narrowed_{code}", ("first", "last", "low", "args", "row", "refused", "escape"), body)
        if made.asked:
            self._add(f"asked_{code}", ("first", "every", "args", "row", "refused", "escape"), made.asked)

    def _add(self, name: str, given: tuple[str, ...], body: Block) -> None:
        begin = loads(body, self.spec)
        if "args" in tree.names_in(*begin):
            begin = [tree.assign("e", "first"), *begin]
        self.functions[name] = tree.function(name, given, [*begin, *body]), True


def _narrowing(sign: str, at: Any, reason: int) -> Block:
    """Statements that leave of a run, from `first` to `last`, the calls that a comparison allows."""
    nothing_left = tree.when(tree.compared("first", ">=", "last"), [tree.answer("first", "first")])
    if sign == "==":
        outside = tree.no(tree.compared("first", "<=", "cut", "<", "last"))
        every = tree.binary("last", "-", "first")
        return [
            tree.assign("cut", at),
            tree.when(outside, [tree.add_to("refused", reason, every), tree.answer("first", "first")]),
            tree.add_to("refused", reason, tree.binary(every, "-", 1)),
            tree.assign("first", "cut"),
            tree.assign("last", tree.binary("cut", "+", 1)),
        ]
    at = tree.binary(at, "+", 1) if sign in {">", "<="} else at
    cut = tree.assign("cut", tree.call("between", at, "first", "last"))
    if sign in {">", ">="}:
        gone = tree.add_to("refused", reason, tree.binary("cut", "-", "first"))
        return [cut, gone, tree.assign("first", "cut"), nothing_left]
    gone = tree.add_to("refused", reason, tree.binary("last", "-", "cut"))
    return [cut, gone, tree.assign("last", "cut"), nothing_left]
