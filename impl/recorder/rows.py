"""The rows of a recording: one for every step that an implementation took, eight integers each.

A row is (kind, subject, six numbers). What the six mean stands beside every kind; `telling.py` turns rows into events.
Rows of an append are completed from the bytes of the log, and entries are read from the bytes of their queue, so that
a recording tells what lies there, not what the writer meant to write.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numba import njit

from gapless.impl.dispatch.scan_kernel import digits, starts_with
from gapless.impl.native.kernels import CRC_TABLES, Tables, crc32, i32, i64, java_hash, sealed, u32
from gapless.impl.store.records import BLANK, BORN_V6, FIXED, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, STORE_V6, tag_code

if TYPE_CHECKING:
    from collections.abc import Iterator

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Entries = npt.NDArray[np.void]
"""Entries of a consume queue as they lie there: position, size, tag, in 20 bytes."""

WIDTH = 8
row = struct.Struct(f"{WIDTH}q").pack
row_of_append = struct.Struct("2q8x2q24x").pack
"""The row of an append that is not completed yet, from kind, queue, position and size."""

KIND, SUBJECT, A, B, C, D, E, F = range(WIDTH)
"""The columns of a row."""

(
    OPEN,  # the log: position, file size
    CRASH,  # the log: kept
    ROLL,  # position, size, marked
    FLUSH,  # to
    ACKNOWLEDGE,  # to
    CHECKPOINT,  # time
    FOUND,  # as APPEND: a record that was there when the log was opened
    MEET,  # as FOUND, in a later life of the log, whose trace has it already
    APPEND,  # number, position, size, tag, time, claimed, and flags
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
) = range(20)
"""What a row tells. From FOUND on, its subject is a queue: its index on the tape, its number in the recording after."""

KINDS = 0xFF  # of the column KIND, the part that says it
KNOWN, FITS, INTACT, SEALED, OWN, INFERRED = (1 << bit for bit in range(8, 14))
"""Flags above the kind. Of a record: what its bytes are found to be, and that it names the queue it was appended to. Of
any step: that nobody told of it, and it must have been taken."""
NOWHERE = -(1 << 62)
SCHEDULE_TOPIC = np.frombuffer(b"SCHEDULE_TOPIC_XXXX", np.uint8)
TAGS = np.frombuffer(b"TAGS\x01", np.uint8)
DELAY = np.frombuffer(b"DELAY\x01", np.uint8)
SEAL = 20  # bytes of the checksum that properties may carry
OUTSIDE = 0x4  # transaction types 4 and 12 have this bit, and no place in a queue (reference A.3)


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
    done: int = _complete(data, base, rows, low, subjects, keys, delays, CRC_TABLES)
    return done


def queue_key(topic: str, queue: int) -> int:
    """What queues are compared by: the hash of the topic, and the id."""
    return (tag_code(topic) << 32) | queue


@njit
def _parts(b: Bytes, at: int, end: int) -> tuple[int, int, int, int]:
    """Where the body, topic and properties of a record begin, and its store time; -1 where they do not end at `end`."""
    nowhere = (-1, 0, 0, 0)
    flags = i32(b, at + 36)
    host = 20 if flags & STORE_V6 else 8
    p = at + 48 + (20 if flags & BORN_V6 else 8)
    body = p + 8 + host + 12 + 4
    if body > end:
        return nowhere
    length = i32(b, body - 4)
    wide = 1 if np.int64(u32(b, at + 4)) == MAGIC_V2 else 0
    topic = body + length + 1 + wide
    if length < 0 or topic + 2 > end:
        return nowhere
    properties = topic + np.int64(b[topic - 1]) + (np.int64(b[topic - 2]) << 8 if wide else 0) + 2
    if properties > end or properties + (np.int64(b[properties - 2]) << 8) + np.int64(b[properties - 1]) != end:
        return nowhere
    return body, topic, properties, i64(b, p)


@njit
def _tag(b: Bytes, p: int, end: int) -> tuple[int, int]:
    """The code of property TAGS among the properties `p:end`, and the number in DELAY; 0 if there is none of it.

    The last of two counts. What is no number is -1.
    """
    code, level = 0, 0
    while p < end:
        stop = p
        while stop < end and b[stop] != 2:
            stop += 1
        if starts_with(b, p, stop, TAGS):
            code = java_hash(b, p + len(TAGS), stop)
        elif stop - p > len(DELAY) and starts_with(b, p, stop, DELAY):
            level = digits(b, p + len(DELAY), stop)
        p = stop + 1
    return code, level


@njit(nogil=True, cache=True)
def _complete(
    b: Bytes, base: int, rows: Ints, low: int, subjects: Ints, keys: Ints, delays: Ints, tables: Tables
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


@njit
def _place(key: int, keys: Ints) -> int:
    for at in range(len(keys)):
        if keys[at] == key:
            return at
    return -1


@njit
def _record(b: Bytes, base: int, rows: Ints, i: int, delays: Ints, tables: Tables) -> int:
    """Complete the row of one record; returns the key of the queue that it names."""
    at, size = rows[i, 3] - base, rows[i, 4]
    rows[i, 2], rows[i, 5], rows[i, 6], rows[i, 7] = -1, 0, 0, -1
    if size < FIXED or at + size > len(b):
        return NOWHERE
    rows[i, 2], rows[i, 7] = i64(b, at + 20), i64(b, at + 28)
    if np.int64(u32(b, at + 4)) in (MAGIC_V1, MAGIC_V2):
        rows[i, 0] |= KNOWN
    body, topic, properties, time = _parts(b, at, at + size)
    if body < 0 or i32(b, at) != size:
        return NOWHERE
    rows[i, 0] |= FITS
    (rows[i, 5], level), rows[i, 6] = _tag(b, properties, at + size), time
    if (
        level > 0
        and properties - 2 - topic == len(SCHEDULE_TOPIC)
        and starts_with(b, topic, properties - 2, SCHEDULE_TOPIC)
    ):
        rows[i, 5] = time + delays[min(level, len(delays)) - 1]  # when the message is due (reference A.5)
    if crc32(b, body, i32(b, body - 4), tables) == np.int64(u32(b, at + 8)):
        rows[i, 0] |= INTACT
    if at + size - properties < SEAL or sealed(b, at, at + size, tables):
        rows[i, 0] |= SEALED
    if i32(b, at + 36) & OUTSIDE:
        return NOWHERE
    key: int = (java_hash(b, topic, properties - 2) << 32) | i32(b, at + 12)
    return key


def records(data: Bytes, base: int, low: int, high: int) -> Ints:
    """The (position, size) [n, 2] of the records between two positions, up to a blank, by the sizes they give."""
    room = np.empty(((high - low) // FIXED + 1, 2), np.int64)
    return room[: _records(data, base, low, high, room)]


@njit(nogil=True, cache=True)
def _records(b: Bytes, base: int, low: int, high: int, out: Ints) -> int:
    count = 0
    at = low
    while at + BLANK <= high:
        size = i32(b, at - base)
        if size < FIXED or at + size > high or np.int64(u32(b, at - base + 4)) == MAGIC_BLANK:
            break
        out[count, 0], out[count, 1] = at, size
        count += 1
        at += size
    return count


def marked(data: Bytes, at: int, size: int) -> bool:
    """Whether a blank of `size` bytes stands at byte `at` of a file, with its mark."""
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
