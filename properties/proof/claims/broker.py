"""Liveness of a broker."""

from __future__ import annotations

from typing import Any

from gapless.properties.proof.claims import HelpfulStep, RankedClaim
from gapless.properties.proof.claims.transaction import resolves
from gapless.spec.catalog import State
from gapless.spec.log import BLANK
from gapless.spec.transaction import Phase, is_decided

ROUND = "the check service comes round again, and the log's file has room"
HEARD = "a request that was sent comes to its broker, or is sent again, and the log's file has room"


def _has_room(s: State, _subject: Any, _witness: Any) -> Any:
    return s.end + 1 + BLANK <= s.file_size


END_TO_END = resolves(
    "every half of a broker resolves",
    check=HelpfulStep(
        "check",
        lambda s, _half, _none: s.checks < s.max_checks,
        lambda s, _half, _none: {"position": s.end, "times": s.checks + 1, "group": s.group},
        ROUND,
        # whatever number the log gives it
        given=lambda s, half, none, number: s.newest < number and _has_room(s, half, none),
        looks_first=True,
    ),
    park=HelpfulStep(
        "park",
        lambda s, _half, _none: s.max_checks <= s.checks,
        lambda s, _half, _none: {"position": s.end, "times": s.checks},
        ROUND,
        given=_has_room,
        looks_first=True,
    ),
    disturbances={"crash": "a half that was not on disk is gone; it was not reported safe to its producer"},
)

WHAT_WAS_ANSWERED_TAKES_EFFECT = RankedClaim(
    "what a producer of a broker answered takes effect",
    "money is paid, and no consumer ever hears of it; or it is not, and the producer is asked for ever",
    pending=lambda s, version: (
        s.phase == Phase.PREPARED
        and version == s.newest
        and (0 < s.commits_asked[version] or 0 < s.rollbacks_asked[version])
    ),
    witness=lambda _s, _version, _none: True,
    rank=lambda _s, _version, _none: 1,
    helpful=(
        HelpfulStep(
            "commit",
            lambda s, version, _none: 0 < s.commits_asked[version],
            lambda s, _version, _none: {"position": s.end, "queue": s.meant},
            HEARD,
            given=_has_room,
            looks_first=True,
        ),
        HelpfulStep("roll_back", lambda s, version, _none: 0 < s.rollbacks_asked[version], lambda *_: {}, HEARD),
    ),
    done=lambda s, _version: is_decided(s),
    disturbances={
        "check": "the half was put back before the answer came: its producer is asked again, and answers that",
        "park": "the answer came after the last check",
        "crash": "the version that the answer names was not on disk: its producer is asked again, and answers that",
    },
)

WHAT_IS_COMMITTED_IS_SEEN = RankedClaim(
    "what is committed is seen",
    "a producer committed, and nothing comes of it",
    pending=lambda s, _half: s.phase == Phase.COMMITTED and s.visible == 0,
    witness=lambda _s, _half, _none: True,
    rank=lambda s, _half, _none: 2 + s.final - s.flushed if s.flushed <= s.final else 1,
    helpful=(
        HelpfulStep(
            "flush",
            lambda s, _half, _none: s.flushed <= s.final,
            lambda *_: {},
            "a broker flushes now and then",
            looks_first=True,
        ),
        HelpfulStep(
            "dispatch",
            lambda s, _half, _none: s.final < s.flushed,
            lambda s, _half, _none: {"position": s.final},
            "dispatch continues while the broker runs",
        ),
    ),
    done=lambda s, _half: s.visible > 0,
    disturbances={"crash": "a final that was not on disk is gone, and its half is asked about again"},
)

CLAIMS = (END_TO_END, WHAT_WAS_ANSWERED_TAKES_EFFECT, WHAT_IS_COMMITTED_IS_SEEN)
