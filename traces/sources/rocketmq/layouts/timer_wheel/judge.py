"""The timer wheel of a store: each time's chain of units, its slot, and the outcome of its messages.

Units name messages of the log, which were judged before; here each unit is compared with its message, the slot of a
time with its chain, and, if the time is over, its messages with those delivered. The times of a wheel are traces of
their own.

Source: docs/rocketmq.md#timers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from gapless.spec.catalog import SPECS, rule
from gapless.spec.deadline import TaskKind
from gapless.traces.judging.building import STEPS
from gapless.traces.options import Options
from gapless.traces.replay.exact import replay
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.blame.situation import Decision, switch
from gapless.traces.sources.rocketmq.blame.store import IS_WRITTEN, OF_DAMAGED_LOG
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import distinct
from gapless.traces.sources.rocketmq.columns.packed_blocks import PackedBlocks
from gapless.traces.sources.rocketmq.joining.batch_replay import Column, StepEvents, replay_parts
from gapless.traces.sources.rocketmq.joining.findings import STORIES, Breach, StoreFindings
from gapless.traces.sources.rocketmq.joining.overdue_tasks import SHORTEST, OverdueTasks, WaitingTasks
from gapless.traces.sources.rocketmq.layouts.layout import JoinSide, covered
from gapless.traces.sources.rocketmq.layouts.timer_messages import TimerMessagesJudge, over_for_sure
from gapless.traces.sources.rocketmq.layouts.timer_wheel import blame as situations
from gapless.traces.sources.rocketmq.layouts.timer_wheel.files import (
    SLOTS,
    TURN,
    UNIT,
    TimerFiles,
    TimerLog,
    Units,
    has_more,
    opened_timers,
    wheel_of,
)
from gapless.traces.sources.rocketmq.layouts.timer_wheel.parts import (
    AGAIN,
    CANCELLING,
    HAS_KEY,
    HAS_ROW,
    IS_NAMED,
    IS_OLD,
    IS_WHOLE,
    MARKED,
    ROLLS,
    WAITS,
    Groups,
    RowFacts,
    TimerPart,
    TimerParts,
    Truths,
    UnitFacts,
)
from gapless.traces.sources.rocketmq.layouts.timer_wheel.worker import TIMERS, includes_timer_wheel, needs_messages
from gapless.traces.sources.rocketmq.store.names import TIMER_LOG, TIMER_TOPIC, TIMER_WHEEL
from gapless.traces.sources.rocketmq.store.settings import number_set

TIMER = STEPS["timer"]
BEYOND = rule("timer/unit-names-a-message-that-waits").id
FIRST, LATER, LAST = -1, 1 << 60, 1 << 61  # where events stand among the units of their time
SETTLED = 5_000  # ms, and several rounds of flushing: after that, all is on disk
ROUNDS = 3


class TimerWheelJudge(TimerMessagesJudge):
    """Judges the timers of a store after its log and queues."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        super().__init__(judged, options, needed=needs_messages(judged.store, options))

    def settle(self) -> None:
        """Judges the wheel, if the store has one."""
        files = opened_timers(self.judged) if includes_timer_wheel(self.options) else None
        if files is None:
            if (TIMER_TOPIC, 0) in self.judged.queues and includes_timer_wheel(self.options):
                self.judged.note(
                    "there are messages that wait for their time, and no timerlog/: the timer wheel is not judged"
                )
            return
        what = "the timer wheel is not judged"
        if not self.judged.judges(IS_WRITTEN, what=what):
            return
        found, reached = self.messages.blocks()
        damaged = switch(on=reached < self.judged.end or bool(self.judged.damage))
        if self.judged.judges(OF_DAMAGED_LOG, damaged, what=what, its="its"):
            Wheel(self.judged, self.options, files, found).judge()


class Wheel:
    """One wheel, with its messages."""

    def __init__(self, judged: StoreFindings, options: Options, files: TimerFiles, found: PackedBlocks) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.files = files
        self.log = TimerLog(files)
        self.slots = None if files.why_not else wheel_of(files)
        self.precision = self.log.precision(self.store.settings, self.slots)
        self.times = self.lacking = 0  # how many times there are, and messages that wait without a unit
        self.beyond = 0  # units of times to come that name messages behind the log's end
        if self.slots is None:
            judged.note(f"timerwheel is not judged: {files.why_not}")
        interval = number_set(self.store.settings, "timerFlushIntervalMs")
        settled = files.read - max(SETTLED, ROUNDS * interval)
        self.parts = TimerParts(judged, self.log, found, self.precision, settled, self._over)
        self.pending = None if self.slots is None else self._pending(self.slots)

    def judge(self) -> None:
        """Judges every time of the wheel."""
        replay_parts(self.judged, self.options, "timer", map(self._steps, self.parts), self._name)
        self.judged.blame(situations.NO_UNIT, count=self.lacking)
        units, times = plural(self.log.count, "unit"), plural(self.times, "time")
        self.judged.note(f"the timer log has {units}, of {times} in all")

    def _steps(self, part: TimerPart) -> tuple[list[StepEvents], Ints]:
        """Returns all events of some times, and these times."""
        units, turn = part.units, self.parts.turn(part.units.at)
        groups = Groups(part.rows, units, part.others, self._over)
        steps = [
            self._scheduled(units, turn), *self._turns(part, turn),
            self._delivered(part, groups, turn), self._sought(part.rows, groups),
        ]  # fmt: skip
        self._look_for_late(part, groups, turn)
        times = distinct(np.concatenate([some.traces for some in steps]))
        if self.options.trace is not None:
            times = times[[self._name(time) == self.options.trace for time in times]]
            steps = [some.only(times) for some in steps]
        self.times += len(times)
        self._fear_units_beyond(units, turn, times)
        opened = StepEvents(
            "open", times, np.full(len(times), FIRST), np.full(len(times), self.judged.end),
            {"start": np.full(len(times), self.files.start)},
        )  # fmt: skip
        return [opened, *steps], times

    def _scheduled(self, units: UnitFacts, turn: Ints) -> StepEvents:
        args = {
            "position": units.place, "before": units.before, "time": units.at, "due": units.due,
            "rolled": units.are(ROLLS), "cancels": units.are(CANCELLING), "whole": units.are(IS_WHOLE),
            "waits": units.are(WAITS), "marked": units.are(MARKED), "again": units.are(AGAIN),
        }  # fmt: skip
        return StepEvents("schedule", turn, 4 * np.arange(len(turn)), units.message, args)

    def _fear_units_beyond(self, units: UnitFacts, turn: Ints, times: Ints) -> None:
        """Reports units of times to come whose messages lie behind the log's end: it will have other messages there.

        Source: docs/rocketmq.md#timers-beyond.
        """
        if self.judged.cell(situations.UNIT_TO_COME).decision is Decision.PASS:
            return
        beyond = units.are(WAITS) & units.are(IS_WHOLE) & (units.message >= self.judged.end)
        (at,) = np.nonzero(beyond & (turn * self.precision >= self.files.read) & np.isin(turn, times))
        args = self._scheduled(units, turn).args
        shown = at[: max(STORIES - self.beyond, 0)]
        for one in shown.tolist():
            unit = TIMER.schedule(**{name: int(values[one]) for name, values in args.items()} | {"waits": False})
            state = replace(SPECS["timer"].initial, start=self.files.start)
            refused = replay(
                "timer", state, [unit], profile=self.options.profile, ignored=self.options.ignored
            ).departure
            if refused:
                detail = f"behind the log's end, {self.judged.end}"
                found = Breach(self._name(int(turn[one])), int(units.message[one]), refused, detail)
                self.judged.feared.append(found)
        self.beyond += len(shown)
        self.judged.feared_more[BEYOND] += len(at) - len(shown)

    # -- the wheel -------------------------------------------------------------------------------------------------

    def _turns(self, part: TimerPart, turn: Ints) -> list[StepEvents]:
        """Returns the slots of all times that are not over."""
        if self.slots is None or self.pending is None:
            return []
        (waits,) = np.nonzero(turn * self.precision >= self.files.read)
        units = UnitFacts(*(column[waits] for column in part.units))
        own = self._own_turns(self.slots, units, turn[waits], waits)
        mine = self.pending[(part.low <= self.pending["time"]) & (self.pending["time"] < part.high)]
        return [own, self._without_units(mine[~np.isin(mine["time"].astype(np.int64), turn[waits])])]

    def _own_turns(self, slots: Units, units: UnitFacts, turn: Ints, ranks: Ints) -> StepEvents:
        """Returns the slots of times with units. `ranks`: the places of units among all of this part."""
        pending, newest = np.unique(turn[::-1], return_index=True)  # of each time, the last unit
        pending = pending[units.are(IS_WHOLE)[len(turn) - 1 - newest]]
        slots = slots[pending % SLOTS]
        is_its_own = slots["time"] == pending
        first, last, count = (np.where(is_its_own, slots[name], none) for name, none in ENDS)
        known = self._known(units)
        needed = _last_of(turn[known], np.flatnonzero(known), pending)
        behind = np.minimum(units.place.searchsorted(last), len(turn) - 1)
        stands = (last >= 0) & (units.place[behind] == last) & (turn[behind] == pending) & (behind >= needed)
        ahead = (last > self.log.last) & (not self.judged.accuses(situations.SLOT_AHEAD))
        reported = (stands | (needed >= 0)) & ~ahead
        whole = switch(on=self.files.start == 0 and not self.parts.repeats)
        counted = stands & known[behind] & self.judged.accuses(situations.SLOT_COUNT, whole)
        args = {"first": first, "last": last, "count": count, "counted": counted}
        return self._turn_events(pending[reported], ranks[np.where(stands, behind, needed)[reported]], args, reported)

    def _known(self, units: UnitFacts) -> Truths:
        """Returns the mask of units that were on disk when the wheel was written.

        Of the newest, the slot may have been missed: a unit is on disk just before its slot.
        """
        on_disk = units.place < self.files.flushed
        is_newest = units.place + UNIT.itemsize >= self.files.flushed
        known: Truths = on_disk & (~is_newest | units.are(IS_OLD))
        return known

    def _pending(self, slots: Units) -> Units:
        """Returns the slots of times that are not over."""
        slots = slots[np.flatnonzero(np.asarray(slots).view(np.int64)[:: TURN.itemsize // 8])]  # most have no time
        times = slots["time"].astype(np.int64)
        return np.asarray(slots[(times > 0) & (times * self.precision >= self.files.read)])

    def _without_units(self, slots: Units) -> StepEvents:
        """Returns the slots of times without a unit in the log."""
        last = slots["last"].astype(np.int64)
        end = self.log.last + UNIT.itemsize if self.log.count else self.files.start
        mine = (last >= self.files.start) & ((last < end) | self.judged.accuses(situations.SLOT_AHEAD))
        args = {name: slots[name].astype(np.int64) for name, _ in ENDS}
        args["counted"] = np.zeros(len(slots), np.int64)
        times = slots["time"].astype(np.int64)[mine]
        return self._turn_events(times, np.full(len(times), -1), args, mine)

    def _turn_events(self, times: Ints, behind: Ints, args: Mapping[str, Column], reported: Truths) -> StepEvents:
        """Returns the events of slots. `behind`: the unit after which each comes. `args`: filtered by `reported`."""
        about = np.full(len(times), self.judged.end)
        chosen = {name: np.asarray(values)[reported] for name, values in args.items()}
        return StepEvents("turn", times, np.maximum(4 * behind + 1, 0), about, chosen)

    # -- what became of messages ---------------------------------------------------------------------------------

    def _over(self, units: UnitFacts) -> Truths:
        """Returns the mask of units whose time is over: their messages, or later copies, must exist."""
        over = (units.at // self.precision * self.precision < self.files.read) & units.are(HAS_ROW) & ~units.are(AGAIN)
        over &= units.are(HAS_KEY) & (~units.are(CANCELLING) | units.are(ROLLS))
        over &= over_for_sure(self.judged, units.at)
        if self.store.setting("enableSlaveActingMaster"):
            self.judged.note(
                "what became of timers is not judged: enableSlaveActingMaster lets another broker take them"
            )
            over[:] = False
        return over

    def _delivered(self, part: TimerPart, groups: Groups, turn: Ints) -> StepEvents:
        """Returns the events of units whose time is over, with the number of copies."""
        (at,) = np.nonzero(self._over(part.units))
        units = UnitFacts(*(column[at] for column in part.units))
        args = {"copies": _copies(part, groups, units), "cancelled": self._cancelled(part.units, turn, at)}
        return StepEvents("deliver", turn[at], LATER + at, units.message, args)

    def _look_for_late(self, part: TimerPart, groups: Groups, turn: Ints) -> None:
        """Looks for messages that are in no topic, though their time has come, where that is no violation.

        Either the wheel did not turn to that time, or it did, and it is not sure that the broker had to deliver.
        """
        units = part.units
        late = units.are(HAS_ROW) & units.are(HAS_KEY) & ~units.are(AGAIN | CANCELLING | ROLLS)
        late &= (units.at < self.judged.lived.now) & ~self._over(units)
        (at,) = np.nonzero(late)
        waiting = UnitFacts(*(column[at] for column in units))
        (left,) = np.nonzero((_copies(part, groups, waiting) == 0) & ~self._cancelled(units, turn, at))
        if len(left):
            times = waiting.at[left]

            def name(task: int) -> str:
                return f"{TIMERS}/{times[task]}+{waiting.message[left[task]]}"

            OverdueTasks(self.judged, self.options).judge(
                WaitingTasks(
                    TaskKind.TIMER, times, waiting.message[left], max(self.precision, SHORTEST), name, self.judged.lived
                )
            )

    def _cancelled(self, units: UnitFacts, turn: Ints, at: Ints) -> Truths:
        """True if a unit of the same time cancels the message: by its key, with or without its topic."""
        (cancelling,) = np.nonzero(units.are(CANCELLING) & ~units.are(ROLLS) & units.are(HAS_ROW))
        cancelled = np.zeros(len(at), np.bool_)
        if not len(cancelling):
            return cancelled
        by = np.stack([turn[cancelling], units.cancels[cancelling]], axis=1)
        for keys in (units.named, units.key):
            those = np.stack([turn[at], keys[at]], axis=1)
            _, same = np.unique(np.concatenate([by, those]), axis=0, return_inverse=True)
            same = same.reshape(-1)
            cancelled |= np.isin(same[len(by) :], same[: len(by)])
        return cancelled

    def _sought(self, rows: RowFacts, groups: Groups) -> StepEvents:
        """Returns the events of messages that the wheel must have read: each has a unit, or was delivered at once."""
        there = rows.are(IS_NAMED)
        done = rows.are(WAITS) & (rows.number < self.files.committed) & rows.are(HAS_KEY) & (rows.due >= 0)
        done &= there | ~rows.are(CANCELLING)
        if len(there):
            there = there | (groups.out > 0)[groups.group]
        if has_more(Path(self.store.path)):
            self.judged.note(
                "timers may be in rocksdbstore/ too (timerRocksDBEnable): they need no unit in the timer log"
            )
            done &= there
        if not self.judged.accuses(situations.NO_UNIT):
            self.lacking += int((done & ~there).sum())
            done &= there
        (at,) = np.nonzero(done)
        args = {"number": rows.number[at], "there": there[at]}
        return StepEvents("seek", self.parts.turn(rows.due[at]), LAST + at, rows.position[at], args)

    def _name(self, turn: int) -> str:
        return f"{TIMERS}/{int(turn) * self.precision}"


ENDS = (("first", -1), ("last", -1), ("count", 0))  # of a slot, and what stands for them in one of another time


def _copies(part: TimerPart, groups: Groups, units: UnitFacts) -> Ints:
    """Returns the number of copies of each unit's message, which may be among those of another part."""
    here = groups.are_here(units)
    copies = np.zeros(len(units.nth), np.int64)
    copies[here] = groups.copies(UnitFacts(*(column[here] for column in units)))
    if len(part.copies[0]):
        copies[~here] = part.copies[1][part.copies[0].searchsorted(units.nth[~here])]
    return copies


def _last_of(times: Ints, at: Ints, wanted: Ints) -> Ints:
    """Returns for each wanted time the last of the units `at`, which have these times; -1 without one."""
    order = np.argsort(times, kind="stable")
    behind = times[order].searchsorted(wanted, side="right") - 1
    found = np.full(len(wanted), -1)
    there = behind >= 0
    there[there] = times[order][behind[there]] == wanted[there]
    found[there] = at[order][behind[there]]
    return found


LAYOUT = JoinSide(
    TimerWheelJudge,
    needs=frozenset((TIMER_LOG, TIMER_WHEEL)),
    is_present=covered("timer.open"),
)
