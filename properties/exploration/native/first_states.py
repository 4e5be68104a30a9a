"""The states in which a native search begins, as columns: of `INITIALS` there may be hundreds of thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.properties.exploration.native.tables import Ints, Tables
from gapless.properties.exploration.packing import LIMIT, WORD, StateLayout
from gapless.spec.catalog import Spec, State
from gapless.spec.reading.map_keys import numbers_of

Entry = tuple[int, tuple[int, ...], int]
"""The number of a state, the numbers of a key, and the value that a Map has there."""


class FirstStates:
    """The first states of a search of a spec, and how they lie in its tables."""

    def __init__(self, spec: Spec, states: Sequence[State]) -> None:
        self.spec, self.states = spec, states

    @cached_property
    def numbers(self) -> Ints:
        """The numbers of the states: [fields, states]."""
        rows = [[int(getattr(state, name)) for state in self.states] for name in self.spec.scalars]
        return np.array(rows, np.int64).reshape(len(rows), len(self.states))

    @cached_property
    def maps(self) -> list[list[Entry]]:
        """The entries of each Map that are not its default."""
        return [
            [
                (number, numbers_of(key), int(value))
                for number, state in enumerate(self.states)
                for key, value in getattr(state, name).entries.items()
            ]
            for name in self.spec.maps
        ]

    @cached_property
    def defaults(self) -> list[int]:
        """The default of each Map."""
        return [int(getattr(self.spec.initial, name).default) for name in self.spec.maps]

    @property
    def keys(self) -> list[int]:
        """The numbers of the keys of the entries."""
        return [part for entries in self.maps for _, key, _ in entries for part in key]

    @property
    def are_small(self) -> bool:
        """True if no number in them is too large to be computed with."""
        return all(-LIMIT < number < LIMIT for number in self._every_number())

    def _every_number(self) -> Iterator[int]:
        yield from self.defaults
        for state in self.states:
            yield from (int(getattr(state, name)) for name in self.spec.scalars)
        for entries in self.maps:
            for _, key, value in entries:
                yield from (*key, value)

    def fit(self, packing: StateLayout) -> bool:
        """True if a packing has room for all of them."""
        for one, values in zip(packing.numbers, self.numbers, strict=True):
            if values.min() < one.least or values.max() > one.least + one.mask:
                return False
        return all(
            0 <= value - one.least <= one.mask and packing.place(key) is not None
            for one, entries in zip(packing.maps, self.maps, strict=True)
            for _, key, value in entries
        )

    def widened(self, packing: StateLayout) -> StateLayout:
        """The packing with room for their values."""
        for row, values in enumerate(self.numbers):
            for value in (int(values.min()), int(values.max())):
                packing = packing.widened(row, value) or packing
        for row, entries in enumerate(self.maps, len(self.numbers)):
            for value in {value for _, _, value in entries}:
                packing = packing.widened(row, value) or packing
        return packing

    def put(self, packing: StateLayout, tables: Tables, within: Callable[[Any], bool]) -> None:
        """Put them into tables, as the states that are met first."""
        count = len(self.states)
        tables.states[:count] = self.packed(packing)
        tables.beyond[:count] = [not within(state) for state in self.states]
        for column in (tables.met_source, tables.met_call, tables.ahead):
            column[:count] = -1
        tables.counts[1] = count

    def packed(self, packing: StateLayout) -> npt.NDArray[np.uint64]:
        """The words of each of them."""
        rows, numbers = packing.rows.tolist(), len(packing.numbers)
        least = [one.least for one in packing.numbers]
        empty = packing.packed(least, [lambda _, value=value: value for value in self.defaults])  # type: ignore[misc]
        made = np.tile(np.array(empty, np.uint64), (len(self.states), 1))
        for (word, shift, least_value, _), values in zip(rows, self.numbers, strict=False):
            made[:, word] |= (values - least_value).astype(np.uint64) << np.uint64(shift)
        for (bit, shift, _, _), entries, default in zip(rows[numbers:], self.maps, self.defaults, strict=True):
            for state, key, value in entries:
                at = bit + ((packing.place(key) or 0) << shift)
                made[state, at // WORD] += np.uint64((value - default) % (1 << WORD)) << np.uint64(at % WORD)
        return made
