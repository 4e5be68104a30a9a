"""Liveness of the commit position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gapless.properties.proof.claims import HelpfulStep, RankedClaim, beyond, first_gap
from gapless.spec.catalog import State
from gapless.spec.dispatch import NO_NUMBER

COMMIT_GAP = first_gap(lambda s: s.committed, lambda s, n: s.bits[n] == 1)


def _commit_position(sentence: str, may_overlap: Callable[[State], Any], disturbances: dict[str, str]) -> RankedClaim:
    """The commit position passes every number that the log has a message for."""

    def busy(s: State) -> Any:
        return s.overlap <= 0 and s.at != NO_NUMBER

    def stage(s: State, gap: Any) -> Any:
        if s.scanned <= gap:
            return 3
        if s.taken[gap] > 0:
            return 0
        return 2 if busy(s) else 1

    return RankedClaim(
        sentence,
        "a message is in the log and no consumer ever receives it",
        pending=lambda s, number: 0 < s.lives and s.committed <= number and may_overlap(s),
        witness=COMMIT_GAP,
        rank=lambda s, number, gap: 1 if number < gap else 4 * (number + 1 - gap) + stage(s, gap),
        helpful=(
            HelpfulStep(
                "scan",
                lambda s, number, gap: gap <= number and s.scanned <= gap,
                lambda _s, _number, gap: {"number": gap},
                "the scanner continues",
            ),
            HelpfulStep(
                "take",
                lambda s, number, gap: gap <= number and gap < s.scanned and s.taken[gap] == 0 and not busy(s),
                lambda _s, _number, gap: {"number": gap},
                "the eldest number that waits is given to a worker in the end",
            ),
            HelpfulStep(
                "write",
                lambda s, number, gap: gap <= number and gap < s.scanned and (s.taken[gap] > 0 or busy(s)),
                lambda s, _number, gap: {"number": gap if s.taken[gap] > 0 else s.at},
                "a worker that has a number writes its entry",
            ),
            HelpfulStep(
                "commit",
                beyond,
                lambda _s, _number, gap: {"to": gap},
                "group commit comes round again",
                looks_first=True,
            ),
        ),
        done=lambda s, number: number < s.committed,
        disturbances=disturbances,
        gap=(lambda s: s.committed, lambda s: s.scanned, lambda s, n: s.bits[n] == 1),
    )


CRASH = {"crash": "what was not flushed is scanned and written again"}
COMMIT_POSITION = _commit_position(
    "the commit position moves on where workers may overlap", lambda s: 0 < s.overlap, CRASH
)
SERIALIZED = _commit_position(
    "the commit position moves on where one works at a time",
    lambda s: s.overlap <= 0,
    CRASH | {"take": "another worker comes first; the queue's lock must not pass over the same one for ever"},
)

FLUSHED = RankedClaim(
    "what is visible is on disk in the end",
    "it is written again after every start",
    pending=lambda s, number: s.flushed <= number < s.committed,
    witness=lambda _s, _number, _none: True,
    rank=lambda s, number, _none: number - s.flushed,
    helpful=(
        HelpfulStep(
            "flush",
            lambda _s, _number, _none: True,
            lambda _s, _number, _none: {},
            "a flush comes again that has something to flush",
            given=lambda s, _number, _none, to: s.flushed < to <= s.committed,
        ),
    ),
    done=lambda s, number: number < s.flushed,
    disturbances={"crash": "what was not flushed is scanned and written again"},
)

CLAIMS = (COMMIT_POSITION, SERIALIZED, FLUSHED)
