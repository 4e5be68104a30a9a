"""Dictionary-encoded events: steps and outcomes as codes, arguments as integers, each name once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gapless.traces.events.event import Ints, codes

Truths = npt.NDArray[np.bool_]
Names: TypeAlias = "pa.DictionaryArray[Any, Any]"


@dataclass(frozen=True, eq=False)
class EncodedBatch:
    """Events that conform to the schema, in columns, in their order.

    `step`: int64, the index of each event's step in the schema's `steps` · `trace`: the name of its subject, never null
    · `position`: int64 · `outcome`: int8, of `OUTCOMES` · `args`: int64, a column for each argument that some event
    has, 0 where an event has none · `saw`: JSON text or null; None if nothing was observed after any event.
    """

    step: Ints
    trace: Names
    position: Ints
    outcome: npt.NDArray[np.int8]
    args: Mapping[str, Ints]
    saw: pa.Array[Any] | None

    def __len__(self) -> int:
        return len(self.step)

    def part(self, low: int, high: int) -> EncodedBatch:
        """Return the events `low:high`."""
        args = {name: values[low:high] for name, values in self.args.items()}
        saw = None if self.saw is None else self.saw.slice(low, high - low)
        saw = None if saw is None or saw.null_count == len(saw) else saw
        trace = self.trace.slice(low, high - low)
        return EncodedBatch(self.step[low:high], trace, self.position[low:high], self.outcome[low:high], args, saw)


class IntegerColumn(NamedTuple):
    """A column of integers as recorded.

    `there`: the rows with a value; the others are 0. None: every row has a value.
    """

    values: Ints
    there: Truths | None


def is_text(kind: pa.DataType) -> bool:
    """True if a column of this type is text, plain or dictionary-encoded."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def text_codes(column: pa.Array[Any], names: Iterable[str]) -> npt.NDArray[np.int32]:
    """Look up every text in `names`; -1 where it is missing. Each dictionary entry is looked up once."""
    if not isinstance(column, pa.DictionaryArray):
        return codes(column, names)
    of_each = np.append(codes(column.dictionary.cast(pa.string()), names), np.int32(-1))
    if len(of_each) == 2 and not column.null_count:  # one text throughout
        return np.broadcast_to(of_each[0], len(column))
    indices = column.indices.fill_null(-1) if column.null_count else column.indices
    found: npt.NDArray[np.int32] = of_each[indices.to_numpy()]
    return found


def named(column: pa.Array[Any]) -> Names:
    """Dictionary-encode a column of texts without nulls, with 32-bit indices."""
    encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(pa.int32()), encoded.dictionary.cast(pa.string()))


def integers(column: pa.Array[Any]) -> IntegerColumn:
    """Convert integers of any width. Raises ArrowInvalid for a value of more than 64 bits."""
    wide = column.cast(pa.int64())
    if not wide.null_count:
        return IntegerColumn(wide.to_numpy(), None)
    valid, data = (memoryview(buffer) for buffer in wide.buffers() if buffer is not None)  # there are nulls: both are
    low, high = wide.offset, wide.offset + len(wide)
    there = np.unpackbits(np.frombuffer(valid, np.uint8), count=high, bitorder="little")[low:].view(np.bool_)
    return IntegerColumn(np.frombuffer(data, np.int64)[low:high] * there, there)  # the bytes of a null are arbitrary


def fields(column: Any) -> dict[str, pa.Array[Any]]:
    """Return the fields of a struct that have any value, by name; a field of a null is null."""
    field = column.field if not column.null_count else partial(pc.struct_field, column)
    found = ((kind.name, field(at)) for at, kind in enumerate(column.type))
    return {name: values for name, values in found if values.null_count < len(values)}
