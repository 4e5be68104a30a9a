"""The dispatch that landed: many workers decode batches of records, and one dispatches them in order, from a ring.

Batch `b` lies in slot `b` modulo the ring's size. Modulo an unknown is hard to reason about and easy to avoid: the
pointer has its own slot, and a batch that is `n` ahead of it lies `n` slots on, round the ring. Source: RIP-52 as it
landed, docs/rocketmq.md#ring.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Map, implies, replace, require

Batch = NewType("Batch", int)
Slot = NewType("Slot", int)

EMPTY = Batch(-1)  # the batch in a slot that holds none


@dataclass(frozen=True, slots=True)
class State:
    """The cut and the dispatched parts of the log, and the content of the ring."""

    slots: int = 0  # of the ring; 0 until it is made, then no step changes it
    services: int = 0  # how often dispatch was begun again
    cut: Batch = Batch(0)  # exclusive end of the batches that the scanner has cut
    next: Batch = Batch(0)  # the pointer: exclusive end of the batches that were dispatched
    slot: Slot = Slot(0)  # where the pointer's batch belongs
    ring: Map[Slot, Batch] = Map(EMPTY)  # of slot k: the batch that lies in it
    decoded: Map[Batch, int] = Map(0)  # of batch b: how often it was put into the ring, by this service
    dispatched: Map[Batch, int] = Map(0)  # of batch b: how often it was dispatched, by this service


def open(s: State, slots: int) -> State:  # noqa: A001 - the step's name in every trace.
    """Dispatch begins, with an empty ring of so many slots."""
    require(s.slots == 0 and s.cut == 0, "ring-is-new",
        because="the ring is new", otherwise="two rings are taken for one")
    require(0 < slots, "ring-has-a-slot", because="a ring has a slot", otherwise="no batch is ever dispatched")
    return replace(s, slots=slots, slot=Slot(0))


def cut(s: State, batch: Batch) -> State:
    """The scanner has cut the next batch of records off the log.

    Source: docs/rocketmq.md#parallel-dispatch (ConcurrentReputMessageService, batchId).
    """
    require(batch == s.cut, "batches-are-numbered-in-the-order-of-the-log",
        because="batches are numbered in the order of the log",
        otherwise="records are dispatched out of order, or never")
    return replace(s, cut=Batch(batch + 1))


def decode(s: State, batch: Batch) -> State:
    """A worker has decoded a batch, and puts it into its slot; it waits while the ring has no room for it.

    Source: docs/rocketmq.md#ring (`put` blocks while the batch is a whole ring ahead of the pointer).
    """
    require(0 <= batch and batch < s.cut, "batch-was-cut-from-the-log",
        because="the batch was cut from the log", otherwise="queues are built from what is not in the log")
    require(s.decoded[batch] == 0, "batch-is-decoded-once",
        because="the batch is decoded once", otherwise="its records are dispatched twice")
    require(batch < s.next + s.slots, "ring-has-room-for-the-batch",
        because="the ring has room for the batch",
        otherwise="it takes the slot of a batch that waits, whose records never reach their queues")
    return replace(
        s,
        ring=s.ring.set(slot_of(s, batch), batch),
        decoded=s.decoded.set(batch, s.decoded[batch] + 1),
    )


def slot_of(s: State, batch: Batch) -> Slot:
    """The slot of a batch for which the ring has room."""
    ahead = s.slot + batch - s.next
    return Slot(ahead if ahead < s.slots else ahead - s.slots)


def dispatch(s: State, batch: Batch) -> State:
    """The records of the pointer's batch are in their queues, and the pointer moves on.

    Source: docs/rocketmq.md#ring (`get` takes consecutive filled slots from the pointer; DispatchService).
    """
    require(batch == s.next, "batches-are-dispatched-in-order-each-once",
        because="batches are dispatched in order, each once",
        otherwise="the entries of a queue are out of order, or some are missing")
    require(s.ring[s.slot] == batch, "batch-lies-in-its-slot",
        because="the batch lies in its slot", otherwise="the entries of a queue stand for the records of another batch")
    round_the_ring = s.slot + 1 == s.slots
    return replace(
        s,
        next=Batch(batch + 1),
        slot=Slot(0 if round_the_ring else s.slot + 1),
        ring=s.ring.set(s.slot, EMPTY),
        dispatched=s.dispatched.set(batch, s.dispatched[batch] + 1),
    )


def truncate(s: State) -> State:
    """The log's end is cut off, and dispatch begins again: batch 0, an empty ring, the pointer at its first slot.

    Source: docs/rocketmq.md#ring-truncation, which see for what landed instead.
    """
    return replace(
        s,
        services=s.services + 1,
        cut=Batch(0),
        next=Batch(0),
        slot=Slot(0),
        ring=s.ring.cleared(),
        decoded=s.decoded.cleared(),
        dispatched=s.dispatched.cleared(),
    )


def the_pointer_stays_behind_the_scanner(s: State) -> bool:
    """Otherwise a batch counts as dispatched that is not cut yet, and is never dispatched."""
    return 0 <= s.next and s.next <= s.cut


def the_pointer_stays_in_the_ring(s: State) -> bool:
    """Otherwise it waits at a slot that no batch ever fills."""
    return 0 <= s.slots and (s.slots == 0 or (0 <= s.slot and s.slot < s.slots))


def a_slot_holds_the_batch_that_belongs_there(s: State, slot: Slot) -> bool:
    """Otherwise a queue is built from the records of another batch, or of a log that was cut off."""
    batch = s.ring[slot]
    near = s.next <= batch and batch < s.next + s.slots and batch < s.cut
    return implies(batch != EMPTY, near and s.decoded[batch] == 1 and slot == slot_of(s, batch))


def a_decoded_batch_keeps_its_slot(s: State, batch: Batch) -> bool:
    """Otherwise another takes it: a slot holds one batch, and the first one's records never reach their queues."""
    waits = s.next <= batch and 0 < s.decoded[batch]
    return implies(waits, batch < s.next + s.slots and s.ring[slot_of(s, batch)] == batch)


def a_batch_is_decoded_once(s: State, batch: Batch) -> bool:
    """Otherwise its records are dispatched twice, or before they are in the log."""
    there = 0 <= batch and batch < s.cut
    return 0 <= s.decoded[batch] and s.decoded[batch] <= 1 and implies(0 < s.decoded[batch], there)


def dispatch_never_passes_a_gap(s: State, batch: Batch) -> bool:
    """Otherwise a queue lacks the entries of a batch for ever."""
    return implies(0 <= batch and batch < s.next, s.decoded[batch] == 1)


def every_batch_is_dispatched_once(s: State, batch: Batch) -> bool:
    """Otherwise a queue has entries twice, or lacks them."""
    return s.dispatched[batch] == (1 if 0 <= batch and batch < s.next else 0)


def batches_are_dispatched_in_order(before: State, after: State) -> bool:
    """Otherwise the entries of a queue are out of order."""
    return implies(before.services == after.services, after.next == before.next or after.next == before.next + 1)


def batches_are_cut_one_by_one(before: State, after: State) -> bool:
    """Otherwise records belong to no batch, and never reach their queues."""
    return implies(before.services == after.services, after.cut == before.cut or after.cut == before.cut + 1)


def a_new_service_begins_with_nothing(before: State, after: State, slot: Slot) -> bool:
    """Otherwise it dispatches records of a log that was cut off."""
    empty = after.cut == 0 and after.next == 0 and after.slot == 0 and after.ring[slot] == EMPTY
    return implies(before.services < after.services, empty)


def the_ring_never_changes_its_size(before: State, after: State) -> bool:
    """Otherwise batches lie where no worker looks for them."""
    return implies(before.slots > 0, after.slots == before.slots)


def every_batch_is_dispatched(s: State) -> bool:
    """Otherwise its messages are in the log and no consumer ever receives them."""
    return s.next == s.cut


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (open, cut, decode, dispatch, truncate)
INVARIANTS = (
    the_pointer_stays_behind_the_scanner,
    the_pointer_stays_in_the_ring,
    a_slot_holds_the_batch_that_belongs_there,
    a_decoded_batch_keeps_its_slot,
    a_batch_is_decoded_once,
    dispatch_never_passes_a_gap,
    every_batch_is_dispatched_once,
)
STEP_PROPERTIES = (
    batches_are_dispatched_in_order,
    batches_are_cut_one_by_one,
    a_new_service_begins_with_nothing,
    the_ring_never_changes_its_size,
)
AT_REST = (every_batch_is_dispatched,)
