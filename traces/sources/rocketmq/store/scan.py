"""The commit log scan: one native pass over the bytes of a file gives columns of events.

Per record: does it tile the log, do its parts add up, do the checksums hold (`log` events); which queues is it in,
under which number and tag code (queue rows). Byte layout: reference A.2 to A.5. Nothing is judged here: whether a
checksum must hold is for `spec/log.py` to say.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from gapless.traces.sources.rocketmq.store.bytes import (
    Bytes,
    Ints,
    crc31,
    i32,
    i64,
    is_name,
    java_hash,
    number_in,
    u32,
)
from gapless.traces.sources.rocketmq.store.names import MULTI_OFFSET, SCHEDULE_TOPIC, as_bytes
from gapless.traces.sources.rocketmq.store.records import (
    BLANK,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    SEAL,
    SMALLEST,
    SYS_INNER_BATCH,
    SYS_OUTSIDE,
    Parts,
    measure,
    parts,
    seal_holds,
)

# Why a scan ends. TAKEN is for its own use: it goes on.
STOPPED, ROLLED, SHORT, INVALID, FULL, TAKEN = range(6)

# Rows of the `log` column block: the arguments of `log.append`, in its order.
POSITION, SIZE, CLAIMED, KNOWN, FITS, INTACT, SEALED, TIME, LOG_ROWS = range(9)
# Rows of the queue column block. LOOSE: how sure the tag code is (see below); MOMENT: the record's store time;
# ENTRY: the row is to have an entry.
SUBJECT, NUMBER, COUNT, PLACE, LENGTH, TAG, LOOSE, MOMENT, ENTRY, QUEUE_ROWS = range(10)
SURE, SCHEDULED, UNSURE = range(3)
# Counters.
C_V2, C_SEALED, C_OUTSIDE, C_SCHEDULED, C_MULTI, C_INNER, C_UNSURE, COUNTERS = range(8)
# Per subject: hash, where its topic lies in `names`, the topic's length, its queue id.
S_HASH, S_AT, S_LENGTH, S_QUEUE, SUBJECT_ROWS = range(5)


class View(NamedTuple):
    """The bytes of a log file that are read: `data[0]` lies at log position `base`; all others count from there."""

    data: Bytes
    base: int
    begin: int  # where a scan begins
    stop: int  # no record that begins here or later is read
    limit: int  # the file's end
    have: int  # bytes that are read


class Forced(NamedTuple):
    """What is taken for the header of one damaged record, whatever its bytes say; nothing where `at` is negative."""

    at: int
    size: int
    known: int
    fits: int
    v2: bool


NOT_FORCED = Forced(-1, 0, 0, 0, v2=False)


class Room(NamedTuple):
    """Where a scan writes. `filled`: records in `log` and rows in `rows` · `used`: subjects, and bytes of `names`."""

    log: Ints
    rows: Ints
    filled: Ints
    subjects: Ints
    table: Ints
    names: Bytes
    used: Ints
    counters: Ints


class Habits(NamedTuple):
    """What the broker was set to do."""

    delays: Ints  # ms per delay level; empty where unknown
    crc_tables: npt.NDArray[np.uint32]
    seals: bool  # property CRCs are judged
    multi: bool  # messages may be in several queues
    light: bool  # some of which are light


class _Tag(NamedTuple):
    code: int
    loose: int


class _Properties(NamedTuple):
    """The properties that say where a record belongs, each as begin and end of its value, or as its number."""

    tags: int
    tags_end: int
    delay: int
    count: int
    multi: int
    multi_end: int
    offset: int
    offset_end: int


@njit(nogil=True, cache=True)
def scan(view: View, forced: Forced, room: Room, habits: Habits) -> tuple[int, int, int]:
    """Read records as long as they begin before `view.stop`. Returns why it ended, where, and bytes needed.

    What a record shows is written behind what `room` holds already; of a record that does not fit, nothing is.
    """
    p = view.begin
    while p < view.stop:
        why, size, v2, known, fits = _claim(view, forced, p)
        if why != TAKEN:
            return why, p, size
        if not _take(view, p, size, v2, known, fits, room, habits):
            return FULL, p, 0
        p += size
    return STOPPED, p, 0


@njit(inline="always")
def _claim(view: View, forced: Forced, p: int) -> tuple[int, int, bool, bool, bool]:
    """What the header at `p` claims: TAKEN for a record, its size, V2, a magic number that is known, parts that fit."""
    b = view.data
    if p + BLANK > view.have:
        return (SHORT if view.have < view.limit else INVALID), BLANK, False, False, False
    if p == forced.at:
        why = TAKEN if p + forced.size <= view.have else SHORT
        return why, forced.size, forced.v2, forced.known != 0, forced.fits != 0
    size = i32(b, p)
    magic = u32(b, p + 4)
    v2 = magic == MAGIC_V2
    if magic == MAGIC_BLANK and size == view.limit - p:
        return ROLLED, size, v2, False, False
    if not (v2 or magic == MAGIC_V1) or size < SMALLEST or p + size > view.limit:
        return INVALID, size, v2, False, False
    if p + size > view.have:
        return SHORT, size, v2, True, True
    return (TAKEN if measure(b, p, p + size, v2) == size else INVALID), size, v2, True, True


@njit(inline="always")
def _take(
    view: View, p: int, size: int, v2: bool, known: bool, fits: bool, room: Room, habits: Habits
) -> bool:  # fmt: skip
    """Write what the record at `p` shows; False, and nothing, where there is no room."""
    b, n, counters = view.data, room.filled[0], room.counters
    if n >= room.log.shape[1]:
        return False
    r = parts(b, p, v2)
    named = _properties(b, r)
    tag = _tag_of(b, r, named, habits)
    q = room.filled[1]
    if r.flags & SYS_OUTSIDE:
        counters[C_OUTSIDE] += 1
    else:
        q = _queue_rows(view, p, size, r, named, tag, room, habits)
        if q < 0:
            return False
    sealed = np.int64(1)
    if habits.seals and r.high - r.low >= SEAL:
        seal = seal_holds(b, p, size, habits.crc_tables)
        if seal >= 0:
            counters[C_SEALED] += 1
            sealed = seal
    counters[C_SCHEDULED] += np.int64(tag.loose == SCHEDULED)
    counters[C_UNSURE] += np.int64(tag.loose == UNSURE)
    counters[C_V2] += np.int64(v2)
    log = room.log
    log[POSITION, n] = view.base + p
    log[SIZE, n] = size
    log[CLAIMED, n] = i64(b, p + 28)
    log[KNOWN, n] = np.int64(known)
    log[FITS, n] = np.int64(fits and (r.low == r.high or b[r.high - 1] != 0))  # a list of properties ends in no zero
    log[INTACT, n] = np.int64(crc31(b, r.body, i32(b, r.body - 4), habits.crc_tables) == np.int64(u32(b, p + 8)))
    log[SEALED, n] = sealed
    log[TIME, n] = i64(b, r.time)
    room.filled[0], room.filled[1] = n + 1, q
    return True


TAGS = as_bytes("TAGS")
DELAY = as_bytes("DELAY")
INNER_COUNT = as_bytes("INNER_NUM")
MULTI_DISPATCH = as_bytes("INNER_MULTI_DISPATCH")
MULTI_NUMBERS = as_bytes(MULTI_OFFSET)
SCHEDULE = as_bytes(SCHEDULE_TOPIC)
RETRY_PREFIX = as_bytes("%RETRY%")
LIGHT_PREFIX = as_bytes("%LMQ%")


@njit(inline="always")
def _properties(b: Bytes, r: Parts) -> _Properties:
    """The properties that say where the record belongs; the last of two with one name counts, as in the broker."""
    tags, tags_end, delay, count = np.int64(0), np.int64(0), np.int64(0), np.int64(1)
    multi, multi_end, offset, offset_end = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    k, e = r.low, r.high
    while k < e:
        w = k
        while w < e and b[w] != 2:
            w += 1
        if w - k >= 3 and (b[k] == 73 or b[k] == 84 or b[k] == 68):  # I, T or D: no other name is looked for
            v = k
            while v < w and b[v] != 1:
                v += 1
            length = v - k if v < w - 1 else np.int64(0)
            if length == 4:
                if is_name(b, k, v, TAGS):
                    tags, tags_end = v + 1, w
            elif length == 5:
                if is_name(b, k, v, DELAY):
                    delay = number_in(b, v + 1, w)
            elif length == 9:
                if is_name(b, k, v, INNER_COUNT):
                    count = number_in(b, v + 1, w)
            elif length == 20:
                if is_name(b, k, v, MULTI_DISPATCH):
                    multi, multi_end = v + 1, w
            elif length == 24 and is_name(b, k, v, MULTI_NUMBERS):
                offset, offset_end = v + 1, w
        k = w + 1
    return _Properties(tags, tags_end, delay, count, multi, multi_end, offset, offset_end)


@njit(inline="always")
def _tag_of(b: Bytes, r: Parts, named: _Properties, habits: Habits) -> _Tag:
    """The tag code that the record's entry is to have: of a delayed message, when it is to be delivered."""
    code, exact = java_hash(b, named.tags, named.tags_end)
    if named.delay <= 0 or not is_name(b, r.topic, r.topic_end, SCHEDULE):
        return _Tag(code, np.int64(SURE if exact else UNSURE))
    delays = habits.delays
    level = named.delay if named.delay < len(delays) else len(delays)  # noqa: FURB136 - mypy cannot read `min` of these
    return _Tag(i64(b, r.time) + (delays[level - 1] if level > 0 else np.int64(0)), np.int64(SCHEDULED))


@njit(inline="always")
def _put_row(
    rows: Ints, q: int, subject: int, number: int, count: int, position: int, size: int, tag: _Tag, time: int,
    entry: bool,
) -> None:  # fmt: skip
    rows[SUBJECT, q] = subject
    rows[NUMBER, q] = number
    rows[COUNT, q] = count
    rows[PLACE, q] = position
    rows[LENGTH, q] = size
    rows[TAG, q] = tag.code
    rows[LOOSE, q] = tag.loose
    rows[MOMENT, q] = time
    rows[ENTRY, q] = np.int64(entry)


@njit(inline="always")
def _queue_rows(
    view: View, p: int, size: int, r: Parts, named: _Properties, tag: _Tag, room: Room, habits: Habits
) -> int:
    """Write a row for every queue that the record is in. Returns how many rows there are then, or -1 without room."""
    b, q, rows = view.data, room.filled[1], room.rows
    inner = (r.flags & SYS_INNER_BATCH) != 0
    time, queue = i64(b, r.time), i32(b, p + 12)
    subject = _subject_of(b, r.topic, r.topic_end, queue, room) if q < rows.shape[1] else np.int64(-1)
    if subject < 0:
        return np.int64(-1)
    count = named.count if inner else np.int64(1)
    _put_row(rows, q, subject, i64(b, p + 20), count, view.base + p, size, tag, time, entry=not inner)
    q += 1
    if (
        habits.multi
        and named.multi < named.multi_end
        and named.offset < named.offset_end
        and not (r.topic_end - r.topic >= 7 and is_name(b, r.topic, r.topic + 7, RETRY_PREFIX))
    ):
        x, y = named.multi, named.offset
        while x < named.multi_end and y < named.offset_end:
            xe, slash = _item(b, x, named.multi_end)
            ye, _slash = _item(b, y, named.offset_end)
            number = number_in(b, y, ye)
            if xe > x and number >= 0 and not slash:
                light = habits.light and xe - x >= 5 and is_name(b, x, x + 5, LIGHT_PREFIX)
                subject = _subject_of(b, x, xe, 0 if light else queue, room) if q < rows.shape[1] else np.int64(-1)
                if subject < 0:
                    return np.int64(-1)
                _put_row(rows, q, subject, number, np.int64(1), view.base + p, size, tag, time, entry=True)
                q += 1
            x, y = xe + 1, ye + 1
    room.counters[C_INNER] += np.int64(inner)
    room.counters[C_MULTI] += q - room.filled[1] - 1
    return q


@njit(inline="always")
def _item(b: Bytes, p: int, e: int) -> tuple[int, bool]:
    """Where the item at `p` of a list with commas ends, and whether there is a slash in it."""
    slash = False
    while p < e and b[p] != 44:
        slash = slash or b[p] == 47
        p += 1
    return p, slash


@njit
def _subject_of(b: Bytes, p: int, e: int, queue: int, room: Room) -> int:
    """The row of (topic `b[p:e]`, `queue`) in `room.subjects`, made where it is new; -1 where there is no room."""
    subjects, table, names, used = room.subjects, room.table, room.names, room.used
    h = uint64(14695981039346656037) ^ uint64(queue)
    for i in range(p, e):
        h = (h ^ uint64(b[i])) * uint64(1099511628211)
    h ^= h >> uint64(29)
    key = np.int64(h)
    mask = len(table) - 1
    slot = np.int64(h & uint64(mask))
    while table[slot] >= 0:
        s = table[slot]
        if subjects[S_HASH, s] == key and subjects[S_QUEUE, s] == queue and subjects[S_LENGTH, s] == e - p:
            at = subjects[S_AT, s]
            same = True
            for i in range(e - p):
                if names[at + i] != b[p + i]:
                    same = False
                    break
            if same:
                return np.int64(s)
        slot = (slot + 1) & mask
    if used[0] * 2 >= len(table) or used[0] >= subjects.shape[1] or used[1] + e - p > len(names):
        return np.int64(-1)
    s = used[0]
    table[slot] = s
    subjects[S_HASH, s] = key
    subjects[S_AT, s] = used[1]
    subjects[S_LENGTH, s] = e - p
    subjects[S_QUEUE, s] = queue
    for i in range(p, e):
        names[used[1] + i - p] = b[i]
    used[0] += 1
    used[1] += e - p
    return np.int64(s)


@njit(nogil=True, cache=True)
def find_start(view: View) -> int:
    """The first place in `begin:stop` where a record or the file's blank begins, or -1.

    A record names its own position: that, its magic number and a size that its parts add up to (as far as they are
    in `data`) are asked for. A forgery inside a body would still be found out, where the piece before it ends.
    """
    b, base, p, stop, limit, have = view
    while p < stop and p + BLANK <= have:
        if b[p + 4] == 0xDA and b[p + 5] == 0xA3 and b[p + 6] == 0x20 and p + SMALLEST <= have:
            size = i32(b, p)
            magic = u32(b, p + 4)
            ours = magic in (MAGIC_V1, MAGIC_V2) and i64(b, p + 28) == base + p
            whole = ours and SMALLEST <= size <= limit - p
            if whole and (p + size > have or measure(b, p, p + size, magic == MAGIC_V2) == size):
                return np.int64(p)
        elif b[p + 4] == 0xCB and u32(b, p + 4) == MAGIC_BLANK and i32(b, p) == limit - p:
            return np.int64(p)
        p += 1
    return np.int64(-1)
