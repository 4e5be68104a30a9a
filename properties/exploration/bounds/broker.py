"""How far one transaction, from end to end is explored."""

from gapless.properties.exploration.bounds import Bound, untouched

BOUND = Bound(
    says="half 0, six records, two checks, two restarts",
    within=lambda s: s.end <= 6 and s.checks <= 2 and s.lives <= 3 and (s.lives > 0 or untouched(s)),
    numbers={
        "number": (-1, 0, 1),
        "prepare.number": (-1, 0),
        "max_checks": (0, 1, 2),
        "position": range(-1, 8),
        "times": range(4),
        "to": range(8),
        "kept": range(8),
        "group": (1, 2),
        "queue": (1, 2),
        "prepare.group": (1,),
        "prepare.queue": (1,),
    },
)
