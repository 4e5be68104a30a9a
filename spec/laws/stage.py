"""Laws of `stage`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import stage
from gapless.spec.language import Number, Position, accepts
from gapless.spec.stage import State


def a_message_comes_in_behind_what_is_there(s: State, position: Position) -> bool:
    """Otherwise one message is taken for two."""
    return accepts(stage.enter, s, position) == (0 <= position and s.last < position)


def a_message_leaves_as_often_as_it_came_in(s: State, position: Position) -> bool:
    """Otherwise consumers receive it twice, or never."""
    return accepts(stage.leave, s, position) == (0 <= position and s.last < position and s.left < s.entered)


def what_came_in_may_be_dropped(s: State) -> bool:
    """Otherwise a message that has no place to go blocks those behind it."""
    return accepts(stage.drop, s) == (s.dropped < s.entered)


def what_has_left_may_be_passed(s: State, number: Number) -> bool:
    """Otherwise a stage never comes to its end, or it passes messages that no consumer ever receives."""
    out = s.passed < s.entered and s.passed < s.left + s.dropped
    return accepts(stage.pass_by, s, number) == (0 <= number and out)


def _through(s: State, position: Position, behind: Position, number: Number) -> State:
    return stage.pass_by(stage.leave(stage.enter(s, position), behind), number)


def what_comes_in_can_leave_and_be_passed(
    s: State, position: Position, behind: Position, number: Number
) -> bool:
    """Otherwise a message waits for ever."""
    forward = 0 <= position and s.last < position and position < behind
    return accepts(_through, s, position, behind, number) == (forward and 0 <= number)


def _dropped(s: State, position: Position, number: Number) -> State:
    return stage.pass_by(stage.drop(stage.enter(s, position)), number)


def what_is_dropped_can_be_passed(s: State, position: Position, number: Number) -> bool:
    """Otherwise a message that has no place to go blocks those behind it."""
    return accepts(_dropped, s, position, number) == (0 <= position and s.last < position and 0 <= number)


def _two_passed(s: State, number: Number) -> State:
    return stage.pass_by(stage.pass_by(s, number), number)


def every_record_is_passed_once(s: State, number: Number) -> bool:
    """Otherwise one that was handed on excuses another one."""
    both = s.passed + 1 < s.entered and s.passed + 1 < s.left + s.dropped
    return accepts(_two_passed, s, number) == (0 <= number and both)


ENABLED = (
    a_message_comes_in_behind_what_is_there, a_message_leaves_as_often_as_it_came_in, what_came_in_may_be_dropped,
    what_has_left_may_be_passed, what_comes_in_can_leave_and_be_passed, what_is_dropped_can_be_passed,
    every_record_is_passed_once,
)
