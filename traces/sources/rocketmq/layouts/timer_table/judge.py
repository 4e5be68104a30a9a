"""The table of timers, compared with the messages that wait, and with those that were delivered.

A timer is the messages with one key that wait for one time; each is a trace of its own. The table records the end of
its input: the number of the next message that it reads, and the time up to which it has delivered.

Source: docs/rocketmq.md#timers-rocksdb.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.blame.situation import switch
from gapless.traces.sources.rocketmq.blame.store import ODD_ROW, OF_DAMAGED_LOG, OTHER_MOMENT
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.batch_replay import StepEvents, replay_batch
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.layouts.layout import JoinSide, covered
from gapless.traces.sources.rocketmq.layouts.message_database import FOLDER, TIMERS, Pairs, TableCodec
from gapless.traces.sources.rocketmq.layouts.message_tables import brief, read_table
from gapless.traces.sources.rocketmq.layouts.timer_messages import TimerMessagesJudge, over_for_sure
from gapless.traces.sources.rocketmq.layouts.timer_records import TimerRows
from gapless.traces.sources.rocketmq.layouts.timer_table import blame as situations
from gapless.traces.sources.rocketmq.layouts.timer_table.worker import (
    TIMER_TABLE,
    includes_timer_table,
    needs_messages,
)
from gapless.traces.sources.rocketmq.layouts.timer_wheel.files import TimerLog, opened_timers

NOT_JUDGED = f"the timers in {FOLDER}/ are not judged"
NUMBER, TIME = b"sys_topic_scan_offset_checkpoint", b"timeline_checkpoint"  # keys that are no rows
ROWS = TableCodec(shortest=9, fields=">i4,>i8,", marks=(NUMBER, TIME))  # value: size and position of the message
FOUND, LATER = 1 << 60, 1 << 61  # where events stand behind the messages of a timer
END = np.iinfo(np.int64).min  # the trace of how far messages were read
PROMPT = 10_000  # ms: a broker reads a message that waits within this time, unless it was just started
MIXED = -7046029254386353131  # makes one number of a time and a key
Truths = npt.NDArray[np.bool_]


class TimerTable(NamedTuple):
    """The rows of the table, a column for each field, with its read position and delivery time (ms).

    `due`: ms · `key`: digest of the UNIQ_KEY · `odd`: a row that no broker writes, or nothing.
    """

    due: Ints
    key: Ints
    size: Ints
    position: Ints
    number: int
    time: int
    odd: str


class TimerTableJudge(TimerMessagesJudge):
    """Judges the table of timers of a store after its log."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        super().__init__(judged, options, needed=needs_messages(judged.store, options))

    def settle(self) -> None:
        """Judges the table, if there is one."""
        if not includes_timer_table(self.options):
            return
        is_on = self.store.setting("timerRocksDBEnable")
        if not self.judged.judges(OTHER_MOMENT, switch(on=True), what=NOT_JUDGED, it="they are", count=int(is_on)):
            return
        table = read_table(self.judged, TIMERS, NOT_JUDGED, _table, is_on=is_on)
        if table is None or not (len(table.due) or table.number or table.time or table.odd or is_on):
            return
        if table.odd:
            self.judged.blame(ODD_ROW, what=NOT_JUDGED, odd=shown(brief(table.odd)))
            return
        rows, reached = self.messages.rows()
        damaged = switch(on=reached < self.judged.end or bool(self.judged.damage))
        if self.judged.judges(OF_DAMAGED_LOG, damaged, what=NOT_JUDGED, its="their"):
            TimerTableReplay(self.judged, self.options, table, rows, is_on=is_on).judge()


def _table(stretches: Iterator[Pairs]) -> TimerTable:
    """Builds the table from stretches of keys and values."""
    (due, key, _tail, size, position), marks, odd = ROWS.read(stretches)
    return TimerTable(due, key, size, position, marks.get(NUMBER, 0), marks.get(TIME, 0), odd)


class TimerTableReplay:
    """One table of timers, with its messages. A timer is identified by one number of its time and key."""

    def __init__(
        self, judged: StoreFindings, options: Options, table: TimerTable, rows: TimerRows, *, is_on: bool
    ) -> None:
        self.judged = judged
        self.is_on = is_on
        self.store = judged.store
        self.options = options
        self.rows = rows
        self.end = int(rows.number[rows.waits == 1].max(initial=-1)) + 1
        live = table.position >= self.store.start  # the messages of others have expired
        unsure = (rows.waits == 1) & ((rows.key == 0) | (rows.due < 0))  # their rows are unknown
        live &= ~np.isin(table.position, rows.position[unsure])
        self.table = table._replace(
            due=table.due[live], key=table.key[live], size=table.size[live], position=table.position[live]
        )
        known = (rows.key != 0) & (rows.due >= 0)
        self.waiting = _rows(rows, known & (rows.waits == 1) & (rows.cancels == 0))
        self.cancelling = _rows(rows, (rows.due >= 0) & (rows.waits == 1) & (rows.undone != 0))
        out = _rows(rows, known & (rows.waits == 0))
        self.of_row = _timer(self.table.due, self.table.key)
        self.of_waiting = _timer(self.waiting.due, self.waiting.key)
        self.of_cancelling = _timer(self.cancelling.due, self.cancelling.undone)
        # Of each timer with messages: its number, and then what is known of it.
        self.timers, self.first, self.messages = np.unique(self.of_waiting, return_index=True, return_counts=True)
        self.due = self.waiting.due[self.first]
        self.newest = np.zeros(len(self.timers), np.int64)  # the number of its newest message
        at = np.searchsorted(self.timers, self.of_waiting)
        np.maximum.at(self.newest, at, self.waiting.number)
        self.stored = np.full(len(self.timers), np.iinfo(np.int64).min)  # when its newest message was stored
        np.maximum.at(self.stored, at, self.waiting.time)
        copied, copies = np.unique(_timer(out.due, out.key), return_counts=True)
        self.copies = _of(copied, copies, self.timers)
        self.is_cancelled = np.isin(self.timers, self.of_cancelling)

    def judge(self) -> None:
        """Judges every timer."""
        steps = [self._waits(), self._cancels(), self._rows()]
        if not self.store.live:
            steps += [self._sought(), self._delivered(), *self._read_to()]
            self._doubt_rest()
        traces = np.unique(np.concatenate([some.traces for some in steps]))
        if self.options.trace is not None:
            traces = self._asked(str(self.options.trace), traces)
            steps = [some.only(traces) for some in steps]
        if len(traces):
            replay_batch(self.judged, self.options, "timer_table", steps, traces, self._name)
            self._add_details()
        rows, messages = plural(len(self.table.due), "row"), plural(self.table.number, "message")
        self.judged.note(f"the table of timers has {rows}, and has read {messages}")

    def _add_details(self) -> None:
        """Adds to each departure the times and sizes of the row and of the message."""
        for n, found in enumerate(self.judged.breaches):
            if found.spec != "timer_table" or found.action == "read_to":
                continue
            rows, messages = (some.position == found.position for some in (self.table, self.rows))
            numbers = zip(self.table.due[rows].tolist(), self.table.size[rows].tolist(), strict=True)
            row = " and ".join(f"time {due} and {size} bytes" for due, size in numbers)
            lies = zip(self.rows.due[messages].tolist(), self.rows.size[messages].tolist(), strict=True)
            message = " and ".join(f"time {due} and {size} bytes" for due, size in lies)
            detail = f"its row has {row or 'nothing'}, its message {message or 'nothing'}" if row or message else ""
            if found.action == "deliver":
                detail = f"its message has {message}, and the table was delivered up to time {self.table.time}"
            self.judged.breaches[n] = replace(found, detail=detail)

    def _waits(self) -> StepEvents:
        some = self.waiting
        return StepEvents("wait", self.of_waiting, some.number, some.position, {"position": some.position})

    def _cancels(self) -> StepEvents:
        mine = np.isin(self.of_cancelling, self._places_of[0])
        some = _rows(self.cancelling, mine)
        return StepEvents("cancel", self.of_cancelling[mine], some.number, some.position, {})

    def _rows(self) -> StepEvents:
        """Returns the rows' events.

        A row without its message may be of a part of the log that was lost with the power.
        """
        table = self.table
        places, sizes = self.rows.position, self.rows.size
        at = np.minimum(places.searchsorted(table.position), max(len(places) - 1, 0))
        there = places[at] == table.position if len(places) else np.zeros(len(table.due), np.bool_)
        whole = there & (sizes[at] == table.size) if len(places) else there
        pairs = np.stack([self.of_waiting, self.waiting.position], axis=1)
        named = _in_pairs(pairs, np.stack([self.of_row, table.position], axis=1))
        beyond = table.position >= self.judged.end
        unsure = ~named & ~self.judged.accuses_where(situations.NO_MESSAGE, beyond)
        self.judged.blame_for(situations.NO_MESSAGE, table.position[unsure])
        kept = ~unsure
        over = ~np.isin(self.of_row, self._cancelled_in_time())
        args = {"named": named[kept], "whole": (whole | ~named)[kept], "over": over[kept]}
        return StepEvents("find_row", self.of_row[kept], np.full(int(kept.sum()), FOUND), table.position[kept], args)

    def _cancelled_in_time(self) -> Ints:
        """Returns the mask of future timers whose rows were surely deleted: cancelled last, and long before."""
        if not self.judged.accuses(situations.CANCELLED):
            return np.zeros(0, np.int64)
        some = self.cancelling
        at = np.minimum(np.searchsorted(self.timers, self.of_cancelling), max(len(self.timers) - 1, 0))
        if not len(self.timers):
            return np.zeros(0, np.int64)
        mine = (self.timers[at] == self.of_cancelling) & (some.number > self.newest[at])
        surely = mine & (some.number < self.table.number) & (some.due > self.table.time)
        surely &= some.due - some.time >= PROMPT
        found: Ints = self.of_cancelling[surely]
        return found

    def _sought(self) -> StepEvents:
        """Returns the events of future timers whose messages are all in the table's input."""
        mine = (self.newest < self.table.number) & (self.due > self.table.time)
        lacks = mine & ~self.is_cancelled & (self.copies == 0) & ~np.isin(self.timers, self.of_row)
        late, early = (self.judged.accuses(situations.NO_ROW, switch(on=one)) for one in (False, True))
        unsure = lacks & ~np.where(self.due - self.stored < PROMPT, late, early)
        wheeled = unsure & np.isin(self.waiting.position[self.first], self._in_the_wheel())
        self.judged.blame(situations.IN_THE_WHEEL, count=int(wheeled.sum()))
        self.judged.blame(situations.NO_ROW, switch(on=False), count=int((unsure & ~wheeled).sum()))
        mine &= ~unsure
        args = {"handed_on": (self.copies > 0)[mine]}
        return StepEvents("seek", self.timers[mine], np.full(int(mine.sum()), LATER), self._places(mine), args)

    def _in_the_wheel(self) -> Ints:
        """Returns the log positions of messages that units of the timer log name."""
        files = opened_timers(self.judged)
        if files is None:
            return np.zeros(0, np.int64)
        return TimerLog(files).naming(-(1 << 63), 1 << 63).message

    def _delivered(self) -> StepEvents:
        """Returns the events of timers whose time is over."""
        mine = (self.newest < self.table.number) & (self.due < self.table.time)
        mine &= over_for_sure(self.judged, self.due)
        if self.store.setting("enableSlaveActingMaster"):
            mine[:] = False
        copies = np.where(self.copies > 0, np.maximum(self.copies // self.messages, 1), 0)
        return StepEvents(
            "deliver", self.timers[mine], np.full(int(mine.sum()), LATER), self._places(mine), {"copies": copies[mine]}
        )

    def _read_to(self) -> list[StepEvents]:
        """Returns the event of the table's read position, if the number of messages is known."""
        number = self.table.number
        if not self.end:
            return []
        if number > self.end and not self.judged.judges(situations.READ_BEYOND, number=number, end=self.end):
            return []
        at = np.array([END])
        args = {"number": np.array([number]), "end": np.array([self.end])}
        return [StepEvents("read_to", at, np.zeros(1, np.int64), np.array([self.judged.end]), args)]

    def _doubt_rest(self) -> None:
        """Notes timers that a table far behind a cleanly ended log has not reached: they are not judged."""
        known, on = self.store.checkpoint, switch(on=self.is_on)
        if not known:
            return
        unread = (self.newest >= self.table.number) & (self.stored < known.log - PROMPT)
        undone = (self.newest < self.table.number) & (self.due >= self.table.time) & (self.due < known.log - PROMPT)
        undone &= ~self.is_cancelled & (self.copies == 0)
        for which, what in ((unread, "did not read them"), (undone, "did not reach their time")):
            if count := int(which.sum()):
                first, seconds = int(self._places(which)[0]), PROMPT // 1000
                self.judged.blame(situations.FAR_BEHIND, on, count=count, first=first, what=what, seconds=seconds)

    def _places(self, mine: Truths) -> Ints:
        places: Ints = self.waiting.position[self.first][mine]
        return places

    @cached_property
    def _places_of(self) -> tuple[Ints, Ints, Ints]:
        """Returns number, time and first log position of each timer, by rising number."""
        of = np.concatenate([self.of_waiting, self.of_row])
        timers, first = np.unique(of, return_index=True)
        due = np.concatenate([self.waiting.due, self.table.due])[first]
        return timers, due, np.concatenate([self.waiting.position, self.table.position])[first]

    def _asked(self, name: str, traces: Ints) -> Ints:
        """Returns the requested trace of this name, if it is among these."""
        timers, due, position = self._places_of
        named = [name == f"{TIMER_TABLE}/{a}/{b}" for a, b in zip(due.tolist(), position.tolist(), strict=True)]
        asked = np.array([END]) if name == self._name(END) else timers[np.array(named, np.bool_)]
        return np.intersect1d(asked, traces)

    def _name(self, trace: int) -> str:
        if trace == END:
            return f"{TIMER_TABLE}/{self.table.number}"
        timers, due, position = self._places_of
        at = int(timers.searchsorted(trace))
        return f"{TIMER_TABLE}/{due[at]}/{position[at]}"


def _rows(rows: TimerRows, mine: Truths) -> TimerRows:
    return TimerRows(*np.stack(rows)[:, mine])


def _timer(due: Ints, key: Ints) -> Ints:
    """Returns one number for each time and key."""
    with np.errstate(over="ignore"):
        return key ^ (due * np.int64(MIXED))


def _of(known: Ints, values: Ints, wanted: Ints) -> Ints:
    """Returns the value of each wanted number, or 0."""
    if not len(known):
        return np.zeros(len(wanted), np.int64)
    at = np.minimum(known.searchsorted(wanted), len(known) - 1)
    return np.where(known[at] == wanted, values[at], 0)


def _in_pairs(among: Ints, wanted: Ints) -> Truths:
    """Returns the mask of the wanted pairs that are among the others."""
    _, same = np.unique(np.concatenate([among, wanted]), axis=0, return_inverse=True)
    same = same.reshape(-1)
    return np.isin(same[len(among) :], same[: len(among)])


LAYOUT = JoinSide(TimerTableJudge, is_present=covered("timer_table.wait"))
