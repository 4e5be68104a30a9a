"""Laws of `kafka_transaction`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import kafka_transaction
from gapless.spec.kafka_transaction import (
    EXHAUSTED,
    NOWHERE,
    UNKNOWN,
    ReportedOutcome,
    State,
    TxnStatus,
    is_idle,
    is_prepared,
)
from gapless.spec.language import Number, accepts, implies


def a_table_may_begin_with_any_row_but_a_decision(s: State, phase: int, pid: int, epoch: int) -> bool:
    """Otherwise an id whose first rows compaction removed cannot be judged."""
    new = phase == TxnStatus.ABSENT and epoch == UNKNOWN
    row = phase == TxnStatus.EMPTY or phase == TxnStatus.ONGOING
    complete = phase == TxnStatus.COMPLETE_COMMIT or phase == TxnStatus.COMPLETE_ABORT
    taken = accepts(kafka_transaction.open, s, phase, pid, epoch)
    return taken == (not s.opened and (new or (0 <= epoch and (row or complete))))


def _opened_and_added(s: State, phase: int, epoch: int, part: Number, its_epoch: int) -> State:
    return kafka_transaction.add(kafka_transaction.open(s, phase, 7, epoch), part, its_epoch)


def _opened_twice(s: State, phase: int, epoch: int) -> State:
    return kafka_transaction.open(kafka_transaction.open(s, phase, 7, epoch), phase, 7, epoch)


def what_a_table_begins_with_continues(s: State, phase: int, epoch: int, part: Number, its_epoch: int) -> bool:
    """Otherwise an id is accused of what lies before its first row, or opened twice."""
    opened = accepts(kafka_transaction.open, s, phase, 7, epoch)
    lawful = phase != TxnStatus.ABSENT and 0 <= part and its_epoch == epoch
    again = accepts(_opened_twice, s, phase, epoch)
    return implies(opened, accepts(_opened_and_added, s, phase, epoch, part, its_epoch) == lawful) and not again


def _opened_and_answered(s: State, phase: int, epoch: int, commit: bool) -> State:
    return kafka_transaction.acknowledge(kafka_transaction.open(s, phase, 7, epoch), commit)


def a_producer_may_be_answered_from_the_first_row(s: State, phase: int, epoch: int, commit: bool) -> bool:
    """Otherwise a producer's log is accused of what compaction removed."""
    opened = accepts(kafka_transaction.open, s, phase, 7, epoch)
    lawful = phase == (TxnStatus.COMPLETE_COMMIT if commit else TxnStatus.COMPLETE_ABORT)
    return implies(opened, accepts(_opened_and_answered, s, phase, epoch, commit) == lawful)


def _opened_and_begun(s: State, phase: int, pid: int, epoch: int, other: int, its_epoch: int) -> State:
    return kafka_transaction.init(kafka_transaction.open(s, phase, pid, epoch), other, its_epoch)


def a_producer_of_the_first_row_is_fenced(
    s: State, phase: int, pid: int, epoch: int, other: int, its_epoch: int
) -> bool:
    """Otherwise two producers write under an id whose first rows compaction removed."""
    opened = accepts(kafka_transaction.open, s, phase, pid, epoch)
    fenced = phase != TxnStatus.ONGOING and 0 <= its_epoch and (other != pid or epoch < its_epoch)
    return implies(opened, accepts(_opened_and_begun, s, phase, pid, epoch, other, its_epoch) == fenced)


def a_producer_begins_in_a_higher_epoch(s: State, pid: int, epoch: int) -> bool:
    """Otherwise a producer cannot begin, or two write under one id."""
    fences = 0 <= epoch and (pid != s.pid or s.epoch < epoch)
    return accepts(kafka_transaction.init, s, pid, epoch) == (s.opened and is_idle(s) and fences)


def _begun(s: State, pid: int, epoch: int, part: Number, its_epoch: int) -> State:
    return kafka_transaction.add(kafka_transaction.init(s, pid, epoch), part, its_epoch)


def _begun_twice(s: State, pid: int, epoch: int, other: int, its_epoch: int) -> State:
    return kafka_transaction.init(kafka_transaction.init(s, pid, epoch), other, its_epoch)


def a_transaction_is_of_the_producer_that_began_last(
    s: State, pid: int, epoch: int, part: Number, other: int, its_epoch: int
) -> bool:
    """Otherwise a producer that was fenced writes on."""
    begins = accepts(kafka_transaction.init, s, pid, epoch)
    added = accepts(_begun, s, pid, epoch, part, its_epoch) == (0 <= part and its_epoch == epoch)
    fenced = 0 <= its_epoch and (other != pid or epoch < its_epoch)
    return implies(begins, added and accepts(_begun_twice, s, pid, epoch, other, its_epoch) == fenced)


def a_partition_is_added_before_the_decision(s: State, part: Number, epoch: int) -> bool:
    """Otherwise a producer cannot write, or writes to what is decided."""
    known = s.opened and s.phase != TxnStatus.ABSENT and not is_prepared(s)
    return accepts(kafka_transaction.add, s, part, epoch) == (known and 0 <= part and epoch == s.epoch)


def records_are_written_to_what_was_added(s: State, part: Number, first: Number, last: Number, epoch: int) -> bool:
    """Otherwise a producer cannot write, or what it writes hangs."""
    within = s.opened and s.reached[part] <= first and first <= last
    lawful = s.phase == TxnStatus.ONGOING and s.added[part] == 1 and epoch == s.epoch
    return accepts(kafka_transaction.write, s, part, first, last, epoch) == (within and lawful)


def _added_and_written(s: State, part: Number, other: Number) -> State:
    added = kafka_transaction.add(s, part, s.epoch)
    return kafka_transaction.write(added, other, s.reached[other], s.reached[other], s.epoch)


def a_new_transaction_has_no_partition_of_the_one_before(s: State, part: Number, other: Number) -> bool:
    """Otherwise a decision names a partition too many, which waits for its marker."""
    added = accepts(kafka_transaction.add, s, part, s.epoch)
    lawful = other == part or (s.phase == TxnStatus.ONGOING and s.added[other] == 1)
    return implies(added, accepts(_added_and_written, s, part, other) == lawful)


def a_decision_has_the_epoch_of_its_protocol(s: State, commit: bool, epoch: int, protocol: int, whole: bool) -> bool:
    """Otherwise a coordinator that follows the protocol is accused, or one that does not is not."""
    nothing = protocol == 2 and not commit and is_idle(s) and s.phase != TxnStatus.ABSENT
    due = s.epoch + 1 if protocol == 2 else s.epoch
    lawful = s.opened and (s.phase == TxnStatus.ONGOING or nothing) and epoch == due and whole
    return accepts(kafka_transaction.decide, s, commit, epoch, protocol, whole) == lawful


def a_time_out_fences(s: State, epoch: int, whole: bool) -> bool:
    """Otherwise a producer that was timed out writes on."""
    lawful = s.opened and s.phase == TxnStatus.ONGOING and epoch == s.epoch + 1 and whole
    return accepts(kafka_transaction.time_out, s, epoch, whole) == lawful


def _decided(s: State, commit: bool, protocol: int) -> State:
    epoch = s.epoch + 1 if protocol == 2 else s.epoch
    return kafka_transaction.decide(s, commit, epoch, protocol, True)  # noqa: FBT003 - an event's flag


def _decided_and_marked(
    s: State, commit: bool, protocol: int, part: Number, marks: bool, epoch: int, offset: Number
) -> State:
    return kafka_transaction.mark(_decided(s, commit, protocol), part, marks, epoch, offset)


def a_marker_agrees_with_its_decision(
    s: State, commit: bool, protocol: int, part: Number, marks: bool, epoch: int, offset: Number
) -> bool:
    """Otherwise some partitions commit what others abort, or a sound coordinator is accused."""
    due = s.epoch + 1 if protocol == 2 else s.epoch
    open_still = s.phase == TxnStatus.ONGOING and s.added[part] == 1
    lawful = open_still and commit == marks and epoch == due and s.reached[part] <= offset
    taken = accepts(_decided_and_marked, s, commit, protocol, part, marks, epoch, offset)
    return implies(accepts(_decided, s, commit, protocol), taken == lawful)


def _timed_out_and_marked(s: State, part: Number, marks: bool, epoch: int, offset: Number) -> State:
    timed_out = kafka_transaction.time_out(s, s.epoch + 1, True)  # noqa: FBT003 - an event's flag
    return kafka_transaction.mark(timed_out, part, marks, epoch, offset)


def what_is_timed_out_is_aborted(s: State, part: Number, marks: bool, epoch: int, offset: Number) -> bool:
    """Otherwise a transaction is committed that its producer left open."""
    asked = s.opened and s.phase == TxnStatus.ONGOING and s.added[part] == 1 and s.reached[part] <= offset
    lawful = not marks and epoch == s.epoch + 1
    return implies(asked, accepts(_timed_out_and_marked, s, part, marks, epoch, offset) == lawful)


def a_marker_comes_while_its_decision_is_not_complete(
    s: State, part: Number, commit: bool, epoch: int, offset: Number
) -> bool:
    """Otherwise a marker ends what was never decided, or a coordinator cannot end what it decided."""
    within = s.opened and s.reached[part] <= offset and s.added[part] == 1 and s.marked[part] == 0
    commits = s.phase == TxnStatus.PREPARE_COMMIT and commit
    aborts = s.phase == TxnStatus.PREPARE_ABORT and not commit
    lawful = within and (commits or aborts) and epoch == s.epoch
    return accepts(kafka_transaction.mark, s, part, commit, epoch, offset) == lawful


def _marked(s: State, part: Number, offset: Number) -> State:
    return kafka_transaction.mark(s, part, s.phase == TxnStatus.PREPARE_COMMIT, s.epoch, offset)


def _marked_twice(s: State, part: Number, offset: Number, again: Number) -> State:
    return _marked(_marked(s, part, offset), part, again)


def a_partition_is_marked_once(s: State, part: Number, offset: Number, again: Number) -> bool:
    """Otherwise a marker that comes late ends the next transaction of the producer."""
    return implies(accepts(_marked, s, part, offset), not accepts(_marked_twice, s, part, offset, again))


def _marked_and_received(s: State, part: Number, offset: Number, received: Number) -> State:
    return kafka_transaction.received(_marked(s, part, offset), part, received)


def what_is_committed_is_received(s: State, part: Number, offset: Number, received: Number) -> bool:
    """Otherwise a consumer is accused that receives what is committed, or acts on what is not."""
    commits = s.phase == TxnStatus.PREPARE_COMMIT and s.first[part] != NOWHERE
    lawful = commits and s.first[part] <= received and received < offset
    taken = accepts(_marked_and_received, s, part, offset, received)
    return implies(accepts(_marked, s, part, offset), taken == lawful)


def a_record_is_received_when_it_is_committed(s: State, part: Number, offset: Number) -> bool:
    """Otherwise a consumer is accused that receives what is committed, or acts on what is not."""
    within = 0 <= s.began[part] and s.began[part] <= offset and offset < s.ended[part]
    return accepts(kafka_transaction.received, s, part, offset) == (s.committed[part] == 1 and within)


def a_transaction_completes_in_its_epoch(s: State, pid: int, epoch: int) -> bool:
    """Otherwise a transaction never ends whose epochs ran out, or a producer that was fenced continues."""
    rotated = EXHAUSTED <= s.epoch and pid != s.pid and epoch == 0
    lawful = (pid == s.pid and epoch == s.epoch) or rotated
    taken = accepts(kafka_transaction.complete, s, pid, epoch)
    may_end = accepts(kafka_transaction.complete, s, s.pid, s.epoch)
    return implies(may_end, taken == lawful) and implies(taken, is_prepared(s) and lawful)


def _complete_and_answered(s: State, outcome: bool) -> State:
    return kafka_transaction.acknowledge(kafka_transaction.complete(s, s.pid, s.epoch), outcome)


def _complete_and_added(s: State, pid: int, epoch: int, part: Number, its_epoch: int) -> State:
    return kafka_transaction.add(kafka_transaction.complete(s, pid, epoch), part, its_epoch)


def _complete_and_begun(s: State, pid: int, epoch: int, other: int, its_epoch: int) -> State:
    return kafka_transaction.init(kafka_transaction.complete(s, pid, epoch), other, its_epoch)


def a_complete_transaction_has_its_outcome(s: State, outcome: bool) -> bool:
    """Otherwise a producer believes what is not so."""
    complete = accepts(kafka_transaction.complete, s, s.pid, s.epoch)
    commits = s.phase == TxnStatus.PREPARE_COMMIT
    return implies(complete, accepts(_complete_and_answered, s, outcome) == (outcome == commits))


def the_next_transaction_has_the_epoch_of_the_complete_one(
    s: State, pid: int, epoch: int, part: Number, its_epoch: int
) -> bool:
    """Otherwise a producer continues in another epoch."""
    complete = accepts(kafka_transaction.complete, s, pid, epoch)
    added = accepts(_complete_and_added, s, pid, epoch, part, its_epoch) == (0 <= part and its_epoch == epoch)
    return implies(complete, added)


def a_complete_transaction_fences(s: State, pid: int, epoch: int, other: int, its_epoch: int) -> bool:
    """Otherwise two producers write under one id."""
    complete = accepts(kafka_transaction.complete, s, pid, epoch)
    fenced = 0 <= its_epoch and (other != pid or epoch < its_epoch)
    return implies(complete, accepts(_complete_and_begun, s, pid, epoch, other, its_epoch) == fenced)


def a_producer_is_answered_its_outcome(s: State, commit: bool) -> bool:
    """Otherwise it waits for ever, or believes what is not so."""
    commits = s.phase == TxnStatus.PREPARE_COMMIT or s.phase == TxnStatus.COMPLETE_COMMIT
    aborts = s.phase == TxnStatus.PREPARE_ABORT or s.phase == TxnStatus.COMPLETE_ABORT
    return accepts(kafka_transaction.acknowledge, s, commit) == (commits if commit else aborts)


def an_answer_to_a_producer_is_kept(s: State, commit: bool) -> bool:
    """Otherwise it is answered one thing and then another, and no one knows."""
    answered = accepts(kafka_transaction.acknowledge, s, commit)
    kept = kafka_transaction.acknowledge(s, commit).reported if answered else ReportedOutcome.NONE
    return implies(answered, kept == (ReportedOutcome.COMMITTED if commit else ReportedOutcome.ABORTED))


def what_a_consumer_received_is_kept(s: State, part: Number, offset: Number) -> bool:
    """Otherwise a record that a consumer acted on is lost, and no one knows."""
    taken = accepts(kafka_transaction.received, s, part, offset)
    return implies(taken, (kafka_transaction.received(s, part, offset).seen[part] if taken else offset) == offset)


def what_rests_undecided_is_of_a_producer_that_may_write(s: State, part: Number) -> bool:
    """Otherwise what hangs is passed over, or a producer is accused that may still end its transaction."""
    end = s.reached[part]
    continues = accepts(kafka_transaction.write, s, part, end, end, s.epoch)
    return kafka_transaction.nothing_hangs(s, part) == (s.first[part] == NOWHERE or continues)


def _expired_and_begun(s: State, pid: int, epoch: int) -> State:
    return kafka_transaction.init(kafka_transaction.expire(s), pid, epoch)


def _expired_and_added(s: State, part: Number, epoch: int) -> State:
    return kafka_transaction.add(kafka_transaction.expire(s), part, epoch)


def what_is_forgotten_begins_again(s: State, pid: int, epoch: int, part: Number) -> bool:
    """Otherwise an id is never free again, or one that is forgotten continues."""
    expired = accepts(kafka_transaction.expire, s)
    begun = accepts(_expired_and_begun, s, pid, epoch) == (expired and s.opened and 0 <= epoch)
    return expired == is_idle(s) and begun and not accepts(_expired_and_added, s, part, epoch)


def _crashed_and_written(s: State, part: Number, kept: Number, first: Number) -> State:
    return kafka_transaction.write(kafka_transaction.crash(s, part, kept), part, first, first, s.epoch)


def _crashed_and_received(s: State, part: Number, kept: Number, offset: Number, received: Number) -> State:
    decided = _decided(kafka_transaction.crash(s, part, kept), True, 1)  # noqa: FBT003 - an event's flag
    return kafka_transaction.received(_marked(decided, part, offset), part, received)


def a_crash_loses_what_is_not_decided(s: State, part: Number, kept: Number, first: Number, offset: Number) -> bool:
    """Otherwise a loss of power stops a producer, or what was decided is lost."""
    keeps = s.opened and s.ended[part] < kept and s.seen[part] < kept and 0 <= kept
    continues = s.phase == TxnStatus.ONGOING and s.added[part] == 1
    end = kept if kept < s.reached[part] else s.reached[part]
    written = accepts(_crashed_and_written, s, part, kept, first) == (end <= first)
    left = s.first[part] != NOWHERE and s.first[part] < kept
    seen = accepts(_crashed_and_received, s, part, kept, offset, first) == (
        end <= offset and left and s.first[part] <= first and first < offset
    )
    crashed = accepts(kafka_transaction.crash, s, part, kept) == keeps
    return crashed and implies(keeps and continues, written and seen)


ENABLED = (
    a_table_may_begin_with_any_row_but_a_decision, what_a_table_begins_with_continues,
    a_producer_may_be_answered_from_the_first_row, a_producer_of_the_first_row_is_fenced,
    a_producer_begins_in_a_higher_epoch,
    a_transaction_is_of_the_producer_that_began_last, a_partition_is_added_before_the_decision,
    records_are_written_to_what_was_added, a_new_transaction_has_no_partition_of_the_one_before,
    a_decision_has_the_epoch_of_its_protocol, a_time_out_fences, a_marker_agrees_with_its_decision,
    what_is_timed_out_is_aborted, a_marker_comes_while_its_decision_is_not_complete, a_partition_is_marked_once,
    what_is_committed_is_received,
    a_record_is_received_when_it_is_committed, a_transaction_completes_in_its_epoch,
    a_complete_transaction_has_its_outcome, the_next_transaction_has_the_epoch_of_the_complete_one,
    a_complete_transaction_fences,
    a_producer_is_answered_its_outcome, an_answer_to_a_producer_is_kept, what_a_consumer_received_is_kept,
    what_rests_undecided_is_of_a_producer_that_may_write, what_is_forgotten_begins_again,
    a_crash_loses_what_is_not_decided,
)
