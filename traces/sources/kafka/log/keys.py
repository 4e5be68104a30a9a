"""Keys of records below the cleaner's point, by their hashes: what may be there twice is read again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.traces.sources.kafka.log.tables import Flags, Ints

MOST = 1 << 21
"""Records that are unpacked together; of more, as a damaged count may say, no key is gathered."""


class RecordKeys(NamedTuple):
    """Keys of some records: a hash and an offset for each. `is_whole`: none was left out."""

    hash: Ints
    offset: Ints
    is_whole: bool = True


NO_KEYS = RecordKeys(np.zeros(0, np.int64), np.zeros(0, np.int64))


class KeyCollector:
    """Gathers the keys of records whose offsets are at least `low`, and below `high`."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.is_whole = True
        self._found: list[tuple[Ints, Ints]] = []

    def wants(self, base: Ints) -> bool:
        """True if a batch with one of these first offsets may have such records."""
        return len(base) > 0 and int(base.min()) < self.high

    def add(self, hashes: Ints, offset: Ints, is_keyed: Flags) -> None:
        """Add records of clients; those without a key are left out."""
        mine = is_keyed & (offset >= self.low) & (offset < self.high)
        self._found.append((hashes[mine], offset[mine]))

    @property
    def keys(self) -> RecordKeys:
        """All that were gathered."""
        hashes, offsets = ([NO_KEYS.hash, *(pair[number] for pair in self._found)] for number in (0, 1))
        return RecordKeys(np.concatenate(hashes), np.concatenate(offsets), self.is_whole)
