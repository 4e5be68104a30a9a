"""The bound for one transaction and what consumers can read of it."""

from gapless.properties.exploration.bounds import Bound

BOUND = Bound(
    says="two versions of the half, two decisions of each kind, and two entries that lead to it",
    within=lambda s: s.halves <= 2 and s.finals <= 2 and s.rollbacks <= 2 and s.shown <= 2,
    numbers={"number": (0,), "position": (10,)},
)
