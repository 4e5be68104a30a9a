"""What catches a fault that is planted in a spec: a proof, a step that cannot happen any more, or exploration.

A fault that none of them catches is a survivor: either the spec says too little, or the fault makes no difference. The
second is proved: in every state the step accepts the same, and leads to the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby

from gapless.properties import examples, liveness, pieces, planting, proofs, sameness
from gapless.properties.bounds import NoBound, bound_of
from gapless.properties.examples import settled
from gapless.properties.exploration import explore
from gapless.properties.planting import Fault
from gapless.properties.proofs import CAN_HAPPEN, Obligation, theory
from gapless.spec.language import Refused
from gapless.traces.specs import Spec, State

QUICK = ((range(-1, 4), 2**32),)  # keys and numbers among which examples are looked for first


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
    """What catches a fault. What no cheaper check refutes has all its proofs tried again."""
    mutant = planting.planted(spec, fault)
    names = touched(spec, fault)
    shown = list(obligations(mutant, names))
    refuted = quickly(shown)
    never = next((o.step for o in shown if o.wanted == "sat" and settled(o).verdict != "proved"), "")
    explored = otherwise(spec, mutant, names)
    if refuted or never or explored:
        return Judged(spec.name, fault, refuted=refuted, never=never, explored=explored)
    if no_difference(spec, mutant, names):
        return Judged(spec.name, fault, same=True)
    for obligation in shown:
        if obligation.wanted == "unsat":
            verdict = settled(obligation).verdict
            if verdict != "proved":
                what = told(obligation)
                return Judged(spec.name, fault, **{"refuted" if verdict == "refuted" else "unproved": what})
    return Judged(spec.name, fault)


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
        for obligation in proofs.inductive(spec, weak=weak, only=steps):
            if not (weak and obligation.invariant == CAN_HAPPEN and obligation.steps[0] in spec.module.ACTIONS):
                yield obligation  # an action that can happen by the design can happen
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
    """Whether it is proved that every step with the fault comes to the same as without."""
    weak = bool(spec.deviations)
    pairs = zip(theory(spec, weak, None).steps, theory(mutant, weak, None).steps, strict=True)
    here, there = (partial(theory, one, weak) for one in (spec, mutant))
    return all(sameness.same(one, other, here, there) for one, other in pairs if one.__name__ in names)


# -- exploration ---------------------------------------------------------------------------------------------------


def otherwise(spec: Spec, mutant: Spec, names: frozenset[str]) -> str:
    """The first step, within the bounds in which a spec is explored, that is not taken, or refused, as in the spec."""
    actions = {d.instead_of.__name__ for d in spec.deviations if d.step.__name__ in names} | names & set(spec.actions)
    for profile in (None, *sorted(set[str]().union(*(d.profiles for d in spec.deviations)))):
        for state in states(spec, profile):
            for action in sorted(actions):
                for args in calls(spec, profile, action):
                    if outcome(spec, state, action, args, profile) != outcome(mutant, state, action, args, profile):
                        return f"{action}({', '.join(map(str, args))})"
    return ""


@cache
def states(spec: Spec, profile: str | None) -> tuple[State, ...]:
    """The states of a spec within its bound, as exploration meets them; none where it has no bound."""
    try:
        graph = explore(spec, bound_of(spec, profile), profile=profile).graph
    except NoBound:
        return ()
    return tuple(state for number, state in enumerate(graph.states) if number not in graph.beyond)


@cache
def calls(spec: Spec, profile: str | None, action: str) -> tuple[tuple[int, ...], ...]:
    """The arguments that exploration tries a step with."""
    return tuple(bound_of(spec, profile).arguments(spec, action))


def outcome(spec: Spec, state: State, action: str, args: tuple[int, ...], profile: str | None) -> object:
    """What becomes of a step: the state it leads to, or the need that refuses it."""
    try:
        return spec.actions[action](state, *args)
    except Refused as refusal:
        reason = refusal.because
    for deviation in spec.stand_ins(action, profile) if profile else ():
        try:
            return deviation.step(state, *args), deviation.step.__name__
        except Refused as refusal:
            reason += refusal.because
    return reason
