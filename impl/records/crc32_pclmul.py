"""CRC-32 of sixteen bytes at a time, by the processor's carry-less multiplication, where it has that.

A CRC is the remainder of the bytes, read as one polynomial, divided by a fixed one. Sixteen bytes that are n bytes away
from others may be added to those once they are multiplied by the remainder of x^8n: the sum has the same remainder as
the whole (V. Gopal et al., *Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction*, Intel 2009).
So a long run of bytes becomes sixteen, and the remainder of these is taken by multiplication too, which is Barrett's
reduction, as the same paper has it. LLVM has the instruction as an intrinsic.
"""

from __future__ import annotations

from typing import Any

from gapless.native import function, uint64, word
from gapless.native.kinds import BOOL, I64, LANE, U64

LEAST = 16
"""Bytes that are needed at once."""

POLYNOMIAL = 0xEDB88320  # of CRC-32, the lowest bit being that of the highest power, as everywhere here
FEATURE = "+pclmul"
MULTIPLY = ("declare <2 x i64> @llvm.x86.pclmulqdq(<2 x i64>, <2 x i64>, i8)",)
HALF, WHOLE = (1 << 64) - 1, (1 << 128) - 1


def _remainder(power: int) -> int:
    """The remainder of x^power, in the upper 33 bits of which the multiplication makes use: the lowest bit is free."""
    remainder = 1 << 31
    for _ in range(power):
        remainder = remainder >> 1 ^ (POLYNOMIAL if remainder & 1 else 0)
    return remainder << 1


NEAR = _remainder(128 + 32), _remainder(128 - 32)
"""Factors of the two halves of sixteen bytes that are added to the next sixteen."""
FAR = _remainder(512 + 32), _remainder(512 - 32)
"""The same, for those that are 64 bytes away."""


def _quotient() -> int:
    """The quotient of x^64, in 33 bits, the lowest bit being that of the highest power."""
    quotient, left, divisor = 0, 1 << 64, int(f"{POLYNOMIAL:032b}1"[::-1], 2)
    for power in range(32, -1, -1):
        quotient = quotient << 1 | left >> (32 + power) & 1
        left ^= divisor << power if quotient & 1 else 0
    return int(f"{quotient:033b}"[::-1], 2)


QUOTIENT = _quotient()


def _product(one: int, other: int) -> int:
    """The product of two polynomials of 64 bits."""
    found = 0
    for bit in range(64):
        found ^= one << bit if other >> bit & 1 else 0
    return found


@word(llvm="  ret i1 1", kinds=(), answer=BOOL, needs=FEATURE, otherwise="  ret i1 0")
def has_pclmul() -> bool:
    """True if the processor that code is made for has the instruction: known when it is compiled."""
    return True


@word(
    llvm="  %place = inttoptr i64 %address to ptr\n  %found = load <2 x i64>, ptr %place, align 1\n"
    "  ret <2 x i64> %found",
    kinds=(I64,), answer=LANE,
)  # fmt: skip
def _lane_at(address: int) -> int:
    """The sixteen bytes at an address, at any alignment."""
    import ctypes  # noqa: PLC0415 - only where Python reads this

    return int.from_bytes(ctypes.string_at(address, 16), "little")


@word(
    llvm="""  %raw = bitcast <2 x i64> %lane to i128
  %more = zext i64 %before to i128
  %sum = xor i128 %raw, %more
  %wide = zext i64 %zeros to i128
  %bits = mul i128 %wide, 8
  %moved = shl i128 %sum, %bits
  %found = bitcast i128 %moved to <2 x i64>
  ret <2 x i64> %found""",
    kinds=(LANE, U64, I64), answer=LANE,
)  # fmt: skip
def _behind_zeros(lane: int, before: int, zeros: int) -> int:
    """The lane, to whose first bytes `before` is added, behind so many zeros; bytes without room are left out."""
    return ((lane ^ int(before)) << (8 * zeros)) & WHOLE


def _moving(by: tuple[int, int]) -> Any:
    """A word that moves sixteen bytes by that much, and adds others to them."""
    keys = f"<2 x i64> <i64 {by[0]}, i64 {by[1]}>"
    llvm = f"""  %low = call <2 x i64> @llvm.x86.pclmulqdq(<2 x i64> %lane, {keys}, i8 0)
  %high = call <2 x i64> @llvm.x86.pclmulqdq(<2 x i64> %lane, {keys}, i8 17)
  %sum = xor <2 x i64> %low, %high
  %found = xor <2 x i64> %sum, %onto
  ret <2 x i64> %found"""

    @word(
        llvm=llvm, kinds=(LANE, LANE), answer=LANE, declares=MULTIPLY, needs=FEATURE, otherwise="  ret <2 x i64> %lane"
    )
    def moved(lane: int, onto: int) -> int:
        return _product(lane & HALF, by[0]) ^ _product(lane >> 64, by[1]) ^ onto

    return moved


_moved_near, _moved_far = _moving(NEAR), _moving(FAR)


def _times(name: str, of: str, key: int) -> str:
    """The text of the lower 64 bits of a number, multiplied."""
    return f"""  %{name}.lane = bitcast i128 %{of} to <2 x i64>
  %{name}.made = call <2 x i64> @llvm.x86.pclmulqdq(<2 x i64> %{name}.lane, <2 x i64> <i64 {key}, i64 0>, i8 0)
  %{name} = bitcast <2 x i64> %{name}.made to i128
"""


FIRST_FOUR = 0xFFFFFFFF


@word(
    llvm=f"""  %raw = bitcast <2 x i64> %lane to i128
{_times("a", "raw", _remainder(128 - 32))}  %upper = lshr i128 %raw, 64
  %twelve = xor i128 %a, %upper
  %b.first = and i128 %twelve, {FIRST_FOUR}
{_times("b", "b.first", _remainder(64))}  %rest = lshr i128 %twelve, 32
  %eight = xor i128 %b, %rest
  %c.first = and i128 %eight, {FIRST_FOUR}
{_times("c", "c.first", QUOTIENT)}  %quotient = and i128 %c, {FIRST_FOUR}
{_times("d", "quotient", POLYNOMIAL << 1 | 1)}  %left = xor i128 %d, %eight
  %moved = lshr i128 %left, 32
  %found = and i128 %moved, {FIRST_FOUR}
  %short = trunc i128 %found to i64
  ret i64 %short""",
    kinds=(LANE,), answer=U64, declares=MULTIPLY, needs=FEATURE, otherwise="  ret i64 0",
)  # fmt: skip
def _register_of(lane: int) -> Any:
    """The register behind sixteen bytes, before which it is 0: what remains of them, 32 powers of x further up.

    The first eight bytes are multiplied, which leaves twelve; then the first four of these, which leaves eight; and of
    these the remainder is taken as Barrett has it: the quotient is the first four times that of x^64, and what the
    quotient times the polynomial adds to the last four makes them the remainder.
    """
    twelve = _product(lane & HALF, _remainder(128 - 32)) ^ (lane >> 64)
    eight = _product(twelve & FIRST_FOUR, _remainder(64)) ^ (twelve >> 32)
    quotient = _product(eight & FIRST_FOUR, QUOTIENT) & FIRST_FOUR
    left = _product(quotient, POLYNOMIAL << 1 | 1) ^ eight
    return uint64((left >> 32) & FIRST_FOUR)


@function
def register_behind(address: int, count: int, before: int) -> int:
    """The register behind `count` bytes, which are at least `LEAST`; `before`: its value before them."""
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
    return int(_register_of(one))
