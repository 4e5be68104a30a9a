"""The events of data directories, written as Parquet or NDJSON, partition by partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from gapless.traces.engines.engine import Progress
from gapless.traces.events import schema
from gapless.traces.events.event import utf8
from gapless.traces.events.writing import undecided
from gapless.traces.evidence import Evidence
from gapless.traces.judging.building import Events, Ints
from gapless.traces.options import Options
from gapless.traces.replay.exact import named
from gapless.traces.sources.kafka.check import LogCheck
from gapless.traces.sources.kafka.judging.part_results import PartEvents, judge_part, read_part
from gapless.traces.sources.kafka.judging.parts import SegmentPart


def export(path: Path, found: Path, out: Path, options: Options, evidence: Evidence, progress: Progress | None) -> int:
    """Writes the same events that a check judges, and returns their number. Memory is needed for one part.

    Raises Unreadable, NothingThere.
    """
    check = LogCheck(path, found, options, evidence, exported=True)
    with undecided(check.found.inconclusive):
        return schema.write(out, _batches(check, str(path), progress))


def _batches(check: LogCheck, source: str, progress: Progress | None) -> Iterator[pa.RecordBatch]:
    done = 0
    for bundle in check.splits:
        for part in bundle.parts:
            if part.is_first:
                yield from _joints(check, source)
            check.take([judge_part(part, check.options)])
            yield from _joints(check, source)
            yield from _of_part(part, read_part(part), source)
        done += bundle.bytes
        if progress is not None:
            progress(done, check.bytes)
    check.close()
    yield from _joints(check, source)
    for names, starts, events, position in check.transactions.judged().blocks:
        yield _batch(events, source, list(names), np.repeat(np.arange(len(names)), np.diff(starts)), position)


def _joints(check: LogCheck, source: str) -> Iterator[pa.RecordBatch]:
    """Yields the events that no part has: beginnings of producers, those that are forgotten, and checkpoints."""
    if joints := check.taken_joints():
        yield schema.from_events(
            schema.Event(
                source=utf8(source), spec=spec, trace=utf8(trace), position=offset, action=event[0],
                args=named(spec, event), outcome="ok",
            )
            for spec, trace, offset, event in joints
        )  # fmt: skip


def _of_part(part: SegmentPart, read: PartEvents, source: str) -> Iterable[pa.RecordBatch]:
    """Yields the events of a part; only the first part of a partition has an `open` that is no claim."""
    low = 0 if part.is_first else 1
    events = read.partition
    log = Events(events.spec, events.action[low:], np.ascontiguousarray(events.args[:, low:]))
    appends = log.action == log.spec.codes["append"]
    position = np.maximum.accumulate(np.where(appends, log.column("first"), part.offset))
    yield _batch(log, source, [part.terms.name], None, position)
    found = read.producers
    if len(found.producers):
        traces = np.repeat(np.arange(len(found.producers)), np.diff(found.starts))
        names = [f"{part.terms.name}/{producer}" for producer in found.producers.tolist()]
        yield _batch(found.events, source, names, traces, found.offset)


def _batch(events: Events, source: str, names: list[str], trace: Ints | None, position: Ints) -> pa.RecordBatch:
    return schema.from_columns(
        events.spec.name, source=source, traces=names, trace=trace, position=position, action=events.action,
        args=events.args,
    )  # fmt: skip
