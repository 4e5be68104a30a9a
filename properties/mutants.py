"""What catches a fault that is planted in a spec: a proof, a step that cannot happen any more, or exploration.

A fault that none of them catches is a survivor: either the spec says too little, or the fault makes no difference. The
second is proved: in every state the step accepts the same, and leads to the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import z3

from gapless.properties import examples, liveness, pieces, planting, proofs, symbolic
from gapless.properties.examples import settled
from gapless.properties.planting import Fault
from gapless.properties.proofs import CAN_HAPPEN, Obligation, Step, ask, theory
from gapless.traces.specs import Spec

QUICK = ((range(-1, 3), 20), (range(-1, 5), 2**32))  # where examples are looked for first: keys, numbers
WORK = 4_000_000  # that a proof may cost that a fault makes no difference


@dataclass(frozen=True)
class Judged:
    """What became of one fault: what refutes it, or why it makes no difference."""

    spec: str
    fault: Fault
    refuted: str = ""  # the step and the property that breaks
    unproved: str = ""  # the step and the property that is not proved any more, nor refuted
    never: str = ""  # the step that cannot happen any more
    explored: str = ""  # what exploration finds otherwise than in the spec as it is
    same: bool = False  # proved: in every state, every step that has the fault accepts the same and leads to the same

    @property
    def caught(self) -> bool:
        """Whether anything catches it."""
        return bool(self.refuted or self.unproved or self.never or self.explored)


def judge(spec: Spec, fault: Fault) -> Judged:
    """What catches a fault."""
    mutant = planting.planted(spec, fault)
    names = touched(spec, fault)
    all_of_it = list(obligations(mutant, names))
    refuted = quickly(all_of_it)
    never = unknown = ""
    for obligation in all_of_it:
        if obligation.invariant == CAN_HAPPEN and settled(obligation).verdict != "proved":
            never = obligation.step
    same = not refuted and not never and no_difference(spec, mutant, names)
    if not refuted and not same:
        for obligation in all_of_it:
            if obligation.wanted == "unsat":
                result = settled(obligation)
                if result.verdict == "refuted":
                    refuted = told(obligation)
                    break
                if result.verdict == "unknown":
                    unknown = told(obligation)
    return Judged(spec.name, fault, refuted, unknown, never, "", same)


def told(obligation: Obligation) -> str:
    return f"{obligation.step}: {obligation.invariant}"


def touched(spec: Spec, fault: Fault) -> frozenset[str]:
    """The actions and deviations that a fault may change, those that stand in for a changed action among them."""
    names = planting.behind_steps(spec)[fault.function]
    return names | {d.step.__name__ for d in spec.deviations if d.instead_of.__name__ in names}


def obligations(spec: Spec, names: frozenset[str]) -> Iterator[Obligation]:
    """All that must be shown of a spec and has to do with steps of these names."""
    for weak in (False, True) if spec.deviations else (False,):
        steps = [step for step in theory(spec, weak, None).steps if step.__name__ in names]
        yield from proofs.inductive(spec, weak=weak, only=steps)
    for more in (proofs.exclusive, liveness.obligations, pieces.obligations):
        yield from (o for o in more(spec) if names & set(o.step.split()))


def quickly(all_of_it: Sequence[Obligation]) -> str:
    """An obligation that an example in small numbers speaks against: all of one step are asked at once."""
    asked = [o for o in all_of_it if o.wanted == "unsat" and o.holds]
    for window, bound in QUICK:
        for _, some in groupby(asked, key=lambda o: (o.step, o.weak)):
            result = examples.refuted(list(some), window, bound)
            if result:
                return told(result.obligation)
    return ""


def no_difference(spec: Spec, mutant: Spec, names: frozenset[str]) -> bool:
    """Whether it is proved that steps accept the same and lead to the same, wherever what is left of the invariants holds."""
    weak = bool(spec.deviations)
    here, there = theory(spec, weak, None), theory(mutant, weak, None)
    pairs = zip(here.steps, there.steps, strict=True)
    for one, other in pairs:
        if one.__name__ in names:
            of_one, of_other = here.ways(one)[1], there.ways(other)[1]
            apart = [
                z3.And(*a.facts, *b.facts, z3.Not(symbolic.same_state(a.outcome, b.outcome)))
                for a in of_one if a.accepted
                for b in of_other if b.accepted
            ]
            differ = z3.Or(symbolic.taken(of_one) != symbolic.taken(of_other), *apart)
            if ask((*here.known, *here.tried(one), differ), work=WORK).said != "unsat":
                return False
    return True
