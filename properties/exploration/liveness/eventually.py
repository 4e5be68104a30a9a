"""Decides on a graph of all states whether a claim comes true: in every run that keeps what the claim assumes.

A run that never comes to `done` stays among states that are not done, and in the end within one strong component of
them. By the arrays of the graph it is decided whether that component has a run in which each fair call is taken again
and again, or is not possible again and again; the states themselves are looked at once for each that differs in the
fields that a claim reads. Where no fair call is possible, nothing need happen any more.

Without `fair`, some possible step is always taken, whichever that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from inspect import signature
from types import CodeType
from typing import Any, Literal

import numpy as np
import scipy

from gapless.properties.exploration.bounds import Bound, universal
from gapless.properties.exploration.graph import StateGraph, matrix, strong_components
from gapless.properties.exploration.liveness.lasso import CallArrays, Flags, Ints, Lasso, Loops, Stems, shortest
from gapless.spec.catalog import Spec, made_of
from gapless.spec.language import Claim

ClaimVerdict = Literal["holds", "breaks", "undecided"]


@dataclass(frozen=True)
class ClaimResult:
    """The verdict on a claim: the run that refutes it, for which number, or `why` it is undecided.

    `without`: a run that refutes it without its assumptions, where it has some and holds; none if it needs none.
    """

    claim: Claim
    verdict: ClaimVerdict
    witness: Mapping[str, int] = field(default_factory=dict)
    lasso: Lasso | None = None
    without: Lasso | None = None
    why: str = ""


def claims_of(spec: Spec) -> tuple[Claim, ...]:
    """The claims in the file of a spec."""
    return tuple(getattr(spec.module, "CLAIMS", ()))


def number_of(claim: Claim) -> tuple[str, ...]:
    """The name of the number that a claim speaks of; none where it speaks of the state alone."""
    names = (tuple(signature(function).parameters)[1:] for function in claim.functions)
    return next(filter(None, names), ())


LEAVES = "runs leave the bound before it is done, and what follows there is not known"
FOLDED = "states that differ in names alone are one state here: explore without --symmetry"


def judged(spec: Spec, bound: Bound, graph: StateGraph, *, folded: bool = False) -> tuple[ClaimResult, ...]:
    """Decide every claim of a spec on the graph of its states. Raises NoBound."""
    claims = claims_of(spec)
    if not claims or folded:
        return tuple(ClaimResult(claim, "undecided", why=FOLDED) for claim in claims)
    runs = StateTruths(spec, graph)
    return tuple(_decided(runs, claim, universal(bound, spec, number_of(claim))) for claim in claims)


def _decided(runs: StateTruths, claim: Claim, numbers: list[tuple[int, ...]]) -> ClaimResult:
    """Decide a claim for each of its numbers; the shortest run refutes it."""
    fair, ends = _named(claim.fair), _named(claim.disturbances)
    refuted: list[tuple[Lasso, tuple[int, ...]]] = []
    leaves, without = False, None
    for number in numbers:
        waiting, undone = runs.waiting(claim, number), ~runs.truths(claim.done, number)
        part = WaitingStates(runs.joined, waiting & undone, undone, ends)
        if lasso := part.lasso(fair):
            refuted.append((lasso, number))
        leaves = leaves or part.leaves
        if (fair or ends) and not (refuted or without):
            without = WaitingStates(runs.joined, waiting & undone, undone, frozenset()).lasso(frozenset())
    if refuted:
        lasso, number = min(refuted, key=lambda one: one[0].length)
        return ClaimResult(claim, "breaks", dict(zip(number_of(claim), number, strict=True)), lasso)
    if leaves:
        return ClaimResult(claim, "undecided", why=LEAVES)
    return ClaimResult(claim, "holds", without=without)


def _named(steps: Mapping[Callable[..., Any], str]) -> frozenset[str]:
    return frozenset(step.__name__ for step in steps)


class StateTruths:
    """The graph of a spec as arrays, and where a function of its states is true."""

    def __init__(self, spec: Spec, graph: StateGraph) -> None:
        self.spec, self.graph, self.joined = spec, graph, CallArrays(graph)
        self.alike = cache(graph.alike)

    def waiting(self, claim: Claim, number: tuple[int, ...]) -> Flags:
        """The states in which something is pending."""
        if claim.pending is None:
            return np.ones(self.joined.states, np.bool_)
        return self.truths(claim.pending, number)

    def truths(self, holds: Callable[..., bool], number: tuple[int, ...]) -> Flags:
        """The states in which a function is true; it is called once for all that agree in the fields that it reads."""
        given = number[: len(signature(holds).parameters) - 1]
        firsts, kinds = self.alike(fields_read(self.spec, holds))
        states = self.graph.states
        true: Flags = np.fromiter((bool(holds(states[n], *given)) for n in firsts.tolist()), np.bool_, firsts.size)
        every: Flags = true[kinds]
        return every


def fields_read(spec: Spec, function: Callable[..., Any]) -> tuple[str, ...]:
    """The fields of the state that a function may look at, and those that it calls."""
    names = {name for one in made_of(function) for name in _names(one.__code__)}
    return tuple(name for name in (*spec.scalars, *spec.maps) if name in names)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


class WaitingStates:
    """The states that a run reaches, from one that is `waiting`, by calls that do not come to an end.

    `undone`: those in which it is not done · `ends`: the steps that come to an end.
    """

    def __init__(self, joined: CallArrays, waiting: Flags, undone: Flags, ends: frozenset[str]) -> None:
        self.joined, self.waiting = joined, waiting
        lasting = ~joined.of_steps(ends)[joined.codes] if ends else np.ones(joined.codes.size, np.bool_)
        between = lasting & undone[joined.sources] & undone[joined.targets]
        self.reached = self._reached(between)
        self.allowed = between & self.reached[joined.sources]
        self.moves = np.zeros(joined.states, np.bool_)  # by a call that does not come to an end, wherever it leads
        self.moves[joined.sources[lasting]] = True

    def _reached(self, between: Flags) -> Flags:
        """The states that are reached from those that wait."""
        n, begun = self.joined.states, np.flatnonzero(self.waiting)
        sources = np.concatenate((self.joined.sources[between], np.full(begun.size, n)))
        targets = np.concatenate((self.joined.targets[between], begun))
        steps = matrix(sources, targets, n + 1)
        order = scipy.sparse.csgraph.breadth_first_order(steps, n, return_predecessors=False)
        reached = np.zeros(n + 1, np.bool_)
        reached[order] = True
        return reached[:n]

    @property
    def leaves(self) -> bool:
        """True if a run comes to states of which not every step was tried."""
        return bool((self.reached & self.joined.open).any())

    @cached_property
    def component(self) -> Ints:
        """The strong component of each state."""
        joined, allowed = self.joined, self.allowed
        return strong_components(joined.sources[allowed], joined.targets[allowed], joined.states)

    @cached_property
    def within(self) -> Flags:
        """The calls that stay within a component."""
        stays: Flags = self.component[self.joined.sources] == self.component[self.joined.targets]
        return self.allowed & stays

    def lasso(self, fair: frozenset[str]) -> Lasso | None:
        """A run in which it is never done, and which is fair to each call of these steps; None if there is none."""
        joined = self.joined
        known, codes = self.reached & ~joined.open, joined.of_steps(fair) if fair else np.zeros(len(joined.calls), bool)
        owing = np.zeros(joined.states, np.bool_)
        owing[joined.sources[codes[joined.codes]]] = True
        stuck = known & ~(owing if fair else self.moves)
        looping = np.zeros(joined.states, np.bool_)
        looping[joined.sources[self.within]] = True
        looping &= known & ~self._unfair(codes)
        if not (stuck.any() or looping.any()):
            return None
        return shortest(Stems(joined, self.waiting, self.allowed), Loops(joined, self.within, codes), stuck, looping)

    def _unfair(self, fair: Flags) -> Flags:
        """The states of components that have no fair run: a fair call is possible throughout, and leads out."""
        joined, kinds = self.joined, max(len(self.joined.calls), 1)
        here = self.reached[joined.sources] & fair[joined.codes]
        keys = self.component[joined.sources] * kinds + joined.codes
        possible, counts = np.unique(keys[here], return_counts=True)
        sizes = np.bincount(self.component[self.reached], minlength=joined.states)
        everywhere = possible[counts == sizes[possible // kinds]]
        starved = everywhere[~np.isin(everywhere, keys[here & self.within])]
        unfair: Flags = np.isin(self.component, starved // kinds)
        return unfair
