"""RocketMQ's deviations from the design of the timer table."""

from gapless.spec import timer_table
from gapless.spec.language import Deviation, accepts, applies
from gapless.spec.timer_table import State

ROCKETMQ = frozenset({"rocketmq"})


def deliver_timer_again(s: State, copies: int) -> State:
    """A start reads again from the last time or message on disk, and delivers messages again."""
    applies(1 < copies)
    return timer_table.deliver(s, 1)


def a_message_may_be_delivered_again(s: State, copies: int) -> bool:
    """Otherwise a restart is called damage."""
    return accepts(deliver_timer_again, s, copies) == (1 < copies)


DEVIATIONS = (
    Deviation(deliver_timer_again, timer_table.deliver, ROCKETMQ,
        "docs/rocketmq.md#timers-rocksdb: a start continues from timeline_checkpoint and from the scan's number"),
)
ENABLED = (a_message_may_be_delivered_again,)
