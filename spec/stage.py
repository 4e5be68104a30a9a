"""One message in a stage: a queue of the broker's own in which it waits, until it is handed on to another place.

A delayed message waits in the queue of its level, and comes from there into the topic that it was sent to. The
broker goes through a stage in order, and writes down how far it is. Of each message, what came in has left, was dropped
for a reason, or is still there. Source: docs/rocketmq.md#delayed.
"""

from dataclasses import dataclass

from gapless.spec.language import Number, Position, implies, replace, require

NOWHERE = Position(-1)  # of a record that is not there


@dataclass(frozen=True, slots=True)
class State:
    """The records of one message: in the stage, and where it is handed on to."""

    last: Position = NOWHERE  # where the newest of them lies in the log
    entered: int = 0  # records in the stage
    left: int = 0  # records in the place where it is handed on to
    dropped: int = 0  # records in the stage that are handed on to no place
    passed: int = 0  # records in the stage that are done with


def enter(s: State, position: Position) -> State:
    """The message comes into the stage: a record of it lies at `position`."""
    require(0 <= position and s.last < position, "record-of-a-stage-lies-behind-those-before-it",
        because="a record lies behind those before it", otherwise="one message is taken for two")
    return replace(s, last=position, entered=s.entered + 1)


def leave(s: State, position: Position) -> State:
    """The message is handed on: a record of it lies at `position`, in the place that it is for.

    Source: docs/rocketmq.md#delayed (ScheduleMessageService.messageTimeUp).
    """
    require(0 <= position and s.last < position, "record-behind-a-stage-lies-behind-those-before-it",
        because="a record lies behind those before it", otherwise="one message is taken for two")
    require(s.left < s.entered, "message-leaves-its-stage-once",
        because="a message leaves its stage as often as it came in", otherwise="consumers receive it twice")
    return replace(s, last=position, left=s.left + 1)


def drop(s: State) -> State:
    """A record of the message is handed on to no place, by design: it names none that takes it.

    Source: docs/rocketmq.md#delayed-dropped.
    """
    require(s.dropped < s.entered, "dropped-message-came-in",
        because="a message that is dropped came in", otherwise="the loss of another one is excused")
    return replace(s, dropped=s.dropped + 1)


def pass_by(s: State, number: Number) -> State:
    """The stage is done with the record of this `number`, and continues behind it.

    Source: docs/rocketmq.md#delayed (ScheduleMessageService.updateOffset).
    """
    require(0 <= number, "number-in-a-stage-is-a-number",
        because="a message has a number", otherwise="it is never found")
    require(s.passed < s.entered, "passed-message-came-in",
        because="a message that is passed came in", otherwise="one message counts for several")
    require(s.passed < s.left + s.dropped, "passed-message-has-left-its-stage",
        because="a message that its stage is done with was handed on, or dropped",
        otherwise="no consumer ever receives it")
    return replace(s, passed=s.passed + 1)


def what_leaves_came_in(s: State) -> bool:
    """Otherwise consumers receive messages that were never sent."""
    return 0 <= s.left and s.left <= s.entered and 0 <= s.dropped and s.dropped <= s.entered


def what_has_a_place_came_in(s: State) -> bool:
    """Otherwise consumers receive messages that were never sent."""
    return implies(0 <= s.last, 0 < s.entered)


def what_came_in_has_left_or_is_still_there(s: State) -> bool:
    """Otherwise no consumer ever receives it."""
    return 0 <= s.passed and s.passed <= s.entered and s.passed <= s.left + s.dropped


def records_lie_one_behind_the_other(before: State, after: State) -> bool:
    """Otherwise one message is taken for two."""
    more = before.entered < after.entered or before.left < after.left
    return before.last <= after.last and implies(more, before.last < after.last)


def what_happened_to_a_message_stays_so(before: State, after: State) -> bool:
    """Otherwise one that was handed on waits again."""
    there = before.entered <= after.entered and before.left <= after.left
    return there and before.dropped <= after.dropped and before.passed <= after.passed


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (enter, leave, drop, pass_by)
INVARIANTS = (what_leaves_came_in, what_has_a_place_came_in, what_came_in_has_left_or_is_still_there)
STEP_PROPERTIES = (records_lie_one_behind_the_other, what_happened_to_a_message_stays_so)
