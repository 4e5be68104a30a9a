"""What a native search finds, as arrays; and what is kept of it on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.properties.exploration.machine_code import Loaded, compiled, of_this_machine
from gapless.properties.exploration.packing import Field, Packing
from gapless.traces.object_code import cache_folder, digest_of, write_whole

Ints = npt.NDArray[np.int64]
FIRST = 1 << 12  # states for which there is room in the beginning


@dataclass
class Tables:
    """What a search has found: states by number, and which of them lie where in a table, by their hash.

    `states`: uint64 [n, words], packed · `ahead`: the farthest state that a step leads to; -1 where there is none ·
    `accepted`: how often each action was, in each way.
    """

    states: npt.NDArray[np.uint64]
    slots: npt.NDArray[np.uint64]
    met_source: npt.NDArray[np.int32]
    met_call: npt.NDArray[np.int32]
    beyond: npt.NDArray[np.bool_]
    ahead: npt.NDArray[np.int32]
    accepted: Ints
    refused: Ints
    counts: Ints = field(default_factory=lambda: np.array([0, 1, 0, 0, 0], np.int64))
    """How many states are explored and met, how many calls were accepted; the state where something is broken; how
    many calls lead to states within the bound."""

    @classmethod
    def new(cls, packing: Packing, kinds: int, reasons: int, room: int = 0) -> Tables:
        """Room for the first states, or for as many as are expected."""
        room = max(room, FIRST)
        return cls(
            states=_zeros(room, packing.words, np.uint64),
            slots=_zeros(_power(2 * room), packing.slot, np.uint64),
            met_source=np.full(room, -1, np.int32),
            met_call=np.full(room, -1, np.int32),
            beyond=np.zeros(room, np.bool_),
            ahead=np.full(room, -1, np.int32),
            accepted=np.zeros(kinds, np.int64),
            refused=np.zeros(reasons + 1, np.int64),
        )

    def make_room(self, more: int, native: Mapping[str, Callable[..., int]]) -> None:
        """For so many more states."""
        met = int(self.counts[1])
        if met + more > len(self.states):
            room = max(2 * len(self.states), met + more)
            for name in ("states", "met_source", "met_call", "beyond", "ahead"):
                setattr(self, name, longer(getattr(self, name), room))
        if 4 * (met + more) > 3 * len(self.slots):
            self.slots = _zeros(_power(3 * (met + more)), self.slots.shape[1], np.uint64)
            self.fill_slots(native)

    def fill_slots(self, native: Mapping[str, Callable[..., int]]) -> None:
        """Tell the table of all states."""
        given = self.states, self.counts[1], self.beyond, self.slots, len(self.slots) - 1
        native["fill_slots"](*map(handed, given))


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
    made = np.empty((length, *column.shape[1:]), column.dtype)
    made[: len(column)] = column
    return made


def _zeros(rows: int, columns: int, kind: Any) -> npt.NDArray[Any]:
    """Zeros in large pages, which `np.empty` asks for and `np.zeros` does not."""
    made = np.empty((rows, columns), kind)
    made[:] = 0
    return made


def _power(least: int) -> int:
    return 1 << (least - 1).bit_length()


@dataclass(frozen=True)
class SearchCache:
    """What is kept on disk of a search: by its text, how its states were packed; and machine code, for each packing."""

    name: str
    text: str

    def _path(self, text: str, suffix: str) -> Path:
        return cache_folder() / f"explore_{self.name}_{digest_of(text)}{suffix}"

    @property
    def _held(self) -> dict[str, Any]:
        try:
            held: dict[str, Any] = json.loads(self._path(self.text, ".packing").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return held

    @property
    def states(self) -> int:
        """How many states there were before."""
        return int(self._held.get("states", 0))

    def packing(self, least: Packing | None) -> Packing | None:
        """How states were packed before."""
        held = self._held
        try:
            fields = [Field(*one) for one in held["fields"]]
            numbers = len(least.numbers) if least else 0
            return least and replace(
                least,
                numbers=tuple(fields[:numbers]),
                maps=tuple(fields[numbers:]),
                origin=held["origin"],
                width=held["width"],
            )
        except (KeyError, TypeError):
            return None

    def keep(self, packing: Packing, states: int) -> None:
        """Remember how states are packed, and how many there are."""
        fields = [(one.least, one.bits) for one in (*packing.numbers, *packing.maps)]
        text = json.dumps({"fields": fields, "origin": packing.origin, "width": packing.width, "states": states})
        path = self._path(self.text, ".packing")
        if not path.exists() or path.read_text("utf-8") != text:
            write_whole(path, text.encode())

    def code(self, text: str) -> Path:
        """The file of machine code."""
        return self._path(of_this_machine(text), ".o")

    def loaded(self, text: str) -> Mapping[str, Callable[..., int]]:
        """The functions of a text, compiled once. Raises NotInTheLanguage."""
        return _loaded(self.code(text), text).functions


@cache
def _loaded(path: Path, text: str) -> Loaded:
    if not path.exists():
        write_whole(path, compiled(text))
    return Loaded(path.read_bytes(), text)


def handed(value: Any) -> int:
    """A number, or where an array lies."""
    return int(value.ctypes.data) if isinstance(value, np.ndarray) else int(value)
