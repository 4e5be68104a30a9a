"""Traces in rows that are sorted by trace and position, judged as the rows arrive: a table is judged, and no file.

Traces that lie wholly in the rows at hand are judged as those of a file (`judge`). A longer trace continues as an open
trace (`open_traces`), and no row of it is kept. A trace with a row that is no event is unreadable, and no other trace
is: each is judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapless.spec.catalog import Spec
from gapless.traces.events.encoded_batch import EncodedBatch, Names, is_text, named
from gapless.traces.events.event import Ints
from gapless.traces.events.schema import EventSchema, with_specs
from gapless.traces.judging.columns import Traces, gathered
from gapless.traces.judging.findings.trace_stories import TraceStories, reason_of, text_of
from gapless.traces.judging.judge import Judge
from gapless.traces.judging.streaming.open_traces import DEPARTS, OpenTraces
from gapless.traces.judging.tallies import First, Suspect
from gapless.traces.options import Options
from gapless.traces.problems import EngineFailure, shown
from gapless.traces.replay.possible_states import Departs
from gapless.traces.report.outputs import verdict_table

PIECE = 1 << 17  # rows that are judged at once
BYTES = 64 << 20  # of such rows
LONG = 1 << 16  # rows of one trace, from which on it is judged as they arrive

ARGS = "args_"  # how the column of an argument begins: Spark takes a dot for a field
UNREADABLE = "unreadable"
RESULT = pa.schema([*verdict_table.COLUMNS, pa.field("story", pa.string())])
"""The verdict table, with the story of each trace that departs and the reason of each that was not judged."""

UNSORTED = "rows arrive in another order than by trace and position: nothing can be judged; please report this"


@dataclass(frozen=True)
class TraceQuestion:
    """The spec of all traces, how they are judged, and their `source` in the result; it travels to workers."""

    spec: Spec
    source: str
    options: Options
    stories: bool = True

    @property
    def events(self) -> EventSchema:
        """The events that may occur."""
        return with_specs(self.options.specs)


class RowBatch:
    """Rows as events of one spec, with the faults of each trace that has some.

    `columns`: `trace`, `position` and `action`, maybe `outcome` and `saw`, and `args_NAME` for each argument.
    """

    def __init__(self, question: TraceQuestion, columns: pa.RecordBatch) -> None:
        self.question = question
        self.count = columns.num_rows
        given = dict(zip(columns.schema.names, columns.columns, strict=True))
        self.trace = named(given["trace"])
        self.of: Ints = self.trace.indices.to_numpy().astype(np.int64)
        self.position: pa.Array[Any] = given["position"]
        args = {name.removeprefix(ARGS): column for name, column in given.items() if name.startswith(ARGS)}
        fixed: dict[str, Any] = {
            "source": _repeated("", self.count),
            "spec": _repeated(question.spec.name, self.count),
            "trace": self.trace,
        }
        fixed |= {name: given[name] for name in ("position", "action", "outcome", "saw") if name in given}
        if args:
            fixed["args"] = pa.StructArray.from_arrays(list(args.values()), names=list(args))
        self.events = pa.RecordBatch.from_arrays(list(fixed.values()), names=list(fixed))

    def names(self) -> list[bytes]:
        """The names of the traces, as bytes: not all bytes are text."""
        found: list[Any] = self.trace.dictionary.cast(pa.binary()).to_pylist()
        return found

    def encoded(self) -> EncodedBatch | None:
        """Encode all events; None if one of them may be wrong."""
        return None if self._repeats().any() else self.question.events.in_columns(self.events)

    def faults(self) -> dict[int, str]:
        """Find the traces with a row that is no event, each with a sentence about the first such row."""
        schema = self.question.events
        events, garbled = _as_text(self.events)
        same = schema.conformed(events)
        repeats, wrong = self._repeats(), schema.wrong(same)
        found: dict[int, str] = {}
        for row in np.flatnonzero(wrong | repeats | garbled).tolist():
            if (trace := int(self.of[row])) in found:
                continue
            if self.position[row].as_py() is None:
                found[trace] = "A row of it has no position."
            elif garbled[row]:
                found[trace] = self._at(row, "a text is not in UTF-8")
            elif wrong[row]:
                found[trace] = self._at(row, schema.why_wrong(same, row))
            else:
                found[trace] = self._at(row, "two rows have it, so that no order is known")
        return found

    def sound(self, faults: Iterable[int]) -> list[Traces]:
        """Return the traces without faults, as columns; nothing if there are none."""
        bad = np.zeros(len(self.trace.dictionary), np.bool_)
        bad[list(faults)] = True
        rest = self.events.filter(pa.array(~bad[self.of]))
        return gathered([rest], self.question.events) if rest.num_rows else []

    def _at(self, row: int, what: str) -> str:
        return f"Position {self.position[row].as_py()}: {shown(what)}."

    def _repeats(self) -> Any:
        """Mark the rows that have the position of the row before them, in the same trace."""
        position = self.position.fill_null(0).to_numpy(zero_copy_only=False)
        found = np.zeros(self.count, np.bool_)
        found[1:] = (position[1:] == position[:-1]) & (self.of[1:] == self.of[:-1])
        return found


def _repeated(text: str, count: int) -> Names:
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([text], pa.string()))


def _as_text(events: pa.RecordBatch) -> tuple[pa.RecordBatch, Any]:
    """Return the same events in valid UTF-8, and mark those that were not."""
    garbled = np.zeros(events.num_rows, np.bool_)
    columns = []
    for column in events.columns:
        if is_text(column.type):
            texts = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
            try:
                texts.validate(full=True)
            except pa.ArrowInvalid:
                raw = texts.cast(pa.binary()).to_pylist()
                made = [None if text is None else text.decode(errors="backslashreplace") for text in raw]
                garbled |= [
                    text is not None and text != some.encode() for text, some in zip(raw, map(_text, made), strict=True)
                ]
                column = pa.array(made, pa.string())  # noqa: PLW2901 - the same, as text
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=events.schema.names), garbled


def _text(text: str | None) -> str:
    return text or ""


class SortedTraces:
    """Judges rows of one spec that are sorted by trace and position."""

    def __init__(self, question: TraceQuestion) -> None:
        self.question = question
        self.stories = TraceStories(question.options)
        self.long: LongTrace | None = None
        self.last: bytes | None = None  # the name of the last trace so far

    def judged(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of `RESULT`, one for each trace. Raises EngineFailure if the rows are not sorted."""
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            if batch.num_rows:
                waiting.append(batch)
            if sum(some.num_rows for some in waiting) < PIECE and sum(some.nbytes for some in waiting) < BYTES:
                continue
            rows = self._together(waiting)
            of_last = _of_last(rows)
            yield from self._whole(rows.slice(0, len(rows) - of_last))
            last = rows.slice(len(rows) - of_last)
            if self._is_open(last) or of_last >= LONG or last.nbytes >= BYTES // 2:
                yield from self._continue(last)
                waiting = []
            else:
                waiting = [last]
        if waiting:
            yield from self._whole(self._together(waiting))
        yield from self._close()

    def _together(self, waiting: list[pa.RecordBatch]) -> pa.RecordBatch:
        """Combine some batches. Raises EngineFailure if their traces do not rise."""
        (rows,) = pa.Table.from_batches(waiting).combine_chunks().to_batches()
        names = named(rows.column("trace")).dictionary.cast(pa.binary())
        of = named(rows.column("trace")).indices.to_numpy()
        rises = (of[1:] >= of[:-1]).all() and pc.all(pc.less(names[:-1], names[1:])).as_py() is not False
        first = names[0].as_py()
        if not rises or (self.last is not None and first < self.last):
            raise EngineFailure(UNSORTED)
        self.last = names[-1].as_py()
        return rows

    def _is_open(self, rows: pa.RecordBatch) -> bool:
        """True if rows begin with a trace that is open."""
        return self.long is not None and rows.num_rows > 0 and _name(rows, 0) == self.long.name

    def _continue(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take rows of one long trace; others that are open end."""
        if not self._is_open(rows):
            yield from self._close()
            self.long = LongTrace(self.question, _name(rows, 0))
        assert self.long is not None  # noqa: S101 - for the type checker: it was made
        self.long.take(rows)

    def _close(self) -> Iterator[pa.RecordBatch]:
        """Yield the row of the long trace, if one is open."""
        if self.long is not None:
            yield self.long.row()
            self.long = None

    def _whole(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Judge traces that end in these rows; the first may be the open one."""
        if self._is_open(rows):
            batch = RowBatch(self.question, rows)
            here = int((batch.of == 0).sum())
            yield from self._continue(rows.slice(0, here))
            rows = rows.slice(here)
        if rows.num_rows:
            yield from self._close()
            yield from self._judged(RowBatch(self.question, rows))

    def _judged(self, batch: RowBatch) -> Iterator[pa.RecordBatch]:
        events = batch.encoded()
        if events is not None:
            (traces,) = gathered([events], self.question.events, looked_up=False)
            yield self._rows(traces)
            return
        faults = batch.faults()
        counts = np.bincount(batch.of, minlength=len(batch.trace.dictionary))
        names = batch.names()
        for trace, why in faults.items():
            yield unreadable(self.question, names[trace], int(counts[trace]), why)
        for traces in batch.sound(faults):
            yield self._rows(traces)

    def _rows(self, traces: Traces) -> pa.RecordBatch:
        """Judge whole traces."""
        if traces.falls():
            raise EngineFailure(UNSORTED)
        judge = Judge(self.question.source, self.question.options)
        judge.take(traces, np.ones(len(traces.names), np.bool_))
        (verdicts,) = judge.verdicts
        stories: list[str | None] = [None] * len(traces.names)
        if self.question.stories:
            verdicts, stories = self.stories.column(traces, verdicts)
        return with_stories(verdicts, stories)


class LongTrace:
    """A trace whose rows are not all at hand: the states that are possible after them, and the story if it departs.

    The story begins with the rows in which the trace departs: earlier ones are not kept.
    """

    def __init__(self, question: TraceQuestion, name: bytes) -> None:
        self.question = question
        self.name = name
        self.rows = 0
        self.last: int | None = None
        self.unreadable = ""
        self.story: str | None = None
        self.open = OpenTraces(question.spec, question.options)

    def take(self, rows: pa.RecordBatch) -> None:
        """Judge more rows."""
        batch = RowBatch(self.question, rows)
        self.rows += batch.count
        if self.unreadable:
            return
        first = batch.position[0].as_py()
        if self.last is not None and first == self.last:
            self.unreadable = f"Position {first}: two rows have it, so that no order is known."
            return
        events = batch.encoded()
        if events is None:
            self.unreadable = batch.faults().get(0, "")
            if self.unreadable:
                return
        self.last = batch.position[-1].as_py()
        for traces in batch.sound([]) if events is None else gathered([events], self.question.events):
            traces.row[:] += self.rows - batch.count
            self.open.take(traces)
            self._look(traces)

    def _look(self, traces: Traces) -> None:
        """Note the story of a departure, or the reason that there is no verdict, and forget all else."""
        one = self.open
        if one.tally.falls:
            raise EngineFailure(UNSORTED)
        if self.story is None and self.question.stories:
            if one.known.verdict[0] == DEPARTS:
                self.story = self._departure(traces)
            elif one.tally.unopened or one.tally.unpromised or one.tally.given_up:
                self.story = reason_of(one.tally)
        one.forget_stories()

    def _departure(self, traces: Traces) -> str:
        one, name = self.open, self.name.decode(errors="backslashreplace")
        position = int(one.known.position[0])
        at = int(np.searchsorted(traces.position, position))
        first = self.rows - len(traces.of)  # rows before these

        def position_of(number: int) -> int:
            return int(traces.position[number - 1 - first])

        later = f"\nRows before position {traces.position[0]} are not kept, and none of them is shown." * bool(first)
        if one.departing:
            replayed = one.departing[0].replayed
            taken = next(taken for number, taken in enumerate(traces.taken(0)) if number == at)
            try:
                replayed.take(taken)
            except Departs as departs:
                suspect = Suspect(First(taken.row, position, name), departs.in_brief(replayed), departs.also)
                return text_of(suspect, name, position_of) + later
        (suspect,) = one.explained.values()
        return text_of(suspect, name, position_of) + later

    def row(self) -> pa.RecordBatch:
        """Return its row of `RESULT`."""
        if self.unreadable:
            return unreadable(self.question, self.name, self.rows, self.unreadable)
        verdicts = self.open.rows(self.question.source)
        story = self.story
        if story is None and self.question.stories and verdicts.column("verdict")[0].as_py() != "conforms":
            story = reason_of(self.open.tally)
        return with_stories(verdicts, [story])


def unreadable(question: TraceQuestion, name: bytes, rows: int, why: str) -> pa.RecordBatch:
    """Return the row of a trace that cannot be judged."""
    row = {
        "source": question.source, "spec": question.spec.name, "trace": name.decode(errors="backslashreplace"),
        "verdict": UNREADABLE, "rule": None, "position": None, "events": rows, "story": why,
    }  # fmt: skip
    return pa.RecordBatch.from_pylist([row], schema=RESULT)


def with_stories(verdicts: pa.RecordBatch, stories: list[str | None]) -> pa.RecordBatch:
    """Add the column of stories to verdict rows."""
    return pa.RecordBatch.from_arrays([*verdicts.columns, pa.array(stories, pa.string())], schema=RESULT)


def _name(rows: pa.RecordBatch, row: int) -> bytes:
    found: bytes = rows.column("trace").slice(row, 1).cast(pa.binary())[0].as_py()
    return found


def _of_last(rows: pa.RecordBatch) -> int:
    """Return how many rows the last trace has."""
    trace = rows.column("trace").cast(pa.binary())
    return int(np.count_nonzero(pc.equal(trace, trace[-1]).to_numpy(zero_copy_only=False)))
