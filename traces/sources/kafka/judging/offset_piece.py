"""The offsets that groups committed in a part of a segment of `__consumer_offsets`, in columns.

Source: docs/kafka-transactions.md#groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.files.group_offsets import offset_records
from gapless.traces.sources.kafka.log.batches import Chunk
from gapless.traces.sources.kafka.log.records import RecordColumns, records
from gapless.traces.sources.kafka.log.tables import put_together

NONE = -1


class CommittedOffsets(NamedTuple):
    """Offsets of groups, a column each, in the order of their positions.

    `key`: the hash of the group and the partition · `at`: position of the record · `committed`: the offset, or -1 where
    it is deleted · `producer`: in whose transaction, or -1.
    """

    key: Ints
    at: Ints
    committed: Ints
    producer: Ints

    def of(self, rows: Ints) -> CommittedOffsets:
        """Some of them, in this order."""
        return CommittedOffsets(*(column[rows] for column in self))


class OffsetPiece(NamedTuple):
    """Offsets of groups, and the groups and partitions that hashes stand for."""

    offsets: CommittedOffsets
    names: dict[int, str]


def offset_piece(chunk: Chunk) -> OffsetPiece:
    """Read the offsets of a chunk."""
    piece = joined([_piece(chunk, columns) for columns in records(chunk)])
    return piece._replace(offsets=piece.offsets.of(np.argsort(piece.offsets.at, kind="stable")))


def joined(pieces: Sequence[OffsetPiece]) -> OffsetPiece:
    """Put pieces together, one behind the other."""
    names = {key: name for piece in pieces for key, name in piece.names.items()}
    return OffsetPiece(
        CommittedOffsets(*put_together(len(CommittedOffsets._fields), [piece.offsets for piece in pieces])), names
    )


def _piece(chunk: Chunk, found: RecordColumns) -> OffsetPiece:
    heads = chunk.batches
    data = ~heads.is_control[found.batch] & heads.is_sound[found.batch]
    found = RecordColumns(np.ascontiguousarray(found.table[:, data]), found.data)
    read = offset_records(found)
    batch, key = found.batch[read.row], found.key_hash[read.row]
    producer = np.where(heads.is_transactional[batch], heads.producer[batch], NONE)
    keys, first = np.unique(key, return_index=True)
    names = {int(of): read.name(int(number)) for of, number in zip(keys, first, strict=True)}
    return OffsetPiece(CommittedOffsets(key, found.offset[read.row], read.committed, producer), names)
