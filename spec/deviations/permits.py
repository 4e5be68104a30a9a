"""The Pulsar client's deviations from the design of permits."""

from gapless.spec import permits
from gapless.spec.language import Deviation, accepts, applies, replace
from gapless.spec.permits import State


def rest_in_a_deadlock(s: State, within: bool) -> State:
    """A continuation of an answer asks again, and waits on the only thread that gives permits back."""
    applies(within)
    applies(0 < s.waiting and s.in_use < s.permits)
    return replace(s, stuck=s.waiting)


def a_deadlock_of_a_client_is_its_own(s: State, within: bool) -> bool:
    """Otherwise a wake-up that was lost is taken for what Pulsar's client does to itself; or that is not forgiven."""
    stuck = 0 < s.waiting and s.in_use < s.permits
    return accepts(rest_in_a_deadlock, s, within) == (stuck and within)


def who_is_stuck_is_on_record(s: State, within: bool) -> bool:
    """Otherwise the callers in the deadlock are unknown."""
    return not accepts(rest_in_a_deadlock, s, within) or rest_in_a_deadlock(s, within).stuck == s.waiting


DEVIATIONS = (
    Deviation(rest_in_a_deadlock, permits.rest, frozenset({"pulsar"}),
        "docs/pulsar.md#self-deadlock: TransactionMetaStoreHandler completes, then releases; apache/pulsar#14866"),
)
GIVEN_UP = (permits.nobody_waits_for_a_free_permit,)
ENABLED = (
    a_deadlock_of_a_client_is_its_own,
    who_is_stuck_is_on_record,
)
