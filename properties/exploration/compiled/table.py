"""The table of states of a native search, in the language of native code: which state was met, by its hash.

A state of one word, which is never 0, lies in the table itself, `LINE` of them to a line of the processor's cache, and
its number apart, in `places`: that is seldom read. Of longer states the table holds the number and half of the hash.
"""

from __future__ import annotations

from typing import Any

from gapless.native import function, int64, uint64
from gapless.native.intrinsics import lowest_bit
from gapless.properties.exploration.compiled.arrays import Ints, Narrow, States
from gapless.properties.exploration.compiled.intrinsics import equal_in, fetch_at

WORDS = 1  # of a state
EACH_WORD: tuple[int, ...] = (0,)  # the numbers of its words
LATER_WORDS: tuple[int, ...] = ()  # without the first
LINE = 8  # places of the table to a line of the cache, where a state is one word; else 1
MIX_FIRST = uint64(0x9E3779B97F4A7C15)
MIX_NEXT = uint64(0xBF58476D1CE4E5B9)
MIX_LAST = uint64(0x94D049BB133111EB)


@function(inline=True, distinct=True)
def hash_of(row: States) -> Any:
    """The hash of a state."""
    h = row[0] * MIX_FIRST
    for word in LATER_WORDS:
        h = ((h ^ (h >> 29)) + row[word]) * MIX_NEXT
    return (h ^ (h >> 32)) * MIX_LAST


@function(inline=True, distinct=True)
def same(row: States, new: States) -> int:
    """1 if two states are equal, and 0 otherwise."""
    different = row[0] ^ new[0]
    for word in LATER_WORDS:
        different |= row[word] ^ new[word]
    return 1 if different == 0 else 0


@function(inline=True, distinct=True)
def copy(row: States, new: States) -> int:
    """Write a state's words over those of another."""
    for word in EACH_WORD:
        new[word] = row[word]
    return 0


@function(inline=True, distinct=True)
def place_of(slots: States, mask: int, h: Any, states: States, new: States) -> int:
    """The place of a state in the table; with all bits inverted, the free place where it belongs."""
    at = (int64(h >> 32) & mask) * LINE
    if WORDS == 1:
        here = equal_in(slots, at, new[0])
        while here == 0:
            free = equal_in(slots, at, uint64(0))
            if free != 0:
                return ~(at + lowest_bit(free))
            at = (at + LINE) & (mask * LINE)
            here = equal_in(slots, at, new[0])
        return at + lowest_bit(here)
    found = slots[at]
    while found != 0:
        if (found ^ (h << 32)) >> 32 == 0:
            number = int64(found & 0xFFFFFFFF) - 1
            if same(states[number * WORDS :], new) != 0:
                return at
        at = (at + 1) & mask
        found = slots[at]
    return ~at


@function(inline=True, distinct=True)
def number_at(slots: States, places: Narrow, at: int) -> int:
    """The number of the state at a place of the table."""
    return places[at] if WORDS == 1 else int64(slots[at] & 0xFFFFFFFF) - 1


@function(inline=True, distinct=True)
def put_at(slots: States, places: Narrow, at: int, h: Any, number: int, new: States) -> int:
    """Put a state at a free place of the table."""
    if WORDS == 1:
        slots[at] = new[0]
        places[at] = number
    else:
        slots[at] = (h << 32) | uint64(number + 1)
    return 0


@function(distinct=True)
def keep_made(new: States, code: int, fill: Ints, mask: int, slots: States) -> int:
    """Keep a state that a step made, its code and its hash behind it. It is looked up later, with its whole block.

    The processor fetches its line of the table until then.
    """
    fill[0] += 1
    h = hash_of(new)
    new[WORDS] = uint64(code)
    new[WORDS + 1] = h
    fetch_at(slots, LINE * (int64(h >> 32) & mask))
    return 1
