"""The splits of a check: parts of segments, some together where they are small.

A part is a segment, or some MiB of one. It begins where a batch begins; what holds there is claimed by files that lie
next to the log, and compared with the end of the part before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gapless.traces.sources.kafka.files.checkpoints import EpochCheckpoint
from gapless.traces.sources.kafka.files.directory import PartitionFiles, SegmentFiles
from gapless.traces.sources.kafka.files.indexes import offset_index, time_index
from gapless.traces.sources.kafka.log import batches

TASK = 64 << 20
"""Bytes that one task reads, if nothing else is asked for."""
PART = 16 << 20
"""Bytes of a segment that are judged together, if nothing else is asked for: their columns fit into a cache."""
TOGETHER = 256
"""Parts that one task reads at most, however small they are."""
LOOK = 64 << 10
"""Bytes that are read at once to find the end of a batch."""
NONE = -1


class Role(IntEnum):
    """The part of a partition in the check of transactions."""

    NONE = 0
    PARTITION = 1
    TABLE = 2
    GROUPS = 3


class PartitionTerms(NamedTuple):
    """The terms by which one partition is judged.

    `name`: of its trace · `folder`: as a report names it · `start`: the first offset of its first segment ·
    `log_start`: of the log, which may begin within that segment · `compacted`: the topic was ever compacted, or it is
    not known that it never was · `checked`: clients write it, so that sequences are judged · `is_whole`: its broker
    stopped in order · `recovered`: the recovery point, 0 if it is not known · `epochs`: its checkpoint of leader epochs
    · `leaders`: what is in that · `judged_from`: the offset from which on no cleaner took anything away · `cleaned`:
    the cleaner's point, 0 if it is not known · `is_cleaned`: that is the point of this very log, and the topic is
    compacted still · `deep`: records are read, not heads of batches alone · `producer`: the only one that is judged,
    or -1 for all · `transactions`: its part in the check of transactions.
    """

    name: str
    folder: str
    start: int
    log_start: int
    compacted: bool
    checked: bool
    is_whole: bool
    recovered: int
    epochs: Path | None
    leaders: EpochCheckpoint | None
    judged_from: int
    cleaned: int
    is_cleaned: bool
    deep: bool
    producer: int = NONE
    transactions: Role = Role.NONE


class SegmentPart(NamedTuple):
    """A part of a segment: the batches that begin at bytes `begin:end`, the first of which has `offset`.

    `opens`, `closes`: it is the first, the last of its segment · `rolled_to`: the name of the segment behind it, or -1
    · `timed`: the last time in the time index before it, or -1 · `snapshots`: of producers, from `offset` on.
    """

    terms: PartitionTerms
    segment: SegmentFiles
    begin: int
    end: int
    offset: int
    opens: bool
    closes: bool
    rolled_to: int
    timed: int
    snapshots: tuple[tuple[int, Path], ...]
    is_first: bool

    @property
    def bytes(self) -> int:
        """The bytes that it has in the log."""
        return self.end - self.begin

    @property
    def is_last(self) -> bool:
        """True if nothing of its partition lies behind it."""
        return self.closes and self.rolled_to == NONE


class Bundle(NamedTuple):
    """Parts that one task judges, in order."""

    parts: tuple[SegmentPart, ...]
    bytes: int


def bundles(parts: Iterable[SegmentPart], most: int) -> Iterator[Bundle]:
    """Put small parts together, up to so many bytes. The order stays."""
    some: list[SegmentPart] = []
    have = 0
    for part in parts:
        if some and (have + part.bytes > most or len(some) >= TOGETHER):
            yield Bundle(tuple(some), have)
            some, have = [], 0
        some.append(part)
        have += part.bytes
    if some:
        yield Bundle(tuple(some), have)


def parts_of(terms: PartitionTerms, files: PartitionFiles, most: int) -> Iterator[SegmentPart]:
    """The parts of a partition, in order. Raises OSError."""
    for number, segment in enumerate(files.segments):
        last = number + 1 == len(files.segments)
        rolled_to = NONE if last else files.segments[number + 1].base
        snapshots = [(at, path) for at, path in files.snapshots if at >= segment.base and (last or at < rolled_to)]
        cuts = list(segment_cuts(segment, most))
        begins = [(0, segment.base, NONE), *cuts]
        for place, (begin, offset, timed) in enumerate(begins):
            closes = place + 1 == len(begins)
            end, behind = (segment.size, None) if closes else begins[place + 1][:2]
            mine = tuple(one for one in snapshots if one[0] >= offset and (behind is None or one[0] < behind))
            yield SegmentPart(
                terms, segment, begin, end, offset, place == 0, closes, rolled_to, timed, mine,
                is_first=number == 0 and place == 0,
            )  # fmt: skip


def segment_cuts(segment: SegmentFiles, most: int) -> Iterator[tuple[int, int, int]]:
    """The places at which a large segment is cut: byte, offset, and the last time in the time index before it.

    Each lies behind all batches that one entry of the offset index stands for: there, the time index has the greatest
    time of the segment so far.
    """
    if segment.size <= most or segment.offset_index is None or segment.time_index is None:
        return
    index, times = offset_index(segment.offset_index, segment.base), time_index(segment.time_index, segment.base)
    reached = 0
    for wanted in range(most, segment.size, most):
        entry = int(np.searchsorted(index.position, wanted))
        if entry >= len(index.offset) or index.position[entry] <= reached:
            continue
        offset = int(index.offset[entry]) + 1
        begin = _behind(segment.log, int(index.position[entry]), offset - 1)
        if not reached < begin < segment.size:
            continue
        timed = int(np.searchsorted(times.offset, offset)) - 1
        yield begin, offset, int(times.time[timed]) if timed >= 0 else NONE
        reached = begin


def _behind(log: Path, position: int, offset: int) -> int:
    """The byte behind the batch that ends with an offset; -1 if none does, or what lies there is no batch."""
    for chunk in batches.chunks(log, position, position + batches.CHUNK, LOOK):
        (found,) = np.nonzero((chunk.batches.last == offset) & chunk.batches.is_sound)
        if len(found):
            return int(chunk.batches.position[found[0]] + chunk.batches.size[found[0]])
    return NONE
