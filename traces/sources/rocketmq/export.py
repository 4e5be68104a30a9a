"""The events of a store, written as Parquet or NDJSON in the order of the commit log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from gapless.traces.engines.engine import Progress
from gapless.traces.engines.local import Local
from gapless.traces.events import schema
from gapless.traces.events.event import ROWS, utf8
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event, named
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq import splits
from gapless.traces.sources.rocketmq.check import StoreCheck
from gapless.traces.sources.rocketmq.found import COMMIT_LOG, Judged, name_of
from gapless.traces.sources.rocketmq.splits import Columns, Flags
from gapless.traces.sources.rocketmq.store.layout import Store
from gapless.traces.sources.rocketmq.store.scan import Ints
from gapless.traces.sources.rocketmq.transactions import judge, lineage
from gapless.traces.sources.rocketmq.transactions.judge import World
from gapless.traces.sources.rocketmq.transactions.rows import COUNT, HALF, KEY, KIND, NAMES, NUMBER, OP, PLACE

Joint = tuple[int, str, str, Event]


def export(path: Path, store: Store, out: Path, progress: Progress | None = None) -> int:
    """Write the events of the store to `out`, and say how many: the very events that a check judges.

    One segment is held in memory at a time, and 128 bytes of every step of a transaction. Raises Unreadable.
    """
    judged = StoreCheck(path, store, Options()).whole(Local(progress=progress))
    return schema.write(out, _batches(judged, source=str(path)))


def _batches(judged: Judged, source: str) -> Iterator[pa.RecordBatch]:
    """Joints that come first, every segment with the joints before it, and the joints that come last."""
    waiting = sorted(judged.joints, key=lambda joint: joint[0])
    steps = [judge.NO_ROWS]
    store = judged.store
    limited = replace(store, limit=min(judged.end, store.limit))
    for split in splits.splits(limited):
        for low, _high, columns, blank in splits.segment_columns(limited, split):
            if low >= judged.end:
                continue
            ready = [joint for joint in waiting if joint[0] <= low]
            waiting = waiting[len(ready) :]
            yield from _joints(ready, source)
            yield from _log(columns, blank, source)
            yield from _queues(judged, columns, source)
            steps.append(columns.steps[:, : columns.stepped].copy())
    yield from _joints(waiting, source)
    rows = np.concatenate(steps, axis=1)
    known = judge.world(store, Options())
    for events in (_transactions(store, rows, known), _ops(judged, rows, known), _cursors(judged, rows, known)):
        for group in iter(lambda some=events: list(islice(some, ROWS)), []):  # type: ignore[misc]
            yield schema.from_events(_event(source, *event) for event in group)


INFERRED = {  # no record tells of these: a rollback is seen by its op, and a half is resolved by what came after it
    ("transaction", "roll_back"),
    ("checkpoint", "resolve"),
    ("checkpoint", "consume_op"),
}
Told = tuple[str, str, int, Event]
"""The spec, the trace, the position in the log, and the event."""


def _event(source: str, spec: str, trace: str, position: int, event: Event) -> schema.Event:
    return schema.Event(
        source=utf8(source),
        spec=spec,
        trace=utf8(trace),
        position=position,
        action=event[0],
        args=named(spec, event),
        outcome="inferred" if (spec, event[0]) in INFERRED else "ok",
    )


def _transactions(store: Store, rows: Ints, known: World) -> Iterator[Told]:
    """Every transaction, one after the other."""
    of = kernel("transaction")
    lineage.key_marks(rows)
    found = judge.lineages(of, rows, known)
    for transaction in range(len(found.bounds) - 1):
        mine = found.of(transaction)
        position = 0
        for event, place in zip(*judge.events_of_one(of, mine, known), strict=True):
            position = max(position, place)
            yield "transaction", splits.name_of_record(store, int(mine[PLACE, 0])), position, event


def _ops(judged: Judged, rows: Ints, known: World) -> Iterator[Told]:
    """Every op, one after the other, as a trace of its own."""
    strays = {(f.position, f.departure.event[1][0]) for f in judged.found if f.departure.event[0] == "enqueue"}
    for op in np.flatnonzero(rows[KIND] == OP).tolist():
        mine = rows[:, op : op + 1 + max(int(rows[COUNT, op]), 0)]
        trace, place = judge.op_trace(int(rows[NUMBER, op]), int(rows[KEY, op])), int(rows[PLACE, op])
        yield "op_batch", trace, place, ("open", (known.max_size, 0))
        for action, args in judge.events_of_op(mine):
            is_stray = action == "enqueue" and (place, args[0]) in strays
            yield "op_batch", trace, place, (action, (*args[:-1], 0) if is_stray else args)


def _cursors(judged: Judged, rows: Ints, known: World) -> Iterator[Told]:
    """The halves and ops in the order of the log, what became of each, and at the end how far the cursors came."""
    halves, ops = rows[:, rows[KIND] == HALF], np.flatnonzero((rows[KIND] == OP) & (rows[KEY] == 0))
    if not halves.shape[1] and not len(ops):
        return
    begin = int(halves[NUMBER, 0]) if halves.shape[1] else 0, int(rows[NUMBER, ops[0]]) if len(ops) else 0
    told: list[tuple[int, Event]] = [(int(row[PLACE]), ("half", (int(row[NUMBER]),))) for row in halves.T]
    for op in ops.tolist():
        marks = rows[NAMES, op + 1 : op + 1 + max(int(rows[COUNT, op]), 0)]
        told.append((int(rows[PLACE, op]), ("op", (int(rows[NUMBER, op]), int(marks.max(initial=-1)) + 1))))
    found = judge.lineages(kernel("transaction"), rows, known)
    done = [int(n) for n in np.sort(rows[NUMBER, (rows[KIND] == HALF) & (found.resolved == 1)])]
    end = judged.end
    yield "checkpoint", judge.CURSORS, judged.store.start, ("open", begin)
    for position, event in sorted(told):
        yield "checkpoint", judge.CURSORS, position, event
    for number in done:
        yield "checkpoint", judge.CURSORS, end, ("resolve", (number,))
    if known.half_cursor >= begin[0]:
        yield "checkpoint", judge.CURSORS, end, ("advance", (known.half_cursor,))
    if known.op_cursor >= begin[1] and known.half_cursor >= 0:
        for op in ops[rows[NUMBER, ops] < known.op_cursor].tolist():
            yield "checkpoint", judge.CURSORS, end, ("consume_op", (int(rows[NUMBER, op]),))
        yield "checkpoint", judge.CURSORS, end, ("advance_ops", (known.op_cursor,))


def _joints(joints: list[Joint], source: str) -> Iterator[pa.RecordBatch]:
    if joints:
        yield schema.from_events(
            _event(source, spec, trace, position, event) for position, spec, trace, event in joints
        )


def _log(columns: Columns, blank: Event | None, source: str) -> Iterator[pa.RecordBatch]:
    log = kernel("log")
    action, args = splits.log_events(log, columns, blank)
    position = args[log.spec.arguments.index("position")]
    yield schema.from_columns("log", source=source, traces=[COMMIT_LOG], position=position, action=action, args=args)


def _queues(judged: Judged, columns: Columns, source: str) -> Iterator[pa.RecordBatch]:
    """Every message's append and its entry's index, by log position; entries stand where their message does."""
    queue = kernel("queue")
    events = splits.queue_events(queue, judged.store, columns)
    count = int(events.starts[-1])
    if not count:
        return
    action, args = events.action[:count], events.args[:, :count]
    position = args[queue.spec.arguments.index("position")].copy()
    entries = np.flatnonzero(action == queue.spec.codes["index"])
    position[entries] = position[entries - 1]
    trace = np.repeat(np.arange(len(events.subjects)), np.diff(events.starts))
    kept = np.argsort(position, kind="stable")
    kept = kept[_counts(judged, events.subjects, trace, position, action == queue.spec.codes["index"])[kept]]
    yield schema.from_columns(
        "queue",
        source=source,
        traces=[name_of(subject) for subject in events.subjects],
        trace=trace[kept],
        position=position[kept],
        action=action[kept],
        args=np.ascontiguousarray(args[:, kept]),
    )


def _counts(judged: Judged, subjects: list[tuple[str, int]], trace: Ints, position: Ints, entry: Flags) -> Flags:
    """Which events count: of a queue that was made anew, no entry is older than that."""
    anew = np.array([judged.queues[s].anew_at if s in judged.queues else 0 for s in subjects], np.int64)
    return ~entry | (position >= anew[trace])
