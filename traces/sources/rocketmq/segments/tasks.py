"""Reads and judges one split of a commit log in a worker.

A split is a range of one log file. Its records become `log` events, its queue rows `queue` events, each message
followed by its entry, which the worker looks up itself: the consume queue is random-access, so nothing is shuffled. A
piece is replayed from the state that its first event claims, and reports that claim, its end and its first refusal;
`joining/` joins the pieces.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gapless.native import Native, handed
from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Events
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event, named
from gapless.traces.replay.kernels import EXACT, Kernel, ReplayResult, kernel
from gapless.traces.sources.rocketmq.clients.deliveries import look_for_deliveries
from gapless.traces.sources.rocketmq.clients.evidence import ClientEvidence, SegmentMessages, judge_messages
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.packed_columns import pack_columns
from gapless.traces.sources.rocketmq.layouts import registry
from gapless.traces.sources.rocketmq.layouts.layout import SegmentView
from gapless.traces.sources.rocketmq.log import records, scan
from gapless.traces.sources.rocketmq.segments import queue_events
from gapless.traces.sources.rocketmq.segments.checksums import stretches
from gapless.traces.sources.rocketmq.segments.lifetime import lifetime
from gapless.traces.sources.rocketmq.segments.queue_events import QueueEvents
from gapless.traces.sources.rocketmq.segments.results import Pieces, Refusal, Segment, SplitResult, name_of
from gapless.traces.sources.rocketmq.segments.splits import (
    MOST_COUNTED,
    MOST_DAMAGE,
    Columns,
    ScannedSegment,
    Sought,
    Split,
    SplitReader,
)
from gapless.traces.sources.rocketmq.segments.visible_records import mark_visible
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import own_space
from gapless.traces.sources.rocketmq.store.names import HALVES, TABLE_HALVES
from gapless.traces.sources.rocketmq.store.selection import (
    COMMIT_LOG,
    includes_queue,
    includes_transactions,
)
from gapless.traces.sources.rocketmq.transactions import lineage, ops
from gapless.traces.sources.rocketmq.transactions.replay_rows import judge_steps
from gapless.traces.sources.rocketmq.transactions.transaction_rows import find_rows


def prepare(options: Options) -> None:
    """Compiles the native code of a worker, if the expected work is worth it.

    Before the first split, and before workers are forked: so it is compiled once, and is not part of what is measured.
    """
    for name in ("log", "queue"):
        kernel(name, options.ignored).prepare()
    _prepare(scan.scan, scan.find_start, records.length_of, *queue_events.ENTRIES)


def prepare_more(store: StoreDirectory, options: Options) -> None:
    """Compiles the kernels that few stores need: these have many."""
    if includes_transactions(options) and (HALVES in store.queues or TABLE_HALVES in store.queues or store.no_queues):
        for name in ("transaction", "op_batch", "checkpoint"):
            kernel(name, options.ignored).prepare()
        _prepare(find_rows, *lineage.ENTRIES, *ops.ENTRIES)
    for layout in registry.LAYOUTS:
        layout.worker.prepare(store, options)


def _prepare(*entries: Native[Any, Any]) -> None:
    for entry in entries:
        entry.prepare()


def judge(store: StoreDirectory, split: Split, options: Options, evidence: ClientEvidence | None = None) -> SplitResult:
    """Reads one split, replays its pieces, and compares them with clients' evidence. Raises Unreadable."""
    space = own_space()
    segments: list[Segment] = []
    counters = np.zeros(scan.COUNTERS, np.int64)
    stop, at = scan.INVALID, split.file.base + split.low
    sought = _sought(store, options)
    reader = SplitReader(store, split, space, keys=evidence is not None, sought=sought, steps=True)
    for scanned in reader.segments():
        if scanned.columns.count or scanned.blank:
            segments.append(_segment(store, split, scanned, options, evidence))
        counters += scanned.columns.room.counters
        stop, at = scanned.stop, scanned.end
    return SplitResult(split, segments, stop, at, counters, split.high - split.low, reader.unread)


def _sought(store: StoreDirectory, options: Options) -> list[Sought]:
    """Returns what layouts of this store ask a scan for, each once."""
    every = (one for layout in registry.LAYOUTS for one in layout.worker.sought(store, options))
    return list({one.name: one for one in every}.values())


def _segment(
    store: StoreDirectory,
    split: Split,
    scanned: ScannedSegment,
    options: Options,
    evidence: ClientEvidence | None,
) -> Segment:
    columns, end = scanned.columns, scanned.end
    events = log_events(scanned, split.file.wrapped)
    replayed = _replay_log(store, split.file.base, events, options)
    pieces, queue_covered, queue_anomalies, of_queues = _queue_pieces(store, columns, options)
    promised, delivered = None, None
    if evidence is not None and columns.keys is not None:
        messages = SegmentMessages(columns.log, columns.keys, columns.rows, columns.subjects(), columns.space)
        promised = judge_messages(evidence, messages, (scanned.start, end), options, later=store.of_moments)
        delivered = look_for_deliveries(evidence, messages)
    if includes_transactions(options):
        mark_visible(store, columns)
    view = SegmentView(store, columns, scanned.start, end, split.file.wrapped, of_queues)
    times = columns.log[scan.TIME]
    older = np.flatnonzero(times[1:] < times[:-1])
    return Segment(
        start=scanned.start,
        # Behind a blank, the log continues with the next file's first byte.
        end=split.file.base + split.file.length if scanned.blank else end,
        records=columns.count,
        lived=lifetime(times),
        first_event=events.at(0),
        last=int(columns.log[scan.POSITION, -1]) if columns.count else -1,
        opened=int(times[0]) if columns.count else 0,
        clock=int(times[-1]) if columns.count else 0,
        newest=int(times.max(initial=0)),
        stepped_back=int(columns.log[scan.POSITION, older[-1] + 1]) if len(older) else -1,
        refused=replayed.refused,
        refused_more=replayed.more,
        unjudged=replayed.unjudged,
        stretches=stretches(
            columns.log, split.file.wrapped, store.sealed, mixed=columns.room.counters[scan.C_SEALED] > 0
        ),
        pieces=pieces,
        promised=promised,
        delivered=delivered,
        found={name: pack_columns(rows) for name, rows in columns.found.items()},
        layouts=_of_layouts(view, options),
        transactions=judge_steps(columns.steps, store, options, evidence),
        covered={"log": replayed.covered, "queue": queue_covered},
        anomalies=replayed.anomalies | queue_anomalies,
    )


def _of_layouts(view: SegmentView, options: Options) -> dict[str, Any]:
    """Lets each layout look into the segment; returns what they found, by their names."""
    every = ((layout.name, layout.worker.examine(view, options)) for layout in registry.LAYOUTS)
    return {name: found for name, found in every if found is not None}


# -- the log -------------------------------------------------------------------------------------------------------


def log_events(scanned: ScannedSegment, wrapped: int) -> Events:
    """Builds the `log` events of a segment: its records, and the blank behind them if it was reached.

    Where records have a header of `wrapped` bytes before them, each is one with its header, and the place that it
    names as its own is that of the header.
    """
    spec, columns = SPECS["log"], scanned.columns
    count = columns.count + (scanned.blank is not None)
    args: Ints = columns.space.array("log events", (len(spec.arguments), count), np.int64)
    events = Events(spec, np.full(count, spec.codes["append"], np.int8), args)
    for row, name in enumerate(spec.parameters["append"]):
        events.column(name)[: columns.count] = columns.log[row]
    for name, more in (("position", -wrapped), ("size", wrapped), ("claimed", -wrapped)):
        events.column(name)[: columns.count] += more
    if scanned.blank is not None:
        events.put(columns.count, scanned.blank)
    return events


def claim_log(store: StoreDirectory, base: int, event: Event) -> dict[str, int]:
    """The state that a piece of the log claims by beginning with `event` in the file at `base`."""
    args = named("log", event)
    time = args.get("time", 0)
    return {
        "file_size": store.file_size, "start": store.start, "base": base, "end": args["position"],
        "flushed": store.start, "acknowledged": store.start, "clock": time, "newest": time,
    }  # fmt: skip


class _LogReplay(NamedTuple):
    """The replay of a segment's log events: see `Segment`."""

    refused: list[Refusal]
    more: dict[str, int]
    unjudged: int
    covered: dict[str, int]
    anomalies: dict[str, tuple[int, int, str]]


def _replay_log(store: StoreDirectory, base: int, events: Events, options: Options) -> _LogReplay:
    """Replays a segment's log events, and continues behind each refused one."""
    of, count, args = kernel("log", options.ignored), len(events.action), handed(events.args)
    refused: list[Refusal] = []
    more: Counter[str] = Counter()
    covered = np.zeros(len(of.spec.actions), np.int64)
    anomalies: dict[str, tuple[int, int, str]] = {}
    position, begin = events.column("position"), 0
    while begin < count:
        claim = claim_log(store, base, events.at(begin))
        state = np.array([[claim[name]] for name in of.spec.scalars], np.int64)
        replayed = of.replay(np.array([begin, count], np.int64), events.action, args, state, profile=options.profile)
        covered += replayed.covered
        for name, times, at in _deviations(of, replayed):
            before, first, _ = anomalies.get(name, (0, int(position[at]), ""))
            anomalies[name] = (before + times, first, COMMIT_LOG)
        begin = count if replayed.bad_at[0] < 0 else int(replayed.bad_at[0])
        if begin < count:
            rule = _rule(of, int(replayed.bad_why[0]))
            is_known = rule is not None and any(one.rule == rule for one in refused)
            if len(refused) >= MOST_DAMAGE and (not is_known or more.total() >= MOST_COUNTED):
                break
            if len(refused) < MOST_DAMAGE:
                refused.append(Refusal(events.at(begin), rule))
            else:
                more[str(rule)] += 1
            begin += 1
    unjudged = int(position[begin]) if begin < count else -1
    return _LogReplay(refused, dict(more), unjudged, _counts(of, covered), anomalies)


def _deviations(of: Kernel, replayed: ReplayResult) -> list[tuple[str, int, int]]:
    """Returns the deviations that occurred: name, count, and index of the first event."""
    return [
        (deviation.step.__name__, int(replayed.deviated[n]), int(replayed.deviated_at[n]))
        for n, deviation in enumerate(of.spec.deviations)
        if replayed.deviated[n]
    ]


def _rule(of: Kernel, why: int) -> str | None:
    return None if why == EXACT else of.reasons[why - 1].rule


def _counts(of: Kernel, covered: Ints) -> dict[str, int]:
    return {name: int(count) for name, count in zip(of.spec.actions, covered, strict=True) if count}


# -- queues --------------------------------------------------------------------------------------------------------


def _queue_pieces(
    store: StoreDirectory, columns: Columns, options: Options
) -> tuple[Pieces, dict[str, int], dict[str, tuple[int, int, str]], QueueEvents]:
    """Replay a segment's queue events, every piece from the number that its first message claims."""
    of = kernel("queue", options.ignored)
    all_queues = options.topic is None and options.trace is None
    events = queue_events.queue_events(store, columns, None if all_queues else partial(includes_queue, options))
    origins, starts = events.pieces.origins, events.starts
    claims = np.repeat(origins[None], len(of.spec.scalars), axis=0)  # nothing before the first message is missing
    claims[of.spec.scalars.index("start")] = store.start
    claims[of.spec.scalars.index("blank")] = 0
    replayed = of.replay(
        starts, events.columns.action, events.columns.args, claims,
        origins=origins, widths=events.pieces.widths, profile=options.profile,
    )  # fmt: skip
    pieces = Pieces(
        subjects=events.subjects,
        numbers=origins,
        ends=replayed.state,
        began=events.columns.column("position")[starts[:-1]],
        last=events.rows[scan.PLACE, events.pieces.order[events.pieces.starts[1:] - 1]],
        messages=np.diff(events.pieces.starts),
        batches=events.pieces.batches,
        edges=events.edges,
        stops=origins + events.pieces.widths,
        refusals={
            int(n): Refusal(events.columns.at(int(replayed.bad_at[n])), _rule(of, int(replayed.bad_why[n])))
            for n in np.flatnonzero(replayed.bad_at >= 0)
        },
    )
    anomalies = {name: (count, *_message(events, at)) for name, count, at in _deviations(of, replayed)}
    return pieces, _counts(of, replayed.covered), anomalies, events


def _message(events: QueueEvents, event: int) -> tuple[int, str]:
    """Returns the log position of an event's message, and its queue."""
    piece = int(np.searchsorted(events.starts, event, side="right")) - 1
    return int(events.columns.column("position")[event]), name_of(events.subjects[piece])
