"""Finds the records that are the input of a table of halves, in one pass: halves, ops, and finals.

Source: docs/rocketmq-transactions.md#half-table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.native import BYTES, I64, INTS, TABLE, native
from gapless.traces.sources.rocketmq.columns.bytes import (
    Bytes,
    Ints,
    copied,
    digest,
    i64,
    is_name,
    number_in,
    u32,
)
from gapless.traces.sources.rocketmq.columns.disk_blocks import Blocks
from gapless.traces.sources.rocketmq.columns.property_spans import names_of
from gapless.traces.sources.rocketmq.layouts.message_database import HEAD, Pairs, TableCodec
from gapless.traces.sources.rocketmq.log.record_pass import LONGEST, each_among
from gapless.traces.sources.rocketmq.log.records import MAGIC_V2, SYS_COMMITTED, SYS_TRANSACTION, parts
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import REAL_TOPIC, TABLE_HALF_TOPIC, TABLE_OP_TOPIC, as_bytes

IS_HALF, IS_OP, IS_FINAL = range(3)
_HALF, _OP, _AT = as_bytes(TABLE_HALF_TOPIC), as_bytes(TABLE_OP_TOPIC), 64
_NAMES = names_of(REAL_TOPIC, "__transactionId__", "TRANS_OFFSET", "CHECK_IMMUNITY_TIME_IN_SECONDS")
_S_REAL, _S_ID, _S_NAMED, _S_IMMUNITY = range(0, 8, 2)


class HalfRecords(NamedTuple):
    """Halves, and what decides them, a column for each field.

    `kind`: IS_HALF, IS_OP or IS_FINAL · `position`, `size`: of a half itself; of others, of the half that they name, or
    -1, and 0 · `at`: where the record lies · `owner`: digest of what a row's key has behind the position, or 0 · `due`:
    from when on producers are asked about a half that gives an immunity of its own, in ms, or -1; `born`, in ms
    """

    kind: Ints
    position: Ints
    size: Ints
    at: Ints
    owner: Ints
    due: Ints
    born: Ints


COLUMNS = len(HalfRecords._fields)


class TableHalves(Blocks):
    """The input of a table of halves: columns of `HalfRecords`."""

    ROWS = COLUMNS

    def all_of_them(self, start: int) -> HalfRecords:
        """Returns the records from a log position on."""
        found = np.concatenate([np.zeros((COLUMNS, 0), np.int64), *self.blocks()], axis=1)
        records = HalfRecords(*found)
        return HalfRecords(*found[:, records.at >= start])


@native(lambda b, base, places, *_: len(places), kinds=(BYTES, I64, INTS, INTS, TABLE, TABLE, I64, BYTES))  # noqa: ARG005 - as it is called
def find_halves(
    b: Bytes, base: int, places: Ints, sizes: Ints, spans: Ints, room: Ints, filled: int, scratch: Bytes
) -> int:  # fmt: skip
    """Appends the halves, ops and finals among the records at `places` of `b`; returns their number.

    `base`: the log position of `b` · `spans`: of the records' properties. There is room for each record.
    """
    count = filled
    for i in range(len(places)):
        p = places[i]
        r = parts(b, p, u32(b, p + 4) == MAGIC_V2)
        kind = -1
        if is_name(b, r.topic, r.topic_end, _HALF):
            kind = IS_HALF
        elif is_name(b, r.topic, r.topic_end, _OP):
            kind = IS_OP
        elif (r.flags & SYS_TRANSACTION) == SYS_COMMITTED:
            kind = IS_FINAL
        if kind < 0:
            continue
        real, real_end, key, key_end = spans[i, _S_REAL], spans[i, _S_REAL + 1], spans[i, _S_ID], spans[i, _S_ID + 1]
        length = 0
        if real > 0 and key > 0 and real_end - real + key_end - key < LONGEST - 2:
            scratch[0] = _AT
            length = copied(b, real, real_end, scratch, 1)
            scratch[length] = _AT
            length = copied(b, key, key_end, scratch, length + 1)
        immune = number_in(b, spans[i, _S_IMMUNITY], spans[i, _S_IMMUNITY + 1])
        born = i64(b, p + 40)
        room[0, count], room[1, count], room[2, count] = kind, base + p, sizes[i]
        if kind != IS_HALF:
            named = number_in(b, spans[i, _S_NAMED], spans[i, _S_NAMED + 1])
            room[1, count], room[2, count] = named if kind == IS_OP else i64(b, r.body - 12), 0
        room[3, count], room[4, count] = base + p, digest(scratch, 0, length)
        room[5, count] = born + immune * 1000 if 0 <= immune < 1 << 31 else -1
        room[6, count] = born
        count += 1
    return int(count)


def half_records(store: StoreDirectory, end: int, begin: int | None = None) -> tuple[HalfRecords, int]:
    """Returns halves and their decisions up to log position `end`, and the end of the readable records.

    `begin`: the position of a record from which on they count; by default all do.
    """
    found = [np.zeros((COLUMNS, 0), np.int64)]
    reached = each_among(store, end, find_halves, COLUMNS, lambda some: found.append(some.copy()), begin, _NAMES)
    return HalfRecords(*np.concatenate(found, axis=1)), reached


class TableOfHalves(NamedTuple):
    """The table of halves, a column for each field; `owner` as in `HalfRecords`. `last`: position of its end, or 0."""

    position: Ints
    owner: Ints
    checks: Ints
    size: Ints
    last: int


KEY_OF_END = b"lastOffsetPy"
_ROWS = TableCodec(shortest=9, fields=">i4,>i4,", marks=(KEY_OF_END,))


def rows_of(pairs: Pairs) -> TableOfHalves | None:
    """Returns the rows in a table of keys and values, by position; None for wrong ones."""
    columns, marks, odd = _ROWS.read([pairs])
    position, owner, _tail, checks, size = columns[:, np.argsort(columns[HEAD], kind="stable")]
    last = marks.get(KEY_OF_END, 0)
    return None if odd or last < 0 or (position < 0).any() else TableOfHalves(position, owner, checks, size, last)
