"""What a broker does in the end."""

from __future__ import annotations

from gapless.properties.proof.claims import Claim, Helpful
from gapless.properties.proof.claims.transaction import resolves
from gapless.spec.transaction import Phase

END_TO_END = resolves(
    "every half of a broker resolves",
    check=lambda s: {"position": s.end, "times": s.checks + 1, "group": s.group},
    park=lambda s: {"position": s.end, "times": s.checks},
    disturbances={"crash": "a half that was not on disk is gone; its producer was not told that it is safe"},
    looks_first=True,
)

WHAT_IS_COMMITTED_IS_SEEN = Claim(
    "what is committed is seen",
    "a producer committed, and nothing comes of it",
    pending=lambda s, _half: s.phase == Phase.COMMITTED and s.visible == 0,
    witness=lambda _s, _half, _none: True,
    rank=lambda s, _half, _none: 2 if s.flushed <= s.final else 1,
    helpful=(
        Helpful(
            "flush",
            lambda s, _half, _none: s.flushed <= s.final,
            lambda s, _half, _none: {"to": s.end},
            "a broker flushes now and then",
            looks_first=True,
        ),
        Helpful(
            "dispatch",
            lambda s, _half, _none: s.final < s.flushed,
            lambda s, _half, _none: {"position": s.final},
            "dispatch goes on while the broker runs",
        ),
    ),
    done=lambda s, _half: s.visible > 0,
    disturbances={"crash": "a final that was not on disk is gone, and its half is asked about again"},
)

CLAIMS = (END_TO_END, WHAT_IS_COMMITTED_IS_SEEN)
