"""The guard audit: every need of every step is dropped in turn, and some property must break.

A need that can be dropped without harm is either not needed, or stays for a reason. Two reasons are found mechanically:
it judges what the event alone says, which leaves no mark in any state, so that the need itself is the rule; or other
needs refuse whatever it refuses, and it is there to say better what is wrong. All others are argued, one by one, below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import z3

from gapless.properties import examples, proofs, sameness, symbolic
from gapless.properties.proofs import CAN_HAPPEN, Obligation, Step, ask, theory
from gapless.properties.symbolic import State, UnknownMap
from gapless.spec.language import Refused
from gapless.traces.specs import SPECS, Spec

WINDOW, VALUES = range(-1, 4), 2**32  # keys and numbers among which what breaks is looked for
WORK = 4_000_000  # that a proof may cost that a need makes no difference

Why = Literal["load-bearing", "judges the event alone", "implied", "argued", "unneeded"]

ARGUED: dict[tuple[str, str], str] = {}
"""Of a step and its need: why it stays though no property breaks without it, where that takes a human to say."""


@dataclass(frozen=True)
class Guard:
    """One need of one step, and what breaks without it, or why it stays all the same."""

    spec: str
    step: str
    because: str
    why: Why
    says: tuple[str, ...]  # the properties that break; else the needs that refuse in its place, or the argument


def audit(spec: Spec) -> Iterator[Guard]:
    """Every need of every action and deviation."""
    for step in (*spec.module.ACTIONS, *(deviation.step for deviation in spec.deviations)):
        dropped = _Step(spec, step)
        for because in dropped.needs:
            yield dropped.without(because)


@dataclass(frozen=True)
class _Step:
    """One step, with all its needs. A deviation is taken where only the weak invariants are left."""

    spec: Spec
    step: Step

    @property
    def weak(self) -> bool:
        """Whether it is a deviation."""
        return self.step not in self.spec.module.ACTIONS

    @cached_property
    def obligations(self) -> Sequence[Obligation]:
        """What must be shown of it, but for that it can happen."""
        found = [o for o in proofs.inductive(self.spec, weak=self.weak, only=(self.step,)) if o.invariant != CAN_HAPPEN]
        return [*found, *(o for o in proofs.exclusive(self.spec) if self.step in o.steps)]

    @property
    def needs(self) -> tuple[str, ...]:
        """Its needs, in the order of the text."""
        ways = theory(self.spec, self.weak, None).ways(self.step)[1]
        refusals = [way.outcome for way in reversed(ways) if isinstance(way.outcome, Refused)]
        return tuple(dict.fromkeys(refusal.because for refusal in refusals))

    def without(self, because: str) -> Guard:
        """What becomes of it without a need."""

        def guard(why: Why, *says: str) -> Guard:
            return Guard(self.spec.name, self.step.__name__, because, why, says)

        broken = self.broken(because)
        if broken:
            return guard("load-bearing", *(name.replace("_", " ") for name in broken))
        if (self.step.__name__, because) in ARGUED:
            return guard("argued", ARGUED[self.step.__name__, because])
        change = _Change(self.spec, self.step, because)
        if change.makes_no_difference():
            return guard("implied", *change.refused_instead())
        return guard("judges the event alone" if change.leaves_no_mark() else "unneeded")

    def broken(self, because: str) -> tuple[str, ...]:
        """The properties that break without a need, each shown by an example."""
        asked = [replace(o, dropped=(self.step, because)) for o in self.obligations]
        return tuple(dict.fromkeys(o.invariant for o in asked if examples.refuted([o], WINDOW, VALUES)))


class _Change:
    """A step with and without a need, wherever what is left of the invariants holds."""

    def __init__(self, spec: Spec, step: Step, because: str) -> None:
        weak = bool(spec.deviations)
        self.step = step
        self.because = because
        self.theories = partial(theory, spec, weak), partial(theory, spec, weak, dropped=(step, because))
        self.here, self.there = (one(None) for one in self.theories)
        self.known = (*self.here.known, *self.here.tried(step))

    def makes_no_difference(self) -> bool:
        """Whether it is proved that the step accepts the same without the need."""
        return sameness.same(self.step, self.step, *self.theories)

    def refused_instead(self) -> tuple[str, ...]:
        """The needs that refuse in its place; none where it is always met."""
        ways = self.here.ways(self.step)[1]
        mine = [w for w in ways if isinstance(w.outcome, Refused) and w.outcome.because == self.because]
        refused = z3.Or([z3.And(way.facts) for way in mine])
        found: dict[str, None] = {}
        for way in reversed(self.there.ways(self.step)[1]):
            if isinstance(way.outcome, Refused) and way.outcome.because not in found:
                if ask((*self.known, refused, *way.facts), work=WORK).said != "unsat":
                    found[way.outcome.because] = None
        return tuple(found)

    def leaves_no_mark(self) -> bool:
        """Whether all that it lets through could have come about lawfully, had the event claimed something else.

        So it is where the effect does not use what the event claims, and with another claim the step is accepted.
        """
        args, ways = self.here.ways(self.step)
        outcomes = [way.outcome for way in ways if way.accepted]
        if all(state is self.here.before for state in outcomes):
            return True
        used = set[str]().union(*(_constants(term) for state in outcomes for term in _terms(state)))
        claims = [value.term for value in args.values() if str(value.term) not in used]
        others = [z3.FreshConst(claim.sort(), "other") for claim in claims]
        lawful = z3.substitute(symbolic.taken(ways), *zip(claims, others, strict=True))
        never = z3.ForAll(others, z3.Not(lawful)) if others else z3.Not(lawful)
        return ask((*self.known, symbolic.taken(self.there.ways(self.step)[1]), never), work=WORK).said == "unsat"


def _terms(state: State) -> Iterator[Any]:
    for name in state.__dataclass_fields__:
        value = getattr(state, name)
        yield value.term if isinstance(value, UnknownMap) else symbolic.number(value)


def _constants(term: Any) -> set[str]:
    """The names of what is unknown in a term."""
    if z3.is_quantifier(term):
        return _constants(term.body())
    if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
        return {str(term)}
    return set[str]().union(*map(_constants, term.children())) if z3.is_app(term) else set()
