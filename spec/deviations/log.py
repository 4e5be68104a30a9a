"""Deviations of brokers from the design of a log."""

from gapless.spec import log
from gapless.spec.language import Deviation, Position, accepts, applies, implies, replace
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


def a_clock_may_be_set_back_however_far(s: State, size: int, time: int) -> bool:
    """Otherwise a broker is accused of a change of its machine's clock."""
    has_room = 0 < size and s.end - s.base + size + log.BLANK <= s.file_size
    taken = accepts(
        append_after_the_clock_stepped_back, s, s.end, size, s.end, True, True, True, True, time  # noqa: FBT003
    )
    return implies(has_room, taken == (time < s.clock))


DEVIATIONS = (
    Deviation(append_after_the_clock_stepped_back, log.append, frozenset({"strict", "rocketmq"}),
        "docs/rocketmq.md#cl4: a wall clock may be set back"),
)
GIVEN_UP = (log.the_clock_never_steps_back,)
ENABLED = (a_clock_may_be_set_back_however_far,)
