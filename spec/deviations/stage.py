"""RocketMQ's deviations from the design of a stage."""

from gapless.spec import stage
from gapless.spec.language import Deviation, Position, accepts, applies, replace
from gapless.spec.stage import State

ROCKETMQ = frozenset({"rocketmq"})


def leave_again(s: State, position: Position) -> State:
    """A broker hands on again what it was not yet known to have handed on: its cursor is written every ten seconds."""
    applies(0 < s.entered)
    return stage.leave(replace(s, left=s.left - 1), position)


def a_message_may_leave_again(s: State, position: Position) -> bool:
    """Otherwise a broker that was killed is called broken, or messages come out of nowhere."""
    return accepts(leave_again, s, position) == (0 < s.entered and 0 <= position and s.last < position)


DEVIATIONS = (
    Deviation(leave_again, stage.leave, ROCKETMQ,
        "docs/rocketmq.md#delayed-again: a start continues from delayOffset.json"),
)
ENABLED = (a_message_may_leave_again,)
