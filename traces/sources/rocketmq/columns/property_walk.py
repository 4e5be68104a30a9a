r"""Walks the properties of a record, `NAME\x01VALUE\x02` one behind the other: the one way from each to the next.

A walk knows the ends of properties in 64 bytes at once, a bit for each: to look for them eight bytes at a time, and be
wrong about the last eight of each, took a third longer. All kernels that look at properties walk so:

    k = at = low
    ends = ends_in(b, at, high)
    while k < high:
        w, at, ends = next_end(b, k, at, ends, high)
        …  # a property in k:w
        k = w + 1

Source: docs/rocketmq.md#properties.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gapless.native import by_library, by_python, function, uint64
from gapless.native.intrinsics import address_of, bytes_like, lowest_bit
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, place_of

END = 2  # the byte behind each property
ONE, ALL, NO_END = np.uint64(1), np.uint64((1 << 64) - 1), np.uint64(0)


@function(inline=True)
def ends_in(b: Bytes, at: int, high: int) -> Any:
    """Returns a bit for each of 64 bytes from `at` on: set where a property ends before `high`."""
    if at + 64 <= len(b):
        ends = bytes_like(address_of(b) + at, END)
        return ends if at + 64 <= high else ends & ((ONE << uint64(max(high - at, 0))) - ONE)
    ends = NO_END
    for n in range(min(high, len(b)) - at):
        ends |= uint64(int(b[at + n] == END)) << uint64(n)
    return ends


@function(inline=True)
def next_end(b: Bytes, k: int, at: int, ends: Any, high: int) -> tuple[int, int, Any]:  # noqa: ARG001 - `k` is for Python
    """Returns the end of the property at `k`, or `high`; then the place and the ends for the next step."""
    place, left = at, ends
    while left == 0 and place + 64 < high:
        place += 64
        left = ends_in(b, place, high)
    return (place + lowest_bit(left) if left != 0 else high), place, left & (left - ONE)


@by_library(ends_in)
def _ends_in(_b: Bytes, _at: int, _high: int) -> Any:
    return NO_END


@by_library(next_end)
def _next_end(b: Any, k: int, at: int, ends: Any, high: int) -> tuple[int, int, Any]:
    return by_python(place_of)(b, k, high, END), at, ends
