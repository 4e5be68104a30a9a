"""The table of transactions in `__transaction_state`, in columns: a row for each record.

Source: docs/kafka.md#coordinator.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gapless.native import BYTES, INTS, TABLE, function, handed, int64, native, uint64
from gapless.native.big_endian import signed_16, signed_32, signed_64
from gapless.traces.sources.kafka.files.fields import FieldReader, int32
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.log.batches import chunks
from gapless.traces.sources.kafka.log.records import KEY, KEY_END, VALUE, VALUE_END, RecordColumns, records, text_hash
from gapless.traces.sources.kafka.log.tables import Bytes, Ints, numbers
from gapless.traces.sources.kafka.log.varints import NONE, unsigned_varint

TOMBSTONE, UNKNOWN = -1, -2
"""Instead of a status: the id is forgotten; a key or a value that this reader does not know."""
HEAD = 17  # bytes of a value up to its partitions: version, producer, epoch, timeout, status
KEY_HEAD = 4  # bytes of a key up to the id: version, length
NOWHERE = -1  # of a value that is not there, and where there is no number
FLEXIBLE = 1  # the version from which on lengths are varints, and tags follow
CLIENT_PROTOCOL = 2  # the tag of the protocol that the client uses
OLDEST = 1  # the protocol of clients without that tag
SET, COUNT, UPDATED, STARTED, PROTOCOL, WHOLE, DETAIL_ROWS = range(7)
"""Rows of the table of details: a column for each row of the table of transactions."""


class TransactionRows(NamedTuple):
    """Rows of the table. `offset`: of the record · `status`: as on disk, TOMBSTONE or UNKNOWN · `timeout`: in ms.

    `producer`, `epoch`, `timeout`: -1 where there is no value.
    """

    offset: Ints
    version: Ints
    producer: Ints
    epoch: Ints
    timeout: Ints
    status: Ints
    records: RecordColumns

    def name(self, row: int) -> str:
        """The transactional id of a row."""
        return (self.records.key(row) or b"")[4:].decode(errors="replace")

    def detail(self, row: int) -> TransactionDetail:
        """The fields behind the head of a row that has a value. Raises OutOfBounds."""
        fields = FieldReader((self.records.value(row) or b"")[HEAD:])
        return _flexible(fields) if self.version[row] >= FLEXIBLE else _plain(fields)

    def details(self) -> Ints:
        """The fields behind the heads of all rows: int64 [DETAIL_ROWS, rows]. Partitions are known by their hash."""
        found, at = np.zeros((DETAIL_ROWS, len(self.offset)), np.int64), self.records.table
        _details(handed(self.records.data), handed(at[VALUE]), handed(at[VALUE_END]), handed(self.version), found)
        return found


class TransactionDetail(NamedTuple):
    """Partitions of a transaction, times of its last change and its begin, the protocol of its client."""

    partitions: frozenset[PartitionName]
    updated: int
    started: int
    protocol: int


def transaction_rows(log: Path) -> Iterator[TransactionRows]:
    """Read the rows of a segment, some at a time. Raises OSError.

    Keys and values of some rows are overwritten by the next ones.
    """
    for chunk in chunks(log):
        for columns in records(chunk):
            data = ~chunk.batches.is_control[columns.batch]
            yield rows_of(RecordColumns(np.ascontiguousarray(columns.table[:, data]), columns.data))


def rows_of(found: RecordColumns) -> TransactionRows:
    """Return the heads of records of the table, in columns."""
    value, end = found.table[VALUE], found.table[VALUE_END]
    key, key_end = found.table[KEY], found.table[KEY_END]
    known = numbers(found.data, np.where((key >= 0) & (key_end - key >= KEY_HEAD), key, NOWHERE), 2) == 0
    whole = known & (value >= 0) & (end - value >= HEAD)
    at = np.where(whole, value, NOWHERE)
    version = numbers(found.data, at, 2)
    status = np.where(whole & (version <= FLEXIBLE), numbers(found.data, at + 16 * whole, 1), UNKNOWN)
    return TransactionRows(
        found.offset, version, numbers(found.data, at + 2 * whole, 8), numbers(found.data, at + 10 * whole, 2),
        numbers(found.data, at + 12 * whole, 4), np.where(known & (value < 0), TOMBSTONE, status), found,
    )  # fmt: skip


@native(lambda _data, value, *_: len(value), kinds=(BYTES, INTS, INTS, INTS, TABLE))
def _details(data: Bytes, value: Ints, end: Ints, version: Ints, found: Ints) -> None:
    """Read the fields behind the heads; WHOLE is 1 where all are there."""
    for row in range(len(value)):
        if value[row] >= 0 and end[row] - value[row] >= HEAD and 0 <= version[row] <= FLEXIBLE:
            _detail(data, value[row] + HEAD, end[row], version[row], row, found)


@function
def _detail(data: Bytes, begin: int, end: int, version: int, row: int, found: Ints) -> None:
    topics, p = _size(data, begin, end, version, 4)
    every, count = uint64(0), 0
    while topics > 0 and p <= end:
        length, p = _size(data, p, end, version, 2)
        if p > end or length < 0 or length > end - p:
            return
        topic = uint64(text_hash(data, p, p + length))
        numbers, p = _size(data, p + length, end, version, 4)
        if p > end or numbers > (end - p) >> 2:
            return
        count += max(numbers, 0)
        while numbers > 0:
            every += _mixed(topic ^ (uint64(signed_32(data, p)) * _ODD))
            p += 4
            numbers -= 1
        p = _behind_tags(data, p, end) if version == FLEXIBLE else p
        topics -= 1
    if p > end or end - p < 16:
        return
    found[SET, row], found[COUNT, row] = int64(every), count
    found[UPDATED, row], found[STARTED, row] = signed_64(data, p), signed_64(data, p + 8)
    protocol, p = _protocol(data, p + 16, end) if version == FLEXIBLE else (OLDEST, p + 16)
    found[PROTOCOL, row], found[WHOLE, row] = protocol, int(p <= end)


@function
def _size(data: Bytes, p: int, end: int, version: int, width: int) -> tuple[int, int]:
    """The length of a text or an array, and the place behind it: behind every end if it is not there."""
    if version == FLEXIBLE:
        length, q = unsigned_varint(data, p, end)
        return length - 1, q
    if p > end - width:
        return 0, NONE
    return (signed_16(data, p) if width == 2 else signed_32(data, p)), p + width


@function
def _behind_tags(data: Bytes, p: int, end: int) -> int:
    """The place behind fields with numbers, of which none is read."""
    tags, p = unsigned_varint(data, p, end)
    while tags > 0 and p <= end:
        _tag, p = unsigned_varint(data, p, end)
        size, p = unsigned_varint(data, p, end)
        p = p + size if p <= end and size <= end - p else NONE
        tags -= 1
    return p


@function
def _protocol(data: Bytes, p: int, end: int) -> tuple[int, int]:
    """The protocol of the client in the fields with numbers, and the place behind them."""
    found = OLDEST
    tags, p = unsigned_varint(data, p, end)
    while tags > 0 and p <= end:
        tag, p = unsigned_varint(data, p, end)
        size, p = unsigned_varint(data, p, end)
        if p > end or size > end - p:
            return found, NONE
        if tag == CLIENT_PROTOCOL and size >= 2:
            found = max(signed_16(data, p), OLDEST)
        p += size
        tags -= 1
    return found, p


_ODD, _MIX, _31 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(31)


@function(inline=True)
def _mixed(h: Any) -> Any:
    """A number in which each bit depends on all: sums of such are hashes of sets."""
    h = (h ^ (h >> _31)) * _MIX
    return h ^ (h >> _31)


def _plain(fields: FieldReader) -> TransactionDetail:
    partitions = set()
    for _ in range(max(fields.number(4), 0)):
        topic = fields.taken(fields.number(2)).decode(errors="replace")
        partitions |= {PartitionName(topic, fields.number(4)) for _ in range(fields.number(4))}
    return TransactionDetail(frozenset(partitions), fields.number(8), fields.number(8), 1)


def _flexible(fields: FieldReader) -> TransactionDetail:
    partitions = frozenset(one for some in fields.several(_topic) for one in some)
    updated, started, protocol = fields.number(8), fields.number(8), 1
    for tag, inner in fields.tags():
        if tag == CLIENT_PROTOCOL:
            protocol = max(inner.number(2), 1)
    return TransactionDetail(partitions, updated, started, protocol)


def _topic(fields: FieldReader) -> list[PartitionName]:
    topic, numbers = fields.text() or "", fields.several(int32)
    for _ in fields.tags():
        pass
    return [PartitionName(topic, number) for number in numbers]
