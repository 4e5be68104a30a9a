"""The event schema: the steps of the specs, and the check that an event is one of them.

`../README.md` describes events at length. Three forms carry the same: `Event`, an object for recorders and tests; a
line of NDJSON; and a row of a schema, used to read millions of events. What passes here is a step of a known spec, with
the arguments of that step: later stages do not check again. Known are our specs, which the names of this module are
about, and those that a user brings to one check: `with_specs` of them has the same names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from gapless.spec.catalog import SPECS, Spec
from gapless.traces.events import event, writing
from gapless.traces.events.encoded_batch import EncodedBatch, Truths, is_text
from gapless.traces.events.event import (
    OUTCOMES,
    ROWS,
    Ints,
    NoEvent,
    Origin,
    Outcome,
    argument,
    codes,
    parsed,
    seen,
)
from gapless.traces.events.step_tables import Integer, Integers, StepTables, numbers, without_nulls
from gapless.traces.problems import twice
from gapless.traces.suggestions import did_you_mean, one_of
from gapless.traces.validation import refused, value

# -- one event -----------------------------------------------------------------------------------------------------


def _encodable(text: str) -> str:
    """Return the same text if files can contain it: they are UTF-8. Raises ValueError."""
    text.encode()
    return text


Text = Annotated[str, AfterValidator(_encodable)]


class Event(BaseModel):
    """One step that a broker took, refused, or may have taken."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    source: Text = Field(description="who recorded it; for people, no verdict depends on it")
    spec: str = Field(description="the spec that the step belongs to")
    trace: Text = Field(description="the subject: which log, which queue")
    position: Integer = Field(description="the order in which steps took effect; within a trace it never falls")
    action: str = Field(description="the step")
    args: Integers = Field(default={}, description="the step's arguments, all of them; truth is 1 or 0")
    outcome: Outcome = Field(
        default="ok",
        description="unknown: no answer arrived, as after a timeout; inferred: taken, as later events show",
    )
    saw: Integers | None = Field(
        default=None, description="fields of the state as the broker reported them after the step"
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, given: Any) -> Any:
        return without_nulls(given)

    @model_validator(mode="after")
    def _is_a_step_of_its_spec(self, info: ValidationInfo) -> Self:
        """Check that the specs of the context, or ours, have such a step."""
        specs: Mapping[str, Spec] = SPECS if info.context is None else info.context
        spec = specs.get(self.spec)
        if spec is None:
            raise ValueError(f"spec is {value(self.spec)}{_known(self.spec, specs)}")
        if self.action not in spec.actions:
            hint = did_you_mean(self.action, spec.actions)
            raise ValueError(
                f"action is {value(self.action)}, expected a step of {self.spec}: {one_of(spec.actions)}{hint}"
            )
        if self.args.keys() != set(spec.parameters[self.action]):
            raise ValueError(
                f"args of {self.action} are {_and(self.args)}, expected {_and(spec.parameters[self.action])}"
            )
        if neither := [name for name in sorted(spec.flags[self.action]) if self.args[name] not in (0, 1)]:
            raise ValueError(
                f"args.{neither[0]} of {self.action} is {self.args[neither[0]]}, expected 1 or 0: it is a flag"
            )
        if strange := [name for name in self.saw or () if name not in spec.scalars]:
            hint = did_you_mean(strange[0], spec.scalars)
            raise ValueError(f"saw names {_and(strange)}, expected fields of {self.spec}: {one_of(spec.scalars)}{hint}")
        return self


def _known(name: str, specs: Collection[str]) -> str:
    """The end of the sentence for a spec that is not known: all that are, if one of them may be meant."""
    if hint := did_you_mean(name, specs):
        return f", expected {one_of(specs)}{hint}; --spec FILE names one of yours"
    own = "".join(f", nor {one}" for one in specs if one not in SPECS)
    return f", which is none of ours{own}: --spec FILE names one of yours"


def _and(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _sentence(error: ValidationError, action: Any) -> str:
    """Describe the first error; `action`: the step that the event names."""
    return refused(error, Event.model_fields, of=action if isinstance(action, str) else "")


# -- many events ---------------------------------------------------------------------------------------------------


class EventSchema(StepTables):
    """The events of some specs, by name: their columns, and the check that a row is one of them."""

    def steps_in(self, batch: pa.RecordBatch) -> Ints:
        """Return every event's index in `steps`; -1 where it is none."""
        return self.step_of[codes(batch.column("spec"), self.specs), codes(batch.column("action"), self.actions)]

    def from_events(self, events: Iterable[Event]) -> pa.RecordBatch:
        """Build one batch of events."""
        rows = [each.model_dump() for each in events]
        for row in rows:
            row["saw"] = None if row["saw"] is None else event.sorted_text(row["saw"])
        return pa.RecordBatch.from_pylist(rows, schema=self.columns)

    def to_events(self, batch: pa.RecordBatch) -> Iterator[Event]:
        """Yield the events of a batch as objects."""
        rows = event.rows(self.conformed(batch), self.vocabulary)
        return (Event.model_validate(row, context=self.specs) for row in rows)

    def from_block(self, block: bytes, _lines: int = 0) -> pa.RecordBatch:
        """Build a batch of whole NDJSON lines. Raises NoEvent for the first line that is none."""
        return self.from_lines(block.split(b"\n")[:-1])

    def from_lines(self, lines: list[bytes]) -> pa.RecordBatch:
        """Build a batch of NDJSON lines. Raises NoEvent for the first line that is none."""
        batch = self._at_once(lines)
        return self._by_line(lines) if batch is None else batch

    def _at_once(self, lines: list[bytes]) -> pa.RecordBatch | None:
        """Read the lines as columns; None if anything is unusual, which `_by_line` then examines."""
        try:
            rows = [parsed(line) for line in lines]
            if not all(isinstance(row, dict) and row.keys() <= self.names for row in rows):
                return None
            columns = {name: pa.array([row.get(name) for row in rows]) for name in self.names - {"saw", "args"}}
            columns["args"] = pa.array([numbers(row.get("args")) for row in rows])
            saw = [row.get("saw") for row in rows]
            columns["saw"] = pa.array(
                [None if fields is None else event.sorted_text(numbers(fields)) for fields in saw], pa.string()
            )
            return self.sound(pa.RecordBatch.from_pydict(columns))
        except (ValueError, TypeError, AttributeError, OverflowError, pa.ArrowException, NoEvent):
            return None

    def _by_line(self, lines: list[bytes]) -> pa.RecordBatch:
        """Read the lines one by one, up to the first that is no event."""
        found = []
        for number, line in enumerate(lines):
            given: Any = None
            try:
                given = parsed(line)
                found.append(Event.model_validate(given, context=self.specs))
            except ValidationError as error:
                action = given.get("action") if isinstance(given, dict) else None
                raise NoEvent(number, _sentence(error, action)) from error
            except ValueError as error:
                why = str(error).replace("line 1 column", "column")
                raise NoEvent(number, f"not JSON ({why}), expected one event as an object") from error
        return self.from_events(found)

    # -- columns, each looked at once ------------------------------------------------------------------------------

    def coded(self, batch: pa.RecordBatch) -> EncodedBatch:
        """Encode the events of a batch. Raises ValueError and NoEvent as `sound` does, which finds the reason."""
        found = self.in_columns(batch)
        if found is None:
            found = self.in_columns(self.sound(batch))
        assert found is not None  # noqa: S101 - or `sound` and `in_columns` disagree
        return found

    def coded_lines(self, block: bytes, lines: int) -> EncodedBatch:
        """Encode so many whole NDJSON lines. Raises NoEvent for the first line that is none.

        Nearly all are plain and valid, and are read as columns. All others are read by a library.
        """
        plain = self.plain.read(block, lines)
        found = None if plain is None else self.of_plain(plain)
        return self.coded_one_by_one(block, lines) if found is None else found

    def coded_one_by_one(self, block: bytes, _lines: int = 0) -> EncodedBatch:
        """Encode the lines by that library alone."""
        return self.coded(self.from_block(block))

    # -- columns as others have them, and what is wrong with them --------------------------------------------------

    def sound(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with our columns. Raises ValueError if it has others, NoEvent if a row is no event."""
        same = self.conformed(batch)
        wrong = self.wrong(same)
        if wrong.any():
            at = int(wrong.argmax())
            raise NoEvent(at, self.why_wrong(same, at))
        return same

    def conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with our columns and types. Raises ValueError if it has others."""
        names = batch.schema.names
        if strange := [name for name in names if name not in self.names]:
            raise ValueError(f"there is a column {strange[0]}, expected {_and(self.columns.names)}")
        if name := twice(names):
            raise ValueError(f"column {name} stands there twice")
        return self.selected(batch, self.columns)

    def has_all(self, columns: pa.Schema) -> bool:
        """True if these are all columns, with all arguments."""
        return set(columns.names) == self.names and columns.field("args").type.num_fields == len(self.arguments)

    def selected(self, batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
        """Return the batch with some of our columns, in these types. Raises ValueError if it has others."""
        arrays = []
        for field in columns:
            name: str = field.name
            given: Any = batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows)
            column = self._arguments(given, field.type) if name == "args" else _cast(given, name, field.type)
            arrays.append(column.fill_null("ok") if name == "outcome" else column)
        same = pa.RecordBatch.from_arrays(arrays, schema=columns)
        same.validate(full=True)
        return same

    def _arguments(self, column: pa.Array[Any], to: Any) -> pa.Array[Any]:
        """Return the arguments that are selected; a file may lack those that it never needs."""
        if not (pa.types.is_struct(column.type) or pa.types.is_null(column.type)):
            raise ValueError(f"column args is {column.type}, expected a struct of integers")
        given = [] if pa.types.is_null(column.type) else [field.name for field in column.type]
        if name := twice(given):
            raise ValueError(f"column args.{name} stands there twice")
        if strange := [name for name in given if name not in self.arguments]:
            raise ValueError(f"there is a column args.{strange[0]}, expected {_and(self.arguments)}")
        nulls = pa.nulls(len(column), pa.int64())
        return pa.StructArray.from_arrays(
            [
                _cast(pc.struct_field(column, field.name), f"args.{field.name}", field.type)
                if field.name in given
                else nulls.cast(field.type)
                for field in to
            ],
            fields=list(to),
        )

    def wrong(self, batch: pa.RecordBatch) -> Truths:
        """Mark the rows of a conformed batch that are no events, by column: the checks of `Event`, for all at once."""
        step = self.steps_in(batch)
        wrong = (step < 0) | (codes(batch.column("outcome"), OUTCOMES) < 0)
        for name in ("source", "trace", "position"):
            wrong |= batch.column(name).is_null().to_numpy(zero_copy_only=False)
        for at, name in enumerate(self.arguments):
            values = argument(batch, name)
            wrong |= self.takes[step, at] != values.is_valid().to_numpy(zero_copy_only=False)
            if self.flags[:, at].any():
                number = values.fill_null(0).to_numpy(zero_copy_only=False)
                wrong |= self.flags[step, at] & (number != 0) & (number != 1)
        saw = batch.column("saw")
        for row in np.flatnonzero(saw.is_valid().to_numpy(zero_copy_only=False)).tolist():
            wrong[row] |= not self.may_be_seen(saw[row].as_py(), self.steps[step[row]][0])
        return wrong

    def why_wrong(self, batch: pa.RecordBatch, at: int) -> str:
        """Describe the error of row `at`, as `Event` does."""
        row = batch.slice(at, 1).to_pylist()[0]
        try:
            if row["saw"] is not None:
                row["saw"] = seen(row["saw"])
            Event.model_validate(row, context=self.specs)
        except ValidationError as error:
            return _sentence(error, row["action"])
        except ValueError as error:
            return f"saw: not JSON ({error})"
        raise AssertionError(row)  # pragma: no cover - columns and objects would disagree


def _cast(column: pa.Array[Any], name: str, to: pa.DataType) -> pa.Array[Any]:
    """Convert the values to our type: other widths and dictionaries are accepted, other kinds are not."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_boolean(kind) and name.startswith("args."):
        return column.cast(to)
    same = pa.types.is_integer if pa.types.is_integer(to) else is_text
    if not (same(kind) or pa.types.is_null(kind)):
        raise ValueError(f"column {name} is {column.type}, expected {to}")
    return column.cast(to)


OURS = EventSchema(SPECS)
ALL, STEPS, ARGUMENTS, SCHEMA = OURS.vocabulary, OURS.steps, OURS.arguments, OURS.columns
from_lines, from_events, to_events = OURS.from_lines, OURS.from_events, OURS.to_events
sound, conformed = OURS.sound, OURS.conformed
from_columns = partial(event.from_columns, ALL)
"""`event.from_columns`, in the words of our specs: a batch of `SCHEMA`."""


@cache
def with_specs(specs: tuple[Spec, ...]) -> EventSchema:
    """Return the schema of our specs and these."""
    return EventSchema({**SPECS, **{spec.name: spec for spec in specs}}) if specs else OURS


# -- files ---------------------------------------------------------------------------------------------------------


def write(
    path: Path, batches: Iterable[pa.RecordBatch], *, origin: Origin | None = None, of: EventSchema = OURS
) -> int:
    """Write batches of the schema, see `writing.write`. Raises ValueError if one contains a row that is no event."""
    return writing.write(path, _checked(batches, of), of.vocabulary, origin=origin)


def _checked(batches: Iterable[pa.RecordBatch], of: EventSchema) -> Iterator[pa.RecordBatch]:
    before = 0
    for batch in batches:
        try:
            yield of.sound(batch)
        except NoEvent as wrong:
            raise ValueError(f"event {before + wrong.row}: {wrong.what}") from wrong
        before += batch.num_rows


def write_events(path: Path, events: Iterable[Event], *, origin: Origin | None = None) -> int:
    """Write events from objects, and return how many: `write`, for objects."""
    one_by_one = iter(events)
    groups = (from_events(group) for group in iter(lambda: list(islice(one_by_one, ROWS)), []))
    return write(path, groups, origin=origin)
