"""Laws of `lookup`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import lookup
from gapless.spec.language import Number, accepts, implies
from gapless.spec.lookup import State


def whoever_asks_is_answered_what_is_so(s: State, number: Number, message: int) -> bool:
    """Otherwise a decision fails, or consumers receive another message than the one that was committed."""
    there = s.start <= number and number < s.end
    found = accepts(lookup.find, s, number, message) == (there and message == s.messages[number])
    waits = accepts(lookup.wait, s, number) == (there and s.flushed <= number)
    return found and waits and accepts(lookup.deny, s, number) != there


def _found(
    s: State, start: Number, end: Number, number: Number, message: int, asked: Number, given: int
) -> State:
    return lookup.find(lookup.append(lookup.open(s, start, end), number, message), asked, given)


def what_is_written_can_be_asked_for(
    s: State, start: Number, end: Number, number: Number, message: int, asked: Number, given: int
) -> bool:
    """Otherwise a half is in the log, and it can never be decided."""
    new = s.lives == 0 and s.end == 0 and 0 <= start and start <= end
    same = given == (message if asked == end else s.messages[asked])
    there = number == end and start <= asked and asked <= end
    return implies(new, accepts(_found, s, start, end, number, message, asked, given) == (there and same))


def _found_twice(s: State, start: Number, end: Number) -> State:
    return lookup.open(lookup.open(s, start, end), start, end)


def halves_are_found_once(s: State, start: Number, end: Number) -> bool:
    """Otherwise two logs are taken for one."""
    return not accepts(_found_twice, s, start, end)


def _asked_after_a_flush(s: State, to: Number, asked: Number) -> State:
    return lookup.wait(lookup.flush(s, to), asked)


def what_is_flushed_need_not_be_asked_for_again(s: State, to: Number, asked: Number) -> bool:
    """Otherwise a producer asks for ever for what is there to be read, or is made to wait for ever."""
    waits = s.flushed <= to and to <= asked and asked < s.end
    return accepts(_asked_after_a_flush, s, to, asked) == waits and accepts(lookup.flush, s, s.end)


def _asked_after_a_crash(s: State, kept: Number, asked: Number) -> State:
    begun = lookup.restart(s, kept)
    return lookup.find(begun, asked, begun.messages[asked])


def _waits_after_a_crash(s: State, kept: Number, asked: Number) -> State:
    return lookup.wait(lookup.restart(s, kept), asked)


def a_crash_takes_what_it_took_and_nothing_more(s: State, kept: Number, asked: Number) -> bool:
    """Otherwise a half is found that a crash took, or one that survived is not."""
    survived = s.flushed <= kept and kept <= s.end and s.start <= asked and asked < kept
    found = accepts(_asked_after_a_crash, s, kept, asked)
    return found == survived and not accepts(_waits_after_a_crash, s, kept, asked)


ENABLED = (
    whoever_asks_is_answered_what_is_so,
    what_is_written_can_be_asked_for,
    halves_are_found_once,
    what_is_flushed_need_not_be_asked_for_again,
    a_crash_takes_what_it_took_and_nothing_more,
)
