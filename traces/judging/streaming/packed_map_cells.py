"""Elements of the Maps of open traces, in the narrowest integers.

A Map may have an element for every number that a trace ever had. Steps mostly look at the last of them: elements far
below are stored as cold cells, which cost nothing, until a step looks there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import Spec
from gapless.traces.replay.kernels import Cells, Ints
from gapless.traces.replay.map_columns import columns_of

LONG = 1 << 14  # keys in a window, above which the lowest become cold
AT_HAND = 1 << 12  # keys of such a window that stay hot
LEFT = 1 << 20  # unused cells that are released together
NARROW = (np.int8, np.int16, np.int32, np.int64)


class ColdCells(NamedTuple):
    """Cells of one trace below its hot ones: for each Map, from key `origin` on."""

    origin: int
    values: list[npt.NDArray[Any]]


class PackedMapCells:
    """The cells of all open traces of a spec, by the row of each."""

    def __init__(self, spec: Spec) -> None:
        columns = columns_of(spec)
        self.is_cut = not columns.pairs  # the rows of a table stay together
        self.values: list[npt.NDArray[Any]] = [np.zeros(0, np.int8) for _ in range(len(columns))]
        self.origin, self.at, self.width = np.zeros((3, 0), np.int64)
        self.cold: dict[int, list[ColdCells]] = {}

    def grow(self, count: int) -> None:
        """Make room for so many traces more, with empty Maps."""
        none = np.zeros(count, np.int64)
        self.origin, self.at, self.width = (np.concatenate([c, none]) for c in (self.origin, self.at, self.width))

    def of(self, places: Ints) -> Cells:
        """Return the hot cells of some traces."""
        where, starts = self._where(places)
        values = np.zeros((len(self.values), int(starts[-1])), np.int64)
        for row, column in enumerate(self.values):
            values[row] = column[where]
        return Cells(self.origin[places], starts, values, np.isin(places, np.array(list(self.cold), np.int64)))

    def whole(self, places: Ints) -> Cells:
        """Return all cells of some traces."""
        at_hand, origins, values = self.of(places), self.origin[places].copy(), []
        for number, place in enumerate(places.tolist()):
            parts = [np.array(part.values, np.int64) for part in self.cold.get(place, ())]
            parts.append(at_hand.values[:, at_hand.starts[number] : at_hand.starts[number + 1]])
            values.append(np.concatenate(parts, axis=1))
            if place in self.cold:
                origins[number] = self.cold[place][0].origin
        starts = np.cumsum([0, *(part.shape[1] for part in values)], dtype=np.int64)
        return Cells(origins, starts, np.concatenate(values, axis=1), np.zeros(len(places), np.bool_))

    def put(self, places: Ints, cells: Cells, *, whole: bool) -> None:
        """Store the hot cells of some traces, or the `whole` of them."""
        end = len(self.values[0]) if self.values else 0
        for row, column in enumerate(self.values):
            self.values[row] = np.concatenate([column, _narrow(cells.values[row])])
        self.origin[places], self.width[places], self.at[places] = cells.origins, cells.widths, end + cells.starts[:-1]
        for place in places.tolist() if whole else ():
            self.cold.pop(place, None)

    def forget(self, places: Ints) -> None:
        """Drop the cells of these traces: they are not needed again."""
        self.width[places] = 0
        for place in self.cold.keys() & set(places.tolist()) if self.cold else ():
            del self.cold[place]

    def tidy(self) -> None:
        """Move low cells to the cold ones, and release replaced cells, if that is worth it."""
        for place in np.flatnonzero(self.width > LONG).tolist() if self.is_cut else ():
            low, cut = int(self.at[place]), int(self.width[place]) - AT_HAND
            below = ColdCells(int(self.origin[place]), [_once(column[low : low + cut]) for column in self.values])
            self.cold.setdefault(place, []).append(below)
            self.at[place] += cut
            self.origin[place] += cut
            self.width[place] = AT_HAND
        if self.values and len(self.values[0]) > 2 * int(self.width.sum()) + LEFT:
            where, starts = self._where(np.arange(len(self.width)))
            self.values = [column[where] for column in self.values]
            self.at = starts[:-1].copy()

    def _where(self, places: Ints) -> tuple[Ints, Ints]:
        widths = self.width[places]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])
        return np.repeat(self.at[places] - starts[:-1], widths) + np.arange(starts[-1]), starts


def _once(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the same integers; if all are equal, as behind most workers, memory contains one of them."""
    alike = bool((column == column[0]).all())
    return np.broadcast_to(_narrow(column[:1]), len(column)) if alike else _narrow(column)


def _narrow(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert the integers to the narrowest type."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    return column.astype(next(k for k in NARROW if np.iinfo(k).min <= low and high <= np.iinfo(k).max))
