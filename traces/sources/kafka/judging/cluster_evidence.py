"""The evidence of one cluster's transactions, laid down as parts of logs give it: memory does not grow with it.

Rows of the coordinator's table lie by transactional id, runs and markers by producer, offsets of groups by partition.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.judging.offset_piece import CommittedOffsets, OffsetPiece
from gapless.traces.sources.kafka.judging.table_piece import CoordinatorRows, TablePiece
from gapless.traces.sources.kafka.judging.transaction_items import TransactionItems
from gapless.traces.sources.kafka.log.column_store import BUCKETS, ColumnStore

ROW_BYTES = {
    "id": 8, "offset": 8, "producer": 8, "epoch": 2, "status": 1, "set": 8, "protocol": 2, "time": 8, "leader": 4,
    "timeout": 4,
}  # fmt: skip
ITEM_BYTES = {"producer": 8, "first": 8, "last": 8, "epoch": 2, "kind": 1, "time": 8, "leader": 4}
OFFSET_BYTES = {"key": 8, "at": 8, "committed": 8, "producer": 8}
COPY = {"copy": 4}
NARROW = 1 << 55
"""Producers below this fit into a number with their bucket."""
MIX, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(56)


class ClusterEvidence:
    """Evidence by copies of partitions, which have numbers. `names`, `sets`: see `TablePiece`."""

    def __init__(self) -> None:
        self.rows = ColumnStore(ROW_BYTES | COPY, "the table of transactions")
        self.items = ColumnStore(ITEM_BYTES | COPY, "batches of transactions")
        self.group_items = ColumnStore(ITEM_BYTES | COPY, "batches of groups")
        self.offsets = ColumnStore(OFFSET_BYTES | COPY, "offsets of groups")
        self.names: dict[int, str] = {}
        self.sets: dict[int, tuple[PartitionName, ...]] = {}
        self.offset_names: dict[int, str] = {}
        self._owners: list[Ints] = []

    def add_rows(self, copy: int, piece: TablePiece) -> None:
        """Add rows of the table. Raises OSError."""
        bucket = _bucket(piece.rows.id)
        self.rows.add(bucket, [*piece.rows, copy])
        self.names.update(piece.names)
        self.sets.update(piece.sets)
        (known,) = np.nonzero(piece.rows.producer >= 0)
        owners = np.stack([piece.rows.producer[known], bucket[known]])
        self._owners.append(_distinct(owners))

    def add_items(self, copy: int, items: TransactionItems, *, of_groups: bool) -> None:
        """Add runs and markers. Raises OSError."""
        self.items.add(_bucket(items.producer), [*items, copy])
        if of_groups:
            self.group_items.add(np.full(len(items.first), copy % BUCKETS), [*items, copy])

    def add_offsets(self, copy: int, piece: OffsetPiece) -> None:
        """Add offsets of groups. Raises OSError."""
        self.offsets.add(np.full(len(piece.offsets.at), copy % BUCKETS), [*piece.offsets, copy])
        self.offset_names.update(piece.names)

    def owners(self) -> Ints:
        """Return the producers, in order, each with the bucket of its rows: int64 [2, producers]."""
        every = np.concatenate(self._owners, axis=1) if self._owners else np.zeros((2, 0), np.int64)
        return _distinct(every)

    def rows_of(self, low: int, high: int) -> tuple[CoordinatorRows, Ints]:
        """Return the rows of the table in some buckets, and of each the copy that it is in. Raises OSError."""
        *columns, copy = self.rows.of(low, high)
        return CoordinatorRows(*columns), copy

    def item_blocks(self, most: int) -> Iterator[tuple[TransactionItems, Ints]]:
        """Yield all runs and markers, about so many at a time and all of a producer at once. Raises OSError."""
        for low, high in self.items.ranges(most):
            *columns, copy = self.items.of(low, high)
            yield TransactionItems(*columns), copy

    def groups_of(self, copy: int) -> tuple[TransactionItems, OffsetPiece]:
        """Return the evidence about the groups in one copy. Raises OSError."""
        bucket = copy % BUCKETS
        items, offsets = (store.of(bucket, bucket + 1) for store in (self.group_items, self.offsets))
        found = CommittedOffsets(*(column[offsets[-1] == copy] for column in offsets[:-1]))
        mine = [column[items[-1] == copy] for column in items[:-1]]
        return TransactionItems(*mine), OffsetPiece(found, self.offset_names)


def _bucket(keys: Ints) -> Ints:
    """The buckets of keys, of which only some bits may differ."""
    return (keys.view(np.uint64) * MIX >> SHIFT).astype(np.int64)


def _distinct(owners: Ints) -> Ints:
    """The same pairs once, in order."""
    if owners.size and 0 <= owners[0].min() <= owners[0].max() < NARROW:
        keys = np.unique(owners[0] * BUCKETS + owners[1])
        return np.stack([keys // BUCKETS, keys % BUCKETS])
    return np.unique(owners, axis=1)
