"""Delayed messages of a store: what the cursors of their levels have passed, and what came into their topics.

A message that waits in a level is compared with what was delivered of it, by one number for both. What a sender sent
twice with one key and one time of birth is one message, in a trace of its own.

Source: docs/rocketmq.md#delayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.blame.situation import KNOWN, switch
from gapless.traces.sources.rocketmq.blame.store import IS_WRITTEN, OF_DAMAGED_LOG
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.packed_blocks import PackedBlocks
from gapless.traces.sources.rocketmq.joining.batch_replay import StepEvents, replay_parts
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.joining.overdue_tasks import OverdueTasks
from gapless.traces.sources.rocketmq.layouts.delayed.blame import NOT_SURE, PASSED
from gapless.traces.sources.rocketmq.layouts.delayed.records import (
    COLUMNS,
    LOST,
    OUT,
    DelayedRows,
    each_delayed_block,
)
from gapless.traces.sources.rocketmq.layouts.delayed.worker import DELAYED, RECORDS, includes_delayed
from gapless.traces.sources.rocketmq.layouts.layout import JoinSide, LayoutJudge, covered
from gapless.traces.sources.rocketmq.log.found_records import FoundRecords
from gapless.traces.sources.rocketmq.segments.results import Segment
from gapless.traces.sources.rocketmq.store.files import FARTHEST
from gapless.traces.sources.rocketmq.store.group_cursors import LEVELS, has_own_cursors, level_cursors
from gapless.traces.sources.rocketmq.store.names import SCHEDULE_TOPIC

IN_A_PART = 1 << 17  # records, about
BEHIND = 1 << 62  # where events stand that come behind all records of a message
RETRIED = 60_000  # ms: within this time a broker has put a message, or has given it up
BITS = 48  # of a number, in the number of a trace; its level stands above
MOST = 1 << 12  # levels: a cursor of a higher one is damage, as a record there is
NOT_JUDGED = "delayed messages are not compared with what was delivered"
Truths = npt.NDArray[np.bool_]


class DelayedMessages(FoundRecords):
    """The records of delayed messages in consecutive segments of one log, from its beginning on."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        super().__init__(judged, options, RECORDS)

    def blocks(self) -> tuple[PackedBlocks, int]:
        """Returns the judged log's records block by block, and the end of the readable records."""
        return self.blocks_of(each_delayed_block)


class DelayedJudge(LayoutJudge):
    """Judges the delay levels of a store after its log, its queues and the cursors themselves."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        super().__init__(judged, options)
        self.messages = DelayedMessages(judged, options)

    def add(self, segment: Segment) -> None:
        """Adds the records that a worker found."""
        self.messages.add(segment)

    def settle(self) -> None:
        """Judges all levels with a cursor, and how late their messages are."""
        self._judge_levels()
        OverdueTasks(self.judged, self.options).judge_levels()

    def _judge_levels(self) -> None:
        store, judged = self.store, self.judged
        if store.limit != FARTHEST or not includes_delayed(self.options):
            return
        cursors = {cursor.queue: cursor.to for cursor in level_cursors(store, [])}
        cursors = {queue: to for queue, to in cursors.items() if 0 < to and queue < MOST and self._is_sound(queue)}
        if not cursors:
            return
        if not judged.judges(IS_WRITTEN, what=NOT_JUDGED):
            return
        if why := self._why_not():
            judged.note(f"{NOT_JUDGED}: {why}")
            return
        found, reached = self.messages.blocks()
        departs = judged.damage or any(found.spec == "log" for found in judged.breaches)
        damaged = switch(on=reached < judged.end or bool(departs))
        if judged.judges(OF_DAMAGED_LOG, damaged, what=NOT_JUDGED, its="their"):
            DelayLevels(judged, self.options, cursors, found).judge()

    def _is_sound(self, queue: int) -> bool:
        """True if a level's queue has each number once, as far as was judged."""
        run = self.judged.queues.get((SCHEDULE_TOPIC, queue))
        return run is None or not (run.departs or run.restarted)

    def _why_not(self) -> str:
        """The reason why no level can be judged, or an empty text."""
        if self.store.dledger:
            return "their log is one of DLedger"
        if self.store.setting("enableSlaveActingMaster"):
            return "with enableSlaveActingMaster another broker may have them"
        return ""


class DelayLevels:
    """The delay levels of one store: what waits there, and what came out.

    A broker's own cursor passes a message after its delivery, so that whatever it has passed must be in the log. What
    is behind a cursor of another moment than the log's end counts only as far as a later message of its level was
    delivered: they are delivered one after the other.
    """

    def __init__(self, judged: StoreFindings, options: Options, cursors: dict[int, int], found: PackedBlocks) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.is_own = has_own_cursors(judged.store)
        self.found, self.parts = self._in_parts(found)
        for queue in self._twice(found) & cursors.keys():
            judged.note(f"{NOT_JUDGED}: numbers of level {queue + 1} were given again")
            del cursors[queue]
        self.cursors = cursors
        self.passed = _table(cursors)
        self.sure = self.passed
        if not judged.accuses(PASSED, switch(on=self.is_own) | KNOWN.RECENT):
            in_order = bool(self.store.settings) and not self.store.setting("enableScheduleAsyncDeliver")
            self.sure = np.minimum(self.passed, self._delivered_up_to() if in_order else 0)
        if self.store.forgets:
            self.sure = np.zeros(len(self.passed), np.int64)
        self.lacking, self.first = 0, -1  # messages of which it is not known, and the trace of the first

    def judge(self) -> None:
        """Judges every message that has waited in a level."""
        replay_parts(self.judged, self.options, "stage", self._events(), self.name)
        cursors = self.cursors
        for n, found in enumerate(self.judged.breaches):
            if found.spec == "stage" and found.action == "pass_by":
                level = int(found.trace.split("/")[1])
                detail = f"the cursor of level {level} is {cursors[level - 1]:,} in config/{LEVELS}"
                unless = self.judged.caveat(PASSED, KNOWN.DURABLE)
                self.judged.breaches[n] = replace(found, detail="; ".join(filter(None, (detail, unless))))
        slave = switch(on=bool(self.store.settings) and not self.is_own)
        self.judged.blame(NOT_SURE, slave, count=self.lacking, first=self.name(self.first))

    def _in_parts(self, found: PackedBlocks) -> tuple[PackedBlocks, int]:
        """Returns all records of each message in one part, and the number of parts."""
        parts = found.rows // IN_A_PART + 1
        if parts == 1:
            return found, 1
        spread = PackedBlocks(COLUMNS)
        for block in found.blocks():
            columns = [block.column(n) for n in range(COLUMNS)]
            who = columns[DelayedRows._fields.index("who")]
            spread.spread(columns, (who.view(np.uint64) % np.uint64(parts)).astype(np.uint32))
        return spread, parts

    def _rows(self) -> Iterator[DelayedRows]:
        """Yields the records of each part, without those in queues or under numbers that none can have."""
        for part in range(self.parts):
            rows = DelayedRows(*self.found.all_of(part))
            known = (0 <= rows.queue) & (rows.queue < MOST) & (0 <= rows.number) & (rows.number < 1 << BITS)
            yield rows if known.all() else _those(rows, known | (rows.kind == OUT))

    @staticmethod
    def _twice(found: PackedBlocks) -> set[int]:
        """Returns the levels' queues whose numbers do not rise."""
        last: dict[int, int] = {}
        odd = set()
        for block in found.blocks():
            rows = DelayedRows(*(block.column(n) for n in range(COLUMNS)))
            waits = rows.kind != OUT
            for queue in np.unique(rows.queue[waits]).tolist():
                numbers = rows.number[waits & (rows.queue == queue)]
                if numbers[0] <= last.get(queue, -1) or (numbers[1:] <= numbers[:-1]).any():
                    odd.add(queue)
                last[queue] = int(numbers[-1])
        return odd

    def _delivered_up_to(self) -> Ints:
        """Returns of each level the number of its last message that was surely delivered, long before the end."""
        found = np.zeros(len(self.passed), np.int64)
        newest = max((int(rows.time.max(initial=0)) for rows in self._rows()), default=0)
        for rows in self._rows():
            waits = rows.kind != OUT
            who, first, count = np.unique(rows.who[waits], return_index=True, return_counts=True)
            there = np.isin(who, rows.who[~waits & (rows.time < newest - RETRIED)]) & (count == 1)
            at = np.flatnonzero(waits)[first[there]]
            known = rows.queue[at] < len(found)
            np.maximum.at(found, rows.queue[at][known], rows.number[at][known])
        return found

    # -- events --------------------------------------------------------------------------------------------------------

    def _events(self) -> Iterator[tuple[list[StepEvents], Ints]]:
        """Yields the events of each part, and its traces."""
        for rows in self._rows():
            waits = rows.kind != OUT
            entered = _those(rows, waits)
            who, first, group = np.unique(entered.who, return_index=True, return_inverse=True)
            if not len(who):
                continue
            traces = (entered.queue[first] << BITS) | entered.number[first]
            at = np.minimum(who.searchsorted(rows.who), len(who) - 1)
            out = ~waits & (who[at] == rows.who) & (rows.position > entered.position[first][at])
            left = at[out]
            dropped = entered.kind == LOST
            have = np.bincount(left, minlength=len(who)) + np.bincount(group[dropped], minlength=len(who))
            passed = self._passed(entered, group, traces, have)
            came, gone, done = _those(rows, out), _those(entered, dropped), _those(entered, passed)
            steps = [
                _events_of("enter", traces[group], entered, 2 * entered.position, "position"),
                _events_of("leave", traces[left], came, 2 * came.position, "position"),
                _events_of("drop", traces[group][dropped], gone, 2 * gone.position + 1),
                _events_of("pass_by", traces[group][passed], done, BEHIND + done.number, "number"),
            ]
            traces = np.unique(traces)
            if self.options.trace is not None:
                traces = traces[[self.name(trace) == self.options.trace for trace in traces.tolist()]]
                steps = [some.only(traces) for some in steps]
            if len(traces):
                yield steps, traces

    def _passed(self, entered: DelayedRows, group: Ints, traces: Ints, have: Ints) -> Truths:
        """Returns the mask of records that a cursor has surely passed, and counts the others.

        `have`: of each message, what came out of the level or was dropped.
        """
        passed: Truths = entered.number < _of(self.passed, entered.queue)
        sure: Truths = entered.number < _of(self.sure, entered.queue)
        lacks = np.maximum(np.bincount(group[passed], minlength=len(have)) - have, 0)
        unknown = lacks - np.minimum(np.maximum(np.bincount(group[sure], minlength=len(have)) - have, 0), lacks)
        if unknown.any():
            self.lacking += int(unknown.sum())
            first = int(traces[unknown > 0].min())
            self.first = first if self.first < 0 else min(self.first, first)
        whole: Truths = lacks == 0
        return passed & (sure | whole[group])

    @staticmethod
    def name(trace: int) -> str:
        """The name of a message, as a trace: its level, and its first number there."""
        return f"{DELAYED}/{(trace >> BITS) + 1}/{trace & ((1 << BITS) - 1)}"


def _events_of(step: str, traces: Ints, rows: DelayedRows, ranks: Ints, argument: str = "") -> StepEvents:
    args = {argument: getattr(rows, argument)} if argument else {}
    return StepEvents(step, traces, ranks, rows.position, args)


def _those(rows: DelayedRows, which: Truths) -> DelayedRows:
    return DelayedRows(*(column[which] for column in rows))


def _table(cursors: dict[int, int]) -> Ints:
    """Returns the cursor of each queue, 0 without one."""
    found = np.zeros(max(cursors, default=-1) + 1, np.int64)
    found[list(cursors)] = list(cursors.values())
    return found


def _of(table: Ints, queues: Ints) -> Ints:
    """Returns the number that a table has for each queue, 0 without one."""
    if not len(table):
        return np.zeros(len(queues), np.int64)
    known = (0 <= queues) & (queues < len(table))
    return np.where(known, table[np.where(known, queues, 0)], 0)


LAYOUT = JoinSide(DelayedJudge, is_present=covered("stage.enter"))
