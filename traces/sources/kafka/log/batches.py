"""Heads of batches in columns: one native pass over a segment, which checks every batch's checksum.

A segment is whole batches, one behind the other. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np

from gapless.native import BYTES, I64, TABLE, function, native
from gapless.native.big_endian import signed_16, signed_32, signed_64
from gapless.traces.sources.kafka.log.checksums import crc32c
from gapless.traces.sources.kafka.log.control import DATA, control_record
from gapless.traces.sources.kafka.log.message_sets import is_message_set
from gapless.traces.sources.kafka.log.tables import BitRow, Bytes, FlagRow, Flags, Ints, NumberTable, Row

HEAD = 61
"""Bytes before a batch's records."""
UNCOUNTED, COVERED = 12, 21
"""The bytes before those that the length counts, and before those that the checksum covers."""
SMALLEST = HEAD - UNCOUNTED
"""The least length."""
MAGIC = 2
CHUNK = 4 << 20
"""Bytes that are read at once."""
WIDTH = 1 << 15
"""Batches that are read at once."""
LARGEST = 128 << 20
"""Bytes of a batch that is read. A broker takes 1 MiB by default, and a consumer asks for 50 MiB at once."""

# Rows of the table of heads.
(
    POSITION, SIZE, BASE, LAST, COUNT, LEADER_EPOCH, ATTRIBUTES, BASE_TIME, MAX_TIME, PRODUCER, PRODUCER_EPOCH,
    SEQUENCE, SOUND, MARKER, COORDINATOR, ROWS,
) = range(16)  # fmt: skip

CODEC, APPEND_TIME, TRANSACTIONAL, CONTROL, HORIZON = 7, 8, 16, 32, 64
KNOWN = 127
"""All bits of the attributes that mean something."""
PLAIN, GZIP, SNAPPY, LZ4, ZSTD = range(5)
"""The codecs."""
SEQUENCES = 1 << 31
"""Sequences begin at 0 again behind this many."""


class Stop(IntEnum):
    """The reason why whole batches end."""

    END = 0  # at the end that was asked for
    SHORT = 1  # the file ends within a batch, or has nothing but zeros from within its head on
    ZEROS = 2  # zeros up to the file's end: a preallocated segment, or pages that were lost
    LENGTH = 3  # the length cannot be
    MAGIC = 4  # no batch
    OLD = 5  # messages of magic 0 or 1
    LARGE = 6  # a batch of more than `LARGEST`, which is not read
    MORE = 7  # only within a pass: the next batch is not yet in memory


_END, _SHORT, _ZEROS, _LENGTH, _MAGIC, _OLD, _LARGE, _MORE = map(int, Stop)


class Batches(NumberTable):
    """Heads of batches in columns; -1 is none, as on disk."""

    position = Row(POSITION)  # byte in the segment
    size = Row(SIZE)  # bytes, with the head
    base = Row(BASE)
    last = Row(LAST)  # the last offset
    count = Row(COUNT)
    leader_epoch = Row(LEADER_EPOCH)
    attributes = Row(ATTRIBUTES)
    base_time = Row(BASE_TIME)
    max_time = Row(MAX_TIME)
    producer = Row(PRODUCER)
    producer_epoch = Row(PRODUCER_EPOCH)
    sequence = Row(SEQUENCE)  # of the first record
    is_sound = FlagRow(SOUND)  # the checksum is right
    marker = Row(MARKER)  # see control.py
    coordinator = Row(COORDINATOR)  # the marker's coordinator epoch
    is_append_time = BitRow(ATTRIBUTES, APPEND_TIME)
    is_transactional = BitRow(ATTRIBUTES, TRANSACTIONAL)
    is_control = BitRow(ATTRIBUTES, CONTROL)
    has_horizon = BitRow(ATTRIBUTES, HORIZON)

    @property
    def codec(self) -> Ints:
        """The codec of each batch, by its number."""
        return self.attributes & CODEC

    @property
    def last_sequence(self) -> Ints:
        """The sequence of the last record, as the producer counted; -1 for none."""
        sequence = self.sequence
        return np.where(sequence < 0, -1, (sequence + (self.last - self.base)) & (SEQUENCES - 1))

    @property
    def fits(self) -> Flags:
        """True where the numbers of the head can be together."""
        delta = self.last - self.base
        of_producer = (self.producer_epoch >= 0) & ((self.sequence >= 0) | self.is_control)
        found: Flags = (
            (self.base >= 0) & (delta >= 0) & (self.count >= 0) & (self.count <= delta + 1)
            & (self.codec <= ZSTD) & (self.attributes & ~KNOWN == 0)
            & ((self.producer < 0) | of_producer)
        )  # fmt: skip
        return found

    @cached_property
    def highest_base(self) -> Ints:
        """The greatest base up to each batch: its own, unless offsets go back."""
        return _risen(self.base)

    @cached_property
    def highest_last(self) -> Ints:
        """The greatest last offset up to each batch."""
        return _risen(self.last)

    def dense_from(self, offset: int) -> int:
        """The offset from which on each offset has its record, where the batches are to begin at an offset."""
        if not len(self):
            return offset
        before = np.append(offset - 1, self.last[:-1])
        gaps, short = self.base != before + 1, self.count != self.last - self.base + 1
        at = max([-2, *(np.flatnonzero(gaps)[-1:] - 1), *np.flatnonzero(short)[-1:]])  # the last one with a gap
        return offset if at == -2 else int(self.base[0]) if at == -1 else int(self.last[at]) + 1

    @property
    def end(self) -> int:
        """The position behind the last batch; 0 if there is none."""
        return int(self.position[-1] + self.size[-1]) if len(self) else 0


def _risen(column: Ints) -> Ints:
    if (column[1:] >= column[:-1]).all():
        return column
    risen: Ints = np.maximum.accumulate(column)
    return risen


@dataclass(frozen=True)
class Scan:
    """The batches of a part of a segment. `end`: the position behind the last one · `size`: of the file."""

    batches: Batches
    begin: int
    end: int
    size: int
    stop: Stop


@dataclass(frozen=True)
class Chunk:
    """Whole batches in memory: their heads, and their bytes, which begin at a position of the segment.

    `stop`: why no batch follows, in the last chunk; `Stop.MORE` in others.
    """

    batches: Batches
    data: Bytes
    position: int
    end: int
    size: int
    stop: Stop


def rows_of(size: int) -> int:
    """The rows of work that so many bytes are, for the choice between Python and native code."""
    return size >> 6


@native(lambda data, *_: rows_of(len(data)), kinds=(BYTES, I64, I64, I64, TABLE))
def _scan(data: Bytes, position: int, until: int, size: int, table: Ints) -> tuple[int, int, int]:
    """Read batches that begin before `until`; `position` is that of the first byte, `size` the file's.

    Returns why it ended, the place of the first byte that was not read, and the number of batches.
    """
    n, at, have = 0, 0, len(data)
    why = _END
    while position + at < until:
        why = _MORE
        if at + HEAD > have or n >= table.shape[1]:
            if position + at + HEAD > size:
                why = _SHORT
            break
        length = signed_32(data, at + 8)
        if data[at + 16] != MAGIC:
            why = _MAGIC if length != 0 else _ZEROS
            break
        if length < SMALLEST:
            why = _LENGTH
            break
        if position + at + UNCOUNTED + length > size:
            why = _SHORT
            break
        if length > LARGEST:
            why = _LARGE
            break
        end = at + UNCOUNTED + length
        if end > have:
            break
        _head(data, at, end, position, n, table)
        n += 1
        at = end
        why = _END
    return why, at, n


ENTRIES = (_scan,)
"""The functions that are compiled beforehand if there is much to do."""


@function(inline=True)
def _head(data: Bytes, at: int, end: int, position: int, n: int, table: Ints) -> None:
    """Write the head of a batch into a column."""
    attributes = signed_16(data, at + 21)
    base, count = signed_64(data, at), signed_32(data, at + 57)
    table[POSITION, n] = position + at
    table[SIZE, n] = end - at
    table[BASE, n] = base
    table[LAST, n] = base + signed_32(data, at + 23)
    table[COUNT, n] = count
    table[LEADER_EPOCH, n] = signed_32(data, at + 12)
    table[ATTRIBUTES, n] = attributes
    table[BASE_TIME, n] = signed_64(data, at + 27)
    table[MAX_TIME, n] = signed_64(data, at + 35)
    table[PRODUCER, n] = signed_64(data, at + 43)
    table[PRODUCER_EPOCH, n] = signed_16(data, at + 51)
    table[SEQUENCE, n] = signed_32(data, at + 53)
    table[SOUND, n] = int(crc32c(data, at + COVERED, end) == (signed_32(data, at + 17) & 0xFFFF_FFFF))
    kind, coordinator = control_record(data, at + HEAD, end, count) if attributes & CONTROL else (DATA, -1)
    table[MARKER, n] = kind
    table[COORDINATOR, n] = coordinator


def chunks(path: Path, begin: int = 0, end: int | None = None, chunk: int = CHUNK) -> Iterator[Chunk]:
    """The batches that begin in this part of a segment, some at a time. Memory is flat. Raises OSError.

    There is at least one chunk. Its bytes are overwritten by the next one.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        until = size if end is None else min(end, size)
        room = np.empty(min(chunk, max(size - begin, 1)), np.uint8)
        position, have, stop = begin, 0, Stop.MORE
        while stop == Stop.MORE:
            file.seek(position + have)
            have += file.readinto(room[have:].data)
            table = np.empty((ROWS, min(have // HEAD + 1, WIDTH)), np.int64)
            why, at, count = _scan(room[:have], position, until, size, table)
            stop = Stop(why)
            if stop == Stop.MORE and have < len(room) and position + have < size:
                size = until = min(until, position + have)  # the file was cut meanwhile
            if stop not in {Stop.END, Stop.MORE}:
                stop = _reason(file, stop, position + at, size)
            yield Chunk(Batches(table[:, :count]), room[:have], position, position + at, size, stop)
            position, have = position + at, have - at
            room = _moved(room, at, have)


def _moved(room: Bytes, at: int, have: int) -> Bytes:
    """Move the last bytes to the front; where they fill all the room, or nearly, there is more of it."""
    if at == 0 and have == len(room):
        larger = np.empty(2 * len(room), np.uint8)
        larger[:have] = room
        return larger
    room[:have] = room[at : at + have].copy()
    return room


def _reason(file: BinaryIO, stop: Stop, at: int, size: int) -> Stop:
    """The reason more exactly: of another magic number, the message is read; of zeros, all that follows."""
    file.seek(at)
    head = file.read(HEAD)
    if stop == Stop.MAGIC:
        length = UNCOUNTED + int.from_bytes(head[8:UNCOUNTED], "big")
        if is_message_set(head + file.read(max(min(length, size - at, LARGEST) - HEAD, 0))):
            return Stop.OLD
    file.seek(at + HEAD)
    if head.endswith(b"\0") and _are_zeros(file):
        return Stop.SHORT if head.strip(b"\0") else Stop.ZEROS
    return Stop.LENGTH if stop == Stop.ZEROS else stop


def _are_zeros(file: BinaryIO) -> bool:
    """True if a file has nothing but zeros from here on."""
    while data := file.read(CHUNK):
        if data.count(0) != len(data):
            return False
    return True


def scan(path: Path, begin: int = 0, end: int | None = None) -> Scan:
    """The batches that begin in this part of a segment, in columns. Raises OSError."""
    tables: list[Ints] = []
    for last in chunks(path, begin, end):
        tables.append(last.batches.table)
    return Scan(Batches(np.concatenate(tables, axis=1)), begin, last.end, last.size, last.stop)
