"""Messages in a copy of the broker's log, found by their entries and compared with their originals.

Such a copy, tiered or compacted, is consecutive records like the broker's own log; so the same scan reads it.

Source: docs/rocketmq-tiered.md#upload, docs/rocketmq.md#compaction.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.native import BYTES, I64, INTS, TABLE, by_library, function, native
from gapless.native.swar import eight
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints, i32, i64, is_name, u32
from gapless.traces.sources.rocketmq.layouts.joined_keys import KEY, keys_and_bodies
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.log.records import MAGIC_V1, MAGIC_V2, SMALLEST, measure, parts
from gapless.traces.sources.rocketmq.segments.splits import SPLIT, Columns, Split, SplitReader
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import Space
from gapless.traces.sources.rocketmq.store.files import LogFile, Maps, Queue

PLACE_OF_RECORD, END_OF_PLACE = 28, 36  # bytes of a record that name its own place, which the uploader overwrites


class CopiedEntries(NamedTuple):
    """Entries of a copied queue, a column for each field: number, place and size of a message, and its tag code."""

    number: Ints
    position: Ints
    size: Ints
    tag: Ints

    def of(self, some: slice) -> CopiedEntries:
        """Returns some of them."""
        return CopiedEntries(*(column[some] for column in self))

    def in_order(self, begin: int, end: int, before: int, *, joined: bool) -> int:
        """Returns how many of the first entries follow one another in the bytes `begin:end` of the log.

        Their numbers rise from `before` on. `joined`: each message begins where the last one ends, not behind it.
        """
        return _in_order(self.number, self.position, self.size, begin, end, before, int(joined))


@native(lambda number, *_: len(number), kinds=(INTS, INTS, INTS, I64, I64, I64, I64))
def _in_order(number: Ints, position: Ints, size: Ints, begin: int, end: int, before: int, joined: int) -> int:
    """Counts the entries that follow one another, as `CopiedEntries.in_order` says."""
    reached, last = begin, before
    for i in range(len(number)):
        at, room = position[i], end - size[i]
        if size[i] <= 0 or at < reached or at > room or (joined != 0 and at != reached) or number[i] <= last:
            return int(i)
        reached, last = at + size[i], number[i]
    return len(number)


class TieredMessages(NamedTuple):
    """Messages by position, a column for each field.

    `whole`: its parts add up · `owned`: it is of the queue that was asked for · `sure`: its tag code is known ·
    `time`: when it was stored, in ms
    """

    position: Ints
    size: Ints
    claimed: Ints
    whole: Ints
    intact: Ints
    owned: Ints
    number: Ints
    tag: Ints
    sure: Ints
    time: Ints


AHEAD = 16  # records, ten thousand bytes of them or so
COLUMNS = len(TieredMessages._fields)
SIZE, NUMBER, TIME, FIELDS = range(4)  # rows that are compared in addition to bytes
Truths = npt.NDArray[np.bool_]


def messages_between(
    store: StoreDirectory, files: Sequence[LogFile], queue: Queue, low: int, high: int, space: Space
) -> TieredMessages:  # fmt: skip
    """Returns the records in the bytes `low:high` of a tiered log; one must begin at `low`. Raises Unreadable."""
    found = [np.zeros((COLUMNS, 0), np.int64)]
    for file in files:
        begin, end = max(low - file.base, 0), min(high - file.base, file.length)
        for at in range(begin, end, SPLIT):
            split = Split(file, at, min(at + SPLIT, end), exact=file.base + at in (low, file.base))
            found += [_messages(scanned.columns, queue) for scanned in SplitReader(store, split, space).segments()]
    every = np.concatenate(found, axis=1) if len(found) > 2 else found[-1]
    if (every[0, 1:] < every[0, :-1]).any():
        every = every[:, np.argsort(every[0], kind="stable")]
    return TieredMessages(*every)


def messages_at(found: TieredMessages, positions: Ints) -> tuple[Truths, dict[str, Ints]]:
    """Returns the mask of places with a message, and the fields of each; zeros without one."""
    if np.array_equal(found.position, positions):  # as it is, unless something is wrong
        return np.ones(len(positions), np.bool_), found._asdict()
    if not len(found.position):
        return np.zeros(len(positions), np.bool_), {n: np.zeros(len(positions), np.int64) for n in found._fields}
    at = np.minimum(found.position.searchsorted(positions), len(found.position) - 1)
    lies = found.position[at] == positions
    return lies, {name: np.where(lies, column[at], 0) for name, column in found._asdict().items()}


def _messages(columns: Columns, queue: Queue) -> Ints:
    """Returns the records of a scan as rows of `TieredMessages`."""
    log, rows, subjects = columns.log, columns.rows, columns.subjects()
    made = np.zeros((COLUMNS, log.shape[1]), np.int64)
    made[0], made[1], made[2] = log[scan.POSITION], log[scan.SIZE], log[scan.CLAIMED]
    made[3], made[4] = log[scan.KNOWN] & log[scan.FITS], log[scan.INTACT]
    made[9] = log[scan.TIME]
    if rows.shape[1]:
        first: Ints | slice = slice(None)
        if not np.array_equal(rows[scan.PLACE], log[scan.POSITION]):  # some are in no queue, or in several
            first = np.minimum(rows[scan.PLACE].searchsorted(log[scan.POSITION]), rows.shape[1] - 1)
        there = rows[scan.PLACE, first] == log[scan.POSITION]
        ours = np.array([subject == queue for subject in subjects], np.int64)
        made[5] = there & (ours[rows[scan.SUBJECT, first]] != 0)
        made[6], made[7] = rows[scan.NUMBER, first], rows[scan.TAG, first]
        made[8] = rows[scan.LOOSE, first] == scan.SURE
    return made


@function
def _difference(a: Bytes, p: int, b: Bytes, q: int, size: int) -> int:
    before = int(_first_other(a, p, b, q, 0, min(PLACE_OF_RECORD, size)))
    return before if before >= 0 else int(_first_other(a, p, b, q, END_OF_PLACE, size))


@function(inline=True)
def _differ(a: Bytes, p: int, b: Bytes, q: int) -> int:
    """Returns the differing bits of 32 bytes."""
    first, second = eight(a, p) ^ eight(b, q), eight(a, p + 8) ^ eight(b, q + 8)
    third, fourth = eight(a, p + 16) ^ eight(b, q + 16), eight(a, p + 24) ^ eight(b, q + 24)
    return int(first | second | third | fourth)


@function(inline=True)
def _first_other(a: Bytes, p: int, b: Bytes, q: int, low: int, high: int) -> int:
    """Returns the first differing offset of two records from `low` on: many bytes at a time while equal."""
    i = low
    while i + 32 <= high and _differ(a, p + i, b, q + i) == 0:
        i += 32
    while i + 8 <= high and eight(a, p + i) == eight(b, q + i):
        i += 8
    while i < high and a[p + i] == b[q + i]:
        i += 1
    return int(i) if i < high else -1


@by_library(_difference)
def _difference_by_library(a: Bytes, p: int, b: Bytes, q: int, size: int) -> int:
    one, other = bytearray(a[p : p + size]), bytearray(b[q : q + size])
    one[PLACE_OF_RECORD:END_OF_PLACE] = other[PLACE_OF_RECORD:END_OF_PLACE] = b""
    if one == other:
        return -1
    at = next(i for i, (x, y) in enumerate(zip(one, other, strict=True)) if x != y)
    return at if at < PLACE_OF_RECORD else at + END_OF_PLACE - PLACE_OF_RECORD


@native(lambda a, places, *_: len(places), kinds=(BYTES, INTS, BYTES, INTS, INTS, INTS))  # noqa: ARG005 - as it is called
def _differences(a: Bytes, places: Ints, b: Bytes, theirs: Ints, sizes: Ints, found: Ints) -> None:
    """Writes the first differing byte of each record at `places` of `a` and `theirs` of `b` into `found`."""
    for i in range(len(places)):
        if places[i] + sizes[i] <= len(a) and theirs[i] + sizes[i] <= len(b):  # no file became shorter
            found[i] = _difference(a, places[i], b, theirs[i], sizes[i])


def differences(
    ours: Sequence[LogFile], positions: Ints, theirs: Sequence[LogFile], places: Ints, sizes: Ints, maps: Maps
) -> Ints:  # fmt: skip
    """Returns the first differing byte of each record at `positions` and that at `places` of another log.

    -1 if it differs only in its own place, or if one of both is not in one file.
    """
    found = np.full(len(positions), -1, np.int64)
    for one, other, some in _by_files(ours, positions, theirs, places, sizes):
        of_some = np.full(len(sizes[some]), -1, np.int64)
        at, its = positions[some] - one.base, places[some] - other.base
        _differences(maps.of(one), at, maps.of(other), its, sizes[some], of_some)
        found[some] = of_some
    return found


@function(inline=True)
def _come_near(b: Bytes, places: Ints, sizes: Ints, begin: int, end: int) -> int:
    """Reads one byte in 64 of the records that are compared next; returns a sum, so it is not optimised away.

    Records of one queue are scattered over the log. The processor fetches many of these bytes at once, and would wait
    for the records one by one: that took as long again as to compare them.
    """
    found = 0
    for k in range(begin, end):
        at, stop = places[k], min(places[k] + sizes[k], len(b))
        while 0 <= at < stop:
            found += int(b[at])
            at += 64
    return int(found)


@by_library(_come_near)
def _come_near_by_library(_b: Bytes, _places: Ints, _sizes: Ints, _begin: int, _end: int) -> int:
    return 0


@native(lambda a, places, *_: len(places), kinds=(BYTES, INTS, BYTES, INTS, TABLE, BYTES, I64, I64))  # noqa: ARG005 - as it is called
def _repeated(
    a: Bytes, places: Ints, b: Bytes, theirs: Ints, fields: Ints, topic: Bytes, queue: int, base: int
) -> bool:  # fmt: skip
    """Checks that each record at `places` of file `a`, which begins at `base`, is that at `theirs` of `b`.

    And that it has the size and number in `fields`, belongs to this queue, and names its own place. Its store time is
    written there.
    """
    near = 0
    for i in range(len(places)):
        if i % AHEAD == 0:
            near += _come_near(b, theirs, fields[SIZE], i, min(i + AHEAD, len(places)))
        p, size = places[i], fields[SIZE, i]
        if size < SMALLEST or p + size > len(a) or theirs[i] + size > len(b) or i32(a, p) != size:
            return False
        magic = u32(a, p + 4)
        if magic not in (MAGIC_V1, MAGIC_V2) or measure(a, p, p + size, magic == MAGIC_V2) != size:
            return False
        r = parts(a, p, magic == MAGIC_V2)
        if i64(a, p + 20) != fields[NUMBER, i] or i64(a, p + PLACE_OF_RECORD) != base + p or i32(a, p + 12) != queue:
            return False
        if not is_name(a, r.topic, r.topic_end, topic) or _difference(a, p, b, theirs[i], size) >= 0:
            return False
        fields[TIME, i] = i64(a, r.time)
    return bool(near >= 0)


def repeated(
    ours: Sequence[LogFile], entries: CopiedEntries, queue: Queue, theirs: Sequence[LogFile], places: Ints, maps: Maps,
    keys: Ints | None = None,
) -> Ints | None:  # fmt: skip
    """Returns the store times of messages if each equals that at `places` of another log, byte for byte.

    The caller knows those to be complete, intact, and of these tag codes: these checks are not repeated. `keys`: room
    for the digest of the keys of each, if that is wanted.
    """
    positions, sizes, seen = entries.position, entries.size, 0
    topic, times = np.frombuffer(os.fsencode(queue[0]), np.uint8), np.empty_like(sizes)
    for one, other, some in _by_files(ours, positions, theirs, places, sizes):
        fields = np.zeros((FIELDS, len(sizes[some])), np.int64)
        fields[SIZE], fields[NUMBER] = sizes[some], entries.number[some]
        at, its = positions[some] - one.base, places[some] - other.base
        if not _repeated(maps.of(one), at, maps.of(other), its, fields, topic, queue[1], one.base):
            return None
        times[some] = fields[TIME]
        if keys is not None:
            keys[some] = keys_and_bodies(maps.of(one), at)[KEY]
        seen += len(its)
    return times if seen == len(places) else None


def _by_files(
    ours: Sequence[LogFile], positions: Ints, theirs: Sequence[LogFile], places: Ints, sizes: Ints
) -> Iterator[tuple[LogFile, LogFile, Ints | slice]]:
    """Yields pairs of files with their records, at `positions` of one log and `places` of the other.

    Mostly all of them are in the same two files, and no selection is needed.
    """
    for one in ours:
        here = one.holds(positions, sizes)
        for other in theirs if here.any() else ():
            both = here & other.holds(places, sizes)
            if both.all():
                yield one, other, slice(None)
            elif both.any():
                yield one, other, np.flatnonzero(both)
