"""The table of halves, as columns by number: a few dozen bytes for each, whatever its message contains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.impl.records.errors import Refused
from gapless.impl.records.record import Ints

UNDECIDED, COMMITTED, ROLLED_BACK, REPLACED, PARKED, GONE = range(6)
"""What has become of a half. Replaced: it was put back, and a newer version stands for it. Gone: it has expired, or is
no half."""
NOT_NAMED, WAITS, NAMED = range(3)
"""Whether an op names a half, or it waits for one."""

KEPT = 1 << 20  # halves that are remembered behind the half cursor
_COLUMNS: dict[str, type[np.integer[Any]]] = {
    "position": np.int64,  # where its record lies
    "time": np.int64,  # ms since 1970, when it was stored; without what the clock was set by since it was opened
    "by": np.int64,  # the position of its final or its copy, or the number of the version that stands for it; or -1
    "size": np.int32,  # bytes of its record
    "group": np.int32,  # the group of its producer, as an index in `groups`; -1 where it has none
    "checks": np.int16,  # how often it was put back
    "status": np.int8,
    "op": np.int8,
}


Column = npt.NDArray[np.integer[Any]]


class HalfTable:
    """The halves from `base` up to `end`, by number; those before `base` are decided, and forgotten."""

    position: npt.NDArray[np.int64]
    time: npt.NDArray[np.int64]
    by: npt.NDArray[np.int64]
    size: npt.NDArray[np.int32]
    group: npt.NDArray[np.int32]
    checks: npt.NDArray[np.int16]
    status: npt.NDArray[np.int8]
    op: npt.NDArray[np.int8]

    def __init__(self, base: int, kept: int = KEPT) -> None:
        self.base = self.end = base
        self.kept = kept
        self.groups: list[str] = []
        self._group_index: dict[str, int] = {}
        for name, kind in _COLUMNS.items():
            setattr(self, name, np.zeros(64, kind))

    def group_index(self, name: str) -> int:
        """The place of a group in `groups`, of which it is from now on."""
        found = self._group_index.get(name)
        if found is None:
            found = self._group_index[name] = len(self.groups)
            self.groups.append(name)
        return found

    def room(self, end: int) -> None:
        """Make room for halves before `end`. Those between are gone until they are added."""
        count, capacity = end - self.base, len(self.status)
        if count > capacity:
            columns = {name: np.zeros(max(count, 2 * capacity), kind) for name, kind in _COLUMNS.items()}
            for name, column in columns.items():
                column[:capacity] = getattr(self, name)
            self.__dict__.update(columns)  # as one step: an interrupt finds all columns of one length
        if end > self.end:
            self.status[self.end - self.base : count] = GONE
            self.end = end

    def add(
        self, numbers: Ints, positions: Ints, sizes: Ints, times: Ints | int, checks: Column | int, groups: Column | int
    ) -> None:
        """Add halves, new and undecided. A second call for the same halves changes nothing."""
        if not len(numbers):
            return
        self.room(int(numbers[-1]) + 1)
        at = numbers - self.base
        for name, column in (
            ("position", positions), ("size", sizes), ("time", times), ("checks", checks), ("group", groups),
            ("by", -1), ("op", NOT_NAMED), ("status", UNDECIDED),
        ):  # fmt: skip
            getattr(self, name)[at] = column

    def add_one(self, number: int, position: int, size: int, time: int, group: int) -> None:
        """Add one half that was never put back."""
        self.room(number + 1)
        at = number - self.base
        self.position[at], self.size[at], self.time[at], self.group[at] = position, size, time, group
        self.checks[at], self.by[at], self.op[at], self.status[at] = 0, -1, NOT_NAMED, UNDECIDED

    def at(self, number: int) -> int:
        """The place of a half in the columns. Raises Refused if it is unknown."""
        if not self.base <= number < self.end:
            if 0 <= number < self.base:
                raise Refused(
                    f"half {number}: it was decided, put back or set aside, and is not remembered any more; only those "
                    f"from {self.base} on are"
                )
            raise Refused(f"half {number}: there is none, expected a number below {self.end}")
        return number - self.base

    def newest(self, number: int) -> int:
        """The newest version of a half. Raises Refused where nothing is known of it."""
        at = self.at(number)
        while self.status[at] == REPLACED:
            at = int(self.by[at]) - self.base
        return at + self.base

    def newest_of(self, numbers: Ints) -> Ints:
        """The newest versions of many halves."""
        if len(numbers):
            self.at(int(numbers.min()))
            self.at(int(numbers.max()))
        while (replaced := self.status[numbers - self.base] == REPLACED).any():
            numbers = numbers.copy()
            numbers[replaced] = self.by[numbers[replaced] - self.base]
        return numbers

    def where(self, chosen: Callable[[slice], npt.NDArray[np.bool_]], low: int) -> Ints:
        """The numbers from `low` on that are chosen: `chosen` is asked with a slice of the columns."""
        first = max(low, self.base)
        found: Ints = np.flatnonzero(chosen(slice(first - self.base, self.end - self.base))) + first
        return found

    def resolved_from(self, number: int) -> int:
        """The first half from `number` on that is not done with: an op names it, another version, or a copy."""
        part = slice(number - self.base, self.end - self.base)
        status = self.status[part]
        open_ = (self.op[part] != NAMED) & (status != REPLACED) & (status != PARKED) & (status != GONE)
        return number + int(open_.argmax()) if open_.any() else self.end

    def forget(self, cursor: int) -> None:
        """Those before the cursor are forgotten but for the last `kept`; now and then, for it costs a copy."""
        count = cursor - self.kept - self.base
        if count <= max(self.kept // 8, 64):
            return
        left = self.end - self.base - count
        columns = {name: np.zeros(max(left, 64), kind) for name, kind in _COLUMNS.items()}
        for name, column in columns.items():
            column[:left] = getattr(self, name)[count : count + left]
        self.__dict__.update(columns, base=self.base + count)
