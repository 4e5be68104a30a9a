"""The scanner's pass over the log: which records there are, in which queues, and under which numbers.

It runs alone while workers wait for it, so it reads of each record only what says where it belongs: the first 48 bytes,
the lengths, the topic. Checksums, tags and all else are the workers' to read (`build_kernel.py`). A record takes effect
wholly or not at all.
"""

# ruff: noqa: C901, FBT001, PLR0912, PLR0915
# A kernel is one pass over the bytes; kernels are called by position.

from __future__ import annotations

import numpy as np

from gapless.impl.records.kernels import BLANK_MARK, V1, V2, digits, parts_of, property_end, starts_with
from gapless.impl.records.record import BLANK, ENTRY_BYTES, FIXED, INNER_BATCH, OUTSIDE, Bytes, Ints
from gapless.native import BOOL, BYTES, I64, INTS, TABLE, function, int64, uint64
from gapless.native.intrinsics import address_of, i32_at, i64_at, word_at

# Columns of rows: an entry that is to be written. The tag is the worker's to find.
QUEUE, NUMBER, POSITION, SIZE, ROW = range(5)
# Columns of runs: the numbers that one queue has in one batch, LOW:HIGH.
RUN_QUEUE, LOW, HIGH, RUN = range(4)
# Columns of what the scanner knows of a queue. SCANNED, COMMITTED: as the queue has them. NEWEST: the position of its
# last entry when it was met, and -1 where it had none: up to there, all was dispatched in another session. The slots of
# FROM:UPTO lie in memory from ADDRESS on. BITS, ROOM: where its bitmap is, and for how many numbers. BATCH, RUN_AT: the
# batch that last had one of its numbers, and its run there. BUSY: batches that are being written and have its numbers.
# ASKED: the last of the records with several entries that named it.
SCANNED, COMMITTED, NEWEST, FROM, UPTO, ADDRESS, BITS, ROOM, BATCH, RUN_AT, BUSY, ASKED, COLUMNS = range(13)
# Columns of the subjects (a topic and a queue id) that the scanner has met: the index of the queue is INDEX.
S_HASH, S_AT, S_LENGTH, S_ID, INDEX, S_COLUMNS = range(6)

# Why a scan ends. After the first three there is nothing to be done but to hand out what was found; after the next
# ones its caller can help; the rest is damage.
DONE, FULL, ROLLED = range(3)
UNKNOWN, AWAY, NARROW, CROWDED, RESTART = range(3, 8)
NO_RECORD, BEYOND, PARTS, ELSEWHERE, INNER, TWICE, SKIPPED = range(8, 15)
# What else it returns: how many rows and runs there are. Then, of what it met: queue index, number; or, of an unknown
# subject: where its topic lies, its length, its queue id; or, where rows are crowded: how many the record takes. ASKS:
# how many records with several entries were met.
ROWS, RUNS, FIRST, SECOND, THIRD, ASKS, ANSWERS = range(7)

MULTI_DISPATCH = np.frombuffer(b"INNER_MULTI_DISPATCH\x01", np.uint8)
MULTI_OFFSET = np.frombuffer(b"INNER_MULTI_QUEUE_OFFSET\x01", np.uint8)
RETRY_PREFIX = np.frombuffer(b"%RETRY%", np.uint8)
LIGHT_PREFIX = np.frombuffer(b"%LMQ%", np.uint8)
COMMA, SLASH = 44, 47


@function(kinds=(BYTES, I64, I64, I64))
def hash_of(b: Bytes, p: int, e: int, queue: int) -> int:
    """Find the subject of the topic `p:e` and a queue id."""
    a = address_of(b)
    h = uint64(queue) * uint64(0x9E3779B97F4A7C15) ^ uint64(e - p)
    while p + 8 <= e:
        h = (h ^ word_at(a + p)) * uint64(0xFF51AFD7ED558CCD)
        h ^= h >> uint64(32)
        p += 8
    while p < e:
        h = (h ^ uint64(b[p])) * uint64(0xC4CEB9FE1A85EC53)
        p += 1
    return int64(h ^ (h >> uint64(29)))


@function(kinds=(BYTES, I64, I64, I64, INTS, TABLE, BYTES))
def place_of(b: Bytes, p: int, e: int, queue: int, table: Ints, subjects: Ints, names: Bytes) -> int:
    """The place in `table` where the subject is, or is to be; the table is never full."""
    key = hash_of(b, p, e, queue)
    mask = uint64(len(table) - 1)
    place = uint64(key) & mask
    while table[place] >= 0:
        s = uint64(table[place])
        if subjects[s, S_HASH] == key and subjects[s, S_ID] == queue and subjects[s, S_LENGTH] == e - p:
            at = subjects[s, S_AT]
            i = 0
            while i < e - p and names[at + i] == b[p + i]:
                i += 1
            if i == e - p:
                break
        place = (place + uint64(1)) & mask
    return int64(place)


@function
def _can_take(queues: Ints, q: int, number: int, position: int, ask: int) -> int:
    """The result for a number of a queue: DONE, FULL if another session had it, else the obstacle.

    `ask`: a number that the entries of one record share; 0 where it has but one.
    """
    queue = queues[q]
    if position <= queue[NEWEST]:
        return FULL
    if ask > 0:
        if queue[ASKED] == ask:
            return TWICE
        queue[ASKED] = ask
    if number != queue[SCANNED]:
        return RESTART if number == 0 and queue[SCANNED] > 0 else SKIPPED
    if not queue[FROM] <= number < queue[UPTO]:
        return AWAY
    if number - queue[COMMITTED] >= queue[ROOM]:
        return NARROW
    return DONE


@function
def _give(
    queues: Ints, q: int, number: int, position: int, size: int, batch: int, rows: Ints, slots: Ints, runs: Ints,
    found: Ints,
) -> None:  # fmt: skip
    """The number is given: a row more, and a run more or longer."""
    queue = queues[q]
    n = uint64(found[ROWS])
    row = rows[n]
    row[QUEUE], row[NUMBER], row[POSITION], row[SIZE] = q, number, position, size
    slots[n] = queue[ADDRESS] + ENTRY_BYTES * (number - queue[FROM])
    found[ROWS] += 1
    if queue[BATCH] == batch:
        runs[queue[RUN_AT], HIGH] = number + 1
    else:
        m = found[RUNS]
        queue[BATCH], queue[RUN_AT] = batch, m
        run = runs[m]
        run[RUN_QUEUE], run[LOW], run[HIGH] = q, number, number + 1
        found[RUNS] += 1
    queue[SCANNED] = number + 1


@function
def _list_of(b: Bytes, p: int, e: int, name: Bytes) -> tuple[int, int]:
    """The range of a property's value in the properties `p:e`, the last of two; (0, 0) if it has none."""
    at, end = 0, 0
    while p < e:
        w = property_end(b, p, e)
        if w - p > len(name) and starts_with(b, p, w, name):
            at, end = p + len(name), w
        p = w + 1
    return at, end


@function
def _lights(
    b: Bytes, x: int, x_end: int, y: int, y_end: int, position: int, size: int, ask: int, batch: int,
    rows: Ints, slots: Ints, runs: Ints, queues: Ints, table: Ints, subjects: Ints, names: Bytes, found: Ints,
) -> int:  # fmt: skip
    """The light queues that a record names at `x:x_end`, with their numbers at `y:y_end`.

    With `ask`, only whether all can take it, and in `found[FIRST]` their number; with 0, they do.

    Source: docs/rocketmq.md#multi-dispatch.
    """
    count = 0
    while x < x_end and y < y_end:
        to, upto, slashed = x, y, False
        while to < x_end and b[to] != COMMA:
            slashed = slashed or b[to] == SLASH
            to += 1
        while upto < y_end and b[upto] != COMMA:
            upto += 1
        number = digits(b, y, upto)
        if number >= 0 and not slashed and starts_with(b, x, to, LIGHT_PREFIX):
            s = table[place_of(b, x, to, 0, table, subjects, names)]
            if s < 0:
                found[FIRST], found[SECOND], found[THIRD] = x, to - x, 0
                return UNKNOWN
            q = subjects[s, INDEX]
            why = _can_take(queues, q, number, position, ask)
            if why == DONE and ask == 0:
                _give(queues, q, number, position, size, batch, rows, slots, runs, found)
            elif why not in (DONE, FULL):
                found[FIRST], found[SECOND] = q, number
                return why
            count += 1
        x, y = to + 1, upto + 1
    if ask > 0:
        found[FIRST] = count
    return DONE


@function(kinds=(BYTES, I64, I64, I64, I64, I64, I64, I64, BOOL, TABLE, INTS, TABLE, TABLE, INTS, TABLE, BYTES, INTS))
def scan(
    b: Bytes, base: int, p: int, stop: int, limit: int, end: int, most: int, batch: int, lmq: bool,
    rows: Ints, slots: Ints, runs: Ints, queues: Ints, table: Ints, subjects: Ints, names: Bytes, found: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Give numbers to the records from `p` on, as long as they begin before `stop`. Returns why it ended, and where.

    `b` is the file that begins at log position `base`; all places are counted from there. Records are read that end at
    or before `limit`; before `end`, there is nothing but records. Rows, slots (the address of each row's entry) and
    runs are appended to; there are never more than `most` rows but where one record has several. `batch`: a number
    that no other batch has. `lmq`: light queues get entries, too.
    """
    a = address_of(b)
    why = DONE
    while p < stop:
        if found[ROWS] >= most:
            why = FULL
            break
        if p + BLANK > end:
            why = BEYOND
            break
        size = i32_at(a + p)
        magic = i32_at(a + p + 4)
        if magic not in (V1, V2):
            if magic == BLANK_MARK and size == len(b) - p:
                if limit >= len(b):
                    why, p = ROLLED, len(b)
            else:
                why = NO_RECORD
            break
        if size < FIXED or p + size > end:
            why = BEYOND
            break
        if p + size > limit:
            break
        position = i64_at(a + p + 28)
        if position != base + p:
            why = ELSEWHERE
            break
        _, topic, topic_end = parts_of(b, p, size)
        if topic == 0:
            why = PARTS
            break
        flags = i32_at(a + p + 36)
        if flags & OUTSIDE:
            p += size
            continue
        if flags & INNER_BATCH:
            why = INNER
            break
        queue = i32_at(a + p + 12)
        s = table[place_of(b, topic, topic_end, queue, table, subjects, names)]
        if s < 0:
            found[FIRST], found[SECOND], found[THIRD] = topic, topic_end - topic, queue
            why = UNKNOWN
            break
        x, x_end, y, y_end = 0, 0, 0, 0
        if lmq and not starts_with(b, topic, topic_end, RETRY_PREFIX):
            x, x_end = _list_of(b, topic_end + 2, p + size, MULTI_DISPATCH)
            y, y_end = _list_of(b, topic_end + 2, p + size, MULTI_OFFSET)
        if x_end > 0 and y_end > 0:
            found[ASKS] += 1
            why = _lights(
                b, x, x_end, y, y_end, position, size, found[ASKS], batch,
                rows, slots, runs, queues, table, subjects, names, found,
            )  # fmt: skip
            if why != DONE:
                break
            if found[ROWS] + 1 + found[FIRST] > len(rows):
                found[FIRST] += 1
                why = CROWDED
                break
        q = subjects[s, INDEX]
        number = i64_at(a + p + 20)
        taken = _can_take(queues, q, number, position, found[ASKS] if x_end > 0 and y_end > 0 else 0)
        if taken == DONE:
            _give(queues, q, number, position, size, batch, rows, slots, runs, found)
        elif taken != FULL:
            found[FIRST], found[SECOND] = q, number
            why = taken
            break
        if x_end > 0 and y_end > 0:
            _lights(
                b, x, x_end, y, y_end, position, size, 0, batch,
                rows, slots, runs, queues, table, subjects, names, found,
            )  # fmt: skip
        p += size
    return why, p
