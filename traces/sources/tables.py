"""Tables of a source, which Spark reads: their columns, and the parts that are read by one task each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:  # a source is loaded by every check, and pyarrow loads slowly
    import pyarrow as pa

Spans = Mapping[str, tuple[Any, Any]]
"""The minimum and maximum of some columns by name, `args.number` for a field; nulls are not included."""


class TablePart(NamedTuple):
    """A part that is read as a whole: the file, its range, and its bytes; an end of None is the file's end."""

    path: str
    low: int
    high: int | None
    bytes: int


class SparkTable(Protocol):
    """The table; it travels to the workers."""

    @property
    def columns(self) -> pa.Schema:
        """All columns that it has."""

    @property
    def split(self) -> int:
        """The bytes that one task reads."""

    def parts(self, asked: frozenset[str]) -> Iterator[tuple[TablePart, Spans]]:
        """Yield the parts in order, with statistics of the columns `asked` for. Raises Unreadable."""

    def read(self, part: TablePart, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part, with these columns. Raises Unreadable."""
