"""Events of several kinds in the order in which they took effect."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapless.spec.catalog import Spec
from gapless.traces.judging.building import Events, Ints

Column = Ints | int


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
        keys = np.concatenate(self._keys) if self._keys else np.zeros(0, np.int64)
        order = np.argsort(keys, kind="stable")
        group = keys
        if groups:
            group = np.concatenate(groups)
            order = order[np.argsort(group[order], kind="stable")]
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        made = Events.room(self.spec, len(order))
        at = 0
        for action, args, count in self._blocks:
            mine = place[at : at + count]
            made.action[mine] = self.spec.codes[action]
            for name, values in args.items():
                made.column(name)[mine] = values
            at += count
        return made, keys[order], group[order]
