"""The `queue` events of one segment: every message, followed by its entry if that is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import BYTES, FLAGS, I64, INTS, INTS8, TABLE, by_python, function, native, record
from gapless.spec.catalog import SPECS
from gapless.spec.queue import BLANK_SLOT
from gapless.traces.judging import building
from gapless.traces.replay.exact import Event
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints, i32, i64
from gapless.traces.sources.rocketmq.log.scan import (
    COUNT,
    ENTRY,
    LENGTH,
    LOOSE,
    MOMENT,
    NUMBER,
    PLACE,
    SCHEDULED,
    SUBJECT,
    TAG,
    UNSURE,
)
from gapless.traces.sources.rocketmq.queues.batch_queues import OF_A_BATCH
from gapless.traces.sources.rocketmq.queues.extension_units import EXTENDED, Units, units_of
from gapless.traces.sources.rocketmq.segments.splits import Columns
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import SLOT

WIDTH = SLOT.itemsize  # bytes of an entry; ENTRY is a column here
FOREVER = 1000 * 86_400_000  # ms: no delay level is that long


class QueueCodes(NamedTuple):
    """Codes of the actions of `queue` that messages and entries are."""

    append: int
    index: int  # type: ignore[assignment]  # it has the name of its action
    index_batch: int


class QueueArguments(NamedTuple):
    """Rows of their arguments."""

    number: int
    count: int  # type: ignore[assignment]  # it has the name of its argument
    position: int
    size: int
    tag: int


class QueueCut(NamedTuple):
    """Rows of a segment in pieces: those of one subject, cut where its numbers start again at 0.

    `order`: the rows by piece, in log order within each · `starts`: where each piece begins in it · `owners`: whose it
    is · `origins`: its first number · `widths`: how many numbers it takes · `batches`: how many of its rows are to have
    no entry of their own.
    """

    order: Ints
    starts: Ints
    owners: Ints
    origins: Ints
    widths: Ints
    batches: Ints


QUEUE_CUT = record(QueueCut, INTS, INTS, INTS, INTS, INTS, INTS)
"""The kind of a cut."""


@dataclass(frozen=True, eq=False)
class QueueEvents:
    """The events of a segment's pieces: `starts` has the bounds of each, `subjects` its subject.

    `edges`: the slots before the first number of each and behind its last one, [pieces, 2]; zeros without a slot.
    """

    rows: Ints
    pieces: QueueCut
    subjects: list[tuple[str, int]]
    starts: Ints
    columns: building.Events
    edges: npt.NDArray[np.void]
    units: Units | None  # that entries name in place of their tag codes

    def of_subject(self, subject: tuple[str, int]) -> list[Event]:
        """Returns the events of one subject for exact replay."""
        return [
            self.columns.at(event)
            for piece in self._places.get(subject, ())
            for event in range(int(self.starts[piece]), int(self.starts[piece + 1]))
        ]

    @cached_property
    def _places(self) -> dict[tuple[str, int], list[int]]:
        """Returns the pieces of each subject."""
        places: dict[tuple[str, int], list[int]] = {}
        for piece, subject in enumerate(self.subjects):
            places.setdefault(subject, []).append(piece)
        return places


def queue_events(
    store: StoreDirectory, columns: Columns, wanted: Callable[[str, int], bool] | None = None
) -> QueueEvents:
    """Builds every message's `append` and its entry's `index`, by piece; of all queues or of those `wanted`."""
    spec = SPECS["queue"]
    pieces = cut(columns.room.rows, int(columns.room.filled[1]), int(columns.room.topics.used[0]))
    known = columns.subjects()
    subjects = [known[owner] for owner in pieces.owners.tolist()]
    batched = np.zeros(len(subjects), np.bool_)
    if store.batched:
        batched[:] = [subject in store.batched for subject in subjects]
        pieces = pieces._replace(batches=np.where(batched, 0, pieces.batches))  # there, each has an entry
    if wanted is not None:
        chosen = np.array([wanted(*subject) for subject in subjects], np.bool_)
        pieces, subjects = _only(pieces, chosen), [subjects[at] for at in np.flatnonzero(chosen)]
        batched = batched[chosen]
    bounds = np.zeros(len(subjects) + 1, np.int64)
    np.cumsum((pieces.widths + 2) * WIDTH, out=bounds[1:])
    entries: Bytes = columns.space.array("entries", (int(bounds[-1]),), np.uint8)
    entries.fill(0)
    low, room = bounds.tolist(), entries.data
    file_access.read_all_entries(
        store,
        (
            (subject, max(first - 1, 0), room[begin if first else begin + WIDTH : end])
            for subject, first, begin, end in zip(subjects, pieces.origins.tolist(), low, low[1:], strict=False)
        ),
    )
    edges = entries[np.stack([bounds[:-1], bounds[1:] - WIDTH], axis=1)[..., None] + np.arange(WIDTH)]
    count = 2 * len(pieces.order)
    action = columns.space.array("actions", (count,), np.int8)
    args: Ints = columns.space.array("queue events", (len(spec.arguments), count), np.int64)
    names = building.codes(spec, QueueCodes), building.rows(spec, QueueArguments)
    starts = np.empty(len(subjects) + 1, np.int64)
    pair(columns.room.rows, pieces, batched, entries, bounds, action, args, *names, starts)
    events = building.Events(spec, action, args)
    units = _resolved(store, columns.room.rows, pieces, subjects, starts, events) if store.extended else None
    return QueueEvents(columns.room.rows, pieces, subjects, starts, events, edges.view(SLOT)[..., 0], units)


def _resolved(
    store: StoreDirectory, rows: Ints, pieces: QueueCut, subjects: list[tuple[str, int]], starts: Ints,
    events: building.Events,
) -> Units | None:  # fmt: skip
    """Replaces the addresses of entries by tag codes of units; None if no entry names a unit."""
    count, codes = int(starts[-1]), events.spec.codes
    action, tags = events.action[:count], events.column("tag")[:count]
    (named,) = np.nonzero((action == codes["index"]) & (tags <= EXTENDED))
    if not len(named):
        return None
    owners = np.searchsorted(starts, named, side="right") - 1
    message = pieces.order[np.cumsum(action == codes["append"])[named] - 1]
    known = {subject: at for at, subject in enumerate(dict.fromkeys(subjects))}
    queue = np.array([known[subject] for subject in subjects], np.int64)[owners]
    rising = np.argsort(queue, kind="stable")
    units, found = units_of(
        store, list(known), queue[rising], numbers=events.column("number")[named][rising],
        positions=rows[PLACE, message][rising], tags=tags[named][rising], times=rows[MOMENT, message][rising],
    )  # fmt: skip
    resolved = np.empty(len(named), np.int64)
    resolved[rising] = found
    delay, loose = resolved - rows[MOMENT, message], rows[LOOSE, message]
    delayed = (loose == SCHEDULED) & are_delays(delay)
    lacking = np.empty(len(named), np.bool_)
    lacking[rising] = units.events.column("whole") == 0
    tags[named] = np.where(delayed | lacking | (loose == UNSURE), rows[TAG, message], resolved)
    return units


@function(inline=True)
def _is_delay(delay: Any) -> Any:
    """True if a delay level may stand for so many ms: a number, or a column of them.

    Levels may be changed at every start. Source: spec/decisions/0002-tag-codes-of-delayed-messages.md.
    """
    return (delay > 0) & (delay < FOREVER) & (delay % 1000 == 0)


def are_delays(delays: Ints) -> npt.NDArray[np.bool_]:
    """Returns the mask of times in ms that a delay level may stand for."""
    found: npt.NDArray[np.bool_] = by_python(_is_delay)(delays)
    return found


def _only(pieces: QueueCut, chosen: npt.NDArray[np.bool_]) -> QueueCut:
    """Selects the chosen pieces."""
    lengths = np.diff(pieces.starts)
    order = pieces.order[np.repeat(chosen, lengths)]
    starts = np.concatenate([[0], np.cumsum(lengths[chosen])])
    kept = (column[chosen] for column in (pieces.owners, pieces.origins, pieces.widths, pieces.batches))
    return QueueCut(order, starts, *kept)


def cut(rows: Ints, count: int, subjects: int) -> QueueCut:
    """Cuts the first `count` rows into pieces."""
    order, starts, owners, origins, widths, batches = (np.empty(count, np.int64) for _ in QueueCut._fields)
    bounds = np.zeros(subjects + 1, np.int64)
    pieces = _cut(rows, count, bounds, QueueCut(order, starts, owners, origins, widths, batches))
    starts = np.append(starts[:pieces], count)
    return QueueCut(order, starts, owners[:pieces].copy(), origins[:pieces], widths[:pieces], batches[:pieces])


@native(lambda _rows, count, *_: count, kinds=(TABLE, I64, INTS, QUEUE_CUT))
def _cut(rows: Ints, count: int, bounds: Ints, into: QueueCut) -> int:
    """Fills `into`; returns the number of pieces. `bounds` [subjects + 1]: zeros, as working memory."""
    order, starts, owners, origins, widths, batches = into
    _by_subject(rows, count, bounds, order)
    pieces = 0
    begin = 0
    for s in range(len(bounds) - 1):
        for i in range(begin, bounds[s]):
            r = order[i]
            if i == begin or rows[NUMBER, r] == 0:
                starts[pieces] = i
                owners[pieces] = s
                origins[pieces] = rows[NUMBER, r]
                widths[pieces] = batches[pieces] = 0
                pieces += 1
            widths[pieces - 1] += min(max(rows[COUNT, r], 1), 65536)
            batches[pieces - 1] += int(rows[ENTRY, r] == 0)
        begin = bounds[s]
    return pieces


@function
def _by_subject(rows: Ints, count: int, bounds: Ints, order: Ints) -> None:
    """Sorts rows by subject, stable. `bounds`: zeros before, and the end of each subject's rows after."""
    for i in range(count):
        bounds[rows[SUBJECT, i] + 1] += 1
    for s in range(len(bounds) - 1):
        bounds[s + 1] += bounds[s]
    for i in range(count):
        s = rows[SUBJECT, i]
        order[bounds[s]] = i
        bounds[s] += 1


@native(
    lambda _rows, pieces, *_: len(pieces.order),
    kinds=(TABLE, QUEUE_CUT, FLAGS, BYTES, INTS, INTS8, TABLE, record(QueueCodes), record(QueueArguments), INTS),
)
def pair(
    rows: Ints, pieces: QueueCut, batched: npt.NDArray[np.bool_], entries: Bytes, bounds: Ints,
    action: npt.NDArray[np.int8], args: Ints, codes: QueueCodes, into: QueueArguments, begin: Ints,
) -> None:  # fmt: skip
    """Writes the events of `queue`: every message's `append`, followed by the `index` of its entry, if any.

    `entries` holds the slots of a piece's numbers, and one more on each side, from `bounds` on; a slot of zeros is not
    written yet. `batched`: which pieces' entries may stand for several numbers each, as `batch_queues.py` has them.
    `begin` [pieces + 1]: where each piece's events begin.
    """
    order, starts, origins, widths = pieces.order, pieces.starts, pieces.origins, pieces.widths
    begin[0] = 0
    n = 0
    for piece in range(len(starts) - 1):
        for i in range(starts[piece], starts[piece + 1]):
            r = order[i]
            number = rows[NUMBER, r]
            action[n] = codes.append
            args[into.number, n] = number
            args[into.count, n] = rows[COUNT, r]
            args[into.position, n] = rows[PLACE, r]
            args[into.size, n] = rows[LENGTH, r]
            args[into.tag, n] = rows[TAG, r]
            n += 1
            slot = number - origins[piece]
            if (rows[ENTRY, r] == 0 and not batched[piece]) or not 0 <= slot < widths[piece]:
                continue
            p = bounds[piece] + WIDTH * (1 + slot)
            position, size, tag = i64(entries, p), i32(entries, p + 8), i64(entries, p + 12)
            if batched[piece] and size == OF_A_BATCH:
                continue  # the entry before it claims this number too
            if position != 0 or size != 0 or tag != 0:
                action[n] = codes.index
                more = batched[piece] and i32(entries, p + WIDTH + 8) == OF_A_BATCH
                if more or rows[ENTRY, r] == 0:
                    action[n] = codes.index_batch
                    args[into.count, n] = i64(entries, p + WIDTH) if more else 1
                args[into.number, n] = number
                args[into.position, n] = position
                args[into.size, n] = size
                args[into.tag, n] = rows[TAG, r] if _is_excused(rows, r, size, tag) else tag
                n += 1
        begin[piece + 1] = n


@function(inline=True)
def _is_excused(rows: Ints, r: int, size: int, tag: int) -> bool:
    """True if an entry's tag code cannot be judged, and counts as the message's own.

    The same holds of the time in an entry of the schedule topic if it is behind the store time by a possible delay
    level (seen: docs/rocketmq.md#delay-levels).
    """
    loose = rows[LOOSE, r]
    return size != BLANK_SLOT and (loose == UNSURE or (loose == SCHEDULED and _is_delay(tag - rows[MOMENT, r])))


ENTRIES = (_cut, pair)
"""All that is compiled of it."""
