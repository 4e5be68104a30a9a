"""The messages with a delivery time of a log: the timer wheel and the table of timers are compared with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.blame.queues import NOT_DELIVERED
from gapless.traces.sources.rocketmq.blame.situation import KNOWN, switch
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.packed_blocks import PackedBlocks
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings, Truths
from gapless.traces.sources.rocketmq.layouts.layout import LayoutJudge, WorkerSide
from gapless.traces.sources.rocketmq.layouts.timer_records import (
    COLUMNS,
    ENTRIES,
    TimerRows,
    each_timer_block,
    find_timers,
)
from gapless.traces.sources.rocketmq.log.found_records import FoundRecords
from gapless.traces.sources.rocketmq.segments.results import Segment
from gapless.traces.sources.rocketmq.segments.splits import Sought, sought_among
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import TIMER_TOPIC
from gapless.traces.sources.rocketmq.store.settings import is_slave

DURING = 60_000  # ms: what was to be delivered just before a crash may not have been on disk
TIMED = sought_among("timers", COLUMNS, find_timers)


def has_waiting_messages(store: StoreDirectory) -> bool:
    """True if messages may wait for their time, and are judged: no broker runs, and their log is a plain one."""
    return not store.live and not store.dledger and (TIMER_TOPIC, 0) in store.queues


def worker_side(needs: Callable[[StoreDirectory, Options], bool]) -> WorkerSide:
    """Returns the part that asks the scan for these messages in stores that need them."""

    def sought(store: StoreDirectory, options: Options) -> tuple[Sought, ...]:
        return (TIMED,) if needs(store, options) else ()

    def prepare(store: StoreDirectory, options: Options) -> None:
        for entry in ENTRIES if needs(store, options) else ():
            entry.prepare()

    return WorkerSide(sought, prepare)


def over_for_sure(judged: StoreFindings, times: Ints) -> Truths:
    """Returns the mask of times that are so long over that what was due then must be in its topic."""
    store, known = judged.store, judged.store.checkpoint
    master = switch(on=bool(store.settings) and not is_slave(store.settings))
    durable, recent = (judged.accuses(NOT_DELIVERED, master | how) for how in (KNOWN.DURABLE, KNOWN.RECENT))
    return np.where(times < (known.log - DURING if known else 0), durable, recent)


class TimerMessages(FoundRecords):
    """The timer messages of consecutive segments of one log, from its beginning on."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        super().__init__(judged, options, TIMED)

    def blocks(self) -> tuple[PackedBlocks, int]:
        """Returns the judged log's messages block by block, and the end of the readable records."""
        return self.blocks_of(each_timer_block)

    def rows(self) -> tuple[TimerRows, int]:
        """Returns all of them in one piece: the rows of a table are as many."""
        found, reached = self.blocks()
        return TimerRows(*found.all_of()), reached


class TimerMessagesJudge(LayoutJudge):
    """Judges a layout that is compared with these messages. `needed`: they are, in this store."""

    def __init__(self, judged: StoreFindings, options: Options, *, needed: bool) -> None:
        super().__init__(judged, options)
        self.messages = TimerMessages(judged, options)
        self.needed = needed

    def add(self, segment: Segment) -> None:
        """Adds the messages that a worker found, if they are needed."""
        if self.needed:
            self.messages.add(segment)
