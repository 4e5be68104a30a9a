"""A packed state, in the language of native code: reads of its fields and Maps, and writes into it.

The functions are specialised by the place of a field: the values of a Map lie from bit `BIT` on, those of the keys from
`ORIGIN` to `ORIGIN + WIDTH`, each `1 << SHIFT` bits behind the one before, as what they are more than `LEAST`, in the
bits of `MASK`. All other keys have the value `DEFAULT`. In a Map of two keys, these lie row by row from `ORIGIN` 0 on.
"""

from __future__ import annotations

import numpy as np

from gapless.native import function, int64, uint64
from gapless.properties.exploration.compiled.arrays import Ints, States

BIT, SHIFT, LEAST, MASK = 0, 0, 0, 1
FIELD = 0  # the number of the field
DEFAULT = 0
ORIGIN, WIDTH = 0, 1
VALUES = np.zeros(1, np.uint64)  # by word of a state, the bits in which the Map's values lie
EMPTY = np.zeros(1, np.uint64)  # by word of a state, the bits of one whose Maps are empty
MAP_WORDS = (0,)  # the words of a state in which the Map's values lie
KEYS = (0,)  # offsets of keys that are asked about at once
MOST = 63  # bits of a word that can be counted from below

WIDE_KEY, WIDE_VALUE, UNKNOWN = 1, 2, 3
"""The values of `escape`: a key, or a value has no room; the plain functions must go on."""


@function(apart=True, distinct=True)
def too_wide(escape: Ints, field: int, value: int) -> int:
    """Tell of a value for which a field has no room."""
    escape[0] = WIDE_VALUE
    escape[1] = field
    escape[2] = value
    return 0


@function(apart=True, distinct=True)
def leave_alone(escape: Ints) -> int:
    """Leave the search to the plain functions."""
    escape[0] = UNKNOWN
    return 1


# -- numbers ---------------------------------------------------------------------------------------------------------


@function(inline=True, distinct=True)
def number_in(row: States) -> int:
    """The value of a field: `BIT` is its word's number, `SHIFT` its place there."""
    return int64((row[BIT] >> SHIFT) & MASK) + LEAST


@function(inline=True, distinct=True)
def change_number(new: States, before: int, value: int, escape: Ints) -> int:
    """Give a field another value than it has."""
    raw = value - LEAST
    if raw < 0 or raw > MASK:
        too_wide(escape, FIELD, value)
    new[BIT] += uint64(value - before) << SHIFT
    return 0


# -- Maps ------------------------------------------------------------------------------------------------------------


@function(inline=True, distinct=True)
def pair_key(first: int, second: int) -> int:
    """The place of two keys, in Maps that have two; -1 where there is none."""
    row = first - ORIGIN
    column = second - ORIGIN
    inside = 0 <= row < WIDTH and 0 <= column < WIDTH
    return (row if inside else 0) * WIDTH + (column if inside else -1)


@function(inline=True, distinct=True)
def value_at(row: States, key: int) -> int:
    """The value at a key."""
    place = key - ORIGIN
    inside = 0 <= place < WIDTH
    bit = BIT + ((place if inside else 0) << SHIFT)
    value = int64((row[bit >> 6] >> uint64(bit & 63)) & MASK) + LEAST
    return value if inside else DEFAULT


@function(inline=True, distinct=True)
def put_value(new: States, key: int, value: int, escape: Ints) -> int:
    """Put a value at a key."""
    place = key - ORIGIN
    if 0 <= place < WIDTH:
        raw = value - LEAST
        if raw < 0 or raw > MASK:
            too_wide(escape, FIELD, value)
        bit = BIT + (place << SHIFT)
        at = uint64(bit & 63)
        ones = uint64(MASK) << at
        new[bit >> 6] = (new[bit >> 6] & ~ones) | ((uint64(raw) << at) & ones)
    elif value != DEFAULT:
        escape[0] = WIDE_KEY
    return 0


@function(inline=True, distinct=True)
def forget_values(new: States, key: int) -> int:
    """Put the default at all keys from one on."""
    place = max(key - ORIGIN, 0)
    if place < WIDTH:
        bit = BIT + (place << SHIFT)
        for word in MAP_WORDS:
            begin = max(bit - 64 * word, 0)
            if begin < 64:
                ones = (ALL << uint64(begin)) & VALUES[word]
                new[word] = (new[word] & ~ones) | (EMPTY[word] & ones)
    return 0


ALL = uint64(0xFFFF_FFFF_FFFF_FFFF)


@function(distinct=True)
def most_value(row: States) -> int:
    """The greatest value that is not the default; the default where there is no other."""
    found = 0
    best = DEFAULT
    for key in range(ORIGIN, ORIGIN + WIDTH):
        value = at(row, key)
        if value != DEFAULT and (value > best or found == 0):
            found = 1
            best = value
    return best


@function(distinct=True)
def count_keys(row: States) -> int:
    """The number of keys whose value is not the default."""
    count = 0
    for key in range(ORIGIN, ORIGIN + WIDTH):
        count += 1 if at(row, key) != DEFAULT else 0
    return count


at = value_at
other_at = value_at
"""The Map's, and another Map's, value at a key, as they are specialised."""


# -- many keys at once -----------------------------------------------------------------------------------------------


@function(inline=True)
def below(number: int) -> int:
    """The bits of the numbers from 0 up to one."""
    return (1 << min(max(number, 0), MOST)) - 1


@function(inline=True, distinct=True)
def equal_keys(row: States, key: int, value: int) -> int:
    """The bits of the keys, `KEYS` from one on, at which a value lies."""
    bits = 0
    for n in KEYS:
        bits |= int64(at(row, key + n) == value) << n
    return bits


@function(inline=True, distinct=True)
def equal_bits(row: States, key: int, value: int) -> int:
    """The same of a Map whose values have one bit each, all in one word."""
    ones = (1 << WIDTH) - 1
    there = int64(row[BIT >> 6] >> (BIT & 63)) & ones
    raw = value - LEAST
    same = there if raw == 1 else (there ^ ones if raw == 0 else 0)
    outside = -1 if value == DEFAULT else 0
    place = key - ORIGIN
    right = min(max(place, 0), 32)
    left = min(max(0 - place, 0), 32)
    return (((same | (outside & ~ones)) >> right) << left) | (outside & below(left))


equal = equal_keys
other_equal = equal_keys
"""The Map's, and another Map's, bits of a value, as they are specialised."""


@function(inline=True)
def is_less(a: int, b: int) -> bool:
    """True if one number is less than another."""
    return a < b


@function(inline=True)
def bits_less(a: int, b: int) -> int:
    """The same of numbers of one bit each, side by side."""
    return ~a & b


@function(inline=True)
def is_most(a: int, b: int) -> bool:
    """True if one number is at most another."""
    return a <= b


@function(inline=True)
def bits_most(a: int, b: int) -> int:
    """The same of numbers of one bit each, side by side."""
    return ~a | b


@function(inline=True)
def is_more(a: int, b: int) -> bool:
    """True if one number is more than another."""
    return a > b


@function(inline=True)
def bits_more(a: int, b: int) -> int:
    """The same of numbers of one bit each, side by side."""
    return a & ~b


@function(inline=True)
def is_least(a: int, b: int) -> bool:
    """True if one number is at least another."""
    return a >= b


@function(inline=True)
def bits_least(a: int, b: int) -> int:
    """The same of numbers of one bit each, side by side."""
    return a | ~b


@function(inline=True)
def is_same(a: int, b: int) -> bool:
    """True if one number is equal to another."""
    return a == b


@function(inline=True)
def bits_same(a: int, b: int) -> int:
    """The same of numbers of one bit each, side by side."""
    return ~(a ^ b)


@function(inline=True)
def is_other(a: int, b: int) -> bool:
    """True if one number is unequal to another."""
    return a != b


@function(inline=True)
def bits_other(a: int, b: int) -> int:
    """The same of numbers of one bit each, side by side."""
    return a ^ b


@function(inline=True, distinct=True)
def compare_keys(row: States, new: States, key: int) -> int:
    """The bits of the keys at which two Maps compare so."""
    bits = 0
    for n in KEYS:
        bits |= int64(compare(at(row, key + n), other_at(new, key + n))) << n
    return bits


@function(inline=True, distinct=True)
def compare_bits(row: States, new: States, key: int) -> int:
    """The same of two Maps whose values have one bit each."""
    return combine(equal(row, key, LEAST + 1), other_equal(new, key, LEAST + 1))


compare = is_less
combine = bits_less
"""The comparison of two Maps, as a function of two numbers, and of bits."""

COMPARISONS = {
    "<": (is_less, bits_less), "<=": (is_most, bits_most), ">": (is_more, bits_more), ">=": (is_least, bits_least),
    "==": (is_same, bits_same), "!=": (is_other, bits_other),
}  # fmt: skip


@function(inline=True, distinct=True)
def copy_map(row: States, new: States, escape: Ints) -> int:
    """Put what another Map holds in one state into this Map of the next."""
    for key in range(ORIGIN, ORIGIN + WIDTH):
        put(new, key, other_at(row, key), escape)
    return 0


put = put_value
"""The Map's own function, as it is specialised."""
