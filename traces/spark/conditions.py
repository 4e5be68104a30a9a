"""What Spark asks of rows while they are read: its filters, on columns of Arrow and on what is known of many rows.

A filter that is not understood is left to Spark. One that is understood is answered as SQL has it: a comparison with a
null is neither true nor false, and such a row is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Spans = Mapping[str, tuple[Any, Any]]
"""The lowest and the highest value of some columns by name, `args.number` for a field; nulls are not among them."""

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
REACHES: dict[str, Callable[[Any, Any, Any], bool]] = {  # whether a value between two bounds may be so
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
    """One filter: which column, what is asked of it, and whether the opposite is meant."""

    column: tuple[str, ...]
    asks: str  # the name of the filter's class in `pyspark.sql.datasource`
    value: Any
    negated: bool

    @property
    def name(self) -> str:
        """The column, as `Spans` call it."""
        return ".".join(self.column)

    def holds(self, batch: pa.RecordBatch) -> pa.Array[Any]:
        """For every row whether it is so; null where nobody can say."""
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

    def may_hold(self, spans: Spans) -> bool:
        """Whether it may be so of any of the rows of which no more is known."""
        span, reaches = spans.get(self.name), REACHES.get(self.asks)
        if span is None or reaches is None or self.negated:
            return True
        return reaches(*span, self.value)


def understood(asked: Any, columns: pa.Schema) -> Condition | None:
    """A filter of Spark's as a condition on such columns; None where Spark must see to it itself."""
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
    """The type of a column, or of a field in it. Raises KeyError."""
    first, *others = path
    kind: Any = columns.field(first).type
    for name in others:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            raise KeyError(name)
        kind = kind.field(name).type
    found: pa.DataType = kind
    return found


def _is_of(value: object, kind: pa.DataType) -> bool:
    """Whether a value is one of that type, exactly."""
    plain = {pa.string(): str, pa.bool_(): bool, pa.int64(): int, pa.int32(): int}.get(kind)
    try:
        return plain is type(value) and pa.scalar(value, kind).as_py() == value
    except (pa.ArrowException, OverflowError):
        return False


def kept(batch: pa.RecordBatch, conditions: Iterable[Condition]) -> pa.RecordBatch:
    """The rows of which all conditions hold."""
    for condition in conditions:
        batch = batch.filter(condition.holds(batch))
    return batch
