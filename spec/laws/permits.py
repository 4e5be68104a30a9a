"""Laws of `permits`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import permits
from gapless.spec.language import Number, accepts, implies
from gapless.spec.permits import State


def a_client_is_looked_at_once(s: State, limit: int, timeout: int) -> bool:
    """Otherwise the permits of one client are taken for those of another, or none can be looked at."""
    if not accepts(permits.open, s, limit, timeout):
        return s.permits != 0 or limit <= 0
    return not accepts(permits.open, permits.open(s, limit, timeout), limit, timeout)


def a_request_is_given_up_when_its_timeout_is_over(
    s: State, number: Number, limit: int, timeout: int
) -> bool:
    """Otherwise a permit is lost with every silence, or a client asks again and again in silence."""
    if not accepts(permits.open, s, limit, timeout) or s.taken[number] != 0 or timeout < 1:
        return True
    asked = permits.acquire(permits.open(s, limit, timeout), number)
    due = asked.clock + timeout
    too_early = accepts(permits.time_out, permits.tick(asked, due - 1), number)
    return accepts(permits.time_out, permits.tick(asked, due), number) and not too_early


def time_may_stand_still(s: State) -> bool:
    """Otherwise two events within one millisecond cannot both be recorded."""
    return accepts(permits.tick, s, s.clock)


def who_waits_is_known(s: State, number: Number) -> bool:
    """Otherwise a caller waits twice, and is called once."""
    return not accepts(permits.wait, s, number) or not accepts(permits.wait, permits.wait(s, number), number)


def a_free_permit_is_taken(s: State, number: Number) -> bool:
    """Otherwise a caller waits although it need not; or its request takes two permits, and gives back one."""
    if not accepts(permits.acquire, s, number):
        return s.in_use == s.permits or s.taken[number] != 0
    return not accepts(permits.acquire, permits.acquire(s, number), number)


def an_answer_gives_all_back(s: State, number: Number) -> bool:
    """Otherwise permits are lost with answers, or silence is counted that was none."""
    if not accepts(permits.acquire, s, number):
        return True
    asked = permits.acquire(s, number)
    if not accepts(permits.reply, asked, number):
        return False
    answered = permits.reply(asked, number)
    return answered.in_use == s.in_use and answered.unanswered == s.unanswered


def an_answer_of_an_earlier_stretch_is_heard(s: State, number: Number) -> bool:
    """Otherwise a client gives up who was answered, or forgets a silence of the present stretch."""
    if not accepts(permits.acquire, s, number) or s.timeout < 1:
        return True
    asked = permits.acquire(s, number)
    return accepts(permits.reply, permits.tick(asked, asked.window + asked.timeout), number)


def a_late_answer_is_on_record(s: State, number: Number) -> bool:
    """Otherwise it is unknown that a coordinator answers too late."""
    if not accepts(permits.late_reply, s, number):
        return True
    return s.answers[number] < permits.late_reply(s, number).answers[number]


def a_lost_connection_is_on_record(s: State) -> bool:
    """Otherwise what it does to permits is never asked."""
    return s.cuts < permits.disconnect(s).cuts


def a_client_may_wait_for_its_answers(s: State, within: bool) -> bool:
    """Otherwise a client is accused for the silence of its coordinator."""
    return implies(s.in_use == s.permits or s.waiting == 0, accepts(permits.rest, s, within))


def rest_comes_when_all_is_given_back(s: State, number: Number) -> bool:
    """Otherwise a permit that is lost is never missed, or rest never comes."""
    if not accepts(permits.acquire, s, number):
        return implies(s.permits == 0, permits.no_permit_is_held(s))
    asked = permits.acquire(s, number)
    rested = permits.no_permit_is_held(s)
    after = permits.no_permit_is_held(permits.reply(asked, number))
    return after == rested and not (rested and permits.no_permit_is_held(asked))


def rest_comes_when_nobody_waits(s: State, number: Number) -> bool:
    """Otherwise a caller that is never woken is never missed, or rest never comes."""
    if not accepts(permits.wait, s, number) or not accepts(permits.acquire, permits.wait(s, number), number):
        return True
    waiting = permits.wait(s, number)
    rested = permits.nobody_waits(s)
    after = permits.nobody_waits(permits.acquire(waiting, number))
    return after == rested and not (rested and permits.nobody_waits(waiting))


def nobody_waits_where_rest_leaves_a_permit_free(s: State, within: bool) -> bool:
    """Otherwise a client at rest is reported as busy, or a caller that is never woken is never missed."""
    return not accepts(permits.rest, s, within) or s.permits <= s.in_use or permits.nobody_waits(s)

def who_was_stuck_is_free_again(s: State, within: bool) -> bool:
    """Otherwise a deadlock that is over is reported for ever."""
    return not accepts(permits.rest, s, within) or permits.rest(s, within).stuck == 0


ENABLED = (
    a_client_is_looked_at_once,
    a_request_is_given_up_when_its_timeout_is_over,
    time_may_stand_still,
    who_waits_is_known,
    a_free_permit_is_taken,
    an_answer_gives_all_back,
    an_answer_of_an_earlier_stretch_is_heard,
    a_late_answer_is_on_record,
    a_lost_connection_is_on_record,
    a_client_may_wait_for_its_answers,
    rest_comes_when_all_is_given_back,
    rest_comes_when_nobody_waits,
    nobody_waits_where_rest_leaves_a_permit_free,
)
ENABLED_AFTER_DEVIATIONS = (
    who_was_stuck_is_free_again,
)
