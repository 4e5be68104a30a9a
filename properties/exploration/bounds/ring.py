"""The bound for the ring of batches."""

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
    says="rings of one to eight slots, sixteen batches: eight go twice round, three truncations",
    within=lambda s: s.cut <= 16 and s.services <= 3 and (s.slots > 0 or untouched(s)),
    numbers={"slots": range(9), "batch": range(-1, 18), "slot": range(-1, 9)},
)
