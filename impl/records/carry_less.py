"""Sixteen bytes at a time for CRC-32, by the processor's carry-less multiplication, where it has that.

A CRC is the remainder of the bytes, read as one polynomial, divided by a fixed one. Sixteen bytes that are n bytes away
from others may be added to those once they are multiplied by the remainder of x^8n: the sum has the same remainder as
the whole (V. Gopal et al., *Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction*, Intel 2009).
So a long run of bytes becomes sixteen, and tables do the rest. LLVM has the instruction as an intrinsic.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types, uint64
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic

LEAST = 64
"""Bytes, below which tables are as fast; sixteen are needed."""

POLYNOMIAL = 0xEDB88320  # of CRC-32, the lowest bit being that of the highest power, as everywhere here


def _remainder(power: int) -> int:
    """That of x^power, in the upper 33 bits of which the multiplication makes use: the lowest bit is free."""
    remainder = 1 << 31
    for _ in range(power):
        remainder = remainder >> 1 ^ (POLYNOMIAL if remainder & 1 else 0)
    return remainder << 1


NEAR = _remainder(128 + 32), _remainder(128 - 32)
"""What the two halves of sixteen bytes are multiplied by, to be added to the next sixteen."""
FAR = _remainder(512 + 32), _remainder(512 - 32)
"""The same, for those that are 64 bytes away."""


class _Lane(types.Type):  # type: ignore[misc]  # as below
    """Sixteen bytes in a register of the processor."""


_lane = _Lane("lane")
_VECTOR = ir.VectorType(ir.IntType(64), 2)


@register_default(_Lane)
class _LaneModel(models.PrimitiveModel):  # type: ignore[misc]  # numba has no types
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


@intrinsic
def has_carry_less(_context: Any) -> Any:
    """Whether the processor that code is made for has the instruction: known when it is compiled."""

    def generate(context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
        return cgutils.bool_t(int(_has_it(context)))

    return types.boolean(), generate


def _has_it(context: Any) -> bool:
    triple, _, features = context.codegen().magic_tuple()
    return triple.startswith("x86_64") and "+pclmul" in features.split(",")


@intrinsic
def _lane_at(_context: Any, _address: Any) -> Any:
    """The sixteen bytes that lie there, at any alignment."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], _VECTOR.as_pointer()), align=1, typ=_VECTOR)

    return _lane(types.int64), generate


@intrinsic
def _behind_zeros(_context: Any, _lane_type: Any, _before: Any, _zeros: Any) -> Any:
    """The lane, to whose first bytes `before` is added, behind so many zeros; what has no room is left out."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        whole = ir.IntType(128)
        lane, before, zeros = arguments
        summed = builder.xor(builder.bitcast(lane, whole), builder.zext(before, whole))
        bits = builder.mul(builder.zext(zeros, whole), whole(8))
        return builder.bitcast(builder.shl(summed, bits), _VECTOR)

    return _lane(_lane, types.uint64, types.int64), generate


def _moved(by: tuple[int, int]) -> Any:
    """A function that moves sixteen bytes by that much, and adds others to them."""

    @intrinsic
    def moved(_context: Any, _lane_type: Any, _onto: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            if not _has_it(context):  # nobody comes here
                return arguments[0]
            half = ir.IntType(8)
            kind = ir.FunctionType(_VECTOR, [_VECTOR, _VECTOR, half])
            multiply = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.pclmulqdq")
            lane, onto = arguments
            keys = ir.Constant(_VECTOR, list(by))
            low, high = (builder.call(multiply, [lane, keys, half(which)]) for which in (0x00, 0x11))
            return builder.xor(builder.xor(low, high), onto)

        return _lane(_lane, _lane), generate

    return moved


_moved_near, _moved_far = _moved(NEAR), _moved(FAR)


@intrinsic
def _words(_context: Any, _lane_type: Any) -> Any:
    """Its two halves."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words = [builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), at)) for at in (0, 1)]
        return context.make_tuple(builder, signature.return_type, words)

    return types.UniTuple(types.uint64, 2)(_lane), generate


@njit
def folded(address: int, count: int, before: int) -> tuple[int, int]:
    """Two words, the first eight bytes being the lower one, that have the remainder of `count` bytes.

    `count`: at least `LEAST` · `before`: the register's 32 bits. The register begins at 0 before the two words.
    """
    zeros = -count & 15  # that are put before the first bytes, for they change nothing
    a, end = address + 16 - zeros, address + count
    one = _behind_zeros(_lane_at(address), uint64(before), zeros)
    if a < end:
        rest = uint64(before) >> uint64(8 * (16 - zeros)) if zeros > 12 else uint64(0)  # what had no room
        two = _behind_zeros(_lane_at(a), rest, 0)
        if a + 112 <= end:
            three, four = _lane_at(a + 16), _lane_at(a + 32)
            a += 48
            while a + 64 <= end:
                one, two = _moved_far(one, _lane_at(a)), _moved_far(two, _lane_at(a + 16))
                three, four = _moved_far(three, _lane_at(a + 32)), _moved_far(four, _lane_at(a + 48))
                a += 64
            one = _moved_near(_moved_near(_moved_near(one, two), three), four)
        else:
            one = _moved_near(one, two)
            a += 16
        while a < end:
            one = _moved_near(one, _lane_at(a))
            a += 16
    low, high = _words(one)
    return low, high
