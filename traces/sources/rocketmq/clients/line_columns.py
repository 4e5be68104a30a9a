"""The lines of a client log as columns, before anybody asks what they say: plain ones, and ones with lists."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import json as arrow_json

from gapless.traces.events.coded import text_codes
from gapless.traces.events.plain_lines import PlainLines, ValueKind
from gapless.traces.sources.rocketmq.clients.request_lines import OPS
from gapless.traces.sources.rocketmq.store.bytes import Ints

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
SCHEMA = pa.schema([*FIELDS, PLACES, pa.field("line", pa.int64())])


def in_columns(block: bytes, count: int, before: int, *, plain: bool) -> pa.RecordBatch | None:
    """So many lines as columns of `SCHEMA`, texts perhaps in dictionaries; None where anything is unusual.

    `before`: how many lines come before them · `plain`: whether those that are plain are read by a kernel.
    """
    batch = _plain(block, count, before) if plain else None
    return _by_arrow(block, before) if batch is None else batch


# -- lines without lists -------------------------------------------------------------------------------------------


KINDS = {
    "op": ValueKind.TEXT,
    "result": ValueKind.TEXT,
    "topic": ValueKind.TEXT,
    "queue": ValueKind.INTEGER,
    "uniq": ValueKind.TEXT,
    "qoff": ValueKind.INTEGER,
    "phys": ValueKind.INTEGER,
    "len": ValueKind.INTEGER,
    "crc": ValueKind.INTEGER,
    "n": ValueKind.INTEGER,
    "uniqs": ValueKind.NESTED,  # which is a list, and so never plain
    "half": ValueKind.INTEGER,
    "decision": ValueKind.TEXT,
    "from_check": ValueKind.TRUTH,
    "times": ValueKind.TEXT,
    "request": ValueKind.INTEGER,
    "ext": ValueKind.NESTED,
}
PLAIN = PlainLines(KINDS, strange=True)
NESTED = [name for name, kind in KINDS.items() if kind is ValueKind.NESTED]
REPEATED = ("op", "result", "topic", "decision")  # texts of which there are few


def _plain(block: bytes, count: int, before: int) -> pa.RecordBatch | None:
    """Lines that are plain as columns of `SCHEMA`; None where one of them is not."""
    read = PLAIN.read(block, count)
    if read is None or not read.utf8() or any(read.has(PLAIN.number[name]).any() for name in NESTED):
        return None
    columns: dict[str, Any] = {}
    for field in FIELDS:
        number = PLAIN.number[field.name]
        there = read.has(number)
        if not there.any():
            columns[field.name] = pa.nulls(count, field.type)
        elif field.name in REPEATED:
            columns[field.name] = read.texts(number)
        elif KINDS[field.name] is ValueKind.TEXT:
            columns[field.name] = read.every_text(number)
        else:
            values = read.integers(number)
            of_type = values.astype(np.bool_) if KINDS[field.name] is ValueKind.TRUTH else values
            columns[field.name] = pa.array(of_type, mask=None if there.all() else ~there)
    columns["places"] = pa.nulls(count, PLACES.type)
    columns["line"] = pa.array(np.arange(before + 1, before + 1 + count))
    return pa.RecordBatch.from_pydict(columns)


# -- any lines -----------------------------------------------------------------------------------------------------


A_LIST = re.compile(rb'"phys"\s*:\s*\[')
NEWLINE, OPENED, CLOSED = b"\n{}"


def _by_arrow(block: bytes, before: int) -> pa.RecordBatch | None:
    """The lines as a batch, also where some of them hold lists; None where anything is unusual."""
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


class RequestColumns:
    """The rows of a batch, sorted out by what they tell of: each column of each part is made when it is asked for."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.op = text_codes(batch.column("op"), OPS)
        self._parts: dict[tuple[int, ...], Requests] = {}

    def of(self, *ops: int) -> Requests:
        """The rows that tell of these."""
        if ops not in self._parts:
            mine = np.isin(self.op, ops)
            alike = [part for part in self._parts.values() if np.array_equal(part.mine, mine)]
            self._parts[ops] = alike[0] if alike else Requests(self.batch, mine)
        return self._parts[ops]


class Requests:
    """Some rows of a batch."""

    def __init__(self, batch: pa.RecordBatch, mine: Truths) -> None:
        self.mine = mine
        self._batch = batch
        self._count = int(mine.sum())
        self._columns: dict[str, pa.Array[Any]] = {}

    def __len__(self) -> int:
        return self._count

    def column(self, name: str) -> pa.Array[Any]:
        """One column of them."""
        if name not in self._columns:
            column = self._batch.column(name)
            self._columns[name] = column if self._count == len(column) else column.filter(pa.array(self.mine))
        return self._columns[name]

    def filter(self, mine: Truths) -> Requests:
        """Some of these rows."""
        chosen = self.mine.copy()
        chosen[chosen] = mine
        return Requests(self._batch, chosen)
