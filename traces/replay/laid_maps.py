"""Maps of a state whose elements lie in the column of a kernel: plain functions read them there, and copy none."""

from __future__ import annotations

from typing import Any

import immutables
import numpy as np

from gapless.spec.language import Map
from gapless.traces.replay.kernels import Numbers


class LaidMap(Map[int, int]):
    """A Map as it lies in a column now, and what a step has written to it. `entries`: the elements that differ.

    It is valid until the column changes.
    """

    __slots__ = ("column", "origin")

    column: Numbers
    origin: int

    def __init__(
        self, default: int, column: Numbers, origin: int, entries: immutables.Map[int, int] | None = None
    ) -> None:
        super().__init__(default, immutables.Map() if entries is None else entries)
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "origin", origin)

    def __getitem__(self, key: int) -> int:
        found = self.entries.get(key)
        return self._lying(key) if found is None else found

    def _lying(self, key: int) -> int:
        """Return the element in the column."""
        place = key - self.origin
        return int(self.column[place]) if 0 <= place < len(self.column) else self.default

    def set(self, key: int, value: int) -> LaidMap:
        """The same Map, but for the value at `key`."""
        if value != self._lying(key):
            return self._with(self.entries.set(key, value))
        return self._with(self.entries.delete(key)) if key in self.entries else self

    def cleared(self) -> LaidMap:
        """The Map that has its default everywhere."""
        return self._with(immutables.Map(self._defaults(0)))

    def forget_from(self, low: int) -> LaidMap:
        """The Map that has its default from `low` on."""
        kept = {key: value for key, value in self.entries.items() if key < low}
        return self._with(immutables.Map({**kept, **self._defaults(max(low - self.origin, 0))}))

    def _defaults(self, place: int) -> dict[int, int]:
        """The default, for each key from a place on that lies in the column with another value."""
        (others,) = np.nonzero(self.column[place:] != int(self.default))
        return dict.fromkeys((others + place + self.origin).tolist(), self.default)

    def _with(self, entries: immutables.Map[int, int]) -> LaidMap:
        return LaidMap(self.default, self.column, self.origin, entries)

    def __eq__(self, other: object) -> Any:
        raise TypeError("only the elements of a Map that lies in a column are compared")

    __hash__ = None  # type: ignore[assignment]
