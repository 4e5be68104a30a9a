"""The bound for one client of a partition."""

from gapless.properties.exploration.bounds import Bound

BOUND = Bound(
    says="logs that begin at offset 0 or 1, records up to offset 3",
    within=lambda s: s.end <= 4,
    numbers={
        "at": (-1, 0, 1, 2, 3),
        "reads": (0, 1),
        "first": (0, 1, 2, 3, 4),
        "last": (0, 1, 2, 3, 4),
        "offset": (0, 1, 2, 3, 4),
    },
)
