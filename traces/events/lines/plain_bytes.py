"""Native reading of plain JSON lines, byte by byte; `plain_lines` defines what is plain."""

# ruff: noqa: C901, PLR0911, PLR0912, PLR0915
# A kernel is one pass over the bytes.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import BOOL, BYTE_TABLE, BYTES, I64, INTS, TABLE, WORDS, function, int64, record, uint64
from gapless.native.swar import NONE, ONES, TOPS, Words, before, eight, first, mask_of, zeros

Ints = npt.NDArray[np.int64]

ABSENT, THERE, NULL = 0, 1, 2  # what a line says of a key
SPREAD, LOW = 31, (1 << 40) - 1
TAB, NEWLINE, RETURN, SPACE, QUOTE, COMMA, MINUS, ZERO, NINE, COLON, BACKSLASH, POINT = b'\t\n\r ",-09:\\.'
ESCAPED = tuple(b'"\\/bfnrt')  # what may follow a backslash; a character's number may not be one, and is not plain
OPENED, CLOSED, OPENED_LIST, CLOSED_LIST = b"{}[]"
DIGITS = 18  # of an integer: more might not fit into 64 bits
QUOTES, BACKSLASHES, SPACES, ZEROS, SIXES = (ONES * np.uint64(byte) for byte in (QUOTE, BACKSLASH, SPACE, ZERO, 0x76))
TENS = 10 ** np.arange(8)
A_FALSE, AN_N, A_TRUE = b"fnt"
NOT_PLAIN, NO_ROOM = -1, -2
# What stands between two values of a line is the same on most lines: `,"queue":` is a comma, a key and a colon. So what
# stood there last is compared at once. There is one such link behind each key, and first the one that lines begin with.
LINK = 16  # bytes that it has at most
LINE_END = -2  # in place of the key of the value behind it: there is none
LINK_FACTS = 8  # two words, which bytes of each are its own, how many it has (0: none is known), and its key, row, kind


class Keys(NamedTuple):
    """A hash table of key names.

    Empty slots are -1. `words`: the first eight bytes of each name with the quote and the colon after it; `masks`:
    which of these bytes it has.
    """

    table: Ints
    letters: npt.NDArray[np.uint8]
    bounds: Ints
    words: Words
    masks: Words


def keys_of(names: Sequence[str]) -> Keys:
    """Build the hash table of some names."""
    size = 64
    while size < 4 * len(names):
        size *= 2
    table = np.full(size, -1, np.int64)
    for number, name in enumerate(names):
        place = 0
        for letter in name.encode():
            place = (place * SPREAD + letter) & LOW
        while table[place & (size - 1)] >= 0:
            place += 1
        table[place & (size - 1)] = number
    letters = np.frombuffer("".join(names).encode() or b" ", np.uint8).copy()
    quoted = [f'{name}":'.encode()[:8] for name in names]
    words, masks = (
        [int.from_bytes(one, "little") for one in ones] for ones in (quoted, [b"\xff" * len(one) for one in quoted])
    )
    bounds = np.cumsum([0, *(len(name.encode()) for name in names)])
    return Keys(table, letters, bounds, np.array(words, np.uint64), np.array(masks, np.uint64))


class LineRoom(NamedTuple):
    """The settings and output arrays of `read_lines`.

    `outer`, `inner`: keys of a line, and within the one that is an object · `kinds`: of their values · `own`: how many
    of these a line has itself · `strange`: true if it may have others · `follows`: which key came last behind each, and
    behind none: one recorder writes them in one order · `rows`: in which row each key is, -1 for one that has not
    occurred · `used`: how many rows are taken · `links`: the bytes that stood last between values of a line itself, as
    `LINK_FACTS`.
    """

    outer: Keys
    inner: Keys
    kinds: Ints
    own: int
    strange: bool
    follows: Ints
    rows: Ints
    used: Ints
    links: Ints
    values: Ints
    ends: Ints
    there: npt.NDArray[np.uint8]


KEYS = record(Keys, INTS, BYTES, INTS, WORDS, WORDS)
LINE_ROOM = record(LineRoom, KEYS, KEYS, INTS, I64, BOOL, INTS, INTS, INTS, INTS, TABLE, TABLE, BYTE_TABLE)
"""The kind of the room."""


@function(kinds=(BYTES, LINE_ROOM))
def read_lines(data: Any, lines: Any) -> int:
    """Read every line; return if any byte is not ASCII, or `NOT_PLAIN`, or `NO_ROOM`."""
    at, high = next_lines(data, 0, NONE, lines, lines.values.shape[1])
    if at < 0:
        return at
    return 1 if high & TOPS else 0


@function
def next_lines(data: Any, at: int, high: Any, lines: Any, count: int) -> tuple[int, Any]:
    """Read `count` lines from `at` on; return the next position or an error code, and their bits.

    The bits are added to `high`. `there` is all `ABSENT` before; the values of a key that a line does not have stay
    unchanged. If keys need more rows than there are, all is read again with more room (`NO_ROOM`).
    """
    outer, inner, kinds, own, strange, follows, rows, used, links, values, ends, there = lines
    for line in range(count):
        inside = NOT_PLAIN  # the key whose object we are in
        last = NOT_PLAIN
        begin = at  # of what links the last value to the next, -1 where the line itself has none
        opened = False
        begun = True  # an object has just been opened: it may end, and no comma comes first
        while True:
            link, length = uint64(LINK_FACTS * (last + 1)), 0
            if begin >= 0 and at + LINK <= len(data):
                one = (eight(data, at) ^ uint64(links[link])) & uint64(links[link + uint64(2)])
                other = (eight(data, at + 8) ^ uint64(links[link + uint64(1)])) & uint64(links[link + uint64(3)])
                length = 0 if one | other else links[link + uint64(4)]
            if length:
                at += length
                key = links[link + uint64(5)]
                if key == LINE_END:
                    break
                row, kind = links[link + uint64(6)], links[link + uint64(7)]
                opened, begun = True, False
            else:
                at = spaces(data, at)
                if not opened:
                    if data[at] != OPENED:
                        return NOT_PLAIN, high
                    at = spaces(data, at + 1)
                    opened = True
                byte = data[at]
                if byte == CLOSED:
                    at += 1
                    if inside < 0:
                        at = _line_end(data, at)
                        if at < 0:
                            return NOT_PLAIN, high
                        _link(data, begin, at, links, last + 1, LINE_END, NOT_PLAIN, NOT_PLAIN)
                        break
                    inside, begun, begin = NOT_PLAIN, False, at
                    continue
                if not begun:
                    if byte != COMMA:
                        return NOT_PLAIN, high
                    at = spaces(data, at + 1)
                begun = False
                if data[at] != QUOTE:
                    return NOT_PLAIN, high
                key = follows[last + 1]
                if key >= 0 and (key < own) == (inside < 0):
                    end = _behind(data, at + 1, outer, key) if inside < 0 else _behind(data, at + 1, inner, key - own)
                else:
                    end = NOT_PLAIN
                if end >= 0:
                    at = end
                else:
                    if inside < 0:
                        key, at = _key(data, at + 1, outer)
                    else:
                        key, at = _key(data, at + 1, inner)
                        key = key + own if key >= 0 else key
                    follows[last + 1] = key
                    if at < 0 or (key < 0 and (not strange or inside >= 0)):
                        return NOT_PLAIN, high
                    at = spaces(data, at)
                    if data[at] != COLON:
                        return NOT_PLAIN, high
                    at += 1
                at = spaces(data, at)
                row, kind = NOT_PLAIN, NOT_PLAIN
                if key >= 0:
                    row, kind = rows[key], kinds[key]
                    if row < 0:
                        if used[0] == values.shape[0]:
                            return NO_ROOM, high
                        row = used[0]
                        rows[key], used[0] = row, row + 1
                    if inside < 0:
                        _link(data, begin, at, links, last + 1, key, row, kind)
            last = key
            if key >= 0 and there[row, line] != ABSENT:
                return NOT_PLAIN, high
            byte = data[at]
            value, end, state = 0, 0, THERE
            if byte == AN_N:
                at, state = _null(data, at), NULL
            elif kind == 0:
                value, at = _integer(data, at)
            elif kind == 1 and byte == QUOTE:
                value = at + 1
                end, high = _text(data, at + 1, high)
                at = end + 1 if end >= 0 else NOT_PLAIN
            elif kind == 6 and byte != OPENED_LIST:
                value, at = _integer(data, at)
            elif kind == 2 and byte in (A_TRUE, A_FALSE):
                value = 1 if byte == A_TRUE else 0
                at = _truth(data, at)
            elif kind == 3 and byte == OPENED:
                there[row, line] = THERE
                inside, begun, begin = key, True, NOT_PLAIN
                at += 1
                continue
            elif kind == 4 and byte == OPENED:
                value = at
                at, high = _of_integers(data, at + 1, high)
                end = at
            elif kind == 6:
                value = at
                at, high = _list(data, at + 1, high)
                end = at
            elif key < 0:
                at, high = _unknown(data, at, high)
            else:
                return NOT_PLAIN, high
            if at < 0:
                return NOT_PLAIN, high
            begin = NOT_PLAIN
            if key >= 0:
                there[row, line], values[row, line] = state, value
                if key < own:
                    begin, ends[key, line] = at, end
    return at, high


@function
def _link(data: Any, begin: int, end: int, links: Any, link: int, key: int, row: int, kind: int) -> None:
    """Remember the bytes between two values, if they fit into the words that are compared."""
    if begin < 0 or end - begin > LINK or begin + LINK > len(data):
        return
    place, size = LINK_FACTS * link, end - begin
    links[place], links[place + 1] = int64(eight(data, begin)), int64(eight(data, begin + 8))
    links[place + 2], links[place + 3] = int64(mask_of(min(size, 8))), int64(mask_of(max(size - 8, 0)))
    links[place + 4], links[place + 5], links[place + 6], links[place + 7] = size, key, row, kind


@function
def _line_end(data: Any, at: int) -> int:
    """Return the position after the end of a line that ends at `at`, spaces allowed; -1 for anything else."""
    at = spaces(data, at)
    if data[at] == RETURN:
        at += 1
    return at + 1 if data[at] == NEWLINE else -1


@function
def spaces(data: Any, at: int) -> int:
    """Find the first byte from `at` on that is no space; a newline ends the data, so there is one."""
    while data[at] <= SPACE and (data[at] == SPACE or data[at] == TAB):
        at += 1
    return at


@function
def _behind(data: Any, at: int, keys: Any, number: int) -> int:
    """Return the position after this key and its colon, which begin at `at`; -1 for anything else."""
    _, letters, bounds, words, masks = keys
    low = int(bounds[number])
    length = int(bounds[number + 1]) - low
    same = 0
    if at + 8 <= len(data):
        if (eight(data, at) ^ words[number]) & masks[number]:
            return -1
        if length <= 6:
            return at + length + 2
        same = min(8, length)
    for place in range(same, length):
        if data[at + place] != letters[low + place]:
            return -1
    at += length
    return at + 2 if data[at] == QUOTE and data[at + 1] == COLON else -1


@function
def _key(data: Any, at: int, keys: Any) -> tuple[int, int]:
    """Return the number of the key at `at`, and the position after its quote.

    The number is -1 for an unknown key, the position -1 if there is no quote.
    """
    table, letters, bounds, _, _ = keys
    low, place = at, 0
    while data[at] != QUOTE:
        if data[at] < SPACE or data[at] == BACKSLASH or data[at] >= 128:
            return -1, -1
        place = (place * SPREAD + data[at]) & LOW
        at += 1
    while True:
        number = table[place & (len(table) - 1)]
        if number < 0:
            return -1, at + 1
        begin = bounds[number]
        if bounds[number + 1] - begin == at - low:
            same = 0
            while same < at - low and data[low + same] == letters[begin + same]:
                same += 1
            if same == at - low:
                return number, at + 1
        place += 1


@function
def _text(data: Any, at: int, high: Any) -> tuple[int, Any]:
    """Return the end of the text that begins at `at`, -1 if it is not plain; and its bits, added to `high`."""
    while at + 8 <= len(data):
        word = eight(data, at)
        stops = zeros(word ^ QUOTES) | zeros(word ^ BACKSLASHES) | ((word - SPACES) & ~word & TOPS)
        if stops:
            at += first(stops)
            return (at if data[at] == QUOTE else -1), high | before(word, stops)
        high |= word
        at += 8
    while data[at] != QUOTE:
        if data[at] < SPACE or data[at] == BACKSLASH:
            return -1, high
        high |= uint64(data[at])
        at += 1
    return at, high


@function(inline=True)
def _integer(data: Any, at: int) -> tuple[int, int]:
    """Return the integer at `at` and the position after it, -1 if it is not plain."""
    sign = 1
    if data[at] == MINUS:
        sign = -1
        at += 1
        if data[at] == ZERO:
            return 0, -1
    low, value, more = at, 0, True
    while more and at + 8 <= len(data) and at - low <= DIGITS:
        digits = eight(data, at) ^ ZEROS
        others = ((digits + SIXES) | digits) & TOPS  # what is no digit is 10 or more, or no letter of ASCII
        if others:
            count = first(others)
            if count:
                value = value * TENS[count] + _of_digits(digits << uint64(64 - 8 * count))
            at += count
            more = False
        else:
            value = value * 100_000_000 + _of_digits(digits)
            at += 8
    while more and ZERO <= data[at] <= NINE and at - low <= DIGITS:
        value = value * 10 + (data[at] - ZERO)
        at += 1
    if at == low or at - low > DIGITS or (data[low] == ZERO and at - low > 1):
        return 0, -1
    return sign * value, at


@function(inline=True)
def _of_digits(digits: Any) -> Any:
    """Convert eight digits, the first in the lowest byte: combine pairs, then fours, then both halves."""
    pairs = (digits * np.uint64(10) + (digits >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs * np.uint64(100) + (pairs >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return int64((fours * np.uint64(10000) + (fours >> np.uint64(32))) & np.uint64(0xFFFFFFFF))


@function
def _truth(data: Any, at: int) -> int:
    """Return the position after `true` or `false`, -1 if it is neither."""
    if data[at] == A_TRUE:
        return at + 4 if data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101 else -1
    if data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115 and data[at + 4] == 101:
        return at + 5
    return -1


@function
def _unknown(data: Any, at: int, high: Any) -> tuple[int, Any]:
    """Return the position after the value of an unknown key: a text, a number, or a truth value; -1 if not plain."""
    byte = data[at]
    if byte in (A_TRUE, A_FALSE):
        return _truth(data, at), high
    if byte != QUOTE:
        _, at = _integer(data, at)
        if at >= 0 and data[at] == POINT:
            low = at + 1
            at = low
            while ZERO <= data[at] <= NINE:
                at += 1
            at = at if at > low else NOT_PLAIN
        return at, high
    end, bits = _text(data, at + 1, high)
    if end >= 0:
        return end + 1, bits
    at += 1
    while data[at] != QUOTE:
        if data[at] == BACKSLASH:
            at += 1
            if data[at] not in ESCAPED:
                return NOT_PLAIN, high
        elif data[at] < SPACE:
            return NOT_PLAIN, high
        high |= uint64(data[at])
        at += 1
    return at + 1, high


@function
def _of_integers(data: Any, at: int, high: int) -> tuple[int, int]:
    """Return the position after an object of integers or nulls whose first key begins at `at`; -1 if not plain."""
    at = spaces(data, at)
    begun = True
    while data[at] != CLOSED:
        if not begun:
            if data[at] != COMMA:
                return -1, high
            at = spaces(data, at + 1)
        begun = False
        if data[at] != QUOTE:
            return -1, high
        end, high = _text(data, at + 1, high)
        if end < 0:
            return -1, high
        at = spaces(data, end + 1)
        if data[at] != COLON:
            return -1, high
        at = spaces(data, at + 1)
        at = _null(data, at) if data[at] == AN_N else _integer(data, at)[1]
        if at < 0:
            return -1, high
        at = spaces(data, at)
    return at + 1, high


@function
def _list(data: Any, at: int, high: int) -> tuple[int, int]:
    """Return the position after a list of texts, integers or nulls whose first item begins at `at`; -1 if not plain."""
    at = spaces(data, at)
    begun = True
    while data[at] != CLOSED_LIST:
        if not begun:
            if data[at] != COMMA:
                return -1, high
            at = spaces(data, at + 1)
        begun = False
        if data[at] == QUOTE:
            end, high = _text(data, at + 1, high)
            at = end + 1 if end >= 0 else NOT_PLAIN
        else:
            at = _null(data, at) if data[at] == AN_N else _integer(data, at)[1]
        if at < 0:
            return -1, high
        at = spaces(data, at)
    return at + 1, high


@function
def _null(data: Any, at: int) -> int:
    """Return the position after `null`, of which the first letter is at `at`; -1 if it is not."""
    return at + 4 if data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108 else -1
