"""ConditionEmitter: comparisons, logic and branches, within the function that is being lowered."""

from __future__ import annotations

import ast

from gapless.native.compiler.calls import CallEmitter
from gapless.native.compiler.values import KnownObject, Lowered, Members, Operand, Value
from gapless.native.kinds import BOOL, I64, U64, Array

RISKY = ast.Subscript, ast.Call, ast.FloorDiv, ast.Mod, ast.NamedExpr
"""Parts of an expression that are computed only where Python would: an index may be out of bounds, say."""


class ConditionEmitter(CallEmitter):
    """Computes conditions, and leads on from them."""

    def of_comparison(self, node: ast.Compare) -> Operand:
        """A comparison, or several; Python's way of not looking at the last ones is kept where it matters."""
        if len(node.ops) > 1 and any(isinstance(one, RISKY) for part in node.comparators[1:] for one in ast.walk(part)):
            return self._by_branches(node)
        return Value(BOOL, (self._compared(node),))

    def _compared(self, node: ast.Compare) -> str:
        operands = [self.operand(one) for one in (node.left, *node.comparators)]
        bits = [
            self._comparison(sign, one, other, node)
            for sign, one, other in zip(node.ops, operands, operands[1:], strict=False)
        ]
        found = bits[0]
        for bit in bits[1:]:
            found = self.new(f"and i1 {found}, {bit}")
        return found

    def _comparison(self, sign: ast.cmpop, one: Operand, other: Operand, node: ast.AST) -> str:
        if isinstance(sign, (ast.In, ast.NotIn)):
            if not isinstance(other, Members) or not other.values:
                raise self.refused(node, "something is looked for in a tuple")
            bits = [self._comparison(ast.Eq(), one, member, node) for member in other.values]
            found = bits[0]
            for bit in bits[1:]:
                found = self.new(f"or i1 {found}, {bit}")
            return found if isinstance(sign, ast.In) else self.new(f"xor i1 {found}, 1")
        if isinstance(sign, (ast.Is, ast.IsNot)):
            raise self.refused(node, "numbers are compared by == and !=")
        return self.compared(sign, self._number_in(one, node), self._number_in(other, node), node)

    def of_logic(self, node: ast.BoolOp) -> Operand:
        """Several conditions. Where none can go wrong, no branch is taken."""
        if any(isinstance(one, RISKY) for part in node.values[1:] for one in ast.walk(part)):
            return self._by_branches(node)
        word = "and" if isinstance(node.op, ast.And) else "or"
        found = ""
        for part in node.values:
            bit = self._condition(part)
            found = self.new(f"{word} i1 {found}, {bit}") if found else bit
        return Value(BOOL, (found,))

    def _condition(self, node: ast.expr) -> str:
        value = self.number_of(node)
        if value.kind != BOOL:
            raise self.refused(node, "`and` and `or` are of conditions, as values; write a comparison")
        return value.text

    def _by_branches(self, node: ast.expr) -> Value:
        yes, no, after = self.label(), self.label(), self.label()
        if isinstance(node, ast.BoolOp):
            for part in node.values:
                if isinstance(part, (ast.Name, ast.Subscript, ast.Constant, ast.BinOp)) and not self._is_condition(
                    part
                ):
                    raise self.refused(part, "`and` and `or` are of conditions, as values; write a comparison")
        before = set(self.assigned)
        self.branch(node, yes, no)
        self.begin(yes)
        self.end(f"br label %{after}")
        self.begin(no)
        self.end(f"br label %{after}")
        self.begin(after)
        self.assigned = set.intersection(*(self.reached.get(label, before) for label in (yes, no)))
        return Value(BOOL, (self.new(f"phi i1 [1, %{yes}], [0, %{no}]"),))

    def _is_condition(self, node: ast.expr) -> bool:
        """True if a part of `and` or `or` is a boolean; asked without writing any of it."""
        lines, places, count = len(self.lines), len(self.places), self.count
        ended, choices, variables, assigned = self.is_ended, self.choices, dict(self.variables), set(self.assigned)
        value = self.operand(node)
        del self.lines[lines:], self.places[places:]
        self.count, self.is_ended, self.choices = count, ended, choices
        self.variables, self.assigned = variables, assigned
        return isinstance(value, Value) and value.kind == BOOL

    def known_truth(self, node: ast.expr) -> bool | None:  # noqa: PLR0911 - a kind of expression a case
        """The truth of a condition that is known while the function is lowered."""
        match node:
            case ast.Constant():
                return bool(node.value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                known = self.known_truth(operand)
                return None if known is None else not known
            case ast.BoolOp(op=op, values=values):
                decides = isinstance(op, ast.Or)
                every = [self.known_truth(one) for one in values]
                if every[0] is decides:
                    return decides
                return None if None in every else (any(every) if decides else all(every))
            case ast.Name() | ast.Compare() if self._is_constant(node):
                value = self.operand(node)
                if isinstance(value, Value) and value.constant is not None:
                    return bool(value.constant)
                return bool(value.value) if isinstance(value, KnownObject) else None
            case _:
                return None

    def _is_constant(self, node: ast.expr) -> bool:
        return all(
            one.id not in self.variables and isinstance(self.parameters.get(one.id, _NO), (KnownObject, type(_NO)))
            for one in ast.walk(node)
            if isinstance(one, ast.Name)
        ) and not any(
            isinstance(one, (ast.Subscript, ast.BinOp, ast.NamedExpr, *self._branching(node))) for one in ast.walk(node)
        )

    @staticmethod
    def _branching(node: ast.expr) -> tuple[type, ...]:
        """The parts with which several comparisons are computed by branches, which ask whether they are known."""
        return (ast.Call, ast.IfExp) if isinstance(node, ast.Compare) and len(node.ops) > 1 else (ast.IfExp,)

    def branch(self, node: ast.expr, yes: str, no: str) -> None:
        """End the block: on to one label where the condition is true, to the other where it is not."""
        known = self.known_truth(node)
        if known is not None:
            self.end(f"br label %{self._leads(yes if known else no)}")
            return
        match node:
            case ast.BoolOp(op=op, values=[*first, last]):
                for part in first:
                    then = self.label()
                    self.branch(part, *((then, no) if isinstance(op, ast.And) else (yes, then)))
                    self.arrive(then)
                self.branch(last, yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.branch(operand, no, yes)
            case ast.Compare(left=left, ops=[_, _, *_] as ops, comparators=parts):
                before = self.operand(left)
                for sign, part in zip(ops, parts, strict=True):
                    then = self.label()
                    value = self.operand(part)
                    bit = self._comparison(sign, before, value, node)
                    on = yes if part is parts[-1] else then
                    self.end(f"br i1 {bit}, label %{self._leads(on)}, label %{self._leads(no)}")
                    if part is not parts[-1]:
                        self.begin(then)
                    before = value
            case _:
                bit = self.truth_of(node)
                self.end(f"br i1 {bit}, label %{self._leads(yes)}, label %{self._leads(no)}")

    def _leads(self, label: str) -> str:
        """The label, to which a way leads on which some variables are assigned."""
        self.reached[label] = self.reached.get(label, self.assigned) & self.assigned
        return label

    def of_choice(self, node: ast.IfExp) -> Operand:
        """One of two values; the other is not computed."""
        known = self.known_truth(node.test)
        if known is not None:
            return self.operand(node.body if known else node.orelse)
        yes, no, after = self.label(), self.label(), self.label()
        before = set(self.assigned)
        self.branch(node.test, yes, no)
        self.arrive(yes)
        one = self.value(node.body)
        behind_one = self.assigned
        aside, self.lines = self.lines, []
        self.assigned = set(self.reached.get(no, before))
        self.begin_at(no)
        other = self.value(node.orelse)
        behind_other = self.assigned
        there, self.lines = self.lines, aside
        one, other = self._alike(one, other, node, there)
        self.choices += 1
        name = f"#choice.{self.choices}"
        self.store(name, one, node)
        self.end(f"br label %{after}")
        self.lines += there
        self.is_ended = False
        self.store(name, other, node)
        self.begin(after)
        self.assigned = (behind_one & behind_other) | {name}
        return self.load(name)

    def _alike(self, one: Lowered, other: Lowered, node: ast.AST, there: list[str]) -> tuple[Lowered, Lowered]:
        """Both of one kind, each cast where it is computed."""
        if one.kind == other.kind or not (isinstance(one, Value) and isinstance(other, Value)):
            return one, other
        if isinstance(one.kind, Array) or isinstance(other.kind, Array):
            return one, other
        wanted = U64 if U64 in {one.kind, other.kind} else I64
        made = []
        for value in (one, other):
            if value.kind == U64 or wanted == I64 or value.constant is not None:
                continue
            raise self.refused(node, "a signed number here, an unsigned one there: cast one of them")
        if one.kind != wanted:
            one = self.cast(one, wanted)
        if other.kind != wanted:
            aside, self.lines = self.lines, there
            other = self.cast(other, wanted)
            self.lines = aside
        made += [one, other]
        return made[0], made[1]


class _Unknown:
    pass


_NO = _Unknown()
