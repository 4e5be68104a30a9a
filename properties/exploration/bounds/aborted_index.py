"""The bound for the index of aborted transactions of a partition."""

from gapless.properties.exploration.bounds import Bound, one_wrong, untouched

BOUND = Bound(
    says="logs that begin at offset 0 or 1, two producers, two markers up to offset 2",
    within=lambda s: (s.opened == 1 or untouched(s)) and s.end <= 3,
    numbers={
        "at": (-1, 0, 1),
        "producer": (0, 1),
        "first": (0, 1, 2),
        "last": (1, 2, 3),
        "stable": (0, 1, 2, 3, 4),
    },
    worth={"abort": lambda a: one_wrong(int(a.first < a.last), int(a.stable <= a.last + 1))},
)
