"""Liveness claims by spec: those about the spec NAME are `CLAIMS` in `claims/NAME.py`.

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
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from gapless.spec.catalog import Spec, State
from gapless.spec.language import all_between, greatest


@dataclass(frozen=True)
class Helpful:
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


@dataclass(frozen=True)
class Claim:
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
    helpful: tuple[Helpful, ...]
    done: Callable[[State, Any], Any]
    disturbances: Mapping[str, str]
    gap: tuple[Callable[[State], Any], Callable[[State], Any], Callable[[State, Any], Any]] | None = None
    # where the witness is the first gap: the low and the high end of the numbers, and what is so of all before it

    @property
    def assumes(self) -> tuple[str, ...]:
        """Its assumptions: each helpful step is taken in the end, and disturbances come to an end."""
        fair = (f"{helpful.step} is taken in the end: {helpful.fairness}" for helpful in self.helpful)
        ends = (f"{step} comes to an end: {reason}" for step, reason in self.disturbances.items())
        return (*fair, *ends)


def claims_of(spec: Spec) -> tuple[Claim, ...]:
    """The claims about a spec; maybe none."""
    name = f"{__name__}.{spec.name}"
    try:
        found: tuple[Claim, ...] = import_module(name).CLAIMS
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return ()
    return found


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
) -> Claim:
    """A cursor passes every number before `high`: the first of `steps` closes the first gap, the second moves it on."""
    close, move = steps
    return Claim(
        sentence,
        otherwise,
        pending=lambda s, subject: low(s) <= subject and subject < high(s) and given(s, subject),
        witness=first_gap(low, done),
        rank=way_to,
        helpful=(
            Helpful(close, not_beyond, lambda _s, _subject, gap: {"number": gap}, fairness),
            Helpful(move, beyond, lambda _s, _subject, gap: {"to": gap}, fairness, looks_first=True),
        ),
        done=lambda s, subject: subject < low(s),
        disturbances=disturbances or {},
        gap=(low, high, done),
    )
