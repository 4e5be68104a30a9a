"""The bound for the cursor in a queue."""

from gapless.properties.exploration.bounds import Bound

BOUND = Bound(
    says="queues of up to two messages",
    within=lambda s: s.end <= 2,
    numbers={"end": (-1, 0, 1, 2, 3), "to": range(-1, 5)},
)
