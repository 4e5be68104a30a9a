"""Liveness of a half."""

from __future__ import annotations

from gapless.properties.proof.claims import HelpfulStep, RankedClaim
from gapless.spec.language import greatest
from gapless.spec.transaction import Phase, is_decided

ROUND = "the check service comes round again"


def resolves(sentence: str, check: HelpfulStep, park: HelpfulStep, disturbances: dict[str, str]) -> RankedClaim:
    """A half is put back until its checks are spent, and is then set aside, unless it is decided before."""
    return RankedClaim(
        sentence,
        "a producer's money is blocked for ever",
        pending=lambda s, _half: s.phase == Phase.PREPARED and 0 < s.max_checks,
        witness=lambda _s, _half, _none: True,
        rank=lambda s, _half, _none: greatest(0, s.max_checks - s.checks) + 1,
        helpful=(check, park),
        done=lambda s, _half: s.phase > Phase.PREPARED,
        disturbances=disturbances,
    )


EVERY_HALF_RESOLVES = resolves(
    "every half resolves",
    check=HelpfulStep(
        "check",
        lambda s, _half, _none: s.checks < s.max_checks,
        lambda s, _half, _none: {"parent": s.newest, "times": s.checks + 1, "asked": True, "same": True},
        ROUND,
        # wherever the log puts it, and whatever number that gives it
        given=lambda s, _half, _none, number, position: s.positions[number] < 0 and s.positions[s.newest] < position,
    ),
    park=HelpfulStep(
        "park",
        lambda s, _half, _none: s.max_checks <= s.checks,
        lambda s, _half, _none: {"number": s.newest, "times": s.checks, "same": True, "aged": False},
        ROUND,
    ),
    disturbances={},
)

HEARD = "a request that was sent comes to its broker, or is sent again"

WHAT_WAS_ANSWERED_TAKES_EFFECT = RankedClaim(
    "what a producer answered takes effect",
    "a producer has decided, and its broker continues to ask, or gives the message up",
    pending=lambda s, version: (
        s.phase == Phase.PREPARED
        and version == s.newest
        and 0 < s.witnessed
        and (s.commits[version] < s.commits_asked[version] or s.rollbacks[version] < s.rollbacks_asked[version])
    ),
    witness=lambda _s, _version, _none: True,
    rank=lambda _s, _version, _none: 1,
    helpful=(
        HelpfulStep(
            "commit",
            lambda s, version, _none: s.commits[version] < s.commits_asked[version],
            lambda s, version, _none: {"number": version, "half": s.positions[version], "same": True},
            HEARD,
        ),
        HelpfulStep(
            "roll_back",
            lambda s, version, _none: s.rollbacks[version] < s.rollbacks_asked[version],
            lambda _s, version, _none: {"number": version},
            HEARD,
        ),
    ),
    done=lambda s, _version: is_decided(s),
    disturbances={
        "check": "the half was put back before the answer came: its producer is asked again, and answers that",
        "park": "the answer came after the last check",
    },
)

CLAIMS = (EVERY_HALF_RESOLVES, WHAT_WAS_ANSWERED_TAKES_EFFECT)
