"""The `partition` events of a part of a segment: its batches, and what lies next to them in indexes and checkpoints.

Source: docs/kafka.md#segments, #indexes, #epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Events, Ints
from gapless.traces.sources.kafka.files.indexes import offset_index, time_index
from gapless.traces.sources.kafka.files.snapshots import ProducerSnapshot
from gapless.traces.sources.kafka.judging.event_order import EventOrder, beginnings
from gapless.traces.sources.kafka.judging.parts import NONE, SegmentPart
from gapless.traces.sources.kafka.log.batches import Scan, Stop
from gapless.traces.sources.kafka.log.records import ContentFault, Contents

LEAD, SAVE, APPEND, INDEX, INDEX_TIME, SEAL, ROLL, LATE, KINDS = range(9)  # in this order next to one batch
TORN = (Stop.SHORT, Stop.LENGTH, Stop.MAGIC)
"""The reasons for which whole batches end where bytes are left that are no zeros."""
WHOLE = (Stop.END, Stop.ZEROS)
"""The reasons for which batches end behind which there are none."""
UNREAD = (Stop.OLD, Stop.LARGE)
"""The reasons for which batches are not read that may be whole."""


class Leaders(NamedTuple):
    """Leader epochs of a part, and the offsets at which they begin. `before`: the one that leads before it."""

    before: tuple[int, int]
    epoch: Ints
    since: Ints
    inferred: int  # of them, those that no checkpoint names


def partition_events(
    part: SegmentPart, found: Scan, contents: Contents | None, snapshots: Sequence[ProducerSnapshot]
) -> tuple[Events, Leaders]:  # fmt: skip
    """Make the events of a part, which begin with `open`. Raises OSError."""
    order, heads = EventOrder(SPECS["partition"]), found.batches
    count = len(heads)
    end = int(heads.last[-1]) + 1 if count else part.offset
    leaders = _leaders(part, found, end)
    order.add(
        "open", _keys(-1, LEAD), start=part.terms.start, segment=part.segment.base, offset=part.offset,
        position=part.begin, epoch=leaders.before[0], since=leaders.before[1], newest=part.timed, timed=part.timed,
        compacted=part.terms.compacted,
    )  # fmt: skip
    order.add(
        "lead", _keys_of_leaders(part, found, leaders.since, end),
        epoch=leaders.epoch, since=leaders.since,
    )  # fmt: skip
    saved = np.array([one.offset for one in snapshots], np.int64)
    order.add(
        "save", _keys(heads.highest_base.searchsorted(saved), SAVE), at=saved,
        sound=np.array([not one.fault for one in snapshots], np.int64),
    )  # fmt: skip
    order.add("append", np.arange(APPEND, count * KINDS + APPEND, KINDS), **_batches(found, contents))
    _add_indexes(order, part, found, end)
    if part.is_last and part.terms.is_whole and found.stop in TORN:
        order.add(
            "append", _keys(count, APPEND), first=end, last=end, count=1, epoch=NONE, position=found.end,
            size=found.size - found.end, time=NONE, sound=0, whole=0, ordered=1, dated=1,
        )  # fmt: skip
    if part.closes and found.stop not in UNREAD:
        if part.segment.time_index and (part.rolled_to != NONE or part.terms.is_whole):
            order.add("seal", _keys(count, SEAL))
        if part.rolled_to != NONE:
            order.add("roll", _keys(count, ROLL), segment=part.rolled_to, rest=_rest(found))
    return order.events()[0], leaders


def _keys(batch: Ints | int, kind: int) -> Ints:
    """The places of events next to batches, which are given by their numbers."""
    return np.atleast_1d(np.asarray(batch, np.int64)) * KINDS + kind


def _keys_of_leaders(part: SegmentPart, found: Scan, since: Ints, end: int) -> Ints:
    """The places of leaders: before the first batch of each, or all before any batch if their file is out of order.

    Those that begin behind the last batch come last: if records are missing there, the log says so first.
    """
    before = found.batches.highest_base.searchsorted(since)
    if (since[1:] < since[:-1]).any():
        return np.full(len(since), LEAD)
    is_late = (since > end) & (not part.terms.compacted)
    return np.asarray(before * KINDS + np.where(is_late, LATE, LEAD), np.int64)


def _rest(found: Scan) -> int:
    """The bytes behind the last whole batch, but for zeros of a segment that was allocated beforehand."""
    return 0 if found.stop in (Stop.END, Stop.ZEROS) else found.size - found.end


def _batches(found: Scan, contents: Contents | None) -> dict[str, Ints | int]:
    """The arguments of `append`, a column each."""
    heads = found.batches
    args: dict[str, Ints | int] = {
        "first": heads.base, "last": heads.last, "count": heads.count, "epoch": heads.leader_epoch,
        "position": heads.position, "size": heads.size, "time": heads.max_time,
        "sound": heads.is_sound.astype(np.int64), "whole": 1, "ordered": 1, "dated": 1,
    }  # fmt: skip
    if contents is not None:
        parsed = contents.fault == ContentFault.OK
        none = contents.parsed == 0
        inside = (contents.first >= 0) & (contents.last <= heads.last - heads.base)
        args["whole"] = parsed.astype(np.int64)
        args["ordered"] = (~parsed | none | (contents.rising & inside)).astype(np.int64)
        args["dated"] = (~parsed | none | (contents.max_time == heads.max_time) | (heads.max_time < 0)).astype(np.int64)
    return args


def _leaders(part: SegmentPart, found: Scan, end: int) -> Leaders:
    """The epochs that lead in a part: by the checkpoint, or as the batches have them where it need not have them."""
    kept = part.terms.leaders
    epoch, since = (kept.epoch, kept.start) if kept else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    if (since[1:] < since[:-1]).any():
        if part.is_first:
            return Leaders((NONE, 0), epoch, since, 0)  # all at once: the first that is out of order departs
        epoch, since = epoch[np.argsort(since, kind="stable")], np.sort(since)
    of, begins = _inferred(part, found, epoch, since)
    early = begins < since[0] if len(since) else np.ones(len(of), np.bool_)
    is_moved = len(since) > 0 and (since[0] <= part.terms.log_start or _may_move(part))
    if early.any() and is_moved and of[early][-1] == epoch[0]:
        epoch, since = epoch[1:], since[1:]  # its entry was moved to the log's start
    if part.is_first and len(begins) and begins[0] == found.batches.base[0]:
        begins = np.concatenate([[part.offset], begins[1:]])
    claimed = NONE, 0
    if len(before := np.flatnonzero(since < part.offset)):
        claimed = int(epoch[before[-1]]), int(since[before[-1]])
    elif not part.is_first and len(of):
        claimed, of, begins = (int(of[0]), NONE), of[1:], begins[1:]
    until = part.rolled_to if part.closes and not part.is_last else end
    mine = (since >= part.offset) & ((since < until) | part.is_last)
    return Leaders(claimed, np.concatenate([of, epoch[mine]]), np.concatenate([begins, since[mine]]), len(of))


def _inferred(part: SegmentPart, found: Scan, epoch: Ints, since: Ints) -> tuple[Ints, Ints]:
    """The epochs of batches that no entry of the checkpoint is about, and where each begins.

    Such batches lie below the log's start, which a running broker writes down now and then, and a kill takes back; or
    the file is missing; or the log is younger than the file, in a copy.
    """
    heads = found.batches
    changes = beginnings(heads.leader_epoch, NONE)
    base, of = heads.base[changes], heads.leader_epoch[changes]
    if not len(since):
        lawful = np.full(len(base), part.terms.epochs is None or not part.terms.is_whole)
    else:
        lawful = (base < since[0]) & ((base < part.terms.log_start) | _may_move(part))
        if not part.terms.is_whole:
            lawful |= (base > since[-1]) & (of > epoch[-1])
    return of[lawful], base[lawful]


def _may_move(part: SegmentPart) -> bool:
    """True if clients may have moved the start of the log, which only the epochs tell: not of Kafka's own topics."""
    return part.terms.checked or not part.terms.is_whole


def _add_indexes(order: EventOrder, part: SegmentPart, found: Scan, end: int) -> None:
    """Add the entries of both indexes, each behind the last batch that it is about."""
    heads = found.batches
    if part.segment.offset_index is not None:
        entries = offset_index(part.segment.offset_index, part.segment.base)
        mine = _of_part(part, found, entries.offset, end)
        offset, position = entries.offset[mine], entries.position[mine]
        behind = heads.highest_last.searchsorted(offset, side="right") - 1
        at = np.minimum(heads.position.searchsorted(position), max(len(heads) - 1, 0))
        begins = np.full(len(offset), NONE)
        if len(heads):
            is_batch = heads.position[at] == position
            begins[is_batch] = heads.base[at[is_batch]]
            behind = np.maximum(behind, np.where(is_batch, at, NONE))  # no entry comes before its batch
        order.add("index", _keys(np.maximum.accumulate(behind), INDEX), offset=offset, position=position, begins=begins)
    if part.segment.time_index is not None:
        times = time_index(part.segment.time_index, part.segment.base)
        mine = _of_part(part, found, times.offset, end)
        offset, time = times.offset[mine], times.time[mine]
        behind = heads.highest_base.searchsorted(offset, side="right") - 1
        order.add("index_time", _keys(np.maximum.accumulate(behind), INDEX_TIME), time=time, offset=offset)


def _of_part(part: SegmentPart, found: Scan, offset: Ints, end: int) -> Ints:
    """The entries whose offsets a part has; the last part of a segment has those of none, too.

    If batches end before the file does, nothing is asked of entries behind them: the log says so.
    """
    low = np.zeros(len(offset), np.bool_) if part.opens else offset < part.offset
    high = np.zeros(len(offset), np.bool_) if part.closes and found.stop in WHOLE else offset >= end
    return np.flatnonzero(~low & ~high)
