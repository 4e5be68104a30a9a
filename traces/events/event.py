"""The columns of an event, and the vocabulary of its writer. `schema.py` checks events against the specs.

An implementation that records its own steps needs this and `writing.py`, and nothing else of the checker.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic_core import from_json

from gapless.traces.problems import may_repeat, twice

Ints = npt.NDArray[np.int64]

NAME = "gapless-events"
VERSION = 1  # raised when a column changes its meaning; a new spec only adds arguments, and raises nothing
ROWS = 1 << 16  # events in a batch, and in a row group or a quarter of it: what a reader or a writer holds at once

Outcome = Literal["ok", "refused", "unknown", "inferred"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
TAKEN = np.array([outcome in {"ok", "inferred"} for outcome in OUTCOMES])


@dataclass(frozen=True)
class Origin:
    """Metadata of a file for all of its events: their origin, and how to judge them. Empty: not stated."""

    kind: str = ""  # of source, such as `rocketmq-store`: for people
    profile: str = ""  # whose known deviations are anomalies, unless the user names a profile
    undecided: str = ""  # why not everything could be judged, a line for each reason: no event says so


UNSAID = Origin()


class NoEvent(Exception):  # noqa: N818 - it names a finding.
    """A row or a line that is no event: the number of events before it, and the problem."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(what)
        self.row = row
        self.what = what


@dataclass(frozen=True)
class Vocabulary:
    """The steps of a writer or reader: the actions of each spec, and the arguments of each action."""

    specs: Mapping[str, Mapping[str, Sequence[str]]]

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Every argument once; each is a column of integers."""
        return tuple(dict.fromkeys(name for spec in self.specs for name in self.arguments_of(spec)))

    def arguments_of(self, spec: str) -> tuple[str, ...]:
        """Every argument of one spec once."""
        return tuple(dict.fromkeys(name for names in self.specs[spec].values() for name in names))

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of event columns; its metadata contains the version of their meaning."""
        columns: list[pa.Field[Any]] = [
            pa.field("source", pa.string(), nullable=False),
            pa.field("spec", pa.string(), nullable=False),
            pa.field("trace", pa.string(), nullable=False),
            pa.field("position", pa.int64(), nullable=False),
            pa.field("action", pa.string(), nullable=False),
            pa.field("args", pa.struct([pa.field(name, pa.int64()) for name in self.arguments]), nullable=False),
            pa.field("outcome", pa.string(), nullable=False),
            pa.field("saw", pa.string()),  # JSON text, for it is rare, and its fields differ from spec to spec
        ]
        return pa.schema(columns, metadata={NAME: str(VERSION)})


def from_columns(
    vocabulary: Vocabulary,
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
    """Build a batch of one spec's events from columns as kernels take them. Nothing was observed after the steps.

    `traces`: names of the subjects · `trace`: int64 [events], the index of each event's subject; without it all are of
    the first · `position`: int64 [events] · `action`: int8 [events], in the order of the vocabulary · `args`: int64
    [`arguments_of` the spec, events] · `outcome`: int8 [events], of `OUTCOMES`; without it all steps were taken.
    """
    parameters, own, count = vocabulary.specs[spec], vocabulary.arguments_of(spec), len(action)
    takes = {name: np.array([name in names for names in parameters.values()]) for name in own}
    nulls = pa.nulls(count, pa.int64())  # once: most columns are of no use to one spec
    columns = [
        pa.array(args[own.index(name)], mask=~takes[name][action]) if name in own else nulls
        for name in vocabulary.arguments
    ]
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(utf8(source), count),
            pa.repeat(spec, count),
            _spread([utf8(name) for name in traces], np.zeros(count, np.int64) if trace is None else trace),
            pa.array(position, pa.int64()),
            _spread(parameters, action),
            pa.StructArray.from_arrays(columns, fields=list(vocabulary.schema.field("args").type)),
            pa.repeat("ok", count) if outcome is None else _spread(OUTCOMES, outcome),
            pa.nulls(count, pa.string()),
        ],
        schema=vocabulary.schema,
    )


def utf8(name: str) -> str:
    """Escape the part of a name that is not UTF-8: file names and topics may be any bytes."""
    return name.encode(errors="backslashreplace").decode()


def _spread(names: Iterable[str], index: npt.NDArray[Any]) -> pa.Array[Any]:
    """Repeat the names by index."""
    return pa.DictionaryArray.from_arrays(pa.array(index), pa.array(list(names), pa.string())).dictionary_decode()


def codes(column: pa.Array[Any], names: Iterable[str]) -> npt.NDArray[np.int32]:
    """Look up every value in `names`; -1 where it is missing."""
    found = pc.index_in(column, value_set=pa.array(list(names), pa.string()))
    return found.fill_null(-1).to_numpy(zero_copy_only=False)


def argument(batch: pa.RecordBatch, name: str) -> pa.Array[Any]:
    """Return the column of one argument."""
    column: pa.Array[Any] = pc.struct_field(batch.column("args"), name)
    return column


def rows(batch: pa.RecordBatch, vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """Yield every event as a dictionary for its line, without nulls and defaults."""
    args = {name: argument(batch, name).to_pylist() for name in vocabulary.arguments}
    others = (name for name in vocabulary.schema.names if name != "args")
    plain: dict[str, list[Any]] = {name: batch.column(name).to_pylist() for name in others}
    for at in range(batch.num_rows):
        row = {name: plain[name][at] for name in ("source", "spec", "trace", "position", "action")}
        if names := vocabulary.specs[row["spec"]][row["action"]]:
            row["args"] = {name: args[name][at] for name in names}
        if plain["outcome"][at] != "ok":
            row["outcome"] = plain["outcome"][at]
        if plain["saw"][at] is not None:
            row["saw"] = dict(sorted(seen(plain["saw"][at]).items()))
        yield row


def seen(text: str) -> dict[str, int]:
    """Parse a value of column `saw`. Raises ValueError."""
    found = parsed(text)
    if not isinstance(found, dict):
        raise ValueError(f"{text} is no object")  # noqa: TRY004 - what a text holds is a value
    return found


def sorted_text(saw: dict[str, int]) -> str:
    """Format what was observed, with sorted keys: equal content has equal text."""
    return text_of(dict(sorted(saw.items())))


def text_of(value: object) -> str:
    """Format a value as JSON on one line."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def parsed(text: str | bytes) -> Any:
    """Parse strict JSON, fast. Raises ValueError, also for a repeated key, which readers treat differently."""
    value = from_json(text, allow_inf_nan=False, cache_strings="keys")
    if may_repeat(text, value):
        json.loads(text, object_pairs_hook=_each_once)
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    """Raise ValueError if two keys of an object are the same."""
    if name := twice([name for name, _ in pairs]):
        raise ValueError(f"the key {name!r} stands there twice")
