"""Reads a split of the log into columns of records and queue rows, segment by segment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.traces.judging.building import STEPS
from gapless.traces.replay.exact import Event
from gapless.traces.sources.rocketmq.columns.bytes import CRC_TABLES, Bytes, Ints
from gapless.traces.sources.rocketmq.columns.property_spans import spans_of
from gapless.traces.sources.rocketmq.log import records, scan
from gapless.traces.sources.rocketmq.log.record_pass import LONGEST as TEXTS
from gapless.traces.sources.rocketmq.log.record_pass import Finds
from gapless.traces.sources.rocketmq.segments.checksums import excuse_copied
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import LARGEST, SLACK, FileWindow, Space, begins, header_at
from gapless.traces.sources.rocketmq.store.files import LogFile, is_hole
from gapless.traces.sources.rocketmq.transactions import transaction_rows

SPLIT = 16 << 20  # bytes of a split: large enough to amortize its queues' files, small enough to bound memory
MOST = 4 * SPLIT  # bytes of a split of a store with very many queues
A_VISIT = 4096  # bytes of a split for each queue: some twenty records, or opening its file costs more than judging them
LONGEST = 1 << 16  # bytes of a topic's name, at most: its length, and that of the properties, are 16 bits wide
FIRST = 1 << 12  # bytes that are looked at before all others
MOST_DAMAGE = 64  # damaged places in one split that are reported one by one; the rest is one damaged stretch
MOST_COUNTED = 4096  # refused records of one segment behind those that are counted; the rest is not judged


@dataclass(frozen=True)
class Split:
    """The records that begin in the bytes `low:high` of a log file; `exact`: one begins at `low`."""

    file: LogFile
    low: int
    high: int
    exact: bool

    @property
    def bytes(self) -> int:
        """The number of bytes to read."""
        return self.high - self.low


def splits(store: StoreDirectory, size: int | None = None, begin: int = 0) -> Iterator[Split]:
    """Yields the store's log in splits, in log order, from position `begin` on, which must be a record's."""
    size = size or min(max(SPLIT, A_VISIT * len(store.queues)), MOST)
    for file in store.files:
        for start in range(0, file.length, size):
            high = min(start + size, file.length, store.limit - file.base)
            if high <= start:
                return
            low = max(start, begin - file.base)
            if low < high and not is_hole(file, low, high):
                yield Split(file, low, high, exact=low in (0, begin - file.base))


class RecordSlice(NamedTuple):
    """Records of a segment while their bytes are in memory.

    `base`: the log position of `data` · `places`: where in it each of them begins · `first`: the number of the first
    one in its segment · `scratch`: room to join texts.
    """

    data: Bytes
    base: int
    first: int
    places: Ints
    sizes: Ints
    scratch: Bytes


class Sought(NamedTuple):
    """A kind of row that a scan finds if it is asked for: its name, its columns, and how it is found.

    `find`: appends to rows of which so many are filled; returns the new number, or a negative one if there is too
    little room, and then the rest is undefined · `room`: rows for each record, to begin with.
    """

    name: str
    columns: int
    find: Callable[[RecordSlice, Ints, int], int]
    room: int = 1


def sought_among(name: str, columns: int, find: Finds) -> Sought:
    """Returns a kind of record, of which each is one row, by the kernel that finds it."""

    def finds(seen: RecordSlice, rows: Ints, filled: int) -> int:
        spans = spans_of(seen.data, seen.places)
        return find(seen.data, seen.base, seen.places, seen.sizes, spans, rows, filled, seen.scratch)

    return Sought(name, columns, finds)


class Columns:
    """The output of a scan of one segment, and its transaction steps. Grows and scans again if too small.

    `steps`: see `transactions/transaction_rows.py` · `keys`: of the records, by `records.find_keys` · `sought`: what
    else is looked for. Each only if it is asked for.
    """

    def __init__(
        self,
        count: int,
        space: Space | None = None,
        *,
        keys: bool = False,
        sought: Sequence[Sought] = (),
    ) -> None:
        self.space = space or Space()
        self.room = scan.Room(
            log=self.space.array("log", (scan.LOG_ROWS, count), np.int64),
            rows=self.space.array("rows", (scan.QUEUE_ROWS, count), np.int64),
            filled=np.array([0, 0, -1, -1, -1], np.int64),
            topics=scan.Topics(
                subjects=np.empty((scan.SUBJECT_ROWS, 1024), np.int64),
                table=np.full(4096, -1, np.int64),
                names=np.empty(2 * LONGEST, np.uint8),
                used=np.zeros(2, np.int64),
            ),
            counters=np.zeros(scan.COUNTERS, np.int64),
        )
        self.all_steps: Ints = self.space.array("steps", (transaction_rows.COLUMNS, count // 2 + 64), np.int64)
        self.step_count = 0
        self.all_keys: Ints | None = self.space.array("keys", (records.KEY_ROWS, count), np.int64) if keys else None
        self.sought = sought
        self.all_found: list[Ints] = [
            self.space.array(one.name, (one.columns, one.room * count), np.int64) for one in sought
        ]
        self.found_counts = [0] * len(sought)

    @property
    def count(self) -> int:
        """The number of records."""
        return int(self.room.filled[0])

    @property
    def log(self) -> Ints:
        """The records."""
        return self.room.log[:, : self.count]

    @property
    def rows(self) -> Ints:
        """Their queue rows."""
        return self.room.rows[:, : int(self.room.filled[1])]

    @property
    def steps(self) -> Ints:
        """The rows of transactions among them."""
        return self.all_steps[:, : self.step_count]

    @property
    def keys(self) -> Ints | None:
        """Their keys, if they are wanted."""
        return None if self.all_keys is None else self.all_keys[:, : self.count]

    @property
    def found(self) -> dict[str, Ints]:
        """The rows of each kind that is sought, by its name."""
        every = zip(self.sought, self.all_found, self.found_counts, strict=True)
        return {one.name: rows[:, :count] for one, rows, count in every}

    def grow(self) -> None:
        """Doubles the room that was too small: for subjects, or for records and rows. Amortized, and rare."""
        room, topics = self.room, self.room.topics
        subjects, names = (int(used) for used in topics.used)
        if subjects >= topics.subjects.shape[1] or names + LONGEST > len(topics.names):
            self.room = room._replace(topics=_with_room(topics))
            return
        self.room = room._replace(log=_doubled(room.log), rows=_doubled(room.rows))
        if self.all_keys is not None:
            self.all_keys = _doubled(self.all_keys)
        self.all_found = [_doubled(rows) for rows in self.all_found]

    def look_into(self, data: Bytes, base: int, begin: int, *, steps: bool) -> None:
        """Reads the requested details of the records in `data` from number `begin` on: keys, and `steps` too."""
        places = self.log[scan.POSITION, begin:] - base
        if self.all_keys is not None:
            records.find_keys(data, places, self.all_keys, begin)
        if self.sought:
            scratch = self.space.array("texts", (TEXTS,), np.uint8)
            self._find_sought(RecordSlice(data, base, begin, places, self.log[scan.SIZE, begin:], scratch))
        if steps:
            self._find_steps(data, base, places)

    def _find_steps(self, data: Bytes, base: int, places: Ints) -> None:
        while True:
            count, others = transaction_rows.find_rows(data, base, places, self.all_steps, self.step_count)
            if count >= 0:
                break
            self.all_steps = _doubled(self.all_steps)
        self.step_count = count
        self.room.counters[scan.C_NO_FINAL] += others

    def _find_sought(self, seen: RecordSlice) -> None:
        for n, one in enumerate(self.sought):
            while (count := one.find(seen, self.all_found[n], self.found_counts[n])) < 0:
                self.all_found[n] = _doubled(self.all_found[n])
            self.found_counts[n] = count

    def subject(self, row: int) -> tuple[str, int]:
        """Topic and queue of one subject."""
        return self.subjects()[row]

    def subjects(self) -> list[tuple[str, int]]:
        """Topic and queue of each subject; bytes that are not UTF-8 are kept as the file system would keep them."""
        known, _table, names, used = self.room.topics
        text = names[: used[1]].tobytes()
        ends = np.cumsum(known[scan.S_LENGTH, : used[0]]).tolist()
        topics = [os.fsdecode(text[at:end]) for at, end in zip([0, *ends], ends, strict=False)]
        return list(zip(topics, known[scan.S_QUEUE, : used[0]].tolist(), strict=True))


def _with_room(topics: scan.Topics) -> scan.Topics:
    """Returns the same subjects, with room for twice as many."""
    subjects, table = _doubled(topics.subjects), np.full(2 * len(topics.table), -1, np.int64)
    mask = len(table) - 1
    for subject, key in enumerate(subjects[scan.S_HASH, : topics.used[0]].tolist()):
        slot = key & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = subject
    return scan.Topics(subjects, table, _doubled(topics.names), topics.used)


def _doubled(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate([column, np.empty_like(column)], axis=-1)


class ScannedSegment(NamedTuple):
    """The columns of one segment, its first and last log position, and the reason for its end (`scan`)."""

    columns: Columns
    start: int
    end: int
    stop: int
    blank: Event | None  # the blank behind its last record, if it was reached


class SplitReader:
    """Scans one split into segments."""

    def __init__(
        self,
        store: StoreDirectory,
        split: Split,
        space: Space | None = None,
        *,
        keys: bool = False,
        sought: Sequence[Sought] = (),
        steps: bool = False,
    ) -> None:
        self.split = split
        self.space = space
        self.keys = keys  # whether the keys of all records are wanted
        self.sought = sought  # what else is
        self.steps = steps  # whether steps of transactions are
        self.file = split.file
        self.unread = -1  # the log position from which on damage is so frequent that nothing is read
        self.window = FileWindow(split.file, space)
        known = bool(store.settings)
        self.ours = store.ours
        self.habits = scan.Habits(
            delays=np.array(store.delays, np.int64),
            crc_tables=CRC_TABLES,
            multi=not known or store.setting("enableMultiDispatch"),
            light=store.shares,
            everywhere=store.before_5,
        )

    def segments(self) -> Iterator[ScannedSegment]:
        """Yields the split's segments; each overwrites the one before."""
        split, base = self.split, self.file.base
        self.window.read(split.low, split.high + SLACK)
        at = split.low if split.exact else self.find(split.low)
        damaged = 0
        while at >= 0 and at < split.high:
            # Records are rarely shorter than 160 bytes.
            count = (split.high - split.low) // 160 + 64
            columns = Columns(count, self.space, keys=self.keys, sought=self.sought)
            start = at
            stop, at, size = self.advance(columns, at)
            while stop == scan.INVALID and damaged < MOST_DAMAGE and (guess := self.diagnose(at)) is not None:
                damaged += 1
                stop, at, size = self.advance(columns, at, guess)
            blank = STEPS["log"].roll(position=base + at, size=size, marked=1) if stop == scan.ROLLED else None
            if columns.room.counters[scan.C_SEALED] and not self.ours:
                excuse_copied(columns.log)
            yield ScannedSegment(columns, base + start, base + at, stop, blank)
            damaged += 1
            if stop == scan.INVALID and damaged >= MOST_DAMAGE:
                self.unread = base + at
            at = self.find(at + 1) if stop == scan.INVALID and damaged < MOST_DAMAGE else -1

    def advance(self, columns: Columns, at: int, forced: scan.DamagedHeader = scan.NOT_FORCED) -> tuple[int, int, int]:
        """Scans from file offset `at` on with any memory needed. Returns reason, place, and a size."""
        window, forced_at = self.window, at
        while True:
            low, before = window.low, columns.count
            if forced.size:
                forced = forced._replace(at=forced_at - low)
            stop, place, need = scan.scan(window.view(at, self.split.high), forced, columns.room, self.habits)
            columns.look_into(window.data, self.file.base + low, before, steps=self.steps)
            at = low + place
            if stop == scan.SHORT and need <= LARGEST:
                window.read(at, at + max(need, SLACK) + SLACK)
            elif stop == scan.FULL:
                columns.grow()
            else:
                return (scan.INVALID if stop == scan.SHORT else stop), at, need

    def find(self, at: int) -> int:
        """Returns the file offset of the next record in the split, or -1."""
        window = self.window
        while True:
            if not window.low <= at < window.low + window.have:
                window.read(at, self.split.high + SLACK)
            place = -1
            if _any(window.data[: window.have]):
                place = scan.find_start(window.view(at, self.split.high))
            if place >= 0:
                return window.low + int(place)
            if window.low + window.have >= self.split.high:
                return -1
            at = window.low + window.have - records.BLANK - self.file.wrapped
            window.read(at, self.split.high + SLACK)

    def diagnose(self, at: int) -> scan.DamagedHeader | None:
        """Returns a record with only its magic number or size wrong; None if it cannot be identified."""
        header = header_at(self.file, at)
        of_this_place = header.claimed == self.file.base + at
        if not of_this_place and (self.file.wrapped or not header.known):
            return None
        self.window.read(at, at + min(max(header.body, 0), LARGEST) + 2 * SLACK)
        for v2 in (header.magic == records.MAGIC_V2,) if header.known else (False, True):
            size = int(records.length_of(self.window.data, self.file.wrapped, self.window.have, v2))
            whole = size + self.file.wrapped
            fits = whole == header.size
            if size >= records.SMALLEST and (fits or begins(self.file, at + whole)):
                fits = fits and not self.file.wrapped  # a record that is whole, behind a header that is not
                return scan.DamagedHeader(at, size, int(header.known), int(fits), v2)
        return None


def _any(data: Bytes) -> bool:
    """True if any byte is not zero: mostly, one of the first is not."""
    words = len(data) & ~7
    return bool(data[:FIRST].any() or data[:words].view(np.uint64).any() or data[words:].any())


def split_at(store: StoreDirectory, position: int) -> Split | None:
    """Returns the split with a position of the log; None where the log has no file."""
    return next((one for one in splits(store) if one.file.base + one.low <= position < one.file.base + one.high), None)


def record_before(store: StoreDirectory, split: Split, position: int) -> tuple[Columns, int] | None:
    """Returns the last record that begins at a position or before it: its segment's columns, and its index there.

    None where no record of the position's segment does: it began in the split before.
    """
    for columns, low, high, *_ in SplitReader(store, split).segments():
        if low <= position < high:
            record = int(columns.log[scan.POSITION].searchsorted(position, side="right")) - 1
            return (columns, record) if record >= 0 else None
    return None
