"""The table of transactions in `__transaction_state`, in columns: a row for each record.

Source: docs/kafka.md#coordinator.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gapless.traces.sources.kafka.files.fields import FieldReader, int32
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.log.batches import chunks
from gapless.traces.sources.kafka.log.records import KEY, KEY_END, VALUE, VALUE_END, RecordColumns, records
from gapless.traces.sources.kafka.log.tables import Bytes, Ints

TOMBSTONE, UNKNOWN = -1, -2
"""Instead of a status: the id is forgotten; a key or a value that this reader does not know."""
HEAD = 17  # bytes of a value up to its partitions: version, producer, epoch, timeout, status
KEY_HEAD = 4  # bytes of a key up to the id: version, length
NOWHERE = -1  # of a value that is not there, and where there is no number
FLEXIBLE = 1  # the version from which on lengths are varints, and tags follow
CLIENT_PROTOCOL = 2  # the tag of the protocol that the client uses


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
    known = _number(found.data, np.where((key >= 0) & (key_end - key >= KEY_HEAD), key, NOWHERE), 2) == 0
    whole = known & (value >= 0) & (end - value >= HEAD)
    at = np.where(whole, value, NOWHERE)
    version = _number(found.data, at, 2)
    status = np.where(whole & (version <= FLEXIBLE), _number(found.data, at + 16 * whole, 1), UNKNOWN)
    return TransactionRows(
        found.offset, version, _number(found.data, at + 2 * whole, 8), _number(found.data, at + 10 * whole, 2),
        _number(found.data, at + 12 * whole, 4), np.where(known & (value < 0), TOMBSTONE, status), found,
    )  # fmt: skip


def _number(data: Bytes, at: Ints, width: int) -> Ints:
    """Return the signed numbers of so many bytes at these places; -1 where there is none."""
    there = at >= 0
    places = at[there][:, None] + np.arange(width)
    numbers: Ints = np.full(len(at), NOWHERE, np.int64)
    big = np.ascontiguousarray(data[places]).view(f">i{width}").reshape(-1)
    numbers[there] = big
    return numbers


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
