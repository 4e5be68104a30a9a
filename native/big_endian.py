"""Big-endian numbers in an array of bytes, at any place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.native.language import by_library, function, int32, int64, uint32, uint64

Bytes = npt.NDArray[np.uint8]

_1, _2, _3 = np.uint64(1), np.uint64(2), np.uint64(3)


@function(inline=True)
def unsigned_16(b: Bytes, p: int) -> int:
    """Two bytes, unsigned. Unsigned places compile to one read, not two."""
    q = uint64(p)
    return (int(b[q]) << 8) | int(b[q + _1])


@function(inline=True)
def signed_16(b: Bytes, p: int) -> int:
    """Two bytes, signed."""
    return (unsigned_16(b, p) ^ 0x8000) - 0x8000


@function(inline=True)
def unsigned_32(b: Bytes, p: int) -> int:
    """Four bytes, unsigned."""
    q = uint64(p)
    return (
        (uint32(b[q]) << uint32(24))
        | (uint32(b[q + _1]) << uint32(16))
        | (uint32(b[q + _2]) << uint32(8))
        | uint32(b[q + _3])
    )


@function(inline=True)
def signed_32(b: Bytes, p: int) -> int:
    """Four bytes, signed."""
    return int32(unsigned_32(b, p))


@function(inline=True)
def signed_64(b: Bytes, p: int) -> int:
    """Eight bytes, signed."""
    return int64((signed_32(b, p) << 32) | unsigned_32(b, p + 4))


@by_library(unsigned_16)
def _unsigned_16(b: Any, p: int) -> int:
    return int.from_bytes(b[p : p + 2], "big")


@by_library(signed_16)
def _signed_16(b: Any, p: int) -> int:
    return int.from_bytes(b[p : p + 2], "big", signed=True)


@by_library(unsigned_32)
def _unsigned_32(b: Any, p: int) -> int:
    return int.from_bytes(b[p : p + 4], "big")


@by_library(signed_32)
def _signed_32(b: Any, p: int) -> int:
    return int.from_bytes(b[p : p + 4], "big", signed=True)


@by_library(signed_64)
def _signed_64(b: Any, p: int) -> int:
    return int.from_bytes(b[p : p + 8], "big", signed=True)
