"""A task that waits beyond its time: an anomaly of every broker, by how much, and under no profile a violation."""

from gapless.spec import deadline
from gapless.spec.deadline import State
from gapless.spec.language import Deviation, accepts, applies, replace

EVERY = frozenset({"pulsar", "rocketmq", "strict"})
"""No promise names a time: not even the design forbids to be late."""


def overdue(s: State) -> State:
    """The task waits, though its broker has lived through all the rounds in which it is done."""
    applies(s.grace < s.late)
    return replace(s, found=s.late)


def a_task_that_waits_is_in_time_or_overdue(s: State) -> bool:
    """Otherwise it is unknown that it waits."""
    return accepts(deadline.wait, s) != accepts(overdue, s)


def how_late_a_task_is_is_on_record(s: State) -> bool:
    """Otherwise a task that is an hour late counts like one that is a second late."""
    return not accepts(overdue, s) or overdue(s).found == s.late


DEVIATIONS = (
    Deviation(overdue, deadline.wait, EVERY,
        "docs/operator.md#overdue: the time came, and the broker lived through all the rounds in which it is done",
        amount="found"),
)
GIVEN_UP = (deadline.a_task_waits_within_its_grace,)
ENABLED = (a_task_that_waits_is_in_time_or_overdue, how_late_a_task_is_is_on_record)
