"""The bound for a message in a stage."""

from gapless.properties.exploration.bounds import Bound

BOUND = Bound(
    says="up to four records at 0 to 3, in the stage and behind it",
    within=lambda s: s.last <= 3,
    numbers={"position": range(-1, 5), "number": (-1, 0)},
)
