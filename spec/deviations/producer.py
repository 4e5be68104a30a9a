"""Kafka's deviations from the design of an idempotent producer, and the laws of its steps."""

from gapless.spec import producer
from gapless.spec.language import Deviation, Number, accepts, applies, implies, replace
from gapless.spec.producer import HALF, NOWHERE, SEQUENCES, State


def begin_anywhere(
    s: State, epoch: int, sequence: int, first: Number, last: Number, transactional: bool, time: int
) -> State:
    """A producer that the broker does not know, or forgot, continues with its own sequence."""
    applies(s.checked and not s.known)
    return replace(
        producer.append(replace(s, checked=False), epoch, sequence, first, last, transactional, time), checked=True
    )


def go_on_behind_a_lost_marker(
    s: State, epoch: int, sequence: int, first: Number, last: Number, transactional: bool, time: int
) -> State:
    """A batch of a later epoch joins the transaction that is open: its marker was lost with the broker's power."""
    applies(s.transaction != NOWHERE and s.epoch < epoch and transactional)
    ended = replace(s, transaction=Number(NOWHERE))
    written = producer.append(ended, epoch, sequence, first, last, transactional, time)
    return replace(written, transaction=s.transaction)


def mark_two_epochs_ahead(s: State, epoch: int, offset: Number, coordinator: int, time: int) -> State:
    """The coordinator raised the epoch twice when it aborted what a new producer found open."""
    applies(s.transaction != NOWHERE and epoch == s.epoch + 2)
    return producer.mark(replace(s, epoch=s.epoch + 1), epoch, offset, coordinator, time)


def mark_by_a_coordinator_of_before(s: State, epoch: int, offset: Number, coordinator: int, time: int) -> State:
    """A coordinator whose epoch is behind that of an earlier marker ends the transaction."""
    applies(coordinator < s.coordinator)
    return producer.mark(replace(s, coordinator=coordinator), epoch, offset, coordinator, time)


# What can be done, from whatever state. A helper's name says which steps it takes.


def a_producer_may_be_found_anywhere(
    s: State, at: Number, known: bool, epoch: int, sequence: int, offset: Number, delta: int, time: int,
    coordinator: int, transaction: Number, compacted: bool, checked: bool,
) -> bool:
    """Otherwise a log whose oldest segments were deleted cannot be judged."""
    numbers = NOWHERE <= transaction and transaction <= offset and NOWHERE <= sequence and sequence < SEQUENCES
    taken = accepts(
        producer.open, s, at, known, epoch, sequence, offset, delta, time, coordinator, transaction, compacted, checked
    )
    return taken == (not s.opened and s.end <= at and offset < at and numbers)


def _opened_again(
    s: State, at: Number, known: bool, epoch: int, sequence: int, offset: Number, delta: int, time: int,
    coordinator: int, transaction: Number, compacted: bool, checked: bool, again: Number,
) -> State:
    opened = producer.open(
        s, at, known, epoch, sequence, offset, delta, time, coordinator, transaction, compacted, checked
    )
    return producer.snapshot(opened, again, epoch, sequence, offset, delta, time, coordinator, transaction)


def what_is_claimed_is_known(
    s: State, at: Number, known: bool, epoch: int, sequence: int, offset: Number, delta: int, time: int,
    coordinator: int, transaction: Number, compacted: bool, checked: bool, again: Number,
) -> bool:
    """Otherwise a log that is read in pieces is judged otherwise than as a whole."""
    opened = accepts(
        producer.open, s, at, known, epoch, sequence, offset, delta, time, coordinator, transaction, compacted, checked
    )
    taken = accepts(
        _opened_again, s, at, known, epoch, sequence, offset, delta, time, coordinator, transaction, compacted,
        checked, again,
    )  # fmt: skip
    return taken == (opened and at <= again and (known or compacted))


def _in_order(s: State, first: Number, last: Number, sequence: int) -> bool:
    within = s.end <= first and first <= last and last - first < SEQUENCES
    return within and 0 <= sequence and sequence < SEQUENCES


def _written(
    s: State, epoch: int, sequence: int, first: Number, last: Number, transactional: bool
) -> State:
    """A batch behind others, in a log that never was compacted."""
    whole = replace(s, opened=True, compacted=False)
    return producer.append(whole, epoch, sequence, first, last, transactional, 0)


def a_batch_is_taken_if_its_sequence_is_the_next(
    s: State, epoch: int, sequence: int, first: Number, last: Number, transactional: bool
) -> bool:
    """Otherwise a producer is accused that lost nothing, or a lost record is not noticed."""
    within = s.transaction == NOWHERE or (transactional and epoch == s.epoch)
    begins = not s.known or epoch != s.epoch or s.sequence == NOWHERE
    due = 0 if begins or s.sequence == SEQUENCES - 1 else s.sequence + 1
    lawful = (not s.known or s.epoch <= epoch) and within and (not s.checked or sequence == due)
    taken = accepts(_written, s, epoch, sequence, first, last, transactional)
    return implies(_in_order(s, first, last, sequence), taken == lawful)


def _written_to_what_is_left(
    s: State, epoch: int, sequence: int, first: Number, last: Number, transactional: bool
) -> State:
    """A batch behind others, in a log that was compacted."""
    cleaned = replace(s, opened=True, compacted=True, checked=True)
    return producer.append(cleaned, epoch, sequence, first, last, transactional, 0)


def what_is_missing_of_a_compacted_log_had_offsets(
    s: State, epoch: int, sequence: int, first: Number, last: Number, transactional: bool
) -> bool:
    """Otherwise a log is accused of its cleaner, or the cleaner is blamed for lost records."""
    room = first - s.end
    ahead = sequence - s.sequence - 1 if s.sequence < sequence else sequence - s.sequence - 1 + SEQUENCES
    follows = s.sequence == NOWHERE or (ahead < HALF and ahead <= room)
    lawful = not s.known or (follows if epoch == s.epoch else s.epoch < epoch and sequence <= room)
    taken = accepts(_written_to_what_is_left, s, epoch, sequence, first, last, transactional)
    return implies(_in_order(s, first, last, sequence), taken == lawful)


def _and_saved(
    s: State, epoch: int, sequence: int, offset: Number, delta: int, time: int, coordinator: int, transaction: Number
) -> State:
    return producer.snapshot(s, s.end, epoch, sequence, offset, delta, time, coordinator, transaction)


def a_snapshot_is_taken_if_it_is_what_the_log_says(
    s: State, at: Number, epoch: int, sequence: int, offset: Number, delta: int, time: int, coordinator: int,
    transaction: Number,
) -> bool:
    """Otherwise a whole snapshot is called broken, or a broker that starts from it goes wrong."""
    same = epoch == s.epoch and sequence == s.sequence and offset == s.offset and delta == s.delta
    alike = time == s.time and coordinator == s.coordinator and transaction == s.transaction
    asked = s.opened and s.end <= at and not s.compacted and NOWHERE <= sequence and sequence < SEQUENCES
    taken = accepts(producer.snapshot, s, at, epoch, sequence, offset, delta, time, coordinator, transaction)
    return implies(asked, taken == (s.known and same and alike))


def a_snapshot_of_a_compacted_log_is_not_behind_it(
    s: State, at: Number, epoch: int, sequence: int, offset: Number, delta: int, time: int, coordinator: int,
    transaction: Number,
) -> bool:
    """Otherwise a snapshot is accused of what the cleaner did, or one that is too old is not."""
    numbers = NOWHERE <= transaction and transaction <= offset and NOWHERE <= sequence and sequence < SEQUENCES
    newer = not s.known or s.epoch < epoch or (s.epoch == epoch and s.offset <= offset)
    asked = s.opened and s.end <= at and s.compacted and numbers
    taken = accepts(producer.snapshot, s, at, epoch, sequence, offset, delta, time, coordinator, transaction)
    return implies(asked, taken == (newer and offset < at))


def _saved_twice(
    s: State, at: Number, epoch: int, sequence: int, offset: Number, delta: int, time: int, coordinator: int,
    transaction: Number, again: Number, its_epoch: int, its_offset: Number,
) -> State:
    saved = producer.snapshot(s, at, epoch, sequence, offset, delta, time, coordinator, transaction)
    return producer.snapshot(saved, again, its_epoch, sequence, its_offset, delta, time, coordinator, Number(NOWHERE))


def a_snapshot_of_a_compacted_log_is_believed(
    s: State, at: Number, epoch: int, sequence: int, offset: Number, delta: int, time: int, coordinator: int,
    transaction: Number, again: Number, its_epoch: int, its_offset: Number,
) -> bool:
    """Otherwise a log that is read in pieces is judged otherwise than as a whole."""
    one = accepts(producer.snapshot, s, at, epoch, sequence, offset, delta, time, coordinator, transaction)
    taken = accepts(
        _saved_twice, s, at, epoch, sequence, offset, delta, time, coordinator, transaction,
        again, its_epoch, its_offset,
    )  # fmt: skip
    newer = epoch < its_epoch or (epoch == its_epoch and offset <= its_offset)
    lawful = at <= again and NOWHERE <= its_offset and its_offset < again and newer
    return implies(s.compacted and one, taken == lawful)


def _written_and_saved(
    s: State, first: Number, last: Number, time: int, its_sequence: int, its_offset: Number, its_delta: int,
    its_time: int, its_coordinator: int,
) -> State:
    alone = replace(s, opened=True, compacted=False, checked=False, known=True, transaction=Number(NOWHERE))
    written = producer.append(alone, s.epoch, 0, first, last, False, time)
    return _and_saved(written, s.epoch, its_sequence, its_offset, its_delta, its_time, its_coordinator, Number(NOWHERE))


def a_batch_is_what_a_snapshot_knows(
    s: State, first: Number, last: Number, time: int, its_sequence: int, its_offset: Number, its_delta: int,
    its_time: int, its_coordinator: int,
) -> bool:
    """Otherwise a whole snapshot is called broken, or a broker that starts from it goes wrong."""
    taken = accepts(
        _written_and_saved, s, first, last, time, its_sequence, its_offset, its_delta, its_time, its_coordinator
    )
    last_one = its_sequence == last - first and its_offset == last and its_delta == last - first
    same = its_time == time and its_coordinator == s.coordinator
    return implies(_in_order(s, first, last, 0), taken == (last_one and same))


def _begun_and_saved(s: State, sequence: int, first: Number, last: Number, its_transaction: Number) -> State:
    whole = replace(s, opened=True, compacted=False, checked=False, known=True)
    written = producer.append(whole, s.epoch, sequence, first, last, True, 0)
    final = sequence + last - first
    its_sequence = final if final < SEQUENCES else final - SEQUENCES
    return _and_saved(written, s.epoch, its_sequence, last, last - first, 0, s.coordinator, its_transaction)


def a_transaction_begins_with_its_first_batch(
    s: State, sequence: int, first: Number, last: Number, its_transaction: Number
) -> bool:
    """Otherwise readers of committed transactions read what is not decided, or wait for ever."""
    taken = accepts(_begun_and_saved, s, sequence, first, last, its_transaction)
    begins = first if s.transaction == NOWHERE else s.transaction
    return implies(_in_order(s, first, last, sequence), taken == (its_transaction == begins))


def _written_and_marked(
    s: State, sequence: int, first: Number, last: Number, epoch: int, offset: Number, coordinator: int
) -> State:
    unchecked = replace(s, opened=True, compacted=False, checked=False, known=True)
    written = producer.append(unchecked, s.epoch, sequence, first, last, True, 0)
    return producer.mark(written, epoch, offset, coordinator, 0)


def a_marker_ends_the_transaction_of_its_epoch_or_the_one_before(
    s: State, sequence: int, first: Number, last: Number, epoch: int, offset: Number, coordinator: int
) -> bool:
    """Otherwise a coordinator that follows the protocol is accused, or one that raises epochs is not."""
    one = _in_order(s, first, last, sequence)
    lawful = last < offset and (epoch == s.epoch or epoch == s.epoch + 1) and s.coordinator <= coordinator
    return implies(one, accepts(_written_and_marked, s, sequence, first, last, epoch, offset, coordinator) == lawful)


def a_marker_may_end_nothing(s: State, epoch: int, offset: Number, coordinator: int, time: int) -> bool:
    """Otherwise a coordinator is accused that asks a partition again, or where nothing was written."""
    lawful = not s.known or (s.epoch <= epoch and s.coordinator <= coordinator)
    asked = s.opened and s.end <= offset and (s.transaction == NOWHERE or s.compacted)
    return implies(asked, accepts(producer.mark, s, epoch, offset, coordinator, time) == lawful)


def _marked_and_saved(
    s: State, epoch: int, time: int, its_sequence: int, its_offset: Number, its_delta: int, its_time: int,
    its_coordinator: int, its_transaction: Number,
) -> State:
    alone = replace(s, opened=True, compacted=False, transaction=Number(NOWHERE))
    marked = producer.mark(alone, epoch, s.end, s.coordinator + 1, time)
    return _and_saved(marked, epoch, its_sequence, its_offset, its_delta, its_time, its_coordinator, its_transaction)


def a_marker_is_what_a_snapshot_knows(
    s: State, epoch: int, time: int, its_sequence: int, its_offset: Number, its_delta: int, its_time: int,
    its_coordinator: int, its_transaction: Number,
) -> bool:
    """Otherwise a whole snapshot is called broken, or a broker that starts from it goes wrong."""
    taken = accepts(
        _marked_and_saved, s, epoch, time, its_sequence, its_offset, its_delta, its_time, its_coordinator,
        its_transaction,
    )  # fmt: skip
    kept = its_sequence == s.sequence and its_offset == s.offset and its_delta == s.delta
    cleared = its_sequence == NOWHERE and its_offset == NOWHERE and its_delta == 0
    last_batch = kept if s.known and epoch == s.epoch else cleared
    same = its_time == time and its_coordinator == s.coordinator + 1 and its_transaction == NOWHERE
    return implies(not s.known or s.epoch <= epoch, taken == (last_batch and same))


def _ended_and_saved(s: State, epoch: int, its_transaction: Number) -> State:
    whole = replace(s, opened=True, compacted=False)
    marked = producer.mark(whole, epoch, s.end, s.coordinator, 0)
    same = s.known and epoch == s.epoch
    offset = s.offset if same else Number(NOWHERE)
    sequence = s.sequence if same else NOWHERE
    delta = s.delta if same else 0
    return _and_saved(marked, epoch, sequence, offset, delta, 0, s.coordinator, its_transaction)


def a_marker_leaves_no_transaction_open(s: State, epoch: int, its_transaction: Number) -> bool:
    """Otherwise readers of committed transactions wait for ever."""
    one = s.known and (epoch == s.epoch or epoch == s.epoch + 1)
    return implies(one, accepts(_ended_and_saved, s, epoch, its_transaction) == (its_transaction == NOWHERE))


def _marked_and_written(s: State, epoch: int, offset: Number, sequence: int, first: Number) -> State:
    whole = replace(s, opened=True, compacted=False, checked=True)
    marked = producer.mark(whole, epoch, offset, s.coordinator, 0)
    return producer.append(marked, epoch, sequence, first, first, False, 0)


def sequences_begin_again_behind_a_marker_of_a_new_epoch(
    s: State, epoch: int, offset: Number, sequence: int, first: Number
) -> bool:
    """Otherwise a producer that follows the protocol is accused, or records behind a marker are lost."""
    one = s.end <= offset and (not s.known or s.epoch <= epoch) and (s.transaction == NOWHERE or epoch <= s.epoch + 1)
    continued = epoch == s.epoch and s.sequence != NOWHERE
    due = s.sequence + 1 if continued and s.sequence + 1 < SEQUENCES else 0
    asked = one and 0 <= sequence and sequence < SEQUENCES
    lawful = offset < first and sequence == due
    return implies(asked, accepts(_marked_and_written, s, epoch, offset, sequence, first) == lawful)


def a_producer_is_forgotten_when_it_may_be(s: State, idle: int, limit: int, start: Number) -> bool:
    """Otherwise a broker is accused of its settings, or a batch that is sent again is there twice."""
    kept = not s.compacted and s.transaction != NOWHERE
    expired = accepts(producer.expire, s, idle, limit) == (not kept and limit <= idle)
    return expired and accepts(producer.forget, s, start) == (s.offset < start)


def _expired_and_saved(s: State, offset: Number) -> State:
    expired = producer.expire(s, 0, 0)
    return producer.snapshot(expired, s.end, s.epoch, s.sequence, offset, 0, s.time, s.coordinator, s.transaction)


def _forgotten_and_saved(s: State, offset: Number) -> State:
    forgotten = producer.forget(s, Number(s.offset + 1))
    return producer.snapshot(forgotten, s.end, s.epoch, s.sequence, offset, 0, s.time, s.coordinator, s.transaction)


def who_is_forgotten_is_in_no_snapshot(s: State, offset: Number) -> bool:
    """Otherwise a broker that starts knows a producer that it had forgotten."""
    saved = accepts(_expired_and_saved, s, offset) or accepts(_forgotten_and_saved, s, offset)
    return implies(not s.compacted, not saved)


def a_lost_marker_shows_in_a_later_epoch(s: State, epoch: int, sequence: int, first: Number, last: Number) -> bool:
    """Otherwise a batch outside of its transaction passes for one behind a lost marker."""
    shows = s.transaction != NOWHERE and s.epoch < epoch
    taken = accepts(go_on_behind_a_lost_marker, s, epoch, sequence, first, last, True, 0)  # noqa: FBT003 - a flag
    return implies(not shows, not taken)


KAFKA = frozenset({"kafka", "kafka-3.5"})
DEVIATIONS = (
    Deviation(begin_anywhere, producer.append, KAFKA,
        "docs/kafka.md#unknown-producers: sequences of a producer that is not known are not compared"),
    Deviation(go_on_behind_a_lost_marker, producer.append, KAFKA,
        "docs/kafka.md#lost-markers: a marker that was not on disk is lost with the power"),
    Deviation(mark_two_epochs_ahead, producer.mark, KAFKA,
        "docs/kafka.md#epoch-raised-twice: KAFKA-19367, 4.0.0"),
    Deviation(mark_by_a_coordinator_of_before, producer.mark, KAFKA,
        "docs/kafka.md#coordinator-epochs: KAFKA-9144, before 2.4"),
)
GIVEN_UP = (
    producer.a_first_batch_begins_at_0, producer.coordinators_epochs_rise, producer.at_most_one_transaction_is_open,
)
ENABLED = (
    a_producer_may_be_found_anywhere, what_is_claimed_is_known, a_batch_is_taken_if_its_sequence_is_the_next,
    what_is_missing_of_a_compacted_log_had_offsets, a_snapshot_is_taken_if_it_is_what_the_log_says,
    a_snapshot_of_a_compacted_log_is_not_behind_it, a_snapshot_of_a_compacted_log_is_believed,
    a_batch_is_what_a_snapshot_knows, a_transaction_begins_with_its_first_batch,
    a_marker_ends_the_transaction_of_its_epoch_or_the_one_before,
    a_marker_may_end_nothing, a_marker_is_what_a_snapshot_knows, a_marker_leaves_no_transaction_open,
    sequences_begin_again_behind_a_marker_of_a_new_epoch,
    a_lost_marker_shows_in_a_later_epoch, a_producer_is_forgotten_when_it_may_be, who_is_forgotten_is_in_no_snapshot,
)
