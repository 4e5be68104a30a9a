"""What becomes of a half in the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gapless.properties.proof.claims import Claim, Helpful
from gapless.spec.catalog import State
from gapless.spec.language import greatest
from gapless.spec.transaction import Phase


def resolves(
    sentence: str,
    check: Callable[[State], Mapping[str, Any]],
    park: Callable[[State], Mapping[str, Any]],
    disturbances: dict[str, str],
    *,
    looks_first: bool = False,
) -> Claim:
    """A half is put back until its checks are spent, and is then set aside, unless it is decided before."""
    return Claim(
        sentence,
        "a producer's money is held for ever",
        pending=lambda s, _half: s.phase == Phase.PREPARED and 0 < s.max_checks,
        witness=lambda _s, _half, _none: True,
        rank=lambda s, _half, _none: greatest(0, s.max_checks - s.checks) + 1,
        helpful=(
            Helpful(
                "check",
                lambda s, _half, _none: s.checks < s.max_checks,
                lambda s, _half, _none: check(s),
                "the check service comes round again",
                looks_first=looks_first,
            ),
            Helpful(
                "park",
                lambda s, _half, _none: s.max_checks <= s.checks,
                lambda s, _half, _none: park(s),
                "the check service comes round again",
                looks_first=looks_first,
            ),
        ),
        done=lambda s, _half: s.phase > Phase.PREPARED,
        disturbances=disturbances,
    )


EVERY_HALF_RESOLVES = resolves(
    "every half resolves",
    check=lambda s: {
        "number": s.newest + 1,
        "parent": s.newest,
        "position": s.positions[s.newest],
        "times": s.checks + 1,
        "asked": True,
        "same": True,
    },
    park=lambda s: {
        "number": s.newest,
        "position": s.positions[s.newest],
        "times": s.checks,
        "same": True,
        "aged": False,
    },
    disturbances={},
)

CLAIMS = (EVERY_HALF_RESOLVES,)
