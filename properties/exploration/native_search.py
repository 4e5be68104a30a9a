"""The search as native code: the same states in the same order as `search.py` finds, some fifty times as fast.

A state is a row of integers in one array, and a table says by its hash whether it was met before. What is found to be
broken is judged once more by the plain functions, on the states that the row stands for. A spec or a bound that cannot
be read without being called, and numbers beyond 2**60, are left to the plain search.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, overload

import immutables
import numpy as np
import numpy.typing as npt

from gapless.properties.exploration.bounds import Bound
from gapless.properties.exploration.graph import Call, StateGraph
from gapless.properties.exploration.native_source import Property, SearchWriter
from gapless.spec.catalog import Spec, State
from gapless.spec.language import Map
from gapless.traces.replay.kernels import compiled_at, imported, is_compiled

Ints = npt.NDArray[np.int64]

DONE, MORE, FULL, WIDE_VALUES, WIDE_KEYS, EXACT, BROKEN_STATE, BROKEN_STEP, TOO_MANY = range(9)
"""How a stretch of the search ended: all states are explored; its share is; there is no room for more; a value or a key
does not fit; a number leaves 64 bits; a property does not hold; there are more states than are wanted."""

ROWS = np.int16, np.int32, np.int64  # what a value of a state is kept as: the first that takes all
WIDTHS = 4, 8, 16, 32, 64, 128, 256, 512, 1024  # keys that a Map may have: likewise
BUDGET = 20_000  # states between two looks at the clock, and at Ctrl-C
FIRST = 1 << 12  # states for which there is room in the beginning


class CannotBeCompiled(Exception):  # noqa: N818 - its message says all.
    """A spec, a property or a bound cannot be read without being called, or numbers need more than 64 bits."""


@dataclass(frozen=True)
class SearchTask:
    """What is asked of a search: the calls, and the properties with the rows of numbers that they are asked for."""

    calls: Mapping[str, Sequence[tuple[int, ...]]]
    alone: Sequence[tuple[Callable[..., bool], Sequence[str], Sequence[tuple[int, ...]]]]
    pairs: Sequence[tuple[Callable[..., bool], Sequence[str], Sequence[tuple[int, ...]]]]


class Ended(NamedTuple):
    """How a search ended; where something is broken, in which state, or on the way there from which one."""

    status: int
    source: int
    target: int


@dataclass
class Tables:
    """What a search has found. Rows of `states` stand for states; `calls` counts calls, and ways to take each."""

    states: npt.NDArray[Any]
    hashes: npt.NDArray[np.uint64]
    slots: npt.NDArray[np.int32]
    met_source: npt.NDArray[np.int32]
    met_call: npt.NDArray[np.int32]
    beyond: npt.NDArray[np.bool_]
    starts: Ints
    targets: npt.NDArray[np.int32]
    calls: npt.NDArray[np.int32]
    counts: Ints = field(default_factory=lambda: np.array([0, 1, 0, 0], np.int64))
    """How many states are explored and met, how many calls were accepted; and the state where something is broken."""

    @classmethod
    def new(cls, kind: type, columns: int) -> Tables:
        """Room for the first states."""
        return cls(
            states=np.empty((FIRST, columns), kind),
            hashes=np.zeros(FIRST, np.uint64),
            slots=np.full(4 * FIRST, -1, np.int32),
            met_source=np.full(FIRST, -1, np.int32),
            met_call=np.full(FIRST, -1, np.int32),
            beyond=np.zeros(FIRST, np.bool_),
            starts=np.zeros(FIRST + 1, np.int64),
            targets=np.empty(FIRST, np.int32),
            calls=np.empty(FIRST, np.int32),
        )

    def make_room(self, calls: int, fill: Callable[..., None]) -> None:
        """For what one more state can lead to."""
        met, joined = int(self.counts[1]), int(self.counts[2])
        if met + calls > len(self.states):
            room = max(2 * len(self.states), met + calls)
            for name in ("states", "hashes", "met_source", "met_call", "beyond"):
                setattr(self, name, _longer(getattr(self, name), room))
            self.starts = _longer(self.starts, room + 1)
        if 2 * (met + calls) > len(self.slots):
            self.slots = np.full(_power(4 * (met + calls)), -1, np.int32)
            fill(self.hashes, met, self.slots)
        if joined + calls > len(self.targets):
            room = max(2 * len(self.targets), joined + calls)
            self.targets, self.calls = _longer(self.targets, room), _longer(self.calls, room)


def _longer(column: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    made = np.empty((length, *column.shape[1:]), column.dtype)
    made[: len(column)] = column
    return made


def _power(least: int) -> int:
    return 1 << (least - 1).bit_length()


class NativeSearch:
    """The search of one spec within one bound, compiled. Raises CannotBeCompiled."""

    def __init__(self, spec: Spec, bound: Bound, allowed: Sequence[bool], asked: SearchTask) -> None:
        self.spec, self.bound, self.asked = spec, bound, asked
        self.allowed = np.array([*allowed, False], np.bool_)
        alone: list[Property] = [one[:2] for one in asked.alone]
        pairs: list[Property] = [one[:2] for one in asked.pairs]
        try:
            writer = SearchWriter(spec, alone, pairs, bound.within)
            self._source = writer.source()
        except Exception as error:  # what a user's functions raise on what are no numbers, nobody knows
            raise CannotBeCompiled(f"{type(error).__name__}: {error}") from error
        self.reasons = tuple(writer.reasons)
        self._path: Path = compiled_at(f"explore_{spec.name}", self._source)

    @property
    def is_compiled(self) -> bool:
        """Whether it was compiled before."""
        return is_compiled(self._path, "search")

    @cached_property
    def flat_calls(self) -> list[tuple[str, tuple[int, ...]]]:
        """Every action with its arguments, in the order in which they are tried."""
        return [(name, args) for name, every in self.asked.calls.items() for args in every]

    def run(self, limit: int, progress: Callable[[int, int], None] | None) -> NativeFound:
        """Explore all states, at most so many. Raises CannotBeCompiled."""
        module = imported(self._path, self._source)
        kinds, widths = iter(ROWS), iter(WIDTHS)
        kind, width = next(kinds), next(widths)
        while True:
            found = self._within(module, kind, width, limit, progress)
            if found.ended.status == WIDE_VALUES:
                kind = next(kinds)
            elif found.ended.status == WIDE_KEYS and width < WIDTHS[-1]:
                width = next(widths)
            elif found.ended.status in {WIDE_KEYS, EXACT}:
                raise CannotBeCompiled("a number leaves 64 bits, or a Map has keys that lie far from one another")
            else:
                return found

    def _within(
        self, module: Any, kind: type, width: int, limit: int, progress: Callable[[int, int], None] | None
    ) -> NativeFound:
        """Explore with values of one kind, and windows of one width, from a little below zero on."""
        origin = -(width // 4)
        now, windows, first = self._begin(origin, width)
        columns = len(first) if first is not None else 0
        tables = Tables.new(kind, columns)
        refused = np.zeros(len(self.reasons) + 1, np.int64)
        found = NativeFound(self, origin, tables, Ended(WIDE_KEYS, 0, 0), refused)
        if first is None:
            return found
        if (first.astype(kind) != first).any():
            return replace(found, ended=Ended(WIDE_VALUES, 0, 0))
        tables.states[0], tables.hashes[0] = first, _hash(first)
        tables.beyond[0] = not self.bound.within(self.spec.initial)
        module.fill(tables.hashes, 1, tables.slots)
        firsts = np.cumsum([0, *map(len, self.asked.calls.values())])
        args, (numbers, lows) = self._arguments, self._numbers
        escape = np.zeros(1, np.int64)
        row: npt.NDArray[Any] = np.zeros(columns, kind)
        status, t = MORE, tables
        while status in {MORE, FULL}:
            if status == FULL:
                t.make_room(len(self.flat_calls), module.fill)
            status = module.search(
                firsts, args, numbers, lows, self.allowed, limit, BUDGET, origin, width, now, windows, escape, t.counts,
                row, t.states, t.hashes, t.slots, t.met_source, t.met_call, t.beyond, t.starts, t.targets, t.calls,
                refused,
            )  # fmt: skip
            if progress:
                progress(int(t.counts[0]), int(t.counts[1]))
        return replace(found, ended=Ended(status, int(t.counts[0]), int(t.counts[3])))

    def _begin(self, origin: int, width: int) -> tuple[Ints, Ints, Ints | None]:
        """Room for a state and the one before it, and the row of the initial one; None where its keys do not fit."""
        spec, scalars, maps = self.spec, len(self.spec.scalars), len(self.spec.maps)
        now, windows = np.zeros(2 * scalars, np.int64), np.zeros((width, 2 * maps), np.int64)
        windows[:] = [int(getattr(spec.initial, name).default) for name in spec.maps] * 2
        now[:scalars] = [int(getattr(spec.initial, name)) for name in spec.scalars]
        for column, name in enumerate(spec.maps):
            for key, value in getattr(spec.initial, name).entries.items():
                if not 0 <= key - origin < width:
                    return now, windows, None
                windows[key - origin, column] = int(value)
        return now, windows, np.concatenate([now[:scalars], windows[:, :maps].ravel()])

    @cached_property
    def _arguments(self) -> Ints:
        args = np.zeros((len(self.spec.arguments), len(self.flat_calls)), np.int64)
        rows = {name: row for row, name in enumerate(self.spec.arguments)}
        for at, (action, given) in enumerate(self.flat_calls):
            for name, value in zip(self.spec.parameters[action], given, strict=True):
                args[rows[name], at] = value
        return args

    @cached_property
    def _numbers(self) -> tuple[Ints, Ints]:
        """The rows of numbers for which each property is asked, one after the other, and where those of each begin."""
        every = [*self.asked.alone, *self.asked.pairs]
        lows = np.cumsum([0, *(len(rows) for _, _, rows in every)])
        numbers = np.zeros((max(1, int(lows[-1])), max([1, *(len(names) for _, names, _ in every)])), np.int64)
        for low, (_, _, rows) in zip(lows.tolist(), every, strict=False):
            for at, row in enumerate(rows):
                numbers[low + at, : len(row)] = row
        return numbers, lows


def _hash(row: Ints) -> int:
    """The hash of a state, as the compiled search computes it."""
    h, mask = 14695981039346656037, 2**64 - 1
    for value in row.tolist():
        h = (h ^ value & mask) * 1099511628211 & mask
    return h ^ h >> 29


# -- what was found ------------------------------------------------------------------------------------------------


@dataclass
class NativeFound:
    """What a native search has found. `refused`: by number of the reason."""

    search: NativeSearch
    origin: int
    tables: Tables
    ended: Ended
    refused: Ints

    def graph(self) -> NativeGraph:
        """The states, and what joins them."""
        return NativeGraph(self)

    def state(self, number: int) -> State:
        """The state that a row stands for."""
        spec, row = self.search.spec, self.tables.states[number].tolist()
        scalars, maps = len(spec.scalars), len(spec.maps)
        fields: dict[str, Any] = {
            name: type(getattr(spec.initial, name))(value) for name, value in zip(spec.scalars, row, strict=False)
        }
        for column, name in enumerate(spec.maps):
            default = getattr(spec.initial, name).default
            values = row[scalars + column :: maps]
            entries = {key: value for key, value in enumerate(values, self.origin) if value != default}
            fields[name] = Map(default, immutables.Map(entries))
        return type(spec.initial)(**fields)

    def call(self, code: int) -> Call:
        """A call that was accepted, by the number of the call and of the way to take it."""
        spec = self.search.spec
        at, way = divmod(code, len(spec.deviations) + 1)
        return Call(*self.search.flat_calls[at], spec.deviations[way - 1].step.__name__ if way else None)

    def accepted(self) -> dict[str, int]:
        """How often each action was taken as it is, and each deviation."""
        spec = self.search.spec
        ways = len(spec.deviations) + 1
        taken = np.bincount(self.tables.calls[: self.tables.counts[2]], minlength=ways * len(self.search.flat_calls))
        counted = dict.fromkeys(spec.actions, 0)
        counted |= {d.step.__name__: 0 for d, on in zip(spec.deviations, self.search.allowed, strict=False) if on}
        for at, some in enumerate(taken.reshape(-1, ways)):
            for way in np.flatnonzero(some):
                name = spec.deviations[way - 1].step.__name__ if way else self.search.flat_calls[at][0]
                counted[name] += int(some[way])
        return counted

    def refusals(self) -> dict[tuple[str, str], int]:
        """How often each step refused for each rule."""
        counted: dict[tuple[str, str], int] = {}
        for reason, count in zip(self.search.reasons, self.refused[1:].tolist(), strict=True):
            if count:
                key = reason.step, reason.rule.partition("/")[2]
                counted[key] = counted.get(key, 0) + count
        return counted


class _Decoded(Sequence[Any]):
    """A column that is decoded where it is looked at."""

    def __init__(self, length: int, decode: Callable[[int], Any]) -> None:
        self._length = length
        self._decode = cache(decode)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return [self._decode(n) for n in range(*at.indices(self._length))]
        if not -self._length <= at < self._length:
            raise IndexError(at)
        return self._decode(at % self._length)

    def __iter__(self) -> Iterator[Any]:
        return map(self._decode, range(self._length))


class NativeGraph(StateGraph):
    """The graph of a native search: states and calls are made where somebody looks at them."""

    def __init__(self, found: NativeFound) -> None:
        tables = found.tables
        explored, met, joined = (int(count) for count in tables.counts[:3])

        def origin(n: int) -> tuple[int, Call] | None:
            source = int(tables.met_source[n])
            return (source, found.call(int(tables.met_call[n]))) if source >= 0 else None

        super().__init__(
            states=_Decoded(met, found.state),  # type: ignore[arg-type]
            beyond=set(np.flatnonzero(tables.beyond[:met]).tolist()),
            met=_Decoded(met, origin),  # type: ignore[arg-type]
            starts=array("q", tables.starts[: explored + 1].tobytes()),
            targets=array("q", tables.targets[:joined].astype(np.int64).tobytes()),
            calls=_Decoded(joined, lambda at: found.call(int(tables.calls[at]))),  # type: ignore[arg-type]
        )
