"""Equivalence of two readings of a step: they accept the same, and lead to the same state.

Asked of any state in which what is left of the invariants holds: deviations may have been taken before.
"""

from __future__ import annotations

from collections.abc import Callable

from gapless.properties.proof import counterexamples, symbolic
from gapless.properties.proof.induction import Obligation, Question, Step, Theory, ask
from gapless.properties.proof.terms.boolean_terms import all_of, any_of, negated

WINDOW, VALUES = range(-1, 4), 2**32  # keys and numbers among which a difference is looked for first
WORK = 4_000_000  # that a proof may cost; what it does not show is a difference

ByWindow = Callable[[range | None], Theory]


def same(one: Step, other: Step, here: ByWindow, there: ByWindow) -> bool:
    """True if `one` as read by `here` is proved equal to `other` as read by `there`."""
    near = apart(one, other, here(WINDOW), there(WINDOW))
    about = Obligation(here(None).spec, "the same", one.__name__, lambda _: near, steps=(one,))
    if ask((*near.terms, *counterexamples.small([about], [near], WINDOW, VALUES)), work=WORK).verdict == "sat":
        return False
    return ask(apart(one, other, here(None), there(None)).terms, work=WORK).verdict == "unsat"


def apart(one: Step, other: Step, here: Theory, there: Theory) -> Question:
    """A state and arguments for which the two do not come to the same."""
    (args, of_one), (_, of_other) = here.ways(one), there.ways(other)
    elsewhere = [
        all_of(a.walked, b.walked, negated(symbolic.same_state(a.outcome, b.outcome)))
        for a in of_one
        if a.accepted
        for b in of_other
        if b.accepted
    ]
    differ = any_of(symbolic.taken(of_one) != symbolic.taken(of_other), *elsewhere)
    return Question((*here.known, *here.tried(one), differ), here.before, args)
