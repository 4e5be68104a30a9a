"""Liveness of a transaction, and of a request to begin one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gapless.properties.proof.claims import HelpfulStep, RankedClaim, first_gap
from gapless.spec.catalog import State
from gapless.spec.coordinator import Status, is_back, takes_a_slot

UNLOADED = {"unload": "a coordinator that is lost is loaded again; it is not lost for ever"}


def _comes_back(s: State, number: Any) -> Any:
    """True if there is nothing to load any more of a number below the end."""
    return number < s.end and is_back(s, number)


_first_missing = first_gap(lambda s: s.first, _comes_back)


def ends(sentence: str, otherwise: str, pending: Callable[[State, Any], Any]) -> RankedClaim:
    """Transactions that are pending end: they are loaded, timed out unless they are decided before, and finished.

    The witness is the first that is not back: the end, where the coordinator runs.
    """
    return RankedClaim(
        sentence,
        otherwise,
        pending=pending,
        witness=lambda s, number, mark: mark <= s.end and _first_missing(s, number, mark),
        rank=lambda s, number, mark: (2 if s.log[number] == Status.OPEN else 1) if s.running == 1 else s.end - mark + 3,
        helpful=(
            HelpfulStep(
                "load",
                lambda s, _number, mark: s.running == 0 and mark < s.end,
                lambda s, _number, mark: {"number": mark, "status": s.log[mark]},
                "the loader of a coordinator reads its log to the end",
                looks_first=True,
            ),
            HelpfulStep(
                "recover",
                lambda s, _number, mark: s.running == 0 and mark == s.end,
                lambda _s, _number, _mark: {},
                "the loader of a coordinator reads its log to the end",
                looks_first=True,
            ),
            HelpfulStep(
                "time_out",
                lambda s, number, _mark: s.running == 1 and s.log[number] == Status.OPEN,
                lambda _s, number, _mark: {"number": number},
                "its timer goes off, at whatever time after its deadline",
                given=lambda s, number, _mark, time: s.times[number] + s.lives[number] <= time,
                looks_first=True,
            ),
            HelpfulStep(
                "finish",
                lambda s, number, _mark: s.running == 1 and s.log[number] != Status.OPEN,
                lambda s, number, _mark: {"number": number, "to": s.log[number] + 2},
                "all that take part answer, for they are asked until they do",
                looks_first=True,
            ),
        ),
        done=lambda s, number: Status.COMMITTED <= s.log[number],
        disturbances=UNLOADED,
        gap=(lambda s: s.first, lambda s: s.end, _comes_back),
    )


# That its slot is free then, `a_slot_is_freed_with_the_outcome` says of every outcome.
EVERY_TRANSACTION_ENDS = ends(
    "every transaction ends, and frees its slot",
    "a client that is gone holds a slot for ever, until every request is ignored",
    lambda s, number: takes_a_slot(s.log[number]),
)
WHAT_IS_DECIDED_ENDS = ends(
    "what is decided is finished",
    "a transaction is COMMITTING for ever, and consumers wait behind its messages",
    lambda s, number: s.log[number] == Status.COMMITTING or s.log[number] == Status.ABORTING,
)


WHO_IS_ADMITTED_IS_ANSWERED = RankedClaim(
    "something comes of every request that was admitted",
    "a client that passed the limit waits for ever, and keeps its place",
    # `admitted` counts who is pending, for every step changes both alike (`all_who_are_admitted_are_counted`).
    pending=lambda s, request: s.pending[request] == 1 and 0 < s.admitted,
    witness=lambda _s, _request, _none: True,
    rank=lambda _s, _request, _none: 1,
    helpful=(
        HelpfulStep(
            "burn",
            lambda _s, _request, _none: True,
            lambda _s, request, _none: {"request": request},
            "what is not in the log in the end, for want of room or of a log, is given up",
        ),
    ),
    done=lambda s, request: s.pending[request] == 0 or s.admitted <= 0,
    disturbances={"unload": "requests are in memory: their clients time out"},
)

CLAIMS = (EVERY_TRANSACTION_ENDS, WHAT_IS_DECIDED_ENDS, WHO_IS_ADMITTED_IS_ANSWERED)
