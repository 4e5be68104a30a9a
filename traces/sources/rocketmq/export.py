"""The events of a store, written as Parquet or NDJSON in the order of the commit log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from gapless.traces.engines.engine import Progress
from gapless.traces.engines.local import Local
from gapless.traces.events import schema
from gapless.traces.events.event import ROWS, utf8
from gapless.traces.events.writing import undecided
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event, named
from gapless.traces.sources.rocketmq.check import StoreCheck
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.layouts import registry
from gapless.traces.sources.rocketmq.layouts.layout import ExportedEvents, SegmentView
from gapless.traces.sources.rocketmq.segments import splits
from gapless.traces.sources.rocketmq.segments.queue_events import QueueEvents, queue_events
from gapless.traces.sources.rocketmq.segments.results import name_of
from gapless.traces.sources.rocketmq.segments.splits import SplitReader
from gapless.traces.sources.rocketmq.segments.tasks import log_events
from gapless.traces.sources.rocketmq.segments.visible_records import mark_visible
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import name_of_record
from gapless.traces.sources.rocketmq.store.selection import COMMIT_LOG
from gapless.traces.sources.rocketmq.transactions import lineage
from gapless.traces.sources.rocketmq.transactions.ops import CURSORS, events_of_op, op_trace, op_with_marks
from gapless.traces.sources.rocketmq.transactions.parameters import NO_ROWS, Terms, terms
from gapless.traces.sources.rocketmq.transactions.replay_rows import Flags, Lineages, lineages
from gapless.traces.sources.rocketmq.transactions.transaction_rows import (
    BY_PLACE,
    HALF,
    KEY,
    KIND,
    NAMES,
    NUMBER,
    OP,
    PLACE,
)
from gapless.traces.sources.rocketmq.transactions.visible import visible_events, visible_keys

Joint = tuple[int, str, str, Sequence[Event]]


def export(path: Path, store: StoreDirectory, out: Path, progress: Progress | None = None) -> int:
    """Writes the events of the store to `out`: the same events that a check judges. Returns their number.

    Memory is needed for one segment at a time, and for 128 bytes of every step of a transaction. Raises Unreadable.
    """
    judged = StoreCheck(path, store, Options(), exported=True).whole(Local(progress=progress))
    with undecided([*judged.inconclusive, judged.unread_file] if judged.unread_file else judged.inconclusive):
        return schema.write(out, _batches(judged, source=str(path)))


def _batches(judged: StoreFindings, source: str) -> Iterator[pa.RecordBatch]:
    """Yields the first joints, every segment with the joints before it, and the last joints."""
    waiting = sorted(judged.joints, key=lambda joint: joint[0])
    steps, store = [NO_ROWS], judged.store
    limited = replace(store, limit=min(judged.end, store.limit))
    exporters = [layout.exporter(judged, Options()) for layout in registry.LAYOUTS]
    sought = [one for exporter in exporters for one in exporter.sought()]
    for split in splits.splits(limited):
        for scanned in SplitReader(limited, split, sought=sought, steps=True).segments():
            if scanned.start >= judged.end:
                continue
            ready = [joint for joint in waiting if joint[0] <= scanned.start]
            waiting = waiting[len(ready) :]
            yield from _joints(ready, source)
            log = log_events(scanned, split.file.wrapped)
            yield schema.from_columns(
                "log", source=source, traces=[COMMIT_LOG], position=log.column("position"),
                action=log.action, args=log.args,
            )  # fmt: skip
            entries = queue_events(judged.store, scanned.columns)
            yield from _queues(judged, entries, source)
            view = SegmentView(limited, scanned.columns, scanned.start, scanned.end, split.file.wrapped, entries)
            for exporter in exporters:
                yield from (_of_layout(found, source) for found in exporter.of_segment(view))
            mark_visible(limited, scanned.columns)
            steps.append(scanned.columns.steps.copy())
    yield from _joints(waiting, source)
    yield from _later(judged, source)
    for exporter in exporters:
        yield from (_of_layout(found, source) for found in exporter.at_end())
    rows = np.concatenate(steps, axis=1)
    lineage.key_marks(rows)
    given = terms(store, Options())
    lives = lineages(rows, given)
    made = _transactions(judged, lives, given), _visible(judged, lives), _ops(judged, rows, given)
    for events in (*made, _cursors(judged, lives, given)):
        for group in iter(lambda some=events: list(islice(some, ROWS)), []):  # type: ignore[misc]
            yield schema.from_events(_event(source, *event) for event in group)


INFERRED = {  # no record tells of these: a rollback is seen by its op, and a half is resolved by what came after it
    ("transaction", "roll_back"),
    ("visibility", "roll_back"),
    ("checkpoint", "resolve"),
    ("checkpoint", "consume_op"),
}
ExportedEvent = tuple[str, str, int, Event]
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


def _transactions(judged: StoreFindings, lives: Lineages, given: Terms) -> Iterator[ExportedEvent]:
    """Yields every judged transaction."""
    for transaction in range(len(lives.bounds) - 1):
        events, places = lives.events(transaction, given)
        if not judged.unjudged.isdisjoint(places):
            continue
        name, position = name_of_record(judged.store, places[0]), 0
        for event, place in zip(events, places, strict=True):
            position = max(position, place)
            yield "transaction", name, position, event


def _visible(judged: StoreFindings, lives: Lineages) -> Iterator[ExportedEvent]:
    """Yields every transaction of which consumers can read a half."""
    for (rows, _), events, places in visible_events(lives.rows, lives.rolled_back, visible_keys(lives.rows)).each():
        name = name_of_record(judged.store, int(rows[PLACE, 0]))
        for event, place in zip(events, places, strict=True):
            yield "visibility", name, place, event


def _ops(judged: StoreFindings, rows: Ints, given: Terms) -> Iterator[ExportedEvent]:
    """Yields every op as a trace of its own."""
    steps = STEPS["op_batch"]
    strays = {(b.position, b.arguments["number"]) for b in judged.breaches if b.action == "enqueue"}
    for op in np.flatnonzero(rows[KIND] == OP).tolist():
        trace, place = op_trace(int(rows[NUMBER, op]), int(rows[KEY, op])), int(rows[PLACE, op])
        for event in events_of_op(op_with_marks(rows, op), given):
            values = named("op_batch", event)
            is_stray = event[0] == "enqueue" and (place, values["number"]) in strays
            yield "op_batch", trace, place, steps.enqueue(**values | {"known": 0}) if is_stray else event


def _cursors(judged: StoreFindings, lives: Lineages, given: Terms) -> Iterator[ExportedEvent]:
    """Yields the halves and ops in the order of the log, their outcomes, and at the end the cursors."""
    steps, rows, end = STEPS["checkpoint"], lives.rows, judged.end
    is_half = (rows[KIND] == HALF) & (rows[NUMBER] < BY_PLACE)  # no cursor passes those that a table tells of
    halves, ops = rows[:, is_half], np.flatnonzero((rows[KIND] == OP) & (rows[KEY] == 0))
    if not halves.shape[1] and not len(ops):
        return
    first_half = int(halves[NUMBER, 0]) if halves.shape[1] else 0
    first_op = int(rows[NUMBER, ops[0]]) if len(ops) else 0
    events = [(int(row[PLACE]), steps.half(number=row[NUMBER])) for row in halves.T]
    for op in ops.tolist():
        reach = int(op_with_marks(rows, op)[NAMES, 1:].max(initial=-1)) + 1
        events.append((int(rows[PLACE, op]), steps.op(number=rows[NUMBER, op], reach=reach)))
    found = np.flatnonzero(is_half & (lives.resolved[0] != 0))
    done = np.stack([rows[NUMBER, found], *lives.resolved[:, found]])[:, np.argsort(rows[NUMBER, found])]
    events = [(judged.store.start, steps.open(half=first_half, op=first_op)), *sorted(events)]
    events += [(end, steps.resolve(number=number, how=how, by=by)) for number, how, by in done.T.tolist()]
    if given.half_cursor >= first_half:
        events.append((end, steps.advance(to=given.half_cursor)))
    if given.op_cursor >= first_op and given.half_cursor >= 0:
        consumed = rows[NUMBER, ops[rows[NUMBER, ops] < given.op_cursor]]
        events += [(end, steps.consume_op(number=number)) for number in consumed]
        events.append((end, steps.advance_ops(to=given.op_cursor)))
    for position, event in events:
        yield "checkpoint", CURSORS, position, event


def _joints(joints: list[Joint], source: str) -> Iterator[pa.RecordBatch]:
    if joints:
        yield schema.from_events(
            _event(source, spec, trace, position, event) for position, spec, trace, events in joints for event in events
        )


def _later(judged: StoreFindings, source: str) -> Iterator[pa.RecordBatch]:
    """Yields the events that are made again for the export."""
    for _, trace, made in judged.later:
        for events in made():
            yield _batch(judged, events, trace, source)


def _batch(judged: StoreFindings, events: Events, trace: str, source: str) -> pa.RecordBatch:
    position = np.full(len(events.action), judged.end)
    return schema.from_columns(
        events.spec.name, source=source, traces=[trace], position=position, action=events.action, args=events.args
    )


def _of_layout(found: ExportedEvents, source: str) -> pa.RecordBatch:
    """Builds the batch of a layout's events."""
    events = found.events
    return schema.from_columns(
        events.spec.name, source=source, traces=found.names, trace=found.traces, position=found.positions,
        action=events.action, args=events.args,
    )  # fmt: skip


def _queues(judged: StoreFindings, events: QueueEvents, source: str) -> Iterator[pa.RecordBatch]:
    """Yields every message's append and its entry's index, by the log position of the message."""
    count = int(events.starts[-1])
    if not count:
        return
    action, args = events.columns.action[:count], events.columns.args[:, :count]
    position = events.columns.column("position")[:count].copy()
    codes = events.columns.spec.codes
    is_entry = (action == codes["index"]) | (action == codes["index_batch"])
    entries = np.flatnonzero(is_entry)
    position[entries] = position[entries - 1]
    trace = np.repeat(np.arange(len(events.subjects)), np.diff(events.starts))
    kept = np.argsort(position, kind="stable")
    kept = kept[_counts(judged, events.subjects, trace, position, is_entry)[kept]]
    yield schema.from_columns(
        "queue",
        source=source,
        traces=[name_of(subject) for subject in events.subjects],
        trace=trace[kept],
        position=position[kept],
        action=action[kept],
        args=np.ascontiguousarray(args[:, kept]),
    )


def _counts(judged: StoreFindings, subjects: list[tuple[str, int]], trace: Ints, position: Ints, entry: Flags) -> Flags:
    """Returns the mask of events to write: in a queue that was created again, only the new entries."""
    begin = np.array([judged.queues[s].recreated_at if s in judged.queues else 0 for s in subjects], np.int64)
    return ~entry | (position >= begin[trace])
