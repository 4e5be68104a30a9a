"""Laws of `delivery`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import delivery
from gapless.spec.delivery import State
from gapless.spec.language import accepts


def what_can_be_read_can_be_handed_out(s: State) -> bool:
    """Otherwise a message is in the log, and no consumer ever gets it."""
    return accepts(delivery.hand, s) == (0 < s.seen)


def _committed(s: State) -> State:
    return delivery.hand(delivery.append(delivery.append(s, True), False))


def a_half_can_be_handed_out_once_it_is_committed(s: State) -> bool:
    """Otherwise a commit comes to nothing."""
    return accepts(_committed, s)


ENABLED = (what_can_be_read_can_be_handed_out, a_half_can_be_handed_out_once_it_is_committed)
