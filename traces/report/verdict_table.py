"""The verdict table: a directory of Parquet files with a row for every trace that was judged.

Every judge writes: one file for a stretch of events, for traces put together from several, or for a store. The
directory takes its name when all of them are there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from gapless.traces.problems import UsageError, shown
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

        No batch makes no file. Raises UsageError where nothing can be written.
        """
        some = list(batches)
        return _write(self.folder, f"{self.source}-{part}", some) if some else 0

    def count(self) -> int:
        """The number of rows so far."""
        return sum(parquet.read_metadata(path).num_rows for path in self.folder.glob(f"{self.source}-*.parquet"))

    def forget(self) -> None:
        """Remove what was written: the source cannot be judged after all."""
        for path in self.folder.glob(f"{self.source}-*.parquet"):
            path.unlink()


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


def refusal(folder: Path) -> str:
    """The reason why no table can be written there; empty if it can."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        return f"{shown(folder)}: not a directory; the verdicts go into one of their own"
    if folder.is_dir() and any(folder.iterdir()):
        return f"{shown(folder)}: not empty; the verdicts go into a directory of their own"
    if not folder.absolute().parent.is_dir():
        return f"verdicts {shown(folder)}: folder {shown(folder.parent)} does not exist: make it first"
    if not os.access(folder.absolute().parent, os.W_OK | os.X_OK):
        return f"{shown(folder)}: nothing can be made in {shown(folder.absolute().parent)}"
    return ""


@contextmanager
def written(folder: Path) -> Iterator[Table]:
    """A table that takes its name at the end of the block, unless that fails."""
    table = Table(folder.absolute().with_name(f".{folder.name}.{os.getpid()}.tmp"))
    table.unfinished.mkdir()
    try:
        yield table
        if table.wanted:
            if not any(table.unfinished.iterdir()):  # no trace was judged, and that can be read too
                _write(table.unfinished, "none", [pa.RecordBatch.from_pylist([], schema=SCHEMA)])
            table.unfinished.rename(folder.absolute())
    finally:
        shutil.rmtree(table.unfinished, ignore_errors=True)


def _write(folder: Path, part: str, batches: Iterable[pa.RecordBatch]) -> int:
    unfinished, rows = folder / f".{part}.{os.getpid()}.tmp", 0
    try:
        with parquet.ParquetWriter(unfinished, SCHEMA, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        unfinished.replace(folder / f"{part}.parquet")
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"{shown(folder.parent)}: verdicts cannot be written there ({shown(why)})") from error
    return rows
