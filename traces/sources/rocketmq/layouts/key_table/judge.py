"""The table of keys, compared with the log: each key of a record has its row, and no row leads elsewhere.

The table records the last record of its input. Later ones are not judged: the next start writes them. Rows are
compared with their records stretch by stretch of the log. Rows are deleted lawfully, by whole hours: see `_is_over`.

Source: docs/rocketmq.md#index-rocksdb.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.sources.rocketmq.blame.situation import NONE, Circumstance, Decision, place, switch
from gapless.traces.sources.rocketmq.blame.store import ODD_ROW, OF_DAMAGED_LOG, OTHER_MOMENT
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import indices_among
from gapless.traces.sources.rocketmq.joining.batch_replay import StepEvents, replay_batch
from gapless.traces.sources.rocketmq.joining.findings import STORIES, StoreFindings
from gapless.traces.sources.rocketmq.layouts.key_table import blame as situations
from gapless.traces.sources.rocketmq.layouts.key_table.rows import (
    HOUR,
    ROW,
    UNSURE,
    IndexTable,
    WantedRows,
    index_table,
    names_of,
    wanted_rows,
)
from gapless.traces.sources.rocketmq.layouts.layout import JoinSide, LayoutJudge, covered
from gapless.traces.sources.rocketmq.layouts.message_database import FOLDER, KEYS
from gapless.traces.sources.rocketmq.layouts.message_tables import brief, read_table
from gapless.traces.sources.rocketmq.store.files import FARTHEST
from gapless.traces.sources.rocketmq.store.settings import is_on

INDEX_TABLE = "index-rocksdb"  # begins the names of records, as traces: their position follows
SWITCHES = {"messageIndexEnable": True, "indexRocksDBEnable": False}  # settings, and what they are by default
WEEK = 168 * HOUR  # rows of so many hours go at once
NOT_JUDGED = f"the index of messages in {FOLDER}/ is not judged"
NAMED = 8  # rows that are named of a record
LAST = -1  # the trace of the table's end: all others are positions
STORE, FIND, PASS = range(3)  # where events stand in a trace
Truths = npt.NDArray[np.bool_]


def includes_index_table(options: Options) -> bool:
    """True if the table of keys was selected: it belongs to no topic."""
    if options.topic is not None:
        return False
    name, _, position = str(options.trace).partition("/")
    return options.trace is None or (name == INDEX_TABLE and position.isdecimal())


class CountWithFirst(NamedTuple):
    """The number of a kind, and the log position of the first."""

    many: int
    first: int


class IndexTableJudge(LayoutJudge):
    """Judges the table of keys of a store after its log."""

    def settle(self) -> None:
        """Judges the table, if there is one."""
        if not includes_index_table(self.options):
            return
        followed, count = switch(on=True), int(self._is_on)
        if not self.judged.judges(OTHER_MOMENT, followed, what=NOT_JUDGED, it="it is", count=count):
            return
        table = read_table(self.judged, KEYS, NOT_JUDGED, index_table, is_on=self._is_on)
        if table is None or not (len(table.position) or table.last is not None or table.odd or self._is_on):
            return
        if table.odd:
            self.judged.blame(ODD_ROW, what=NOT_JUDGED, odd=shown(brief(table.odd)))
        elif self.judged.judges(OF_DAMAGED_LOG, switch(on=bool(self.judged.damage)), what=NOT_JUDGED, its="its"):
            IndexTableReplay(self.judged, self.options, table, is_on=self._is_on).judge()

    @property
    def _is_on(self) -> bool:
        """True if the broker writes the table, by its settings."""
        settings = self.store.settings
        return bool(settings) and all(is_on(settings, name, otherwise) for name, otherwise in SWITCHES.items())


class IndexTableReplay:
    """One table of keys, with the records in its input."""

    def __init__(self, judged: StoreFindings, options: Options, table: IndexTable, *, is_on: bool) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.table = table
        self.is_on = is_on
        self.last = -1 if table.last is None else table.last
        self.there = False  # a record with keys lies where the table ends
        self.timely = False
        self.times: dict[
            int, int
        ] = {}  # ms: the store times of records whose rows have others, as many as are reported
        self.newest = 0  # ms: the store time of the newest record up to there
        self.latest = np.zeros(0, np.int64)  # of each row, by position: the latest hour of those up to it
        self.behind: list[CountWithFirst] = []
        self.gone: list[CountWithFirst] = []
        self.early: list[CountWithFirst] = []
        self.unsure: list[CountWithFirst] = []
        self.nowhere: list[CountWithFirst] = []
        self.first = int(table.position[0]) if len(table.position) else FARTHEST
        self.asked = int(str(options.trace).rpartition("/")[2]) if options.trace is not None else -1

    def judge(self) -> None:
        """Judges every record and every row."""
        self.latest = np.maximum.accumulate(self.table.hour) if len(self.table.hour) else self.table.hour
        reached = self.store.start
        for low, high, wanted in wanted_rows(self.store, self.judged.end):
            if low == reached:
                self._stretch(low, high, wanted)
                reached = high
        if reached < self.judged.end:
            self.judged.note(f"the table of keys is judged up to {reached:,}: records cannot be followed from there on")
        self._elsewhere(reached)
        self._end(reached)
        self._name_rows()
        self._note_counts()

    def _stretch(self, low: int, high: int, wanted: WantedRows) -> None:
        """Judges one stretch of the log, and the rows that point into it."""
        rows = self.table.between(low, high)
        position, text = self.table.position[rows], self.table.text[rows]
        unsure = wanted.position[wanted.kind == UNSURE]
        wanted, records = _of(wanted, wanted.kind == ROW), _once(wanted.position)
        self._look_for_the_end(wanted)
        order = np.argsort(wanted.text, kind="stable")
        row_of = indices_among(wanted.text[order], text)
        of_row = np.where(row_of >= 0, order[row_of] if len(order) else -1, -1)
        kept = ~np.isin(position, unsure)
        lead = indices_among(records, position) >= 0  # to a record, whatever its keys are
        cut = kept & (of_row < 0) & (not self.judged.accuses(situations.NO_RECORD, place(beyond=False)))
        if count := int(cut.sum()):
            self.nowhere.append(CountWithFirst(count, int(position[cut][0])))
        kept &= ~cut
        owned = of_row >= 0
        time = np.where(owned, wanted.time[of_row] if len(wanted.time) else 0, self.table.time[rows])
        has = np.zeros(len(wanted.position), np.bool_)
        has[of_row[owned & kept]] = True
        args = {
            "owned": owned, "timely": self.table.time[rows] == time,
            "in_hour": self.table.hour[rows] == time // HOUR * HOUR,
        }  # fmt: skip
        for at in np.flatnonzero(kept & owned & ~(args["timely"] & args["in_hour"]))[:STORIES].tolist():
            self.times[int(position[at])] = int(time[at])
        steps = [
            self._stored(wanted, position[kept & lead]),
            StepEvents("find_row", position[kept], np.full(int(kept.sum()), FIND), position[kept],
                {name: value[kept] for name, value in args.items()}),
            self._pass_by(wanted, has),
        ]  # fmt: skip
        self._judge(steps)

    def _stored(self, wanted: WantedRows, lead_to: Ints) -> StepEvents:
        """Returns the records with keys, and those without keys to which a row points."""
        positions, first = _firsts(wanted.position)
        counts = np.diff(np.append(first, len(wanted.position)))
        led = _once(lead_to)
        others = led[indices_among(positions, led) < 0]
        traces = np.concatenate([positions, others])
        keys = np.concatenate([counts, np.zeros(len(others), np.int64)])
        return StepEvents("store", traces, np.full(len(traces), STORE), traces, {"position": traces, "keys": keys})

    def _pass_by(self, wanted: WantedRows, has: Truths) -> StepEvents:
        """Counts the records behind which the table was written, except lawfully missing rows."""
        positions, first = _firsts(wanted.position)
        rows = np.add.reduceat(has.astype(np.int64), first) if len(first) else np.zeros(0, np.int64)
        keys = np.diff(np.append(first, len(wanted.position)))
        passed, none = positions <= self.last, rows == 0
        lacking = rows < keys
        behind = lacking & ~passed
        over = passed & none & self._is_over(positions, wanted.time[first] if len(first) else positions)
        unsure = passed & none & ~over & (not self.judged.accuses(situations.NO_ROWS, self._promised))
        was_off = self.judged.cell(situations.BEFORE_THE_FIRST).decision is Decision.NOTE
        early = unsure & was_off & (positions < self.first)
        unsure &= ~early
        for which, kept in ((behind, self.behind), (over, self.gone), (early, self.early), (unsure, self.unsure)):
            if count := int(which.sum()):
                kept.append(CountWithFirst(count, int(positions[which][0])))
        traces = positions[passed & ~over & ~early & ~unsure]
        return StepEvents("pass_by", traces, np.full(len(traces), PASS), traces, {})

    @property
    def _promised(self) -> Circumstance:
        """The circumstance of a table that was written from the first record on."""
        return switch(on=self.is_on and self.store.settings_apply)

    def _is_over(self, positions: Ints, times: Ints) -> Truths:
        """Returns the mask of records whose rows may have been deleted with their hour.

        Once the log has lost a file, a broker deletes the rows of a week up to an hour, all at once. So nothing is
        deleted behind an older row of that week.
        """
        if not self.store.start and not self.store.live:
            return np.zeros(len(positions), np.bool_)
        before = self.table.position.searchsorted(positions) - 1
        hours = times // HOUR * HOUR
        latest = np.where(before >= 0, self.latest[np.maximum(before, 0)] if len(self.latest) else 0, 0)
        over: Truths = (before < 0) | (latest > hours) | (latest < hours - WEEK)
        return over

    def _elsewhere(self, reached: int) -> None:
        """Counts rows beyond the end of the log. Those below its start are of expired records."""
        rows = self.table.between(reached, FARTHEST)
        position = self.table.position[rows]
        decision = self.judged.cell(situations.NO_RECORD, place(beyond=True)).decision
        if reached < self.judged.end or decision is not Decision.VIOLATION:  # then records may follow there
            if len(position) and decision is Decision.DOUBT and reached >= self.judged.end:
                self.nowhere.append(CountWithFirst(len(position), int(position[0])))
            return
        none = np.zeros(len(position), np.bool_)
        args = {"owned": none, "timely": none, "in_hour": none}
        self._judge([StepEvents("find_row", position, np.full(len(position), FIND), position, args)])

    def _look_for_the_end(self, wanted: WantedRows) -> None:
        """Looks for the record at which the table ends."""
        upto = wanted.position <= self.last
        if upto.any():
            self.newest = max(self.newest, int(wanted.time[upto].max()))
        mine = wanted.time[wanted.position == self.last]
        if len(mine):
            self.there = True
            last_time = self.table.last_time
            self.timely = last_time is not None and int(mine[0]) <= last_time <= self.newest
            self.times[self.last] = int(mine[0])

    def _end(self, reached: int) -> None:
        if self.table.last is None or self.last < self.store.start or (self.asked >= 0 and self.asked != self.last):
            return
        beyond = self.last >= reached
        if not self.there and (
            (beyond and reached < self.judged.end)
            or not self.judged.judges(situations.END_WITHOUT_RECORD, place(beyond=beyond), last=self.last)
        ):
            return
        at = np.array([LAST])
        timely = self.timely or not self.there
        args = {"position": np.array([self.last]), "there": np.array([self.there]), "timely": np.array([timely])}
        replay_batch(
            self.judged, self.options, "index_table",
            [StepEvents("find_last", at, np.zeros(1, np.int64), at, args)], at, lambda _: f"{INDEX_TABLE}/{self.last}",
        )  # fmt: skip
        found = self.judged.breaches[-1] if self.judged.breaches else None
        if found and found.action == "find_last" and not timely:
            both = f"the table says {self.table.last_time}, its record {self.times[self.last]}"
            self.judged.breaches[-1] = replace(found, detail=both)

    def _judge(self, steps: list[StepEvents]) -> None:
        """Judges some records, with the rows that point to them."""
        traces = _once(np.sort(np.concatenate([some.traces for some in steps]), kind="stable"))
        if self.asked >= 0:
            traces = traces[traces == self.asked]
            steps = [some.only(traces) for some in steps]
        if not len(traces):
            return
        replay_batch(self.judged, self.options, "index_table", steps, traces, lambda trace: f"{INDEX_TABLE}/{trace}")

    def _name_rows(self) -> None:
        """Adds to each departure the texts of the rows that point to its record: they are read a second time."""
        mine = [n for n, found in enumerate(self.judged.breaches) if found.spec == "index_table"]
        positions = {self.judged.breaches[n].position for n in mine}
        if not positions:
            return
        named = read_table(
            self.judged, KEYS, NOT_JUDGED, lambda pairs: names_of(pairs, positions), is_on=False
        ) or {}  # fmt: skip
        for n in mine:
            found = self.judged.breaches[n]
            if found.action == "find_last":
                continue
            rows = [
                f"{shown(row.text)} in hour {row.hour} with time {row.time}"
                for row in named.get(found.position, [])[:NAMED]
            ]
            its = f"; the record's time is {self.times[found.position]}" if found.position in self.times else ""
            self.judged.breaches[n] = replace(found, detail="; ".join(rows) + its)

    def _note_counts(self) -> None:
        """Adds notes with all counts."""
        for situation, counted, more in (
            (situations.BEHIND_THE_END, self.behind, switch(on=self.is_on)),
            (situations.EXPIRED, self.gone, NONE),
            (situations.BEFORE_THE_FIRST, self.early, NONE),
            (situations.NO_ROWS, self.unsure, self._promised),
            (situations.NO_RECORD, self.nowhere, NONE),
        ):
            if counted:
                first, beyond = counted[0].first, place(beyond=counted[0].first >= self.judged.end)
                self.judged.blame(situation, more | beyond, count=sum(one.many for one in counted), first=first)
        rows = len(self.table.position)
        end = f"ends at {self.last:,}" if self.last >= 0 else "says of no record that it was written for it"
        self.judged.note(f"the table of keys has {rows:,} row{'s' * (rows != 1)}, and {end}")


def _of(wanted: WantedRows, mine: Truths) -> WantedRows:
    return WantedRows(*np.stack(wanted)[:, mine])


def _firsts(rising: Ints) -> tuple[Ints, Ints]:
    """Returns each of rising numbers once, with its first index."""
    (first,) = np.nonzero(np.diff(rising, prepend=-1))
    return rising[first], first.astype(np.int64)


def _once(rising: Ints) -> Ints:
    return _firsts(rising)[0]


LAYOUT = JoinSide(IndexTableJudge, is_present=covered("index_table.store"))
