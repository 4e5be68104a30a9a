"""Laws of `ring`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import ring
from gapless.spec.language import accepts, implies
from gapless.spec.ring import Batch, State


def _through_the_ring(s: State, slots: int) -> State:
    made = ring.cut(ring.open(s, slots), Batch(0))
    return ring.dispatch(ring.decode(made, Batch(0)), Batch(0))


def a_batch_goes_through_a_ring_of_any_size(s: State, slots: int) -> bool:
    """Otherwise the first batch waits for ever, and all others behind it."""
    return implies(s.slots == 0 and s.cut == 0, accepts(_through_the_ring, s, slots) == (0 < slots))


def a_ring_has_room_and_is_made_before_its_batches(s: State, slots: int) -> bool:
    """Otherwise batches lie in a ring where no worker looks for them, or never come into one."""
    return implies(slots <= 0 or 0 < s.slots or 0 < s.cut, not accepts(ring.open, s, slots))


def a_worker_waits_for_room_and_for_nothing_else(s: State, batch: Batch) -> bool:
    """Otherwise a batch that fits waits, or one that does not takes the slot of another."""
    waits = 0 <= batch and batch < s.cut and s.decoded[batch] == 0
    return implies(waits, accepts(ring.decode, s, batch) == (batch - s.next < s.slots))


ENABLED = (
    a_batch_goes_through_a_ring_of_any_size,
    a_ring_has_room_and_is_made_before_its_batches,
    a_worker_waits_for_room_and_for_nothing_else,
)
