"""The messages with a time of a log: as workers found them while they scanned it, or as one more pass finds them."""

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
        """Remember what one segment's worker found."""
        if segment.timers is not None and segment.start == self.reached:
            self.found.add(segment.timers)
            self.reached = segment.end

    def blocks(self) -> tuple[PackedBlocks, int]:
        """All of the log that was judged, block by block; and how far records could be followed.

        What workers found is that if they saw all of the log, and nothing of it departs or might: in damage they see
        more than can be followed.
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
        """The same in one piece: the rows of a table are as many."""
        found, reached = self.blocks()
        return TimerRows(*found.all_of()), reached
