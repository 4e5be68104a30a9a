"""A DataFrame of events in, a DataFrame of verdicts out: a row for every trace, and no file in between.

Spark brings the rows of each trace together, sorts them, and hands them to the judge in Arrow batches
(`judging/sorted_traces`). Nothing runs before the result is asked for, except a look at the workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gapless.spec.catalog import STRICT, Spec
from gapless.traces.check import options_of
from gapless.traces.engines.spark import classic
from gapless.traces.engines.spark.connect import SparkConnect
from gapless.traces.judging.streaming.sorted_traces import ARGS, SortedTraces, TraceQuestion
from gapless.traces.problems import UsageError, shown
from gapless.traces.spark.dataframe_streams import streamed
from gapless.traces.suggestions import did_you_mean, one_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import Column, DataFrame

RESULT = (
    "source STRING, spec STRING, trace STRING, verdict STRING, rule STRING, position BIGINT, events BIGINT, "
    "story STRING"
)
TEXTS = frozenset({"string", "varchar", "char"})
INTEGERS = frozenset({"byte", "short", "integer", "long"})
NOTHING = frozenset({"void"})  # a column of nulls
NO_TRACE = "gapless: a row has no trace, so no trace is known to be whole: leave such rows out, or name their trace"


def check(
    df: DataFrame,
    spec: str,
    *,
    trace: str | Column = "trace",
    position: str | Column = "position",
    action: str | Column = "action",
    args: Mapping[str, str | Column] | str | None = None,
    outcome: str | Column | None = None,
    saw: str | Column | None = None,
    source: str = "DataFrame",
    profile: str | None = None,
    only: Sequence[str] = (),
    ignore: Sequence[str] = (),
    specs: Sequence[str | os.PathLike[str] | Spec] = (),
    stories: bool = True,
) -> DataFrame:
    """Judge the traces in a DataFrame: its rows are events, those of the result the verdict table, and the stories.

    `spec`: the name of the spec that all rows are events of · `trace`, `position`, `action`: the columns of these, by
    name or as expressions · `args`: the column of each argument, or the one struct column with all of them; by default
    the struct `args`, and columns with the names of arguments · `outcome`, `saw`: the columns of these; by default
    those of these names, if there are any · `source`: the name in the result · `profile`, `only`, `ignore`, `specs`: as
    `gapless.check` has them · `stories`: a story for each trace that departs, which takes a replay of its own.

    The result is lazy. Of a streaming DataFrame it streams too, in update mode: the last row of a trace is its verdict.
    A trace with a row that is no event, or with two rows of one position, is `unreadable`. Raises UsageError for
    columns that are missing or of other types, and EngineFailure if workers cannot be sent gapless.
    """
    question = _question(spec, source, profile, only, ignore, specs, stories=stories)
    rows = event_rows(df, question.spec, EventColumns(trace, position, action, args, outcome, saw))
    send_gapless(df.sparkSession)
    if df.isStreaming:
        return streamed(rows, question, RESULT)
    return rows.repartition(TRACE).sortWithinPartitions(TRACE, POSITION).mapInArrow(_judging(question), RESULT)


def _question(
    spec: str,
    source: str,
    profile: str | None,
    only: Sequence[str],
    ignore: Sequence[str],
    specs: Sequence[str | os.PathLike[str] | Spec],
    *,
    stories: bool,
) -> TraceQuestion:
    """Collect what is asked of each trace. Raises UsageError."""
    options = options_of(profile=STRICT if profile is None else profile, only=only, ignore=ignore, specs=specs)
    known = options.every_spec
    if spec not in known:
        raise UsageError(
            f"spec: there is no {shown(spec)}, expected {one_of(known)}{did_you_mean(spec, known)}; specs=[FILE] adds "
            "yours"
        )
    return TraceQuestion(known[spec], source, replace(options, listed=True), stories)


def _judging(question: TraceQuestion) -> Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]:
    """The function of a worker, which judges the rows of one partition."""

    def judge(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        return SortedTraces(question).judged(batches)

    return judge


# -- columns -------------------------------------------------------------------------------------------------------

TRACE, POSITION, ACTION, OUTCOME, SAW = "trace", "position", "action", "outcome", "saw"


@dataclass(frozen=True)
class EventColumns:
    """The columns of events in a user's DataFrame, as `check` takes them."""

    trace: str | Column
    position: str | Column
    action: str | Column
    args: Mapping[str, str | Column] | str | None
    outcome: str | Column | None
    saw: str | Column | None

    def of(self, df: DataFrame, spec: Spec) -> dict[str, str | Column]:
        """Return the column for each part of an event. Raises UsageError."""
        there = {name.lower(): name for name in df.columns}  # Spark does not tell cases apart
        found: dict[str, str | Column] = {TRACE: self.trace, POSITION: self.position, ACTION: self.action}
        for name, given in ((OUTCOME, self.outcome), (SAW, self.saw)):
            if given is not None or name in there:
                found[name] = there[name] if given is None else given
        for given in found.values():
            there.pop(given.lower() if isinstance(given, str) else "", None)
        return found | {ARGS + name: given for name, given in self._arguments(df, spec, there).items()}

    def _arguments(self, df: DataFrame, spec: Spec, free: dict[str, str]) -> dict[str, str | Column]:
        """Return the column for each argument that has one. `free`: columns that are nothing else, by lower case."""
        struct = self.args if isinstance(self.args, str) else free.get("args") if self.args is None else None
        if struct is not None:
            fields = _fields(df, struct)
            return {name: f"{_quoted(struct)}.{_quoted(name)}" for name in spec.arguments if name in fields}
        named = {} if self.args is None or isinstance(self.args, str) else dict(self.args)
        for name, given in named.items():
            if name not in spec.arguments:
                raise UsageError(
                    f"args: {spec.name} has no argument {shown(name)}, expected {one_of(spec.arguments)}"
                    f"{did_you_mean(name, spec.arguments)}"
                )
            free.pop(given.lower() if isinstance(given, str) else "", None)
        own = {name: _quoted(free[name]) for name in spec.arguments if name in free}
        return {name: named.get(name, own.get(name, "")) for name in spec.arguments if name in named or name in own}


def _fields(df: DataFrame, struct: str) -> set[str]:
    """Return the names of a struct's fields. Raises UsageError if the column is none."""
    kind = next((field.dataType for field in df.schema if field.name == struct), None)
    if kind is None:
        raise _missing(df, "args", struct)
    if kind.typeName() != "struct":
        raise UsageError(f"args: column {shown(struct)} is {kind.simpleString()}, expected a struct of integers")
    return set(kind.names)  # type: ignore[attr-defined]  # it is a struct


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))


def _missing(df: DataFrame, what: str, name: str) -> UsageError:
    return UsageError(
        f"{what}: there is no column {shown(name)}; there are {shown(', '.join(df.columns))}"
        f"{did_you_mean(name, df.columns)}"
    )


def event_rows(df: DataFrame, spec: Spec, columns: EventColumns) -> DataFrame:
    """Select the events' columns, with our names and types. Raises UsageError.

    The query fails if a row has no trace.
    """
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - few need Spark

    given = columns.of(df, spec)
    try:
        selected = {name: _column(df, column) for name, column in given.items()}
        kinds = df.select(*selected.values()).schema
    except AnalysisException:
        for name, column in given.items():
            _require_column(df, name, column)
        raise
    for (name, column), field in zip(given.items(), kinds, strict=True):
        _require_kind(name, column, field.dataType.typeName(), field.dataType.simpleString())
    named = df.select(*(column.alias(name) for name, column in selected.items()))
    made = {TRACE: f"coalesce(CAST(trace AS STRING), CAST(raise_error('{NO_TRACE}') AS STRING))"}
    return named.selectExpr(*(f"{made.get(name, _plain(name))} AS {_quoted(name)}" for name in given))


def _require_column(df: DataFrame, name: str, column: str | Column) -> None:
    """Raise UsageError if there is no such column, or no such expression."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - few need Spark

    try:
        _ = df.select(_column(df, column)).schema
    except AnalysisException as error:
        if isinstance(column, str):
            raise _missing(df, _called(name), column) from None
        raise UsageError(f"{_called(name)}: {shown(str(error).splitlines()[0])}") from None


def _called(name: str) -> str:
    """The name of a part of an event, as users have it."""
    return f"args.{name.removeprefix(ARGS)}" if name.startswith(ARGS) else name


def _column(df: DataFrame, given: str | Column) -> Column:
    if not isinstance(given, str):
        return given
    return df[_quoted(given) if given in df.columns else given]


def _plain(name: str) -> str:
    """The expression for a column in the one type that its part of an event has."""
    is_number = name == POSITION or name.startswith(ARGS)
    return f"CAST({_quoted(name)} AS {'BIGINT' if is_number else 'STRING'})"


def _require_kind(name: str, column: str | Column, kind: str, shows: str) -> None:
    """Raise UsageError if a column cannot be that part of an event."""
    if name in (TRACE, ACTION):
        fits, expected = TEXTS, "text"
    elif name in (OUTCOME, SAW):
        fits, expected = TEXTS | NOTHING, "text" if name == OUTCOME else "JSON text, as to_json makes it"
    elif name == POSITION:
        fits, expected = INTEGERS, "an integer"
    else:
        fits, expected = INTEGERS | NOTHING | {"boolean"}, "an integer"
    if kind not in fits:
        which = f"column {shown(column)}" if isinstance(column, str) else "the column"
        raise UsageError(f"{_called(name)}: {which} is {shows}, expected {expected}")


# -- workers -------------------------------------------------------------------------------------------------------


def send_gapless(session: Any) -> None:
    """Look at the workers of a session, and send this package to those that lack it. Raises EngineFailure."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        SparkConnect(session, 1, None).prepare()
        return
    with classic.started(None, None, None) as engine:
        engine.prepare()
