"""The messages with a delivery time of a log: found by workers during the scan, or in a second pass."""

from __future__ import annotations

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.joining.packed_blocks import PackedBlocks
from gapless.traces.sources.rocketmq.segments.tasks import Segment
from gapless.traces.sources.rocketmq.store.bytes import Ints
from gapless.traces.sources.rocketmq.store.packed_columns import pack_columns
from gapless.traces.sources.rocketmq.store.timer_records import COLUMNS, TimerRows, each_timer_block


class TimerMessages:
    """The timer messages of consecutive segments of one log, from its beginning on."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        self.judged = judged
        self.options = options
        self.found = PackedBlocks(COLUMNS)
        self.reached = judged.store.start

    def add(self, segment: Segment) -> None:
        """Adds the messages of one segment."""
        if segment.timers is not None and segment.start == self.reached:
            self.found.add(segment.timers)
            self.reached = segment.end

    def blocks(self) -> tuple[PackedBlocks, int]:
        """Returns the judged log's messages block by block, and the end of the readable records.

        The workers' results count if they saw all of the log, and nothing of it departs or may depart: in damage they
        see more than can be followed.
        """
        judged = self.judged
        departs = judged.damage or self.options.ignored or any(found.spec == "log" for found in judged.breaches)
        if departs or self.reached != judged.end:
            found = PackedBlocks(COLUMNS)

            def take(rows: Ints) -> None:
                found.add(pack_columns(rows))

            return found, each_timer_block(judged.store, judged.end, take)
        return self.found, self.reached

    def rows(self) -> tuple[TimerRows, int]:
        """Returns all of them in one piece: the rows of a table are as many."""
        found, reached = self.blocks()
        return TimerRows(*found.all_of()), reached
