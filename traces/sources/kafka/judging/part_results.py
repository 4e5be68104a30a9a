"""Reads and judges one part of a segment: its batches become events of `partition`, and of `producer`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gapless.native import expecting
from gapless.spec.catalog import SPECS
from gapless.traces.judging import building
from gapless.traces.judging.building import Events, Ints
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable
from gapless.traces.replay.exact import Event
from gapless.traces.replay.kernels import ReplayResult, kernel
from gapless.traces.sources.kafka.files.snapshots import ProducerSnapshot, producer_snapshot
from gapless.traces.sources.kafka.judging.aborted_piece import AbortedPiece, aborted_piece
from gapless.traces.sources.kafka.judging.partition_events import UNREAD, partition_events
from gapless.traces.sources.kafka.judging.parts import NONE, Bundle, Role, SegmentPart
from gapless.traces.sources.kafka.judging.producer_events import ProducerEvents, producer_events
from gapless.traces.sources.kafka.judging.producer_pieces import ProducerPieces, counts, judge_producers
from gapless.traces.sources.kafka.judging.transaction_items import TransactionItems, transaction_items
from gapless.traces.sources.kafka.log import batches
from gapless.traces.sources.kafka.log.batches import Batches, Scan, Stop, chunks, rows_of
from gapless.traces.sources.kafka.log.keys import NO_KEYS, KeyCollector, RecordKeys
from gapless.traces.sources.kafka.log.records import Contents

if TYPE_CHECKING:
    from gapless.traces.sources.kafka.judging.offset_piece import OffsetPiece
    from gapless.traces.sources.kafka.judging.table_piece import TablePiece

LARGE = 31 << 20
"""Bytes of the largest block, or nearly, that glibc's malloc learns from."""


class PartitionPiece(NamedTuple):
    """The log of a part, replayed from what files next to it claim.

    `begin`, `end`: int64 [scalars], the states behind `open` and at the end · `refused`: the number of the event that a
    kernel refused, or -1 · `deviated`: anomalies by name: count, offset.
    """

    begin: Ints
    end: Ints
    refused: int
    covered: dict[str, int]
    deviated: dict[str, tuple[int, int]]
    inferred: int


class PartResult(NamedTuple):
    """The result of one part. `stop`: why no batch follows the last one, `reached` bytes into the segment.

    `items`: batches of transactions, `table`: rows of the coordinator's table, `offsets`: of groups; where they are
    judged · `dense`: the offset from which on each offset has its record.

    `end`: the offset behind the last batch · `records`, `batches`: how many there are.
    """

    part: SegmentPart
    partition: PartitionPiece
    producers: ProducerPieces
    aborted: AbortedPiece
    items: TransactionItems | None
    table: TablePiece | None
    offsets: OffsetPiece | None
    dense: int
    stop: Stop
    reached: int
    size: int
    end: int
    records: int
    batches: int
    newest: int
    keys: RecordKeys


class PartEvents(NamedTuple):
    """The events of a part."""

    found: Scan
    partition: Events
    inferred: int
    producers: ProducerEvents
    snapshots: list[ProducerSnapshot]
    keys: RecordKeys
    table: TablePiece | None
    offsets: OffsetPiece | None


def read_part(part: SegmentPart) -> PartEvents:
    """Read a part into events. Raises OSError."""
    found, contents, keys, table, offsets = _scanned(part)
    end = int(found.batches.last[-1]) + 1 if len(found.batches) else part.offset
    kept = part.terms.is_whole or found.stop not in UNREAD
    taken = [one for one in part.snapshots if (part.terms.is_whole and kept) or one[0] <= end]  # others were lost
    snapshots = [producer_snapshot(path, offset) for offset, path in taken]
    partition, leaders = partition_events(part, found, contents, snapshots)
    sound = [one for one in snapshots if not one.fault]
    heads, wanted = found.batches, part.terms.producer
    if wanted != NONE:
        heads, sound = Batches(heads.table[:, heads.producer == wanted]), [one.only(wanted) for one in sound]
    return PartEvents(found, partition, leaders.inferred, producer_events(heads, sound), sound, keys, table, offsets)


class PartRecords(NamedTuple):
    """The batches of a part; if it is read deeply their records, and keys; of coordinators' topics their rows."""

    found: Scan
    contents: Contents | None
    keys: RecordKeys
    table: TablePiece | None
    offsets: OffsetPiece | None


def _scanned(part: SegmentPart) -> PartRecords:
    heads, records, rows, committed = [], [], [], []
    keys = KeyCollector(part.terms.log_start, part.terms.cleaned) if part.offset < part.terms.cleaned else None
    table = _table_reader() if part.terms.transactions == Role.TABLE else None
    offsets = _offset_reader() if part.terms.transactions == Role.GROUPS else None
    contents = _deep_reader() if part.terms.deep else None
    for last in chunks(part.segment.log, part.begin, part.end):
        heads.append(last.batches.table)
        if contents is not None:
            records.append(contents(last, keys=keys))
        if table is not None:
            rows.append(table.table_piece(last))
        if offsets is not None:
            committed.append(offsets.offset_piece(last))
    found = Scan(Batches(np.concatenate(heads, axis=1)), part.begin, last.end, last.size, last.stop)
    whole = type(records[0])(np.concatenate([one.table for one in records], axis=1)) if records else None
    return PartRecords(
        found, whole, keys.keys if keys and records else NO_KEYS, table.joined(rows) if table else None,
        offsets.joined(committed) if offsets else None,
    )  # fmt: skip


def prepare(options: Options, size: int) -> None:
    """Compile the native code of workers, if so many bytes of logs are worth it: once, and before they are forked."""
    from gapless.traces.sources.kafka.log import records  # noqa: PLC0415 - codecs load slowly

    with expecting(rows_of(size)):
        for name in ("partition", "producer"):
            kernel(name, options.ignored).prepare()
        for entry in (*batches.ENTRIES, *records.ENTRIES):
            entry.prepare()


def _deep_reader() -> Callable[..., Contents]:
    from gapless.traces.sources.kafka.log.records import contents  # noqa: PLC0415 - codecs load slowly

    return contents


def _table_reader() -> ModuleType:
    from gapless.traces.sources.kafka.judging import table_piece  # noqa: PLC0415 - as above

    return table_piece


def _offset_reader() -> ModuleType:
    from gapless.traces.sources.kafka.judging import offset_piece  # noqa: PLC0415 - as above

    return offset_piece


def judge_part(part: SegmentPart, options: Options) -> PartResult:
    """Judge a part. Raises OSError."""
    read = read_part(part)
    heads = read.found.batches
    return PartResult(
        part=part,
        partition=_judge_partition(read, options),
        producers=judge_producers(part.terms, read.producers, read.snapshots, options),
        aborted=aborted_piece(part, read.found, read.snapshots),
        items=transaction_items(heads) if part.terms.transactions in (Role.PARTITION, Role.GROUPS) else None,
        table=read.table,
        offsets=read.offsets,
        dense=heads.dense_from(part.offset),
        stop=read.found.stop,
        reached=read.found.end,
        size=read.found.size,
        end=int(heads.last[-1]) + 1 if len(heads) else part.offset,
        records=int(heads.count.sum()),
        batches=len(heads),
        newest=int(heads.max_time.max(initial=NONE)),
        keys=read.keys,
    )


def _judge_partition(read: PartEvents, options: Options) -> PartitionPiece:
    of, events = kernel("partition", options.ignored), read.partition
    begin = replay_rows(events, 0, 1, building.states(of.spec, 1), options)
    rest = replay_rows(events, 1, len(events.action), begin.state, options)
    bad = rest.bad_at[0] if begin.bad_at[0] < 0 else begin.bad_at[0]
    deviated = {
        deviation.step.__name__: (int(rest.deviated[number]), event_offset(events.at(int(rest.deviated_at[number]))))
        for number, deviation in enumerate(of.spec.deviations)
        if rest.deviated[number]
    }
    return PartitionPiece(
        begin.state[:, 0], rest.state[:, 0], int(bad), counts(of.spec, rest.covered), deviated, read.inferred
    )


def replay_rows(events: Events, low: int, high: int, begin: Ints, options: Options) -> ReplayResult:
    """Replay some events of one trace by a kernel, from a state on."""
    return kernel(events.spec, options.ignored).replay(
        np.array([low, high], np.int64), events.action, events.args, begin, profile=options.profile
    )


def event_offset(event: Event) -> int:
    """Return the offset that an event of `partition` is about; -1 if it is about none."""
    named = dict(zip(SPECS["partition"].parameters[event[0]], event[1], strict=True))
    return next((named[name] for name in ("first", "since", "offset", "at", "to") if name in named), NONE)


def judge_bundle(bundle: Bundle, options: Options) -> list[PartResult]:
    """Judge some parts. Raises Unreadable."""
    _keep_memory()
    return [_judged(part, options) for part in bundle.parts]


@cache
def _keep_memory() -> None:
    """Let the process keep the memory of a part for the next one.

    glibc hands memory back to the system as soon as twice the largest block is free that was ever given back, and each
    page that it asks for again costs more than what is computed in it. So a large block is given back once, unused.
    """
    np.empty(LARGE, np.uint8)


def _judged(part: SegmentPart, options: Options) -> PartResult:
    try:
        return judge_part(part, options)
    except OSError as problem:
        place = f"{part.terms.folder}/{part.segment.log.name}"
        raise Unreadable(f"{place}: it cannot be read: {problem.strerror or problem}: check a copy") from problem
