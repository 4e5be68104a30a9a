"""The `queue` events of one segment: every message, followed by its entry where that is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS
from gapless.spec.queue import BLANK_SLOT
from gapless.traces.judging import building
from gapless.traces.native import native, njit
from gapless.traces.replay.exact import Event
from gapless.traces.sources.rocketmq.segments.splits import Columns
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.bytes import Bytes, Ints, i32, i64
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import ENTRY as SLOT
from gapless.traces.sources.rocketmq.store.scan import (
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

EXTENDED = -2147483649  # tag codes from here down are addresses in consumequeue_ext
FOREVER = 1000 * 86_400_000  # ms: no delay level is that long


class QueueCodes(NamedTuple):
    """Codes of the actions of `queue` that messages and entries are."""

    append: int
    index: int


class QueueArguments(NamedTuple):
    """Rows of their arguments."""

    number: int
    count: int
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


@dataclass(frozen=True, eq=False)
class QueueEvents:
    """The events of a segment's pieces: `starts` bounds those of each, `subjects` says whose it is.

    `beside`: the slots before the first number of each and behind its last one, [pieces, 2]; zeros where there is none.
    """

    rows: Ints
    pieces: QueueCut
    subjects: list[tuple[str, int]]
    starts: Ints
    columns: building.Events
    beside: npt.NDArray[np.void]

    def of_subject(self, subject: tuple[str, int]) -> list[Event]:
        """The events of one subject, as exact replay takes them."""
        return [
            self.columns.at(event)
            for piece in self._places.get(subject, ())
            for event in range(int(self.starts[piece]), int(self.starts[piece + 1]))
        ]

    @cached_property
    def _places(self) -> dict[tuple[str, int], list[int]]:
        """The pieces of each subject."""
        places: dict[tuple[str, int], list[int]] = {}
        for piece, subject in enumerate(self.subjects):
            places.setdefault(subject, []).append(piece)
        return places


def queue_events(
    store: StoreDirectory, columns: Columns, wanted: Callable[[str, int], bool] | None = None
) -> QueueEvents:
    """Every message's `append` with the `index` of its entry, by piece; of the queues that are `wanted`, or of all."""
    spec = SPECS["queue"]
    pieces = cut(columns.room.rows, int(columns.room.filled[1]), int(columns.room.topics.used[0]))
    known = columns.subjects()
    subjects = [known[owner] for owner in pieces.owners.tolist()]
    if wanted is not None:
        chosen = np.array([wanted(*subject) for subject in subjects], np.bool_)
        pieces, subjects = _only(pieces, chosen), [subjects[at] for at in np.flatnonzero(chosen)]
    bounds = np.zeros(len(subjects) + 1, np.int64)
    np.cumsum((pieces.widths + 2) * SLOT, out=bounds[1:])
    entries: Bytes = columns.space.array("entries", (int(bounds[-1]),), np.uint8)
    entries.fill(0)
    low = bounds.tolist()
    for (topic, queue), first, begin, end in zip(subjects, pieces.origins.tolist(), low, low[1:], strict=False):
        if first == 0:
            file_access.read_entries(store, topic, queue, 0, entries.data[begin + SLOT : end])
        else:
            file_access.read_entries(store, topic, queue, first - 1, entries.data[begin:end])
    beside = entries[np.stack([bounds[:-1], bounds[1:] - SLOT], axis=1)[..., None] + np.arange(SLOT)]
    count = 2 * len(pieces.order)
    action = columns.space.array("actions", (count,), np.int8)
    args: Ints = columns.space.array("queue events", (len(spec.arguments), count), np.int64)
    names = building.codes(spec, QueueCodes), building.rows(spec, QueueArguments)
    starts = pair(columns.room.rows, pieces, entries, bounds, action, args, *names, extended=store.extended)
    events = building.Events(spec, action, args)
    return QueueEvents(columns.room.rows, pieces, subjects, starts, events, beside.view(file_access.SLOT)[..., 0])


def load_kernels() -> None:
    """Compile the kernels below, or load them, by running them on nothing."""
    spec, events = SPECS["queue"], building.Events.room(SPECS["queue"], 0)
    nothing = Columns(1).room.rows
    names = building.codes(spec, QueueCodes), building.rows(spec, QueueArguments)
    pieces = cut(nothing, 0, 0)
    pair(nothing, pieces, np.zeros(1, np.uint8), pieces.widths, events.action, events.args, *names, extended=False)


def _only(pieces: QueueCut, chosen: npt.NDArray[np.bool_]) -> QueueCut:
    """The chosen pieces."""
    lengths = np.diff(pieces.starts)
    order = pieces.order[np.repeat(chosen, lengths)]
    starts = np.concatenate([[0], np.cumsum(lengths[chosen])])
    kept = (column[chosen] for column in (pieces.owners, pieces.origins, pieces.widths, pieces.batches))
    return QueueCut(order, starts, *kept)


@native(lambda _rows, count, _subjects: count, arrays=True)
def cut(rows: Ints, count: int, subjects: int) -> QueueCut:
    """The first `count` rows in pieces."""
    order, bounds = _by_subject(rows, count, subjects)
    starts = np.empty(count + 1, np.int64)
    owners = np.empty(count, np.int64)
    pieces = 0
    for s in range(subjects):
        for i in range(bounds[s], bounds[s + 1]):
            if i == bounds[s] or rows[NUMBER, order[i]] == 0:
                starts[pieces] = i
                owners[pieces] = s
                pieces += 1
    starts[pieces] = count
    origins = np.zeros(pieces, np.int64)
    widths = np.zeros(pieces, np.int64)
    batches = np.zeros(pieces, np.int64)
    for piece in range(pieces):
        origins[piece] = rows[NUMBER, order[starts[piece]]]
        for i in range(starts[piece], starts[piece + 1]):
            widths[piece] += min(max(rows[COUNT, order[i]], 1), 65536)
            batches[piece] += np.int64(rows[ENTRY, order[i]] == 0)
    return QueueCut(order, starts[: pieces + 1].copy(), owners[:pieces].copy(), origins, widths, batches)


@numba.njit
def _by_subject(rows: Ints, count: int, subjects: int) -> tuple[Ints, Ints]:
    """Rows by subject, in log order within each: their order, and where each subject's rows begin in it."""
    starts = np.zeros(subjects + 1, np.int64)
    for i in range(count):
        starts[rows[SUBJECT, i] + 1] += 1
    for s in range(subjects):
        starts[s + 1] += starts[s]
    order = np.empty(count, np.int64)
    at = starts[:-1].copy()
    for i in range(count):
        s = rows[SUBJECT, i]
        order[at[s]] = i
        at[s] += 1
    return order, starts


@native(lambda _rows, pieces, *_, extended: len(pieces.order), arrays=True)  # noqa: ARG005
def pair(
    rows: Ints, pieces: QueueCut, entries: Bytes, bounds: Ints, action: npt.NDArray[np.int8], args: Ints,
    codes: QueueCodes, into: QueueArguments, *, extended: bool,
) -> Ints:  # fmt: skip
    """Write the events of `queue`: every message's `append`, followed by the `index` of its entry where it has one.

    `entries` holds the slots of a piece's numbers, and one more on each side, from `bounds` on; a slot of zeros is not
    written yet. `extended`: tag codes may be addresses in consumequeue_ext. Returns where each piece's events begin.
    """
    order, starts, origins, widths = pieces.order, pieces.starts, pieces.origins, pieces.widths
    begin = np.empty(len(starts), np.int64)
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
            if rows[ENTRY, r] == 0 or not 0 <= slot < widths[piece]:
                continue
            p = bounds[piece] + SLOT * (1 + slot)
            position, size, tag = i64(entries, p), i32(entries, p + 8), i64(entries, p + 12)
            if position != 0 or size != 0 or tag != 0:
                action[n] = codes.index
                args[into.number, n] = number
                args[into.position, n] = position
                args[into.size, n] = size
                args[into.tag, n] = rows[TAG, r] if _is_excused(rows, r, size, tag, extended) else tag
                n += 1
        begin[piece + 1] = n
    return begin


@njit(inline="always")
def _is_excused(rows: Ints, r: int, size: int, tag: int, extended: bool) -> bool:
    """Whether an entry's tag code cannot be judged, and is taken for the message's own.

    So is the time in an entry of the schedule topic if it lies whole seconds behind the store time: delay levels may be
    set anew at every start (seen: docs/rocketmq.md#delay-levels).
    """
    delay = tag - rows[MOMENT, r]
    return size != BLANK_SLOT and (
        rows[LOOSE, r] == UNSURE
        or (rows[LOOSE, r] == SCHEDULED and 0 < delay < FOREVER and delay % 1000 == 0)
        or (extended and tag <= EXTENDED)
    )
