"""Filters of Spark, evaluated on columns of Arrow and on statistics of many rows.

An unknown filter is left to Spark. A known one follows SQL: a comparison with a null is neither true nor false, and
such a row is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gapless.traces.sources.tables import Spans

COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "EqualTo": pc.equal,
    "EqualNullSafe": pc.equal,
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
}
TEXTS: dict[str, Callable[..., Any]] = {
    "StringStartsWith": pc.starts_with,
    "StringEndsWith": pc.ends_with,
    "StringContains": pc.match_substring,
}
REACHES: dict[str, Callable[[Any, Any, Any], bool]] = {  # True if a value between two bounds may satisfy it
    "EqualTo": lambda low, high, value: bool(low <= value <= high),
    "EqualNullSafe": lambda low, high, value: bool(low <= value <= high),
    "GreaterThan": lambda _, high, value: bool(gt(high, value)),
    "GreaterThanOrEqual": lambda _, high, value: bool(ge(high, value)),
    "LessThan": lambda low, _, value: bool(lt(low, value)),
    "LessThanOrEqual": lambda low, _, value: bool(le(low, value)),
    "In": lambda low, high, values: any(low <= value <= high for value in values),
}


@dataclass(frozen=True)
class Condition:
    """One filter: its column, its comparison, and True if it is negated."""

    column: tuple[str, ...]
    asks: str  # the name of the filter's class in `pyspark.sql.datasource`
    value: Any
    negated: bool

    @property
    def name(self) -> str:
        """The column, as `Spans` call it."""
        return ".".join(self.column)

    def matches(self, batch: pa.RecordBatch) -> pa.Array[Any]:
        """Evaluate the filter for every row; null if it is unknown."""
        column: Any = batch.column(self.column[0])
        for name in self.column[1:]:
            column = pc.struct_field(column, name)
        found: pa.Array[Any] = self._asked(column)
        return pc.invert(found) if self.negated else found

    def _asked(self, column: Any) -> Any:
        match self.asks:
            case "IsNull":
                return column.is_null()
            case "IsNotNull":
                return column.is_valid()
            case "In":
                among = pc.is_in(column, value_set=pa.array(self.value, column.type))
                return pc.if_else(column.is_valid(), among, pa.scalar(None, pa.bool_()))
            case "EqualNullSafe":
                return pc.equal(column, pa.scalar(self.value, column.type)).fill_null(False)  # noqa: FBT003 - the value
            case asks if asks in TEXTS:
                return TEXTS[asks](column, pattern=self.value)
            case asks:
                return COMPARED[asks](column, pa.scalar(self.value, column.type))

    def may_match(self, spans: Spans) -> bool:
        """True if any of the rows with these statistics may match."""
        span, reaches = spans.get(self.name), REACHES.get(self.asks)
        if span is None or reaches is None or self.negated:
            return True
        return reaches(*span, self.value)


def understood(asked: Any, columns: pa.Schema) -> Condition | None:
    """Convert a filter of Spark to a condition on such columns; None if Spark must evaluate it."""
    negated = type(asked).__name__ == "Not"
    one = asked.child if negated else asked
    asks, value = type(one).__name__, getattr(one, "value", None)
    try:
        kind = _kind(columns, one.attribute)
    except (KeyError, AttributeError):
        return None
    if asks in ("IsNull", "IsNotNull"):
        return Condition(one.attribute, asks, None, negated)
    text = pa.types.is_string(kind)
    if asks == "In":
        fits = isinstance(value, tuple | list) and all(_is_of(each, kind) for each in value)
    else:
        fits = (asks in COMPARED or (asks in TEXTS and text)) and _is_of(value, kind)
    return Condition(one.attribute, asks, value, negated) if fits else None


def _kind(columns: pa.Schema, path: Iterable[str]) -> pa.DataType:
    """Return the type of a column, or of a field in it. Raises KeyError."""
    first, *others = path
    kind: Any = columns.field(first).type
    for name in others:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            raise KeyError(name)
        kind = kind.field(name).type
    found: pa.DataType = kind
    return found


def _is_of(value: object, kind: pa.DataType) -> bool:
    """True if a value has exactly that type."""
    plain = {pa.string(): str, pa.bool_(): bool, pa.int64(): int, pa.int32(): int}.get(kind)
    try:
        return plain is type(value) and pa.scalar(value, kind).as_py() == value
    except (pa.ArrowException, OverflowError):
        return False


def kept(batch: pa.RecordBatch, conditions: Iterable[Condition]) -> pa.RecordBatch:
    """Return the rows that match all conditions."""
    for condition in conditions:
        batch = batch.filter(condition.matches(batch))
    return batch
