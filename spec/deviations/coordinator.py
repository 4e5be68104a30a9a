"""What Pulsar does that the design of a coordinator forbids, and how the model goes on behind what is no deviation."""

from gapless.spec import coordinator
from gapless.spec.coordinator import AT_BIRTH, FOR_EVER, State, Status
from gapless.spec.language import Deviation, Number, Takeover, applies, greatest, replace

PULSAR = frozenset({"pulsar"})


def begin_above_the_limit(s: State, number: Number, time: int, life: int) -> State:
    """The limit was asked before the others that were admitted beside this one had taken their slots."""
    applies(s.limit != 0 and s.limit <= s.active)
    return replace(coordinator.begin(replace(s, limit=0), number, time, life), limit=s.limit)


def time_out_at_birth(s: State, number: Number, time: int) -> State:
    """A life that is shorter than a tick of the clock, or longer than it can count, is over as soon as it begins."""
    life = s.lives[number]
    left = s.times[number] + life - time
    applies(life < AT_BIRTH or FOR_EVER <= life)
    applies(0 < left)
    return replace(coordinator.decide(s, number, Status.ABORTING), left=s.left.set(number, left))


def load_as_claimed(s: State, number: Number, status: Status) -> State:
    """The transaction is as far as the coordinator says, whatever its log says: it may be ended once more.

    Nobody is held to what was decided, counted or told of it before.
    """
    applies(s.running == 0 and 0 <= number)
    applies(Status.OPEN <= status and status <= Status.ABORTED)
    takes = 1 if coordinator.takes_a_slot(status) else 0
    active = s.active + takes - (1 if coordinator.takes_a_slot(s.log[number]) else 0)
    peak = greatest(s.peak, active + s.admitted)
    return replace(
        s,
        active=active,
        found=s.found + takes - (1 if coordinator.takes_a_slot(s.table[number]) else 0),
        loaded=greatest(s.loaded, peak),
        peak=peak,
        end=Number(greatest(s.end, number + 1)),
        log=s.log.set(number, status),
        table=s.table.set(number, status),
        begun=s.begun.set(number, 1),
        settled=s.settled.set(number, s.added[number]),
        outcomes=s.outcomes.set(number, 1 if Status.COMMITTED <= status else 0),
        told=s.told.set(number, Status.ABSENT),
    )


DEVIATIONS = (
    Deviation(begin_above_the_limit, coordinator.begin, PULSAR,
        "docs/pulsar.md#n-1, #p-10: ServerCnx.handleNewTxn asks, and the log is written later; apache/pulsar#15157"),
    Deviation(time_out_at_birth, coordinator.time_out, PULSAR,
        "docs/pulsar.md#timeouts, #n-14: TransactionTimeoutTrackerImpl ticks every 100 ms, and adds up unchecked"),
)
GIVEN_UP = (coordinator.the_active_stay_within_the_limit, coordinator.a_transaction_lives_its_time)
TAKEOVERS = (Takeover(load_as_claimed, coordinator.load, "transaction-comes-back-as-it-was"),)
