"""The batches of one partition that answers are about: their producers, and the markers of their transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.files.directory import SegmentFiles
from gapless.traces.sources.kafka.log.batches import Batches, Stop, chunks
from gapless.traces.sources.kafka.log.tables import Flags

NONE = -1
ABORT, COMMIT = 0, 1
"""The kinds of marker."""
WHOLE = (Stop.END, Stop.ZEROS, Stop.MORE)
"""The reasons for which batches end where nothing is left that could be one."""
SEGMENT, POSITION, BASE, LAST, COUNT, LEADER, CONTROL, PRODUCER, EPOCH, ROWS = range(10)


class Reach(NamedTuple):
    """The offsets that answers name, which rise, and the range of offsets that is read as a whole."""

    offsets: Ints
    low: int
    high: int


class AnsweredBatches(NamedTuple):
    """Batches in the order of their offsets, a column each.

    `producer`, `epoch`: of a transaction, -1 else · `marker`: offset of the one that ends it, -1 if none does ·
    `commit`: its kind · `end`: behind the last batch of the log · `leader`: the last one · `is_whole`: read to its end.
    """

    files: Sequence[SegmentFiles]
    table: Ints
    marker: Ints
    commit: Ints
    end: int
    last_leader: int
    is_whole: bool

    def column(self, row: int) -> Ints:
        """Return a column."""
        found: Ints = self.table[row]
        return found

    def at(self, offsets: Ints) -> Ints:
        """Return the number of the batch that has each offset; -1 if none has."""
        if not self.table.shape[1]:
            return np.full(len(offsets), NONE)
        batch = np.minimum(self.table[LAST].searchsorted(offsets), self.table.shape[1] - 1)
        there = (self.table[BASE, batch] <= offsets) & (offsets <= self.table[LAST, batch])
        return np.where(there, batch, NONE)

    def is_record(self, batch: Ints) -> Flags:
        """True where a batch has records of clients at each of its offsets."""
        found: Flags = np.append(self.is_full & (self.table[CONTROL] == 0), False)[batch]
        return found

    @property
    def is_full(self) -> Flags:
        """True for batches that have a record at each of their offsets."""
        found: Flags = self.table[COUNT] == self.table[LAST] - self.table[BASE] + 1
        return found


def answered_batches(files: Sequence[SegmentFiles], reach: Reach) -> AnsweredBatches | None:
    """Read the batches with some offsets; None where offsets go back in the log. Raises OSError."""
    tables, marks = [np.zeros((ROWS, 0), np.int64)], [np.zeros((3, 0), np.int64)]
    end, leader, is_whole = 0, NONE, True
    for number, segment in enumerate(files):
        for chunk in chunks(segment.log):
            heads = chunk.batches
            is_whole &= chunk.stop in WHOLE
            if not len(heads):
                continue
            if heads.base[0] < end or (heads.last < heads.base).any() or (heads.base[1:] <= heads.last[:-1]).any():
                return None
            end, leader = int(heads.last[-1]) + 1, max(leader, int(heads.leader_epoch[-1]))
            tables.append(_taken(number, heads, reach))
            ends = (heads.marker == ABORT) | (heads.marker == COMMIT)
            marks.append(np.stack([heads.producer[ends], heads.base[ends], heads.marker[ends]]))
    table = np.concatenate(tables, axis=1)
    marker, commit = _ended(table[PRODUCER], table[LAST], np.concatenate(marks, axis=1))
    return AnsweredBatches(files, table, marker, commit, end, leader, is_whole)


def _taken(segment: int, heads: Batches, reach: Reach) -> Ints:
    """The batches of a chunk that have some of the offsets, or lie in the range."""
    named = reach.offsets.searchsorted(heads.last, side="right") > reach.offsets.searchsorted(heads.base)
    (rows,) = np.nonzero(named | ((heads.last >= reach.low) & (heads.base < reach.high)))
    writes = heads.is_transactional & ~heads.is_control
    columns = (
        np.full(len(heads), segment), heads.position, heads.base, heads.last, heads.count, heads.leader_epoch,
        heads.is_control, np.where(writes, heads.producer, NONE), np.where(writes, heads.producer_epoch, NONE),
    )  # fmt: skip
    return np.stack([column[rows] for column in columns]).astype(np.int64)


def _ended(producer: Ints, offsets: Ints, marks: Ints) -> tuple[Ints, Ints]:
    """The next marker of the same producer behind each offset, and its kind."""
    if not marks.size:
        return np.full(len(offsets), NONE), np.full(len(offsets), NONE)
    places, ranks = np.unique(np.concatenate([marks[1], offsets]), return_inverse=True)
    _, of = np.unique(np.concatenate([marks[0], producer]), return_inverse=True)
    key = of.reshape(-1) * len(places) + ranks.reshape(-1)
    mine, count = key[len(marks[0]) :], len(marks[0])
    order = np.argsort(key[:count], kind="stable")
    at = key[:count][order].searchsorted(mine, side="right")
    chosen = order[np.minimum(at, count - 1)]
    there = (at < count) & (producer >= 0) & (marks[0][chosen] == producer)
    return np.where(there, marks[1][chosen], NONE), np.where(there, marks[2][chosen], NONE)
