"""The guard audit: every need of every step is dropped in turn, and some property must break.

A need that can be dropped without harm is either not needed, or judges what leaves no mark in the state: a checksum
that an event reports, say. The first should not be there; the second is the rule itself, and is listed as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gapless.properties import proofs
from gapless.properties.examples import Result, settled
from gapless.properties.proofs import CAN_HAPPEN, Step, theory
from gapless.spec.language import Refused
from gapless.traces.specs import Spec

WORK = 2_000_000  # enough for a proof that succeeds; a guard is audited by what is then refuted


@dataclass(frozen=True)
class Guard:
    """One need of one step, and what breaks without it."""

    spec: Spec
    step: Step
    because: str
    broken: tuple[Result, ...]

    @property
    def load_bearing(self) -> bool:
        """Whether some property breaks without it."""
        return bool(self.broken)


def needs(spec: Spec, step: Step, *, weak: bool) -> tuple[str, ...]:
    """The needs of a step, in the order of its text."""
    refusals = [way.outcome for way in theory(spec, weak, None).ways(step)[1] if isinstance(way.outcome, Refused)]
    return tuple(dict.fromkeys(refusal.because for refusal in reversed(refusals)))


def audit(spec: Spec) -> Iterator[Guard]:
    """Every need of every action, dropped in turn."""
    for step in spec.module.ACTIONS:
        for because in needs(spec, step, weak=False):
            yield without(spec, step, because)


def without(spec: Spec, step: Step, because: str) -> Guard:
    """What breaks if `step` does not have the need."""
    dropped = (step, because)
    found = []
    for obligation in proofs.inductive(spec, weak=False, only=(step,)):
        if obligation.invariant == CAN_HAPPEN:
            continue
        result = settled(replace(obligation, dropped=dropped), work=WORK)
        if result.verdict == "refuted":
            found.append(result)
    return Guard(spec, step, because, tuple(found))
