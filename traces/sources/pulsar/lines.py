"""The lines of a recording as columns, kind by kind.

Every line begins with the same four fields, and lines of one kind have the same types: so a regular expression
separates kinds, and each kind is read as one table. Kinds that are not needed are not read further. One block of the
file is in memory at a time, and of the lines the needed columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json
from pydantic_core import from_json

from gapless.traces.engines.engine import Progress
from gapless.traces.events.lines.whole_lines import cut, next_block
from gapless.traces.problems import Unreadable, shown, twice

Ints = npt.NDArray[np.int64]

BLOCK = 16 << 20  # bytes that are read at once
LONGEST = 64 << 20  # bytes of a line with its newline: a longer one is none, even if it is a table of all transactions
HEAD = (  # of a line: n, t, s and k, in this order
    r'^\{ ?"n": ?(?P<n>\d{1,18}), ?"t": ?(?P<t>\d{1,18}), ?"s": ?"(?P<s>[^"\\]+)", ?"k": ?"(?P<k>\w+)".*\}\s*$'
)
OF_HEAD = ("n", "t", "s", "k")
AGAIN = HEAD.removesuffix(r".*\}\s*$") + r'.*"(?:[ntsk]|\\u[0-9a-fA-F]{4})"\s*:'  # one of these, behind a head

ROWS = pa.list_(pa.struct([("txn", pa.int64()), ("st", pa.string()), ("start", pa.int64()), ("ttl", pa.int64())]))
FIELDS: Mapping[str, Mapping[str, pa.DataType]] = {
    "meta": {"client": pa.string()},
    "epoch": {"ep": pa.int64(), "ev": pa.string(), "tc": pa.int64(), "M": pa.int64()},
    "call": {
        "ep": pa.int64(), "c": pa.int64(), "op": pa.string(), "txn": pa.int64(), "exp": pa.string(),
        "new": pa.string(), "timeout": pa.bool_(),
    },
    "adm": {"ep": pa.int64(), "c": pa.int64()},
    "ret": {"ep": pa.int64(), "c": pa.int64(), "res": pa.string(), "txn": pa.int64(), "err": pa.string()},
    "log": {
        "ep": pa.int64(), "pos": pa.string(), "op": pa.string(), "txn": pa.int64(), "start": pa.int64(),
        "ttl": pa.int64(), "exp": pa.string(), "new": pa.string(), "mod": pa.int64(),
    },
    "table": {"ep": pa.int64(), "rows": ROWS},
    "end_call": {"e": pa.int64(), "txn": pa.int64(), "act": pa.string()},
    "end_ret": {"e": pa.int64(), "res": pa.string()},
    "op_call": {"i": pa.int64(), "op": pa.string(), "txn": pa.int64(), "th": pa.string()},
    "op_blocked": {"i": pa.int64(), "ms": pa.int64()},
    "op_done": {"i": pa.int64(), "res": pa.string(), "err": pa.string()},
}  # fmt: skip
FIELDS = {**FIELDS, "replay": FIELDS["log"]}
NEEDED: Mapping[str, tuple[str, ...]] = {
    "epoch": ("ev",), "call": ("ep", "c", "op"), "adm": ("c",), "ret": ("c", "res"), "log": ("ep", "pos", "op", "txn"),
    "replay": ("ep", "pos", "op", "txn"), "table": ("ep", "rows"), "end_call": ("e", "txn", "act"),
    "end_ret": ("e", "res"), "op_call": ("i", "op"), "op_blocked": ("i",), "op_done": ("i", "res"),
}  # fmt: skip


@dataclass(frozen=True)
class Lines:
    """All lines of a recording.

    `count`: how many · `sources`: the writers · `kinds`: for every kind that is read, its fields, and `line` (from 1),
    `t` (microseconds) and `source` (an index into `sources`) · `ended`: the sources that ended in order.
    """

    count: int
    sources: list[str]
    kinds: dict[str, pa.Table]
    ended: frozenset[str]

    def ints(self, kind: str, name: str, absent: int = -1) -> Ints:
        """Return a column of integers; `absent` where a line does not have it."""
        column: Any = self.kinds[kind].column(name).combine_chunks()
        found: Ints = column.cast(pa.int64()).fill_null(absent).to_numpy(zero_copy_only=False).astype(np.int64)
        return found

    def codes(self, kind: str, name: str, words: Sequence[str]) -> Ints:
        """Return a column of words, each by its index in `words`; -1 where it is none of them."""
        column: Any = self.kinds[kind].column(name).combine_chunks()
        found: Any = pc.index_in(column, value_set=pa.array(words, pa.string()))
        codes: Ints = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes


def read(path: Path, progress: Progress | None = None) -> Lines:
    """Read every line of a recording's trace. Raises Unreadable."""
    reading = _LineReader(path)
    total = path.stat().st_size
    try:
        with path.open("rb") as file:
            while block := next_block(file, BLOCK, LONGEST):
                reading.take_whole(block)
                if progress:
                    progress(file.tell(), total)
    except OSError as error:
        raise Unreadable(f"{shown(path)}: cannot be read ({error.strerror or error})") from error
    return reading.done()


class _LineReader:
    """Reads lines block by block, and collects them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.sources: dict[str, int] = {}
        self.last: dict[str, int] = {}  # the number of the last line of every source
        self.tables: dict[str, list[pa.Table]] = {kind: [] for kind in FIELDS}
        self.ended: set[str] = set()

    def take_whole(self, block: bytes) -> None:
        """Read the lines of a block, of which the last may be too long or have no end. Raises Unreadable."""
        whole, left = cut(block, LONGEST)
        if whole:
            self.take(whole)
        if left > LONGEST:
            raise self._unreadable(0, f"has more than {LONGEST:,} bytes, so it is no line of a recording")
        if left:
            raise Unreadable(
                f"{shown(self.path)}: the last line is cut off, expected a newline at its end; copy it again"
            )

    def take(self, block: bytes) -> None:
        """Read some whole lines more. Raises Unreadable."""
        lines = _split(block)
        try:
            heads = pc.extract_regex(lines.cast(pa.large_string()), HEAD)
        except pa.ArrowInvalid as error:
            raise self._unreadable(0, "is no text in UTF-8") from error
        if heads.null_count:
            raise self._unreadable(
                int(np.flatnonzero(~heads.is_valid().to_numpy(zero_copy_only=False))[0]),
                'expected {"n": …, "t": …, "s": "…", "k": "…", … } on one line',
            )
        self._require_once(lines)
        kinds, source = pc.struct_field(heads, "k"), self._sources(heads)
        common = {
            "line": pa.array(np.arange(len(lines)) + self.count + 1),
            "t": pc.struct_field(heads, "t").cast(pa.int64()),
            "source": pa.array(source),
        }
        for kind in FIELDS:
            rows = np.flatnonzero(pc.equal(kinds, pa.scalar(kind)).to_numpy(zero_copy_only=False))
            if len(rows):
                table = self._table(kind, [lines[at].as_py() for at in rows.tolist()], rows)
                for name, column in common.items():
                    table = table.append_column(name, column.take(pa.array(rows)))
                self.tables[kind].append(table)
        ends = source[pc.equal(kinds, pa.scalar("eof")).to_numpy(zero_copy_only=False)]
        self.ended |= {name for name, number in self.sources.items() if number in ends}
        self.count += len(lines)

    def _require_once(self, lines: pa.Array[Any]) -> None:
        """Reject a line that repeats a key of its head: readers differ in which value they take.

        Arrow rejects other repeated keys.
        """
        again = pc.match_substring_regex(lines, AGAIN).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(again).tolist():
            try:
                pairs = json.loads(lines[row].as_py(), object_pairs_hook=list, parse_int=str)
            except ValueError:  # of a kind that is not read, or reported below
                continue
            if name := twice(sorted((name for name, _ in pairs if name in OF_HEAD), key=OF_HEAD.index)):
                raise self._unreadable(row, f"the key {name!r} stands there twice, expected each once")

    def _sources(self, heads: pa.Array[Any]) -> Ints:
        """Return the writer of each line. Each numbers its own lines: a missing number is a lost line."""
        names = pc.struct_field(heads, "s").dictionary_encode()
        number = pc.struct_field(heads, "n").cast(pa.int64()).to_numpy()
        index = names.indices.to_numpy()
        found = np.empty(len(index), np.int64)
        for at, name in enumerate(names.dictionary.to_pylist()):
            mine = np.flatnonzero(index == at)
            expected = np.arange(len(mine)) + self.last.get(name, -1) + 1
            if (wrong := np.flatnonzero(number[mine] != expected)).size:
                first = int(wrong[0])
                raise self._unreadable(
                    int(mine[first]),
                    f"is number {number[mine[first]]} of {shown(name)}, expected {expected[first]}: lines are lost, or "
                    "out of order, and what is lost cannot be judged; record it again",
                )
            self.last[name] = int(expected[-1])
            found[mine] = self.sources.setdefault(name, len(self.sources))
        return found

    def _table(self, kind: str, lines: list[bytes], rows: Ints) -> pa.Table:
        """Build a table of the lines of one kind."""
        try:
            table = _parsed(kind, lines)
        except (pa.ArrowInvalid, ValueError) as error:
            raise self._culprit(kind, lines, rows) from error
        for name in NEEDED.get(kind, ()):
            if table.column(name).null_count:
                first = int(np.flatnonzero(table.column(name).is_null().to_numpy())[0])
                raise self._unreadable(int(rows[first]), f"a line of kind {kind} needs {name}")
        return table

    def _culprit(self, kind: str, lines: list[bytes], rows: Ints) -> Unreadable:
        """Find the first line that cannot be read."""
        for row, line in zip(rows.tolist(), lines, strict=True):
            try:
                from_json(line)
            except ValueError as error:
                return self._unreadable(row, f"is not JSON ({error})")
            try:
                _parsed(kind, [line])
            except (pa.ArrowInvalid, ValueError) as error:
                return self._unreadable(row, f"is no line of kind {kind} ({error})")
        return self._unreadable(int(rows[0]), f"and others of kind {kind} cannot be read together")

    def _unreadable(self, row: int, what: str) -> Unreadable:
        return Unreadable(f"{shown(self.path)}, line {self.count + row + 1}: {shown(what)}: record it again")

    def done(self) -> Lines:
        """Return all lines."""
        empty = {"line": pa.int64(), "t": pa.int64(), "source": pa.int64()}
        kinds = {
            kind: pa.concat_tables(tables)
            if tables
            else pa.schema([*FIELDS[kind].items(), *empty.items()]).empty_table()
            for kind, tables in self.tables.items()
        }
        return Lines(self.count, list(self.sources), kinds, frozenset(self.ended))


def _parsed(kind: str, lines: list[bytes]) -> pa.Table:
    """Parse the fields of lines of one kind. Raises ArrowInvalid, ValueError."""
    schema = pa.schema(list(FIELDS[kind].items()))
    table = arrow_json.read_json(
        BytesIO(b"\n".join(lines)),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=max(BLOCK, 1 + max(map(len, lines)))),
        parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(lines):
        raise ValueError("it is not one object")
    return table.select(schema.names)


def _split(block: bytes) -> pa.Array[Any]:
    """Split a block into lines, without a copy."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")).astype(np.int64)
    bounds = np.concatenate([np.zeros(1, np.int64), ends + 1])
    return pa.Array.from_buffers(
        pa.large_binary(), len(ends), [None, pa.py_buffer(bounds.tobytes()), pa.py_buffer(block)]
    )
