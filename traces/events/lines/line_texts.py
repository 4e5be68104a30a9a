"""The texts of plain lines as columns, in native code: each numbered by its first occurrence, and copied."""

from __future__ import annotations

from typing import Any

import numpy as np

from gapless.native import BYTES, INTS, INTS32, function, int64, uint64
from gapless.native.swar import are_same, word_of
from gapless.traces.events.lines.plain_bytes import LOW, THERE

LEAST = 1024  # texts' places, in a table that grows by four while it is half full
MIXED = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio of 64 bits


@function(kinds=(BYTES, INTS, INTS, BYTES, INTS, INTS, INTS, INTS32))
def number_texts(
    data: Any, begins: Any, ends: Any, there: Any, table: Any, places: Any, firsts: Any, index: Any
) -> Any:
    """Number every text by its first occurrence, and return how many there are.

    The number is -1 where there is no text; `firsts` are the lines of first occurrences. `table`, `places`: working
    memory.
    """
    size = LEAST
    table[:size] = -1
    count = 0
    last = -1  # the line whose text was looked at last
    for line in range(len(index)):
        if there[line] != THERE:
            index[line] = -1
            continue
        if last >= 0 and _alike(data, begins, ends, last, line):
            index[line] = index[last]
            last = line
            continue
        last = line
        place = spread(data, begins[line], ends[line])
        at = place & (size - 1)
        while table[at] >= 0 and not _alike(data, begins, ends, firsts[table[at]], line):
            at = (at + 1) & (size - 1)
        if table[at] >= 0:
            index[line] = table[at]
            continue
        table[at] = count
        places[count], firsts[count], index[line] = place, line, count
        count += 1
        if 2 * count > size:
            size *= 4
            table[:size] = -1
            for number in range(count):
                at = places[number] & (size - 1)
                while table[at] >= 0:
                    at = (at + 1) & (size - 1)
                table[at] = number
    return count


@function
def spread(data: Any, low: int, high: int) -> int:
    """Hash a text."""
    place = uint64(high - low)
    while low < high:
        place = (place ^ word_of(data, low, min(high - low, 8))) * MIXED
        place ^= place >> np.uint64(32)
        low += 8
    return int(int64(place >> np.uint64(24)) & LOW)


@function
def _alike(data: Any, begins: Any, ends: Any, one: int, other: int) -> Any:
    """True if two lines have the same text."""
    length = ends[one] - begins[one]
    if ends[other] - begins[other] != length:
        return False
    return are_same(data, begins[one], data, begins[other], length)


@function(kinds=(BYTES, INTS, INTS32, BYTES))
def copy_texts(data: Any, begins: Any, bounds: Any, letters: Any) -> None:
    """Copy texts one after the other."""
    for number in range(len(begins)):
        begin = begins[number]
        for at in range(bounds[number], bounds[number + 1]):
            letters[at] = data[begin + at - bounds[number]]
