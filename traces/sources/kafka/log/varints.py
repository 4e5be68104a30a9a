"""Numbers of variable length, seven bits a byte, the lowest first; signed ones alternate: 0, -1, 1, -2, ….

https://protobuf.dev/programming-guides/encoding/#varints
"""

from __future__ import annotations

from typing import Any

from gapless.native import function, int64, uint64

NONE = 1 << 62
"""The place behind a number that does not end in time: it lies behind every end."""


@function(inline=True)
def signed_varint(b: Any, p: int, end: int) -> tuple[int, int]:
    """The number at `p`, and the place behind it: `NONE` where it reaches beyond `end`, or `p` is `NONE`."""
    if p < end and b[p] < 128:  # most have one byte
        byte = int(b[p])
        return (byte >> 1) ^ -(byte & 1), p + 1
    if p + 1 < end and b[p + 1] < 128:  # or two
        bits = (int(b[p]) & 127) | (int(b[p + 1]) << 7)
        return (bits >> 1) ^ -(bits & 1), p + 2
    return _longer(b, p, end)


@function(apart=True)
def _longer(b: Any, p: int, end: int) -> tuple[int, int]:
    """The same of a number with any count of bytes, ten at most."""
    bits, shift = uint64(0), 0
    while p < end and shift < 64:
        byte = int(b[p])
        bits |= uint64(byte & 127) << uint64(shift)
        p += 1
        if byte < 128:
            return int64((bits >> uint64(1)) ^ (uint64(0) - (bits & uint64(1)))), p
        shift += 7
    return 0, NONE


@function
def unsigned_varint(b: Any, p: int, end: int) -> tuple[int, int]:
    """An unsigned number of five bytes at most, and the place behind it: `NONE` as above."""
    found, shift = 0, 0
    while p < end and shift < 35:
        byte = int(b[p])
        found |= (byte & 127) << shift
        p += 1
        if byte < 128:
            return found, p
        shift += 7
    return 0, NONE
