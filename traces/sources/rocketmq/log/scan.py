"""The commit log scan: one native pass over the bytes of a file gives columns of events.

For each record: does it tile the log, do its parts add up, are its checksums right (`log` events); its queues, with
number and tag code (queue rows). Byte layout: docs/rocketmq.md#record, #entry. Nothing is judged here: `spec/log.py`
says if a checksum must match.
"""

# ruff: noqa: C901, FBT001, PLR0911, PLR0915
# A kernel is one pass over the bytes; kernels are called by position.

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gapless.native import BOOL, BYTES, I64, INTS, TABLE, WORDS32, by_library, function, int64, native, record, uint64
from gapless.native.swar import are_same, word_of
from gapless.traces.sources.rocketmq.columns.bytes import (
    LOW,
    REMEMBERED,
    Bytes,
    Crcs,
    Ints,
    crc31,
    i32,
    i64,
    is_name,
    java_hash,
    number_in,
    place_of,
    readable,
    u32,
)
from gapless.traces.sources.rocketmq.columns.property_walk import ends_in, next_end
from gapless.traces.sources.rocketmq.log.dledger_entries import DLEDGER_BLANK, is_wrapping
from gapless.traces.sources.rocketmq.log.records import (
    BLANK,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    SCHEDULE,
    SEAL,
    SMALLEST,
    SYS_INNER_BATCH,
    SYS_OUTSIDE,
    RecordParts,
    ends_well,
    is_parked,
    measure,
    parts,
    seal_holds,
)
from gapless.traces.sources.rocketmq.store.names import LIGHT, MULTI, MULTI_OFFSET, as_bytes

# Why a scan ends. TAKEN is internal: the scan continues.
STOPPED, ROLLED, SHORT, INVALID, FULL, TAKEN = range(6)

# Rows of the `log` column block: the arguments of `log.append`, in its order. CARRIED: as `seal_holds` says · INDEX and
# TERM only in a DLedger log.
POSITION, SIZE, CLAIMED, KNOWN, FITS, INTACT, SEALED, TIME, CARRIED, INDEX, TERM, LOG_ROWS = range(12)
# Rows of the queue column block. LOOSE: how sure the tag code is (see below); MOMENT: the record's store time;
# ENTRY: the row is to have an entry.
SUBJECT, NUMBER, COUNT, PLACE, LENGTH, TAG, LOOSE, MOMENT, ENTRY, QUEUE_ROWS = range(10)
SURE, SCHEDULED, UNSURE = range(3)
# Counters.
C_V2, C_SEALED, C_OUTSIDE, C_SCHEDULED, C_MULTI, C_INNER, C_UNSURE, C_NO_FINAL, COUNTERS = range(9)
# Per subject: hash, where its topic lies in `names`, the topic's length, its queue id.
S_HASH, S_AT, S_LENGTH, S_QUEUE, SUBJECT_ROWS = range(5)


# Arguments of kernels.


class View(NamedTuple):
    """The bytes of a log file in memory: `data[0]` is log position `base`; offsets count from there."""

    data: Bytes
    base: int
    begin: int  # where a scan begins
    stop: int  # no record that begins here or later is read
    limit: int  # the file's end
    have: int  # bytes that are read
    wrapped: int  # bytes of the header before each record; a place is that of the header


VIEW = record(View, BYTES, I64, I64, I64, I64, I64, I64)
"""The kind of a view."""


class DamagedHeader(NamedTuple):
    """Replaces the header of one damaged record; unused if `at` is negative."""

    at: int
    size: int
    known: int
    fits: int
    v2: bool


NOT_FORCED = DamagedHeader(-1, 0, 0, 0, v2=False)


class Topics(NamedTuple):
    """The subjects of queue rows, found by their hash in `table`. `used`: subjects, and bytes of `names`."""

    subjects: Ints
    table: Ints
    names: Bytes
    used: Ints


class Room(NamedTuple):
    """The buffers of a scan. `filled`: records in `log`, rows in `rows`, and the last DLedger entry.

    Of that entry: the index expected next, its own index, and its term; -1 without an entry.
    """

    log: Ints
    rows: Ints
    filled: Ints
    topics: Topics
    counters: Ints


class Habits(NamedTuple):
    """The settings of the broker that change how records are read."""

    delays: Ints  # ms per delay level; empty where unknown
    crc_tables: Crcs
    multi: bool  # messages may be in several queues
    light: bool  # some of which are light
    everywhere: bool  # messages of every topic may be, as before version 5


class _Tag(NamedTuple):
    code: int
    loose: int


class MessageRow(NamedTuple):
    """The common values of all rows of one record."""

    position: int
    size: int
    tag: _Tag
    time: int


class _Routes(NamedTuple):
    """The properties that route a record: begin and end of each value, or its number."""

    tags: int
    tags_end: int
    delay: int
    inner_count: int
    multi: int
    multi_end: int
    offset: int
    offset_end: int


def _written(view: View) -> int:
    """Estimates the number of records in the stretch: zeros up to its end were never written."""
    end = min(view.stop, view.have)
    while end > view.begin and not view.data[max(view.begin, end - SOME) : end].any():
        end -= SOME
    return max(end - view.begin, 0) >> 8


@native(lambda view, *_: _written(view), kinds=(
    VIEW, record(DamagedHeader, I64, I64, I64, I64, BOOL), record(Room, TABLE, TABLE, INTS, record(Topics, TABLE, INTS,
    BYTES, INTS), INTS), record(Habits, INTS, WORDS32, BOOL, BOOL, BOOL)
))  # fmt: skip
def scan(view: View, forced: DamagedHeader, room: Room, habits: Habits) -> tuple[int, int, int]:
    """Read records as long as they begin before `view.stop`. Returns why it ended, where, and bytes needed.

    What a record shows is written behind what `room` holds already; of a record that does not fit, nothing is. Arrays
    are taken out of their tuples once: to do so for every record would cost half as much again.
    """
    b, log, rows, filled, counters = readable(view.data), room.log, room.rows, room.filled, room.counters
    base, limit, have, wrapped = view.base, view.limit, view.have, view.wrapped
    subjects, table, names, used = room.topics
    delays, tables = habits.delays, habits.crc_tables
    n, q, at = filled[0], filled[1], view.begin
    following, last, newest = filled[2], filled[3], filled[4]
    why, size = STOPPED, 0
    while at < view.stop:
        why, size, v2, known, fits = claim(b, base, limit, have, wrapped, forced, at)
        if why != TAKEN:
            break
        p = at + wrapped
        r = parts(b, p, v2)
        named = _properties(b, r)
        tag = _tag_of(b, r, named, delays)
        after = q
        if not r.flags & SYS_OUTSIDE:
            after = -1
            if n < log.shape[1] and q < rows.shape[1]:
                subject = _subject_of(b, r.topic, r.topic_end, i32(b, p + 12), subjects, table, names, used)
                if subject >= 0:
                    message = MessageRow(view.base + p, size, tag, i64(b, r.time))
                    inner = (r.flags & SYS_INNER_BATCH) != 0
                    count = named.inner_count if inner else 1
                    _put_row(rows, q, subject, i64(b, p + 20), count, message, not inner)
                    after = q + 1
                    if habits.multi and named.multi < named.multi_end and (habits.everywhere or not is_parked(b, r)):
                        topics = subjects, table, names, used
                        after = _more_rows(b, p, message, named, rows, after, topics, habits.light)
        if n >= log.shape[1] or after < 0:
            why, size = FULL, 0
            break
        carried = seal_holds(b, p, size, tables) if r.high - r.low >= SEAL else -1
        _count(counters, r.flags, v2, tag.loose, carried, after - q)
        log[POSITION, n] = view.base + p
        log[SIZE, n] = size
        log[CLAIMED, n] = i64(b, p + 28)
        log[KNOWN, n] = int(known)
        if wrapped:
            index, term = i64(b, at + 8), i64(b, at + 16)
            follows = following < 0 or ((index in (following, last + 1)) and newest <= term)
            following = index + 1 if follows or index == last + 1 else following + 1
            last, newest, fits = index, term, fits and follows
            log[INDEX, n], log[TERM, n] = index, term
        log[FITS, n] = int(fits and ends_well(b, r, named.multi < named.multi_end))
        log[INTACT, n] = int(crc31(b, r.body, i32(b, r.body - 4), tables) == u32(b, p + 8))
        log[SEALED, n] = int(carried != 0)
        log[CARRIED, n] = carried
        log[TIME, n] = i64(b, r.time)
        n += 1
        q = after
        at = p + size
        why, size = STOPPED, 0
    filled[0], filled[1] = n, q
    filled[2], filled[3], filled[4] = following, last, newest
    return why, at, size


@function(inline=True)
def claim(
    b: Bytes, base: int, limit: int, have: int, wrapped: int, forced: DamagedHeader, at: int
) -> tuple[int, int, bool, bool, bool]:  # fmt: skip
    """Reads the header at `at`: TAKEN for a record, its size, V2, a known magic number, parts that fit.

    For a SHORT record, the size is the number of bytes needed from `at` on.
    """
    p = at + wrapped
    if at == forced.at:
        why = TAKEN if p + forced.size <= have else SHORT
        return why, forced.size + (0 if why == TAKEN else wrapped), forced.v2, forced.known != 0, forced.fits != 0
    if wrapped and at + BLANK <= have and u32(b, at) == DLEDGER_BLANK:
        size = i32(b, at + 4)
        return (ROLLED if size == limit - at else INVALID), size, False, False, False
    if p + BLANK > have:
        return (SHORT if have < limit else INVALID), wrapped + BLANK, False, False, False
    size = i32(b, p)
    magic = u32(b, p + 4)
    v2 = magic == MAGIC_V2
    if magic == MAGIC_BLANK and size == limit - p and not wrapped:
        return ROLLED, size, v2, False, False
    if not (v2 or magic == MAGIC_V1) or size < SMALLEST or p + size > limit:
        return INVALID, size, v2, False, False
    if wrapped and not is_wrapping(b, at, base + at, size):
        return INVALID, size, v2, True, True
    if p + size > have:
        return SHORT, wrapped + size, v2, True, True
    return (TAKEN if measure(b, p, p + size, v2) == size else INVALID), size, v2, True, True


@function(inline=True)
def _count(counters: Ints, flags: int, v2: bool, loose: int, carried: int, rows: int) -> None:
    """Count what is special about a record."""
    counters[C_V2] += int(v2)
    counters[C_SEALED] += int(carried >= 0)
    counters[C_OUTSIDE] += int((flags & SYS_OUTSIDE) != 0)
    counters[C_SCHEDULED] += int(loose == SCHEDULED)
    counters[C_MULTI] += max(rows - 1, 0)
    counters[C_INNER] += int(rows > 0 and (flags & SYS_INNER_BATCH) != 0)
    counters[C_UNSURE] += int(loose == UNSURE)


TAGS = as_bytes("TAGS")
DELAY = as_bytes("DELAY")
INNER_COUNT = as_bytes("INNER_NUM")
MULTI_DISPATCH = as_bytes(MULTI)
MULTI_NUMBERS = as_bytes(MULTI_OFFSET)
LIGHT_PREFIX = as_bytes(LIGHT)


@function(inline=True)
def _properties(b: Bytes, r: RecordParts) -> _Routes:
    """Finds the routing properties; the last of two with one name counts, as in the broker."""
    tags, tags_end, delay, count = 0, 0, 0, 1
    multi, multi_end, offset, offset_end = 0, 0, 0, 0
    k, e = r.low, r.high
    at = k
    ends = ends_in(b, at, e)
    while k < e:
        w, at, ends = next_end(b, k, at, ends, e)
        if w - k >= 3 and (b[k] == 73 or b[k] == 84 or b[k] == 68):  # I, T or D: no other name is looked for
            v = place_of(b, k, w, 1)
            length = v - k if v < w - 1 else 0
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
    return _Routes(tags, tags_end, delay, count, multi, multi_end, offset, offset_end)


@function(inline=True)
def _tag_of(b: Bytes, r: RecordParts, named: _Routes, delays: Ints) -> _Tag:
    """Returns the expected tag code of the record's entry: for a delayed message, its delivery time."""
    code, exact = java_hash(b, named.tags, named.tags_end)
    # Where two properties run together, what a broker makes of it depends on its version.
    exact = exact and place_of(b, named.tags, named.tags_end, 1) == named.tags_end
    if named.delay <= 0 or not is_name(b, r.topic, r.topic_end, SCHEDULE):
        return _Tag(code, SURE if exact else UNSURE)
    level = named.delay if named.delay < len(delays) else len(delays)  # noqa: FURB136 - mypy cannot read `min` of these
    return _Tag(i64(b, r.time) + (delays[level - 1] if level > 0 else 0), SCHEDULED)


@function(inline=True)
def _put_row(rows: Ints, q: int, subject: int, number: int, count: int, message: MessageRow, entry: bool) -> None:
    rows[SUBJECT, q] = subject
    rows[NUMBER, q] = number
    rows[COUNT, q] = count
    rows[PLACE, q] = message.position
    rows[LENGTH, q] = message.size
    rows[TAG, q] = message.tag.code
    rows[LOOSE, q] = message.tag.loose
    rows[MOMENT, q] = message.time
    rows[ENTRY, q] = int(entry)


@function(inline=True)
def _more_rows(
    b: Bytes,
    p: int,
    message: MessageRow,
    named: _Routes,
    rows: Ints,
    q: int,
    topics: Topics,
    light: bool,
) -> int:
    """Writes a row for every further queue of the record. Returns the new number of rows, or -1."""
    x, y = named.multi, named.offset
    while x < named.multi_end and y < named.offset_end:
        xe, slash = _item(b, x, named.multi_end)
        ye, _slash = _item(b, y, named.offset_end)
        number = number_in(b, y, ye)
        if xe > x and number >= 0 and not slash:
            if q >= rows.shape[1]:
                return -1
            is_light = light and xe - x >= 5 and is_name(b, x, x + 5, LIGHT_PREFIX)
            subject = _subject_of(b, x, xe, 0 if is_light else i32(b, p + 12), *topics)
            if subject < 0:
                return -1
            _put_row(rows, q, subject, number, 1, message, True)  # noqa: FBT003 - by position, in kernels
            q += 1
        x, y = xe + 1, ye + 1
    return q


@function(inline=True)
def _item(b: Bytes, p: int, e: int) -> tuple[int, bool]:
    """Returns the end of the item at `p` of a list with commas, and True if it contains a slash."""
    slash = False
    while p < e and b[p] != 44:
        slash = slash or b[p] == 47
        p += 1
    return p, slash


_BASIS, _PRIME, _29 = np.uint64(14695981039346656037), np.uint64(1099511628211), np.uint64(29)


@function(inline=True)
def _subject_hash(b: Bytes, p: int, e: int, queue: int) -> int:
    h = _BASIS ^ uint64(queue)
    while p < e:
        h = (h ^ word_of(b, p, min(e - p, 8))) * _PRIME
        h ^= h >> _29
        p += 8
    return int64(h)


@by_library(_subject_hash)
def _subject_hash_by_library(b: Bytes, p: int, e: int, queue: int) -> Any:
    return _hash_of_subject(bytes(b[p:e]), int(queue))


@lru_cache(maxsize=REMEMBERED)
def _hash_of_subject(topic: bytes, queue: int) -> Any:
    h = int(_BASIS) ^ (queue & LOW)
    for at in range(0, len(topic), 8):
        h = (h ^ int.from_bytes(topic[at : at + 8], "little")) * int(_PRIME) & LOW
        h ^= h >> 29
    return np.int64(h - (1 << 64) if h >> 63 else h)


@function
def _subject_of(
    b: Bytes, p: int, e: int, queue: int, subjects: Ints, table: Ints, names: Bytes, used: Ints
) -> int:  # fmt: skip
    """Returns the row of (topic `b[p:e]`, `queue`) in `subjects`, added if new; -1 without room."""
    key = _subject_hash(b, p, e, queue)
    mask = len(table) - 1
    slot = key & mask
    while table[slot] >= 0:
        s = int(table[slot])
        same = subjects[S_HASH, s] == key and subjects[S_QUEUE, s] == queue and subjects[S_LENGTH, s] == e - p
        if same and are_same(b, p, names, subjects[S_AT, s], e - p):
            return s
        slot = (slot + 1) & mask
    if used[0] * 2 >= len(table) or used[0] >= subjects.shape[1] or used[1] + e - p > len(names):
        return -1
    s = int(used[0])
    table[slot] = s
    subjects[S_HASH, s] = key
    subjects[S_AT, s] = used[1]
    subjects[S_LENGTH, s] = e - p
    subjects[S_QUEUE, s] = queue
    for i in range(p, e):
        names[used[1] + i - p] = b[i]
    used[0] += 1
    used[1] += e - p
    return s


@function(inline=True)
def _next_magic(b: Bytes, at: int, stop: int) -> int:
    """The first place in `at:stop` behind whose first four bytes a magic number may begin, or else `stop`."""
    while at < stop and b[at + 4] != 0xDA and b[at + 4] != 0xCB:
        at += 1
    return at


@by_library(_next_magic)
def _next_magic_by_library(b: Bytes, at: int, stop: int) -> int:
    while at < stop:
        found = _FIRST_OF_MAGIC.search(bytes(b[at + 4 : min(at + SOME, stop) + 4]))
        if found:
            return at + found.start()
        at += SOME
    return stop


_FIRST_OF_MAGIC = re.compile(rb"[\xda\xcb]")
SOME = 4096  # bytes that are looked through at once


@native(lambda view: 8 * _written(view), kinds=(VIEW,))
def find_start(view: View) -> int:
    """The first place in `begin:stop` where a record or the file's blank begins, or -1.

    A record names its own position: that, its magic number and a size that its parts add up to (as far as they are
    in `data`) are asked for. A forgery inside a body would still be found out, where the piece before it ends.
    """
    b, base, at, stop, limit, have, wrapped = view
    b = readable(b)
    while at < stop and at + BLANK <= have:
        if wrapped == 0:
            at = _next_magic(b, at, min(stop, have - BLANK + 1))
            if at >= stop or at + BLANK > have:
                break
        p = at + wrapped
        if p + BLANK > have:
            if u32(b, at) == DLEDGER_BLANK and i32(b, at + 4) == limit - at:
                return at
        elif b[p + 4] == 0xDA and b[p + 5] == 0xA3 and b[p + 6] == 0x20 and p + SMALLEST <= have:
            size = i32(b, p)
            magic = u32(b, p + 4)
            ours = magic in (MAGIC_V1, MAGIC_V2) and i64(b, p + 28) == base + p
            whole = ours and SMALLEST <= size <= limit - p
            whole = whole and (wrapped == 0 or is_wrapping(b, at, base + at, size))
            if whole and (p + size > have or measure(b, p, p + size, magic == MAGIC_V2) == size):
                return at
        elif wrapped:
            if u32(b, at) == DLEDGER_BLANK and i32(b, at + 4) == limit - at:
                return at
        elif b[p + 4] == 0xCB and u32(b, p + 4) == MAGIC_BLANK and i32(b, p) == limit - p:
            return p
        at += 1
    return -1
