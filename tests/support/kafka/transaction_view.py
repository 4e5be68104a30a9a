"""A transactional id of Kafka, seen as the transaction of the proposals: of its first transaction, that is what it is.

The half is there once a partition was added, the final with the decision, the op with the completion.
"""

from gapless.spec import kafka_transaction, transaction
from gapless.spec.kafka_transaction import ReportedOutcome, TxnStatus
from gapless.spec.language import Number, Position, filled, seen_as
from gapless.spec.transaction import NOWHERE, Phase

FIRST, HERE = Number(0), Position(0)


def transaction_of(s: kafka_transaction.State) -> transaction.State:
    """The last transaction of the id; none where a producer began and has added nothing."""
    versions = 1 if s.phase >= TxnStatus.ONGOING else 0
    commits = s.phase == TxnStatus.PREPARE_COMMIT or s.phase == TxnStatus.COMPLETE_COMMIT  # noqa: PLR1714 - symbolic
    aborts = s.phase == TxnStatus.PREPARE_ABORT or s.phase == TxnStatus.COMPLETE_ABORT  # noqa: PLR1714 - symbolic
    return seen_as(
        transaction.INITIAL,
        phase=_phase(s, commits=commits, aborts=aborts),
        newest=Number(versions - 1),
        finals=1 if commits else 0,
        positions=filled(NOWHERE, 0, versions, lambda _: HERE),
        commits=filled(0, 0, versions, lambda _: 1 if commits else 0),
        rollbacks=filled(0, 0, versions, lambda _: 1 if aborts else 0),
        marks=filled(0, 0, versions, lambda _: 1 if s.phase >= TxnStatus.COMPLETE_COMMIT else 0),
        commits_reported=filled(0, 0, versions, lambda _: 1 if s.reported == ReportedOutcome.COMMITTED else 0),
    )


def _phase(s: kafka_transaction.State, *, commits: bool, aborts: bool) -> int:
    if commits:
        return Phase.COMMITTED
    if aborts:
        return Phase.ROLLED_BACK
    return Phase.PREPARED if s.phase == TxnStatus.ONGOING else Phase.ABSENT


def _decided(begun: transaction.State, commit: bool) -> transaction.State:  # noqa: FBT001 - as an event has it
    if commit:
        return transaction.commit(begun, FIRST, HERE, HERE, True, False)  # noqa: FBT003 - an event's flags
    return transaction.roll_back(begun, FIRST)


def open(s: kafka_transaction.State, phase: int, pid: int, epoch: int) -> transaction.State:  # noqa: A001, ARG001
    """The transaction is found as far as it came."""
    begun = transaction.open(transaction_of(s), HERE, 0, 0)
    if phase < TxnStatus.ONGOING:
        return begun
    begun = transaction.prepare(begun, FIRST, HERE, True)  # noqa: FBT003 - an event's flag
    if phase == TxnStatus.ONGOING:
        return begun
    return transaction.mark(_decided(begun, phase == TxnStatus.COMPLETE_COMMIT), FIRST)


def add(s: kafka_transaction.State, part: Number, epoch: int) -> transaction.State:  # noqa: ARG001
    """The half is there with the first partition."""
    if s.phase == TxnStatus.ONGOING:
        return transaction_of(s)
    return transaction.prepare(transaction_of(s), FIRST, HERE, True)  # noqa: FBT003 - an event's flag


def decide(
    s: kafka_transaction.State, commit: bool, epoch: int, protocol: int, whole: bool  # noqa: ARG001, FBT001
) -> transaction.State:  # fmt: skip
    """It is committed or rolled back; by protocol 2 what never began is rolled back, too."""
    if s.phase == TxnStatus.ONGOING:
        return _decided(transaction_of(s), commit)
    return _decided(transaction.prepare(transaction_of(s), FIRST, HERE, True), commit)  # noqa: FBT003


def time_out(s: kafka_transaction.State, epoch: int, whole: bool) -> transaction.State:  # noqa: ARG001, FBT001
    """It is rolled back."""
    return _decided(transaction_of(s), False)  # noqa: FBT003 - an event's flag


def complete(s: kafka_transaction.State, pid: int, epoch: int) -> transaction.State:  # noqa: ARG001
    """The op follows."""
    return transaction.mark(transaction_of(s), FIRST)


def acknowledge(s: kafka_transaction.State, commit: bool) -> transaction.State:  # noqa: FBT001
    """The producer is answered."""
    if commit:
        return transaction.acknowledge(transaction_of(s), FIRST)
    return transaction_of(s)


STEPS = (open, add, decide, time_out, complete, acknowledge)
