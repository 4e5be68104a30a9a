"""Words of the search loop, each with a Python reading and a reading of LLVM's."""

from __future__ import annotations

from typing import Any

from gapless.native import word
from gapless.native.intrinsics import PREFETCH
from gapless.native.kinds import I64, NOTHING, U64, Array

STATES = Array(U64, 1)

REST = """  %none = icmp eq i64 %b, 0
  %by = select i1 %none, i64 1, i64 %b
  %rest = srem i64 %a, %by
  %signs = xor i64 %rest, %by
  %other = icmp slt i64 %signs, 0
  %some = icmp ne i64 %rest, 0
  %up = and i1 %other, %some
"""


@word(
    llvm="  %place = getelementptr inbounds i64, ptr %array, i64 %at\n"
    "  call void @llvm.prefetch.p0(ptr %place, i32 0, i32 3, i32 1)\n  ret void",
    kinds=(STATES, I64), answer=NOTHING, declares=(PREFETCH,),
)  # fmt: skip
def fetch_at(array: Any, at: int) -> None:
    """Have the processor fetch an element of an array, which is going to be read."""


@word(
    llvm="""  %one = insertelement <8 x i64> poison, i64 %word, i64 0
  %all = shufflevector <8 x i64> %one, <8 x i64> poison, <8 x i32> zeroinitializer
  %place = getelementptr inbounds i64, ptr %array, i64 %at
  %there = load <8 x i64>, ptr %place, align 8
  %same = icmp eq <8 x i64> %there, %all
  %bits = bitcast <8 x i1> %same to i8
  %found = zext i8 %bits to i64
  ret i64 %found""",
    kinds=(STATES, I64, U64), answer=I64,
)  # fmt: skip
def equal_in(array: Any, at: int, word: int) -> int:
    """A bit for each of eight elements of an array, from one on, set where it is this number."""
    return sum(int(array[at + n] == word) << n for n in range(8))


@word(
    llvm=f"{REST}  %more = add i64 %rest, %by\n  %found = select i1 %up, i64 %more, i64 %rest\n  ret i64 %found",
    kinds=(I64, I64), answer=I64,
)  # fmt: skip
def rest_of(a: int, b: int) -> int:
    """The rest of a division as Python has it. By 0, it is any number: nothing looks at it."""
    return a % (b or 1)


@word(
    llvm=f"{REST}  %down = sdiv i64 %a, %by\n  %less = zext i1 %up to i64\n  %found = sub i64 %down, %less\n"
    "  ret i64 %found",
    kinds=(I64, I64), answer=I64,
)  # fmt: skip
def quotient(a: int, b: int) -> int:
    """A quotient, rounded down. By 0, it is any number: nothing looks at it."""
    return a // (b or 1)
