"""Laws of `producer`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import producer
from gapless.spec.language import Number, accepts, implies, replace
from gapless.spec.producer import NOWHERE, SEQUENCES, State


def _opened_and_written(s: State, at: Number, compacted: bool, checked: bool, sequence: int) -> State:
    nothing = Number(NOWHERE)
    opened = producer.open(
        s, at, False, NOWHERE, NOWHERE, nothing, 0, NOWHERE, NOWHERE, nothing, compacted, checked  # noqa: FBT003
    )  # fmt: skip
    return producer.append(opened, 0, sequence, at, at, False, 0)


def a_new_producer_is_checked_as_its_log_says(
    s: State, at: Number, compacted: bool, checked: bool, sequence: int
) -> bool:
    """Otherwise a coordinator is accused of numbers that it does not give, or a lost record is not seen."""
    asked = not s.opened and s.end <= at and 0 <= at and 0 <= sequence and sequence < SEQUENCES
    taken = accepts(_opened_and_written, s, at, compacted, checked, sequence)
    return implies(asked, taken == (compacted or not checked or sequence == 0))


def a_sequence_has_31_bits(
    s: State, epoch: int, sequence: int, first: Number, last: Number, transactional: bool
) -> bool:
    """Otherwise a batch is judged that no client can send."""
    numbers = 0 <= sequence and sequence < SEQUENCES and first <= last and last - first < SEQUENCES
    return numbers or not accepts(producer.append, s, epoch, sequence, first, last, transactional, 0)


def _written_in_a_later_epoch(s: State, epoch: int, first: Number) -> State:
    cleaned = replace(s, opened=True, compacted=True)
    return producer.append(cleaned, epoch, 0, first, first, True, 0)


def a_later_epoch_begins_a_transaction_of_its_own(s: State, epoch: int, first: Number) -> bool:
    """Otherwise what a cleaner left of two transactions is taken for one."""
    taken = s.epoch < epoch and accepts(_written_in_a_later_epoch, s, epoch, first)
    return implies(taken, (_written_in_a_later_epoch(s, epoch, first).transaction if taken else first) == first)


ENABLED = (
    a_new_producer_is_checked_as_its_log_says,
    a_sequence_has_31_bits,
    a_later_epoch_begins_a_transaction_of_its_own,
)
