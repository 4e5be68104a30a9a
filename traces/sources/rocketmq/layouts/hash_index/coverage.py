"""The matches of a log's records with a hash index: of many segments as of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import IndexFile
from gapless.traces.sources.rocketmq.layouts.hash_index.matching import FIRST, KEYS, LAST, RECORDS, RUN_ROWS
from gapless.traces.sources.rocketmq.layouts.hash_index.worker import IndexMatches

MOST = 1 << 20  # items of one file, and records, that are remembered one by one


@dataclass
class IndexCoverage:
    """The matches of consecutive segments with an index, added up.

    `found`, `first`, `last`, `runs`, `partly`: as in `IndexMatches`, but a run may span segments · `odd`: by file name,
    the items that are not owned or not timely, as [item, position, bits].
    """

    found: int = 0
    first: int = -1
    last: int = -1
    runs: Ints = field(default_factory=lambda: np.zeros((RUN_ROWS, 0), np.int64))
    partly: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    odd: dict[str, Ints] = field(default_factory=dict)

    def add(self, part: IndexMatches, files: Sequence[IndexFile]) -> None:
        """Adds the matches of the next segment. `files`: those of the index with which it was compared."""
        some = np.flatnonzero(np.bincount(part.odd[0])).tolist()
        odd = {files[at].name: part.odd[1:][:, part.odd[0] == at] for at in some}
        self.join(IndexCoverage(part.found, part.first, part.last, part.runs, part.partly, odd))

    def join(self, other: IndexCoverage) -> None:
        """Adds the matches of later segments."""
        if other.first >= 0:
            self.runs = _joined(self.runs, other.runs, self.last, other.first)
            self.first, self.last = self.first if self.first >= 0 else other.first, other.last
        self.found += other.found
        self.partly = np.concatenate([self.partly, other.partly])[:MOST]
        self._add_odd(other.odd)

    def _add_odd(self, odd: Mapping[str, Ints]) -> None:
        for name, items in odd.items():
            self.odd[name] = np.concatenate([self.odd[name], items], axis=1)[:, :MOST] if name in self.odd else items

    def copy(self) -> IndexCoverage:
        """Returns an independent copy."""
        return IndexCoverage(self.found, self.first, self.last, self.runs, self.partly, dict(self.odd))

    def odd_items(self, name: str) -> Ints:
        """Returns the odd items of one file, as [item, bits], by item."""
        return by_item(self.odd.get(name, np.zeros((3, 0), np.int64))[[0, 2]])


def by_item(odd: Ints) -> Ints:
    """Sorts columns by their first row."""
    return odd[:, np.argsort(odd[0], kind="stable")]


def _joined(before: Ints, after: Ints, last: int, first: int) -> Ints:
    """Concatenates runs; the last before and the first after are one if no record with keys is between them."""
    if not (before.shape[1] and after.shape[1] and before[LAST, -1] == last and after[FIRST, 0] == first):
        return np.concatenate([before, after], axis=1) if after.shape[1] else before
    both = np.concatenate([before, after[:, 1:]], axis=1)
    at = before.shape[1] - 1
    both[LAST, at] = after[LAST, 0]
    both[[RECORDS, KEYS], at] += after[[RECORDS, KEYS], 0]
    return both
