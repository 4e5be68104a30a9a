"""The events of a store, written as Parquet or NDJSON in the order of the commit log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from gapless.traces import schema
from gapless.traces.check import Local, judged_store
from gapless.traces.kernels import kernel
from gapless.traces.parts import Progress, is_event_file
from gapless.traces.problems import Unreadable, UsageError
from gapless.traces.replay import Event, named
from gapless.traces.rocketmq import pieces
from gapless.traces.rocketmq.found import COMMIT_LOG, Judged, name_of
from gapless.traces.rocketmq.layout import open_store, store_folder
from gapless.traces.rocketmq.pieces import Columns, Flags, Options
from gapless.traces.rocketmq.scan import Ints

Joint = tuple[int, str, str, Event]


def export(path: Path, out: Path, *, config: Path | None = None, progress: Progress | None = None) -> int:
    """Write the events of the store in `path` to `out`, and say how many: the very events that a check judges.

    One segment is held in memory at a time. Raises UsageError for a suffix that is no form, Unreadable, NothingThere.
    """
    if not is_event_file(out):
        raise UsageError(f"{out}: a file that ends in .parquet or .ndjson was expected")
    folder = store_folder(path)
    if folder is None:
        raise Unreadable(f"{path}: not a RocketMQ store: there is no commitlog/ in it")
    store = open_store(folder, config)
    judged, interrupted = judged_store(store, Options(), Local(progress=progress))
    if interrupted:
        raise Unreadable(f"{path}: {interrupted}; nothing was written")
    return schema.write(out, _batches(judged, source=str(path)))


def _batches(judged: Judged, source: str) -> Iterator[pa.RecordBatch]:
    """Joints that come first, every segment with the joints before it, and the joints that come last."""
    waiting = sorted(judged.joints, key=lambda joint: joint[0])
    store = judged.store
    limited = replace(store, limit=min(judged.end, store.limit))
    for split in pieces.splits(limited):
        for low, _high, columns, blank in pieces.segment_columns(limited, split):
            if low >= judged.end:
                continue
            ready = [joint for joint in waiting if joint[0] <= low]
            waiting = waiting[len(ready) :]
            yield from _joints(ready, source)
            yield from _log(columns, blank, source)
            yield from _queues(judged, columns, source)
    yield from _joints(waiting, source)


def _joints(joints: list[Joint], source: str) -> Iterator[pa.RecordBatch]:
    if joints:
        yield schema.from_events(
            schema.Event(
                source=schema.utf8(source),
                spec=spec,
                trace=schema.utf8(trace),
                position=position,
                action=event[0],
                args=named(spec, event),
            )
            for position, spec, trace, event in joints
        )


def _log(columns: Columns, blank: Event | None, source: str) -> Iterator[pa.RecordBatch]:
    log = kernel("log")
    action, args = pieces.log_events(log, columns, blank)
    position = args[log.spec.arguments.index("position")]
    yield schema.from_columns("log", source=source, traces=[COMMIT_LOG], position=position, action=action, args=args)


def _queues(judged: Judged, columns: Columns, source: str) -> Iterator[pa.RecordBatch]:
    """Every message's append and its entry's index, by log position; entries stand where their message does."""
    queue = kernel("queue")
    events = pieces.queue_events(queue, judged.store, columns)
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
