"""Kafka's deviations from the design of a transaction, and what each must take and refuse."""

from gapless.spec import kafka_transaction
from gapless.spec.kafka_transaction import NOWHERE, State, TxnStatus, is_prepared
from gapless.spec.language import Deviation, Number, accepts, applies, implies, require


def hang(s: State, part: Number, first: Number, last: Number, epoch: int) -> State:
    """A batch that comes late, behind its marker, opens a transaction that no coordinator knows."""
    applies(s.opened and 0 <= part and s.reached[part] <= first and first <= last)
    applies(s.phase != TxnStatus.ONGOING or s.added[part] == 0)
    require(epoch <= s.epoch, "late-batch-has-an-epoch-that-was-given",
        because="a batch that comes late has an epoch that was given", otherwise="no producer can have written it")
    return kafka_transaction.written(s, part, first, last)


def decide_two_epochs_ahead(s: State, commit: bool, epoch: int, protocol: int, whole: bool) -> State:
    """The epoch goes up by two: once for the producer that begins, and once for the transaction that it aborts."""
    applies(s.phase == TxnStatus.ONGOING and protocol == 2 and not commit)
    require(epoch == s.epoch + 2, "epoch-goes-up-by-two-at-most",
        because="the epoch goes up by two at most", otherwise="epochs run out before their time")
    return kafka_transaction.decided(s, commit, epoch, whole)


def mark_again(s: State, part: Number, commit: bool, epoch: int, offset: Number) -> State:
    """The coordinator did not hear of its marker, and writes it again."""
    applies(s.opened and s.reached[part] <= offset and s.marked[part] == 1 and s.first[part] == NOWHERE)
    require(commit == (s.committed[part] == 1), "marker-says-what-was-decided",
        because="a marker says what was decided", otherwise="some partitions commit what others abort")
    require(epoch == s.epoch, "marker-has-the-epoch-of-its-decision",
        because="a marker has the epoch of its decision",
        otherwise="the producer is shut out, or a batch that comes late opens a transaction that no marker ends")
    return kafka_transaction.ended(s, part, commit, offset)


def abort_by_operator(s: State, part: Number, commit: bool, epoch: int, offset: Number) -> State:
    """An operator aborts what is open in a partition; the coordinator knows nothing of it."""
    applies(s.opened and s.reached[part] <= offset and not is_prepared(s))
    applies(s.marked[part] == 0 or s.first[part] != NOWHERE)
    require(not commit, "operator-only-aborts",
        because="an operator can only abort", otherwise="a transaction is committed that was never decided")
    return kafka_transaction.ended(s, part, commit, offset)


# What can be done, from whatever state.


def a_late_batch_hangs(s: State, part: Number, first: Number, last: Number, epoch: int) -> bool:
    """Otherwise what Kafka does is called something else than it is, or not noticed."""
    late = s.opened and 0 <= part and (s.phase != TxnStatus.ONGOING or s.added[part] == 0)
    taken = accepts(hang, s, part, first, last, epoch)
    return taken == (late and s.reached[part] <= first and first <= last and epoch <= s.epoch)


def _hung(s: State, part: Number, offset: Number) -> State:
    return hang(s, part, offset, offset, s.epoch)


def a_late_batch_is_seen_at_rest(s: State, part: Number, offset: Number) -> bool:
    """Otherwise it hangs for ever, and no one knows."""
    late = accepts(_hung, s, part, offset)
    return implies(late, not kafka_transaction.nothing_hangs(_hung(s, part, offset) if late else s, part))


def an_aborted_transaction_may_take_two_epochs(s: State, commit: bool, epoch: int, protocol: int, whole: bool) -> bool:
    """Otherwise what Kafka does is called something else than it is, or not noticed."""
    two = s.phase == TxnStatus.ONGOING and protocol == 2 and not commit and epoch == s.epoch + 2
    return accepts(decide_two_epochs_ahead, s, commit, epoch, protocol, whole) == (two and whole)


def a_marker_may_come_twice(s: State, part: Number, commit: bool, epoch: int, offset: Number) -> bool:
    """Otherwise what Kafka does is called something else than it is, or not noticed."""
    again = s.opened and s.reached[part] <= offset and s.marked[part] == 1 and s.first[part] == NOWHERE
    same = epoch == s.epoch and commit == (s.committed[part] == 1)
    return accepts(mark_again, s, part, commit, epoch, offset) == (again and same)


def an_operator_may_abort(s: State, part: Number, commit: bool, epoch: int, offset: Number) -> bool:
    """Otherwise what Kafka does is called something else than it is, or not noticed."""
    open_still = not is_prepared(s) and (s.marked[part] == 0 or s.first[part] != NOWHERE)
    taken = accepts(abort_by_operator, s, part, commit, epoch, offset)
    return taken == (s.opened and s.reached[part] <= offset and open_still and not commit)


def _hung_and_ended(s: State, part: Number, first: Number, offset: Number) -> State:
    hung = hang(s, part, first, first, s.epoch)
    return abort_by_operator(hung, part, False, s.epoch, offset)  # noqa: FBT003 - an event's flag


def what_hangs_can_be_aborted(s: State, part: Number, first: Number, offset: Number) -> bool:
    """Otherwise an operator who ends what hangs is accused."""
    hung = accepts(hang, s, part, first, first, s.epoch) and s.first[part] == NOWHERE and not is_prepared(s)
    return not hung or accepts(_hung_and_ended, s, part, first, offset) == (first < offset)


KAFKA = frozenset({"kafka", "kafka-3.5"})
DEVIATIONS = (
    Deviation(decide_two_epochs_ahead, kafka_transaction.decide, KAFKA,
        "docs/kafka-transactions.md#two-epochs: KAFKA-19367, 4.0.0"),
    Deviation(mark_again, kafka_transaction.mark, KAFKA,
        "docs/kafka-transactions.md#marked-again: a marker whose answer was lost is sent again"),
    Deviation(abort_by_operator, kafka_transaction.mark, KAFKA,
        "docs/kafka-transactions.md#operator: kafka-transactions --abort; KIP-664"),
    Deviation(hang, kafka_transaction.write, frozenset({"kafka-3.5"}),
        "docs/kafka-transactions.md#hanging: KAFKA-12671, up to 3.5 a late batch is appended; KIP-890"),
)
GIVEN_UP = (
    kafka_transaction.a_transaction_has_one_outcome,
    kafka_transaction.what_is_undecided_is_known_to_the_coordinator,
)
ENABLED = (
    a_late_batch_hangs, a_late_batch_is_seen_at_rest, an_aborted_transaction_may_take_two_epochs,
    a_marker_may_come_twice, an_operator_may_abort,
    what_hangs_can_be_aborted,
)
