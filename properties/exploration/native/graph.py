"""The graph of a native search: states and calls are made when they are looked at."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from gapless.properties.exploration.compiled.loop import escaping, leading, lone
from gapless.properties.exploration.graph import Call, StateGraph
from gapless.properties.exploration.native.tables import Ints, Steps, Tables
from gapless.spec.catalog import State


class FoundStates(Protocol):
    """The result of a native search, as `search.py` has it."""

    tables: Tables
    is_whole: bool

    @property
    def whole(self) -> FoundStates:
        """The same with the states beyond the bound, and how each was met."""

    @property
    def again(self) -> tuple[Steps, Ints]:
        """The accepted calls, and what was refused."""

    def graph(self) -> StateGraph:
        """The states, and what joins them."""

    def state(self, number: int) -> State:
        """The state of a number."""

    def call(self, code: int) -> Call:
        """A call that was accepted."""

    def alike(self, fields: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """States of which no two agree in these fields, and for each state the place of the one that does."""


class _LazyColumn(Sequence[Any]):
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
    """The graph of a native search: states and calls are made when they are looked at."""

    def __init__(self, found: FoundStates) -> None:
        self._found, self._tables = found, found.tables
        self._explored, met, _ = (int(count) for count in found.tables.counts[:3])
        self._met = met

    @property
    def explored(self) -> int:
        """The number of states that were explored or cut off."""
        return int(self._found.whole.tables.counts[0])

    @property
    def inside(self) -> int:
        """The number of states within the bound."""
        return self._met - int(np.count_nonzero(self._tables.beyond[: self._met]))

    @property
    def transitions(self) -> int:
        """The number of accepted steps that join states within the bound."""
        return int(self._tables.counts[4])

    @property
    def deadlocks(self) -> list[int]:
        """States in which no step was accepted, but for the claim that all has come to rest."""
        stuck = (self._tables.ahead < 0) & ~self._tables.beyond
        deadlocks = np.flatnonzero(stuck[: self._explored]).tolist()
        return self._found.whole.graph().deadlocks if deadlocks and not self._found.is_whole else deadlocks

    def numbered_calls(self) -> tuple[list[Call], NDArray[np.int64]]:
        """The different calls that were accepted, and the number among them of each call."""
        codes, numbers = np.unique(self._found.again[0].calls, return_inverse=True)
        return [self._found.call(code) for code in codes.tolist()], numbers.astype(np.int64)

    def alike(self, fields: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """States of which no two agree in these fields, and for each state the place of the one that does."""
        return self._found.whole.alike(fields)

    def _enclosed(self) -> NDArray[np.int64]:
        """The states from which no path leads to an open-ended one: most have one, by way of the farthest each time."""
        count, out = self._met, np.zeros(self._met, np.int64)
        beyond = self._tables.beyond.view(np.uint8)
        left = escaping(count, self._explored, beyond, self._tables.ahead, out)
        return super()._enclosed() if left else np.empty(0, np.int64)

    def _components(self, enclosed: NDArray[np.int64]) -> list[list[int]]:
        """The terminal components: mostly states that no step leaves, and all others lead there."""
        if not enclosed.size:
            return []
        steps, _ = self._found.again
        marks = np.zeros(len(steps.starts) - 1, np.int64)
        lone(len(marks), steps.starts, steps.targets, marks)
        while leading(len(marks), steps.starts, steps.targets, marks):
            pass
        alone, others = enclosed[marks[enclosed] == 2], enclosed[marks[enclosed] == 0]
        return sorted([[n] for n in alone.tolist()] + super()._components(others))

    def __getattr__(self, name: str) -> Any:
        """All states, and the accepted calls, which are found again for who wants them."""
        if name in {"states", "met", "beyond"}:
            whole = self._found.whole
            tables, met = whole.tables, int(whole.tables.counts[1])

            def origin(n: int) -> tuple[int, Call] | None:
                source = int(tables.met_source[n])
                return (source, whole.call(int(tables.met_call[n]))) if source >= 0 else None

            self.states = _LazyColumn(met, whole.state)  # type: ignore[assignment]
            self.met = _LazyColumn(met, origin)  # type: ignore[assignment]
            self.beyond = set(np.flatnonzero(tables.beyond[:met]).tolist())
        elif name in {"starts", "targets", "calls"}:
            steps, _ = self._found.again
            self.starts = array("q", steps.starts.tobytes())
            self.targets = array("q", steps.targets.astype(np.int64).tobytes())
            self.calls = _LazyColumn(len(steps.calls), lambda at: self._found.call(int(steps.calls[at])))  # type: ignore[assignment]
        else:
            raise AttributeError(name)
        return self.__dict__[name]
