"""One transactional id of Kafka: its coordinator's decisions, and their markers in every partition that it wrote to.

A trace has the rows of the coordinator's table, with what lies in the partitions between them. Maps are by the number
of a partition within the trace. Source: docs/kafka-transactions.md.
"""

from dataclasses import dataclass
from enum import IntEnum

from gapless.spec.language import Map, Number, all_between, assume, implies, replace, require

NOWHERE = Number(-1)  # the offset of what is not there
UNKNOWN = -1  # the producer id and the epoch of an id that the coordinator does not know
EXHAUSTED = 32766  # the last epoch but one: behind it the id gets another producer id


class TxnStatus(IntEnum):
    """The status of the transaction in the coordinator's table, by its number there."""

    ABSENT = -1
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5


class ReportedOutcome(IntEnum):
    """The outcome with which the producer was answered."""

    NONE = 0
    ABORTED = 1
    COMMITTED = 2


@dataclass(frozen=True, slots=True)
class State:
    """The last row of the table, and of each partition what is undecided in it, and what was decided last."""

    opened: bool = False
    phase: int = TxnStatus.ABSENT
    pid: int = UNKNOWN  # the producer id
    epoch: int = UNKNOWN  # of the producer; of a decision, that of its markers
    partitions: Number = Number(0)  # exclusive end of the numbers of partitions that were ever added or written to
    reported: int = ReportedOutcome.NONE  # the answer to the producer about this transaction
    added: Map[Number, int] = Map(0)  # of a partition: 1 if it is part of this transaction
    marked: Map[Number, int] = Map(0)  # of a partition: 1 if it has the marker of this transaction
    reached: Map[Number, Number] = Map(Number(0))  # of a partition: exclusive end of what was read of it
    first: Map[Number, Number] = Map(NOWHERE)  # of a partition: the first offset that is not decided
    began: Map[Number, Number] = Map(NOWHERE)  # of a partition: the first offset that its last marker decided
    ended: Map[Number, Number] = Map(NOWHERE)  # of a partition: the offset of its last marker
    committed: Map[Number, int] = Map(0)  # of a partition: 1 if its last marker commits
    seen: Map[Number, Number] = Map(NOWHERE)  # of a partition: the offset that a consumer received last


def is_prepared(s: State) -> bool:
    """True if the transaction is decided and not complete."""
    return s.phase == TxnStatus.PREPARE_COMMIT or s.phase == TxnStatus.PREPARE_ABORT


def is_idle(s: State) -> bool:
    """True if the id has no transaction, or a complete one."""
    return s.phase != TxnStatus.ONGOING and not is_prepared(s)


def open(s: State, phase: int, pid: int, epoch: int) -> State:  # noqa: A001 - the step's name in every trace.
    """The table begins here: with a new id, or with a row behind others that compaction removed.

    Source: docs/kafka-transactions.md#table.
    """
    require(not s.opened, "transactional-id-is-not-open-yet",
        because="the transactional id is not open yet", otherwise="two transactional ids are taken for one")
    assume(TxnStatus.ABSENT <= phase and phase <= TxnStatus.COMPLETE_ABORT, because="a status is one of a table")
    require(phase != TxnStatus.PREPARE_COMMIT and phase != TxnStatus.PREPARE_ABORT,
        "decision-is-read-behind-its-partitions",
        because="a decision is read behind the partitions that it names",
        otherwise="it is complete without a marker")
    require((phase == TxnStatus.ABSENT and epoch == UNKNOWN) or (phase != TxnStatus.ABSENT and 0 <= epoch),
        "epoch-of-a-known-id-counts-from-0",
        because="the epoch of an id that the coordinator knows counts from 0",
        otherwise="the producer is shut out, or fences no other")
    return replace(s, opened=True, phase=phase, pid=pid, epoch=epoch)


def init(s: State, pid: int, epoch: int) -> State:
    """A producer begins to work under the id; its higher epoch fences the one before.

    Source: docs/kafka-transactions.md#fencing; TransactionMetadata.prepareIncrementProducerEpoch.
    """
    assume(s.opened, because="a table is read from its first row on")
    require(is_idle(s), "no-transaction-is-open-when-a-producer-begins",
        because="no transaction is open when a producer begins",
        otherwise="records of the producer before are committed with its own")
    require(0 <= epoch, "epoch-of-a-known-id-counts-from-0",
        because="the epoch of an id that the coordinator knows counts from 0",
        otherwise="the producer is shut out, or fences no other")
    require(pid != s.pid or s.epoch < epoch, "epoch-of-a-transactional-id-goes-up",
        because="the epoch goes up when a producer begins", otherwise="two producers write under one id")
    return replace(s, phase=TxnStatus.EMPTY, pid=pid, epoch=epoch)


def add(s: State, part: Number, epoch: int) -> State:
    """A partition becomes part of the transaction, which begins with the first of them.

    Source: docs/kafka-transactions.md#table; TransactionMetadata.prepareAddPartitions.
    """
    assume(s.opened and 0 <= part, because="partitions are numbered from 0")
    require(s.phase != TxnStatus.ABSENT and not is_prepared(s), "partition-is-added-before-the-decision",
        because="a partition is added before the decision",
        otherwise="a record is committed or aborted that its producer never decided about")
    require(epoch == s.epoch, "transaction-has-the-epoch-of-its-producer",
        because="a transaction has the epoch of its producer",
        otherwise="a producer that was fenced adds to the transaction of its successor")
    begun = s if s.phase == TxnStatus.ONGOING else _begun(s)
    return replace(_counted(begun, part), added=begun.added.set(part, 1))


def _counted(s: State, part: Number) -> State:
    return replace(s, partitions=s.partitions if part < s.partitions else Number(part + 1))


def _begun(s: State) -> State:
    """A new transaction, which has no partition yet."""
    return replace(
        s, phase=TxnStatus.ONGOING, reported=ReportedOutcome.NONE, added=s.added.cleared(), marked=s.marked.cleared(),
    )


def write(s: State, part: Number, first: Number, last: Number, epoch: int) -> State:
    """Records take the offsets from `first` to `last` of a partition.

    Source: docs/kafka-transactions.md#partitions; ProducerAppendInfo.appendDataBatch, KIP-890.
    """
    assume(s.opened and s.reached[part] <= first and first <= last, because="a partition is read in order")
    require(s.phase == TxnStatus.ONGOING, "records-belong-to-an-open-transaction",
        because="records belong to an open transaction",
        otherwise="no marker ever comes for them, and readers of committed transactions wait for ever")
    require(s.added[part] == 1, "partition-is-added-before-its-records",
        because="a partition is part of the transaction before its records are written",
        otherwise="no marker ever comes for them, and readers of committed transactions wait for ever")
    require(epoch == s.epoch, "transaction-has-the-epoch-of-its-producer",
        because="a transaction has the epoch of its producer",
        otherwise="a producer that was fenced adds to the transaction of its successor")
    return written(s, part, first, last)


def written(s: State, part: Number, first: Number, last: Number) -> State:
    """The partition with the records, undecided."""
    begins = first if s.first[part] == NOWHERE else s.first[part]
    return replace(
        _counted(s, part), first=s.first.set(part, begins), reached=s.reached.set(part, Number(last + 1)),
    )


def decide(s: State, commit: bool, epoch: int, protocol: int, whole: bool) -> State:
    """The transaction is committed or aborted; `whole` says that the row names all its partitions and no other.

    By protocol 2 each decision raises the epoch, and a producer may abort what it never began.

    Source: docs/kafka-transactions.md#decision; TransactionMetadata.prepareAbortOrCommit, KIP-890.
    """
    assume(s.opened, because="a table is read from its first row on")
    nothing = protocol == 2 and not commit and is_idle(s) and s.phase != TxnStatus.ABSENT
    require(s.phase == TxnStatus.ONGOING or nothing, "decision-ends-an-open-transaction",
        because="a decision ends an open transaction", otherwise="what was decided is decided again, otherwise")
    require(epoch == (s.epoch + 1 if protocol == 2 else s.epoch), "decision-has-the-epoch-of-its-protocol",
        because="a decision has the epoch of the transaction, or by protocol 2 the next one",
        otherwise="a batch that comes late is taken for one of the next transaction")
    return decided(s, commit, epoch, whole)


def decided(s: State, commit: bool, epoch: int, whole: bool) -> State:
    """The decision."""
    require(whole, "decision-names-every-partition",
        because="a decision names every partition of its transaction",
        otherwise="a partition has no marker, and its readers of committed transactions wait for ever")
    begun = s if s.phase == TxnStatus.ONGOING else _begun(s)
    return replace(begun, phase=TxnStatus.PREPARE_COMMIT if commit else TxnStatus.PREPARE_ABORT, epoch=epoch)


def time_out(s: State, epoch: int, whole: bool) -> State:
    """The coordinator aborts what its producer left open, and fences it: the epoch goes up.

    Source: docs/kafka-transactions.md#fencing; TransactionMetadata.prepareFenceProducerEpoch.
    """
    assume(s.opened, because="a table is read from its first row on")
    require(s.phase == TxnStatus.ONGOING, "decision-ends-an-open-transaction",
        because="a decision ends an open transaction", otherwise="what was decided is decided again, otherwise")
    require(epoch == s.epoch + 1, "producer-that-is-timed-out-is-fenced",
        because="the epoch goes up by one when a transaction is timed out",
        otherwise="its producer continues to write, and begins a transaction that it does not know of")
    return decided(s, False, epoch, whole)  # noqa: FBT003 - an event's flag


def mark(s: State, part: Number, commit: bool, epoch: int, offset: Number) -> State:
    """A marker at `offset` of a partition says what was decided of all before it that is not decided.

    Source: docs/kafka-transactions.md#markers; TransactionMarkerChannelManager, ProducerAppendInfo.appendEndTxnMarker.
    """
    assume(s.opened and s.reached[part] <= offset, because="a partition is read in order")
    require(is_prepared(s), "marker-follows-a-decision",
        because="a marker follows a decision",
        otherwise="some partitions commit what others abort, or what is still written")
    require(commit == (s.phase == TxnStatus.PREPARE_COMMIT), "marker-says-what-was-decided",
        because="a marker says what was decided", otherwise="some partitions commit what others abort")
    require(epoch == s.epoch, "marker-has-the-epoch-of-its-decision",
        because="a marker has the epoch of its decision",
        otherwise="the producer is shut out, or a batch that comes late opens a transaction that no marker ends")
    require(s.added[part] == 1, "marker-lies-in-a-partition-of-its-transaction",
        because="a marker lies in a partition of its transaction",
        otherwise="a transaction is ended that was never decided")
    require(s.marked[part] == 0, "partition-has-one-marker-of-a-decision",
        because="a partition has one marker of a decision",
        otherwise="a marker that comes late ends the next transaction of the producer")
    return ended(replace(s, marked=s.marked.set(part, 1)), part, commit, offset)


def ended(s: State, part: Number, commit: bool, offset: Number) -> State:
    """The partition behind the marker, which ends all that was undecided."""
    return replace(
        s, began=s.began.set(part, s.first[part]), ended=s.ended.set(part, offset), first=s.first.set(part, NOWHERE),
        committed=s.committed.set(part, 1 if commit else 0), reached=s.reached.set(part, Number(offset + 1)),
    )


def complete(s: State, pid: int, epoch: int) -> State:
    """Every partition has its marker; where epochs run out, the id gets another producer id.

    Source: docs/kafka-transactions.md#table; TransactionMetadata.prepareComplete.
    """
    require(is_prepared(s), "what-is-complete-was-decided",
        because="what is complete was decided", otherwise="a transaction ends without an outcome")
    require(all_between(0, s.partitions, lambda part: s.added[Number(part)] == 0 or s.marked[Number(part)] == 1),
        "complete-transaction-has-its-marker-in-every-partition",
        because="a complete transaction has its marker in every partition",
        otherwise="readers of committed transactions wait for ever in the partition that has none")
    require((pid == s.pid and epoch == s.epoch) or (EXHAUSTED <= s.epoch and pid != s.pid and epoch == 0),
        "complete-transaction-has-the-epoch-of-its-decision",
        because="a complete transaction has the epoch of its decision, unless epochs ran out",
        otherwise="the producer is shut out, or one that was fenced continues")
    done = TxnStatus.COMPLETE_COMMIT if s.phase == TxnStatus.PREPARE_COMMIT else TxnStatus.COMPLETE_ABORT
    return replace(s, phase=done, pid=pid, epoch=epoch)


def expire(s: State) -> State:
    """The coordinator forgets the id, under which nothing was written for long.

    Source: docs/kafka-transactions.md#expiry; TransactionStateManager.removeExpiredTransactionalIds.
    """
    require(is_idle(s), "id-with-a-transaction-is-not-forgotten",
        because="an id with a transaction that is not complete is not forgotten",
        otherwise="its partitions have no marker, and their readers of committed transactions wait for ever")
    return replace(s, phase=TxnStatus.ABSENT, pid=UNKNOWN, epoch=UNKNOWN)


def crash(s: State, part: Number, kept: Number) -> State:
    """A partition lost what lay at `kept` or behind it and was not decided.

    Source: docs/kafka.md#recovery.
    """
    assume(s.opened and s.ended[part] < kept and s.seen[part] < kept and 0 <= kept,
        because="what was decided is on every replica in sync")
    lost = kept <= s.first[part]
    return replace(
        s, first=s.first.set(part, NOWHERE) if lost else s.first,
        reached=s.reached.set(part, kept) if kept < s.reached[part] else s.reached,
    )


def acknowledge(s: State, commit: bool) -> State:
    """The producer is answered: its transaction is committed or aborted, as it asked.

    Source: docs/kafka-transactions.md#decision; EndTxn.
    """
    commits = s.phase == TxnStatus.PREPARE_COMMIT or s.phase == TxnStatus.COMPLETE_COMMIT
    aborts = s.phase == TxnStatus.PREPARE_ABORT or s.phase == TxnStatus.COMPLETE_ABORT
    require(commits if commit else aborts, "answer-to-a-producer-is-what-was-decided",
        because="the answer to a producer is what was decided",
        otherwise="it believes that records are committed which are not, or gone which are not")
    return replace(s, reported=ReportedOutcome.COMMITTED if commit else ReportedOutcome.ABORTED)


def received(s: State, part: Number, offset: Number) -> State:
    """A consumer that reads what is committed received the record at `offset`.

    Source: docs/kafka-transactions.md#read-committed.
    """
    require(s.committed[part] == 1 and 0 <= s.began[part] and s.began[part] <= offset and offset < s.ended[part],
        "record-that-is-received-is-committed",
        because="a record that is received is committed",
        otherwise="a consumer acts on what is aborted, or may still be")
    return replace(s, seen=s.seen.set(part, offset))


def a_transaction_has_one_outcome(s: State, part: Number) -> bool:
    """Otherwise some partitions commit what others abort."""
    commits = s.phase == TxnStatus.PREPARE_COMMIT or s.phase == TxnStatus.COMPLETE_COMMIT
    return implies(s.marked[part] == 1 and s.phase > TxnStatus.EMPTY, s.committed[part] == (1 if commits else 0))


def a_marker_follows_its_decision(s: State, part: Number) -> bool:
    """Otherwise a partition is decided while its transaction is still written."""
    return implies(s.marked[part] == 1, s.phase != TxnStatus.ONGOING and s.added[part] == 1)


def what_is_complete_has_its_marker_everywhere(s: State, part: Number) -> bool:
    """Otherwise readers of committed transactions wait for ever in the partition that has none."""
    complete = s.phase == TxnStatus.COMPLETE_COMMIT or s.phase == TxnStatus.COMPLETE_ABORT
    return implies(complete and s.added[part] == 1, s.marked[part] == 1)


def what_is_undecided_is_known_to_the_coordinator(s: State, part: Number) -> bool:
    """Otherwise a transaction hangs: its marker never comes, and readers of committed transactions wait for ever."""
    known = s.added[part] == 1 and not is_idle(s) and s.marked[part] == 0
    return implies(s.first[part] != NOWHERE, known)


def consumers_see_committed_records_only(s: State, part: Number) -> bool:
    """Otherwise a consumer acts on what is aborted, or may still be."""
    return s.seen[part] <= s.ended[part] and implies(s.first[part] != NOWHERE, s.seen[part] < s.first[part])


def a_partition_is_read_in_order(s: State, part: Number) -> bool:
    """Otherwise a record is decided by a marker that lies before it."""
    known = s.ended[part] < s.reached[part] and NOWHERE <= s.ended[part] and NOWHERE <= s.first[part]
    decided_before = implies(0 <= s.began[part], s.began[part] <= s.ended[part])
    return known and decided_before and implies(
        s.first[part] != NOWHERE, s.ended[part] < s.first[part] and s.first[part] < s.reached[part]
    )


def nothing_is_known_before_the_table_is_read(s: State, part: Number) -> bool:
    """Otherwise a trace is judged by what it does not say."""
    empty = s.phase == TxnStatus.ABSENT and s.reported == ReportedOutcome.NONE
    return s.opened or (empty and s.added[part] == 0 and s.marked[part] == 0 and s.first[part] == NOWHERE)


def partitions_are_counted(s: State, part: Number) -> bool:
    """Otherwise a partition is passed over when all are looked at."""
    known = 0 <= s.partitions and 0 <= s.added[part] and s.added[part] <= 1
    return known and implies(s.added[part] == 1 or s.first[part] != NOWHERE, 0 <= part and part < s.partitions)


def a_flag_is_one_of_two(s: State, part: Number) -> bool:
    """Otherwise a partition is neither committed nor aborted."""
    flags = 0 <= s.marked[part] and s.marked[part] <= 1 and 0 <= s.committed[part] and s.committed[part] <= 1
    return flags and NOWHERE <= s.began[part]


def a_status_is_one_of_seven(s: State) -> bool:
    """Otherwise the status of the transaction is unknown."""
    known = s.phase != TxnStatus.ABSENT
    status = TxnStatus.ABSENT <= s.phase and s.phase <= TxnStatus.COMPLETE_ABORT
    return status and implies(known, s.opened and 0 <= s.epoch) and implies(not known, s.epoch == UNKNOWN)


def an_answer_to_a_producer_is_true(s: State) -> bool:
    """Otherwise it believes that records are committed which are not."""
    commits = s.phase == TxnStatus.PREPARE_COMMIT or s.phase == TxnStatus.COMPLETE_COMMIT
    aborts = s.phase == TxnStatus.PREPARE_ABORT or s.phase == TxnStatus.COMPLETE_ABORT
    over = s.phase <= TxnStatus.EMPTY
    reported = s.reported
    true = (reported == ReportedOutcome.COMMITTED and commits) or (reported == ReportedOutcome.ABORTED and aborts)
    return over or s.reported == ReportedOutcome.NONE or true


def epochs_fence(before: State, after: State) -> bool:
    """Otherwise a producer that was replaced still writes under the id."""
    same = before.opened and before.pid == after.pid
    known = before.phase != TxnStatus.ABSENT and after.phase != TxnStatus.ABSENT
    return implies(same and known, before.epoch <= after.epoch)


def a_decision_is_final(before: State, after: State) -> bool:
    """Otherwise some partitions commit what others abort."""
    done = TxnStatus.COMPLETE_COMMIT if before.phase == TxnStatus.PREPARE_COMMIT else TxnStatus.COMPLETE_ABORT
    return implies(is_prepared(before), after.phase == before.phase or after.phase == done)


def a_transaction_ends_with_a_decision(before: State, after: State) -> bool:
    """Otherwise an open transaction is forgotten."""
    return implies(before.phase == TxnStatus.ONGOING, after.phase == TxnStatus.ONGOING or is_prepared(after))


def what_is_forgotten_has_no_producer(before: State, after: State) -> bool:
    """Otherwise an id that was given up still belongs to the producer that had it."""
    forgotten = before.phase != TxnStatus.ABSENT and after.phase == TxnStatus.ABSENT
    return implies(forgotten, after.pid == UNKNOWN and after.epoch == UNKNOWN)


def partitions_only_grow(before: State, after: State, part: Number) -> bool:
    """Otherwise a partition has no marker, and its readers of committed transactions wait for ever."""
    return implies(not is_idle(before), before.added[part] <= after.added[part])


def a_marker_ends_what_was_open(before: State, after: State, part: Number) -> bool:
    """Otherwise a marker decides what another transaction wrote."""
    marked = before.ended[part] != after.ended[part]
    return implies(marked, after.began[part] == before.first[part] and after.first[part] == NOWHERE)


def what_is_undecided_keeps_its_beginning(before: State, after: State, part: Number) -> bool:
    """Otherwise readers of committed transactions receive the first records of what is aborted."""
    undecided = before.first[part] != NOWHERE and after.first[part] != NOWHERE
    return implies(undecided, before.first[part] == after.first[part])


def what_is_received_is_committed(before: State, after: State, part: Number) -> bool:
    """Otherwise a consumer acts on what is aborted, or may still be."""
    within = after.began[part] <= after.seen[part] and after.seen[part] < after.ended[part]
    return implies(before.seen[part] != after.seen[part], after.committed[part] == 1 and within)


def what_is_decided_stays_there(before: State, after: State, part: Number) -> bool:
    """Otherwise a record that a consumer has acted on is gone."""
    return before.ended[part] <= after.ended[part] and before.partitions <= after.partitions


def every_decision_is_complete(s: State) -> bool:
    """Otherwise a partition may have no marker, and its readers of committed transactions wait."""
    return not is_prepared(s)


def nothing_hangs(s: State, part: Number) -> bool:
    """Otherwise readers of committed transactions wait for ever for records that no coordinator knows of."""
    known = s.phase == TxnStatus.ONGOING and s.added[part] == 1
    return implies(0 <= part and part < s.partitions, s.first[part] == NOWHERE or known)


INITIAL = State()
ACTIONS = (
    open, init, add, write, decide, time_out, mark, complete, expire, crash, acknowledge, received,
)
INVARIANTS = (
    a_transaction_has_one_outcome, a_marker_follows_its_decision, what_is_complete_has_its_marker_everywhere,
    what_is_undecided_is_known_to_the_coordinator, consumers_see_committed_records_only, a_partition_is_read_in_order,
    nothing_is_known_before_the_table_is_read, partitions_are_counted, a_flag_is_one_of_two, a_status_is_one_of_seven,
    an_answer_to_a_producer_is_true,
)
STEP_PROPERTIES = (
    epochs_fence, a_decision_is_final, a_transaction_ends_with_a_decision, what_is_forgotten_has_no_producer,
    partitions_only_grow, a_marker_ends_what_was_open, what_is_undecided_keeps_its_beginning,
    what_is_received_is_committed, what_is_decided_stays_there,
)
AT_REST = (nothing_hangs, every_decision_is_complete)
