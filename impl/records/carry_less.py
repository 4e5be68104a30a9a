"""Sixteen bytes at a time for CRC-32, by the processor's carry-less multiplication, where it has that.

A CRC is the remainder of the bytes, read as one polynomial, divided by a fixed one. Sixteen bytes that are n bytes away
from others may be added to those once they are multiplied by the remainder of x^8n: the sum has the same remainder as
the whole (V. Gopal et al., *Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction*, Intel 2009).
So a long run of bytes becomes sixteen, and the remainder of these is taken by multiplication too, which is Barrett's
reduction, as the same paper has it. LLVM has the instruction as an intrinsic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic

from gapless.impl.environment.native import njit

LEAST = 16
"""Bytes that are needed at once."""

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


def _quotient() -> int:
    """That of x^64, in 33 bits, the lowest bit being that of the highest power."""
    quotient, left, divisor = 0, 1 << 64, int(f"{POLYNOMIAL:032b}1"[::-1], 2)
    for power in range(32, -1, -1):
        quotient = quotient << 1 | left >> (32 + power) & 1
        left ^= divisor << power if quotient & 1 else 0
    return int(f"{quotient:033b}"[::-1], 2)


QUOTIENT = _quotient()


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


def _multiplied(builder: Any, one: Any, other: Any, which: int) -> Any:
    """The product of a half of the one and a half of the other."""
    half = ir.IntType(8)
    kind = ir.FunctionType(_VECTOR, [_VECTOR, _VECTOR, half])
    multiply = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.pclmulqdq")
    return builder.call(multiply, [one, other, half(which)])


def _moved(by: tuple[int, int]) -> Any:
    """A function that moves sixteen bytes by that much, and adds others to them."""

    @intrinsic
    def moved(_context: Any, _lane_type: Any, _onto: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            if not _has_it(context):  # nobody comes here
                return arguments[0]
            lane, onto = arguments
            keys = ir.Constant(_VECTOR, list(by))
            low, high = (_multiplied(builder, lane, keys, which) for which in (0x00, 0x11))
            return builder.xor(builder.xor(low, high), onto)

        return _lane(_lane, _lane), generate

    return moved


_moved_near, _moved_far = _moved(NEAR), _moved(FAR)


@intrinsic
def _register_of(_context: Any, _lane_type: Any) -> Any:
    """The register behind sixteen bytes, before which it is 0: what remains of them, 32 powers of x further up.

    The first eight bytes are multiplied, which leaves twelve; then the first four of these, which leaves eight; and of
    these the remainder is taken as Barrett has it: the quotient is the first four times that of x^64, and what the
    quotient times the polynomial adds to the last four makes them the remainder.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        if not _has_it(context):  # nobody comes here
            return ir.Constant(ir.IntType(64), 0)
        whole, word = ir.IntType(128), ir.IntType(64)

        def times(number: Any, key: int) -> Any:
            """The lower 64 bits of a number, multiplied."""
            lane, keys = builder.bitcast(number, _VECTOR), ir.Constant(_VECTOR, [key, 0])
            return builder.bitcast(_multiplied(builder, lane, keys, 0x00), whole)

        def first(number: Any) -> Any:
            """Its first four bytes."""
            return builder.and_(number, whole(0xFFFFFFFF))

        lane = builder.bitcast(arguments[0], whole)
        twelve = builder.xor(times(lane, _remainder(128 - 32)), builder.lshr(lane, whole(64)))
        eight = builder.xor(times(first(twelve), _remainder(64)), builder.lshr(twelve, whole(32)))
        quotient = first(times(first(eight), QUOTIENT))
        left = builder.xor(times(quotient, POLYNOMIAL << 1 | 1), eight)
        return builder.trunc(builder.and_(builder.lshr(left, whole(32)), whole(0xFFFFFFFF)), word)

    return types.uint64(_lane), generate


@njit
def register_behind(address: int, count: int, before: int) -> int:
    """The register behind `count` bytes, which are at least `LEAST`; `before`: what it is before them."""
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
    return int(np.int64(_register_of(one)))
