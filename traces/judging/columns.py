"""Recorded events as columns, trace by trace, and their transport from one task to another.

Events are gathered spec by spec as they are read. Those of a trace that may continue elsewhere are packed into bytes, a
few rows or many, and become columns again when the whole trace comes together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gapless.native import BYTES, INTS32, WORDS, native, uint64
from gapless.spec.catalog import Spec
from gapless.traces.events.encoded_batch import EncodedBatch, Names, named
from gapless.traces.events.event import OUTCOMES, ROWS, seen, sorted_text
from gapless.traces.events.schema import OURS, EventSchema
from gapless.traces.judging.tallies import First
from gapless.traces.replay.kernels import Ints
from gapless.traces.replay.possible_states import TraceEvent

Hashes = npt.NDArray[np.uint64]
"""Hashes of trace names: equal names have equal hashes, and others hardly ever."""

AT_ONCE = 1 << 16  # events of one trace that become objects at once
FEW = 64  # events of a trace that is short
NARROW = (np.int8, np.int16, np.int32, np.int64)


@dataclass(frozen=True)
class Traces:
    """Events of one spec, in columns, in the file's order.

    `names`: of the traces · `of`: int32, the trace of an event · `order`: the events trace by trace, None if they lie
    like that already · `starts`: int64 [traces + 1], where each begins in that order · `row`, `position`: int64 ·
    `action`, `outcome`: int8, codes · `args`: int64, a column for every argument of the spec · `saw`: by event.
    """

    spec: Spec
    names: pa.Array[Any]
    of: npt.NDArray[np.int32]
    order: Ints | None
    starts: Ints
    row: Ints
    position: Ints
    action: npt.NDArray[np.int8]
    outcome: npt.NDArray[np.int8]
    args: list[Ints]
    saw: dict[int, dict[str, int]]

    def name(self, trace: int) -> str:
        """Return the name of one trace."""
        return str(self.names[trace].as_py())

    def events(self, low: int, high: int) -> Ints:
        """Return the events at `low:high` in the order of traces."""
        return np.arange(low, high) if self.order is None else self.order[low:high]

    def only(self, trace: int, low: int, high: int) -> Traces:
        """Return the events `low:high` of one trace, counted from 0."""
        events = self.events(int(self.starts[trace]) + low, int(self.starts[trace]) + high)
        count = len(events)
        saw = {new: self.saw[old] for new, old in enumerate(events.tolist()) if old in self.saw} if self.saw else {}
        return Traces(
            self.spec, self.names.slice(trace, 1), np.zeros(count, np.int32), None, np.array([0, count], np.int64),
            self.row[events], self.position[events], self.action[events], self.outcome[events],
            [column[events] for column in self.args], saw,
        )  # fmt: skip

    def first(self, event: int) -> First:
        """Return the place of one event."""
        return First(int(self.row[event]), int(self.position[event]), self.name(int(self.of[event])))

    def begins(self) -> Ints:
        """The first event of every trace."""
        return self.starts[:-1] if self.order is None else self.order[self.starts[:-1]]

    def ends(self) -> Ints:
        """The last event of every trace."""
        return self.starts[1:] - 1 if self.order is None else self.order[self.starts[1:] - 1]

    def taken(self, trace: int) -> Iterator[TraceEvent]:
        """Yield the events of one trace, one by one."""
        places = _places(self.spec)
        for low in range(self.starts[trace], self.starts[trace + 1], AT_ONCE):
            for at in self.events(low, min(low + AT_ONCE, int(self.starts[trace + 1]))).tolist():
                name, mine = places[self.action[at]]
                event = name, tuple(int(self.args[place][at]) for place in mine)
                outcome = OUTCOMES[self.outcome[at]]
                yield TraceEvent(event, outcome, self.saw.get(at), int(self.position[at]), int(self.row[at]))

    def falls(self) -> First | None:
        """Find the first event in the file with a lower position than the one before it in its trace."""
        position, of = self.position, self.of
        if self.order is not None and (position[1:] >= position[:-1]).all():
            return None  # nor in the order of traces, then
        if self.order is not None:
            position, of = position[self.order], of[self.order]
        behind = 1 + np.flatnonzero((position[1:] < position[:-1]) & (of[1:] == of[:-1]))
        events = behind if self.order is None else self.order[behind]
        return self.first(int(events[self.row[events].argmin()])) if len(events) else None


@cache
def _places(spec: Spec) -> list[tuple[str, list[int]]]:
    """Each action's name, and the columns of its arguments, by its code."""
    return [(name, [spec.arguments.index(a) for a in spec.parameters[name]]) for name in spec.actions]


# -- as they are read ----------------------------------------------------------------------------------------------


def gathered(
    batches: Iterable[pa.RecordBatch | EncodedBatch], of: EventSchema = OURS, row: int = 0, *, looked_up: bool = True
) -> list[Traces]:
    """Gather the events of batches by spec, in the order in which the specs appear. `row`: that of the first event.

    Not `looked_up`: a name that occurs twice in one dictionary may become two traces, which have the same hash.
    """
    found: dict[int, _ColumnBuilder] = {}
    for batch in batches:
        events = batch if isinstance(batch, EncodedBatch) else of.coded(batch)
        specs = np.unique(of.steps_spec[np.flatnonzero(np.bincount(events.step))]).tolist()
        for code in specs:
            if code not in found:
                found[code] = _ColumnBuilder(of, code)
            mine = np.flatnonzero(of.steps_spec[events.step] == code) if len(specs) > 1 else None
            found[code].take(events, mine, row)
        row += len(events)
    return [gathering.done(looked_up=looked_up) for gathering in found.values()]


def are_short(batches: Sequence[EncodedBatch]) -> bool:
    """True if there are several batches, and most of their traces have a few events each."""
    sizes = ((len(batch), len(batch.trace.dictionary)) for batch in batches)
    return len(batches) > 1 and all(traces <= events <= FEW * traces for events, traces in sizes)


class _ColumnBuilder:
    """Builds the columns of one spec while events arrive."""

    def __init__(self, of: EventSchema, code: int) -> None:
        self.spec = list(of.specs.values())[code]
        self.first_step = of.steps.index((self.spec.name, next(iter(self.spec.actions))))
        self.traces: list[Names] = []
        self.saw: dict[int, dict[str, int]] = {}
        self.count = 0
        self.columns: list[list[npt.NDArray[Any]]] = [[] for _ in _kinds(self.spec)]

    def take(self, events: EncodedBatch, mine: Ints | None, row: int) -> None:
        """Add the events that are `mine`, or all, which are all of this spec; `row`: how many come before `events`."""
        count = len(events)
        nothing = np.broadcast_to(np.int64(0), count)
        values: list[npt.NDArray[Any]] = [
            np.arange(row, row + count),
            events.position,
            events.step - self.first_step,
            events.outcome,
            *(events.args.get(name, nothing) for name in self.spec.arguments),
        ]
        if mine is None:
            self.add(events.trace, values, events.saw)
            return
        saw = None if events.saw is None else events.saw.take(mine)
        self.add(events.trace.take(pa.array(mine, pa.int64())), [column[mine] for column in values], saw)

    def unpack(self, table: pa.Table, first_row: int) -> None:
        """Add events that were packed; `first_row` is where in the file their rows are counted from."""
        for batch in table.to_batches():
            nothing = np.broadcast_to(np.int64(0), batch.num_rows)
            there = set(batch.schema.names)
            row, *values = (
                batch.column(name).to_numpy() if name in there else nothing for name, _ in _kinds(self.spec)
            )
            self.add(named(batch.column("trace")), [row.astype(np.int64) + first_row, *values], batch.column("saw"))

    def add(self, trace: Names, values: Sequence[npt.NDArray[Any]], saw: pa.Array[Any] | None) -> None:
        """Add events: the names of their traces, a column for each of ours, and the observations."""
        self.traces.append(trace)
        for parts, new, (_, kind) in zip(self.columns, values, _kinds(self.spec), strict=True):
            parts.append(new.astype(kind, copy=False))
        if saw is not None and saw.null_count < len(saw):
            self.saw |= {self.count + at: seen(text) for at, text in enumerate(saw.to_pylist()) if text is not None}
        self.count += len(trace)

    def done(self, *, looked_up: bool = True) -> Traces:
        """Return all that was added; `gathered` explains `looked_up`."""
        row, position, action, outcome, *args = (self._whole(parts) for parts in self.columns)
        if not looked_up and len(self.traces) == 1 and (bounds := _lying_in_order(self.traces[0])) is not None:
            names, of = self.traces[0].dictionary, self.traces[0].indices.to_numpy()
            return Traces(self.spec, names, of, None, bounds, row, position, action, outcome, args, self.saw)
        unified: Any = pa.chunked_array(self.traces).unify_dictionaries()
        names, of = _in_order(unified.chunks)
        starts = np.zeros(len(names) + 1, np.int64)
        np.cumsum(np.bincount(of, minlength=len(names)), out=starts[1:])
        order = None if (of[1:] >= of[:-1]).all() else _sorted(of, len(names))
        return Traces(self.spec, names, of, order, starts, row, position, action, outcome, args, self.saw)

    def _whole(self, parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Concatenate one column of all parts, and release them: two columns of everything are never in memory.

        The result may be written to, unlike arrow's memory: kernels are compiled once for each of the two.
        """
        alone = len(parts) == 1 and parts[0].flags.writeable
        whole: npt.NDArray[Any] = parts[0] if alone else np.concatenate(parts)
        parts.clear()
        return whole


def _lying_in_order(trace: Names) -> Ints | None:
    """Return where each trace begins and the last ends, if all lie one after the other as their names do; or None."""
    of, count = trace.indices.to_numpy(), len(trace.dictionary)
    if not len(of) or of[0] != 0 or of[-1] != count - 1:
        return None
    steps = of[1:] - of[:-1]
    if len(steps) and not 0 <= int(steps.min()) <= int(steps.max()) <= 1:
        return None
    return np.concatenate([np.zeros(1, np.int64), np.flatnonzero(steps) + 1, np.full(1, len(of), np.int64)])


def _in_order(chunks: Sequence[Names]) -> tuple[pa.Array[Any], npt.NDArray[np.int32]]:
    """Return the names that occur, each once, in order, and the index of every event's."""
    once = chunks[0].dictionary.dictionary_encode()  # a dictionary may have a name twice, and names that never occur
    of = np.concatenate([chunk.indices.to_numpy() for chunk in chunks])
    of = of if len(once.dictionary) == len(once) else once.indices.to_numpy()[of]
    first = np.full(len(once.dictionary), len(of), np.int64)
    first[of[::-1]] = np.arange(len(of) - 1, -1, -1)
    order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(of))]
    if (order == np.arange(len(order))).all():
        return once.dictionary[: len(order)], of
    place = np.zeros(len(first), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return once.dictionary.take(pa.array(order, pa.int64())), place[of]


def _sorted(of: npt.NDArray[np.int32], count: int) -> Ints:
    """Sort the events trace by trace: numbers of 16 bits are sorted several times as fast."""
    return np.argsort(of.astype(np.uint16) if count <= 1 << 16 else of, kind="stable")


def _kinds(spec: Spec) -> list[tuple[str, type[np.signedinteger[Any]]]]:
    """Return the columns that are kept of an event, and their types."""
    arguments: list[tuple[str, type[np.signedinteger[Any]]]] = [(f"args.{name}", np.int64) for name in spec.arguments]
    return [("row", np.int64), ("position", np.int64), ("action", np.int8), ("outcome", np.int8), *arguments]


# -- as they travel ------------------------------------------------------------------------------------------------


class EventPack(NamedTuple):
    """Events of one spec from one stretch, as bytes. Those of one trace have the same `bucket`."""

    bucket: int
    stretch: int
    spec: str
    events: bytes

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.events)


def packed(
    traces: Traces, hashes: Hashes, chosen: npt.NDArray[np.bool_], stretch: int, buckets: int
) -> list[EventPack]:
    """Pack the events of the traces that are `chosen`; all of one trace are in one bucket, by its name.

    They are compressed, which takes longer than to send them to the next process: they travel far.
    """
    bucket = (hashes % np.uint64(buckets)).astype(np.int64)
    bucket[~chosen] = -1
    of_event = bucket[traces.of]
    order = np.argsort(of_event, kind="stable")
    bounds = np.searchsorted(of_event[order], np.arange(buckets + 1))
    return [
        EventPack(number, stretch, traces.spec.name, _bytes(_table(traces, order[low:high]), small=True))
        for number, (low, high) in enumerate(pairwise(bounds))
        if low < high
    ]


def packed_whole(traces: Traces, chosen: npt.NDArray[np.bool_] | None, stretch: int) -> list[EventPack]:
    """Pack the events of the traces that are `chosen`, or of all, in one piece."""
    events = None if chosen is None else np.flatnonzero(chosen[traces.of])
    if events is not None and not len(events):
        return []
    return [EventPack(0, stretch, traces.spec.name, _bytes(_table(traces, events), small=False))]


def unpacked(parts: Sequence[EventPack], first_rows: Ints, of: EventSchema = OURS) -> list[Traces]:
    """Unpack the events of one bucket by spec, in the file's order; `first_rows`: where each stretch of it begins."""
    found: dict[str, _ColumnBuilder] = {}
    codes = {name: code for code, name in enumerate(of.specs)}
    for part in sorted(parts, key=lambda part: part.stretch):
        gathering = found.setdefault(part.spec, _ColumnBuilder(of, codes[part.spec]))
        gathering.unpack(pa.ipc.open_stream(part.events).read_all(), int(first_rows[part.stretch]))
    return [gathering.done() for gathering in found.values()]


def _table(traces: Traces, events: Ints | None) -> pa.Table:
    """Return some events as a table, or all of them."""
    columns: list[npt.NDArray[Any]] = [traces.row, traces.position, traces.action, traces.outcome, *traces.args]
    chosen = range(len(traces.of)) if events is None else events.tolist()
    saw = [sorted_text(traces.saw[at]) if at in traces.saw else None for at in chosen] if traces.saw else None
    names: pa.Array[Any] = traces.names
    of: npt.NDArray[np.signedinteger[Any]] = traces.of
    if events is not None:
        which, of = np.unique(of[events], return_inverse=True)  # without the names of others
        names, columns = names.take(pa.array(which, pa.int32())), [column[events] for column in columns]
    values = {name: column for (name, _), column in zip(_kinds(traces.spec), columns, strict=True)}
    return pa.table(
        {
            "trace": pa.DictionaryArray.from_arrays(_narrow(of), names),
            "saw": pa.nulls(len(chosen)) if saw is None else pa.array(saw, pa.string()),
        }
        | {name: _narrow(column) for name, column in values.items() if column.any()}  # what is missing is 0
    )


def _narrow(column: npt.NDArray[np.signedinteger[Any]]) -> pa.Array[Any]:
    """Store the integers in the narrowest type: many may wait in memory for the rest of their trace."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    kind = next(kind for kind in NARROW if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    found: pa.Array[Any] = pa.array(column.astype(kind))
    return found


def _bytes(table: pa.Table, *, small: bool) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd" if small else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, ROWS)
    return sink.getvalue().to_pybytes()


def hashed(traces: Traces) -> Hashes:
    """Hash every trace by the names of its spec and its own."""
    return hashed_names(traces.spec.name, traces.names)


def hashed_names(spec: str, names: pa.Array[Any]) -> Hashes:
    """Hash the names of traces, each with that of its spec."""
    count = len(names)
    found = np.empty(count, np.uint64)
    if count:
        buffers: list[Any] = names.buffers()
        bounds = np.frombuffer(buffers[1], np.int32)[names.offset :][: count + 1]
        data = buffers[2] if buffers[2] is not None and buffers[2].size else b"\0"  # all names may be empty
        seed = np.frombuffer(spec.encode(), np.uint8)
        _hash(bounds, np.frombuffer(data, np.uint8), seed, found)
    return found


def repeated(some: Sequence[Hashes]) -> Hashes:
    """Return the hashes that occur more than once, each once, rising."""
    every = np.sort(np.concatenate([np.zeros(0, np.uint64), *some]))
    found: Hashes = np.unique(every[1:][every[1:] == every[:-1]])
    return found


_BASIS, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_SPREAD, _33 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(33)


@native(lambda bounds, data, seed, found: len(found), kinds=(INTS32, BYTES, BYTES, WORDS))  # noqa: ARG005
def _hash(bounds: Any, data: Any, seed: Any, found: Any) -> None:
    """Compute FNV-1a of `seed` and each name, and a last round that spreads it over all bits."""
    begin = _BASIS
    for byte in seed:
        begin = (begin ^ uint64(byte)) * _PRIME
    for name in range(len(found)):
        mixed = begin
        for at in range(bounds[name], bounds[name + 1]):
            mixed = (mixed ^ uint64(data[at])) * _PRIME
        mixed = (mixed ^ (mixed >> _33)) * _SPREAD
        found[name] = mixed ^ (mixed >> _33)
