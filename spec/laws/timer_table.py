"""Laws of `timer_table`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import timer_table
from gapless.spec.language import Number, Position, accepts, implies
from gapless.spec.timer_table import State


def a_row_is_taken_if_it_is_that_of_a_timer_that_waits(s: State, named: bool, whole: bool, over: bool) -> bool:
    """Otherwise a whole table is called broken, or what was cancelled is delivered."""
    right = 0 < s.messages and named and whole and s.rows == 0 and (over or s.cancelled == 0)
    return accepts(timer_table.find_row, s, named, whole, over) == right


def a_timer_without_a_row_was_cancelled_or_delivered(s: State, handed_on: bool) -> bool:
    """Otherwise its message is never delivered."""
    return accepts(timer_table.seek, s, handed_on) == (0 < s.rows or 0 < s.cancelled or s.messages == 0 or handed_on)


def what_waited_is_delivered(s: State, copies: int) -> bool:
    """Otherwise no consumer ever receives it, or twice."""
    none = 0 < s.cancelled or s.messages == 0
    return accepts(timer_table.deliver, s, copies) == (copies <= 1 and (0 < copies or none))


def a_table_is_told_of_what_is_there(s: State, number: Number, end: Number) -> bool:
    """Otherwise messages that come are never put into it."""
    return accepts(timer_table.read_to, s, number, end) == (number <= end)


def a_message_lies_behind_those_before_it(s: State, position: Position) -> bool:
    """Otherwise one message is taken for two."""
    return accepts(timer_table.wait, s, position) == (0 <= position and s.last < position)


def _waits(s: State, position: Position, over: bool) -> State:
    return timer_table.find_row(timer_table.wait(s, position), True, True, over)  # noqa: FBT003 - an event's flags


def what_waits_may_have_its_row(s: State, position: Position, over: bool) -> bool:
    """Otherwise a whole table is called broken."""
    behind = 0 <= position and s.last < position
    return implies(behind, accepts(_waits, s, position, over) == (s.rows == 0 and (over or s.cancelled == 0)))


def _cancelled(s: State, over: bool) -> State:
    return timer_table.find_row(timer_table.cancel(s), True, True, over)  # noqa: FBT003 - an event's flags


def what_is_cancelled_has_no_row_until_its_time_is_over(s: State, over: bool) -> bool:
    """Otherwise consumers receive what was called back."""
    return accepts(_cancelled, s, over) == (0 < s.messages and s.rows == 0 and over)


def _two_rows(s: State) -> State:
    return timer_table.find_row(timer_table.find_row(s, True, True, True), True, True, True)  # noqa: FBT003 - an event's flags


def a_second_row_is_noticed(s: State) -> bool:
    """Otherwise its message is delivered twice."""
    return not accepts(_two_rows, s)


ENABLED = (
    a_row_is_taken_if_it_is_that_of_a_timer_that_waits, a_timer_without_a_row_was_cancelled_or_delivered,
    what_waited_is_delivered, a_table_is_told_of_what_is_there,
    a_message_lies_behind_those_before_it, what_waits_may_have_its_row,
    what_is_cancelled_has_no_row_until_its_time_is_over, a_second_row_is_noticed,
)
