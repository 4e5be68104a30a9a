"""That things do happen: the obligations that a claim (`claims/`) comes to, for Z3.

A helpful step is tried with every argument that `given` grants, not with one that suits. Its ways, like those of any
step, must cover every input, and no two overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from operator import methodcaller
from typing import Any

import z3

from gapless.properties.proof import symbolic
from gapless.properties.proof.claims import HelpfulStep, RankedClaim, claims_of
from gapless.properties.proof.induction import LOST, Obligation, Question, Theory
from gapless.properties.proof.objections import SUBJECT, Objection
from gapless.properties.proof.symbolic import State, Unknown
from gapless.properties.proof.terms.boolean_terms import all_of, any_of, negated
from gapless.spec.catalog import Spec


def obligations(spec: Spec) -> Iterator[Obligation]:
    """All that must be shown of the claims about a spec."""
    for claim in claims_of(spec):
        yield from shown(spec, claim)


def shown(spec: Spec, claim: RankedClaim) -> Iterator[Obligation]:
    """All that must be shown of one claim."""
    of = cache(partial(_Shown, claim))  # of a theory, read once for all that is to be shown of it

    def one(step: str, wrong: str, *about: Any, otherwise: str = "", taken: str = "") -> Obligation:
        ask = methodcaller(wrong, *about)
        objects = Objection(spec, claim).against(wrong, *about)
        return Obligation(
            spec,
            claim.sentence.replace(" ", "_"),
            step,
            lambda theory: ask(of(theory)),
            steps=(spec.actions[taken],) if taken and objects else (),
            otherwise=otherwise,
            assumes=claim.assumes,
            confirms=objects,
            title=f'the claim "{claim.sentence}" is not proved: it is false that {step}' if objects else "",
        )

    if claim.gap:
        yield one("there is a first gap", "no_gap")
    yield one("some step helps", "nothing_helps")
    for helpful in claim.helpful:
        yield one(f"{helpful.called} is read whole", "uncovered", helpful, otherwise=LOST)
        yield one(f"{helpful.called} is enabled", "disabled", helpful)
        yield one(f"{helpful.called} lowers the rank", "does_not_lower", helpful, taken=helpful.step)
    for name in spec.actions:
        if name not in claim.disturbances:
            yield one(f"{name} does not raise the rank", "raises", name, taken=name)
            yield one(f"{name} loses nothing", "loses", name, taken=name)
            for helpful in claim.helpful:
                words = f"{name} leaves {helpful.called} to be taken"
                yield one(words, "withdraws", name, helpful, taken=name)


class _Shown:
    """A claim of one theory: any state, what is pending in it, and the witness."""

    def __init__(self, claim: RankedClaim, theory: Theory) -> None:
        self.claim = claim
        self.theory = theory
        # Fresh, for fields of a state are called as they are, and arguments "its" so and so.
        self.subject, self.mark, self.later = (
            Unknown(z3.FreshConst(z3.IntSort(), name)) for name in ("subject", "witness", "next witness")
        )
        self.read: dict[tuple[Any, ...], Any] = {}  # what was read already: of one state, many obligations ask the same
        self.known = (*theory.known, self.says(claim.pending, theory.before), self.is_witness(theory.before, self.mark))

    def says(self, predicate: Callable[..., Any], state: State, *marks: Unknown) -> Any:
        return self.once(symbolic.formula, predicate, state, *marks)

    def is_witness(self, state: State, mark: Unknown) -> Any:
        return self.says(self.claim.witness, state, mark)

    def rank(self, state: State, mark: Unknown) -> Any:
        return self.once(symbolic.term, self.claim.rank, state, mark)

    def once(self, how: Callable[..., Any], function: Callable[..., Any], state: State, *marks: Unknown) -> Any:
        """The value of a claim's function for a state and the subject, read by `how` on first use."""
        key = (how, function, id(state), *map(id, marks))
        if key not in self.read:
            with symbolic.read(self.theory.reading):
                self.read[key] = how(function, state, self.subject, *marks), state  # kept, and so is its number
        return self.read[key][0]

    def settled(self, helpful: HelpfulStep, state: State, mark: Unknown) -> dict[str, Any]:
        """The arguments of a helpful step that are settled, as terms: those whose names are the same in every case."""
        names = self.theory.spec.parameters[helpful.step]
        with symbolic.read(self.theory.reading):
            _, some = symbolic.walked(helpful.args, state, self.subject, mark)[0]
            if strange := [name for name in some if name not in names]:
                raise TypeError(f"{helpful.step} has no argument {strange[0]}")
            return {name: symbolic.term(lambda n=name: helpful.args(state, self.subject, mark)[n]) for name in some}

    def granted(self, helpful: HelpfulStep) -> tuple[dict[str, Unknown], tuple[Any, ...]]:
        """The arguments that a helpful step is taken with, and what is granted of those that are not settled."""
        unknown = symbolic.unknown_arguments(self.theory.spec.actions[helpful.step], tag="helpful ")
        settled = self.settled(helpful, self.theory.before, self.mark)
        given = {
            name: Unknown(symbolic.truth(Unknown(settled[name])) if z3.is_bool(value.term) else settled[name])
            if name in settled
            else value
            for name, value in unknown.items()
        }
        if helpful.given is None:
            return given, ()
        others = {name: value for name, value in given.items() if name not in settled}
        with symbolic.read(self.theory.reading):
            return given, (
                symbolic.formula(partial(helpful.given, self.theory.before, self.subject, self.mark, **others)),
            )

    def question(self, *terms: Any, args: Mapping[str, Unknown] | None = None) -> Question:
        if self.claim.number is None:  # its examples are shown by the state alone
            marks = {"subject": self.subject, "witness": self.mark}
            return Question((*self.known, *terms), self.theory.before, marks, {})
        free = {SUBJECT: self.subject} if self.claim.number else {}
        return Question((*self.known, *terms), self.theory.before, dict(args or {}), free)

    def no_gap(self) -> Question:
        """Induction over the numbers: were there no first gap, all up to the end would be done, and one beyond it.

        That a number is no first gap is stated for the one at hand alone: of every number, it is a riddle to Z3.
        """
        assert self.claim.gap is not None  # noqa: S101 - asked of gaps only
        low, high, done = self.claim.gap
        state, k = self.theory.before, z3.FreshConst(z3.IntSort(), "k")
        with symbolic.read(self.theory.reading):
            none = negated(symbolic.formula(self.claim.witness, state, self.subject, Unknown(k)))

            def all_up_to(end: Any) -> Any:
                return symbolic.truth(self.theory.reading.all_between(low(state), end, partial(done, state)))

            first, last = symbolic.number(low(state)), symbolic.number(high(state))
            induction = all_of(first <= k, k <= last, all_up_to(Unknown(k)), negated(all_up_to(Unknown(k + 1))))
            at_last = all_of(all_up_to(Unknown(first)), symbolic.formula(done, state, Unknown(last)))
        return Question((*self.known[:-1], none, any_of(negated(all_up_to(Unknown(first))), induction, at_last)), state)

    def nothing_helps(self) -> Question:
        """That none of the helpful steps is the one to take, or that the rank has no floor."""
        due = [self.says(helpful.when, self.theory.before, self.mark) for helpful in self.claim.helpful]
        return self.question(any_of(negated(any_of(*due)), self.rank(self.theory.before, self.mark) < 0))

    def disabled(self, helpful: HelpfulStep) -> Question:
        """That a helpful step is the one to take, and refused, whatever is granted of its arguments."""
        ways, granted = self.taken_with(helpful)
        due = self.says(helpful.when, self.theory.before, self.mark)
        return self.question(due, *granted, negated(symbolic.taken(ways)), args=self.granted(helpful)[0])

    def uncovered(self, helpful: HelpfulStep) -> Question:
        """A state in which no way through a helpful step is walked, or two are."""
        return Question((symbolic.uncovered([way.facts for way in self.taken_with(helpful)[0]]),))

    def taken_with(self, helpful: HelpfulStep) -> tuple[Sequence[symbolic.Way], tuple[Any, ...]]:
        """The ways through a helpful step with its arguments, and what is granted of these."""
        given, granted = self.granted(helpful)
        with symbolic.read(self.theory.reading):
            ways = symbolic.ways(self.theory.spec.actions[helpful.step], self.theory.before, given)
        return ways, granted

    def still(self, after: State) -> tuple[Any, ...]:
        """That it is still pending afterwards, and what the witness is then."""
        return self.says(self.claim.pending, after), self.is_witness(after, self.later)

    def does_not_lower(self, helpful: HelpfulStep) -> Question:
        """That a helpful step is taken, and the rank is no lower."""
        before = self.rank(self.theory.before, self.mark)
        ways, granted = self.taken_with(helpful)
        cases = [
            all_of(way.walked, *self.still(way.outcome), before <= self.rank(way.outcome, self.later))
            for way in ways
            if way.accepted
        ]
        due = self.says(helpful.when, self.theory.before, self.mark)
        return self.question(due, *granted, any_of(*cases), args=self.granted(helpful)[0])

    def raises(self, name: str) -> Question:
        """That some step raises the rank."""
        before = self.rank(self.theory.before, self.mark)
        cases = [
            all_of(way.walked, *self.still(way.outcome), before < self.rank(way.outcome, self.later))
            for way in self.theory.ways(self.theory.spec.actions[name])[1]
            if way.accepted
        ]
        return self.question(any_of(*cases), args=self.arguments(name))

    def loses(self, name: str) -> Question:
        """That some step ends what is pending, and it is not done."""
        cases = []
        for way in self.theory.ways(self.theory.spec.actions[name])[1]:
            if way.accepted:
                pending, done = self.says(self.claim.pending, way.outcome), self.says(self.claim.done, way.outcome)
                cases.append(all_of(way.walked, negated(pending), negated(done)))
        return self.question(any_of(*cases), args=self.arguments(name))

    def arguments(self, name: str) -> Mapping[str, Unknown]:
        return self.theory.ways(self.theory.spec.actions[name])[0]

    def withdraws(self, name: str, helpful: HelpfulStep) -> Question:
        """A step that keeps the rank, after which the helpful step is another one, or none."""
        before = self.rank(self.theory.before, self.mark)
        wanted = self.settled(helpful, self.theory.before, self.mark)
        cases = []
        for way in self.theory.ways(self.theory.spec.actions[name])[1]:
            if way.accepted:
                due = self.says(helpful.when, way.outcome, self.later)
                later = self.settled(helpful, way.outcome, self.later)
                same = () if helpful.looks_first else [wanted[argument] == later[argument] for argument in wanted]
                unlowered = before <= self.rank(way.outcome, self.later)
                cases.append(all_of(way.walked, *self.still(way.outcome), unlowered, negated(all_of(due, *same))))
        due = self.says(helpful.when, self.theory.before, self.mark)
        return self.question(due, any_of(*cases), args=self.arguments(name))
