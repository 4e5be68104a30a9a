"""The graph that exploration finds: states, the calls that lead from one to another, deadlocks and terminal sets."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy  # loads its parts where they are used: most bounds can always be passed, and need none
from numpy.typing import NDArray

from gapless.spec.catalog import END, Spec, State
from gapless.traces.replay.notation import call_of, changes


class Call(NamedTuple):
    """A step that was tried: the action and its arguments, and the deviation that was taken in its place, if any."""

    action: str
    args: tuple[int, ...]
    deviation: str | None = None


@dataclass
class StateGraph:
    """States by number, in the order in which they were met; what leaves state *n* is `starts[n]:starts[n + 1]`."""

    states: list[State] = field(default_factory=list)
    beyond: set[int] = field(default_factory=set)  # states that the bound cuts off: met, and not left
    met: list[tuple[int, Call] | None] = field(default_factory=list)  # the state and the call that led here first
    starts: array[int] = field(default_factory=lambda: array("q", [0]))
    targets: array[int] = field(default_factory=lambda: array("q"))
    calls: list[Call] = field(default_factory=list)

    @property
    def explored(self) -> int:
        """The number of states that were explored or cut off; the states after them are still waiting."""
        return len(self.starts) - 1

    def leaving(self, state: int) -> Iterator[tuple[Call, int]]:
        """The calls accepted in a state, and where each leads."""
        if state < self.explored:
            part = slice(self.starts[state], self.starts[state + 1])
            yield from zip(self.calls[part], self.targets[part], strict=True)

    def way(self, state: int) -> tuple[int, ...]:
        """The states along a shortest path from where exploration began to a state, itself included."""
        way = [state]
        while origin := self.met[way[-1]]:
            way.append(origin[0])
        return tuple(reversed(way))

    def path(self, way: tuple[int, ...]) -> tuple[Call, ...]:
        """The calls along a way."""
        return tuple(origin[1] for origin in map(self.met.__getitem__, way) if origin)

    @cached_property
    def depths(self) -> list[int]:
        """The depth of each state: its distance in steps from where exploration began."""
        depths: list[int] = []
        for origin in self.met:
            depths.append(depths[origin[0]] + 1 if origin else 0)
        return depths

    @property
    def sources(self) -> NDArray[np.int64]:
        """The state that each accepted call leaves, in the order of `targets`."""
        return np.repeat(np.arange(self.explored), np.diff(self.starts))

    def numbered_calls(self) -> tuple[list[Call], NDArray[np.int64]]:
        """The different calls that were accepted, and the number among them of each call."""
        numbers: dict[Call, int] = {}
        codes = np.array([numbers.setdefault(call, len(numbers)) for call in self.calls], np.int64)
        return list(numbers), codes

    def alike(self, _fields: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """States of which no two agree in these fields, and for each state the place of the one that does."""
        every = np.arange(len(self.states))
        return every, every

    @property
    def open_states(self) -> NDArray[np.bool_]:
        """True for states that may have possible steps that were not tried."""
        found = np.zeros(len(self.states), np.bool_)
        found[list(self.beyond)] = True
        found[self.explored :] = True
        return found

    def open_ended(self, state: int) -> bool:
        """True if a state may have possible steps that were not tried."""
        return state in self.beyond or state >= self.explored

    @property
    def inside(self) -> int:
        """The number of states within the bound."""
        return len(self.states) - len(self.beyond)

    @property
    def transitions(self) -> int:
        """The number of accepted steps that join states within the bound."""
        inside = np.ones(len(self.states), np.bool_)
        inside[list(self.beyond)] = False
        return int(inside[np.array(self.targets, np.int64)].sum())

    @property
    def deadlocks(self) -> list[int]:
        """States in which no step was accepted, but for the claim that all has come to rest."""
        ranges = enumerate(pairwise(self.starts))
        return [
            n
            for n, (start, end) in ranges
            if not self.open_ended(n) and all(self.calls[at].action == END for at in range(start, end))
        ]

    @cached_property
    def terminal(self) -> list[list[int]]:
        """Terminal components: sets of states that are never left again, and in which each state reaches all others."""
        return self._components(self._enclosed())

    def _components(self, enclosed: NDArray[np.int64]) -> list[list[int]]:
        """The terminal components among states that lead to no others."""
        if not enclosed.size:
            return []
        number = np.full(len(self.states), -1)
        number[enclosed] = np.arange(enclosed.size)
        sources = number[self.sources]
        leaves = sources >= 0
        sources, targets = sources[leaves], number[np.array(self.targets, np.int64)[leaves]]
        component = strong_components(sources, targets, enclosed.size)
        left = component[sources][component[sources] != component[targets]]
        ends = np.flatnonzero(~np.isin(component, left))
        members = enclosed[ends[np.argsort(component[ends], kind="stable")]]
        cuts = np.flatnonzero(np.diff(np.sort(component[ends]))) + 1
        return sorted(part.tolist() for part in np.split(members, cuts))

    def _enclosed(self) -> NDArray[np.int64]:
        """The states from which no path leads to an open-ended one: mostly none."""
        sources = self.sources
        targets = np.array(self.targets, np.int64)[: self.starts[-1]]  # where the search ended, more may follow
        escapes = self.open_states
        count = -1
        while count != escapes.sum():
            count = escapes.sum()
            escapes[sources[escapes[targets]]] = True
        return np.flatnonzero(~escapes)


def matrix(sources: NDArray[np.int64], targets: NDArray[np.int64], states: int) -> scipy.sparse.csr_array:
    """The steps between states, for the algorithms of graphs."""
    return scipy.sparse.csr_array((np.ones(sources.size, np.bool_), (sources, targets)), shape=(states, states))


def strong_components(sources: NDArray[np.int64], targets: NDArray[np.int64], states: int) -> NDArray[np.int64]:
    """The number of each state's strong component: the states that it reaches and that reach it."""
    _, numbers = scipy.sparse.csgraph.connected_components(matrix(sources, targets, states), connection="strong")
    return numbers.astype(np.int64)


def called(spec: Spec, call: Call) -> str:
    """A call in the notation of stories, followed by the deviation that was taken, if any."""
    args = dict(zip(spec.parameters[call.action], call.args, strict=True))
    return call_of(call.action, args) + (f" ({call.deviation.replace('_', ' ')})" if call.deviation else "")


def differing(initial: State, state: State) -> dict[str, int | str]:
    """The values of a state that differ from the initial state's."""
    return {name: after for name, _, after in changes(initial, state)}
