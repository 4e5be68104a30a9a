"""The ring, seen as a queue whose messages are batches: cut is appended, dispatched is indexed."""

from gapless.spec import queue, ring
from gapless.spec.language import Number, Position, filled, seen_as
from gapless.spec.ring import Batch


def queue_of(s: ring.State) -> queue.State:
    """Batch b is message b; it lies at position b, and has its entry once it was dispatched."""
    return seen_as(
        queue.INITIAL,
        indexed=Number(s.next),
        end=Number(s.cut),
        positions=filled(Position(0), 0, s.cut, Position),
        sizes=filled(0, 0, s.cut, lambda _: 1),
        entry_positions=filled(Position(0), 0, s.next, Position),
        entry_sizes=filled(0, 0, s.next, lambda _: 1),
    )


def cut(s: ring.State, batch: Batch) -> queue.State:
    """The batch is in the log."""
    return queue.append(queue_of(s), Number(batch), 1, Position(batch), 1, 0)


def dispatch(s: ring.State, batch: Batch) -> queue.State:
    """The batch has its entry."""
    return queue.index(queue_of(s), Number(batch), Position(batch), 1, 0)


def truncate(s: ring.State) -> queue.State:
    """The new service cuts the rest of the log again: no batch is in the log yet."""
    return queue.truncate(queue_of(s), Number(0))


CONCRETE = ring
ABSTRACT = queue
SEES = queue_of
STEPS = (cut, dispatch, truncate)
