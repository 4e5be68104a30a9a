"""Runs without an end, as lassos: a shortest way to a loop, and a short loop that is fair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

from gapless.properties.exploration.graph import Call, StateGraph, matrix
from gapless.spec.catalog import END

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
NONE = -1  # no state
TRIED = 16  # places where a lasso's loop may begin, of which the shortest lasso is chosen


@dataclass(frozen=True)
class Lasso:
    """A run without an end: the states along its stem and round its loop, and the calls between them.

    Without a loop, nothing happens any more behind the stem. Both ways begin and end with a state; the loop with the
    same one. `began`: the place in the stem from which on the claim waits.
    """

    stem: tuple[int, ...]
    stem_calls: tuple[Call, ...]
    loop: tuple[int, ...]
    loop_calls: tuple[Call, ...]
    began: int

    @property
    def length(self) -> int:
        """The number of its steps."""
        return len(self.stem_calls) + len(self.loop_calls)


class CallArrays:
    """The accepted calls of a graph as arrays, without claims of rest, which are no steps.

    `sources`, `targets`, `codes`: of each call, where codes number the `calls` · `open`: states of which not every
    step was tried.
    """

    def __init__(self, graph: StateGraph) -> None:
        self.graph = graph
        self.calls, codes = graph.numbered_calls()
        steps = np.array([call.action != END for call in self.calls], np.bool_)[codes]
        joined = np.flatnonzero(steps[: graph.starts[-1]])
        self.sources = graph.sources[joined]
        self.targets = np.array(graph.targets, np.int64)[joined]
        self.codes = codes[joined]
        self.states = len(graph.states)
        self.starts = np.searchsorted(self.sources, np.arange(self.states + 1))
        self.open = graph.open_states

    @property
    def first(self) -> Ints:
        """The initial states: they are met before all others."""
        count = next((n for n in range(self.states) if self.graph.met[n] is not None), self.states)
        return np.arange(count)

    def of_steps(self, names: frozenset[str]) -> Flags:
        """True for each code of a call of these steps."""
        return np.array([call.action in names for call in self.calls], np.bool_)

    def leaving(self, state: int) -> range:
        """The places of the calls that leave a state."""
        return range(self.starts[state], self.starts[state + 1])

    def place(self, source: int, target: int, allowed: Flags) -> int:
        """The first allowed call from one state to another."""
        return next(at for at in self.leaving(source) if self.targets[at] == target and allowed[at])


class Stems:
    """Shortest ways from an initial state to one that waits, and on among states that wait still.

    A graph of two layers: all states in the first, in which anything may happen, and those that wait in the second.
    """

    def __init__(self, joined: CallArrays, waiting: Flags, allowed: Flags) -> None:
        self.joined, self.allowed, n = joined, allowed, joined.states
        begun, first = np.flatnonzero(waiting), joined.first
        sources = (joined.sources, begun, joined.sources[allowed] + n, np.full(first.size, 2 * n))
        targets = (joined.targets, begun + n, joined.targets[allowed] + n, first)
        layers = matrix(np.concatenate(sources), np.concatenate(targets), 2 * n + 1)
        order, self.before = scipy.sparse.csgraph.breadth_first_order(layers, 2 * n)
        self.order = order[order >= n] - n
        self.order = self.order[self.order < n]

    def to(self, state: int) -> tuple[tuple[int, ...], tuple[Call, ...], int]:
        """The states and calls along a shortest way, and the place in it from which on the claim waits."""
        n, way = self.joined.states, [state + self.joined.states]
        while (before := int(self.before[way[-1]])) < 2 * n:
            way.append(before)
        way.reverse()
        began = next(at for at, one in enumerate(way) if one >= n) - 1
        states = (*way[: began + 1], *(one - n for one in way[began + 2 :]))
        everything = np.ones(self.allowed.size, np.bool_)
        places = (
            self.joined.place(a, b, self.allowed if at >= began else everything)
            for at, (a, b) in enumerate(pairwise(states))
        )
        return states, tuple(self.joined.calls[self.joined.codes[at]] for at in places), began


class Loops:
    """Short loops within strong components: `allowed` calls lie within one. `fair`: the codes of fair calls."""

    def __init__(self, joined: CallArrays, allowed: Flags, fair: Flags) -> None:
        self.joined, self.allowed, self.fair = joined, allowed, fair

    def owed(self, state: int) -> frozenset[int]:
        """The fair calls that are possible in a state."""
        codes = (int(self.joined.codes[at]) for at in self.joined.leaving(state))
        return frozenset(code for code in codes if self.fair[code])

    def through(self, state: int) -> list[int]:
        """The places of the calls of a loop through a state that owes nothing to any fair call; at least one."""
        places, owed = list[int](), self.owed(state)
        while owed or not places:
            here = int(self.joined.targets[places[-1]]) if places else state
            way = self._nearest(here, owed, state if not owed else NONE)
            for at in way:
                owed = owed & self.owed(int(self.joined.targets[at])) - {int(self.joined.codes[at])}
            places += way
        here = int(self.joined.targets[places[-1]])
        return places if here == state else [*places, *self._nearest(here, frozenset(), state)]

    def _nearest(self, begin: int, owed: frozenset[int], goal: int) -> list[int]:
        """The calls of a shortest way, of one step at least, that ends at the goal or owes less than before."""
        came: dict[int, int] = {}
        waiting = [begin]
        for state in waiting:
            for at in self.joined.leaving(state):
                if not self.allowed[at]:
                    continue
                target, code = int(self.joined.targets[at]), int(self.joined.codes[at])
                if target == goal or code in owed or owed - self.owed(target):
                    return [*self._back(came, state, begin), at]
                if target not in came and target != begin:
                    came[target] = at
                    waiting.append(target)
        raise ValueError("a strong component leads everywhere within it")

    def _back(self, came: dict[int, int], state: int, begin: int) -> Iterator[int]:
        places = []
        while state != begin:
            places.append(came[state])
            state = int(self.joined.sources[came[state]])
        yield from reversed(places)


def shortest(stems: Stems, loops: Loops, stuck: Flags, looping: Flags) -> Lasso | None:
    """The shortest lasso of those that were tried: to a state that is stuck, or to a loop.

    `stuck`: in these states nothing need happen any more · `looping`: through these leads a loop.
    """
    order = stems.order
    begins = [*order[looping[order]][:TRIED].tolist()]
    found = [_lasso(stems, loops, state, loops.through(state)) for state in begins]
    found += [_lasso(stems, loops, state, ()) for state in order[stuck[order]][:1].tolist()]
    return min(found, key=lambda one: one.length, default=None)


def _lasso(stems: Stems, loops: Loops, state: int, places: Sequence[int]) -> Lasso:
    joined, (stem, calls, began) = loops.joined, stems.to(state)
    loop = (state, *(int(joined.targets[at]) for at in places)) if places else ()
    return Lasso(stem, calls, loop, tuple(joined.calls[joined.codes[at]] for at in places), began)
