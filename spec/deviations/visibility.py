"""RocketMQ's deviations from the promise that no consumer sees a half."""

from gapless.spec import visibility
from gapless.spec.language import Deviation, Number, Position, accepts, applies, replace
from gapless.spec.visibility import State

ROCKETMQ = frozenset({"rocketmq"})
SEEN = "docs/rocketmq-transactions.md#visible-halves: light queues, and what consumers send back; apache/rocketmq#6795"


def show_undecided(s: State, number: Number, position: Position) -> State:
    """A half is in a queue of consumers before its producer has decided."""
    applies(s.finals == 0)
    applies(s.rollbacks == 0)
    return replace(s, shown=s.shown + 1)


def show_rolled_back(s: State, number: Number, position: Position) -> State:
    """A half is in a queue of consumers though it was rolled back."""
    applies(s.finals == 0)
    applies(0 < s.rollbacks)
    return replace(s, shown=s.shown + 1)


def a_half_without_a_final_is_undecided_or_rolled_back(s: State, number: Number, position: Position) -> bool:
    """Otherwise what RocketMQ does is called something else than it is, or not noticed."""
    undecided = accepts(show_undecided, s, number, position) == (s.finals == 0 and s.rollbacks == 0)
    rolled_back = accepts(show_rolled_back, s, number, position) == (s.finals == 0 and 0 < s.rollbacks)
    return undecided and rolled_back


DEVIATIONS = (
    Deviation(show_undecided, visibility.show, ROCKETMQ, SEEN),
    Deviation(show_rolled_back, visibility.show, ROCKETMQ, SEEN),
)
GIVEN_UP = (visibility.what_consumers_can_read_is_committed,)
ENABLED = (a_half_without_a_final_is_undecided_or_rolled_back,)
