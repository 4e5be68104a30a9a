"""The timer wheel of a store: each time's chain of units, its slot, and what became of the messages.

Units name messages of the log, which were judged before; here each unit is held against its message, the slot of a time
against its chain, and, where the time is over, its messages against what was delivered. The times of a wheel are traces
of their own.

Source: docs/rocketmq.md#timers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.joining.judged import JudgedStore
from gapless.traces.sources.rocketmq.joining.timer_messages import TimerMessages
from gapless.traces.sources.rocketmq.joining.told import Column, OfStep, judge_told
from gapless.traces.sources.rocketmq.store.bytes import Ints
from gapless.traces.sources.rocketmq.store.lookup import distinct, numbered
from gapless.traces.sources.rocketmq.store.names import TIMER_TOPIC
from gapless.traces.sources.rocketmq.store.settings import is_slave, number_set
from gapless.traces.sources.rocketmq.store.timer_files import (
    CANCELS,
    ROLLED,
    SLOTS,
    UNIT,
    TimerFiles,
    Units,
    has_more,
    precision_of,
    timer_files,
    units_of_log,
    wheel_of,
)
from gapless.traces.sources.rocketmq.store.timer_records import TimerRows
from gapless.traces.sources.rocketmq.store.wanted import TIMERS, wants_timers

FIRST, LATER, LAST = -1, 1 << 60, 1 << 61  # where events stand among the units of their time
DURING = 60_000  # ms: what was to be delivered just before a crash may not have been on disk
SETTLED = 5_000  # ms, and several rounds of flushing: after that, all is on disk
ROUNDS = 3
OF_UNIT = ("before", "magic", "written", "delay", "message", "length")
Truths = npt.NDArray[np.bool_]


class JoinedTimers:
    """The timers of a store whose log and queues were judged."""

    def __init__(self, judged: JudgedStore, options: Options, messages: TimerMessages) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.messages = messages

    def hold(self) -> None:
        """Judge the wheel, if the store has one."""
        files = timer_files(Path(self.store.path), self.store.settings) if wants_timers(self.options) else None
        if files is None:
            if (TIMER_TOPIC, 0) in self.judged.queues and wants_timers(self.options):
                self.judged.note(
                    "there are messages that wait for their time, and no timerlog/: the timer wheel is not judged"
                )
            return
        if self.store.live:
            self.judged.note("the timer wheel is not judged: a broker is running on this store")
            return
        rows, reached = self.messages.rows()
        if reached < self.judged.end or self.judged.damage:
            self.judged.note("the timer wheel is not judged: the log that it is about is damaged")
            return
        Wheel(self.judged, self.options, files, rows).hold()


class Wheel:
    """One wheel, with the messages that it is about."""

    def __init__(self, judged: JudgedStore, options: Options, files: TimerFiles, rows: TimerRows) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.files = files
        self.rows = rows
        units, self.places, self.whole = units_of_log(files)
        self.units = {name: units[name].astype(np.int64) for name in OF_UNIT}
        self.slots = None if files.why_not else wheel_of(files)
        self.precision = precision_of(self.store.settings, units, self.slots)
        if self.slots is None:
            judged.note(f"timerwheel is not judged: {files.why_not}")

    def hold(self) -> None:
        """Judge every time of the wheel."""
        told = [self._scheduled(), *self._turns(), self._delivered(), self._sought()]
        times = distinct(np.concatenate([some.traces for some in told]))
        if self.options.trace is not None:
            times = times[[self._name(time) == self.options.trace for time in times]]
            told = [some.only(times) for some in told]
        opened = OfStep(
            "open", times, np.full(len(times), FIRST), np.full(len(times), self.judged.end),
            {"start": np.full(len(times), self.files.start)},
        )  # fmt: skip
        judge_told(self.judged, self.options, "timer", [opened, *told], times, self._name)
        count = len(self.places)
        self.judged.note(f"the timer log has {count:,} unit{'s' * (count != 1)}, of {len(times):,} times in all")

    # -- units -----------------------------------------------------------------------------------------------------

    @cached_property
    def at(self) -> Ints:
        """When each unit is due, in ms."""
        return self.units["written"] + self.units["delay"]

    @cached_property
    def turn(self) -> Ints:
        """The turn of the wheel at which each unit is due."""
        return self.at // self.precision

    @cached_property
    def row(self) -> Ints:
        """The message of each unit, by its row; -1 where none that waits lies there."""
        (waiting,) = np.nonzero(self.rows.waits)
        if not len(waiting):
            return np.full(len(self.places), -1)
        positions = self.rows.position[waiting]
        near = np.minimum(positions.searchsorted(self.units["message"]), len(waiting) - 1)
        found = waiting[near]
        same = (self.rows.position[found] == self.units["message"]) & (self.rows.size[found] == self.units["length"])
        return np.where(same & self.whole, found, -1)

    @cached_property
    def unknown(self) -> Truths:
        """Units of messages that nobody can look at: expired, or beyond the end of a log that a crash may have cut."""
        cut = not self.store.clean or not self.store.first_life
        beyond = (self.units["message"] >= self.judged.end) & cut
        return self.whole & ((self.units["message"] < self.store.start) | beyond)

    @cached_property
    def again(self) -> Truths:
        """Units that are not the first of their message."""
        _, first = np.unique(self.units["message"], return_index=True)
        again = np.ones(len(self.places), np.bool_)
        again[first] = False
        return again & self.whole

    @cached_property
    def rolled(self) -> Truths:
        """Units whose message is written again when their time comes."""
        rolled: Truths = self.units["magic"] & ROLLED != 0
        return rolled

    @cached_property
    def cancels(self) -> Truths:
        """Units whose message cancels another."""
        cancels: Truths = self.units["magic"] & CANCELS != 0
        return cancels

    def _scheduled(self) -> OfStep:
        due = np.where(self.unknown, self.at + self.rolled, self.rows.due[self.row] if len(self.rows.due) else 0)
        says = self.rows.cancels[self.row] != 0 if len(self.rows.due) else np.zeros(len(self.places), np.bool_)
        args = {
            "position": self.places, "before": self.units["before"], "time": self.at, "due": due,
            "rolled": self.rolled, "cancels": self.cancels, "whole": self.whole,
            "waits": self.unknown | (self.row >= 0), "marked": self.unknown | (says == self.cancels),
            "again": self.again,
        }  # fmt: skip
        return OfStep("schedule", self.turn, 4 * np.arange(len(self.places)), self.units["message"], args)

    # -- the wheel -------------------------------------------------------------------------------------------------

    def _turns(self) -> list[OfStep]:
        """The slots of all times that are not over."""
        if self.slots is None:
            return []
        pending, newest = np.unique(self.turn[::-1], return_index=True)  # of each time, the last unit
        newest = len(self.turn) - 1 - newest
        mine = (pending * self.precision >= self.files.read) & self.whole[newest]
        pending = pending[mine]
        slots = self.slots[pending % SLOTS]
        is_its_own = slots["time"] == pending
        first, last, count = (np.where(is_its_own, slots[name], none) for name, none in ENDS)
        known = self._known
        needed = _last_of(self.turn[known], np.flatnonzero(known), pending)
        behind = np.minimum(self.places.searchsorted(last), len(self.places) - 1)
        stands = (last >= 0) & (self.places[behind] == last) & (self.turn[behind] == pending) & (behind >= needed)
        end = self.places[-1] if len(self.places) else -1  # a log without units, though slots name some
        ahead = (last > end) & (not self.store.clean or not self.store.first_life)
        told = (stands | (needed >= 0)) & ~ahead
        counted = stands & known[behind] & (self.files.start == 0) & self.store.first_life & ~self._repeats
        args = {"first": first, "last": last, "count": count, "counted": counted}
        own = self._told_turns(pending, np.where(stands, behind, needed), args, told)
        return [own, self._without_units(self.slots)]

    @property
    def _known(self) -> Truths:
        """Units that the wheel was told of before it was written: all that were on disk then.

        Of the newest, the slot may have been missed: a unit is on disk just before its slot is made.
        """
        interval = number_set(self.store.settings, "timerFlushIntervalMs")
        settled = self.files.read - max(SETTLED, ROUNDS * interval)
        on_disk = self.places < self.files.flushed
        is_newest = self.places + UNIT.itemsize >= self.files.flushed
        known: Truths = on_disk & (~is_newest | (self.units["written"] < settled))
        return known

    @property
    def _repeats(self) -> bool:
        """Whether something shows that the broker was started again."""
        return bool(self.again.any())

    def _without_units(self, slots: Units) -> OfStep:
        """Slots of times that are not over and have no unit in the log."""
        times = np.asarray(slots["time"]).astype(np.int64)
        (there,) = np.nonzero((times > 0) & (times * self.precision >= self.files.read))
        there = there[~np.isin(times[there], self.turn)]
        last = slots["last"][there].astype(np.int64)
        end = int(self.places[-1]) + UNIT.itemsize if len(self.places) else self.files.start
        cut = not self.store.clean or not self.store.first_life
        there = there[(last >= self.files.start) & ((last < end) | (not cut))]
        args = {name: slots[name][there].astype(np.int64) for name, _ in ENDS}
        args["counted"] = np.zeros(len(there), np.int64)
        return self._told_turns(times[there], np.full(len(there), -1), args, np.ones(len(there), np.bool_))

    def _told_turns(self, times: Ints, behind: Ints, args: Mapping[str, Column], told: Truths) -> OfStep:
        ranks = 4 * behind[told] + 1
        about = np.full(len(ranks), self.judged.end)
        return OfStep(
            "turn", times[told], np.maximum(ranks, 0), about, {n: np.asarray(v)[told] for n, v in args.items()}
        )

    # -- what became of messages ---------------------------------------------------------------------------------

    @cached_property
    def group(self) -> Ints:
        """Rows that are one message as its sender knows it: with one key, one time, one topic."""
        return numbered((self.rows.topic, self.rows.due, self.rows.key))

    def _tally(self, which: Truths) -> Ints:
        """How many of some rows there are in each group."""
        groups = int(self.group.max(initial=-1)) + 1
        return np.bincount(self.group[which], minlength=groups).astype(np.int64)

    def _delivered(self) -> OfStep:
        """Units whose time is over: their messages, or those that were written again for a later time."""
        over = (self.turn * self.precision < self.files.read) & (self.row >= 0) & ~self.again
        over &= ~self.cancels | self.rolled
        if not (self.store.clean and self._is_master):
            known = self.store.checkpoint
            over &= self.at < (known.log - DURING if known else 0)
        if self.store.setting("enableSlaveActingMaster"):
            self.judged.note(
                "what became of timers is not judged: enableSlaveActingMaster lets another broker take them"
            )
            over[:] = False
        (at,) = np.nonzero(over)
        rows = self.row[at]
        keyed = self.rows.key[rows] != 0
        at, rows = at[keyed], rows[keyed]
        group, rolled = self.group[rows], self.rolled[at]
        waiting, out = self._tally(self.rows.waits == 1), self._tally(self.rows.waits == 0)
        groups = len(waiting)
        rolls = np.bincount(group[rolled], minlength=groups)
        straight = np.bincount(group[~rolled], minlength=groups)
        copies = np.where(rolled, (waiting > rolls)[group], out[group] // np.maximum(straight, 1)[group])
        args = {"copies": copies, "cancelled": self._cancelled(at, rows)}
        return OfStep("deliver", self.turn[at], LATER + at, self.rows.position[rows], args)

    @property
    def _is_master(self) -> bool:
        """Whether the settings say that it is a master: a slave may know a time to be over before it has copies."""
        settings = self.store.settings
        return bool(settings) and not is_slave(settings)

    def _cancelled(self, at: Ints, rows: Ints) -> Truths:
        """Whether a unit of the same time cancels the message: it is named by its key, and by its topic too or not."""
        (cancelling,) = np.nonzero(self.cancels & ~self.rolled & (self.row >= 0))
        if not len(cancelling):
            return np.zeros(len(at), np.bool_)
        by = np.stack([self.turn[cancelling], self.rows.cancels[self.row[cancelling]]], axis=1)
        cancelled = np.zeros(len(at), np.bool_)
        for keys in (self.rows.named, self.rows.key):
            those = np.stack([self.turn[at], keys[rows]], axis=1)
            _, same = np.unique(np.concatenate([by, those]), axis=0, return_inverse=True)
            same = same.reshape(-1)
            cancelled |= np.isin(same[len(by) :], same[: len(by)])
        return cancelled

    def _sought(self) -> OfStep:
        """Messages that the broker is done with writing into the wheel: each has a unit, or was handed on at once."""
        rows = self.rows
        done = (rows.waits == 1) & (rows.number < self.files.committed) & (rows.key != 0) & (rows.due >= 0)
        named = np.zeros(len(rows.waits), np.bool_)
        named[self.row[self.row >= 0]] = True
        done &= named | (rows.cancels == 0)
        there = named.copy()
        if len(there):
            handed_on = self._tally(rows.waits == 0) > 0
            there |= handed_on[self.group]
        if has_more(Path(self.store.path)):
            self.judged.note(
                "timers may be in rocksdbstore/ too (timerRocksDBEnable): they need no unit in the timer log"
            )
            done &= there
        if not self.store.clean and (lacking := int((done & ~there).sum())):
            self.judged.doubt(
                f"{lacking:,} message{'s wait' if lacking > 1 else ' waits'} for {'their' if lacking > 1 else 'its'} "
                "time and no unit of the timer log names them: legal if the power was lost, for the next start writes "
                "them again; damage otherwise"
            )
            done &= there
        (at,) = np.nonzero(done)
        args = {"number": rows.number[at], "there": there[at]}
        return OfStep("seek", rows.due[at] // self.precision, LAST + at, rows.position[at], args)

    def _name(self, turn: int) -> str:
        return f"{TIMERS}/{int(turn) * self.precision}"


ENDS = (("first", -1), ("last", -1), ("count", 0))  # of a slot, and what stands for them in one of another time


def _last_of(times: Ints, at: Ints, wanted: Ints) -> Ints:
    """Of each wanted time, the last of the units `at`, which have these times; -1 where there is none."""
    order = np.argsort(times, kind="stable")
    behind = times[order].searchsorted(wanted, side="right") - 1
    found = np.full(len(wanted), -1)
    there = behind >= 0
    there[there] = times[order][behind[there]] == wanted[there]
    found[there] = at[order][behind[there]]
    return found
