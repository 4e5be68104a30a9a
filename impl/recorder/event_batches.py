"""Rows of a recording as batches of events: the traces of one spec after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gapless.impl.files.observer import APPEND
from gapless.impl.recorder import rows as r
from gapless.impl.recorder.rows import Entries
from gapless.impl.records.record import Ints
from gapless.traces.events import event
from gapless.traces.events.event import OUTCOMES, ROWS, Vocabulary

COMMIT_LOG = "commitlog"
"""The name of the log's trace, as in events of a store."""

Flags = npt.NDArray[np.bool_]
Value = Callable[[Ints], Ints]


def _column(at: int) -> Value:
    return lambda rows: rows[:, at]


def _flag(bit: int) -> Value:
    return lambda rows: (rows[:, r.KIND] & bit != 0).astype(np.int64)


def _one(rows: Ints) -> Ints:
    return np.ones(len(rows), np.int64)


def _arguments(**of: int | Value) -> dict[str, Value]:
    return {name: _column(value) if isinstance(value, int) else value for name, value in of.items()}


Steps = Mapping[int, tuple[str, Mapping[str, Value]]]
"""For each kind of row, the step that it records, and where each argument is found."""

_RECORD = _arguments(
    position=r.B,
    size=r.C,
    claimed=r.F,
    known=_flag(r.KNOWN),
    fits=_flag(r.FITS),
    intact=_flag(r.INTACT),
    sealed=_flag(r.SEALED),
    time=r.E,
)
LOG: Steps = {
    r.OPEN: ("open", _arguments(position=r.A, file_size=r.B)),
    r.FOUND: ("append", _RECORD),
    APPEND: ("append", _RECORD),
    r.ROLL: ("roll", _arguments(position=r.A, size=r.B, marked=r.C)),
    r.FLUSH: ("flush", _arguments(to=r.A)),
    r.ACKNOWLEDGE: ("acknowledge", _arguments(to=r.A)),
    r.CRASH: ("crash", _arguments(kept=r.A)),
    r.CHECKPOINT: ("checkpoint", _arguments(time=r.A)),
    r.REST: ("end", {}),
}
_MESSAGE = _arguments(number=r.A, count=_one, position=r.B, size=r.C, tag=r.D)
_ENTRY = _arguments(number=r.A, position=r.B, size=r.C, tag=r.D)
QUEUE: Steps = {
    r.OPEN_QUEUE: ("open", _arguments(number=r.A, start=r.B)),
    r.FOUND: ("append", _MESSAGE),
    r.MEET: ("append", _MESSAGE),
    APPEND: ("append", _MESSAGE),
    r.INDEX: ("index", _ENTRY),
    r.COMMIT: ("index", _ENTRY),
    r.EXPIRE: ("expire", _arguments(number=r.A, start=r.B)),
    r.SETTLE: ("settle", _arguments(upto=r.A)),
    r.REST_QUEUE: ("end", {}),
}
_NUMBER = _arguments(number=r.A)
DISPATCH: Steps = {
    r.OPEN_ENTRIES: ("open", _arguments(number=r.A, overlap=r.B)),
    r.CRASH_ENTRIES: ("crash", _arguments(kept=r.A)),
    r.SCAN: ("scan", _NUMBER),
    r.TAKE: ("take", _NUMBER),
    r.WRITE: ("write", _NUMBER),
    r.COMMIT: ("commit", _arguments(to=r.A)),
    r.FLUSH_QUEUE: ("flush", _arguments(to=r.A)),
    r.REST_QUEUE: ("end", {}),
}
STEPS = {"log": LOG, "queue": QUEUE, "dispatch": DISPATCH}
WORDS = Vocabulary({spec: {name: list(values) for name, values in steps.values()} for spec, steps in STEPS.items()})
"""The steps that a recording has, and their arguments: the columns of its file."""


@dataclass(frozen=True)
class Subjects:
    """The queues of a recording. In each session of its store a queue has a new number and a new trace of messages."""

    messages: list[str]  # of every number, the name of its trace of `queue`
    entries: list[str]  # of every number, the name of its trace of `dispatch`: the same in all sessions


def batches(
    rows: Ints, entries: Entries, subjects: Subjects, source: str, most: int = ROWS
) -> Iterator[pa.RecordBatch]:
    """The events of all rows [n, 8], about `most` at a time; their positions are the numbers of their rows.

    `entries`: those that rows of COMMIT and INDEX speak of.
    """
    for spec, names in zip(STEPS, ([COMMIT_LOG], subjects.messages, subjects.entries), strict=True):
        traces = list(dict.fromkeys(names))
        index = np.array([traces.index(name) for name in names], np.int64) if len(traces) < len(names) else None
        for where in _stretches(rows, index, spec, most):
            yield _batch(spec, rows[where], entries, where, traces, index, source)


def _stretches(rows: Ints, index: Ints | None, spec: str, most: int) -> Iterator[npt.NDArray[np.int64]]:
    """The numbers of the rows that record a spec's steps, trace by trace, about `most` events at a time."""
    kind = rows[:, r.KIND] & r.KINDS
    where = np.flatnonzero(np.isin(kind, list(STEPS[spec])))
    if spec == "queue":  # a record that names another queue is no message of this one
        messages = (kind[where] >= r.FOUND) & (kind[where] <= APPEND)
        where = where[~messages | (rows[where, r.KIND] & r.OWN != 0)]
    if spec != "log":
        subject = rows[where, r.SUBJECT] if index is None else index[rows[where, r.SUBJECT]]
        where = where[np.argsort(subject, kind="stable")]
    if not len(where):
        return
    counts = _events(rows, kind, where, spec)
    for part in r.chunks(where, counts, most):
        yield where[part]


def _events(rows: Ints, kind: Ints, where: Ints, spec: str) -> Ints:
    """About how many events of a spec each of the rows becomes."""
    kind = kind[where]
    many = (kind >= r.SCAN) & (kind <= r.WRITE) if spec == "dispatch" else _shows_entries(kind)
    counts = np.ones(len(where), np.int64)
    counts[many] = np.abs(rows[where[many], r.B] - rows[where[many], r.A])
    return counts


def _shows_entries(kind: Ints) -> Flags:
    shows: Flags = (kind == r.COMMIT) | (kind == r.INDEX)
    return shows


def _batch(
    spec: str, rows: Ints, entries: Entries, where: Ints, traces: list[str], index: Ints | None, source: str
) -> pa.RecordBatch:
    kind, actions, arguments = rows[:, r.KIND] & r.KINDS, list(WORDS.specs[spec]), WORDS.arguments_of(spec)
    if spec == "dispatch":
        rows, kind, where = _one_by_one(rows, kind, where)
    elif spec == "queue":
        rows, kind, where = _entry_by_entry(rows, kind, where, entries)
    action = np.zeros(len(rows), np.int8)
    args = np.zeros((len(arguments), len(rows)), np.int64)
    for each in np.unique(kind).tolist():
        name, values = STEPS[spec][each]
        mine = kind == each
        action[mine] = actions.index(name)
        for argument, value in values.items():
            args[arguments.index(argument), mine] = value(rows[mine])
    subject = None if spec == "log" else rows[:, r.SUBJECT] if index is None else index[rows[:, r.SUBJECT]]
    inferred = rows[:, r.KIND] & r.INFERRED != 0
    outcome = np.where(inferred, OUTCOMES.index("inferred"), 0).astype(np.int8) if inferred.any() else None
    return event.from_columns(
        WORDS,
        spec,
        source=source,
        traces=traces,
        trace=subject,
        position=where,
        action=action,
        args=args,
        outcome=outcome,
    )


def _one_by_one(rows: Ints, kind: Ints, where: Ints) -> tuple[Ints, Ints, Ints]:
    """Rows of many numbers as rows of one each, which is then in column A.

    Where workers may overlap, a worker that takes a stretch has all of its numbers at once. Where they may not, it is
    at the queue from the first number to the last, and writes each before it comes to the next: the first is taken
    when the stretch is, and the others when the one before is written.
    """
    many = (kind >= r.SCAN) & (kind <= r.WRITE)
    alone = many & (kind != r.SCAN) & (rows[:, r.C] == 0)
    counts = np.where(many, rows[:, r.B] - rows[:, r.A], 1)
    counts = np.where(alone, np.where(kind == r.TAKE, 1, 2 * counts - 1), counts)
    place = r.numbered(np.zeros(len(rows), np.int64), counts)  # of an event within its row
    alone, kind, where = np.repeat(alone, counts), np.repeat(kind, counts), np.repeat(where, counts)
    rows = np.repeat(rows, counts, axis=0)
    rows[:, r.A] += np.where(alone, (place + 1) // 2, place)
    kind[alone & (place % 2 == 1)] = r.TAKE
    return rows, kind, where


def _entry_by_entry(rows: Ints, kind: Ints, where: Ints, entries: Entries) -> tuple[Ints, Ints, Ints]:
    """Rows that show many entries as rows of one each, with the entry's content; none, where a commit shows nothing."""
    shows = _shows_entries(kind)
    counts = np.where(shows, np.maximum(rows[:, r.A] - rows[:, r.B], 0), 1)
    place = r.numbered(np.zeros(len(rows), np.int64), counts)
    shows, kind, where = np.repeat(shows, counts), np.repeat(kind, counts), np.repeat(where, counts)
    rows = np.repeat(rows, counts, axis=0)
    these = entries[rows[shows, r.C] + place[shows]]
    rows[shows, r.A] = rows[shows, r.B] + place[shows]
    rows[shows, r.B], rows[shows, r.C], rows[shows, r.D] = these["position"], these["size"], these["tag"]
    return rows, kind, where
