"""The rows of a recording: one for every step that an implementation took, eight integers each.

A row is (kind, subject, six numbers). Each kind says what the six are; `event_batches.py` turns rows into events.
Rows of an append are completed from the bytes of the log, and entries are read from the bytes of their queue, so that
a recording has what lies there, not what the writer meant to write.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from gapless.impl.files.observer import APPEND
from gapless.impl.records import kernels
from gapless.impl.records.record import BLANK, FIXED, MAGIC_BLANK, OUTSIDE, Bytes, Ints, tag_code
from gapless.native import BYTES, I64, INTS, TABLE, WORD32_TABLE, function
from gapless.native.intrinsics import address_of, i32_at, i64_at

Entries = npt.NDArray[np.void]
"""Entries of a consume queue as they lie there: position, size, tag, in 20 bytes."""

WIDTH = 8
row = struct.Struct(f"{WIDTH}q").pack

KIND, SUBJECT, A, B, C, D, E, F = range(WIDTH)
"""The columns of a row."""

(
    OPEN,  # the log: position, file size
    CRASH,  # the log: kept
    ROLL,  # position, size, marked
    FLUSH,  # to
    ACKNOWLEDGE,  # to
    CHECKPOINT,  # time
    REST,  # the log is at rest
    FOUND,  # as APPEND: a record that was there when the log was opened
    MEET,  # as FOUND, in a later session of the log, whose trace has it already
) = range(APPEND)
# APPEND: number, position, size, tag, time, claimed, and flags
(
    OPEN_QUEUE,  # number, start
    INDEX,  # entries up to, from, and where they are kept: found at the opening
    EXPIRE,  # number, start
    SETTLE,  # upto
    OPEN_ENTRIES,  # number, overlap
    CRASH_ENTRIES,  # kept
    SCAN,  # numbers from, up to, overlap
    TAKE,  # numbers from, up to, overlap
    WRITE,  # numbers from, up to, overlap
    COMMIT,  # to, and as INDEX: the entries that it makes visible
    FLUSH_QUEUE,  # to
    REST_QUEUE,  # the queue is at rest
) = range(APPEND + 1, 22)
"""What a row records. From FOUND on its subject is a queue: its index on the tape, its number in a recording."""

KINDS = 0xFF  # of the column KIND, the part that says it
KNOWN, FITS, INTACT, SEALED, OWN, INFERRED = (1 << bit for bit in range(8, 14))
"""Flags above the kind. Of a record: what its bytes are found to be, and that it names the queue it was appended to. Of
any step: that it was not observed, and must have been taken."""
NOWHERE = -(1 << 62)


def numbered(starts: Ints, counts: Ints) -> Ints:
    """`starts[0]`, `starts[0] + 1`, … `counts[0]` of them, and so on for every start."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())


def rows_of(kind: int, like: Ints, columns: Mapping[int, Ints | int]) -> Ints:
    """Rows of a kind with these columns, and zeros elsewhere: as many as `like` has values."""
    rows = np.zeros((len(like), WIDTH), np.int64)
    rows[:, KIND] = kind
    for at, column in columns.items():
        rows[:, at] = column
    return rows


# -- what lies in the log ------------------------------------------------------------------------------------------


def complete(data: Bytes, base: int, rows: Ints, low: int, subjects: Ints, keys: Ints, delays: Ints) -> int:
    """Complete rows in place from row `low` on, up to the first record that does not lie in the file; returns that row.

    Records get their flags, number, tag, time and claimed position from the bytes of the log, and every row of a queue
    the number of its subject. `data`: the file, which begins at `base` in the log · `subjects`, `keys`: of every queue
    by its index, its number in the recording, and its `queue_key` · `delays`: ms of each delay level.
    """
    done: int = _complete(data, base, rows, low, subjects, keys, delays, kernels.CRC_TABLES)
    return done


def queue_key(topic: str, queue: int) -> int:
    """The key of queues: the hash of the topic, and the id."""
    return (tag_code(topic) << 32) | queue


@function
def _tag(b: Bytes, p: int, end: int) -> tuple[int, int]:
    """The code of property TAGS among the properties `p:end`, and the number in DELAY; 0 if there is none of it.

    The last of two counts. What is no number is -1.
    """
    code, level = 0, 0
    while p < end:
        stop = kernels.property_end(b, p, end)
        if kernels.starts_with(b, p, stop, kernels.TAGS):
            code = kernels.java_hash(b, p + len(kernels.TAGS), stop)
        elif stop - p > len(kernels.DELAY) and kernels.starts_with(b, p, stop, kernels.DELAY):
            level = kernels.digits(b, p + len(kernels.DELAY), stop)
        p = stop + 1
    return code, level


@function(kinds=(BYTES, I64, TABLE, I64, INTS, INTS, INTS, WORD32_TABLE))
def _complete(
    b: Bytes, base: int, rows: Ints, low: int, subjects: Ints, keys: Ints, delays: Ints, tables: kernels.Tables
) -> int:  # fmt: skip
    for i in range(low, len(rows)):
        kind = rows[i, 0]
        if kind < FOUND:
            continue
        queue = rows[i, 1]
        if kind <= APPEND:
            if not base <= rows[i, 3] < base + len(b):
                return i
            key = _record(b, base, rows, i, delays, tables)
            if kind != APPEND:
                queue = _place(key, keys)
            if 0 <= queue < len(keys) and keys[queue] == key:
                rows[i, 0] |= OWN
        rows[i, 1] = subjects[queue] if 0 <= queue < len(subjects) else 0
    return len(rows)


@function
def _place(key: int, keys: Ints) -> int:
    for at in range(len(keys)):
        if keys[at] == key:
            return at
    return -1


@function
def _record(b: Bytes, base: int, rows: Ints, i: int, delays: Ints, tables: kernels.Tables) -> int:
    """Complete the row of one record; returns the key of the queue that it names."""
    at, size = rows[i, 3] - base, rows[i, 4]
    rows[i, 2], rows[i, 5], rows[i, 6], rows[i, 7] = -1, 0, 0, -1
    if size < FIXED or at + size > len(b):
        return NOWHERE
    a, end = address_of(b) + at, at + size
    rows[i, 2], rows[i, 7] = i64_at(a + 20), i64_at(a + 28)
    if i32_at(a + 4) in (kernels.V1, kernels.V2):
        rows[i, 0] |= KNOWN
    body, topic, topic_end = kernels.parts_of(b, at, size)
    if body == 0 or i32_at(a) != size:
        return NOWHERE
    rows[i, 0] |= FITS
    (rows[i, 5], level), rows[i, 6] = _tag(b, topic_end + 2, end), kernels.time_of(b, at)
    if level > 0 and kernels.is_delayed(b, topic, topic_end):
        # When the message is due: docs/rocketmq.md#entry.
        rows[i, 5] = rows[i, 6] + delays[min(level, len(delays)) - 1]
    if kernels.has_checksum(b, at, body, tables):
        rows[i, 0] |= INTACT
    if kernels.is_sealed(b, at, topic_end + 2, end, tables):
        rows[i, 0] |= SEALED
    if i32_at(a + 36) & OUTSIDE:
        return NOWHERE
    key: int = (kernels.java_hash(b, topic, topic_end) << 32) | i32_at(a + 12)
    return key


def records(data: Bytes, base: int, low: int, high: int) -> Ints:
    """The (position, size) [n, 2] of the records between two positions, up to a blank, by their sizes."""
    room = np.empty(((high - low) // FIXED + 1, 2), np.int64)
    return room[: _records(data, base, low, high, room)]


@function(kinds=(BYTES, I64, I64, I64, TABLE))
def _records(b: Bytes, base: int, low: int, high: int, out: Ints) -> int:
    count, at, a = 0, low, address_of(b) - base
    while at + BLANK <= high:
        size = i32_at(a + at)
        if size < FIXED or at + size > high or i32_at(a + at + 4) == kernels.BLANK_MARK:
            break
        out[count, 0], out[count, 1] = at, size
        count += 1
        at += size
    return count


def marked(data: Bytes, at: int, size: int) -> bool:
    """True if a blank of `size` bytes stands at byte `at` of a file, with its mark."""
    return struct.unpack(">iI", data[at : at + BLANK].tobytes()) == (size, MAGIC_BLANK)


def chunks(rows: Ints, costs: Ints, most: int) -> Iterator[slice]:
    """The rows in stretches that cost at most `most` together, or one row each where it alone costs more."""
    sums = np.cumsum(costs)
    low = 0
    while low < len(rows):
        before = int(sums[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(sums, before + most, side="right")))
        yield slice(low, high)
        low = high
