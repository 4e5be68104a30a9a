"""The rows of the coordinator's table in a part of a segment of `__transaction_state`, in columns.

Source: docs/kafka-transactions.md#table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.files.transaction_table import PROTOCOL, SET, UNKNOWN, WHOLE, rows_of
from gapless.traces.sources.kafka.log.batches import Chunk
from gapless.traces.sources.kafka.log.records import RecordColumns, records
from gapless.traces.sources.kafka.log.tables import put_together


class CoordinatorRows(NamedTuple):
    """Rows of the table, a column each, in the order of their offsets.

    `id`: the hash of the transactional id · `set`: that of the partitions · `time`: of the record · `leader`: the epoch
    of the coordinator · `timeout`: ms for which a transaction may be open, or -1.
    """

    id: Ints
    offset: Ints
    producer: Ints
    epoch: Ints
    status: Ints
    set: Ints
    protocol: Ints
    time: Ints
    leader: Ints
    timeout: Ints

    def of(self, rows: Ints) -> CoordinatorRows:
        """Some of them, in this order."""
        return CoordinatorRows(*(column[rows] for column in self))


class TablePiece(NamedTuple):
    """Rows of the table, and what hashes in them stand for."""

    rows: CoordinatorRows
    names: dict[int, str]
    sets: dict[int, tuple[PartitionName, ...]]


def table_piece(chunk: Chunk) -> TablePiece:
    """Read the rows of a chunk."""
    piece = joined([_piece(chunk, columns) for columns in records(chunk)])
    offset = piece.rows.offset
    if (offset[1:] >= offset[:-1]).all():
        return piece
    return piece._replace(rows=piece.rows.of(np.argsort(offset, kind="stable")))


def joined(pieces: Sequence[TablePiece]) -> TablePiece:
    """Put pieces together, one behind the other."""
    rows = CoordinatorRows(*put_together(len(CoordinatorRows._fields), [piece.rows for piece in pieces]))
    names = {key: name for piece in pieces for key, name in piece.names.items()}
    return TablePiece(rows, names, {key: some for piece in pieces for key, some in piece.sets.items()})


def _piece(chunk: Chunk, found: RecordColumns) -> TablePiece:
    heads = chunk.batches
    data = ~heads.is_control[found.batch] & heads.is_sound[found.batch]
    found = RecordColumns(np.ascontiguousarray(found.table[:, data]), found.data)
    rows, of = rows_of(found), found.key_hash
    details = rows.details()
    has_value = rows.status >= 0
    status = np.where(has_value & (details[WHOLE] == 0), UNKNOWN, rows.status)
    sets, first = np.unique(np.where(status >= 0, details[SET], 0), return_index=True)
    partitions = {int(key): rows.detail(int(row)).partitions for key, row in zip(sets, first, strict=True) if key}
    ids, named = np.unique(of, return_index=True)
    made = CoordinatorRows(
        of, rows.offset, rows.producer, rows.epoch, status, details[SET], details[PROTOCOL], found.time,
        heads.leader_epoch[found.batch], rows.timeout,
    )  # fmt: skip
    return TablePiece(
        made,
        {int(key): rows.name(int(row)) for key, row in zip(ids, named, strict=True)},
        {key: tuple(sorted(some)) for key, some in partitions.items()},
    )
