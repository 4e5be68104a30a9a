"""Lines of JSON that are certainly plain, many at once: one flat object on each, of keys that are known.

Libraries read JSON fast, take `"1"`, `1.4` or `true` for a number, pass over keys that nobody knows, and keep silent
about it (DuckDB 2.0 does all of this); the strict ones take longer than all that is judged afterwards. So this is no
reader of JSON. It knows one way to write each value, as recorders write them, and where anything else stands it says
so, and reads nothing: the caller then reads these lines with a library, and tells what is wrong, if anything is.

Plain is: an object, perhaps with spaces around its commas and colons; each key once, and known; integers of at most 18
digits; texts without escapes; `null`, which is the same as left out. Whether the bytes are UTF-8 is left to the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gapless.traces.events.coded import Given
from gapless.traces.native import njit, uint64

Ints = npt.NDArray[np.int64]

MANY = 12 << 20  # bytes of about 100,000 events
LEAST = 1024  # texts' places, in a table that grows by four while it is half full
ABSENT, THERE, NULL = 0, 1, 2  # what a line says of a key


class ValueKind(IntEnum):
    """What the value of a key must be."""

    INTEGER = 0
    TEXT = 1
    TRUTH = 2  # true or false
    NESTED = 3  # an object of keys that are known, and integers
    INTEGERS = 4  # an object of any keys, and integers: its text is kept


class Keys(NamedTuple):
    """Names as a kernel looks them up: a hash table of their numbers, -1 where it is empty, and their letters."""

    table: Ints
    letters: npt.NDArray[np.uint8]
    bounds: Ints


@dataclass(frozen=True, eq=False)
class PlainBlock:
    """What lines say: a row for each key, a column for each line.

    `values`: int64, the integer, 1 for true, or where a text begins; 0 where a key has no value · `ends`: int64, where
    a text ends · `there`: uint8, `ABSENT`, `THERE` or `NULL` · `ascii`: all bytes are.
    """

    data: npt.NDArray[np.uint8]
    block: bytes
    values: Ints
    ends: Ints
    there: npt.NDArray[np.uint8]
    ascii: bool

    @property
    def count(self) -> int:
        """How many lines there are."""
        return self.there.shape[1]

    def utf8(self) -> bool:
        """Whether the bytes are text."""
        if not self.ascii:
            try:
                self.block.decode()
            except UnicodeDecodeError:
                return False
        return True

    def has(self, key: int) -> npt.NDArray[np.bool_]:
        """The lines in which a key has a value."""
        found: npt.NDArray[np.bool_] = self.there[key] == THERE
        return found

    def integers(self, key: int) -> Ints:
        """The values of a key, 0 where it has none."""
        found: Ints = self.values[key]
        return found

    def given(self, key: int) -> Given:
        """The values of a key, and where it has any."""
        there = self.has(key)
        return Given(self.values[key], None if there.all() else there)

    def distinct(self, key: int) -> tuple[list[str], Ints]:
        """The texts of a key, each once, in the order of lines; and the index of every line's, -1 where it has none."""
        firsts, index = self._firsts(key)
        spans = zip(self.values[key][firsts].tolist(), self.ends[key][firsts].tolist(), strict=True)
        return [self.block[begin:end].decode() for begin, end in spans], index.astype(np.int64)

    def texts(self, key: int) -> pa.DictionaryArray[Any, Any]:
        """The texts of a key, each once, and the index of every line's; null where it has none."""
        firsts, index = self._firsts(key)
        mask = None if index.min(initial=0) >= 0 else index < 0
        texts = self._cut(self.values[key][firsts], self.ends[key][firsts])
        return pa.DictionaryArray.from_arrays(pa.array(index, mask=mask), texts)

    def _firsts(self, key: int) -> tuple[Ints, npt.NDArray[np.int32]]:
        """The lines where a text of a key is the first of its kind; and which of these every line's is, or -1."""
        index, (firsts, places) = np.empty(self.count, np.int32), np.empty((2, self.count), np.int64)
        table = np.empty(max(LEAST, 4 << (2 * self.count).bit_length()), np.int64)
        texts = self.data, self.values[key], self.ends[key], self.there[key]
        return firsts[: _distinct(*texts, table, places, firsts, index)].copy(), index

    def every_text(self, key: int) -> pa.Array[Any]:
        """The text of a key in every line; null where it has none."""
        there = self.has(key)
        valid = None if there.all() else pa.array(there).buffers()[1]
        texts = self._cut(self.values[key], self.ends[key])
        _none, bounds, letters = texts.buffers()
        return pa.StringArray.from_buffers(len(texts), bounds, letters, valid)

    def _cut(self, begins: Ints, ends: Ints) -> pa.Array[Any]:
        """Texts, cut out of the lines."""
        bounds = np.zeros(len(begins) + 1, np.int32)
        np.cumsum(ends - begins, out=bounds[1:])
        letters = np.empty(bounds[-1], np.uint8)
        _copied(self.data, begins, bounds, letters)
        return pa.StringArray.from_buffers(len(begins), pa.py_buffer(bounds), pa.py_buffer(letters))


class PlainLines:
    """Reads lines with these keys. `nested`: the integers within the one key that is `NESTED`.

    `strange`: whether a line may have other keys, of which no more than a text, an integer or a truth is read.
    """

    def __init__(
        self,
        kinds: Mapping[str, ValueKind],
        nested: Mapping[str, Sequence[str]] | None = None,
        *,
        strange: bool = False,
    ) -> None:
        ((within, inner),) = (nested or {"": ()}).items()
        self.number: dict[str | tuple[str, str], int] = {name: number for number, name in enumerate(kinds)}
        self.number |= {(name, within): len(kinds) + number for number, name in enumerate(inner)}
        self._kinds = np.array([*kinds.values(), *[ValueKind.INTEGER] * len(inner)], np.int64)
        self._outer, self._inner = _keys(list(kinds)), _keys(inner)
        self._own = len(kinds)
        self._strange = strange

    @staticmethod
    def pays(size: int) -> bool:
        """Whether so many bytes are worth three seconds of compiling, or it was compiled once."""
        return size >= MANY or _read.is_kept()

    def read(self, block: bytes, room: int) -> PlainBlock | None:
        """So many whole lines, each with its newline; None where one of them is not plain."""
        data = np.frombuffer(block, np.uint8)
        values, ends = np.zeros((len(self._kinds), room), np.int64), np.zeros((self._own, room), np.int64)
        there = np.zeros((len(self._kinds), room), np.uint8)
        follows = np.full(len(self._kinds) + 1, -1, np.int64)
        beyond = _read(
            data, self._outer, self._inner, self._kinds, self._own, self._strange, follows, values, ends, there
        )
        return None if beyond < 0 else PlainBlock(data, block, values, ends, there, ascii=not beyond)


def _keys(names: Sequence[str]) -> Keys:
    """Names, ready to be looked up."""
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
    return Keys(table, letters, np.cumsum([0, *(len(name.encode()) for name in names)]))


SPREAD, LOW = 31, (1 << 40) - 1
TAB, NEWLINE, RETURN, SPACE, QUOTE, COMMA, MINUS, ZERO, NINE, COLON, BACKSLASH, OPENED, CLOSED = b'\t\n\r ",-09:\\{}'
DIGITS = 18  # of an integer: more might not fit into 64 bits
A_FALSE, AN_N, A_TRUE = b"fnt"
NOT_PLAIN = -1


@njit
def _read(
    data: Any,
    outer: Any,
    inner: Any,
    kinds: Any,
    own: int,
    strange: bool,
    follows: Any,
    values: Any,
    ends: Any,
    there: Any,
) -> int:
    """Read every line; -1 where one is not plain, or else whether any byte is none of ASCII.

    `follows`: which key came last behind each, and behind none: one recorder writes them in one order.
    """
    at = 0
    high = 0
    for line in range(values.shape[1]):
        at = _spaces(data, at)
        if data[uint64(at)] != OPENED:
            return NOT_PLAIN
        inside = NOT_PLAIN  # the key whose object we are in
        last = NOT_PLAIN
        at = _spaces(data, at + 1)
        begun = True  # an object has just been opened: it may end, and no comma comes first
        while True:
            byte = data[uint64(at)]
            if byte == CLOSED:
                at = _spaces(data, at + 1)
                if inside < 0:
                    break
                inside, begun = NOT_PLAIN, False
                continue
            if not begun:
                if byte != COMMA:
                    return NOT_PLAIN
                at = _spaces(data, at + 1)
            begun = False
            if data[uint64(at)] != QUOTE:
                return NOT_PLAIN
            key = follows[last + 1]
            if key >= 0 and (key < own) == (inside < 0):
                end = _is_key(data, at + 1, outer, key) if inside < 0 else _is_key(data, at + 1, inner, key - own)
            else:
                end = NOT_PLAIN
            if end >= 0:
                at = end
            elif inside < 0:
                key, at = _key(data, at + 1, outer)
            else:
                key, at = _key(data, at + 1, inner)
                key = key + own if key >= 0 else key
            follows[last + 1] = key
            last = key
            if at < 0 or (key < 0 and (not strange or inside >= 0)):
                return NOT_PLAIN
            at = _spaces(data, at)
            if data[uint64(at)] != COLON:
                return NOT_PLAIN
            at = _spaces(data, at + 1)
            if key >= 0 and there[key, line] != ABSENT:
                return NOT_PLAIN
            byte = data[uint64(at)]
            kind = kinds[key] if key >= 0 else _kind_of(byte)
            value, end = 0, 0
            if byte == AN_N:
                if data[uint64(at + 1)] != 117 or data[uint64(at + 2)] != 108 or data[uint64(at + 3)] != 108:
                    return NOT_PLAIN
                at += 4
                if key >= 0:
                    there[key, line] = NULL
                at = _spaces(data, at)
                continue
            if kind == 0:
                value, at = _integer(data, at)
            elif kind == 1 and byte == QUOTE:
                value = at + 1
                end, high = _text(data, at + 1, high)
                at = end + 1 if end >= 0 else NOT_PLAIN
            elif kind == 2 and byte in (A_TRUE, A_FALSE):
                value = 1 if byte == A_TRUE else 0
                at = _truth(data, at)
            elif kind == 3 and byte == OPENED:
                there[key, line] = THERE
                inside, begun = key, True
                at = _spaces(data, at + 1)
                continue
            elif kind == 4 and byte == OPENED:
                value = at
                at, high = _of_integers(data, at + 1, high)
                end = at
            else:
                return NOT_PLAIN
            if at < 0:
                return NOT_PLAIN
            if key >= 0:
                there[key, line] = THERE
                values[key, line] = value
                if key < own:
                    ends[key, line] = end
            at = _spaces(data, at)
        if data[uint64(at)] == RETURN:
            at += 1
        if data[uint64(at)] != NEWLINE:
            return NOT_PLAIN
        at += 1
    return 1 if high >= 128 else 0


@njit
def _spaces(data: Any, at: int) -> int:
    """The first byte from `at` on that is no space: there is one, for a newline ends the data."""
    while data[uint64(at)] == SPACE or data[uint64(at)] == TAB:
        at += 1
    return at


@njit
def _is_key(data: Any, at: int, keys: Any, number: int) -> int:
    """What is behind the quote of this key, which begins at `at`; -1 if it is another."""
    _, letters, bounds = keys
    for place in range(bounds[number], bounds[number + 1]):
        if data[uint64(at)] != letters[uint64(place)]:
            return -1
        at += 1
    return at + 1 if data[uint64(at)] == QUOTE else -1


@njit
def _key(data: Any, at: int, keys: Any) -> tuple[int, int]:
    """The number of the key that begins at `at`, -1 if it is none, and what is behind its quote, -1 if it has none."""
    table, letters, bounds = keys
    low, place = at, 0
    while data[uint64(at)] != QUOTE:
        if data[uint64(at)] < SPACE or data[uint64(at)] == BACKSLASH or data[uint64(at)] >= 128:
            return -1, -1
        place = (place * SPREAD + data[uint64(at)]) & LOW
        at += 1
    while True:
        number = table[place & (len(table) - 1)]
        if number < 0:
            return -1, at + 1
        begin = bounds[number]
        if bounds[number + 1] - begin == at - low:
            same = 0
            while same < at - low and data[uint64(low + same)] == letters[begin + same]:
                same += 1
            if same == at - low:
                return number, at + 1
        place += 1


@njit
def _text(data: Any, at: int, high: int) -> tuple[int, int]:
    """Where the text ends that begins at `at`, -1 if it is not plain; and the bits of its bytes, added to `high`."""
    while data[uint64(at)] != QUOTE:
        if data[uint64(at)] < SPACE or data[uint64(at)] == BACKSLASH:
            return -1, high
        high |= data[uint64(at)]
        at += 1
    return at, high


@njit
def _integer(data: Any, at: int) -> tuple[int, int]:
    """The integer at `at`, and what is behind it, -1 if it is not plain."""
    sign = 1
    if data[uint64(at)] == MINUS:
        sign = -1
        at += 1
        if data[uint64(at)] == ZERO:
            return 0, -1
    low, value = at, 0
    while ZERO <= data[uint64(at)] <= NINE:
        value = value * 10 + (data[uint64(at)] - ZERO)
        at += 1
        if at - low > DIGITS:
            return 0, -1
    if at == low or (data[uint64(low)] == ZERO and at - low > 1):
        return 0, -1
    return sign * value, at


@njit
def _truth(data: Any, at: int) -> int:
    """What is behind `true` or `false`, -1 if it is neither."""
    if data[uint64(at)] == A_TRUE:
        return (
            at + 4
            if data[uint64(at + 1)] == 114 and data[uint64(at + 2)] == 117 and data[uint64(at + 3)] == 101
            else -1
        )
    if (
        data[uint64(at + 1)] == 97
        and data[uint64(at + 2)] == 108
        and data[uint64(at + 3)] == 115
        and data[uint64(at + 4)] == 101
    ):
        return at + 5
    return -1


@njit
def _kind_of(byte: int) -> int:
    """The kind of a value that nobody asks for."""
    return 1 if byte == QUOTE else 2 if byte in (A_TRUE, A_FALSE) else 0


@njit
def _of_integers(data: Any, at: int, high: int) -> tuple[int, int]:
    """What is behind an object of integers or nulls, of which the first key begins at `at`; -1 if it is not plain."""
    at = _spaces(data, at)
    begun = True
    while data[uint64(at)] != CLOSED:
        if not begun:
            if data[uint64(at)] != COMMA:
                return -1, high
            at = _spaces(data, at + 1)
        begun = False
        if data[uint64(at)] != QUOTE:
            return -1, high
        end, high = _text(data, at + 1, high)
        if end < 0:
            return -1, high
        at = _spaces(data, end + 1)
        if data[uint64(at)] != COLON:
            return -1, high
        at = _spaces(data, at + 1)
        if data[uint64(at)] == AN_N:
            if data[uint64(at + 1)] != 117 or data[uint64(at + 2)] != 108 or data[uint64(at + 3)] != 108:
                return -1, high
            at += 4
        else:
            _, at = _integer(data, at)
            if at < 0:
                return -1, high
        at = _spaces(data, at)
    return at + 1, high


@njit
def _distinct(data: Any, begins: Any, ends: Any, there: Any, table: Any, places: Any, firsts: Any, index: Any) -> Any:
    """Number every text by its first occurrence, -1 where there is none: `firsts` are the lines of these.

    Returns how many there are. `table`, `places`: room to work with.
    """
    size = np.int64(LEAST)
    table[:size] = -1
    count = np.int64(0)
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
        place = 0
        for at in range(begins[line], ends[line]):
            place = (place * SPREAD + data[at]) & LOW
        place ^= place >> 17
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


@njit
def _alike(data: Any, begins: Any, ends: Any, one: int, other: int) -> bool:
    """Whether two lines have the same text."""
    length = ends[one] - begins[one]
    if ends[other] - begins[other] != length:
        return False
    low, high = begins[one], begins[other]
    for at in range(length - 1, -1, -1):  # names differ at their ends
        if data[uint64(low + at)] != data[uint64(high + at)]:
            return False
    return True


@njit
def _copied(data: Any, begins: Any, bounds: Any, letters: Any) -> None:
    """Copy texts, one behind the other."""
    for number in range(len(begins)):
        begin = begins[number]
        for at in range(bounds[number], bounds[number + 1]):
            letters[at] = data[uint64(begin + at - bounds[number])]
