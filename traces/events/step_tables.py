"""Column-wise checks of events against the specs: each must be a step with its arguments.

What fits is judged as it is. The rest may be wrong, or only unusual: `schema.py` reads that again, and decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BeforeValidator, Field, TypeAdapter

from gapless.spec.catalog import Spec
from gapless.traces.events.encoded_batch import (
    EncodedBatch,
    IntegerColumn,
    Names,
    fields,
    integers,
    is_text,
    named,
    text_codes,
)
from gapless.traces.events.event import OUTCOMES, Ints, Vocabulary, seen, sorted_text
from gapless.traces.events.lines.plain_lines import PlainBlock, PlainLines, ValueKind


def without_nulls(given: Any) -> Any:
    """Drop nulls: null and absent are equivalent, so that a recorder may write every column of every event."""
    return {key: value for key, value in given.items() if value is not None} if isinstance(given, dict) else given


def numbers(given: Any) -> Any:
    """Return numbers by name, without nulls; true and false become 1 and 0."""
    given = without_nulls(given)
    if isinstance(given, dict) and any(isinstance(value, bool) for value in given.values()):
        return {key: int(value) if isinstance(value, bool) else value for key, value in given.items()}
    return given


Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Integers = Annotated[dict[str, Integer], BeforeValidator(numbers)]


SAW = TypeAdapter(Integers)
LINE = {
    "source": ValueKind.TEXT,
    "spec": ValueKind.TEXT,
    "trace": ValueKind.TEXT,
    "position": ValueKind.INTEGER,
    "action": ValueKind.TEXT,
    "args": ValueKind.NESTED,
    "outcome": ValueKind.TEXT,
    "saw": ValueKind.INTEGERS,
}
REQUIRED = ("source", "spec", "trace", "position", "action")


class StepTables:
    """The steps of some specs, and the arguments of each.

    `steps`: every step as (spec, action) · `arguments`: of all steps, a column each · `leaves`: the Parquet names of
    these · `columns`: of a batch.
    """

    def __init__(self, specs: Mapping[str, Spec]) -> None:
        self.specs = specs
        self.vocabulary = Vocabulary({name: spec.parameters for name, spec in specs.items()})
        known = self.vocabulary.specs
        self.steps = tuple((spec, action) for spec, actions in known.items() for action in actions)
        self.arguments = self.vocabulary.arguments
        self.leaves = frozenset(f"args.{name}" for name in self.arguments)
        self.columns = self.vocabulary.schema
        self.names = frozenset(self.columns.names)
        self.plain = PlainLines(LINE, {"args": self.arguments})
        self.actions = tuple(dict.fromkeys(action for _, action in self.steps))
        self.takes = np.array([[name in known[spec][action] for name in self.arguments] for spec, action in self.steps])
        self.flags = np.array([[a in specs[spec].flags[action] for a in self.arguments] for spec, action in self.steps])
        self.step_of = np.full((len(specs) + 1, len(self.actions) + 1), -1, np.int64)  # the last: no such name
        places = {name: number for number, name in enumerate(specs)}
        self.steps_spec = np.array([places[spec] for spec, _ in self.steps])
        for number, (spec, action) in enumerate(self.steps):
            self.step_of[places[spec], self.actions.index(action)] = number

    def in_columns(self, batch: pa.RecordBatch) -> EncodedBatch | None:
        """Encode the events of a batch; None if anything may be wrong."""
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
        return self._fitting(step, named(columns["trace"]), position.values, outcome, args, columns.get("saw"))

    def of_plain(self, lines: PlainBlock) -> EncodedBatch | None:
        """Encode the events of plain lines; None if anything may be wrong."""
        number = self.plain.number
        if not lines.utf8() or not all(lines.has(number[name]).all() for name in REQUIRED):
            return None
        spec, action, trace, outcome = (lines.texts(number[name]) for name in ("spec", "action", "trace", "outcome"))
        outcomes = _outcomes(outcome, lines.count)
        if outcomes is None:
            return None
        args = {
            name: lines.given(number[name, "args"]) for name in self.arguments if lines.is_met(number[name, "args"])
        }
        step, position = self._steps(spec, action), lines.integers(number["position"])
        try:
            saw = _texts_of(lines.texts(number["saw"]))
        except ValueError:  # a key stands in it twice
            return None
        return self._fitting(step, named(trace), position, outcomes, args, saw)

    def _given(self, column: pa.Array[Any] | None) -> dict[str, IntegerColumn] | None:
        """Return the arguments that some events have; None if one is no integer, or unknown."""
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
        """Return the step of every event; -1 where it is none."""
        specs, actions = text_codes(spec, self.specs), text_codes(action, self.actions)
        if len(specs) and not specs.strides[0]:  # one spec throughout
            alone: Ints = self.step_of[specs[0]].take(actions)
            return alone
        found: Ints = self.step_of[specs, actions]
        return found

    def _fitting(
        self,
        step: Ints,
        trace: Names,
        position: Ints,
        outcome: npt.NDArray[np.int8],
        args: Mapping[str, IntegerColumn],
        saw: pa.Array[Any] | None,
    ) -> EncodedBatch | None:
        """Build a batch if all events are steps with their arguments and observed fields of their specs; else None."""
        if step.min(initial=0) < 0 or trace.dictionary.null_count:
            return None
        if not self._have_their_arguments(step, args) or not self._may_see(step, saw):
            return None
        saw = None if saw is None or saw.null_count == len(saw) else saw
        return EncodedBatch(step, trace, position, outcome, {name: given.values for name, given in args.items()}, saw)

    def _have_their_arguments(self, step: Ints, args: Mapping[str, IntegerColumn]) -> bool:
        """True if every event has exactly the arguments of its step, and every flag is 1 or 0."""
        occurring = np.flatnonzero(np.bincount(step))
        takes, flags = self.takes[occurring], self.flags[occurring]
        some: list[bool] = np.logical_or.reduce(takes, axis=0).tolist()
        every: list[bool] = np.logical_and.reduce(takes, axis=0).tolist()
        some_flag: list[bool] = np.logical_or.reduce(flags, axis=0).tolist()
        only_flags: list[bool] = np.logical_and.reduce(flags, axis=0).tolist()
        for at, name in enumerate(self.arguments):
            if name not in args:
                if some[at]:
                    return False
                continue
            values, there = args[name]
            fits = every[at] if there is None else (self.takes[:, at].take(step) == there).all()
            if not fits:
                return False
            if some_flag[at]:
                flag = values if only_flags[at] else values[self.flags[step, at]]
                if flag.min() < 0 or flag.max() > 1:
                    return False
        return True

    def _may_see(self, step: Ints, saw: pa.Array[Any] | None) -> bool:
        """True if all observed values are fields of the event's spec: each text is read once for each spec."""
        if saw is None or pa.types.is_null(saw.type):
            return True
        if not is_text(saw.type):
            return False
        if saw.null_count == len(saw):
            return True
        at = np.flatnonzero(saw.is_valid().to_numpy(zero_copy_only=False))
        texts = saw.drop_null().cast(pa.string()).dictionary_encode()
        pairs = np.unique(texts.indices.to_numpy() * np.int64(len(self.steps)) + self.steps_spec[step[at]])
        names = list(self.specs)
        known = texts.dictionary.to_pylist()
        return all(
            self.may_be_seen(known[pair // len(self.steps)], names[pair % len(self.steps)]) for pair in pairs.tolist()
        )

    def may_be_seen(self, text: str, spec: str) -> bool:
        """True if a text lists fields of a spec."""
        try:
            return SAW.validate_python(seen(text), strict=True).keys() <= set(self.specs[spec].scalars)
        except ValueError:
            return False


def _texts_of(saw: Names) -> pa.Array[Any] | None:
    """Return the observed values, each formatted by `sorted_text`; None if there are none."""
    if not len(saw.dictionary):
        return None
    texts = [sorted_text(numbers(seen(str(text)))) for text in saw.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(saw.indices, pa.array(texts, pa.string())).dictionary_decode()


def _outcomes(column: pa.Array[Any] | None, count: int) -> npt.NDArray[np.int8] | None:
    """Return the outcome of every event, `ok` if left out; None if there is another value."""
    if column is None or pa.types.is_null(column.type):
        return np.zeros(count, np.int8)
    if not is_text(column.type):
        return None
    found = text_codes(column, OUTCOMES).astype(np.int8)
    if column.null_count:
        found[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return None if found.min(initial=0) < 0 else found
