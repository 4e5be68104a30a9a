"""Lines of a client log as columns, still unchecked: plain lines, and lines with lists."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from io import BytesIO
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import json as arrow_json

from gapless.traces.events.plain_lines import PlainBlock
from gapless.traces.sources.rocketmq.clients.plain_requests import PLAIN
from gapless.traces.sources.rocketmq.clients.request_lines import OPS
from gapless.traces.sources.rocketmq.store.bytes import Ints, digests, digests_between

Truths = npt.NDArray[np.bool_]

PHYS = pa.field("phys", pa.int64())
PLACES = pa.field("places", pa.list_(pa.int64()))  # `phys` of a batch: a list, where all others have a number
FIELDS: list[pa.Field[Any]] = [
    pa.field("op", pa.string()),
    pa.field("result", pa.string()),
    pa.field("topic", pa.string()),
    pa.field("queue", pa.int64()),
    pa.field("uniq", pa.string()),
    pa.field("qoff", pa.int64()),
    PHYS,
    pa.field("len", pa.int64()),
    pa.field("crc", pa.int64()),
    pa.field("n", pa.int64()),
    pa.field("uniqs", pa.list_(pa.string())),
    pa.field("half", pa.int64()),
    pa.field("decision", pa.string()),
    pa.field("from_check", pa.bool_()),
    pa.field("times", pa.string()),
    pa.field("request", pa.int64()),
    pa.field("ext", pa.struct([pa.field("msgId", pa.string())])),
]
LINE = "line"
SCHEMA = pa.schema([*FIELDS, PLACES, pa.field(LINE, pa.int64())])


def in_columns(block: bytes, before: int, read: PlainBlock | None) -> Requests | None:
    """Lines as columns; None where anything is unusual.

    `before`: how many lines come before them · `read`: the same by a kernel, which has read them if they are plain.
    """
    if read is not None:
        return PlainRequests(read, before)
    batch = _by_arrow(block, before)
    return None if batch is None else ArrowRequests(batch)


# -- any lines -----------------------------------------------------------------------------------------------------


A_LIST = re.compile(rb'"phys"\s*:\s*\[')
NEWLINE, OPENED, CLOSED = b"\n{}"


def _by_arrow(block: bytes, before: int) -> pa.RecordBatch | None:
    """Reads the lines as a batch, also if some of them contain lists; None if anything is unusual."""
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    if (starts == ends).any() or (data[starts] != OPENED).any() or (data[ends - 1] != CLOSED).any():
        return None  # then a line need not be an object, and an object need not be a line
    lists = np.zeros(len(ends), np.bool_)
    lists[np.searchsorted(ends, [found.start() for found in A_LIST.finditer(block)])] = True
    try:
        block.decode()
        tables = []
        for have_lists in np.unique(lists):
            mine = lists == have_lists
            numbers = np.flatnonzero(mine) + before + 1
            taken = block if mine.all() else data[np.repeat(mine, ends + 1 - starts)].tobytes()
            tables.append(_parsed(taken, numbers, lists=bool(have_lists)))
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables).sort_by("line")
        return table.combine_chunks().to_batches()[0]
    except (ValueError, pa.ArrowException):
        return None


def _parsed(lines: bytes, numbers: Ints, *, lists: bool) -> pa.Table:
    """Lines as a table of `SCHEMA`; in all of them, or in none, `phys` is a list.

    Raises ValueError, also where a line holds several objects: these have more rows than there are numbers.
    """
    expected = pa.schema([PLACES.with_name("phys") if lists and field is PHYS else field for field in FIELDS])
    table = arrow_json.read_json(
        BytesIO(lines),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=arrow_json.ParseOptions(explicit_schema=expected, unexpected_field_behavior="ignore"),
    )
    columns: dict[str, Any] = {name: table.column(name) for name in table.column_names}
    if lists:
        columns["places"] = columns.pop("phys")
    columns["line"] = pa.array(numbers)
    return pa.table(
        [columns[field.name] if field.name in columns else pa.nulls(len(numbers), field.type) for field in SCHEMA],
        schema=SCHEMA,
    )


# -- sorted out ----------------------------------------------------------------------------------------------------


class Requests(ABC):
    """Lines, or some of them, in columns: each is made when it is asked for."""

    def __init__(self, mine: Truths) -> None:
        self._mine = mine
        self._count = int(mine.sum())

    def __len__(self) -> int:
        return self._count

    def some(self, chosen: Truths) -> Self:
        """Some of these lines."""
        mine = self._mine.copy()
        mine[mine] = chosen
        return self._of(mine)

    @abstractmethod
    def _of(self, mine: Truths) -> Self:
        """Selects some of all lines by the mask `mine`."""

    @abstractmethod
    def given(self, name: str) -> Truths:
        """Returns the mask of lines that have this field."""

    @abstractmethod
    def ints(self, name: str, missing: int = -1) -> Ints:
        """Returns a column of integers or booleans; `missing` for lines without it."""

    @abstractmethod
    def distinct(self, name: str) -> tuple[list[str], Ints]:
        """Returns the distinct texts of a column, and the index of each line's; -1 for lines without it."""

    @abstractmethod
    def keys(self, name: str) -> Ints:
        """Returns the digest of every text in a column; 0 for lines without it."""

    @abstractmethod
    def column(self, name: str) -> pa.Array[Any]:
        """A column with the type that it has in `SCHEMA`: for lists, and what is rare."""

    def codes(self, name: str, known: Sequence[str]) -> Ints:
        """The index of every text in `known`; -1 where it is not among them."""
        return _codes(*self.distinct(name), known)


def _codes(texts: Sequence[str], index: Ints, known: Sequence[str]) -> Ints:
    """Returns for each text the code that `known` has for it."""
    of_each = np.array([*(known.index(text) if text in known else -1 for text in texts), -1], np.int64)
    return of_each[index]


class RequestColumns:
    """Lines by kind."""

    def __init__(self, lines: Requests) -> None:
        self._lines = lines
        self.op = lines.codes("op", OPS)
        self._parts: dict[tuple[int, ...], Requests] = {}

    def of(self, *ops: int) -> Requests:
        """Those that tell of these."""
        if ops not in self._parts:
            wanted = np.isin(np.arange(len(OPS) + 1), ops)  # the last one is that of none, -1
            self._parts[ops] = self._lines.some(wanted[self.op])
        return self._parts[ops]


class PlainRequests(Requests):
    """Lines that a kernel has read."""

    def __init__(self, read: PlainBlock, before: int) -> None:
        super().__init__(np.ones(read.count, np.bool_))
        self._read, self._before = read, before
        self._rows: slice | Ints = slice(None)
        self._texts: dict[str, tuple[list[str], Ints]] = {}  # of all lines

    def _of(self, mine: Truths) -> Self:
        some = copy(self)
        Requests.__init__(some, mine)
        some._rows = slice(None) if len(some) == len(mine) else np.flatnonzero(mine)  # noqa: SLF001 - its own kind
        return some

    def given(self, name: str) -> Truths:
        """Implements `Requests`."""
        if name == PLACES.name:
            return np.zeros(len(self), np.bool_)
        return self._read.has(PLAIN.number[name])[self._rows]

    def ints(self, name: str, missing: int = -1) -> Ints:
        """Implements `Requests`."""
        if name == LINE:
            return np.arange(self._before + 1, self._before + 1 + self._read.count)[self._rows]
        values, there = self._read.integers(PLAIN.number[name])[self._rows], self.given(name)
        return values if there.all() else np.where(there, values, missing)

    def distinct(self, name: str) -> tuple[list[str], Ints]:
        """Implements `Requests`."""
        texts, index = self._distinct(name)
        mine = index[self._rows]
        if np.count_nonzero(mine >= 0) == np.count_nonzero(index >= 0):
            return texts, mine
        used, firsts = np.unique(mine, return_index=True)
        order = [int(number) for number in used[np.argsort(firsts)] if number >= 0]
        place = np.full(len(texts) + 1, -1, np.int64)
        place[order] = np.arange(len(order))
        return [texts[number] for number in order], place[mine]

    def _distinct(self, name: str) -> tuple[list[str], Ints]:
        if name not in self._texts:
            self._texts[name] = self._read.distinct(PLAIN.number[name])
        return self._texts[name]

    def codes(self, name: str, known: Sequence[str]) -> Ints:
        """Implements `Requests`."""
        return _codes(*self._distinct(name), known)[self._rows]

    def keys(self, name: str) -> Ints:
        """Implements `Requests`."""
        number = PLAIN.number[name]
        begins, ends = self._read.integers(number)[self._rows], self._read.ends[number][self._rows]
        return digests_between(self._read.data, np.ascontiguousarray(begins), np.ascontiguousarray(ends))

    def column(self, name: str) -> pa.Array[Any]:
        """Implements `Requests`."""
        kind = SCHEMA.field(name).type
        found: pa.Array[Any]
        if not self.given(name).any():
            found = pa.nulls(len(self), kind)
        elif pa.types.is_string(kind):
            found = self._read.every_text(PLAIN.number[name]).filter(pa.array(self._mine))
        else:
            found = pa.array(self.ints(name), mask=~self.given(name)).cast(kind)
        return found


class ArrowRequests(Requests):
    """Lines that a library has read."""

    def __init__(self, batch: pa.RecordBatch, mine: Truths | None = None) -> None:
        super().__init__(np.ones(len(batch), np.bool_) if mine is None else mine)
        self._batch = batch
        self._columns: dict[str, pa.Array[Any]] = {}

    def _of(self, mine: Truths) -> Self:
        return type(self)(self._batch, mine)

    def given(self, name: str) -> Truths:
        """Implements `Requests`."""
        return self.column(name).is_valid().to_numpy(zero_copy_only=False)

    def ints(self, name: str, missing: int = -1) -> Ints:
        """Implements `Requests`."""
        found: Ints = self.column(name).cast(pa.int64()).fill_null(missing).to_numpy(zero_copy_only=False)
        return found

    def distinct(self, name: str) -> tuple[list[str], Ints]:
        """Implements `Requests`."""
        encoded = self.column(name).dictionary_encode()
        index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return [str(text) for text in encoded.dictionary.to_pylist()], index

    def keys(self, name: str) -> Ints:
        """Implements `Requests`."""
        return keys_of(self.column(name))

    def column(self, name: str) -> pa.Array[Any]:
        """Implements `Requests`."""
        if name not in self._columns:
            column: pa.Array[Any] = self._batch.column(name)
            self._columns[name] = column if len(self) == len(column) else column.filter(pa.array(self._mine))
        return self._columns[name]


def keys_of(column: pa.Array[Any]) -> Ints:
    """Returns the digest of every text; 0 for a missing one."""
    texts = column.fill_null("")
    _valid, ends, text = texts.buffers()
    if not len(texts) or ends is None or text is None:
        return np.zeros(len(texts), np.int64)
    offsets = np.frombuffer(memoryview(ends), np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(memoryview(text), np.uint8)
    data.flags.writeable = False  # kernels are compiled separately for writable and for read-only arrays
    found: Ints = digests(data, offsets.astype(np.int64))
    return found
