"""Units of the timer log and the messages, joined and grouped by their delivery time.

All units of one time of the wheel, and all messages for that time, are in one part; a part is no larger than memory
has room for, unless it is of one time. Units and messages are joined in the order of the log, stretch by stretch.

Source: docs/rocketmq.md#timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import distinct, numbered
from gapless.traces.sources.rocketmq.columns.packed_blocks import PackedBlocks
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.layouts.timer_records import TimerRows
from gapless.traces.sources.rocketmq.layouts.timer_wheel.blame import UNIT_BEYOND
from gapless.traces.sources.rocketmq.layouts.timer_wheel.files import CANCELS, ROLLED, TimerLog, TimerUnits

IN_A_PART = 1 << 17  # units and messages, about
SAMPLED = 64  # of so many messages, the time of one is looked at to make parts
FAR = 1 << 63  # beyond every number of 64 bits
IS_WHOLE, WAITS, MARKED, AGAIN, ROLLS, CANCELLING, HAS_ROW, HAS_KEY, IS_OLD = (1 << bit for bit in range(9))
IS_NAMED = AGAIN  # of messages
JOINED = "position", "size", "waits", "number", "due", "topic", "key", "cancels"  # what is asked of all messages
DIGESTS = "key", "named", "cancels"  # what is asked of the messages of units, where one cancels
Truths = npt.NDArray[np.bool_]


class UnitFacts(NamedTuple):
    """Units, the `nth` of all, and the facts about them.

    Of the message: its time `due`, its `row` among all or -1, and its digests, which are 0 unless a unit cancels some.
    `at`: the unit's own time, in ms · `flags`: `IS_OLD`, it was written long before the wheel; `HAS_ROW`, a message is
    in its place; `WAITS`, it does or cannot be read; `MARKED`, it cancels if the message says so; `AGAIN`, another
    unit before it names the same message.
    """

    nth: Ints
    place: Ints
    before: Ints
    at: Ints
    due: Ints
    message: Ints
    flags: Ints
    row: Ints
    key: Ints
    named: Ints
    cancels: Ints

    def are(self, flag: int) -> Truths:
        """Returns the mask of those with a flag."""
        truths: Truths = self.flags & flag != 0
        return truths


class RowFacts(NamedTuple):
    """Messages with a delivery time. `flags`: `WAITS`, in the broker's topic; `IS_NAMED`, by a unit; `CANCELLING`."""

    nth: Ints
    position: Ints
    number: Ints
    due: Ints
    topic: Ints
    key: Ints
    flags: Ints

    def are(self, flag: int) -> Truths:
        """Returns the mask of those with a flag."""
        truths: Truths = self.flags & flag != 0
        return truths


class TimerPart(NamedTuple):
    """The units and messages of the turns in `low:high`.

    `others`: units of other turns that name messages for these · `copies`: for such units among `units`, by index, the
    results of the parts of their messages.
    """

    units: UnitFacts
    rows: RowFacts
    others: UnitFacts
    copies: Ints
    low: int
    high: int


class TimerParts:
    """The parts of one wheel in the order of their times.

    `settled`: ms; units that were written before are old · `over`: the units that must have been delivered.
    """

    def __init__(
        self,
        judged: StoreFindings,
        log: TimerLog,
        found: PackedBlocks,
        precision: int,
        settled: int,
        over: Callable[[UnitFacts], Truths],
    ) -> None:
        self.settled = settled
        self.judged = judged
        self.log = log
        self.found = found
        self.precision = precision
        self.over = over
        self.units, self.foreign = PackedBlocks(len(UnitFacts._fields)), PackedBlocks(len(UnitFacts._fields))
        self.rows, self.copies = PackedBlocks(len(RowFacts._fields)), PackedBlocks(2)
        self.repeats = False  # whether some message has two units
        self.last: tuple[int, ...] = (0, 0)  # `due` and `cancels` of the last message: those of a unit without one
        self.bounds = self._bounds()
        self._join()
        for part in range(len(self.bounds) + 1):
            if self.foreign.has(part):
                self._report_others(part)

    def __iter__(self) -> Iterator[TimerPart]:
        ends = [-FAR, *self.bounds.tolist(), FAR]
        for part, (low, high) in enumerate(pairwise(ends)):
            yield TimerPart(*self._facts_of(part), _in_order(self.copies.all_of(part)), low, high)

    def _facts_of(self, part: int) -> tuple[UnitFacts, RowFacts, UnitFacts]:
        units, rows, others = (spool.all_of(part) for spool in (self.units, self.rows, self.foreign))
        return UnitFacts(*_in_order(units)), RowFacts(*rows), UnitFacts(*others)

    def turn(self, at: Ints) -> Ints:
        """Returns the turn of the wheel at which something is due."""
        return at // self.precision

    # -- parts -----------------------------------------------------------------------------------------------------

    def _bounds(self) -> Ints:
        """The turns at which all parts except the first begin."""
        due = TimerRows._fields.index("due")
        samples, last = [self.log.sample], None
        for last in self.found.blocks():
            samples.append(last.column(due)[::SAMPLED])
        if last is not None:
            self.last = tuple(int(last.column(TimerRows._fields.index(name))[-1]) for name in ("due", "cancels"))
        parts = (self.log.count + self.found.rows) // IN_A_PART
        sample = np.sort(self.turn(np.concatenate(samples)))
        if not len(sample):
            return sample
        return distinct(sample[np.arange(1, parts + 1) * len(sample) // (parts + 1)])

    def _part(self, at: Ints) -> Ints:
        return self.bounds.searchsorted(self.turn(at), side="right").astype(np.uint32)

    # -- units and their messages --------------------------------------------------------------------------------------

    def _join(self) -> None:
        """Reads the log once, with the units that name its messages."""
        first, reached = 0, -FAR
        wanted = [TimerRows._fields.index(name) for name in (*JOINED, *(DIGESTS if self.log.cancels else ()))]
        # Used again: new pages cost more than all that is done.
        room = np.zeros((self.found.columns, self.found.longest()), np.int64)
        for block in self.found.blocks():
            block.fill(room[:, : block.length], wanted)
            rows = TimerRows(*room[:, : block.length])
            low, end = int(rows.position[0]), int(rows.position[-1]) + 1
            for bound in self._between(reached, low):
                self._add_part(NO_ROWS, first, self.log.naming(reached, bound))
                reached = bound
            self._add_part(rows, first, self.log.naming(reached, end))
            first, reached = first + block.length, end
        for bound in [*self._between(reached, FAR), FAR]:
            self._add_part(NO_ROWS, first, self.log.naming(reached, bound))
            reached = bound

    def _between(self, low: int, high: int) -> list[int]:
        """Returns bounds between two log positions, for there may be many units without a message."""
        return sorted({stretch.low for stretch in self.log.stretches if low < stretch.low < high})

    def _add_part(self, rows: TimerRows, first: int, units: TimerUnits) -> None:
        """Adds consecutive messages, from number `first` on, and the units that name them."""
        row = _rows_of(units, rows)
        (found,) = np.nonzero(row >= 0)
        flags = rows.waits * WAITS + (rows.cancels != 0) * CANCELLING + (rows.key != 0) * HAS_KEY
        flags[row[found]] |= IS_NAMED
        nth = first + np.arange(len(flags))
        facts = RowFacts(nth, rows.position, rows.number, rows.due, rows.topic, rows.key, flags)
        self.rows.spread(facts, self._part(rows.due))
        if not len(row):
            return
        of_units = self._facts(units, row, found, rows, first)
        own = self._part(of_units.at)
        self.units.spread(of_units, own)
        elsewhere = found[self._part(of_units.due[found]) != own[found]]
        self.foreign.spread([column[elsewhere] for column in of_units], self._part(of_units.due[elsewhere]))

    def _facts(self, units: TimerUnits, row: Ints, found: Ints, rows: TimerRows, first: int) -> UnitFacts:
        at = units.written + units.delay
        rolled, cancels = units.magic & ROLLED != 0, units.magic & CANCELS != 0
        has_row, again = row >= 0, _again(units.message) & units.whole
        self.repeats |= bool(again.any())
        unknown = self._unknown(units)
        due, says = np.full(len(row), self.last[0]), np.full(len(row), self.last[1] != 0)
        due[found], says[found] = rows.due[row[found]], rows.cancels[row[found]] != 0
        due = np.where(unknown, at + rolled, due)
        has_key, digests = np.zeros(len(row), np.bool_), np.zeros((3, len(row)), np.int64)
        has_key[found] = rows.key[row[found]] != 0
        if self.log.cancels:
            for into, name in zip(digests, DIGESTS, strict=True):
                into[found] = getattr(rows, name)[row[found]]
        flags = (
            units.whole * IS_WHOLE + (unknown | has_row) * WAITS + (unknown | (says == cancels)) * MARKED
            + again * AGAIN + rolled * ROLLS + cancels * CANCELLING + has_row * HAS_ROW + has_key * HAS_KEY
            + (units.written < self.settled) * IS_OLD
        )  # fmt: skip
        return UnitFacts(
            units.nth, units.place, units.before, at, due, units.message, flags,
            np.where(has_row, first + row, -1), *digests,
        )  # fmt: skip

    def _unknown(self, units: TimerUnits) -> Truths:
        """Returns the mask of units with unreadable messages: expired, or beyond a possibly cut end of the log."""
        beyond = (units.message >= self.judged.end) & (not self.judged.accuses(UNIT_BEYOND))
        return units.whole & ((units.message < self.judged.store.start) | beyond)

    # -- messages as their senders know them ---------------------------------------------------------------------------

    def _report_others(self, part: int) -> None:
        """Sends the copy counts of messages with units of other times to the parts of those units."""
        units, rows, others = self._facts_of(part)
        groups = Groups(rows, units, others, self.over)
        self.copies.spread([others.nth, groups.copies(others)], self._part(others.at))


class Groups:
    """Groups of rows that are one message to its sender: same key, time and topic."""

    def __init__(
        self, rows: RowFacts, units: UnitFacts, others: UnitFacts, over: Callable[[UnitFacts], Truths]
    ) -> None:
        """`units`, `others`: all units that name one of the rows are among them."""
        if len(others.nth):
            units = UnitFacts(*np.concatenate([units, others], axis=1))
        self.nth = rows.nth
        self.group = numbered((rows.topic, rows.due, rows.key))
        self.groups = int(self.group.max(initial=-1)) + 1
        waits = rows.are(WAITS)
        self.waiting, self.out = self._tally(self.group[waits]), self._tally(self.group[~waits])
        (counted,) = np.nonzero(over(units) & self.are_here(units))
        group, rolled = self.of(units.row[counted]), units.are(ROLLS)[counted]
        self.rolls, self.straight = self._tally(group[rolled]), self._tally(group[~rolled])

    def copies(self, units: UnitFacts) -> Ints:
        """Returns the number of copies of the units' messages in their topics; a rolled one may wait again."""
        group, rolled = self.of(units.row), units.are(ROLLS)
        again = self.waiting > self.rolls
        return np.where(rolled, again[group], self.out[group] // np.maximum(self.straight, 1)[group])

    def are_here(self, units: UnitFacts) -> Truths:
        """Returns the mask of units whose messages are among the rows."""
        if not len(self.nth):
            return np.zeros(len(units.row), np.bool_)
        near = np.minimum(self.nth.searchsorted(units.row), len(self.nth) - 1)
        here: Truths = self.nth[near] == units.row
        return here

    def of(self, row: Ints) -> Ints:
        """Returns the group of each row, all of which are known."""
        found: Ints = self.group[self.nth.searchsorted(row)]
        return found

    def _tally(self, groups: Ints) -> Ints:
        """Returns the size of each group."""
        return np.bincount(groups, minlength=self.groups).astype(np.int64)


NO_ROWS = TimerRows(*np.zeros((len(TimerRows._fields), 0), np.int64))


def _rows_of(units: TimerUnits, rows: TimerRows) -> Ints:
    """Returns the row of each unit's message; -1 without a waiting one."""
    (waiting,) = np.nonzero(rows.waits)
    if not len(waiting):
        return np.full(len(units.place), -1)
    positions = rows.position[waiting]
    near = np.minimum(positions.searchsorted(units.message), len(waiting) - 1)
    found = waiting[near]
    same = (rows.position[found] == units.message) & (rows.size[found] == units.length)
    return np.where(same & units.whole, found, -1)


def _again(messages: Ints) -> Truths:
    """Returns the mask of messages that occurred before."""
    again = np.zeros(len(messages), np.bool_)
    if (messages[1:] > messages[:-1]).all():
        return again
    again[:] = True
    again[np.unique(messages, return_index=True)[1]] = False
    return again


def _in_order(columns: Ints) -> Ints:
    """Sorts the columns by the first of them."""
    first = columns[0]
    return columns if (first[1:] > first[:-1]).all() else columns[:, np.argsort(first, kind="stable")]
