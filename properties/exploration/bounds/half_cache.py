"""How far the cache of half messages is explored."""

from gapless.properties.exploration.bounds import Bound, untouched

BOUND = Bound(
    says="halves 1 to 3 of a cache found at 1, room for none, one or two, one question or one restart",
    within=lambda s: s.end <= 4 and s.lives + s.answers <= 2 and (s.start == 1 or untouched(s)),
    numbers={
        "number": range(5),
        "open.number": (-1, 1),
        "capacity": (-1, 0, 1, 2),
        "place": range(-1, 6),
        "to": range(6),
        "kept": range(6),
    },
)
