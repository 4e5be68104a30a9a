"""A bounded set of recent numbers, to recognise new ones: the oldest are forgotten."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import among, distinct


class RecentKeys:
    """At least the newest `most` numbers of those that were added, and at most twice as many."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.older: Ints = np.zeros(0, np.int64)  # rising, as each of `newer` is: each less than half of the one before
        self.newer: list[Ints] = []

    def copy(self) -> RecentKeys:
        """Returns an independent copy."""
        other = RecentKeys(self.most)
        other.older, other.newer = self.older, self.newer[:]
        return other

    def has(self, keys: Ints) -> npt.NDArray[np.bool_]:
        """Returns the mask of the keys that are among them."""
        found = among(keys, self.older)
        for some in self.newer:
            found |= among(keys, some)
        return found

    def add(self, keys: Ints) -> None:
        """Remember some more."""
        added = distinct(keys)
        while self.newer and len(self.newer[-1]) <= 2 * len(added):
            added = distinct(np.concatenate([self.newer.pop(), added]))
        if len(added):
            self.newer.append(added)
        if sum(map(len, self.newer)) > self.most:
            self.older, self.newer = distinct(np.concatenate(self.newer)), []
