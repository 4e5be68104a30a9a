"""What the Pulsar client does with its permits that the design forbids."""

from gapless.spec import permits
from gapless.spec.language import Deviation, applies, replace
from gapless.spec.permits import State


def rest_in_a_deadlock(s: State, within: bool) -> State:
    """What goes on from an answer asks again, and waits on the only thread that gives permits back."""
    applies(within)
    applies(s.waiting != 0 and s.held < s.permits)
    return replace(s, stuck=s.waiting)


DEVIATIONS = (
    Deviation(rest_in_a_deadlock, permits.rest, frozenset({"pulsar"}),
        "docs/pulsar.md#self-deadlock: TransactionMetaStoreHandler completes, then releases; apache/pulsar#14866"),
)
GIVEN_UP = (permits.nobody_waits_for_a_free_permit,)
