"""What brokers do that the design of a log forbids."""

from gapless.spec import log
from gapless.spec.language import Deviation, Position, applies, replace
from gapless.spec.log import State


def append_after_the_clock_stepped_back(
    s: State,
    position: Position,
    size: int,
    claimed: Position,
    known: bool,
    fits: bool,
    intact: bool,
    sealed: bool,
    time: int,
) -> State:
    """A record whose store time is earlier than that of the record before it, and in order otherwise.

    The wall clock belongs to the machine, not to the broker: so it is legal under the strict profile too.
    """
    applies(time < s.clock)
    return log.append(replace(s, clock=time), position, size, claimed, known, fits, intact, sealed, time)


DEVIATIONS = (
    Deviation(append_after_the_clock_stepped_back, log.append, frozenset({"strict", "rocketmq"}),
        "docs/rocketmq.md#cl4: a wall clock may be set back"),
)
GIVEN_UP = (log.the_clock_never_steps_back,)
