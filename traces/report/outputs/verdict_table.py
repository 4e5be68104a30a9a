"""The verdict table: a directory of Parquet files with a row for every trace that was judged.

Every judge writes: one file for a stretch of events, for traces put together from several, or for a store. They get
their places when all of them are there (`table_commit`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from gapless.traces.files.remote import RemotePath
from gapless.traces.problems import UsageError, shown
from gapless.traces.processes.timeouts import each_at_once
from gapless.traces.report.outputs.table_commit import commit_to
from gapless.traces.report.values import VerdictName

Ints = npt.NDArray[np.signedinteger[Any]]

VERDICTS: tuple[VerdictName, ...] = ("conforms", "inconclusive", "departs")

COLUMNS: list[pa.Field[Any]] = [
    pa.field("source", pa.string(), nullable=False),  # the store or the file, as it was named
    pa.field("spec", pa.string(), nullable=False),
    pa.field("trace", pa.string(), nullable=False),  # the subject: commitlog, TOPIC/QUEUE, a recorder's own name
    pa.field("verdict", pa.string(), nullable=False),  # conforms, departs, inconclusive
    pa.field("rule", pa.string()),  # the id of the rule that is broken; null unless it departs
    pa.field("position", pa.int64()),  # of the step that was refused; null unless it departs
    pa.field("events", pa.int64(), nullable=False),  # how many steps of the trace are known
]
SCHEMA = pa.schema(COLUMNS)


def rows_of(
    source: str,
    spec: str,
    names: pa.Array[Any],
    verdict: Ints,
    rule: Ints,
    rules: Sequence[str],
    position: Ints,
    events: Ints,
) -> pa.RecordBatch:
    """A row for each trace of one spec: `verdict` of `VERDICTS`, `rule` of `rules` or -1 where it breaks none."""
    departs = rule >= 0
    broken = pa.array(rule, pa.int32(), mask=~departs)
    columns = [
        pa.repeat(source, len(names)),
        pa.repeat(spec, len(names)),
        names,
        pa.array(VERDICTS, pa.string()).take(verdict),
        pa.DictionaryArray.from_arrays(broken, pa.array(rules, pa.string())).dictionary_decode(),
        pa.array(position, mask=~departs),
        pa.array(events),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@dataclass(frozen=True)
class TableRows:
    """The rows of one source in a table that is being written. It travels to the judges."""

    folder: Path
    source: str

    def write(self, part: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Write batches of `SCHEMA` as the file `part`, whole or not at all, and say how many rows they have.

        No batch makes no file, and removes an earlier one. Raises UsageError where nothing can be written.
        """
        name, some = f"{self.source}-{part}", list(batches)
        if some:
            return _write(self.folder, name, some)
        with _place_named(self.place):
            (self.folder / f"{name}.parquet").unlink(missing_ok=True)
        return 0

    def count(self) -> int:
        """The number of rows so far. Raises UsageError where they cannot be read."""
        with _place_named(self.place):
            return sum(each_at_once(_rows_in, self._files()))

    def forget(self) -> None:
        """Remove what was written: the source cannot be judged after all. Raises UsageError where that fails."""
        with _place_named(self.place):
            each_at_once(Path.unlink, self._files())

    @property
    def place(self) -> Path:
        """The folder that users know."""
        return _place(self.folder)

    def _files(self) -> list[Path]:
        begin = f"{self.source}-"
        return [path for path in self.folder.iterdir() if path.suffix == ".parquet" and path.name.startswith(begin)]


def _place(unfinished: Path) -> Path:
    """The folder that users know: the files of a table lie in it, or next to it, as long as it is not whole."""
    return unfinished.parents[1] if isinstance(unfinished, RemotePath) else unfinished.parent


@contextmanager
def _place_named(place: Path) -> Iterator[None]:
    """An error in the block is one of the table, and of no recording. Raises UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{shown(place)}: verdicts cannot be written there ({shown(error.strerror or error)})"
        ) from error


def _rows_in(path: Path) -> int:
    with path.open("rb", buffering=0) as file:
        return parquet.read_metadata(file).num_rows


@dataclass
class Table:
    """A table that is being written."""

    unfinished: Path
    wanted: bool = True

    def rows(self, source: str) -> TableRows:
        """The rows of one source, which goes by that name in the table's files."""
        return TableRows(self.unfinished, source)

    def discard(self) -> None:
        """Remove it at the end: it is not whole."""
        self.wanted = False


@contextmanager
def written(folder: Path, *, overwrite: bool = False) -> Iterator[Table]:
    """A table that gets its place at the end of the block, unless that fails. Raises UsageError.

    `overwrite`: a table that is there already is replaced, otherwise refused.
    """
    commit = commit_to(folder, overwrite=overwrite)
    with _place_named(folder):
        commit.begin()
    table = Table(commit.unfinished)
    try:
        yield table
        if table.wanted:
            if not any(path.suffix == ".parquet" for path in table.unfinished.iterdir()):
                _write(table.unfinished, "none", [pa.RecordBatch.from_pylist([], schema=SCHEMA)])  # no trace was judged
            with _place_named(folder):
                commit.commit()
    finally:
        commit.discard()


def _write(folder: Path, part: str, batches: Iterable[pa.RecordBatch]) -> int:
    unfinished, file, rows = folder / f".{part}.{os.getpid()}.tmp", folder / f"{part}.parquet", 0
    elsewhere = pa.BufferOutputStream() if isinstance(folder, RemotePath) else None
    with _place_named(_place(folder)):
        with parquet.ParquetWriter(
            unfinished if elsewhere is None else elsewhere, SCHEMA, compression="zstd"
        ) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        if elsewhere is None:
            unfinished.replace(file)
        else:
            file.write_bytes(elsewhere.getvalue())
    return rows
