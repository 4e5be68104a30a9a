"""How far the ring of batches is explored."""

from dataclasses import replace

from gapless.properties.exploration.bounds import Bound, untouched

BOUND = Bound(
    says="rings of one to three slots, six batches: three go twice round, two truncations",
    within=lambda s: s.cut <= 6 and s.services <= 2 and (s.slots > 0 or untouched(s)),
    numbers={
        "slots": (0, 1, 2, 3),
        "batch": range(-1, 8),
        "slot": range(-1, 4),
    },
)

WIDE = replace(
    BOUND,
    says="rings of one to five slots, ten batches: five go twice round, three truncations",
    within=lambda s: s.cut <= 10 and s.services <= 3 and (s.slots > 0 or untouched(s)),
    numbers={"slots": range(6), "batch": range(-1, 12), "slot": range(-1, 6)},
)
