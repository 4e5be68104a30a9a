"""What Pulsar does that the design of a coordinator forbids."""

from gapless.spec import coordinator
from gapless.spec.coordinator import AT_BIRTH, FOR_EVER, State, Status
from gapless.spec.language import Deviation, Number, applies, replace

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


DEVIATIONS = (
    Deviation(begin_above_the_limit, coordinator.begin, PULSAR,
        "docs/pulsar.md#n-1, #p-10: ServerCnx.handleNewTxn asks, and the log is written later; apache/pulsar#15157"),
    Deviation(time_out_at_birth, coordinator.time_out, PULSAR,
        "docs/pulsar.md#timeouts, #n-14: TransactionTimeoutTrackerImpl ticks every 100 ms, and adds up unchecked"),
)
GIVEN_UP = (coordinator.the_active_stay_within_the_limit, coordinator.a_transaction_lives_its_time)
