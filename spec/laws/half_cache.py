"""Laws of `half_cache`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import half_cache
from gapless.spec.half_cache import NO_NUMBER, NOWHERE, State
from gapless.spec.language import Number, accepts, all_between, implies


def whichever_half_is_asked_for_there_is_one_answer(s: State, number: Number) -> bool:
    """Otherwise a decision fails, or two that ask alike are answered otherwise."""
    hits = accepts(half_cache.hit, s, number, s.copies[number])
    reads = accepts(half_cache.read, s, number, s.messages[number])
    waits = accepts(half_cache.wait, s, number)
    denied = accepts(half_cache.deny, s, number)
    one = hits + reads + waits + denied == 1
    return one and denied == (number < s.start or s.end <= number)


def _put_in(s: State, message: int) -> State:
    return half_cache.acknowledge(half_cache.put(half_cache.append(s, s.end, message), s.end, message), s.end)


def _early(s: State, message: int, given: int) -> State:
    return half_cache.hit(_put_in(s, message), s.end, given)


def an_early_decision_is_given_its_half(s: State, message: int, given: int) -> bool:
    """Otherwise an early commit fails despite the cache, or consumers receive another message."""
    return implies(s.size < s.capacity, accepts(_early, s, message, given) == (given == message))


def _grown_too_old(s: State, eldest: Number, message: int, given: int) -> State:
    return _early(half_cache.evict(s, eldest), message, given)


def the_eldest_makes_room_for_one_that_comes(s: State, eldest: Number, message: int) -> bool:
    """Otherwise a cache that was full once takes no half any more."""
    first = all_between(s.front, s.places[eldest], lambda place: s.line[Number(place)] == NO_NUMBER)
    due = s.size == s.capacity and s.places[eldest] != NOWHERE and first
    return implies(due, accepts(_grown_too_old, s, eldest, message, message))


def _answered_at_once(s: State, message: int) -> State:
    return half_cache.acknowledge(half_cache.append(s, s.end, message), s.end)


def no_producer_is_told_before_its_half_is_put_in(s: State, message: int) -> bool:
    """Otherwise an early commit fails, which is what the cache is for."""
    return accepts(_answered_at_once, s, message) == (s.capacity == 0)


def nobody_is_told_of_a_half_that_is_not_there(s: State, number: Number) -> bool:
    """Otherwise a local transaction is run for a half that does not exist."""
    return implies(number < s.start or s.end <= number, not accepts(half_cache.acknowledge, s, number))


def _late(s: State, message: int, given: int) -> State:
    return half_cache.read(half_cache.flush(half_cache.append(s, s.end, message), Number(s.end + 1)), s.end, given)


def a_late_decision_is_given_its_half(s: State, message: int, given: int) -> bool:
    """Otherwise a half that left the cache, or never came, cannot be committed any more."""
    return accepts(_late, s, message, given) == (given == message) and accepts(half_cache.flush, s, s.end)


def _asked_after_a_crash(s: State, kept: Number, asked: Number) -> State:
    begun = half_cache.restart(s, kept)
    return half_cache.read(begun, asked, begun.messages[asked])


def a_crash_takes_what_it_took_and_nothing_more(s: State, kept: Number, asked: Number) -> bool:
    """Otherwise a half is found that a crash took, or one that survived is not."""
    survived = s.flushed <= kept and kept <= s.end and s.start <= asked and asked < kept
    return accepts(_asked_after_a_crash, s, kept, asked) == survived


def _two_put_in(s: State, start: Number, number: Number, capacity: int, message: int) -> State:
    return _put_in(_put_in(half_cache.open(s, start, number, capacity), message), message)


def a_cache_is_found_as_large_as_it_is(s: State, start: Number, number: Number, capacity: int, message: int) -> bool:
    """Otherwise halves are forgotten without need, or fill the broker's memory."""
    new = s.lives == 0 and s.end == 0 and s.puts[number] == 0 and s.puts[Number(number + 1)] == 0
    begins = 0 <= start and start <= number
    two = accepts(_two_put_in, s, start, number, capacity, message) == (begins and 2 <= capacity)
    return implies(new, two and accepts(half_cache.open, s, start, number, capacity) == (begins and 0 <= capacity))


ENABLED = (
    whichever_half_is_asked_for_there_is_one_answer,
    an_early_decision_is_given_its_half,
    the_eldest_makes_room_for_one_that_comes,
    no_producer_is_told_before_its_half_is_put_in,
    nobody_is_told_of_a_half_that_is_not_there,
    a_late_decision_is_given_its_half,
    a_crash_takes_what_it_took_and_nothing_more,
    a_cache_is_found_as_large_as_it_is,
)
