"""Reads a followed log a second time, in parts, for layouts and trace topics.

They are compared with it behind its judgement: a broker writes them later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.segments.splits import ScannedSegment, Sought, Split, SplitReader
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import Space
from gapless.traces.sources.rocketmq.store.files import LogFile

AT_ONCE = 2 << 20  # bytes of the log that are read at once: what is made of them stays in memory


class LogPoint(NamedTuple):
    """A log position, and whether a record is known to begin there."""

    at: int
    exact: bool = True


class LogReader:
    """Reads a log on from a point; `point` lies behind what was read."""

    def __init__(self, point: LogPoint, space: Space) -> None:
        self.point = point
        self.space = space

    def segments(
        self, store: StoreDirectory, file: LogFile, end: int, *, keys: bool = False, sought: Sequence[Sought] = ()
    ) -> Iterator[ScannedSegment]:
        """Yields the next segments with records, of one log file: about `AT_ONCE` bytes, up to a log position."""
        low = self.point.at - file.base
        split = Split(file, low, min(end - file.base, file.length, low + AT_ONCE), self.point.exact)
        at, stop = file.base + split.high, scan.INVALID
        for scanned in SplitReader(store, split, self.space, keys=keys, sought=sought).segments():
            if scanned.columns.count:
                yield scanned
            at = file.base + file.length if scanned.blank else scanned.end
            stop = scanned.stop
        lost = stop == scan.INVALID
        self.point = LogPoint(max(at, file.base + split.high) if lost else at, exact=not lost)
