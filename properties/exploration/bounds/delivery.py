"""The bound for one message and its deliveries."""

from gapless.properties.exploration.bounds import Bound

BOUND = Bound(
    says="three records and three deliveries of a message",
    within=lambda s: s.records <= 3 and s.handed <= 3,
    numbers={"start": (0, 1), "marked": (0, 1)},
)
