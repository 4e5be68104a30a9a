"""Plain JSON lines, read in bulk: one flat object per line, of known keys.

JSON libraries are fast, but accept `"1"`, `1.4` or `true` as a number and unknown keys without a warning (DuckDB 2.0
does all of this); strict ones take longer than the whole judgement afterwards. So this is no JSON reader. It knows one
way to write each value, the one of recorders, and reads nothing if it finds anything else: the caller then reads these
lines with a library, and reports what is wrong, if anything is.

Plain is: an object, perhaps with spaces around its commas and colons; each key once, and known; integers of at most 18
digits; texts without escapes; `null`, which is the same as left out. The value of a key that is not read may have
fractions and simple escapes. The caller decides if the bytes must be UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from gapless.native import Function
from gapless.traces.events.lines.line_texts import LEAST, copy_texts, number_texts
from gapless.traces.events.lines.plain_bytes import (
    LINK_FACTS,
    NEWLINE,
    NO_ROOM,
    THERE,
    LineRoom,
    keys_of,
    read_lines,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from gapless.traces.events.encoded_batch import IntegerColumn

Ints = npt.NDArray[np.int64]

MANY = 12 << 20  # bytes of about 100,000 events
FEW = 16  # keys of which there is room at first


class ValueKind(IntEnum):
    """The required type of a key's value."""

    INTEGER = 0
    TEXT = 1
    TRUTH = 2  # true or false
    NESTED = 3  # an object of keys that are known, and integers
    INTEGERS = 4  # an object of any keys, and integers: its text is kept
    OTHER = 5  # none of these: a line that says more than `null` is not plain
    LISTED = 6  # an integer, or a list of texts, integers and nulls: its text is kept


@dataclass(frozen=True, eq=False)
class PlainBlock:
    """The values of lines, in columns.

    `rows`: of each key, its row, -1 if no line has it · `values`: int64, the integer, 1 for true, or where a text
    begins; 0 where a key has no value · `ends`: int64, by key, where a text ends · `there`: uint8, `ABSENT`, `THERE` or
    `NULL` · `ascii`: all bytes are.
    """

    data: npt.NDArray[np.uint8]
    block: bytes
    rows: Ints
    values: Ints
    ends: Ints
    there: npt.NDArray[np.uint8]
    ascii: bool

    @property
    def count(self) -> int:
        """The number of lines."""
        return int(self.there.shape[1])

    def utf8(self) -> bool:
        """True if the bytes are UTF-8."""
        return self.ascii or is_utf8(self.block)

    def has(self, key: int) -> npt.NDArray[np.bool_]:
        """Mark the lines in which a key has a value."""
        found: npt.NDArray[np.bool_] = self._there(key) == THERE
        return found

    def is_met(self, key: int) -> bool:
        """True if a key has a value in any line."""
        return bool(self.rows[key] >= 0 and self.has(key).any())

    def _there(self, key: int) -> npt.NDArray[np.uint8]:
        row = self.rows[key]
        return self.there[row] if row >= 0 else np.zeros(self.count, np.uint8)

    def integers(self, key: int) -> Ints:
        """Return the values of a key, 0 where it has none."""
        row = self.rows[key]
        return self.values[row] if row >= 0 else np.zeros(self.count, np.int64)

    def given(self, key: int) -> IntegerColumn:
        """Return the values of a key, and the lines that have one."""
        from gapless.traces.events.encoded_batch import IntegerColumn  # noqa: PLC0415 - pyarrow loads slowly, and client logs do without

        there = self.has(key)
        return IntegerColumn(self.integers(key), None if there.all() else there)

    def texts(self, key: int) -> pa.DictionaryArray[Any, Any]:
        """Return the texts of a key, dictionary-encoded; null where it has none."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        firsts, index = self._firsts(key)
        mask = None if index.min(initial=0) >= 0 else index < 0
        texts = self._cut(self.integers(key)[firsts], self.ends[key][firsts])
        numbers: Any = pa.array(index, mask=mask)
        return pa.DictionaryArray.from_arrays(numbers, texts)

    def _firsts(self, key: int) -> tuple[Ints, npt.NDArray[np.int32]]:
        """Return the lines where a text of a key first occurs, and each line's index in these, or -1."""
        index, (firsts, places) = np.empty(self.count, np.int32), np.empty((2, self.count), np.int64)
        table = np.empty(max(LEAST, 4 << (2 * self.count).bit_length()), np.int64)
        texts = self.data, self.integers(key), self.ends[key], self._there(key)
        return firsts[: number_texts(*texts, table, places, firsts, index)].copy(), index

    def _cut(self, begins: Ints, ends: Ints) -> pa.Array[Any]:
        """Cut texts out of the lines."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        bounds = np.zeros(len(begins) + 1, np.int32)
        np.cumsum(ends - begins, out=bounds[1:])
        letters = np.empty(bounds[-1], np.uint8)
        copy_texts(self.data, begins, bounds, letters)
        columns: Any = bounds, letters  # arrays are buffers, which their types say from Python 3.12 on
        return pa.Array.from_buffers(pa.string(), len(begins), [None, *map(pa.py_buffer, columns)])


def is_utf8(block: bytes) -> bool:
    """True if the bytes are UTF-8."""
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


class PlainLines:
    """Reads lines with these keys. `nested`: the integers within the one key that is `NESTED`.

    `strange`: true if a line may have other keys; of these only a text, a number or a truth value is read.
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
        self._outer, self._inner = keys_of(list(kinds)), keys_of(inner)
        self._own = len(kinds)
        self._strange = strange
        self._rows = np.full(len(self._kinds), -1, np.int64)

    @staticmethod
    def pays(size: int, kernel: Callable[..., Any] = read_lines) -> bool:
        """True if so many bytes are worth three seconds of compiling, or the kernel is compiled already."""
        return size >= MANY or bool(cast("Function", kernel).code.is_kept)

    def read(self, block: bytes, room: int) -> PlainBlock | None:
        """Read so many whole lines, each with its newline; None if one of them is not plain."""
        data, lines = np.frombuffer(block, np.uint8), self.room(room)
        while (beyond := read_lines(data, lines)) == NO_ROOM:
            lines = self.room(room, 2 * len(lines.values))
        self._rows = lines.rows  # and what this block had, the next one will have
        if beyond < 0:
            return None
        return PlainBlock(data, block, lines.rows, lines.values, lines.ends, lines.there, ascii=not beyond)

    def room(self, count: int, keys: int = 0) -> LineRoom:
        """Allocate the arrays for so many lines and at least so many keys."""
        rows = self._rows.copy()  # another thread may read with the same keys
        used = int(rows.max(initial=-1)) + 1
        keys = min(max(keys, used, FEW), len(rows))
        return LineRoom(
            self._outer, self._inner, self._kinds, self._own, self._strange,
            follows=np.full(len(self._kinds) + 1, -1, np.int64),
            rows=rows,
            used=np.array([used]),
            links=np.zeros(LINK_FACTS * (len(self._kinds) + 1), np.int64),
            values=np.zeros((keys, count), np.int64),
            ends=np.zeros((self._own, count), np.int64),
            there=np.zeros((keys, count), np.uint8),
        )  # fmt: skip


def lines_in(block: bytes) -> int:
    """Count the lines in a block, four times faster than `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == NEWLINE))
