"""The offsets that groups committed, in the records of `__consumer_offsets`, in columns.

Source: docs/kafka-transactions.md#groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.traces.sources.kafka.files.fields import FieldReader, OutOfBounds
from gapless.traces.sources.kafka.log.records import KEY, KEY_END, VALUE, VALUE_END, RecordColumns
from gapless.traces.sources.kafka.log.tables import Flags, Ints, numbers

DELETED = -1
"""Instead of an offset: it is deleted."""
KEYS = 1  # the last version of a key that is an offset
SHORTEST = 10  # bytes of such a key with two empty names, and of a value up to its offset


class OffsetRecords(NamedTuple):
    """Records whose key is a group and a partition. `committed`: the offset, or DELETED · `row`: of the record."""

    row: Ints
    committed: Ints
    records: RecordColumns

    def name(self, number: int) -> str:
        """The group and the partition of a record: GROUP/TOPIC-N."""
        fields = FieldReader((self.records.key(int(self.row[number])) or b"")[2:])
        group, topic = (fields.taken(fields.number(2)).decode(errors="replace") for _ in range(2))
        return f"{group}/{topic}-{fields.number(4)}"


def offset_records(found: RecordColumns) -> OffsetRecords:
    """Return the records of offsets; others, and those that cannot be read, are passed over."""
    key, key_end, value, value_end = (found.table[row] for row in (KEY, KEY_END, VALUE, VALUE_END))
    version = numbers(found.data, np.where(key_end - key >= SHORTEST, key, -1), 2)
    is_deleted = value < 0
    (rows,) = np.nonzero((version >= 0) & (version <= KEYS) & (is_deleted | (value_end - value >= SHORTEST)))
    at = np.where(is_deleted[rows], -1, value[rows] + 2)
    committed = np.where(is_deleted[rows], DELETED, numbers(found.data, at, 8))
    made = OffsetRecords(rows, committed, found)
    return OffsetRecords(rows[whole], committed[whole], found) if not (whole := _whole(made)).all() else made


def _whole(found: OffsetRecords) -> Flags:
    """True for records whose key can be read; each key is read once."""
    _, first, of = np.unique(found.records.key_hash[found.row], return_index=True, return_inverse=True)
    return np.array([_has_name(found, int(number)) for number in first], np.bool_)[of]


def _has_name(found: OffsetRecords, number: int) -> bool:
    try:
        found.name(number)
    except OutOfBounds:
        return False
    return True
