"""Eight bytes of a text at once, in native code: as one number, the first byte the least significant."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.native.language import by_library, function, uint64

Words = npt.NDArray[np.uint64]

ONES, TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)  # the lowest, the highest bit of each byte
NONE, _1, _7, _56 = np.uint64(0), np.uint64(1), np.uint64(7), np.uint64(56)


@function(inline=True)
def eight(b: Any, p: int) -> Any:
    """Eight bytes from a place that is no less than 0, which has no sign then: so this is one read, not eight."""
    q = uint64(p)
    return (
        uint64(b[q])
        | (uint64(b[q + _1]) << uint64(8))
        | (uint64(b[q + uint64(2)]) << uint64(16))
        | (uint64(b[q + uint64(3)]) << uint64(24))
        | (uint64(b[q + uint64(4)]) << uint64(32))
        | (uint64(b[q + uint64(5)]) << uint64(40))
        | (uint64(b[q + uint64(6)]) << uint64(48))
        | (uint64(b[q + _7]) << _56)
    )


@function(inline=True)
def word_of(b: Any, p: int, n: int) -> Any:
    """Up to eight bytes from a place that is no less than 0, as one number; what lies behind them is looked at, too."""
    if p + 8 <= len(b):
        return eight(b, p) & mask_of(n)
    return few(b, p, n)


@function(inline=True)
def mask_of(n: int) -> Any:
    """All bits of so many bytes, eight at most."""
    return (_1 << uint64(8 * n)) - _1 if n < 8 else ~NONE


@function(inline=True)
def few(b: Any, p: int, n: int) -> Any:
    """Up to eight bytes, one by one: nothing else is looked at."""
    word = NONE
    for k in range(n):
        word |= uint64(b[p + k]) << uint64(8 * k)
    return word


@by_library(few)
def _few(b: Any, p: int, n: int) -> Any:
    return np.uint64(int.from_bytes(b[p : p + n], "little"))


@function(inline=True)
def zeros(word: Any) -> Any:
    """Marks the first byte that is 0 by its top bit: once 1 is taken from each, it is the first to become negative.

    Bytes behind it may be marked, too.
    """
    return (word - ONES) & ~word & TOPS


@function(inline=True)
def up_to(marks: Any) -> Any:
    """All bits below the first mark."""
    return (marks & (~marks + _1)) - _1


@function
def first(marks: Any) -> Any:
    """The index of the first marked byte; at least one is.

    It counts the bits below the mark. LLVM knows this loop, and makes one instruction of it.
    """
    below, count = up_to(marks), 0
    while below:
        below &= below - _1
        count += 1
    return count >> 3


@function(inline=True)
def before(word: Any, marks: Any) -> Any:
    """The bytes that lie before the first mark, and zeros from there on."""
    return word & (up_to(marks) >> _7)


@function
def are_same(one: Any, low: int, other: Any, high: int, length: int) -> Any:
    """True if so many bytes are the same: of `one` from `low` on, and of `other` from `high` on."""
    at = length
    while at >= 8:  # names differ at their ends
        at -= 8
        if eight(one, low + at) != eight(other, high + at):
            return False
    return at == 0 or word_of(one, low, at) == word_of(other, high, at)


@by_library(are_same)
def _are_same(one: Any, low: int, other: Any, high: int, length: int) -> bool:
    return bytes(one[low : low + length]) == bytes(other[high : high + length])
