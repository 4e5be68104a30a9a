"""The columns of windows: which of them has which Map of a spec, and the values that are in them at first.

A Map of one key has one column, a row for each key of the window. One of two keys has three, of a table (`loop.py`):
its values, and both keys of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import immutables
import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import Spec
from gapless.spec.reading.map_keys import key_counts
from gapless.traces.replay.loop import FREE

TABLE = 3  # columns of a Map of two keys

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MapColumns:
    """The columns of a spec's Maps: the first one of each by its name, those of one key before those of two.

    `singles`, `pairs`: the Maps of one key, and of two · `defaults`: of all columns.
    """

    singles: tuple[str, ...]
    pairs: tuple[str, ...]
    of: Mapping[str, int]
    defaults: Ints

    def __len__(self) -> int:
        return len(self.defaults)

    def elements(self, name: str, values: Ints, origin: int) -> immutables.Map[Any, int]:
        """The elements of a Map that differ from its default. `values`: int64 [columns, rows], of one trace."""
        column = self.of[name]
        (rows,) = np.nonzero(values[column] != self.defaults[column])
        if name in self.pairs:
            (rows,) = np.nonzero((values[column] != self.defaults[column]) & (values[column + 1] != FREE))
            keys: Any = zip(values[column + 1, rows].tolist(), values[column + 2, rows].tolist(), strict=True)
        else:
            keys = (rows + origin).tolist()
        return immutables.Map(zip(keys, values[column, rows].tolist(), strict=True))

    def used(self, values: Ints, starts: Ints) -> Ints:
        """The number of elements in the fullest table of each trace. `values`: int64 [columns, cells]."""
        most = np.zeros(len(starts) - 1, np.int64)
        for name in self.pairs:
            before = np.concatenate([np.zeros(1, np.int64), np.cumsum(values[self.of[name] + 1] != FREE)])
            np.maximum(most, before[starts[1:]] - before[starts[:-1]], out=most)
        return most


@cache
def columns_of(spec: Spec) -> MapColumns:
    """The columns of a spec's Maps."""
    counts = key_counts(type(spec.initial))
    singles = tuple(name for name in spec.maps if counts[name] == 1)
    pairs = tuple(name for name in spec.maps if counts[name] == 2)
    first = {name: column for column, name in enumerate(singles)}
    first |= {name: len(singles) + TABLE * number for number, name in enumerate(pairs)}
    default = {name: int(getattr(spec.initial, name).default) for name in spec.maps}
    defaults = [default[name] for name in singles] + [one for name in pairs for one in (default[name], FREE, 0)]
    return MapColumns(singles, pairs, first, np.array(defaults, np.int64))
