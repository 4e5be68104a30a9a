"""One idempotent producer in one partition of Kafka: its epochs and sequences, its transactions, its snapshots.

What a broker knows of a producer is what its last batches and markers say. Source: docs/kafka.md#producers.
"""

from dataclasses import dataclass

from gapless.spec.language import Number, assume, greatest, implies, replace, require

NOWHERE = -1  # where Kafka writes -1: no sequence, no offset, no time, no coordinator, no transaction
SEQUENCES = 2147483648  # sequences go from 0 up to one below it, and begin at 0 again
HALF = 1073741824  # a sequence that far ahead is one that was given before


@dataclass(frozen=True, slots=True)
class State:
    """The broker's knowledge of the producer, as a snapshot has it, and its history."""

    opened: bool = False
    compacted: bool = False  # the topic was compacted once, or may have been: batches and markers may be missing
    checked: bool = False  # the broker checks sequences: not those of batches that a coordinator writes
    known: bool = False  # the broker knows the producer
    epoch: int = NOWHERE
    sequence: int = NOWHERE  # of the last record
    offset: Number = Number(NOWHERE)  # of the last record
    delta: int = 0  # the last offset of the last batch less its first
    time: int = NOWHERE  # of the last batch or marker
    coordinator: int = NOWHERE  # the epoch of the coordinator that wrote the last marker
    transaction: Number = Number(NOWHERE)  # the first offset of the transaction that is open
    end: Number = Number(0)  # exclusive end of what was read of the log
    saved: Number = Number(0)  # behind the last offset that a snapshot knows of
    numbered: int = NOWHERE  # the last sequence, had it more bits: it rises where sequences begin at 0 again


def open(  # noqa: A001 - the step's name in every trace.
    s: State, at: Number, known: bool, epoch: int, sequence: int, offset: Number, delta: int, time: int,
    coordinator: int, transaction: Number, compacted: bool, checked: bool,
) -> State:
    """A log is read from offset `at` on, where a snapshot has this of a `known` producer.

    Source: docs/kafka.md#snapshots; ProducerStateManager.readSnapshot.
    """
    require(not s.opened, "producer-is-not-open-yet",
        because="the producer is not open yet", otherwise="two producers are taken for one")
    require(offset < at, "snapshot-is-not-ahead-of-its-log",
        because="a snapshot knows nothing of what lies at its offset or behind it",
        otherwise="after a start the broker takes a new batch for one that it has, and drops it")
    require(transaction <= offset, "transaction-of-a-snapshot-has-a-batch",
        because="an open transaction begins at the producer's last offset or before it",
        otherwise="a marker ends another transaction, and readers of committed transactions wait for ever")
    assume(s.end <= at, because="a log is read in the order of its offsets")
    assume(NOWHERE <= transaction and NOWHERE <= sequence and sequence < SEQUENCES,
        because="a snapshot has numbers or -1")
    opened = replace(s, opened=True, compacted=compacted, checked=checked, end=at)
    return _as_claimed(opened, epoch, sequence, offset, delta, time, coordinator, transaction) if known else opened


def _as_claimed(
    s: State, epoch: int, sequence: int, offset: Number, delta: int, time: int, coordinator: int, transaction: Number
) -> State:
    """The producer as a snapshot has it."""
    return replace(
        s, known=True, epoch=epoch, sequence=sequence, offset=offset, delta=delta, time=time, coordinator=coordinator,
        transaction=transaction, numbered=sequence,
    )


def append(
    s: State, epoch: int, sequence: int, first: Number, last: Number, transactional: bool, time: int
) -> State:
    """A batch has the offsets from `first` to `last`, and sequences from `sequence` on.

    Of a compacted log whole batches may be missing, but none that had no offset. Nothing is asked of the first batch
    that is left of an epoch, if nothing but a marker of it came before.

    Source: docs/kafka.md#sequences, #transactions; ProducerAppendInfo.appendDataBatch.
    """
    assume(s.opened and s.end <= first and first <= last, because="batches are read in the order of their offsets")
    assume(0 <= sequence and sequence < SEQUENCES and last - first < SEQUENCES, because="a sequence has 31 bits")
    require(not s.known or s.epoch <= epoch, "epoch-of-a-producer-does-not-go-back",
        because="the epoch of a producer does not go back",
        otherwise="a producer that was replaced still writes: its records are there twice, or in no order")
    require(s.compacted or transactional or s.transaction == NOWHERE, "batch-is-in-the-transaction-that-is-open",
        because="a batch is in the transaction that is open",
        otherwise="a record is committed or aborted that belongs to no transaction")
    require(s.compacted or s.transaction == NOWHERE or epoch == s.epoch, "transaction-has-one-epoch",
        because="all batches of a transaction have one epoch",
        otherwise="records of two transactions are committed or aborted together")
    may_be_gone = s.compacted and (not s.known or (s.sequence == NOWHERE and epoch == s.epoch))
    judged = s.checked and not may_be_gone
    require(not judged or s.known or sequence == 0, "new-producer-begins-at-sequence-0",
        because="the first batch of a producer begins at sequence 0", otherwise="records before it are lost")
    room = first - s.end if s.compacted else 0
    is_new = not s.known or epoch != s.epoch or s.sequence == NOWHERE
    require(not judged or not is_new or sequence <= room, "new-epoch-begins-at-sequence-0",
        because="a new epoch begins at sequence 0", otherwise="records before it are lost")
    ahead = sequence - s.sequence if s.sequence < sequence else sequence - s.sequence + SEQUENCES
    require(not judged or is_new or ahead <= HALF, "sequence-is-given-once",
        because="a sequence is given once within an epoch", otherwise="consumers receive a record twice")
    require(not judged or is_new or ahead <= room + 1, "no-sequence-is-missing",
        because="no sequence within an epoch is missing", otherwise="records are lost")
    delta = last - first
    end = sequence + delta
    continued = transactional and s.transaction != NOWHERE and epoch == s.epoch
    return replace(
        s, known=True, epoch=epoch, sequence=end if end < SEQUENCES else end - SEQUENCES, offset=last, delta=delta,
        time=time, transaction=s.transaction if continued else first if transactional else Number(NOWHERE),
        end=Number(last + 1), numbered=end if is_new else s.numbered + delta + 1,
    )


def mark(s: State, epoch: int, offset: Number, coordinator: int, time: int) -> State:
    """A marker at `offset` commits or aborts the transaction that is open; there need not be one.

    `coordinator`: the epoch of the coordinator that decided.

    Source: docs/kafka.md#markers; ProducerAppendInfo.appendEndTxnMarker.
    """
    assume(s.opened and s.end <= offset, because="markers are read in the order of their offsets")
    require(not s.known or s.epoch <= epoch, "epoch-of-a-producer-does-not-go-back",
        because="the epoch of a producer does not go back",
        otherwise="a producer that was replaced ends the transaction of the one that took its place")
    require(s.compacted or s.transaction == NOWHERE or epoch <= s.epoch + 1,
        "marker-has-the-epoch-of-its-transaction-or-the-next",
        because="a marker has the epoch of the transaction's batches or the next one",
        otherwise="epochs run out before their time, and a producer is shut out without a successor")
    require(not s.known or s.coordinator <= coordinator, "epoch-of-the-coordinator-does-not-go-back",
        because="the epoch of the coordinator does not go back",
        otherwise="a coordinator that was replaced ends a transaction against the decision of its successor")
    same = s.known and epoch == s.epoch
    return replace(
        s, known=True, epoch=epoch, sequence=s.sequence if same else NOWHERE,
        offset=s.offset if same else Number(NOWHERE), delta=s.delta if same else 0, time=time, coordinator=coordinator,
        transaction=Number(NOWHERE), end=Number(offset + 1), numbered=s.numbered if same else NOWHERE,
    )


def snapshot(
    s: State, at: Number, epoch: int, sequence: int, offset: Number, delta: int, time: int, coordinator: int,
    transaction: Number,
) -> State:
    """A snapshot that was taken at offset `at` has this entry of the producer.

    Of a compacted log it knows more than what is left, and is believed.

    Source: docs/kafka.md#snapshots; ProducerStateManager.takeSnapshot.
    """
    assume(s.opened and s.end <= at, because="a snapshot is read where it was taken")
    assume(NOWHERE <= transaction and NOWHERE <= sequence and sequence < SEQUENCES,
        because="a snapshot has numbers or -1")
    require(offset < at, "snapshot-is-not-ahead-of-its-log",
        because="a snapshot knows nothing of what lies at its offset or behind it",
        otherwise="after a start the broker takes a new batch for one that it has, and drops it")
    require(transaction <= offset, "transaction-of-a-snapshot-has-a-batch",
        because="an open transaction begins at the producer's last offset or before it",
        otherwise="a marker ends another transaction, and readers of committed transactions wait for ever")
    require(s.compacted or s.known, "producer-of-a-snapshot-is-in-its-log",
        because="a snapshot knows the producers of its log and no other",
        otherwise="after a start the broker refuses a producer that it never saw")
    require(not s.known or s.epoch < epoch or (s.epoch == epoch and s.offset <= offset),
        "snapshot-is-not-behind-its-log",
        because="a snapshot knows every batch before its offset",
        otherwise="after a start the broker takes a batch again that it has: a record is there twice")
    require(s.compacted or epoch == s.epoch, "snapshot-has-the-epoch-of-its-producer",
        because="a snapshot has the epoch of its producer",
        otherwise="after a start the broker shuts out the producer, or lets in one that was replaced")
    require(s.compacted or sequence == s.sequence, "snapshot-has-the-last-sequence",
        because="a snapshot has the producer's last sequence",
        otherwise="after a start the broker refuses the next batch, or takes the last one again")
    require(s.compacted or (offset == s.offset and delta == s.delta), "snapshot-has-the-last-batch",
        because="a snapshot has the offsets of the producer's last batch",
        otherwise="after a start a producer that sends its last batch again is answered with another offset")
    require(s.compacted or time == s.time, "snapshot-has-the-time-of-the-last-batch",
        because="a snapshot has the time of the producer's last batch or marker",
        otherwise="after a start the broker forgets the producer too early, or too late")
    require(s.compacted or coordinator == s.coordinator, "snapshot-has-the-epoch-of-the-coordinator",
        because="a snapshot has the epoch of the coordinator that wrote the last marker",
        otherwise="after a start a coordinator that was replaced can end a transaction")
    require(s.compacted or transaction == s.transaction, "snapshot-has-the-transaction-that-is-open",
        because="a snapshot has the first offset of the open transaction",
        otherwise="after a start readers of committed transactions read what is not decided, or wait for ever")
    claimed = _as_claimed(s, epoch, sequence, offset, delta, time, coordinator, transaction) if s.compacted else s
    return replace(claimed, end=at, saved=Number(greatest(s.saved, offset + 1)))


def expire(s: State, idle: int, limit: int) -> State:
    """The broker forgets a producer that wrote nothing for `idle` ms, where it may after `limit`.

    Source: docs/kafka.md#expiry; ProducerStateManager.removeExpiredProducers.
    """
    require(s.compacted or s.transaction == NOWHERE, "producer-with-an-open-transaction-is-not-forgotten",
        because="a producer with an open transaction is not forgotten",
        otherwise="readers of committed transactions read what is not decided")
    require(limit <= idle, "producer-is-forgotten-when-its-time-has-come",
        because="a producer is forgotten when it was idle for long enough",
        otherwise="a batch that is sent again is there twice")
    return _forgotten(s)


def forget(s: State, start: Number) -> State:
    """The log begins at `start` now, and the broker forgets a producer whose records were deleted.

    Source: docs/kafka.md#expiry; ProducerStateManager.truncateHead, before 2.5.
    """
    require(s.offset < start, "producer-with-records-in-the-log-is-not-forgotten",
        because="a producer with records in the log is not forgotten",
        otherwise="a batch that is sent again is there twice")
    return _forgotten(s)


def _forgotten(s: State) -> State:
    """The state of a broker that knows nothing of the producer any more."""
    return replace(
        s, known=False, epoch=NOWHERE, sequence=NOWHERE, offset=Number(NOWHERE), delta=0, time=NOWHERE,
        coordinator=NOWHERE, transaction=Number(NOWHERE), numbered=NOWHERE,
    )


def a_sequence_says_how_many_records_came_before(s: State) -> bool:
    """Otherwise a record is there twice, or lost."""
    within = NOWHERE <= s.sequence and s.sequence < SEQUENCES
    begins = implies(s.sequence == NOWHERE, s.numbered == NOWHERE)
    judged = s.checked and not s.compacted and s.sequence != NOWHERE
    return within and begins and implies(judged, s.sequence == s.numbered % SEQUENCES)


def an_open_transaction_has_a_batch(s: State) -> bool:
    """Otherwise readers of committed transactions wait for what is not there."""
    return NOWHERE <= s.transaction and s.transaction <= s.offset


def a_snapshot_knows_no_more_than_the_log(s: State) -> bool:
    """Otherwise a broker that starts takes a new batch for one that it has, and drops it."""
    return s.offset < s.end and s.saved <= s.end


def who_is_not_known_has_nothing(s: State) -> bool:
    """Otherwise a broker refuses a producer for what it has forgotten."""
    numbers = s.epoch == NOWHERE and s.sequence == NOWHERE and s.coordinator == NOWHERE
    places = s.offset == NOWHERE and s.delta == 0 and s.time == NOWHERE and s.transaction == NOWHERE
    return (s.known and s.opened) or (not s.known and numbers and places)


def epochs_of_a_producer_rise(before: State, after: State) -> bool:
    """Otherwise a producer that was replaced still writes."""
    return implies(before.known and after.known, before.epoch <= after.epoch)


def sequences_of_an_epoch_have_no_gap(before: State, after: State) -> bool:
    """Otherwise a record is there twice, or lost: no (epoch, sequence) is given again, and none is left out."""
    judged = before.checked and not before.compacted and before.known and before.epoch == after.epoch
    written = after.numbered != before.numbered and after.known
    return implies(judged and written, after.numbered == before.numbered + after.delta + 1)


def a_new_epoch_begins_at_0(before: State, after: State) -> bool:
    """Otherwise records before it are lost."""
    judged = before.checked and not before.compacted and before.known and after.known
    written = before.epoch != after.epoch and after.sequence != NOWHERE
    return implies(judged and written, after.numbered == after.delta)


def a_first_batch_begins_at_0(before: State, after: State) -> bool:
    """Otherwise records before it are lost."""
    judged = before.opened and before.checked and not before.compacted and not before.known
    return implies(judged and after.sequence != NOWHERE, after.numbered == after.delta)


def coordinators_epochs_rise(before: State, after: State) -> bool:
    """Otherwise a coordinator that was replaced ends a transaction against the decision of its successor."""
    judged = before.known and after.known and not before.compacted
    return implies(judged, before.coordinator <= after.coordinator)


def what_was_read_stays(before: State, after: State) -> bool:
    """Otherwise two batches have one offset."""
    return before.end <= after.end and before.saved <= after.saved


def at_most_one_transaction_is_open(before: State, after: State) -> bool:
    """Otherwise one marker ends two transactions: the next begins where no other is open."""
    begins = after.transaction != before.transaction and after.transaction != NOWHERE
    return implies(begins and not before.compacted, before.transaction == NOWHERE)


INITIAL = State()
ACTIONS = (open, append, mark, snapshot, expire, forget)
INVARIANTS = (
    a_sequence_says_how_many_records_came_before, an_open_transaction_has_a_batch,
    a_snapshot_knows_no_more_than_the_log, who_is_not_known_has_nothing,
)
STEP_PROPERTIES = (
    epochs_of_a_producer_rise, sequences_of_an_epoch_have_no_gap, a_new_epoch_begins_at_0, a_first_batch_begins_at_0,
    coordinators_epochs_rise, what_was_read_stays, at_most_one_transaction_is_open,
)
