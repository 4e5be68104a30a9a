"""The records of one partition at some offsets: their producers, and the markers that ended their transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.files.directory import SegmentFiles
from gapless.traces.sources.kafka.log.batches import Batches, chunks

NONE = -1
ABORT, COMMIT = 0, 1
"""The kinds of marker."""
SEGMENT, POSITION, PRODUCER, EPOCH, ROWS = range(5)


class RecordOutcomes(NamedTuple):
    """A row for each offset; -1 where the log has no record of a transaction there.

    `marker`: offset of the one that ends its transaction · `commit`: its kind · `segment`: number in `files`.
    """

    files: tuple[SegmentFiles, ...]
    segment: Ints
    position: Ints
    producer: Ints
    epoch: Ints
    marker: Ints
    commit: Ints
    end: int
    leader: int


def record_outcomes(files: Iterable[SegmentFiles], offsets: Ints) -> RecordOutcomes | None:
    """Look up offsets, which rise; None where offsets go back in the log. Raises OSError."""
    files = tuple(files)
    found = np.full((ROWS, len(offsets)), NONE)
    marks: list[Ints] = []
    end, leader = 0, NONE
    for number, segment in enumerate(files):
        for chunk in chunks(segment.log):
            heads = chunk.batches
            if not len(heads):
                continue
            if heads.base[0] < end or (heads.last < heads.base).any() or (heads.base[1:] <= heads.last[:-1]).any():
                return None
            end, leader = int(heads.last[-1]) + 1, max(leader, int(heads.leader_epoch[-1]))
            _take(found, number, heads, offsets)
            ends = (heads.marker == ABORT) | (heads.marker == COMMIT)
            marks.append(np.stack([heads.producer[ends], heads.base[ends], heads.marker[ends]]))
    every = np.concatenate(marks, axis=1) if marks else np.zeros((3, 0), np.int64)
    marker, commit = _ended(found[PRODUCER], offsets, every)
    return RecordOutcomes(
        files, found[SEGMENT], found[POSITION], found[PRODUCER], found[EPOCH], marker, commit, end, leader
    )


def _take(found: Ints, segment: int, heads: Batches, offsets: Ints) -> None:
    """Note the batches of a chunk that have some of the offsets."""
    low, high = offsets.searchsorted([heads.base[0], heads.last[-1] + 1])
    batch = heads.last.searchsorted(offsets[low:high])
    data = (heads.base[batch] <= offsets[low:high]) & heads.is_transactional[batch] & ~heads.is_control[batch]
    rows, batch = low + np.flatnonzero(data), batch[data]
    found[SEGMENT, rows], found[POSITION, rows] = segment, heads.position[batch]
    found[PRODUCER, rows], found[EPOCH, rows] = heads.producer[batch], heads.producer_epoch[batch]


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
