"""Laws of `timer`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import timer
from gapless.spec.language import Number, Position, accepts, implies
from gapless.spec.timer import NOWHERE, State


def a_timer_log_is_found_once(s: State, start: Position) -> bool:
    """Otherwise two times are taken for one, or a unit lies where no reader looks."""
    return accepts(timer.open, s, start) == (s.units == 0 and s.start == 0 and 0 <= start)


def a_unit_is_taken_if_it_says_what_is_so(
    s: State, position: Position, before: Position, time: int, due: int, rolled: bool, cancels: bool,
    whole: bool, waits: bool, marked: bool, again: bool,
) -> bool:
    """Otherwise a whole wheel is called broken, or a message comes too late, twice, or never."""
    taken = accepts(timer.schedule, s, position, before, time, due, rolled, cancels, whole, waits, marked, again)
    chained = before == s.last or (s.units == 0 and NOWHERE <= before and before < s.start)
    in_time = time < due if rolled else time == due
    behind = s.last < position and s.start <= position
    return taken == (whole and waits and marked and not again and in_time and behind and chained)


def a_slot_is_taken_if_it_names_its_chain(
    s: State, first: Position, last: Position, count: int, counted: bool
) -> bool:
    """Otherwise messages of that time are never delivered, or a mended wheel is called broken."""
    exact = first == s.first and count == s.count
    return accepts(timer.turn, s, first, last, count, counted) == (last == s.last and implies(counted, exact))


def who_waits_is_sought(s: State, number: Number, there: bool) -> bool:
    """Otherwise a message is never delivered."""
    return accepts(timer.seek, s, number, there) == (there and 0 <= number)


def what_is_due_is_delivered(s: State, copies: int, cancelled: bool) -> bool:
    """Otherwise consumers never receive it, or twice."""
    once = copies <= 1 and (cancelled or copies == 1)
    return accepts(timer.deliver, s, copies, cancelled) == (s.delivered < s.units and once)


def _first(s: State, start: Position, position: Position) -> State:
    return timer.schedule(timer.open(s, start), position, NOWHERE, 0, 0, False, False, True, True, True, False)  # noqa: FBT003 - an event's flags


def a_unit_lies_in_the_log_that_was_found(s: State, start: Position, position: Position) -> bool:
    """Otherwise a unit lies where no reader looks."""
    new = s.units == 0 and s.start == 0 and 0 <= start
    return implies(new, accepts(_first, s, start, position) == (start <= position))


def _counted(s: State, position: Position, cancels: bool, count: int) -> State:
    one = timer.schedule(s, position, s.last, 0, 0, False, cancels, True, True, True, False)  # noqa: FBT003 - an event's flags
    return timer.turn(one, one.first, position, count, True)  # noqa: FBT003 - an event's flags


def what_cancels_is_counted_off(s: State, position: Position, cancels: bool, count: int) -> bool:
    """Otherwise messages are turned away, or too many are taken."""
    behind = s.last < position and s.start <= position
    right = count == s.count + (-1 if cancels else 1)
    return implies(behind, accepts(_counted, s, position, cancels, count) == right)


def _two_delivered(s: State) -> State:
    return timer.deliver(timer.deliver(s, 1, False), 1, False)  # noqa: FBT003 - an event's flags


def every_unit_is_delivered_once(s: State) -> bool:
    """Otherwise consumers receive messages that were never sent."""
    return accepts(_two_delivered, s) == (s.delivered + 1 < s.units)


ENABLED = (
    a_timer_log_is_found_once, a_unit_is_taken_if_it_says_what_is_so, a_slot_is_taken_if_it_names_its_chain,
    who_waits_is_sought, what_is_due_is_delivered,
    a_unit_lies_in_the_log_that_was_found, what_cancels_is_counted_off, every_unit_is_delivered_once,
)
