"""The event schema: how a step that a broker took is written down, as NDJSON and as Parquet.

`README.md` beside this file tells it as an essay. Three forms carry the same: `Event`, an object for whoever writes a
recorder or a test; a line of NDJSON; and a row of `SCHEMA`, as which millions of events are read. What is read here is
a step of a spec that we have, with the arguments of that step: nobody downstream looks again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import from_json

from gapless.spec.catalog import SPECS
from gapless.traces.events.files import is_event_file
from gapless.traces.problems import Unreadable, shown

Ints = npt.NDArray[np.int64]

NAME = "gapless-events"
VERSION = 1  # raised when a column changes its meaning; a new spec only adds arguments, and raises nothing
ROWS = 1 << 16  # events in a row group, and in a batch: what a reader or a writer holds at once
BLOCK = 4 << 20  # bytes of NDJSON that are read at once
LONGEST = 1 << 20  # bytes: a longer line is no event

Outcome = Literal["ok", "refused", "unknown", "inferred"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

TAKEN = np.array([outcome in {"ok", "inferred"} for outcome in OUTCOMES])

STEPS = tuple((spec.name, action) for spec in SPECS.values() for action in spec.actions)
ARGUMENTS = tuple(dict.fromkeys(name for spec in SPECS.values() for name in spec.arguments))


# -- one event -----------------------------------------------------------------------------------------------------


def _without_nulls(given: Any) -> Any:
    """What is null is left out, so that a recorder may write every column of every event."""
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
        description="unknown: nobody was told, as after a timeout; inferred: taken, as what came after it tells",
    )
    saw: Integers | None = Field(
        default=None, description="fields of the state as the broker reported them after the step"
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, given: Any) -> Any:
        return _without_nulls(given)

    @model_validator(mode="after")
    def _is_a_step_of_its_spec(self) -> Self:
        spec = SPECS.get(self.spec)
        if spec is None:
            raise ValueError(f"spec is {self.spec!r}, expected {_or(SPECS)}")
        if self.action not in spec.actions:
            raise ValueError(f"action is {self.action!r}, expected a step of {self.spec}: {_or(spec.actions)}")
        if self.args.keys() != set(spec.parameters[self.action]):
            raise ValueError(
                f"args of {self.action} are {_and(self.args)}, expected {_and(spec.parameters[self.action])}"
            )
        if strange := [name for name in self.saw or () if name not in spec.scalars]:
            raise ValueError(f"saw names {_and(strange)}, expected fields of {self.spec}: {_or(spec.scalars)}")
        return self


def _and(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _or(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _told(error: ValidationError) -> str:
    """The first thing that is wrong, in a sentence."""
    first = error.errors(include_url=False)[0]
    if "error" in first.get("ctx", {}):
        return str(first["ctx"]["error"])  # a sentence of our own
    return f"{'.'.join(str(part) for part in first['loc']) or 'the event'}: {first['msg']}"


# -- many events ---------------------------------------------------------------------------------------------------


COLUMNS: list[pa.Field[Any]] = [
    pa.field("source", pa.string(), nullable=False),
    pa.field("spec", pa.string(), nullable=False),
    pa.field("trace", pa.string(), nullable=False),
    pa.field("position", pa.int64(), nullable=False),
    pa.field("action", pa.string(), nullable=False),
    pa.field("args", pa.struct([pa.field(name, pa.int64()) for name in ARGUMENTS]), nullable=False),
    pa.field("outcome", pa.string(), nullable=False),
    pa.field("saw", pa.string()),  # JSON text, for it is rare, and its fields differ from spec to spec
]
SCHEMA = pa.schema(COLUMNS, metadata={NAME: str(VERSION)})
NAMES = frozenset(SCHEMA.names)
SAW = TypeAdapter(Integers)
ACTIONS = tuple(dict.fromkeys(action for _, action in STEPS))
STEP_OF = np.full((len(SPECS) + 1, len(ACTIONS) + 1), -1, np.int64)  # its last row and column stand for no such name
for _number, (_spec, _action) in enumerate(STEPS):
    STEP_OF[list(SPECS).index(_spec), ACTIONS.index(_action)] = _number
TAKES = np.array([[name in SPECS[spec].parameters[action] for name in ARGUMENTS] for spec, action in STEPS])


def steps(batch: pa.RecordBatch) -> Ints:
    """The step of every event as its index in `STEPS`; -1 where it is none."""
    return STEP_OF[codes(batch.column("spec"), SPECS), codes(batch.column("action"), ACTIONS)]


def codes(column: pa.Array[Any], names: Iterable[str]) -> npt.NDArray[np.int32]:
    """The index of every value in `names`; -1 where it is not among them."""
    found = pc.index_in(column, value_set=pa.array(list(names), pa.string()))
    return found.fill_null(-1).to_numpy(zero_copy_only=False)


def argument(batch: pa.RecordBatch, name: str) -> pa.Array[Any]:
    """The column of one argument."""
    column: pa.Array[Any] = pc.struct_field(batch.column("args"), name)
    return column


def seen(text: str) -> dict[str, int]:
    """The fields in a value of column `saw`. Raises ValueError."""
    found = _json(text)
    if not isinstance(found, dict):
        raise ValueError(f"{text} is no object")  # noqa: TRY004 - what a text holds is a value
    return found


def from_events(events: Iterable[Event]) -> pa.RecordBatch:
    """Events as one batch of `SCHEMA`."""
    rows = [event.model_dump() for event in events]
    for row in rows:
        row["saw"] = None if row["saw"] is None else sorted_text(row["saw"])
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


class Words(NamedTuple):
    """What a spec calls its steps and their arguments, in the order in which `from_columns` takes them."""

    actions: tuple[str, ...]
    arguments: tuple[str, ...]


def words(spec: str) -> Words:
    """The names of the steps and arguments of a spec: all that a recorder knows of it."""
    return Words(tuple(SPECS[spec].actions), SPECS[spec].arguments)


def from_columns(
    spec: str,
    *,
    source: str,
    traces: Sequence[str],
    trace: Ints | None = None,
    position: Ints,
    action: npt.NDArray[np.int8],
    args: Ints,
    outcome: npt.NDArray[np.int8] | None = None,
) -> pa.RecordBatch:
    """Events of one spec as a batch of `SCHEMA`, from columns as kernels take them.

    `traces`: names of the subjects · `trace`: int64 [events], the index of each
    one's subject; without it all are of the first · `position`: int64 [events] · `action`: int8 [events] · `args`:
    int64 [arguments of the spec, events] · `outcome`: int8 [events], of `OUTCOMES`; without it all are
    recorded as taken. Nothing was seen afterwards.
    """
    of, count = SPECS[spec], len(action)
    nulls = pa.nulls(count, pa.int64())  # once: most columns are of no use to one spec
    step = np.array([STEPS.index((spec, name)) for name in of.actions])[action]
    columns = [
        pa.array(args[of.arguments.index(name)], mask=~TAKES[step, at]) if name in of.arguments else nulls
        for at, name in enumerate(ARGUMENTS)
    ]
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(utf8(source), count),
            pa.repeat(spec, count),
            _spread([utf8(name) for name in traces], np.zeros(count, np.int64) if trace is None else trace),
            pa.array(position, pa.int64()),
            _spread(list(of.actions), action),
            pa.StructArray.from_arrays(columns, fields=list(SCHEMA.field("args").type)),
            pa.repeat("ok", count) if outcome is None else _spread(list(OUTCOMES), outcome),
            pa.nulls(count, pa.string()),
        ],
        schema=SCHEMA,
    )


def utf8(name: str) -> str:
    """The name, what cannot be written of it escaped: the names of files and topics may be any bytes."""
    return name.encode(errors="backslashreplace").decode()


def _spread(names: list[str], index: npt.NDArray[Any]) -> pa.Array[Any]:
    """The name at every index."""
    return pa.DictionaryArray.from_arrays(pa.array(index), pa.array(names, pa.string())).dictionary_decode()


def to_events(batch: pa.RecordBatch) -> Iterator[Event]:
    """A batch of `SCHEMA` as events."""
    return (Event.model_validate(row) for row in _rows(batch))


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Every event as its line has it: what is null or the default is left out."""
    args = {name: argument(batch, name).to_pylist() for name in ARGUMENTS}
    plain: dict[str, list[Any]] = {name: batch.column(name).to_pylist() for name in SCHEMA.names if name != "args"}
    for at in range(batch.num_rows):
        row = {name: plain[name][at] for name in ("source", "spec", "trace", "position", "action")}
        if names := SPECS[row["spec"]].parameters[row["action"]]:
            row["args"] = {name: args[name][at] for name in names}
        if plain["outcome"][at] != "ok":
            row["outcome"] = plain["outcome"][at]
        if plain["saw"][at] is not None:
            row["saw"] = dict(sorted(seen(plain["saw"][at]).items()))
        yield row


def sorted_text(saw: dict[str, int]) -> str:
    """The text of what was seen: one for one content."""
    return _text(dict(sorted(saw.items())))


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _json(text: str | bytes) -> Any:
    """Strict JSON, and fast. Raises ValueError."""
    return from_json(text, allow_inf_nan=False, cache_strings="keys")


# -- what a batch must be ------------------------------------------------------------------------------------------


def _conformed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the columns and types of `SCHEMA`. Raises ValueError where it has others."""
    names = batch.schema.names
    if strange := [name for name in names if name not in SCHEMA.names]:
        raise ValueError(f"there is a column {strange[0]}, expected {_and(SCHEMA.names)}")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"column {twice[0]} stands there twice")
    columns = []
    for field in SCHEMA:
        if field.name == "args":
            columns.append(_arguments(batch.column("args") if "args" in names else pa.nulls(batch.num_rows)))
        elif field.name not in names:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            columns.append(_cast(batch.column(field.name), field.name, field.type))
    columns[SCHEMA.get_field_index("outcome")] = columns[SCHEMA.get_field_index("outcome")].fill_null("ok")
    conformed = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    conformed.validate(full=True)
    return conformed


def _arguments(column: pa.Array[Any]) -> pa.Array[Any]:
    """The arguments, of which a file may lack those that it never needs."""
    if not (pa.types.is_struct(column.type) or pa.types.is_null(column.type)):
        raise ValueError(f"column args is {column.type}, expected a struct of integers")
    given = [] if pa.types.is_null(column.type) else [field.name for field in column.type]
    if strange := [name for name in given if name not in ARGUMENTS]:
        raise ValueError(f"there is a column args.{strange[0]}, expected {_and(ARGUMENTS)}")
    return pa.StructArray.from_arrays(
        [
            _cast(pc.struct_field(column, name), f"args.{name}", pa.int64())
            if name in given
            else pa.nulls(len(column), pa.int64())
            for name in ARGUMENTS
        ],
        fields=list(SCHEMA.field("args").type),
    )


def _cast(column: pa.Array[Any], name: str, to: pa.DataType) -> pa.Array[Any]:
    """The same values in our type: other widths and dictionaries are welcome, other kinds are not."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    same = pa.types.is_integer if pa.types.is_integer(to) else _is_text
    if not (same(kind) or pa.types.is_null(kind)):
        raise ValueError(f"column {name} is {column.type}, expected {to}")
    return column.cast(to)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _first_wrong(batch: pa.RecordBatch) -> int | None:
    """The first row that is no event, by column: what `Event` says of one, for all of them at once."""
    step = steps(batch)
    wrong = (step < 0) | (codes(batch.column("outcome"), OUTCOMES) < 0)
    for name in ("source", "trace", "position"):
        wrong |= batch.column(name).is_null().to_numpy(zero_copy_only=False)
    for at, name in enumerate(ARGUMENTS):
        wrong |= TAKES[step, at] != argument(batch, name).is_valid().to_numpy(zero_copy_only=False)
    saw = batch.column("saw")
    for row in np.flatnonzero(saw.is_valid().to_numpy(zero_copy_only=False)).tolist():
        wrong[row] |= not _may_be_seen(saw[row].as_py(), STEPS[step[row]][0])
    return int(wrong.argmax()) if wrong.any() else None


def _may_be_seen(text: str, spec: str) -> bool:
    try:
        return SAW.validate_python(seen(text), strict=True).keys() <= set(SPECS[spec].scalars)
    except ValueError:
        return False


def _why_wrong(batch: pa.RecordBatch, at: int) -> str:
    """What is wrong with the row at `at`, as `Event` says it."""
    row = batch.slice(at, 1).to_pylist()[0]
    try:
        if row["saw"] is not None:
            row["saw"] = seen(row["saw"])
        Event.model_validate(row)
    except ValidationError as error:
        return _told(error)
    except ValueError as error:
        return f"saw: not JSON ({error})"
    raise AssertionError(row)  # pragma: no cover - columns and objects would disagree


# -- files ---------------------------------------------------------------------------------------------------------


def place(path: Path, row: int) -> tuple[str, int]:
    """Where event `row` (from 0) stands, as people look for it: a line of NDJSON from 1, or a row of Parquet from 0."""
    return ("row", row) if _is_parquet(path) else ("line", row + 2)


@dataclass(frozen=True)
class Stretch:
    """Events of a file that follow one another and are read together: row groups of Parquet, or lines of NDJSON.

    `low:high`: the row groups, or the bytes; of the last lines, `high` is None: they reach to the file's end · `bytes`:
    how many there are to read · `first`, `last`: no events come before it, or behind it.
    """

    number: int
    low: int
    high: int | None
    bytes: int
    first: bool
    last: bool


def stretches(path: Path, size: int) -> list[Stretch]:
    """The whole file in stretches of about `size` bytes, in its order. Raises Unreadable."""
    cut = _row_groups if _is_parquet(path) else _lines
    with _opened(path) as file:
        bounds = list(cut(path, file, size))
    last = len(bounds) - 1
    return [Stretch(n, low, high, held, n == 0, n == last) for n, (low, high, held) in enumerate(bounds)]


def read(path: Path, stretch: Stretch | None = None) -> Iterator[pa.RecordBatch]:
    """The events of a file, or of a stretch of it, in its order, as batches of `SCHEMA`.

    One batch is held at a time. Raises Unreadable.
    """
    batches = _parquet_batches if _is_parquet(path) else _ndjson_batches
    with _opened(path) as file:
        yield from batches(path, file, stretch)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise Unreadable(f"{shown(path)}: cannot be read ({error.strerror or error})") from error


def read_events(path: Path) -> Iterator[Event]:
    """The events of a file, one by one. Raises Unreadable."""
    return chain.from_iterable(to_events(batch) for batch in read(path))


def write(path: Path, batches: Iterable[pa.RecordBatch]) -> int:
    """Write batches of `SCHEMA`, and say how many events they hold; the suffix of `path` says which form.

    The file appears whole or not at all. Raises ValueError where a batch holds what is no event.
    """
    with _whole(path) as file:
        return (_write_parquet if _is_parquet(path) else _write_ndjson)(file, _sound(batches))


def write_events(path: Path, events: Iterable[Event]) -> int:
    """Write events, and say how many: `write`, for objects."""
    one_by_one = iter(events)
    return write(path, (from_events(group) for group in iter(lambda: list(islice(one_by_one, ROWS)), [])))


def _is_parquet(path: Path) -> bool:
    """Whether to read Parquet, and not NDJSON. Raises Unreadable where the name says neither."""
    if not is_event_file(path):
        raise Unreadable(
            f"{shown(path)}: an event file is named .ndjson or .parquet, so that its form is known; rename it"
        )
    return path.suffix.lower() == ".parquet"


def _sound(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    before = 0
    for batch in batches:
        conformed = _conformed(batch)
        at = _first_wrong(conformed)
        if at is not None:
            raise ValueError(f"event {before + at}: {_why_wrong(conformed, at)}")
        before += batch.num_rows
        yield conformed


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its name only when it is written to the end."""
    path = path.resolve()
    if path.exists() and not path.is_file():  # a device or a pipe is written to, never replaced
        with path.open("wb") as file:
            yield file
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


# -- Parquet -------------------------------------------------------------------------------------------------------


def _row_groups(path: Path, file: BinaryIO, size: int) -> Iterator[tuple[int, int, int]]:
    """Row groups that follow one another and hold `size` bytes together: the first, the one behind the last, bytes."""
    with _telling(path):
        metadata = _parquet_file(path, file).metadata
        sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
    low = held = 0
    for number, bytes_ in enumerate(sizes):
        held += bytes_
        if held >= size:
            yield low, number + 1, held
            low, held = number + 1, 0
    if low < len(sizes) or not sizes:
        yield low, len(sizes), held


def _parquet_batches(path: Path, file: BinaryIO, stretch: Stretch | None) -> Iterator[pa.RecordBatch]:
    with _telling(path):
        source = _parquet_file(path, file)
        low, high = (stretch.low, stretch.high) if stretch else (0, None)
        yield from _conforming(path, source, low, source.num_row_groups if high is None else high)


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """What pyarrow says of a file that is none, or is torn, in a sentence of ours."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:  # pyarrow tells of torn pages by an OSError
        raise Unreadable(
            f"{shown(path)}: {shown(error)}; expected a Parquet file of {NAME} (traces/README.md): copy it again, "
            "record it again, or name it .ndjson if it is that"
        ) from error


def _parquet_file(path: Path, file: BinaryIO) -> parquet.ParquetFile:
    source = parquet.ParquetFile(file, page_checksum_verification=True)
    _check_version(path, (source.schema_arrow.metadata or {}).get(NAME.encode(), b"").decode(errors="replace"))
    return source


def _conforming(path: Path, source: parquet.ParquetFile, low: int, high: int) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups, all that they promise. Raises Unreadable, or ValueError where it is torn."""
    rows = [source.metadata.row_group(number).num_rows for number in range(source.num_row_groups)]
    if sum(rows) != source.metadata.num_rows:
        raise ValueError(f"it should have {source.metadata.num_rows} rows, and its row groups have {sum(rows)}")
    before, behind = sum(rows[:low]), sum(rows[:high])
    for batch in source.iter_batches(ROWS, row_groups=list(range(low, high)), use_threads=False):
        conformed = _conformed(batch)
        at = _first_wrong(conformed)
        if at is not None:
            raise _unreadable(path, before + at, _why_wrong(conformed, at))
        before += batch.num_rows
        yield conformed
    if before != behind:
        raise ValueError(f"it should have {behind} rows up to here, and {before} could be read")


def _check_version(path: Path, version: str) -> None:
    if not version:
        raise Unreadable(
            f"{shown(path)}: its metadata does not say {NAME} = {VERSION}, so its columns may mean anything; "
            "write it with that key (traces/README.md)"
        )
    if version != str(VERSION):
        raise Unreadable(
            f"{shown(path)}: {NAME} of version {shown(version)}, expected {VERSION}; check it with the gapless that "
            "belongs to it, or record it again"
        )


def _write_parquet(file: BinaryIO, batches: Iterable[pa.RecordBatch]) -> int:
    count = 0
    names = ["source", "spec", "trace", "action", "outcome"]
    with parquet.ParquetWriter(
        file,
        SCHEMA,
        compression="zstd",
        use_dictionary=names,  # type: ignore[arg-type]  # the stubs know only all columns, or none
        column_encoding=dict.fromkeys(("position", *(f"args.{name}" for name in ARGUMENTS)), "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
    ) as writer:
        for table in _tables(batches):
            writer.write_table(table, ROWS)
            count += table.num_rows
    return count


def _tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same events in tables of `ROWS`, or multiples of it; the last holds the rest."""
    waiting = SCHEMA.empty_table()
    for batch in batches:
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
        if full := waiting.num_rows // ROWS * ROWS:
            yield waiting.slice(0, full)
            waiting = waiting.slice(full)
    if waiting.num_rows:
        yield waiting


# -- NDJSON --------------------------------------------------------------------------------------------------------


HEADER = {"schema": NAME, "version": VERSION}


class _NoEvent(Exception):  # noqa: N818 - it names a finding.
    """A line that is no event: how many come before it in its stretch, and what is wrong."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(what)
        self.row = row
        self.what = what


def _lines(path: Path, file: BinaryIO, size: int) -> Iterator[tuple[int, int | None, int]]:
    """Whole lines behind the header, about `size` bytes of them: the first byte, the one behind the last, bytes."""
    _check_header(path, file.readline(LONGEST))
    low, end = file.tell(), file.seek(0, os.SEEK_END)
    while low + size < end and (high := _line_from(file, low + size)) < end:
        yield low, high, high - low
        low = high
    yield low, None, end - low


def _line_from(file: BinaryIO, at: int) -> int:
    """Where the first line begins that does not begin before byte `at`."""
    file.seek(at - 1)
    while (line := file.readline(LONGEST)) and not line.endswith(b"\n"):
        pass
    return file.tell()


def _ndjson_batches(path: Path, file: BinaryIO, stretch: Stretch | None) -> Iterator[pa.RecordBatch]:
    if stretch is None:
        _check_header(path, file.readline(LONGEST))
    low, high = (stretch.low, stretch.high) if stretch else (file.tell(), None)
    try:
        yield from _blocks(file, low, high)
    except _NoEvent as wrong:
        raise _unreadable(path, _events_before(file, low) + wrong.row, wrong.what) from wrong.__cause__


def _events_before(file: BinaryIO, low: int) -> int:
    """How many lines there are before byte `low`, the header left out. Asked only to say where something is wrong."""
    file.seek(0)
    return sum(file.read(min(BLOCK, low - at)).count(b"\n") for at in range(0, low, BLOCK)) - 1


def _blocks(file: BinaryIO, low: int, high: int | None) -> Iterator[pa.RecordBatch]:
    """The lines from byte `low` up to `high`, some at a time. Raises _NoEvent."""
    file.seek(low)
    row = 0
    while block := file.read(BLOCK if high is None else min(BLOCK, high - file.tell())):
        if not block.endswith(b"\n"):
            block += file.readline(LONGEST)
        count = block.count(b"\n")
        if not block.endswith(b"\n"):
            raise _NoEvent(row + count, "the last line is cut off, expected a newline at its end; remove it")
        lines = block.split(b"\n")[:-1]
        batch = _at_once(lines)
        yield _by_line(lines, row) if batch is None else batch
        row += count


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = _json(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("schema") != NAME or not line.endswith(b"\n"):
        raise Unreadable(
            f"{shown(path)}, line 1: expected {_text(HEADER)}, as every file of events begins (traces/README.md)"
        )
    _check_version(path, str(header.get("version", "unknown")))


def _at_once(lines: list[bytes]) -> pa.RecordBatch | None:
    """The lines as columns, or None where anything is unusual: `_by_line` finds out what."""
    try:
        rows = [_json(line) for line in lines]
        if not all(isinstance(row, dict) and row.keys() <= NAMES for row in rows):
            return None
        saw = [row.get("saw") for row in rows]
        columns = {name: pa.array([row.get(name) for row in rows]) for name in NAMES - {"saw"}}
        columns["saw"] = pa.array(
            [None if fields is None else sorted_text(_without_nulls(fields)) for fields in saw], pa.string()
        )
        batch = _conformed(pa.RecordBatch.from_pydict(columns))
    except (ValueError, TypeError, AttributeError, OverflowError, pa.ArrowException):
        return None
    return batch if _first_wrong(batch) is None else None


def _by_line(lines: list[bytes], row: int) -> pa.RecordBatch:
    """The lines one by one, up to the first that is no event. Raises _NoEvent."""
    found = []
    for number, line in enumerate(lines, row):
        try:
            found.append(Event.model_validate(_json(line)))
        except ValidationError as error:
            raise _NoEvent(number, _told(error)) from error
        except ValueError as error:
            why = str(error).replace("line 1 column", "column")
            raise _NoEvent(number, f"not JSON ({why}), expected one event as an object") from error
    return from_events(found)


def _write_ndjson(file: BinaryIO, batches: Iterable[pa.RecordBatch]) -> int:
    count = 0
    file.write(f"{_text(HEADER)}\n".encode())
    for batch in batches:
        file.writelines(f"{_text(row)}\n".encode() for row in _rows(batch))
        count += batch.num_rows
    return count


def _unreadable(path: Path, row: int, what: str) -> Unreadable:
    kind, number = place(path, row)
    return Unreadable(f"{shown(path)}, {kind} {number}: {shown(what)} (traces/README.md says what an event holds)")
