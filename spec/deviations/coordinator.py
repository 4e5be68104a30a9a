"""Pulsar's deviations from the design of a coordinator, and the takeovers behind other broken rules."""

from gapless.spec import coordinator
from gapless.spec.coordinator import AT_BIRTH, FOR_EVER, Request, State, Status
from gapless.spec.language import Deviation, Number, Takeover, accepts, applies, greatest, implies, replace

PULSAR = frozenset({"pulsar"})


def begin_above_the_limit(s: State, number: Number, request: Request, time: int, life: int) -> State:
    """The limit was checked before requests admitted at the same time had taken their slots."""
    applies(s.limit != 0 and s.limit <= s.active)
    return replace(coordinator.begin(replace(s, limit=0), number, request, time, life), limit=s.limit)


def time_out_at_birth(s: State, number: Number, time: int) -> State:
    """A life shorter than a tick of the clock, or longer than it can count, ends as soon as it begins."""
    life = s.lives[number]
    left = s.times[number] + life - time
    applies(life < AT_BIRTH or FOR_EVER <= life)
    applies(0 < left)
    return replace(coordinator.decide(s, number, Status.ABORTING), left=s.left.set(number, left))


def load_as_claimed(s: State, number: Number, status: Status) -> State:
    """The transaction is as far as the coordinator says, whatever its log says: it may be ended again.

    Earlier decisions, counts and reports about it bind no client.
    """
    applies(s.running == 0 and s.opened == 1 and 0 <= number)
    applies(Status.OPEN <= status and status <= Status.ABORTED)
    takes = 1 if coordinator.takes_a_slot(status) else 0
    active = s.active + takes - (1 if coordinator.takes_a_slot(s.log[number]) else 0)
    peak = greatest(s.peak, active + s.admitted)
    return replace(
        s,
        active=active,
        loaded=greatest(s.loaded, peak),
        peak=peak,
        first=number if s.first == s.end or number < s.first else s.first,
        end=Number(greatest(s.end, number + 1)),
        log=s.log.set(number, status),
        table=s.table.set(number, status),
        timers=s.timers.set(number, 1 if status == Status.OPEN else 0),
        settled=s.settled.set(number, s.added[number]),
        outcomes=s.outcomes.set(number, 1 if Status.COMMITTED <= status else 0),
        reported=s.reported.set(number, Status.ABSENT),
    )


# -- what can be done ----------------------------------------------------------------------------------------------


def who_was_admitted_begins_whatever_the_limit(s: State, request: Request, time: int, life: int) -> bool:
    """Otherwise a request that passed the limit in a crowd waits for nothing."""
    begins = accepts(coordinator.begin, s, s.end, request, time, life)
    return implies(
        s.pending[request] == 1 and 0 < s.admitted,
        begins or accepts(begin_above_the_limit, s, s.end, request, time, life),
    )


def a_life_that_no_clock_measures_may_end_at_once(s: State, number: Number, time: int) -> bool:
    """Otherwise the limits of Pulsar's clock are blamed on it."""
    unmeasured = s.lives[number] < AT_BIRTH or FOR_EVER <= s.lives[number]
    ends = accepts(coordinator.time_out, s, number, time)
    return implies(
        s.running == 1 and s.log[number] == Status.OPEN and unmeasured,
        ends or accepts(time_out_at_birth, s, number, time),
    )


def a_life_that_is_cut_short_is_on_record(s: State, number: Number, time: int) -> bool:
    """Otherwise it is unknown that work was thrown away in time."""
    return not accepts(time_out_at_birth, s, number, time) or 0 < time_out_at_birth(s, number, time).left[number]


DEVIATIONS = (
    Deviation(begin_above_the_limit, coordinator.begin, PULSAR,
        "docs/pulsar.md#n-1, #p-10: ServerCnx.handleNewTxn asks, and the log is written later; apache/pulsar#15157"),
    Deviation(time_out_at_birth, coordinator.time_out, PULSAR,
        "docs/pulsar.md#timeouts, #n-14: TransactionTimeoutTrackerImpl ticks every 100 ms, and adds up unchecked"),
)
GIVEN_UP = (coordinator.the_active_stay_within_the_limit, coordinator.a_transaction_lives_its_time)
TAKEOVERS = (Takeover(load_as_claimed, coordinator.load, "transaction-comes-back-as-it-was"),)
ENABLED = (
    who_was_admitted_begins_whatever_the_limit,
    a_life_that_no_clock_measures_may_end_at_once,
    a_life_that_is_cut_short_is_on_record,
)
