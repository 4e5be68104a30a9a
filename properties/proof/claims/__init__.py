"""Liveness claims by spec: those about our spec NAME are `CLAIMS` in `claims/NAME.py`; users have them in their file.

Each claim is a *rank*: how far what is pending is from being done. A *helpful* step is always there, stays there
until it is taken, and lowers the rank; no other step raises it, but for listed disturbances, such as a crash. So the
rank falls to its floor, however the other steps are interleaved, if the helpful steps are taken in the end: that is
fairness, stated for each of them, and no more is assumed.

A rank needs a *witness*, such as the first gap. It is passed in, not searched for: everything is shown for whatever
satisfies its definition, and that there is one, for a gap, by induction over the numbers.

Claims are of the design's own steps, written in the words of the spec language, and read by Z3 as specs are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from gapless.spec import language
from gapless.spec.catalog import Spec, State, sentence_of
from gapless.spec.language import all_between, greatest


@dataclass(frozen=True)
class HelpfulStep:
    """A step that helps: when it is the one to take, and with which arguments. All look at (state, subject, witness).

    `args`: the arguments that are settled, by name; the others are whatever `given` grants, which looks
    at them by name, too: the step must help with every one of these · `fairness`: why it is taken in the end, where it
    is the one to take (weak fairness) · `looks_first`: its taker, such as the one check service, looks where the
    witness is then; otherwise it is one particular step that waits, and must be left as it is until it is taken.
    """

    step: str
    when: Callable[..., Any]
    args: Callable[..., Mapping[str, Any]]
    fairness: str
    given: Callable[..., Any] | None = None
    looks_first: bool = False
    words: str = ""  # what it is called, where that is more than its step

    @property
    def called(self) -> str:
        """The name of its step, and where several helpful ones are of that step, when it is the one to take."""
        return self.words or self.step


@dataclass(frozen=True)
class RankedClaim:
    """One thing that happens in the end.

    `pending(s, subject)`: what is to be done still is · `witness(s, subject, mark)`: that `mark` is the witness ·
    `rank(s, subject, mark)`: how far it is · `done(s, subject)`: that it is done; what is not pending any more without
    being done, is lost · `disturbances`: steps that may raise the rank, or lose what is pending, each with the reason.
    """

    sentence: str
    otherwise: str
    pending: Callable[[State, Any], Any]
    witness: Callable[[State, Any, Any], Any]
    rank: Callable[[State, Any, Any], Any]
    helpful: tuple[HelpfulStep, ...]
    done: Callable[[State, Any], Any]
    disturbances: Mapping[str, str]
    gap: tuple[Callable[[State], Any], Callable[[State], Any], Callable[[State, Any], Any]] | None = None
    # where the witness is the first gap: the low and the high end of the numbers, and what is so of all before it
    number: str | None = None
    # of a claim in a spec's own file: what it calls its subject; empty where it speaks of the state alone

    @property
    def assumes(self) -> tuple[str, ...]:
        """Its assumptions: each helpful step is taken in the end, and disturbances come to an end."""
        fair = (f"{helpful.step} is taken in the end: {helpful.fairness}" for helpful in self.helpful)
        ends = (f"{step} comes to an end: {reason}" for step, reason in self.disturbances.items())
        return tuple(dict.fromkeys((*fair, *ends)))


@cache
def claims_of(spec: Spec) -> tuple[RankedClaim, ...]:
    """The claims about a spec that have a rank; maybe none: those in its own file, and those here."""
    stated: tuple[language.Claim, ...] = getattr(spec.module, "CLAIMS", ())
    own = tuple(ranked(claim) for claim in stated if claim.rank)
    name = f"{__name__}.{spec.name}"
    try:
        found: tuple[RankedClaim, ...] = import_module(name).CLAIMS
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return own
    return (*own, *found)


def without_rank(spec: Spec) -> tuple[str, ...]:
    """The sentences of a spec's claims that are not proved, for they have no rank."""
    stated: tuple[language.Claim, ...] = getattr(spec.module, "CLAIMS", ())
    return tuple(claim.sentence for claim in stated if not claim.rank)


def ranked(claim: language.Claim) -> RankedClaim:
    """A claim of a spec's own file: its functions take the subject where they ask for it, and no witness."""
    done, pending = _fitted(claim.done), _fitted(claim.pending) if claim.pending else lambda _s, _number: True
    assert claim.rank is not None  # noqa: S101 - asked of these alone
    names = (tuple(signature(function).parameters)[1:] for function in (*claim.functions, claim.rank))
    return RankedClaim(
        claim.sentence,
        claim.otherwise,
        pending=lambda s, number: pending(s, number) and not done(s, number),
        witness=lambda _s, _number, _none: True,
        rank=_fitted(claim.rank),
        helpful=tuple(_helpful(claim, one) for one in claim.helpful),
        done=done,
        disturbances={step.__name__: reason for step, reason in claim.disturbances.items()},
        number=next(filter(None, names), ("",))[0],
    )


def _helpful(claim: language.Claim, one: language.Helpful) -> HelpfulStep:
    given = {name: _fitted(function) for name, function in one.args.items()}  # some are of the number alone
    names = tuple(signature(one.step).parameters)[1:]

    def args(s: State, number: Any, _none: Any) -> Mapping[str, Any]:
        return {name: given[name](s, number) if name in given else number for name in names}

    step = one.step.__name__
    words = f"{step} where {sentence_of(one.when)}" if [each.step for each in claim.helpful].count(one.step) > 1 else ""
    return HelpfulStep(step, _fitted(one.when), args, claim.fair[one.step], words=words)


def _fitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a state, a number, or both, as one of both and whatever else is given."""
    takes = [one.annotation for one in signature(function).parameters.values()]
    if not is_dataclass(takes[0]):
        return lambda _s, number, *_: function(number)
    if len(takes) == 1:
        return lambda s, *_: function(s)
    return lambda s, number, *_: function(s, number)


def modules() -> Iterator[ModuleType]:
    """All that claim something, in the order of their names: some are made of others."""
    yield from (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))


# -- words for claims ----------------------------------------------------------------------------------------------


def first_gap(low: Callable[[State], Any], done: Callable[[State, Any], Any]) -> Callable[[State, Any, Any], Any]:
    """That a number is the first from `low` on that is not done."""
    return lambda s, _subject, gap: (
        low(s) <= gap and all_between(low(s), gap, lambda n: done(s, n)) and not done(s, gap)
    )


def beyond(_s: State, subject: Any, gap: Any) -> Any:
    """True if the gap lies beyond the subject."""
    return subject < gap


def not_beyond(_s: State, subject: Any, gap: Any) -> Any:
    """True if the gap is the subject, or lies before it."""
    return gap <= subject


def way_to(_s: State, subject: Any, gap: Any) -> Any:
    """The numbers up to the subject that are not done, and the step over them."""
    return greatest(0, subject + 1 - gap) + 1


def cursor(
    sentence: str,
    otherwise: str,
    low: Callable[[State], Any],
    high: Callable[[State], Any],
    done: Callable[[State, Any], Any],
    steps: tuple[str, str],
    fairness: str,
    given: Callable[[State, Any], Any] = lambda _s, _subject: True,
    disturbances: Mapping[str, str] | None = None,
) -> RankedClaim:
    """A cursor passes every number before `high`: the first of `steps` closes the first gap, the second moves it on."""
    close, move = steps
    return RankedClaim(
        sentence,
        otherwise,
        pending=lambda s, subject: low(s) <= subject and subject < high(s) and given(s, subject),
        witness=first_gap(low, done),
        rank=way_to,
        helpful=(
            HelpfulStep(close, not_beyond, lambda _s, _subject, gap: {"number": gap}, fairness),
            HelpfulStep(move, beyond, lambda _s, _subject, gap: {"to": gap}, fairness, looks_first=True),
        ),
        done=lambda s, subject: subject < low(s),
        disturbances=disturbances or {},
        gap=(low, high, done),
    )
