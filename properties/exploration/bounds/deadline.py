"""The bound for a task and its time."""

from gapless.properties.exploration.bounds import Bound

BOUND = Bound(
    says="two kinds of task, rounds of a millisecond, and a broker that lives a little longer than they take",
    within=lambda s: s.late <= 21,
    numbers={"task": (0, 1, 2, 7), "due": (0, 5), "period": (-1, 0, 1, 86_400_001), "time": (-1, 0, 1, 10, 20)},
)
