"""The table of states of a native search, as text that is written as that of `loop_text.py`."""

from __future__ import annotations

HASH = """

@inline
def hash_of(row):
    h = row[0] * 0x9E3779B97F4A7C15
{more}    return (h ^ (h >> 32)) * 0x94D049BB133111EB


@inline
def same(row, new):
    return {same}


@inline
def opened(row, new):
{copied}    return 0
"""
"""What is done to all words of a state."""

SLOTS = {
    True: """

@inline
def place_of(slots, mask, h, states, new):
    at = ((h >> 32) & mask) * LINE
    here = equal_in(ref(slots, at), new[0])
    while here == 0:
        free = equal_in(ref(slots, at), 0)
        if free != 0:
            return ~(at + first_of(free))
        at = (at + LINE) & (mask * LINE)
        here = equal_in(ref(slots, at), new[0])
    return at + first_of(here)


@inline
def number_at(slots, places, at):
    return places[at]


@inline
def put_at(slots, places, at, h, number, new):
    slots[at] = new[0]
    places[at] = number
    return 0
""",
    False: """

@inline
def place_of(slots, mask, h, states, new):
    at = (h >> 32) & mask
    found = slots[at]
    while found != 0:
        if (found ^ (h << 32)) >> 32 == 0:
            if same(ref(states, ((found & 0xFFFFFFFF) - 1) * WORDS), new):
                return at
        at = (at + 1) & mask
        found = slots[at]
    return ~at


@inline
def number_at(slots, places, at):
    return (slots[at] & 0xFFFFFFFF) - 1


@inline
def put_at(slots, places, at, h, number, new):
    slots[at] = (h << 32) | (number + 1)
    return 0
""",
}
"""Where the table tells of a state: the place of it, or with all bits turned, the place where it should be put.

A state of one word, which is never 0, lies there itself, so many to a line of the processor's cache, and its number
apart: that is seldom looked at. Of others the number lies there, beside half of the hash."""

HASH_WORD = """    h = ((h ^ (h >> 29)) + row[{word}]) * 0xBF58476D1CE4E5B9
"""

MADE = """

@inline
def made_of(new, code, fill, mask, slots):
    fill[0] += 1
    h = hash_of(new)
    new[WORDS] = code
    new[WORDS + 1] = h
    soon(slots, LINE * ((h >> 32) & mask))
    return 1
"""
"""What a step makes is looked up later, all together: what the table holds there is under way by then."""
