"""That things do happen: what is pending is done in the end, if the step that helps is taken in the end.

Each claim is a *rank*: how far what is pending is from being done. A *helpful* step is always there, stays there
until it is taken, and lowers the rank; no other step raises it, but for listed disturbances, such as a crash. So the
rank falls to its floor, however the other steps are interleaved. That is weak fairness, and no more is assumed.

A rank needs a *witness*, such as the first gap. It is passed in, not searched for: everything is shown for whatever
satisfies its definition, and that there is one, for a gap, by induction over the numbers.

Claims are of the design's own steps, written in the words of the spec language, and read by Z3 as specs are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from operator import methodcaller
from typing import Any

import z3

from gapless.properties.proof import symbolic
from gapless.properties.proof.induction import Obligation, Question, Theory
from gapless.properties.proof.symbolic import State, Unknown
from gapless.spec.catalog import Spec
from gapless.spec.dispatch import NOBODY
from gapless.spec.language import all_between, greatest
from gapless.spec.transaction import Phase

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Helpful:
    """A step that helps: when it is the one to take, and with which arguments. All look at (state, subject, witness).

    `looks_first`: whoever takes it, the one check service say, looks where the witness is then; otherwise it is one
    particular step that waits, and must be left as it is until it is taken.
    """

    step: str
    when: Callable[..., Any]
    args: Callable[..., Values]
    looks_first: bool = False


@dataclass(frozen=True)
class Claim:
    """One thing that happens in the end.

    `pending(s, subject)`: what is to be done still is · `witness(s, subject, mark)`: that `mark` is the witness ·
    `rank(s, subject, mark)`: how far it is · `done(s, subject)`: that it is done; what is not pending any more without
    being done, is lost · `disturbances`: steps that may raise the rank, or lose what is pending, each with the reason.
    """

    sentence: str
    otherwise: str
    spec: str
    pending: Callable[[State, Any], Any]
    witness: Callable[[State, Any, Any], Any]
    rank: Callable[[State, Any, Any], Any]
    helpful: tuple[Helpful, ...]
    done: Callable[[State, Any], Any]
    disturbances: dict[str, str]
    gap: tuple[Callable[[State], Any], Callable[[State], Any], Callable[[State, Any], Any]] | None = None
    # where the witness is the first gap: the low and the high end of the numbers, and what is so of all before it


# -- the claims ----------------------------------------------------------------------------------------------------


def _gap(low: Callable[[State], Any], done: Callable[[State, Any], Any]) -> Callable[[State, Any, Any], Any]:
    """That a number is the first from `low` on that is not done."""
    return lambda s, _subject, gap: (
        low(s) <= gap and all_between(low(s), gap, lambda n: done(s, n)) and not done(s, gap)
    )


def _beyond(_s: State, subject: Any, gap: Any) -> Any:
    return subject < gap


def _not_beyond(_s: State, subject: Any, gap: Any) -> Any:
    return gap <= subject


def _way_to(_s: State, subject: Any, gap: Any) -> Any:
    """The numbers up to the subject that are not done, and the step over them."""
    return greatest(0, subject + 1 - gap) + 1


def _cursor(
    sentence: str,
    otherwise: str,
    spec: str,
    low: Callable[[State], Any],
    high: Callable[[State], Any],
    done: Callable[[State, Any], Any],
    steps: tuple[str, str],
    given: Callable[[State, Any], Any] = lambda _s, _subject: True,
) -> Claim:
    """A cursor passes every number before `high`: the first of `steps` closes the first gap, the second moves it on."""
    close, move = steps
    return Claim(
        sentence,
        otherwise,
        spec,
        pending=lambda s, subject: low(s) <= subject and subject < high(s) and given(s, subject),
        witness=_gap(low, done),
        rank=_way_to,
        helpful=(
            Helpful(close, _not_beyond, lambda _s, _subject, gap: (gap,)),
            Helpful(move, _beyond, lambda _s, _subject, gap: (gap,), looks_first=True),
        ),
        done=lambda s, subject: subject < low(s),
        disturbances={},
        gap=(low, high, done),
    )


HALF_CURSOR = _cursor(
    "the half cursor moves on",
    "halves behind it are asked about again after every start",
    "checkpoint",
    low=lambda s: s.half_cursor,
    high=lambda s: s.half_end,
    done=lambda s, n: s.resolved[n] == 1,
    steps=("resolve", "advance"),
)

OP_CURSOR = _cursor(
    "the op cursor moves on once the half cursor has passed what ops name",
    "every op is read again after every start",
    "checkpoint",
    low=lambda s: s.op_cursor,
    high=lambda s: s.op_end,
    done=lambda s, n: s.consumed[n] == 1,
    steps=("consume_op", "advance_ops"),
    given=lambda s, op: all_between(s.op_cursor, op + 1, lambda n: s.reaches[n] <= s.half_cursor),
)


def _resolves(
    sentence: str,
    spec: str,
    check: Callable[[State], Values],
    park: Callable[[State], Values],
    disturbances: dict[str, str],
    *,
    looks_first: bool = False,
) -> Claim:
    """A half is put back until its checks are spent, and is then set aside, unless it is decided before."""
    return Claim(
        sentence,
        "a producer's money is held for ever",
        spec,
        pending=lambda s, _half: s.phase == Phase.PREPARED and 0 < s.max_checks,
        witness=lambda _s, _half, _none: True,
        rank=lambda s, _half, _none: greatest(0, s.max_checks - s.checks) + 1,
        helpful=(
            Helpful(
                "check",
                lambda s, _half, _none: s.checks < s.max_checks,
                lambda s, _half, _none: check(s),
                looks_first,
            ),
            Helpful(
                "park",
                lambda s, _half, _none: s.max_checks <= s.checks,
                lambda s, _half, _none: park(s),
                looks_first,
            ),
        ),
        done=lambda s, _half: s.phase > Phase.PREPARED,
        disturbances=disturbances,
    )


EVERY_HALF_RESOLVES = _resolves(
    "every half resolves",
    "transaction",
    check=lambda s: (s.newest + 1, s.newest, s.positions[s.newest], s.checks + 1, True, True),
    park=lambda s: (s.newest, s.positions[s.newest], s.checks, True, False),
    disturbances={},
)

END_TO_END = _resolves(
    "every half of a broker resolves",
    "broker",
    check=lambda s: (s.end, s.checks + 1, s.group),
    park=lambda s: (s.end, s.checks),
    disturbances={"crash": "a half that was not on disk is gone; its producer was not told that it is safe"},
    looks_first=True,
)

COMMIT_GAP = _gap(lambda s: s.committed, lambda s, n: s.bits[n] == 1)


def _commit_position(sentence: str, may_overlap: Callable[[State], Any], disturbances: dict[str, str]) -> Claim:
    """The commit position passes every number that the log has a message for."""

    def busy(s: State) -> Any:
        return s.overlap <= 0 and s.at != NOBODY

    def stage(s: State, gap: Any) -> Any:
        if s.scanned <= gap:
            return 3
        if s.taken[gap] > 0:
            return 0
        return 2 if busy(s) else 1

    return Claim(
        sentence,
        "a message is in the log and no consumer ever receives it",
        "dispatch",
        pending=lambda s, number: 0 < s.lives and s.committed <= number and may_overlap(s),
        witness=COMMIT_GAP,
        rank=lambda s, number, gap: 1 if number < gap else 4 * (number + 1 - gap) + stage(s, gap),
        helpful=(
            Helpful("scan", lambda s, number, gap: gap <= number and s.scanned <= gap, lambda _s, _number, gap: (gap,)),
            Helpful(
                "take",
                lambda s, number, gap: gap <= number and gap < s.scanned and s.taken[gap] == 0 and not busy(s),
                lambda _s, _number, gap: (gap,),
            ),
            Helpful(
                "write",
                lambda s, number, gap: gap <= number and gap < s.scanned and (s.taken[gap] > 0 or busy(s)),
                lambda s, _number, gap: (gap if s.taken[gap] > 0 else s.at,),
            ),
            Helpful("commit", _beyond, lambda _s, _number, gap: (gap,), looks_first=True),
        ),
        done=lambda s, number: number < s.committed,
        disturbances=disturbances,
        gap=(lambda s: s.committed, lambda s: s.scanned, lambda s, n: s.bits[n] == 1),
    )


CRASH = {"crash": "what was not flushed is scanned and written anew"}
COMMIT_POSITION = _commit_position(
    "the commit position moves on where workers may overlap", lambda s: 0 < s.overlap, CRASH
)
SERIALIZED = _commit_position(
    "the commit position moves on where one works at a time",
    lambda s: s.overlap <= 0,
    CRASH | {"take": "another worker comes first; the queue's lock must not pass over the same one for ever"},
)

EVERY_PERMIT = Claim(
    "every permit comes back",
    "a client loses a permit with every silence, until all its callers wait for ever",
    "permits",
    # `held` counts who is out, for every step changes both alike (`a_permit_is_held_while_its_request_is_out`).
    pending=lambda s, request: s.returned[request] < s.taken[request] and 0 < s.held,
    witness=lambda _s, _request, _none: True,
    rank=lambda s, request, _none: 2 if s.clock - s.since[request] < s.timeout else 1,
    helpful=(
        Helpful(
            "tick",
            lambda s, request, _none: s.clock - s.since[request] < s.timeout,
            lambda s, request, _none: (s.since[request] + s.timeout,),
            looks_first=True,
        ),
        Helpful(
            "time_out",
            lambda s, request, _none: s.timeout <= s.clock - s.since[request],
            lambda _s, request, _none: (request,),
        ),
    ),
    done=lambda s, request: s.taken[request] <= s.returned[request] or s.held <= 0,
    disturbances={},
)

WHAT_IS_COMMITTED_IS_SEEN = Claim(
    "what is committed is seen",
    "a producer committed, and nothing comes of it",
    "broker",
    pending=lambda s, _half: s.phase == Phase.COMMITTED and s.visible == 0,
    witness=lambda _s, _half, _none: True,
    rank=lambda s, _half, _none: 2 if s.flushed <= s.final else 1,
    helpful=(
        Helpful(
            "flush",
            lambda s, _half, _none: s.flushed <= s.final,
            lambda s, _half, _none: (s.end,),
            looks_first=True,
        ),
        Helpful(
            "dispatch",
            lambda s, _half, _none: s.final < s.flushed,
            lambda s, _half, _none: (s.final,),
        ),
    ),
    done=lambda s, _half: s.visible > 0,
    disturbances={"crash": "a final that was not on disk is gone, and its half is asked about again"},
)

CLAIMS: tuple[Claim, ...] = (
    EVERY_HALF_RESOLVES,
    END_TO_END,
    WHAT_IS_COMMITTED_IS_SEEN,
    HALF_CURSOR,
    OP_CURSOR,
    COMMIT_POSITION,
    SERIALIZED,
    EVERY_PERMIT,
)


# -- what must be shown --------------------------------------------------------------------------------------------


def obligations(spec: Spec) -> Iterator[Obligation]:
    """All that must be shown of the claims about a spec."""
    for claim in CLAIMS:
        if claim.spec == spec.name:
            yield from shown(spec, claim)


def shown(spec: Spec, claim: Claim) -> Iterator[Obligation]:
    """All that must be shown of one claim."""

    def one(step: str, wrong: str, *about: Any) -> Obligation:
        ask = methodcaller(wrong, *about)
        return Obligation(spec, claim.sentence.replace(" ", "_"), step, lambda theory: ask(_Shown(claim, theory)))

    if claim.gap:
        yield one("there is a first gap", "no_gap")
    yield one("some step helps", "nothing_helps")
    for helpful in claim.helpful:
        yield one(f"{helpful.step} is enabled", "disabled", helpful)
        yield one(f"{helpful.step} lowers the rank", "does_not_lower", helpful)
    for name in spec.actions:
        if name not in claim.disturbances:
            yield one(f"{name} does not raise the rank", "raises", name)
            yield one(f"{name} loses nothing", "loses", name)
            for helpful in claim.helpful:
                words = f"{name} leaves {helpful.step} to be taken"
                yield one(words, "withdraws", name, helpful)


class _Shown:
    """A claim of one theory: any state, what is pending in it, and the witness."""

    def __init__(self, claim: Claim, theory: Theory) -> None:
        self.claim = claim
        self.theory = theory
        # Fresh, for fields of a state are called as they are, and arguments "its" so and so.
        self.subject, self.mark, self.later = (
            Unknown(z3.FreshConst(z3.IntSort(), name)) for name in ("subject", "witness", "next witness")
        )
        self.known = (*theory.known, self.says(claim.pending, theory.before), self.is_witness(theory.before, self.mark))

    def says(self, predicate: Callable[..., Any], state: State, *marks: Unknown) -> Any:
        with symbolic.read(self.theory.reading):
            return symbolic.formula(predicate, state, self.subject, *marks)

    def is_witness(self, state: State, mark: Unknown) -> Any:
        return self.says(self.claim.witness, state, mark)

    def rank(self, state: State, mark: Unknown) -> Any:
        with symbolic.read(self.theory.reading):
            return symbolic.term(self.claim.rank, state, self.subject, mark)

    def args(self, helpful: Helpful, state: State, mark: Unknown) -> list[Any]:
        """The arguments that a helpful step is taken with, as terms."""
        count = len(signature(self.theory.spec.actions[helpful.step]).parameters) - 1
        return [symbolic.term(lambda n=n: helpful.args(state, self.subject, mark)[n]) for n in range(count)]

    def question(self, *terms: Any) -> Question:
        marks = {"subject": self.subject, "witness": self.mark}
        return Question((*self.known, *terms), self.theory.before, marks, {})

    def no_gap(self) -> Question:
        """Induction over the numbers: were there no first gap, all up to the end would be done, and one beyond it."""
        assert self.claim.gap is not None  # noqa: S101 - asked of gaps only
        low, high, done = self.claim.gap
        state, k = self.theory.before, z3.FreshConst(z3.IntSort(), "k")
        with symbolic.read(self.theory.reading):
            g = z3.FreshConst(z3.IntSort(), "g")
            none = z3.ForAll([g], z3.Not(symbolic.formula(self.claim.witness, state, self.subject, Unknown(g))))

            def all_up_to(end: Any) -> Any:
                return symbolic.truth(self.theory.reading.all_between(low(state), end, partial(done, state)))

            first, last = symbolic.number(low(state)), symbolic.number(high(state))
            induction = z3.And(first <= k, k <= last, all_up_to(Unknown(k)), z3.Not(all_up_to(Unknown(k + 1))))
            at_last = z3.And(all_up_to(Unknown(first)), symbolic.truth(done(state, Unknown(last))))
        return Question((*self.known[:-1], none, z3.Or(z3.Not(all_up_to(Unknown(first))), induction, at_last)), state)

    def nothing_helps(self) -> Question:
        """That none of the helpful steps is the one to take, or that the rank has no floor."""
        due = [self.says(helpful.when, self.theory.before, self.mark) for helpful in self.claim.helpful]
        return self.question(z3.Or(z3.Not(z3.Or(due)), self.rank(self.theory.before, self.mark) < 0))

    def disabled(self, helpful: Helpful) -> Question:
        """That a helpful step is the one to take, and refused."""
        taken = z3.Or([z3.And(way.facts) for way in self.taken_with(helpful)])
        return self.question(self.says(helpful.when, self.theory.before, self.mark), z3.Not(taken))

    def taken_with(self, helpful: Helpful) -> Sequence[symbolic.Way]:
        """The ways through a helpful step with its arguments."""
        step = self.theory.spec.actions[helpful.step]
        terms = self.args(helpful, self.theory.before, self.mark)
        kinds = symbolic.unknown_arguments(step).values()
        given = [
            Unknown(symbolic.truth(Unknown(term)) if z3.is_bool(kind.term) else term)
            for kind, term in zip(kinds, terms, strict=True)
        ]
        with symbolic.read(self.theory.reading):
            return [way for way in symbolic.ways(step, self.theory.before, given) if way.accepted]

    def still(self, after: State) -> tuple[Any, ...]:
        """That it is still pending afterwards, and what the witness is then."""
        return self.says(self.claim.pending, after), self.is_witness(after, self.later)

    def does_not_lower(self, helpful: Helpful) -> Question:
        """That a helpful step is taken, and the rank is no lower."""
        before = self.rank(self.theory.before, self.mark)
        cases = [
            z3.And(*way.facts, *self.still(way.outcome), before <= self.rank(way.outcome, self.later))
            for way in self.taken_with(helpful)
        ]
        return self.question(self.says(helpful.when, self.theory.before, self.mark), z3.Or(cases))

    def raises(self, name: str) -> Question:
        """That some step raises the rank."""
        before = self.rank(self.theory.before, self.mark)
        return self.question(
            z3.Or(
                [
                    z3.And(*way.facts, *self.still(way.outcome), before < self.rank(way.outcome, self.later))
                    for way in self.theory.ways(self.theory.spec.actions[name])[1]
                    if way.accepted
                ]
            )
        )

    def loses(self, name: str) -> Question:
        """That some step ends what is pending, and it is not done."""
        cases = []
        for way in self.theory.ways(self.theory.spec.actions[name])[1]:
            if way.accepted:
                pending, done = self.says(self.claim.pending, way.outcome), self.says(self.claim.done, way.outcome)
                cases.append(z3.And(*way.facts, z3.Not(pending), z3.Not(done)))
        return self.question(z3.Or(cases))

    def withdraws(self, name: str, helpful: Helpful) -> Question:
        """That some step leaves the rank as it is, and the helpful step is not the one to take any more, or another."""
        before = self.rank(self.theory.before, self.mark)
        wanted = self.args(helpful, self.theory.before, self.mark)
        cases = []
        for way in self.theory.ways(self.theory.spec.actions[name])[1]:
            if way.accepted:
                due = self.says(helpful.when, way.outcome, self.later)
                later = self.args(helpful, way.outcome, self.later)
                same = () if helpful.looks_first else [a == b for a, b in zip(wanted, later, strict=True)]
                unlowered = before <= self.rank(way.outcome, self.later)
                cases.append(z3.And(*way.facts, *self.still(way.outcome), unlowered, z3.Not(z3.And(due, *same))))
        return self.question(self.says(helpful.when, self.theory.before, self.mark), z3.Or(cases))
