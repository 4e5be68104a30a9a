"""The event schema: which steps there are, as the specs have them, and whether an event is one of them.

`../README.md` describes events at length. Three forms carry the same: `Event`, an object for whoever writes a recorder
or a test; a line of NDJSON; and a row of a schema, as which millions of events are read. What passes here is a step of
a spec that is known, with the arguments of that step: later stages do not look again. Known are our specs, which the
names of this module are about, and those that a user brings to one check: `with_specs` of them has the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from gapless.spec.catalog import SPECS, Spec
from gapless.traces.events import event, writing
from gapless.traces.events.coded import Coded, Given, fields, integers, is_text, named, text_codes
from gapless.traces.events.event import (
    OUTCOMES,
    ROWS,
    Ints,
    NoEvent,
    Origin,
    Outcome,
    Vocabulary,
    argument,
    codes,
    parsed,
    seen,
)

# -- one event -----------------------------------------------------------------------------------------------------


def _without_nulls(given: Any) -> Any:
    """Null and absent are equivalent, so that a recorder may write every column of every event."""
    return {key: value for key, value in given.items() if value is not None} if isinstance(given, dict) else given


def _encodable(text: str) -> str:
    """The same text, if files can hold it: they are UTF-8. Raises ValueError."""
    text.encode()
    return text


Text = Annotated[str, AfterValidator(_encodable)]
Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Integers = Annotated[dict[str, Integer], BeforeValidator(_without_nulls)]


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
        description="unknown: nobody was told, as after a timeout; inferred: taken, as what came after it shows",
    )
    saw: Integers | None = Field(
        default=None, description="fields of the state as the broker reported them after the step"
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, given: Any) -> Any:
        return _without_nulls(given)

    @model_validator(mode="after")
    def _is_a_step_of_its_spec(self, info: ValidationInfo) -> Self:
        """Whether the specs of the context, or ours, have such a step."""
        specs: Mapping[str, Spec] = SPECS if info.context is None else info.context
        spec = specs.get(self.spec)
        if spec is None:
            raise ValueError(f"spec is {self.spec!r}, expected {_or(specs)}; --spec FILE names one of yours")
        if self.action not in spec.actions:
            raise ValueError(f"action is {self.action!r}, expected a step of {self.spec}: {_or(spec.actions)}")
        if self.args.keys() != set(spec.parameters[self.action]):
            raise ValueError(
                f"args of {self.action} are {_and(self.args)}, expected {_and(spec.parameters[self.action])}"
            )
        if neither := [name for name in sorted(spec.flags[self.action]) if self.args[name] not in (0, 1)]:
            raise ValueError(
                f"args.{neither[0]} of {self.action} is {self.args[neither[0]]}, expected 1 or 0: it is a flag"
            )
        if strange := [name for name in self.saw or () if name not in spec.scalars]:
            raise ValueError(f"saw names {_and(strange)}, expected fields of {self.spec}: {_or(spec.scalars)}")
        return self


def _and(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _or(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _sentence(error: ValidationError) -> str:
    """The first thing that is wrong."""
    first = error.errors(include_url=False)[0]
    if "error" in first.get("ctx", {}):
        return str(first["ctx"]["error"])  # a sentence of our own
    return f"{'.'.join(str(part) for part in first['loc']) or 'the event'}: {first['msg']}"


# -- many events ---------------------------------------------------------------------------------------------------

SAW = TypeAdapter(Integers)
NOWHERE = Given(np.zeros(0, np.int64), None)


class EventSchema:
    """The events of some specs, by name: their columns, and whether a row is one of them.

    `steps`: every step as (spec, action) · `arguments`: of all steps, a column each · `columns`: of a batch.
    """

    def __init__(self, specs: Mapping[str, Spec]) -> None:
        self.specs = specs
        self.vocabulary = Vocabulary({name: spec.parameters for name, spec in specs.items()})
        known = self.vocabulary.specs
        self.steps = tuple((spec, action) for spec, actions in known.items() for action in actions)
        self.arguments = self.vocabulary.arguments
        self.columns = self.vocabulary.schema
        self.names = frozenset(self.columns.names)
        self.actions = tuple(dict.fromkeys(action for _, action in self.steps))
        self.takes = np.array([[name in known[spec][action] for name in self.arguments] for spec, action in self.steps])
        self.flags = np.array([[a in specs[spec].flags[action] for a in self.arguments] for spec, action in self.steps])
        self.step_of = np.full((len(specs) + 1, len(self.actions) + 1), -1, np.int64)  # the last: no such name
        places = {name: number for number, name in enumerate(specs)}
        self.steps_spec = np.array([places[spec] for spec, _ in self.steps])
        for number, (spec, action) in enumerate(self.steps):
            self.step_of[places[spec], self.actions.index(action)] = number

    def steps_in(self, batch: pa.RecordBatch) -> Ints:
        """The step of every event as its index in `steps`; -1 where it is none."""
        return self.step_of[codes(batch.column("spec"), self.specs), codes(batch.column("action"), self.actions)]

    def from_events(self, events: Iterable[Event]) -> pa.RecordBatch:
        """Events as one batch."""
        rows = [each.model_dump() for each in events]
        for row in rows:
            row["saw"] = None if row["saw"] is None else event.sorted_text(row["saw"])
        return pa.RecordBatch.from_pylist(rows, schema=self.columns)

    def to_events(self, batch: pa.RecordBatch) -> Iterator[Event]:
        """A batch of events as objects."""
        rows = event.rows(self.conformed(batch), self.vocabulary)
        return (Event.model_validate(row, context=self.specs) for row in rows)

    def from_lines(self, lines: list[bytes]) -> pa.RecordBatch:
        """Lines of NDJSON as a batch. Raises NoEvent for the first line that is none."""
        batch = self._at_once(lines)
        return self._by_line(lines) if batch is None else batch

    def _at_once(self, lines: list[bytes]) -> pa.RecordBatch | None:
        """The lines as columns, or None where anything is unusual: `_by_line` finds out what."""
        try:
            rows = [parsed(line) for line in lines]
            if not all(isinstance(row, dict) and row.keys() <= self.names for row in rows):
                return None
            columns = {name: pa.array([row.get(name) for row in rows]) for name in self.names - {"saw"}}
            saw = [row.get("saw") for row in rows]
            columns["saw"] = pa.array(
                [None if fields is None else event.sorted_text(_without_nulls(fields)) for fields in saw], pa.string()
            )
            return self.sound(pa.RecordBatch.from_pydict(columns))
        except (ValueError, TypeError, AttributeError, OverflowError, pa.ArrowException, NoEvent):
            return None

    def _by_line(self, lines: list[bytes]) -> pa.RecordBatch:
        """The lines one by one, up to the first that is no event."""
        found = []
        for number, line in enumerate(lines):
            try:
                found.append(Event.model_validate(parsed(line), context=self.specs))
            except ValidationError as error:
                raise NoEvent(number, _sentence(error)) from error
            except ValueError as error:
                why = str(error).replace("line 1 column", "column")
                raise NoEvent(number, f"not JSON ({why}), expected one event as an object") from error
        return self.from_events(found)

    # -- columns, each looked at once ------------------------------------------------------------------------------

    def coded(self, batch: pa.RecordBatch) -> Coded:
        """The events of a batch. Raises ValueError and NoEvent as `sound` does, which looks again to say why."""
        found = self._coded(batch)
        if found is None:
            found = self._coded(self.sound(batch))
        assert found is not None  # noqa: S101 - or `sound` and `_coded` disagree
        return found

    def _coded(self, batch: pa.RecordBatch) -> Coded | None:
        """The events of a batch; None where anything may be wrong."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        texts = [columns.get(name) for name in ("source", "spec", "trace", "action")]
        if len(columns) < batch.num_columns or not columns.keys() <= self.names or "position" not in columns:
            return None
        if any(text is None or text.null_count or not is_text(text.type) for text in texts):
            return None
        try:
            batch.validate(full=True)
            args = self._given(columns.get("args"))
            position = integers(columns["position"]) if pa.types.is_integer(columns["position"].type) else None
        except pa.ArrowInvalid:
            return None
        step, outcome = self._steps(columns["spec"], columns["action"]), _outcomes(columns.get("outcome"), len(batch))
        if args is None or position is None or position.there is not None or outcome is None:
            return None
        return self.fitting(step, named(columns["trace"]), position.values, outcome, args, columns.get("saw"))

    def _given(self, column: pa.Array[Any] | None) -> dict[str, Given] | None:
        """The arguments that some events have; None where one is no integer, or none of ours."""
        if column is None or pa.types.is_null(column.type):
            return {}
        if not pa.types.is_struct(column.type):
            return None
        names = [field.name for field in column.type]
        if len(set(names)) < len(names) or not set(names) <= set(self.arguments):
            return None
        kinds = [field.type for field in column.type]
        if not all(pa.types.is_integer(kind) or pa.types.is_null(kind) for kind in kinds):
            return None
        return {name: integers(values) for name, values in fields(column).items()}

    def _steps(self, spec: pa.Array[Any], action: pa.Array[Any]) -> Ints:
        """The step of every event; -1 where it is none."""
        found: Ints = self.step_of[text_codes(spec, self.specs), text_codes(action, self.actions)]
        return found

    def fitting(
        self,
        step: Ints,
        trace: pa.DictionaryArray[Any, Any],
        position: Ints,
        outcome: npt.NDArray[np.int8],
        args: Mapping[str, Given],
        saw: pa.Array[Any] | None,
    ) -> Coded | None:
        """Events, if all of them are steps with the arguments of these, and saw fields of their specs; or None."""
        if step.min(initial=0) < 0 or trace.dictionary.null_count:
            return None
        if not self._have_their_arguments(step, args) or not self._may_see(step, saw):
            return None
        saw = None if saw is None or saw.null_count == len(saw) else saw
        return Coded(step, trace, position, outcome, {name: given.values for name, given in args.items()}, saw)

    def _have_their_arguments(self, step: Ints, args: Mapping[str, Given]) -> bool:
        """Whether every event has the arguments of its step and no other, and what is a flag is 1 or 0."""
        occurring = np.flatnonzero(np.bincount(step))
        for at, name in enumerate(self.arguments):
            takes, flags = self.takes[:, at], self.flags[:, at]
            values, there = args.get(name, NOWHERE)
            if there is None:
                fits = bool(takes[occurring].all()) if name in args else not takes[occurring].any()
            else:
                fits = bool((takes[step] == there).all())
            if not fits:
                return False
            if name in args and flags[occurring].any():
                flag = values if flags[occurring].all() else values[flags[step]]
                if flag.min() < 0 or flag.max() > 1:
                    return False
        return True

    def _may_see(self, step: Ints, saw: pa.Array[Any] | None) -> bool:
        """Whether what was seen after each event are fields of its spec: each text is read once for each spec."""
        if saw is None or pa.types.is_null(saw.type):
            return True
        if not is_text(saw.type):
            return False
        at = np.flatnonzero(saw.is_valid().to_numpy(zero_copy_only=False))
        texts = saw.drop_null().cast(pa.string()).dictionary_encode()
        pairs = np.unique(texts.indices.to_numpy() * np.int64(len(self.steps)) + self.steps_spec[step[at]])
        names = list(self.specs)
        known = texts.dictionary.to_pylist()
        return all(
            self._may_be_seen(known[pair // len(self.steps)], names[pair % len(self.steps)]) for pair in pairs.tolist()
        )

    # -- columns as others have them, and what is wrong with them --------------------------------------------------

    def sound(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with our columns. Raises ValueError where it has others, NoEvent where a row is no event."""
        same = self.conformed(batch)
        at = self._first_wrong(same)
        if at is not None:
            raise NoEvent(at, self._why_wrong(same, at))
        return same

    def conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with our columns and types. Raises ValueError where it has others."""
        names = batch.schema.names
        if strange := [name for name in names if name not in self.names]:
            raise ValueError(f"there is a column {strange[0]}, expected {_and(self.columns.names)}")
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"column {twice[0]} stands there twice")
        columns = {
            name: batch.column(name) if name in names else pa.nulls(batch.num_rows) for name in self.columns.names
        }
        arrays = [
            self._arguments(columns["args"])
            if field.name == "args"
            else _cast(columns[field.name], field.name, field.type)
            for field in self.columns
        ]
        outcome = self.columns.get_field_index("outcome")
        arrays[outcome] = arrays[outcome].fill_null("ok")
        same = pa.RecordBatch.from_arrays(arrays, schema=self.columns)
        same.validate(full=True)
        return same

    def _arguments(self, column: pa.Array[Any]) -> pa.Array[Any]:
        """The arguments, of which a file may lack those that it never needs."""
        if not (pa.types.is_struct(column.type) or pa.types.is_null(column.type)):
            raise ValueError(f"column args is {column.type}, expected a struct of integers")
        given = [] if pa.types.is_null(column.type) else [field.name for field in column.type]
        if strange := [name for name in given if name not in self.arguments]:
            raise ValueError(f"there is a column args.{strange[0]}, expected {_and(self.arguments)}")
        nulls = pa.nulls(len(column), pa.int64())
        return pa.StructArray.from_arrays(
            [
                _cast(pc.struct_field(column, name), f"args.{name}", pa.int64()) if name in given else nulls
                for name in self.arguments
            ],
            fields=list(self.columns.field("args").type),
        )

    def _first_wrong(self, batch: pa.RecordBatch) -> int | None:
        """The first row that is no event, by column: what `Event` says of one, for all of them at once."""
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
            wrong[row] |= not self._may_be_seen(saw[row].as_py(), self.steps[step[row]][0])
        return int(wrong.argmax()) if wrong.any() else None

    def _may_be_seen(self, text: str, spec: str) -> bool:
        try:
            return SAW.validate_python(seen(text), strict=True).keys() <= set(self.specs[spec].scalars)
        except ValueError:
            return False

    def _why_wrong(self, batch: pa.RecordBatch, at: int) -> str:
        """What is wrong with the row at `at`, as `Event` says it."""
        row = batch.slice(at, 1).to_pylist()[0]
        try:
            if row["saw"] is not None:
                row["saw"] = seen(row["saw"])
            Event.model_validate(row, context=self.specs)
        except ValidationError as error:
            return _sentence(error)
        except ValueError as error:
            return f"saw: not JSON ({error})"
        raise AssertionError(row)  # pragma: no cover - columns and objects would disagree


def _cast(column: pa.Array[Any], name: str, to: pa.DataType) -> pa.Array[Any]:
    """The same values in our type: other widths and dictionaries are welcome, other kinds are not."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    same = pa.types.is_integer if pa.types.is_integer(to) else is_text
    if not (same(kind) or pa.types.is_null(kind)):
        raise ValueError(f"column {name} is {column.type}, expected {to}")
    return column.cast(to)


def _outcomes(column: pa.Array[Any] | None, count: int) -> npt.NDArray[np.int8] | None:
    """The outcome of every event, `ok` where it is left out; None where there are others."""
    if column is None or pa.types.is_null(column.type):
        return np.zeros(count, np.int8)
    if not is_text(column.type):
        return None
    found = text_codes(column, OUTCOMES).astype(np.int8)
    if column.null_count:
        found[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return None if found.min(initial=0) < 0 else found


OURS = EventSchema(SPECS)
ALL, STEPS, ARGUMENTS, SCHEMA = OURS.vocabulary, OURS.steps, OURS.arguments, OURS.columns
from_lines, from_events, to_events = OURS.from_lines, OURS.from_events, OURS.to_events
sound, conformed = OURS.sound, OURS.conformed
from_columns = partial(event.from_columns, ALL)
"""`event.from_columns`, in the words of our specs: a batch of `SCHEMA`."""


@cache
def with_specs(specs: tuple[Spec, ...]) -> EventSchema:
    """The events of our specs, and of these."""
    return EventSchema({**SPECS, **{spec.name: spec for spec in specs}}) if specs else OURS


# -- files ---------------------------------------------------------------------------------------------------------


def write(path: Path, batches: Iterable[pa.RecordBatch], *, origin: Origin | None = None) -> int:
    """`writing.write`, of batches of `SCHEMA`. Raises ValueError where one of them holds what is no event."""
    return writing.write(path, _checked(batches), ALL, origin=origin)


def _checked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    before = 0
    for batch in batches:
        try:
            yield sound(batch)
        except NoEvent as wrong:
            raise ValueError(f"event {before + wrong.row}: {wrong.what}") from wrong
        before += batch.num_rows


def write_events(path: Path, events: Iterable[Event], *, origin: Origin | None = None) -> int:
    """Write events, and say how many: `write`, for objects."""
    one_by_one = iter(events)
    groups = (from_events(group) for group in iter(lambda: list(islice(one_by_one, ROWS)), []))
    return write(path, groups, origin=origin)
