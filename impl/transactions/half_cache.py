"""The half-message cache: who decides soon finds its half in memory (docs/proposals.md#half-cache).

A half goes in once it is written, at the end of a line; the eldest leaves where the cache is full; a hit takes its half
out; what is not there is read from the log. What `spec/half_cache.py` says of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable


class HalfCache:
    """Records of halves as they lie in the log, by number. The counters say how often it was asked, and helped."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.puts = self.evicted = self.hits = self.misses = 0
        self._records: OrderedDict[int, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def numbers(self) -> Iterable[int]:
        """The halves that are in it, the eldest first."""
        return self._records.keys()

    def put(self, number: int, record: bytes) -> None:
        """The half was written; `record`: its bytes in the log."""
        if self.capacity == 0:
            return
        if len(self._records) >= self.capacity and number not in self._records:
            self._records.popitem(last=False)
            self.evicted += 1
        self._records[number] = record
        self.puts += 1

    def take(self, number: int) -> bytes | None:
        """The half's record, which leaves the cache; None where it is not there."""
        found = self._records.pop(number, None)
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found
