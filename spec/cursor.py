"""The cursor of a reader in one queue: of a consumer group, or of the broker itself for delayed messages."""

from dataclasses import dataclass

from gapless.spec.language import Number, assume, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """The queue's end, and how far they have come."""

    end: Number = Number(0)  # exclusive end of the queue's numbers
    reached: Number = Number(0)  # the number that comes next


def open(s: State, end: Number) -> State:  # noqa: A001 - the step's name in every trace.
    """A queue is found whose numbers end at `end`."""
    assume(0 <= end and s.reached <= end, because="no reader is farther than a queue that was never there")
    return replace(s, end=end)


def save(s: State, to: Number) -> State:
    """A consumer group has everything before `to`, says the broker's table.

    Source: docs/rocketmq.md#config; ConsumerOffsetManager.
    """
    require(0 <= to, "cursor-of-the-group-is-a-number",
        because="the group's cursor is a number", otherwise="the group cannot say where it continues")
    require(to <= s.end, "cursor-of-the-group-stays-within-its-queue",
        because="the group's cursor stays within its queue", otherwise="the group passes over messages to come")
    return replace(s, reached=to)


def deliver(s: State, to: Number) -> State:
    """All delayed messages of one level before `to` are delivered, says the broker.

    Source: docs/rocketmq.md#config; ScheduleMessageService.
    """
    require(0 <= to, "cursor-of-the-level-is-a-number",
        because="the level's cursor is a number", otherwise="its messages are never delivered, or delivered again")
    require(to <= s.end, "cursor-of-the-level-stays-within-its-queue",
        because="the level's cursor stays within its queue", otherwise="delayed messages are never delivered")
    return replace(s, reached=to)


def nobody_has_come_farther_than_the_queue(s: State) -> bool:
    """Otherwise messages to come are passed over."""
    return 0 <= s.reached and s.reached <= s.end


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (open, save, deliver)
INVARIANTS = (nobody_has_come_farther_than_the_queue,)
STEP_PROPERTIES = ()
