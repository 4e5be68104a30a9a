"""Records of one kind in a log: found by workers during the scan, or in a second pass."""

from __future__ import annotations

from collections.abc import Callable

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.packed_blocks import PackedBlocks
from gapless.traces.sources.rocketmq.columns.packed_columns import pack_columns
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.segments.results import Segment
from gapless.traces.sources.rocketmq.segments.splits import Sought
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory

EachBlock = Callable[[StoreDirectory, int, Callable[[Ints], object]], int]
"""One more pass over a log up to a position, which calls back with what it finds, and returns where it ended."""


class FoundRecords:
    """The records of one kind in consecutive segments of one log, from its beginning on."""

    def __init__(self, judged: StoreFindings, options: Options, sought: Sought) -> None:
        self.judged = judged
        self.options = options
        self.name, self.columns = sought.name, sought.columns
        self.found = PackedBlocks(sought.columns)
        self.reached = judged.store.start

    def add(self, segment: Segment) -> None:
        """Adds the records of one segment, as a worker has found them."""
        rows = segment.found.get(self.name)
        if rows is not None and segment.start == self.reached:
            self.found.add(rows)
            self.reached = segment.end

    def blocks_of(self, each_block: EachBlock) -> tuple[PackedBlocks, int]:
        """Returns the judged log's records block by block, and the end of the readable records.

        The workers' results count if they saw all of the log, and nothing of it departs or may depart: in damage they
        see more than can be followed.
        """
        judged = self.judged
        departs = judged.damage or self.options.ignored or any(found.spec == "log" for found in judged.breaches)
        if departs or self.reached != judged.end:
            found = PackedBlocks(self.columns)

            def take(rows: Ints) -> None:
                found.add(pack_columns(rows))

            return found, each_block(judged.store, judged.end, take)
        return self.found, self.reached
