"""The results of a native search, as arrays; and the part of it that is kept on disk."""

from __future__ import annotations

import ast
import json
import mmap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.native import Function, digest_of
from gapless.native.objects.cache import cache_folder, write_whole
from gapless.native.outlines import outline_of
from gapless.properties.exploration.packing import LINE, PackedField, StateLayout
from gapless.spec.catalog import Spec
from gapless.spec.reading.map_keys import numbers_of

Ints = npt.NDArray[np.int64]
FIRST = 1 << 12  # states for which there is room in the beginning
LARGE, PAGE = 1 << 18, 1 << 21  # bytes from which memory comes from the system, and of a large page


@dataclass
class Tables:
    """The results of a search: states by number, and a table that finds them by their hash.

    `states`: uint64 [n, words], packed · `slots`, `places`: that table · `ahead`: the farthest state that a step leads
    to; -1 where there is none · `accepted`: how often each action was, in each way.
    """

    states: npt.NDArray[np.uint64]
    slots: npt.NDArray[np.uint64]
    places: npt.NDArray[np.int32]
    met_source: npt.NDArray[np.int32]
    met_call: npt.NDArray[np.int32]
    beyond: npt.NDArray[np.bool_]
    ahead: npt.NDArray[np.int32]
    accepted: Ints
    refused: Ints
    counts: Ints = field(default_factory=lambda: np.array([0, 1, 0, 0, 0], np.int64))
    """The numbers of states that are explored and met, and of accepted calls; the state where something is broken; the
    number of calls that lead to states within the bound."""

    @classmethod
    def new(cls, packing: StateLayout, kinds: int, reasons: int, room: int = 0, *, whole: bool = True) -> Tables:
        """Room for the first states, or for as many as are expected; `whole`: and for how each of them was met."""
        room = max(room, FIRST)
        traced = room if whole else 1
        made = cls(
            states=zeros(np.uint64, room, packing.words),
            slots=zeros(np.uint64, 0),
            places=zeros(np.int32, 0),
            met_source=zeros(np.int32, traced),
            met_call=zeros(np.int32, traced),
            beyond=zeros(np.bool_, room),
            ahead=zeros(np.int32, room),
            accepted=np.zeros(kinds, np.int64),
            refused=np.zeros(reasons + 1, np.int64),
        )
        made.met_source[0] = made.met_call[0] = made.ahead[0] = -1
        made.empty_table(3 * room // 2)
        return made

    def empty_table(self, least: int) -> None:
        """A table with so many places at least, all free."""
        slots, alone = _power(least), self.states.shape[1] == 1
        self.slots, self.places = _lines(slots), zeros(np.int32, slots if alone else 0)

    def make_room(self, more: int, native: Mapping[str, Function]) -> None:
        """For so many more states."""
        met = int(self.counts[1])
        if met + more > len(self.states):
            room = max(2 * len(self.states), met + more)
            for name in ("states", "met_source", "met_call", "beyond", "ahead"):
                if len(getattr(self, name)) > 1:
                    setattr(self, name, longer(getattr(self, name), room))
        if 4 * (met + more) > 3 * len(self.slots):
            self.empty_table(3 * (met + more))
            self.fill_slots(native)

    @property
    def mask(self) -> int:
        """The greatest number that a line of the table has, or where states have more words than one, a place."""
        return (len(self.slots) // LINE if self.states.shape[1] == 1 else len(self.slots)) - 1

    def fill_slots(self, native: Mapping[str, Function]) -> None:
        """Tell the table of all states."""
        native["fill_slots"](self.states.reshape(-1), int(self.counts[1]), self.slots, self.places, self.mask)


@dataclass
class Steps:
    """The accepted calls, where they are kept: what leaves state *n* is `starts[n]:starts[n + 1]`."""

    starts: Ints
    targets: npt.NDArray[np.int32]
    calls: npt.NDArray[np.int32]

    @classmethod
    def room(cls, sources: int, joined: int) -> Steps:
        """Room for so many."""
        return cls(np.zeros(sources + 1, np.int64), np.empty(joined, np.int32), np.empty(joined, np.int32))


def longer(column: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """A column with room for more."""
    made = zeros(column.dtype, length, *column.shape[1:])
    made[: len(column)] = column
    return made


def zeros(kind: Any, *shape: int) -> npt.NDArray[Any]:
    """Zeros; many of them in large pages straight from the system, which are clear already."""
    size = prod(shape) * np.dtype(kind).itemsize
    if size < LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(shape, kind)
    memory = mmap.mmap(-1, -(-size // PAGE) * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, kind, prod(shape)).reshape(shape)


def _lines(words: int) -> npt.NDArray[np.uint64]:
    """Zeros where a line of the processor's cache begins."""
    room = zeros(np.uint64, words + LINE)
    begin = -room.ctypes.data // room.itemsize % LINE
    return room[begin : begin + words]


def _power(least: int) -> int:
    return 1 << (least - 1).bit_length()


@dataclass(frozen=True)
class PackingCache:
    """The packing of a search's states, kept on disk by a digest of its functions and of where it begins."""

    name: str
    digest: str

    @classmethod
    def of(cls, spec: Spec, functions: Sequence[ast.FunctionDef]) -> PackingCache:
        """The one of a spec's search."""
        begun = [(name, int(getattr(spec.initial, name))) for name in spec.scalars]
        maps = [
            (name, int(one.default), sorted((*numbers_of(key), int(value)) for key, value in one.entries.items()))
            for name in spec.maps
            for one in [getattr(spec.initial, name)]
        ]
        return cls(spec.name, digest_of(repr((begun, maps)), *(outline_of(one).text for one in functions)))

    @property
    def _path(self) -> Path:
        return cache_folder() / f"explore_{self.name}_{self.digest}.packing"

    @property
    def _record(self) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return record

    def states(self, *, whole: bool) -> int:
        """The number of states that there were before, with those beyond the bound or without."""
        return int(self._record.get("met" if whole else "states", 0))

    def packing(self, least: StateLayout | None) -> StateLayout | None:
        """The packing of before."""
        record = self._record
        try:
            fields = [PackedField(*one) for one in record["fields"]]
            numbers = len(least.numbers) if least else 0
            return least and replace(
                least,
                numbers=tuple(fields[:numbers]),
                maps=tuple(fields[numbers:]),
                origin=record["origin"],
                width=record["width"],
            )
        except (KeyError, TypeError):
            return None

    def keep(self, packing: StateLayout, met: int, states: int) -> None:
        """Remember how states are packed, how many there are, and how many of them within the bound."""
        fields = [(one.least, one.bits) for one in (*packing.numbers, *packing.maps)]
        record = {"fields": fields, "origin": packing.origin, "width": packing.width, "met": met, "states": states}
        text = json.dumps(record)
        with suppress(OSError):
            if not self._path.exists() or self._path.read_text("utf-8") != text:
                write_whole(self._path, text.encode())
