"""Events of several kinds in the order in which they took effect."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapless.native import INTS, handed, native
from gapless.spec.catalog import Spec
from gapless.traces.judging.building import Events, Ints

Column = Ints | int
NARROW = 1 << 16
"""Numbers of so small a range are sorted in one pass."""
MANY = 1 << 12
"""Values that native code writes faster."""


class EventOrder:
    """Gathers events of one spec, step by step; those of one step are in order already."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._keys: list[Ints] = []
        self._blocks: list[tuple[str, Mapping[str, Column], int]] = []

    def add(self, action: str, keys: Ints, /, **args: Column) -> None:
        """Add events of one step, with a column for each of its arguments; a number stands for a column of it.

        `keys`: int64, of each event where it comes among all; of equal ones, those come first that were added first.
        """
        if args.keys() != set(self.spec.parameters[action]):
            raise TypeError(f"{action} takes {', '.join(self.spec.parameters[action])}; given: {', '.join(args)}")
        if len(keys):
            self._keys.append(keys)
            self._blocks.append((action, args, len(keys)))

    def events(self, groups: list[Ints] | None = None) -> tuple[Events, Ints, Ints]:
        """Return the events in order, their keys, and their groups: `groups` has those of each block that has events.

        All events of a group lie together, and groups are in the order of their numbers.
        """
        keys = _together(self._keys)
        group = _together(groups) if groups else keys
        order = _order(keys, group)
        places = None if order is None else _inverse(order)
        made, at = _unset(self.spec, len(keys)), 0
        for action, args, count in self._blocks:
            mine = slice(at, at + count) if places is None else places[at : at + count]
            made.action[mine] = self.spec.codes[action]
            for name, values in args.items():
                _put(made.column(name), mine, values)
            at += count
        return (made, keys, group) if order is None else (made, keys[order], group[order])


def _unset(spec: Spec, count: int) -> Events:
    """Room for events. Arguments that a step does not have are not set, and not read."""
    return Events(spec, np.empty(count, np.int8), np.empty((len(spec.arguments), count), np.int64))


def beginnings(column: Ints, before: int) -> Ints:
    """The places at which a column has another number than right before; `before`: the one before the first."""
    first = np.zeros(int(len(column) > 0 and column[0] != before), np.int64)
    later = np.flatnonzero(column[1:] != column[:-1]) + 1
    return np.concatenate([first, later])


def _together(columns: list[Ints]) -> Ints:
    """One column behind the other."""
    if len(columns) == 1:
        return columns[0]
    return np.concatenate(columns) if columns else np.zeros(0, np.int64)


def _order(keys: Ints, group: Ints) -> Ints | None:
    """The order of events by group and key; None if they are in order already."""
    if _is_sorted(keys) and (group is keys or _is_sorted(group)):
        return None
    order = None if _is_sorted(keys) else np.argsort(keys, kind="stable")
    grouped = group if order is None else group[order]
    if group is keys or _is_sorted(grouped):
        return order
    least = grouped.min()
    if grouped.max() - least < NARROW:
        grouped = (grouped - least).astype(np.uint16)
    by_group = np.argsort(grouped, kind="stable")
    return by_group if order is None else order[by_group]


def _inverse(order: Ints) -> Ints:
    """The place to which each event goes, from the event that comes to each place."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


def _is_sorted(column: Ints) -> bool:
    return bool((column[1:] >= column[:-1]).all())


def _put(column: Ints, places: Ints | slice, values: Column) -> None:
    """Write values to places of a column."""
    if isinstance(values, np.ndarray) and isinstance(places, np.ndarray) and len(places) > MANY:
        _put_each(column, places, handed(values))
    else:
        column[places] = values


@native(lambda _column, places, _values: len(places), kinds=(INTS, INTS, INTS))
def _put_each(column: Ints, places: Ints, values: Ints) -> None:
    for i in range(len(places)):
        column[places[i]] = values[i]
