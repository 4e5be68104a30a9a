"""The records of batches, read to the last byte: what deep reading adds to the heads.

Records of one chunk are unpacked some at a time, and one native pass walks over all that is unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from gapless.native import BYTES, TABLE, function, int64, native, uint64
from gapless.native.swar import word_of
from gapless.traces.sources.kafka.log.batches import (
    APPEND_TIME,
    ATTRIBUTES,
    BASE,
    BASE_TIME,
    COUNT,
    HEAD,
    MAX_TIME,
    PLAIN,
    Chunk,
    rows_of,
)
from gapless.traces.sources.kafka.log.codecs import CodecError, TooLarge, Unpacker
from gapless.traces.sources.kafka.log.control import MALFORMED
from gapless.traces.sources.kafka.log.keys import MOST, KeyCollector
from gapless.traces.sources.kafka.log.tables import Bytes, FlagRow, Flags, Ints, NumberTable, Row
from gapless.traces.sources.kafka.log.varints import NONE, signed_varint


class ContentFault(IntEnum):
    """The fault of a batch's records."""

    OK = 0
    CODEC = 1  # they cannot be unpacked
    LARGE = 2  # they unpack to more than is read
    RECORDS = 3  # they do not end with the batch
    COUNT = 4  # there are not as many as the head says
    CONTROL = 5  # a control record that cannot be read


_OK, _CODEC, _LARGE, _RECORDS, _COUNT, _CONTROL = map(int, ContentFault)

FAR = 1 << 40
"""More bytes than a batch has."""

# Rows of the table of contents: a column for each batch.
PARSED, FIRST, FINAL, DENSE, RISING, TIME, TIME_AT, KEYED, FAULT, CONTENT_ROWS = range(10)
# Rows of the table of records: a column for each record.
BATCH, OFFSET, RECORD_TIME, KEY, KEY_END, VALUE, VALUE_END, KEY_HASH, RECORD_ROWS = range(9)
# Rows of the table of what is walked over: the batch, and where its records begin and end.
OF, BEGIN, END, SPAN_ROWS = range(4)


class Contents(NumberTable):
    """The records of each batch, in short. Offsets are relative to the batch's base; -1: there is no record."""

    parsed = Row(PARSED)  # records
    first = Row(FIRST)  # offset of the first record
    last = Row(FINAL)  # offset of the last record
    dense = FlagRow(DENSE)  # offsets are 0, 1, 2, …
    rising = FlagRow(RISING)  # each offset is larger than the one before
    max_time = Row(TIME)  # of all records; as the head has it where brokers stamp them
    max_at = Row(TIME_AT)  # offset of the first record with that time; of the last one where brokers stamp them
    keyed = Row(KEYED)  # records with a key
    fault = Row(FAULT)  # see ContentFault


@dataclass(frozen=True, eq=False)
class RecordColumns(NumberTable):
    """Records in columns. `data`: the bytes in which their keys and values lie."""

    data: Bytes

    batch = Row(BATCH)  # column of its batch
    offset = Row(OFFSET)
    time = Row(RECORD_TIME)
    key_hash = Row(KEY_HASH)  # 0 for none

    @property
    def has_key(self) -> Flags:
        """True where the key is not null."""
        found: Flags = self.table[KEY] >= 0
        return found

    @property
    def has_value(self) -> Flags:
        """True where the value is not null: a null value is a tombstone."""
        found: Flags = self.table[VALUE] >= 0
        return found

    def key(self, number: int) -> bytes | None:
        """The key of a record; None for null."""
        return self._text(number, KEY, KEY_END)

    def value(self, number: int) -> bytes | None:
        """The value of a record; None for null."""
        return self._text(number, VALUE, VALUE_END)

    def _text(self, number: int, begin: int, end: int) -> bytes | None:
        at = int(self.table[begin, number])
        return None if at < 0 else self.data[at : int(self.table[end, number])].tobytes()


@native(lambda data, *_: rows_of(len(data)), kinds=(BYTES, TABLE, TABLE.strided, TABLE, TABLE))
def _walk(data: Bytes, spans: Ints, heads: Ints, found: Ints, records: Ints) -> int:
    """Read the records of each span; those that fit into `records` are written there. Returns their number."""
    written = 0
    for i in range(spans.shape[1]):
        written = _walk_batch(data, spans[OF, i], spans[BEGIN, i], spans[END, i], heads, found, records, written)
    return written


ENTRIES = (_walk,)
"""The functions that are compiled beforehand if there is much to do."""


@function
def _walk_batch(
    data: Bytes, batch: int, begin: int, end: int, heads: Ints, found: Ints, records: Ints, written: int
) -> int:
    """The same of one batch. Of one with a fault, no record counts as written."""
    p, n, keyed, fault, room = begin, 0, 0, _OK, records.shape[1]
    first, last, latest, latest_at, dense, rising = -1, -1, -1, -1, True, True
    base, base_time, count = int64(heads[BASE, batch]), int64(heads[BASE_TIME, batch]), int64(heads[COUNT, batch])
    is_stamped, stamp = heads[ATTRIBUTES, batch] & APPEND_TIME != 0, int64(heads[MAX_TIME, batch])
    while p < end and n <= count:
        size, q = signed_varint(data, p, end)
        stop = q + size
        if q == NONE or size < 1 or stop > end:
            fault = _RECORDS
            break
        delay, q = signed_varint(data, q + 1, stop)  # behind the attributes
        delta, q = signed_varint(data, q, stop)
        key_size, key = signed_varint(data, q, stop)
        value_size, value = signed_varint(data, _behind(key, key_size), stop)
        headers, q = signed_varint(data, _behind(value, value_size), stop)
        if headers > 0:
            q = _behind_headers(data, q, headers, stop)
        if q != stop or headers < 0 or key_size < -1 or value_size < -1:
            fault = _RECORDS
            break
        time = stamp if is_stamped else int64(base_time + delay)
        dense, rising = dense and delta == n, rising and delta > last
        if n == 0:
            first, rising = delta, delta >= 0
        if n == 0 or time > latest or is_stamped:
            latest, latest_at = time, delta
        keyed += int(key_size >= 0)
        if written + n < room:
            column = written + n
            records[BATCH, column], records[OFFSET, column] = batch, int64(base + delta)
            records[RECORD_TIME, column] = time
            records[KEY, column] = key if key_size >= 0 else -1
            records[KEY_END, column] = key + key_size
            records[VALUE, column] = value if value_size >= 0 else -1
            records[VALUE_END, column] = value + value_size
            records[KEY_HASH, column] = text_hash(data, key, key + key_size) if key_size >= 0 else 0
        last = delta
        n += 1
        p = stop
    if fault == _OK and n != count:
        fault = _COUNT
    found[PARSED, batch], found[FIRST, batch], found[FINAL, batch] = n, first, last
    found[DENSE, batch], found[RISING, batch] = int(dense), int(rising)
    found[TIME, batch], found[TIME_AT, batch] = latest, latest_at
    found[KEYED, batch], found[FAULT, batch] = keyed, fault
    return min(written + n, room) if fault == _OK else written


@function(inline=True)
def _behind(at: int, size: int) -> int:
    """The place behind a text of so many bytes, of which -1 is null. One that is too long ends behind every end."""
    return at + min(max(size, 0), FAR)


@function
def _behind_headers(data: Bytes, p: int, count: int, stop: int) -> int:
    """The place behind so many headers, each a key and a value; `NONE` if they reach beyond the record."""
    while count > 0 and p < stop:
        key_size, p = signed_varint(data, p, stop)
        value_size, p = signed_varint(data, _behind(p, key_size), stop)
        p = _behind(p, value_size)
        if key_size < 0 or value_size < -1:
            return NONE
        count -= 1
    return p if count == 0 else NONE


_BASIS, _PRIME, _29 = np.uint64(14695981039346656037), np.uint64(1099511628211), np.uint64(29)


@function
def text_hash(data: Bytes, p: int, end: int) -> int:
    """64 bits by which keys are sorted: those with the same are compared."""
    h: Any = _BASIS ^ uint64(end - p)
    while p < end:
        h = (h ^ word_of(data, p, min(end - p, 8))) * _PRIME
        h ^= h >> _29
        p += 8
    return int64(h)


NO_RECORDS = np.empty((RECORD_ROWS, 0), np.int64)


def contents(chunk: Chunk, unpacker: Unpacker | None = None, keys: KeyCollector | None = None) -> Contents:
    """The records of each batch of a chunk, in short. Of many chunks, one `unpacker` takes memory once.

    `keys`: those of clients' records are added to it.
    """
    heads, found = chunk.batches, _nothing(len(chunk.batches))
    for data, spans in _unpacked(chunk, found, unpacker):
        _walk(data, spans, heads.table, found, NO_RECORDS)
        if keys is None or not keys.wants(heads.base[spans[OF]]):
            continue
        if int(found[PARSED, spans[OF]].sum()) > MOST:
            keys.is_whole = False
            continue
        columns = _columns(data, spans, heads.table, found)
        keys.add(columns.key_hash, columns.offset, columns.has_key & ~heads.is_control[columns.batch])
    found[FAULT, chunk.batches.marker == MALFORMED] = _CONTROL
    return Contents(found)


def records(chunk: Chunk) -> Iterator[RecordColumns]:
    """The records of a chunk, some batches at a time; those of a batch with a fault are left out.

    The bytes of one part are overwritten by the next.
    """
    heads, found = chunk.batches.table, _nothing(len(chunk.batches))
    for data, spans in _unpacked(chunk, found):
        _walk(data, spans, heads, found, NO_RECORDS)
        yield _columns(data, spans, heads, found)


def _columns(data: Bytes, spans: Ints, heads: Ints, found: Ints) -> RecordColumns:
    """The records of batches that were walked over once, so that their number is known."""
    room = np.empty((RECORD_ROWS, int(found[PARSED, spans[OF]].sum())), np.int64)
    count = _walk(data, spans, heads, found, room)
    return RecordColumns(room[:, :count], data)


def _nothing(count: int) -> Ints:
    found = np.zeros((CONTENT_ROWS, count), np.int64)
    found[[FIRST, FINAL, TIME, TIME_AT]] = -1
    return found


def _unpacked(chunk: Chunk, found: Ints, unpacker: Unpacker | None = None) -> Iterator[tuple[Bytes, Ints]]:
    """Bytes with records, and where those of each batch lie in them; faults of codecs are written into `found`."""
    batches, bytes_of = chunk.batches, chunk.data.data
    codec, begin = batches.codec, batches.position - chunk.position
    end = begin + batches.size
    (plain,) = np.nonzero(codec == PLAIN)
    yield chunk.data, np.stack([plain, (begin + HEAD)[plain], end[plain]])
    (packed,) = np.nonzero(codec != PLAIN)
    if not len(packed):
        return
    unpacker, spans = unpacker or Unpacker(), list[tuple[int, int, int]]()
    unpacker.clear()
    rows = (column[packed].tolist() for column in (codec, begin + HEAD, end))
    for batch, kind, low, high in zip(packed.tolist(), *rows, strict=True):
        try:
            spans.append((batch, *unpacker.add(kind, bytes_of[low:high])))
        except CodecError:
            found[FAULT, batch] = _CODEC
        except TooLarge:
            found[FAULT, batch] = _LARGE
        if unpacker.is_full:
            yield unpacker.room, np.array(spans, np.int64).T.copy()
            spans.clear()
            unpacker.clear()
    if spans:
        yield unpacker.room, np.array(spans, np.int64).T.copy()
