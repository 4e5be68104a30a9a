"""Arithmetic: operations on whole numbers of 64 bits, as Python has them and modulo 2⁶⁴."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from gapless.native.compiler.blocks import BY_ZERO, BlockWriter
from gapless.native.compiler.values import Operand, Value, number
from gapless.native.kinds import BOOL, I64, U64, Int
from gapless.native.language import Cast

PLAIN = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip
FOLDED: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.BitAnd: lambda a, b: a & b, ast.BitOr: lambda a, b: a | b, ast.BitXor: lambda a, b: a ^ b,
    ast.LShift: lambda a, b: a << b, ast.RShift: lambda a, b: a >> b, ast.Pow: lambda a, b: a**b,
    ast.FloorDiv: lambda a, b: a // b, ast.Mod: lambda a, b: a % b,
}  # fmt: skip
SIGNS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
MOST_SHIFTED = 64


class Arithmetic(BlockWriter):
    """Operations, within the function that is being lowered."""

    # -- kinds

    def cast(self, value: Value, kind: Int) -> Value:
        """The same bits as another kind; a boolean is 0 or 1, and a number true if it is not 0."""
        if value.kind == kind:
            return value
        if value.constant is not None:
            known = value.constant
            if kind == BOOL:
                return Value(BOOL, ("1" if known else "0",))
            return Value(kind, (str(known if known < 1 << 63 else known - (1 << 64)),))
        if kind == BOOL:
            return Value(BOOL, (self.new(f"icmp ne i64 {value.text}, 0"),))
        if value.kind == BOOL:
            return Value(kind, (self.new(f"zext i1 {value.text} to i64"),))
        return Value(kind, value.parts)

    def cast_to(self, value: Value, cast: Cast) -> Value:
        """The number modulo 2 to so many bits."""
        kind = U64 if cast.bits == 64 and not cast.signed else I64
        made = self.cast(value, kind)
        if cast.bits == 64:
            return made
        if made.constant is not None:
            return number(int(cast(made.constant)))
        if not cast.signed:
            return Value(I64, (self.new(f"and i64 {made.text}, {(1 << cast.bits) - 1}"),))
        short = self.new(f"trunc i64 {made.text} to i{cast.bits}")
        return Value(I64, (self.new(f"sext i{cast.bits} {short} to i64"),))

    def unified(self, one: Value, other: Value, node: ast.AST) -> tuple[Value, Value, Int]:
        """Both as numbers of one kind. Raises LanguageError where a sign would be lost."""
        values = [self.cast(value, I64) if value.kind == BOOL else value for value in (one, other)]
        kinds = {value.kind for value in values}
        if kinds == {I64, U64}:
            for at, value in enumerate(values):
                if value.kind == I64 and value.constant is not None and value.constant >= 0:
                    values[at] = Value(U64, value.parts)
            if {value.kind for value in values} != {U64}:
                raise self.refused(
                    node, "a signed number next to an unsigned one: cast one of them, uint64(…) or int64(…)"
                )
        if not kinds <= {I64, U64}:
            raise self.refused(node, "numbers are computed with")
        return values[0], values[1], values[0].kind  # type: ignore[return-value]

    # -- operations

    def of_operation(self, node: ast.BinOp) -> Operand:
        """An operation on two numbers."""
        one, other = self.number_of(node.left), self.number_of(node.right)
        sort = type(node.op)
        if one.constant is not None and other.constant is not None and sort in FOLDED:
            return self._folded(node, one, other)
        if sort in {ast.BitAnd, ast.BitOr, ast.BitXor} and one.kind == BOOL and other.kind == BOOL:
            return Value(BOOL, (self.new(f"{PLAIN[sort]} i1 {one.text}, {other.text}"),))
        if sort in {ast.LShift, ast.RShift}:
            return self._shifted(one, other, node, is_left=sort is ast.LShift)
        a, b, kind = self.unified(one, other, node)
        if sort in PLAIN:
            return Value(kind, (self.new(f"{PLAIN[sort]} i64 {a.text}, {b.text}"),))
        if sort in {ast.FloorDiv, ast.Mod}:
            return Value(kind, (self._divided(a, b, kind, node, is_rest=sort is ast.Mod),))
        raise self.refused(node, "whole numbers have + - * // % & | ^ << >>")

    def _folded(self, node: ast.BinOp, one: Value, other: Value) -> Value:
        a, b = one.constant, other.constant
        assert a is not None  # noqa: S101 - asked by the caller
        assert b is not None  # noqa: S101 - as above
        is_shift = isinstance(node.op, (ast.LShift, ast.RShift, ast.Pow))
        unsigned = one.kind == U64 or (other.kind == U64 and not is_shift)
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and b == 0:
            raise self.refused(node, "it divides by 0")
        if is_shift and not 0 <= b < 4096:
            raise self.refused(node, "by how much is out of bounds")
        found = int(FOLDED[type(node.op)](a, b))
        if one.kind == BOOL and other.kind == BOOL and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            return Value(BOOL, (str(found),))
        if unsigned:
            return Value(U64, (number(found % (1 << 64)).text,))
        if not -(1 << 63) <= found < 1 << 64:
            raise self.refused(node, f"{found} has more than 64 bits")
        return number(found)

    def _shifted(self, one: Value, other: Value, node: ast.AST, *, is_left: bool) -> Value:
        """A shift by less than 64; the processor looks at the lowest six bits alone."""
        value = self.cast(one, I64) if one.kind == BOOL else one
        by = self.cast(other, I64)
        if by.constant is not None and not 0 <= by.constant < MOST_SHIFTED:
            raise self.refused(node, "a number is shifted by 0 to 63 bits")
        text = by.text if by.constant is not None else self.new(f"and i64 {by.text}, {MOST_SHIFTED - 1}")
        word = "shl" if is_left else "ashr" if value.kind == I64 else "lshr"
        return Value(value.kind, (self.new(f"{word} i64 {value.text}, {text}"),))

    def _divided(self, a: Value, b: Value, kind: Int, node: ast.AST, *, is_rest: bool) -> str:
        """A quotient rounded down, or what is left: it has the divisor's sign."""
        known = b.constant
        if known == 0:
            raise self.refused(node, "it divides by 0")
        if known is None:
            self.failed_if(self.new(f"icmp eq i64 {b.text}, 0"), BY_ZERO)
        if not kind.signed:
            return self.new(f"{'urem' if is_rest else 'udiv'} i64 {a.text}, {b.text}")
        if known is not None and known > 0 and known & (known - 1) == 0:
            if is_rest:
                return self.new(f"and i64 {a.text}, {known - 1}")
            return self.new(f"ashr i64 {a.text}, {known.bit_length() - 1}")
        return self._divided_signed(a.text, b.text, known, is_rest=is_rest)

    def _divided_signed(self, a: str, b: str, known: int | None, *, is_rest: bool) -> str:
        by, is_negated = b, ""
        if known is None or known == -1:  # the least number divided by -1 has no room: it is negated, modulo 2⁶⁴
            is_negated = self.new(f"icmp eq i64 {b}, -1")
            by = self.new(f"select i1 {is_negated}, i64 1, i64 {b}")
        rest = self.new(f"srem i64 {a}, {by}")
        other_sign = self.new(f"icmp slt i64 {self.new(f'xor i64 {rest}, {by}')}, 0")
        is_up = self.new(f"and i1 {other_sign}, {self.new(f'icmp ne i64 {rest}, 0')}")
        left = self.new(f"select i1 {is_up}, i64 {self.new(f'add i64 {rest}, {by}')}, i64 {rest}")
        if is_rest:
            return self.new(f"select i1 {is_negated}, i64 0, i64 {left}") if is_negated else left
        whole = self.new(f"sdiv i64 {a}, {by}")
        down = self.new(f"sub i64 {whole}, {self.new(f'zext i1 {is_up} to i64')}")
        if not is_negated:
            return down
        return self.new(f"select i1 {is_negated}, i64 {self.new(f'sub i64 0, {a}')}, i64 {down}")

    def of_sign(self, node: ast.UnaryOp) -> Operand:
        """A number negated or inverted, or a condition."""
        if isinstance(node.op, ast.Not):
            return Value(BOOL, (self.new(f"xor i1 {self.truth_of(node.operand)}, 1"),))
        value = self.number_of(node.operand)
        if isinstance(node.op, ast.Invert):
            if value.kind == BOOL:
                raise self.refused(node, "write `not` of a condition")
            return Value(value.kind, (self.new(f"xor i64 {value.text}, -1"),))
        if isinstance(node.op, ast.USub):
            if value.kind == I64 and value.constant is not None:
                return number(-value.constant)
            if value.kind == U64 and value.constant == 1 << 63:
                return number(-(1 << 63))
            value = self.cast(value, I64) if value.kind == BOOL else value
            return Value(value.kind, (self.new(f"sub i64 0, {value.text}"),))
        return value

    def truth_of(self, node: ast.expr) -> str:
        """One bit: a number is true if it is not 0."""
        return self.cast(self.number_of(node), BOOL).text

    # -- comparisons

    def compared(self, sign: ast.cmpop, one: Value, other: Value, node: ast.AST) -> str:
        """One bit: how two numbers compare."""
        if one.kind == BOOL and other.kind == BOOL and isinstance(sign, (ast.Eq, ast.NotEq)):
            return self.new(f"icmp {'eq' if isinstance(sign, ast.Eq) else 'ne'} i1 {one.text}, {other.text}")
        a, b, kind = self.unified(one, other, node)
        if isinstance(sign, (ast.Eq, ast.NotEq)):
            word = "eq" if isinstance(sign, ast.Eq) else "ne"
        else:
            word = f"{'s' if kind.signed else 'u'}{SIGNS[type(sign)]}"
        if a.constant is not None and b.constant is not None:
            return str(int(_COMPARED[word.lstrip("su") if word not in {"eq", "ne"} else word](a.constant, b.constant)))
        return self.new(f"icmp {word} i64 {a.text}, {b.text}")

    def least(self, values: Sequence[Value]) -> Value:
        """The least of numbers."""
        return self._best(values, "lt")

    def greatest(self, values: Sequence[Value]) -> Value:
        """The greatest of numbers."""
        return self._best(values, "gt")

    def _best(self, values: Sequence[Value], sign: str) -> Value:
        found = values[0]
        for value in values[1:]:
            a, b, kind = self.unified(found, value, ast.Pass())
            is_first = self.new(f"icmp {'s' if kind.signed else 'u'}{sign} i64 {a.text}, {b.text}")
            found = Value(kind, (self.new(f"select i1 {is_first}, i64 {a.text}, i64 {b.text}"),))
        return found


_COMPARED = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
