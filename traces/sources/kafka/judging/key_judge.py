"""Finds a key that two records have where the cleaner was.

Source: docs/kafka.md#cleaning.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from gapless.traces.sources.kafka.judging.parts import SegmentPart
from gapless.traces.sources.kafka.log.batches import chunks
from gapless.traces.sources.kafka.log.keys import NO_KEYS, RecordKeys
from gapless.traces.sources.kafka.log.tables import Flags, Ints

MOST = 1 << 23
"""Keys of a partition that are compared, in 128 MiB; of more, those whose hashes end in zeros."""
LOOKS = 64
"""Pairs of records with equal hashes whose keys are read at most."""


class RepeatedKey(NamedTuple):
    """A record whose key comes again behind it, at `later`, and the part in which it lies."""

    offset: int
    later: int
    part: SegmentPart


class KeyJudge:
    """Compares the keys of one partition below the cleaner's point. `is_whole`: all of them, and each for certain."""

    def __init__(self) -> None:
        self.is_whole = True
        self.zeros = 0  # bits in which the hashes end that are compared
        self._parts: list[SegmentPart] = []
        self._hashes, self._offsets = [NO_KEYS.hash], [NO_KEYS.offset]
        self._count = 0

    def add(self, part: SegmentPart, keys: RecordKeys) -> None:
        """Adds the keys of the next part."""
        self.is_whole &= keys.is_whole
        if not len(keys.hash):
            return
        self._parts.append(part)
        mine = _ends_in_zeros(keys.hash, self.zeros)
        self._hashes.append(keys.hash[mine])
        self._offsets.append(keys.offset[mine])
        self._count += len(self._hashes[-1])
        while self._count > MOST:
            self._halve()

    def _halve(self) -> None:
        """Leaves out those whose hashes do not end in one more zero."""
        self.zeros, self.is_whole = self.zeros + 1, False
        kept = [_ends_in_zeros(column, self.zeros) for column in self._hashes]
        self._hashes = [column[mine] for column, mine in zip(self._hashes, kept, strict=True)]
        self._offsets = [column[mine] for column, mine in zip(self._offsets, kept, strict=True)]
        self._count = sum(map(len, self._hashes))

    def repeated(self) -> RepeatedKey | None:
        """Finds the last record whose key comes again; None if there is none. Raises OSError."""
        hashes, offsets = np.concatenate(self._hashes), np.concatenate(self._offsets)
        order = np.lexsort((offsets, hashes))
        hashes, offsets = hashes[order], offsets[order]
        (pairs,) = np.nonzero(hashes[1:] == hashes[:-1])
        pairs = pairs[np.argsort(-offsets[pairs], kind="stable")]
        for first, later in zip(offsets[pairs[:LOOKS]].tolist(), offsets[pairs[:LOOKS] + 1].tolist(), strict=True):
            if self._key(first) == self._key(later):
                return RepeatedKey(first, later, self._part_of(first))
            self.is_whole = False  # of keys that share a hash, neighbours alone are compared
        self.is_whole &= len(pairs) <= LOOKS
        return None

    def _part_of(self, offset: int) -> SegmentPart:
        return self._parts[bisect_right(self._parts, offset, key=lambda part: part.offset) - 1]

    def _key(self, offset: int) -> bytes:
        """Reads the key of the record at an offset."""
        from gapless.traces.sources.kafka.log.records import records  # noqa: PLC0415 - codecs load slowly

        part = self._part_of(offset)
        for chunk in chunks(part.segment.log, part.begin, part.end):
            (at,) = np.nonzero((chunk.batches.base <= offset) & (offset <= chunk.batches.last))
            if len(at):
                begin = int(chunk.batches.position[at[0]])
                batch = next(chunks(part.segment.log, begin, begin + int(chunk.batches.size[at[0]])))
                for columns in records(batch):
                    (found,) = np.nonzero(columns.offset == offset)
                    if len(found):
                        return columns.key(int(found[0])) or b""
        raise OSError(f"the record at offset {offset:,} is no longer there")


def _ends_in_zeros(hashes: Ints, bits: int) -> Flags:
    """True for hashes that end in so many zeros."""
    found: Flags = hashes & ((1 << bits) - 1) == 0
    return found
