"""One client's permits: so many requests to a coordinator at once, of whatever kind, and the next caller waits.

A request without an answer keeps its permit until it times out: that is what holds a client back when its coordinator
is silent. Maps are by the number of a request.
"""

from dataclasses import dataclass

from gapless.spec.language import Map, Number, assume, implies, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """The permits in use, since when, and the callers that wait for one."""

    permits: int = 0  # how many there are; 0 until the client is looked at
    timeout: int = 0  # ms after which a request is given up; 0 where that is not known
    clock: int = 0  # ms
    window: int = 0  # ms, when the present stretch of one timeout began
    in_use: int = 0  # permits taken
    unanswered: int = 0  # requests of the present stretch that have no answer yet
    waiting: int = 0  # callers that wait for a permit
    stuck: int = 0  # callers that waited, when all came to rest, although a permit was free
    cuts: int = 0  # how often the connection was lost
    taken: Map[Number, int] = Map(0)  # of request n: how many permits it has taken
    returned: Map[Number, int] = Map(0)  # of request n: how many it has given back
    answers: Map[Number, int] = Map(0)  # of request n: how often it was answered
    since: Map[Number, int] = Map(0)  # of request n: ms, when it took its permit
    waits: Map[Number, int] = Map(0)  # of request n: 1 while its caller waits


def open(s: State, permits: int, timeout: int) -> State:  # noqa: A001 - the step's name in every trace.
    """A client is looked at, with what is known of its settings.

    Source: docs/pulsar.md#permits, #settings.
    """
    require(s.permits == 0, "client-is-new", because="the client is new", otherwise="two clients are taken for one")
    require(0 < permits, "there-are-permits", because="there are permits", otherwise="every caller waits for ever")
    return replace(s, permits=permits, timeout=timeout)


def tick(s: State, time: int) -> State:
    """Time goes by.

    Source: docs/proposals.md#active-limit-client.
    """
    assume(s.clock <= time, because="the clock does not step back")
    if time - s.window < s.timeout:
        return replace(s, clock=time)
    return replace(s, clock=time, window=time, unanswered=0)


def wait(s: State, number: Number) -> State:
    """A caller finds no permit, and waits: no request of its, of whatever kind, goes out meanwhile.

    Source: docs/proposals.md#active-limit-client; docs/pulsar.md#c1, #n-8.
    """
    require(s.waits[number] == 0 and s.taken[number] == 0, "request-is-new",
        because="the request is new", otherwise="its caller waits twice")
    return replace(s, waiting=s.waiting + 1, waits=s.waits.set(number, s.waits[number] + 1))


def acquire(s: State, number: Number) -> State:
    """The request takes a permit and goes out, whether its caller waited or not.

    Source: docs/proposals.md#active-limit-client; docs/pulsar.md#c1, #p-17.
    """
    require(s.in_use < s.permits, "permit-is-free",
        because="a permit is free",
        otherwise="a client floods a coordinator that is silent because it has too much to do")
    require(s.taken[number] == 0, "request-is-new",
        because="the request is new", otherwise="it takes two permits, and gives back one")
    return replace(
        s,
        in_use=s.in_use + 1,
        unanswered=s.unanswered + (1 if 0 < s.timeout else 0),
        waiting=s.waiting - s.waits[number],
        taken=s.taken.set(number, s.taken[number] + 1),
        since=s.since.set(number, s.clock),
        waits=s.waits.set(number, 0),
    )


def reply(s: State, number: Number) -> State:
    """The request is answered, well or badly, and gives its permit back.

    Source: docs/pulsar.md#c5, #c7.
    """
    mine = 1 if 0 < s.timeout and s.window <= s.since[number] else 0
    require(s.returned[number] < s.taken[number] and mine <= s.unanswered and s.unanswered - mine < s.in_use,
        "request-holds-a-permit",
        because="the request holds a permit",
        otherwise="there is a permit more than before, and another whenever this happens")
    return replace(
        s,
        in_use=s.in_use - 1,
        unanswered=s.unanswered - mine,
        returned=s.returned.set(number, s.returned[number] + 1),
        answers=s.answers.set(number, s.answers[number] + 1),
    )


def time_out(s: State, number: Number) -> State:
    """No answer came in time: the request is given up, and gives its permit back.

    Source: docs/proposals.md#active-limit-client; docs/pulsar.md#c8, #p-18, #p-19.
    """
    require(s.returned[number] < s.taken[number] and 0 < s.in_use, "request-holds-a-permit",
        because="the request holds a permit",
        otherwise="there is a permit more than before, and another whenever this happens")
    require(s.timeout <= s.clock - s.since[number], "timeout-has-passed",
        because="the timeout has passed", otherwise="a client that is met with silence asks again and again")
    others = s.in_use - 1  # who is given up is of an earlier stretch: none of the present one is counted twice
    return replace(
        s,
        in_use=others,
        unanswered=s.unanswered if s.unanswered <= others else others,
        returned=s.returned.set(number, s.returned[number] + 1),
    )


def late_reply(s: State, number: Number) -> State:
    """An answer comes to a request that was given up: no caller hears it.

    Source: docs/pulsar.md#c4, #p-20.
    """
    require(0 < s.taken[number] and s.returned[number] == s.taken[number], "request-was-given-up",
        because="the request was given up", otherwise="its caller never hears of it, and its permit is lost")
    return replace(s, answers=s.answers.set(number, s.answers[number] + 1))


def disconnect(s: State) -> State:
    """The connection is lost: requests that are out keep their permits, and go out again.

    Source: docs/pulsar.md#c9, #c10, #n-7.
    """
    return replace(s, cuts=s.cuts + 1)


def rest(s: State, within: bool) -> State:
    """All has come to rest. `within`: who waits stands in the way of the thread that gives permits back.

    Source: docs/proposals.md#active-limit; docs/pulsar.md#p-19, #n-6.
    """
    require(s.waiting == 0 or s.permits <= s.in_use, "nobody-waits-while-a-permit-is-free",
        because="nobody waits while a permit is free", otherwise="a caller waits for ever: the wake-up was lost")
    return replace(s, stuck=s.waiting if s.in_use < s.permits else 0)


def no_more_requests_are_out_than_permits(s: State) -> bool:
    """Otherwise a client floods a coordinator that is silent because it has too much to do."""
    return s.in_use <= s.permits


def silence_is_not_answered_with_a_storm(s: State) -> bool:
    """Otherwise a client asks again and again: within a timeout, no more go unanswered than there are permits."""
    return 0 <= s.unanswered and s.unanswered <= s.in_use


def a_permit_is_given_back_once(s: State, number: Number) -> bool:
    """Otherwise permits are lost, or there are more and more of them."""
    return 0 <= s.returned[number] and s.returned[number] <= s.taken[number] and s.taken[number] <= 1


def an_answered_request_holds_no_permit(s: State, number: Number) -> bool:
    """Otherwise a permit is lost with every answer, until all callers wait."""
    return implies(0 < s.answers[number], 0 < s.taken[number] and s.returned[number] == s.taken[number])


def nobody_waits_for_a_free_permit(s: State) -> bool:
    """Otherwise a caller waits for ever: the wake-up was lost."""
    return s.stuck == 0


def who_waits_holds_none(s: State, number: Number) -> bool:
    """Otherwise a caller waits for a permit that it holds."""
    return 0 <= s.waits[number] and s.waits[number] + s.taken[number] <= 1


def nothing_is_in_the_future(s: State, number: Number) -> bool:
    """Otherwise a request is given up before its time, or never."""
    return s.window <= s.clock and s.since[number] <= s.clock


def a_stretch_is_no_longer_than_the_timeout(s: State) -> bool:
    """Otherwise silence is forgotten, or blamed on a client that got an answer."""
    within = s.clock - s.window < s.timeout if 0 < s.timeout else s.clock == s.window
    return within and implies(s.permits == 0, s.timeout == 0)


def a_permit_is_held_while_its_request_is_out(before: State, after: State, number: Number) -> bool:
    """Otherwise more requests go out than there are permits, or permits are lost."""
    out = after.taken[number] - after.returned[number] - before.taken[number] + before.returned[number]
    return implies(out != 0, after.in_use == before.in_use + out)


def nobody_is_given_up_before_the_timeout(before: State, after: State, number: Number) -> bool:
    """Otherwise a client that is met with silence asks again and again."""
    given_up = before.returned[number] < after.returned[number] and after.answers[number] == before.answers[number]
    return implies(given_up, before.timeout <= before.clock - before.since[number])


def all_who_wait_are_counted(before: State, after: State, number: Number) -> bool:
    """Otherwise a wake-up is lost unnoticed."""
    more = after.waits[number] - before.waits[number]
    return implies(more != 0, after.waiting == before.waiting + more)


def who_goes_out_is_unanswered(before: State, after: State, number: Number) -> bool:
    """Otherwise a client that is met with silence asks again and again, uncounted."""
    return implies(
        before.taken[number] < after.taken[number],
        after.unanswered == before.unanswered + (1 if 0 < before.timeout else 0),
    )


def a_stretch_begins_when_the_last_is_over(before: State, after: State) -> bool:
    """Otherwise silence is forgotten too early."""
    over = before.timeout <= after.window - before.window and after.unanswered == 0
    return implies(after.window != before.window, after.window == after.clock and over)


def a_lost_connection_frees_no_permit(before: State, after: State) -> bool:
    """Otherwise a client doubles its requests whenever its connection is cut."""
    return implies(before.cuts < after.cuts, after.in_use == before.in_use)


# -- at rest -------------------------------------------------------------------------------------------------------


def no_permit_is_held(s: State) -> bool:
    """Otherwise a permit is lost, and in the end every caller waits."""
    return s.in_use == 0


def nobody_waits(s: State) -> bool:
    """Otherwise a caller waits for ever."""
    return s.waiting == 0


INITIAL = State()
ACTIONS = (open, tick, wait, acquire, reply, time_out, late_reply, disconnect, rest)
INVARIANTS = (
    no_more_requests_are_out_than_permits,
    silence_is_not_answered_with_a_storm,
    a_permit_is_given_back_once,
    an_answered_request_holds_no_permit,
    who_waits_holds_none,
    nothing_is_in_the_future,
    nobody_waits_for_a_free_permit,
    a_stretch_is_no_longer_than_the_timeout,
)
STEP_PROPERTIES = (
    a_permit_is_held_while_its_request_is_out,
    nobody_is_given_up_before_the_timeout,
    all_who_wait_are_counted,
    who_goes_out_is_unanswered,
    a_stretch_begins_when_the_last_is_over,
    a_lost_connection_frees_no_permit,
)
AT_REST = (no_permit_is_held, nobody_waits)
