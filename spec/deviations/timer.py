"""RocketMQ's deviations from the design of timers."""

from gapless.spec import timer
from gapless.spec.language import Deviation, Position, accepts, applies
from gapless.spec.timer import State

ROCKETMQ = frozenset({"rocketmq"})


def schedule_again(
    s: State, position: Position, before: Position, time: int, due: int, rolled: bool, cancels: bool,
    whole: bool, waits: bool, marked: bool, again: bool,
) -> State:
    """A start begins again where the timer log was last known to be on disk: what came later gets a second unit."""
    applies(again)
    return timer.schedule(s, position, before, time, due, rolled, cancels, whole, waits, marked, False)  # noqa: FBT003


def deliver_again(s: State, copies: int, cancelled: bool) -> State:
    """A start begins again at the time that was last known to be over: what came later is delivered twice."""
    applies(1 < copies)
    return timer.deliver(s, 1, cancelled)


def a_message_may_have_two_units_after_a_start(
    s: State, position: Position, time: int, again: bool
) -> bool:
    """Otherwise a broker that was killed is called broken, or a broken chain is excused."""
    taken = accepts(schedule_again, s, position, s.last, time, time, False, False, True, True, True, again)  # noqa: FBT003
    return taken == (again and s.last < position and s.start <= position)


def a_message_may_be_delivered_twice(s: State, copies: int, cancelled: bool) -> bool:
    """Otherwise a broker that was killed is called broken, or one that delivers nothing is excused."""
    return accepts(deliver_again, s, copies, cancelled) == (1 < copies and s.delivered < s.units)


DEVIATIONS = (
    Deviation(schedule_again, timer.schedule, ROCKETMQ,
        "docs/rocketmq.md#timers-again: TimerMessageStore.recover takes the lower of two positions in the queue"),
    Deviation(deliver_again, timer.deliver, ROCKETMQ,
        "docs/rocketmq.md#timers-again: a start reads times again that were not yet written down as over"),
)
ENABLED = (a_message_may_have_two_units_after_a_start, a_message_may_be_delivered_twice)
