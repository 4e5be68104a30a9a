"""Data sources of Spark: `spark.read.format("gapless-events")`, and a format for each source that has a table.

Spark passes a Python data source its filters on rows, but not the selected columns: a user names these by a schema.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from gapless.traces.engines.spark.archive import archive
from gapless.traces.files.remote import path_of
from gapless.traces.problems import UsageError, shown
from gapless.traces.sources.registry import tabled
from gapless.traces.sources.tables import SparkTable, TablePart
from gapless.traces.sources.verbs import TableSource
from gapless.traces.spark.conditions import Condition, kept, understood
from gapless.traces.spark.tables import EVENT_FORMAT, STRETCH, event_table, in_tasks

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

LOOPBACK = ("localhost", "127.", "::1", "[::1]")  # how a host begins that is this machine
OF_LOAD = ("path", "paths")
OF_A_CATALOG = "owner"  # of a table that CREATE TABLE made
OF_SPARK = (".", "__")  # what is in names of options that Spark adds by itself, such as serialization.format
PUSHES = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Register the formats of all tables, and enable filter pushdown."""
    tables: list[type[DataSource]] = [GaplessEvents, *map(format_of, tabled())]
    for table in tables:
        spark.dataSource.register(table)
    spark.conf.set(PUSHES, "true")  # or Spark refuses a source that could take them
    remote = type(spark).__module__.startswith("pyspark.sql.connect")
    if remote and not spark.client.host.startswith(LOOPBACK):
        with tempfile.TemporaryDirectory() as folder:
            spark.addArtifacts(str(archive(Path(folder))), pyfile=True)


class _Source(DataSource):
    """A table as Spark sees it."""

    takes: tuple[str, ...] = ("split",)  # the options, besides those of `load`

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        names = {name.lower(): name for name in options}
        if OF_A_CATALOG in names:  # properties of its table stand there as well, whatever they are
            return
        for known, name in names.items():
            if known not in (*self.takes, *OF_LOAD) and not any(mark in name for mark in OF_SPARK):
                raise UsageError(f"{self.name()}: there is no option {shown(name)}; there are {', '.join(self.takes)}")

    def table(self) -> SparkTable:
        """Open the table. Raises UsageError, Unreadable, NothingThere."""
        raise NotImplementedError

    def schema(self) -> StructType:
        """Return all columns of the table."""
        return from_arrow_schema(self.table().columns)

    def reader(self, schema: StructType) -> TableReader:
        """Return the reader of that schema's columns. Raises UsageError if the table has no such columns."""
        return TableReader(self.table(), schema)

    def paths(self) -> list[Path]:
        """Return the paths that were given to `load`. Raises UsageError."""
        several = json.loads(self.options.get("paths", "[]"))
        if not (found := [*several, *filter(None, [self.options.get("path")])]):
            raise UsageError(f"{self.name()}: say what to read: load(PATH)")
        return [path_of(path if "://" in path else path.removeprefix("file:")) for path in found]

    def split(self) -> int | None:
        """Return the bytes that one task reads, if a user names them. Raises UsageError."""
        given = self.options.get("split")
        if given is not None and not (given.isdecimal() and int(given)):
            raise UsageError(f"split: {shown(given)}, expected a number of bytes")
        return None if given is None else int(given)


class GaplessEvents(_Source):
    """Files of events.

    Options: `spec`, files of specs that users bring, with commas between them; `split`.
    """

    takes = ("spec", "split")

    @classmethod
    def name(cls) -> str:
        """Return the name for Spark."""
        return EVENT_FORMAT

    def table(self) -> SparkTable:
        """See `_Source`."""
        specs = [name for name in self.options.get("spec", "").split(",") if name]
        return event_table(self.paths(), specs, self.split())


class _SourceTable(_Source):
    """Recordings of one source. Option: `split`."""

    source: TableSource

    @classmethod
    def name(cls) -> str:
        """Return the name for Spark."""
        return cls.source.table_format

    def table(self) -> SparkTable:
        """See `_Source`."""
        return self.source.table(self.paths(), self.split() or STRETCH)


def format_of(source: TableSource) -> type[_SourceTable]:
    """Return the data source of the recordings that a source reads."""
    return type("SourceFormat", (_SourceTable,), {"source": source})


class TableReader(DataSourceReader):
    """Reads some columns of a table, and the rows that match Spark's filters."""

    def __init__(self, table: SparkTable, schema: StructType) -> None:
        self.table = table
        self.columns = to_arrow_schema(schema, timezone="UTC")
        self.conditions: list[Condition] = []
        known = table.columns
        for field in self.columns:
            if field.name not in known.names:
                raise UsageError(f"there is no column {shown(field.name)}; there are {', '.join(known.names)}")

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Take the known filters, and leave the others to Spark."""
        for asked in filters:
            if condition := understood(asked, self.columns):
                self.conditions.append(condition)
            else:
                yield asked

    def partitions(self) -> list[InputPartition]:
        """Return the parts in which rows may match, small ones together."""
        asked = frozenset(condition.name for condition in self.conditions)
        wanted = (
            part
            for part, spans in self.table.parts(asked)
            if all(condition.may_match(spans) for condition in self.conditions)
        )
        return [InputPartition([tuple(part) for part in task]) for task in in_tasks(wanted, self.table.split)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Yield the rows of some parts as Arrow batches."""
        if partition.value is None:  # Spark's own, where there are no parts
            return
        for part in partition.value:
            for batch in self.table.read(TablePart(*part), self.columns):
                yield kept(batch, self.conditions)
