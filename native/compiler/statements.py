"""Statements of the function that is being lowered."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gapless.native.compiler.conditions import ConditionEmitter
from gapless.native.compiler.values import NONE, Lowered, Members, Value, flat, number, returned_type
from gapless.native.kinds import I64, Array, Kind, leaves


@dataclass
class OpenLoop:
    """A loop that is being lowered: where `continue` and `break` lead, and which variables are assigned there."""

    again: str
    after: str
    assigned: set[str]

    def __post_init__(self) -> None:
        self.breaks: list[set[str]] = []
        self.continues: list[set[str]] = []


class Statements(ConditionEmitter):
    """Lowers statements, one after the other."""

    answer: Kind | None
    loops: list[OpenLoop]

    def leave(self, value: Lowered) -> None:
        """Return a value."""
        if self.answer is None:
            self.answer = value.kind
        value = self.fitted(value, self.answer, None, self.node)
        words, types = list(flat(value)), list(leaves(self.answer))
        if not types:
            self.end("ret void")
        elif len(types) == 1:
            self.end(f"ret {types[0]} {words[0]}")
        else:
            whole = returned_type(self.answer)
            made = "undef"
            for at, (llvm, one) in enumerate(zip(types, words, strict=True)):
                made = self.new(f"insertvalue {whole} {made}, {llvm} {one}, {at}")
            self.end(f"ret {whole} {made}")

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Statements, up to one behind which nothing is reached."""
        for node in body:
            if self.is_ended:
                return
            lower = STATEMENTS.get(type(node))
            if lower is None:
                raise self.refused(node, "the language has no such statement")
            lower(self, node)

    def on_expression(self, node: ast.Expr) -> None:
        """A call, or a text that says something to readers."""
        if not isinstance(node.value, ast.Constant):
            self.operand(node.value)

    def on_nothing(self, node: ast.Pass) -> None:
        """Nothing."""

    def on_return(self, node: ast.Return) -> None:
        """Return."""
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.leave(NONE)
        else:
            self.leave(self.value(node.value))

    def on_assignment(self, node: ast.Assign) -> None:
        """Assign one value to all targets."""
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def on_annotated(self, node: ast.AnnAssign) -> None:
        """Assign; the annotation is for readers."""
        if node.value is not None:
            self.assign(node.target, self.value(node.value))

    def on_augmented(self, node: ast.AugAssign) -> None:
        """Assign what an operation makes of the target. An index is computed twice: it has no effects."""
        target: Any = node.target
        if isinstance(target, ast.Name):
            before: ast.expr = ast.Name(target.id, ast.Load())
        else:
            before = ast.Subscript(target.value, target.slice, ast.Load())
        self.assign(
            target, self.value(ast.copy_location(ast.BinOp(ast.copy_location(before, node), node.op, node.value), node))
        )

    def assign(self, target: ast.expr, value: Lowered) -> None:
        """Assign a value to a name, to a part of an array, or piece by piece."""
        if isinstance(target, ast.Name):
            self.store(target.id, value, target)
        elif isinstance(target, ast.Tuple):
            parts = (
                value.values
                if isinstance(value, Members)
                else tuple(self.element(value, [number(at)], target) for at in range(len(target.elts)))
            )
            if len(parts) != len(target.elts):
                raise self.refused(target, f"{len(parts)} values for {len(target.elts)} names")
            for one, part in zip(target.elts, parts, strict=True):
                self.assign(one, part)
        elif isinstance(target, ast.Subscript):
            self.put(target, value)
        else:
            raise self.refused(target, "a name, a part of an array or a tuple of these is assigned to")

    def on_if(self, node: ast.If) -> None:
        """One of two ways; where the condition is a constant, the other way is not looked at."""
        known = self.known_truth(node.test)
        if known is not None:
            self.block(node.body if known else node.orelse)
            return
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(node.test, yes, no)
        before, found = set(self.assigned), []
        is_reached = False
        for label, body in ((yes, node.body), (no, node.orelse)):
            self.assigned = set(before)
            self.arrive(label)
            self.block(body)
            if not self.is_ended:
                found.append(self.assigned)
                is_reached = True
            self.end(f"br label %{after}")
        self.assigned = set.intersection(*found) if found else before
        if is_reached:
            self.begin(after)

    def on_while(self, node: ast.While) -> None:
        """Again and again as long as the condition is true."""
        if node.orelse:
            raise self.refused(node, "a loop has no else")
        again, inside, after = self.label(), self.label(), self.label()
        forever = self.known_truth(node.test) is True
        self.begin(again)
        if not forever:
            self.branch(node.test, inside, after)
            self.arrive(inside)
        loop = self._looped(node.body, again, after)
        self.end(f"br label %{again}")
        if not forever:
            loop.assigned = set.intersection(self.reached.get(after, loop.assigned), loop.assigned, *loop.breaks)
        self._behind(loop, after, forever=forever)

    def on_for(self, node: ast.For) -> None:
        """For each number of a range, each element of an array, or each member of a tuple."""
        if node.orelse:
            raise self.refused(node, "a loop has no else")
        call = node.iter
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "range"
            and not call.keywords
        ):
            low, high, step = self._range(call)
            self._counted(node, low, high, step, lambda at: at)
            return
        over = self.value(call)
        if isinstance(over, Members):
            self._unrolled(node, over)
        elif isinstance(over.kind, Array):
            array = over
            length = Value(I64, (array.shape[0],))
            self._counted(node, number(0), length, 1, lambda at: self.element(array, [at], node))
        else:
            raise self.refused(call, "a loop goes through a range, an array or a tuple")

    def _range(self, call: ast.Call) -> tuple[Value, Value, int]:
        given = [self.cast(self.number_of(one), I64) for one in call.args]
        low, high = (number(0), given[0]) if len(given) == 1 else given[:2]
        step = given[2].constant if len(given) == 3 else 1
        if not step:
            raise self.refused(call, "a range's step is a constant, and not 0")
        return low, high, step

    def _counted(self, node: ast.For, low: Value, high: Value, step: int, element: Callable[[Value], Lowered]) -> None:
        self.count += 1
        place = f"%c{self.count}"
        self.places.append(f"  {place} = alloca i64")
        self.write(f"store i64 {low.text}, ptr {place}")
        test, inside, then, after = (self.label() for _ in range(4))
        self.begin(test)
        at = self.new(f"load i64, ptr {place}")
        more = self.new(f"icmp {'slt' if step > 0 else 'sgt'} i64 {at}, {high.text}")
        self.end(f"br i1 {more}, label %{inside}, label %{after}")
        self.begin(inside)
        before = set(self.assigned)
        self.assign(node.target, element(Value(I64, (at,))))
        loop = self._looped(node.body, then, after)
        self.begin(then)
        self.write(f"store i64 {self.new(f'add nsw i64 {at}, {step}')}, ptr {place}")
        self.end(f"br label %{test}")
        loop.assigned = before
        self._behind(loop, after, forever=False)

    def _unrolled(self, node: ast.For, over: Members) -> None:
        after = self.label()
        ways: list[set[str]] = []  # to the end of the loop
        for member in over.values:
            self.assign(node.target, member)
            then = self.label()
            loop = self._looped(node.body, then, after)
            ways += loop.breaks
            ends = loop.continues if self.is_ended else [*loop.continues, self.assigned]
            self.begin(then)
            if not ends:  # each way leaves the loop
                self.write("unreachable")
                self.is_ended = True
                break
            self.assigned = set.intersection(*ends)
        else:
            ways.append(self.assigned)
        if ways:
            self.assigned = set.intersection(*ways)
            self.begin(after)

    def _looped(self, body: Sequence[ast.stmt], again: str, after: str) -> OpenLoop:
        loop = OpenLoop(again, after, set(self.assigned))
        self.loops.append(loop)
        self.block(body)
        self.loops.pop()
        return loop

    def _behind(self, loop: OpenLoop, after: str, *, forever: bool) -> None:
        """Go on behind a loop: what was assigned before it is, and behind an endless one what was before each break."""
        if forever:
            if not loop.breaks:
                self.is_ended = True
                return
            self.assigned = set.intersection(*loop.breaks)
        else:
            self.assigned = loop.assigned
        self.begin(after)

    def on_break(self, _node: ast.Break) -> None:
        """Leave the loop."""
        self.loops[-1].breaks.append(set(self.assigned))
        self.end(f"br label %{self.loops[-1].after}")

    def on_continue(self, _node: ast.Continue) -> None:
        """On to the next round."""
        self.loops[-1].continues.append(set(self.assigned))
        self.end(f"br label %{self.loops[-1].again}")


STATEMENTS: dict[type, Callable[[Statements, Any], None]] = {
    ast.Expr: Statements.on_expression,
    ast.Pass: Statements.on_nothing,
    ast.Return: Statements.on_return,
    ast.Assign: Statements.on_assignment,
    ast.AnnAssign: Statements.on_annotated,
    ast.AugAssign: Statements.on_augmented,
    ast.If: Statements.on_if,
    ast.While: Statements.on_while,
    ast.For: Statements.on_for,
    ast.Break: Statements.on_break,
    ast.Continue: Statements.on_continue,
}
