"""The packing of a native search's states into 64-bit words: a number has as few bits as it has needed so far.

The values of a Map lie side by side, each in a power of two of bits, so that none lies in two words. The highest bit of
a state of one word is set: no such state is 0. Where a value does
not fit, there is another packing with room for it, and the search begins again: that happens early, while it is small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

LIMIT = 2**60  # beyond which no number of a state is packed
WORD = 64  # bits
WIDEST = 62  # bits: of a field with values between -LIMIT and LIMIT
LINE = 8  # places of the table of states in a line of the processor's cache, where a state of one word lies in each
OUT = 0x7FFF_FFFF  # the farthest state, of one from which a step leads beyond the bound


@dataclass(frozen=True)
class PackedField:
    """The values that a number may have, or those of a Map: from `least` on, as many as fit into `bits`."""

    least: int
    bits: int

    @classmethod
    def holding(cls, value: int) -> PackedField:
        """One for a value, and the next few."""
        return cls(value, 1)

    @property
    def mask(self) -> int:
        """The greatest value, less the least."""
        return (1 << self.bits) - 1

    def widened(self, value: int) -> PackedField:
        """One that holds a value more."""
        least, greatest = min(self.least, value), max(self.least + self.mask, value)
        return PackedField(least, max(self.bits, (greatest - least).bit_length()))


def _around(raw: npt.NDArray[np.uint64], least: int) -> PackedField:
    low, high = int(raw.min()), int(raw.max())
    return PackedField(least + low, max((high - low).bit_length(), 1))


@dataclass(frozen=True)
class StateLayout:
    """The place of each number and each Map of a state, the Maps with so many keys from `origin` on.

    `pairs`: of each Map, whether it has two keys. Then there is a place for each two of these keys, row by row.
    """

    numbers: tuple[PackedField, ...]
    maps: tuple[PackedField, ...]
    origin: int
    width: int
    pairs: tuple[bool, ...]
    kinds: tuple[Any, ...]
    """The type of each: what a number of a kind needs, all of its kind will, but for plain integers."""

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The constants of native code: [fields, 4], word or first bit, shift, least value and mask."""
        return self._placed[0]

    @property
    def words(self) -> int:
        """The number of words that a state takes."""
        return self._placed[1]

    @cached_property
    def _placed(self) -> tuple[npt.NDArray[np.int64], int]:
        rows = np.zeros((len(self.numbers) + len(self.maps), 4), np.int64)
        end = 0
        for m in sorted(range(len(self.maps)), key=lambda m: -self.maps[m].bits):  # so that each begins at its multiple
            each, shift = self.maps[m], (self.maps[m].bits - 1).bit_length()
            rows[len(self.numbers) + m] = end, shift, each.least, each.mask
            end += self.places(m) << shift
        free = [0] * (end // WORD) + ([WORD - end % WORD] if end % WORD else [])
        for n in sorted(range(len(self.numbers)), key=lambda n: -self.numbers[n].bits):
            each = self.numbers[n]
            word = next((w for w, room in enumerate(free) if room >= each.bits), len(free))
            free += [WORD] * (word == len(free))
            rows[n] = word, WORD - free[word], each.least, each.mask
            free[word] -= each.bits
        return rows, 2 if free == [0] else max(len(free), 1)

    def widened(self, field: int, value: int) -> StateLayout | None:
        """One with room for a value, in all fields of a kind; none where it is too large to be computed with."""
        if not -LIMIT < value < LIMIT:
            return None
        every = [*self.numbers, *self.maps]
        every = [
            one.widened(value)
            if n == field or (self.kinds[n] is not int and self.kinds[n] is self.kinds[field])
            else one
            for n, one in enumerate(every)
        ]
        return replace(self, numbers=tuple(every[: len(self.numbers)]), maps=tuple(every[len(self.numbers) :]))

    def roomier(self) -> StateLayout:
        """One with room for values that were not met yet."""
        numbers = tuple(PackedField(one.least, min(one.bits + 2, WIDEST)) for one in self.numbers)
        maps = tuple(PackedField(one.least, min(one.bits + 1, WIDEST)) for one in self.maps)
        return replace(self, numbers=numbers, maps=maps)

    def fitting(self, states: npt.NDArray[np.uint64]) -> StateLayout:
        """One that has room for these states, and for nothing more."""
        rows = self.rows.tolist()
        numbers = []
        for word, shift, least, mask in rows[: len(self.numbers)]:
            numbers.append(_around((states[:, word] >> np.uint64(shift)) & np.uint64(mask), least))
        maps, used = [], [0, *([-self.origin] if self.maps else [])]
        for m, (bit, shift, least, mask) in enumerate(rows[len(self.numbers) :]):
            values = []
            for place in range(self.places(m)):
                word, at = divmod(bit + (place << shift), WORD)
                values.append((states[:, word] >> np.uint64(at)) & np.uint64(mask))
                if (values[-1] != values[-1][0]).any():
                    used += divmod(place, self.width) if self.pairs[m] else [place]
            maps.append(_around(np.array([(one.min(), one.max()) for one in values]), least))
        first, last = min(used), max(used)
        return replace(
            self, numbers=tuple(numbers), maps=tuple(maps), origin=self.origin + first, width=last + 1 - first
        )

    def places(self, m: int) -> int:
        """The number of places of a Map."""
        return self.width**2 if self.pairs[m] else self.width

    @property
    def most_places(self) -> int:
        """The number of places of the Map that has the most."""
        return max(map(self.places, range(len(self.maps))), default=0)

    def keys(self, m: int) -> list[Any]:
        """The keys of a Map, in the order of their places."""
        each = range(self.origin, self.origin + self.width)
        return list(product(each, repeat=2) if self.pairs[m] else each)

    def place(self, key: Sequence[int]) -> int | None:
        """The place of a key, given by its numbers; None where there is none."""
        place = 0
        for part in key:
            if not 0 <= part - self.origin < self.width:
                return None
            place = place * self.width + part - self.origin
        return place

    def with_keys(self, origin: int, width: int) -> StateLayout:
        """One with other keys."""
        return replace(self, origin=origin, width=width)

    def packed(self, numbers: Sequence[int], maps: Sequence[Callable[[Any], int]]) -> list[int]:
        """The words of a state, its Maps given by the value at each key."""
        rows, made = self.rows.tolist(), [0] * self.words
        made[0] |= self.words == 1 and 1 << (WORD - 1)
        for (word, shift, least, _), value in zip(rows, numbers, strict=False):
            made[word] |= (value - least) << shift
        for m, ((bit, shift, least, _), value_at) in enumerate(zip(rows[len(self.numbers) :], maps, strict=True)):
            for place, key in enumerate(self.keys(m)):
                at = bit + (place << shift)
                made[at // WORD] |= (value_at(key) - least) << at % WORD
        return made

    def mask_of(self, wanted: Sequence[bool]) -> npt.NDArray[np.uint64]:
        """The bits of a state in which the wanted fields lie, numbers before Maps, word by word."""
        made = [0] * self.words
        for n, (at, shift, _, mask) in enumerate(self.rows.tolist()):
            if not wanted[n]:
                continue
            if n < len(self.numbers):
                made[at] |= mask << shift
                continue
            for place in range(self.places(n - len(self.numbers))):
                bit = at + (place << shift)
                made[bit // WORD] |= mask << bit % WORD
        return np.array(made, np.uint64)

    def unpacked(self, words: Sequence[int]) -> tuple[list[int], list[list[int]]]:
        """The numbers of a state, and the values of its Maps, key by key."""
        rows = self.rows.tolist()
        numbers = [(words[word] >> shift & mask) + least for word, shift, least, mask in rows[: len(self.numbers)]]
        maps = []
        for m, (bit, shift, least, mask) in enumerate(rows[len(self.numbers) :]):
            places = (bit + (place << shift) for place in range(self.places(m)))
            maps.append([(words[at // WORD] >> at % WORD & mask) + least for at in places])
        return numbers, maps
