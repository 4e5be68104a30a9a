"""What RocketMQ does to a transaction that the design forbids: mostly, it decides twice."""

from gapless.spec import transaction
from gapless.spec.language import Deviation, Number, Position, applies, replace
from gapless.spec.transaction import Phase, State

ROCKETMQ = frozenset({"rocketmq"})


def _of_an_earlier_life(s: State) -> State:
    """The state without its limit, if an earlier life of the broker may have had another."""
    return replace(s, max_checks=0) if s.restarted > 0 else s


def _check(s: State, number: Number, parent: Number, position: Position, times: int, asked: bool, same: bool) -> State:
    """A check like any other, by the limit of whichever life."""
    after = transaction.check(_of_an_earlier_life(s), number, parent, position, times, asked, same)
    return replace(after, max_checks=s.max_checks)


def prepare_again(s: State, number: Number, position: Position, marked: bool) -> State:
    """The producer sends a half once more under the same key, as clients do that were not answered."""
    applies(s.phase > Phase.ABSENT)
    return _opened_again(s, transaction.prepare(replace(s, phase=Phase.ABSENT), number, position, marked))


def _opened_again(before: State, after: State) -> State:
    """The state `after`, in which the transaction is open; but what consumers have seen stays seen."""
    return replace(after, phase=Phase.COMMITTED if before.phase == Phase.COMMITTED else Phase.PREPARED)


def outlive_beside(s: State, number: Number, position: Position, times: int) -> State:
    """The same of another branch, or of a half that was sent again under the same key."""
    applies(s.phase > Phase.ABSENT)
    return _opened_again(s, transaction.outlive(replace(s, phase=Phase.ABSENT), number, position, times))


def put_back_while_immune(
    s: State, number: Number, parent: Number, position: Position, times: int, asked: bool, same: bool
) -> State:
    """The half is immune to checks for a time: it is put back, a check is used up, and nobody is asked."""
    applies(not asked)
    begin = replace(s, phase=Phase.PREPARED, newest=parent)
    return replace(_check(begin, number, parent, position, times, True, same), phase=s.phase)  # noqa: FBT003


def put_back_after_a_decision(
    s: State, number: Number, parent: Number, position: Position, times: int, asked: bool, same: bool
) -> State:
    """The check service has not seen the op, or the op was lost: it asks about a transaction that is decided."""
    applies(transaction.is_decided(s))
    begin = replace(s, phase=Phase.PREPARED, newest=parent)
    return replace(_check(begin, number, parent, position, times, asked, same), phase=s.phase)


def put_back_after_parking(
    s: State, number: Number, parent: Number, position: Position, times: int, asked: bool, same: bool
) -> State:
    """Another version of the half was set aside, and this one is still asked about."""
    applies(s.phase == Phase.PARKED)
    begin = replace(s, phase=Phase.PREPARED, newest=parent)
    return _check(begin, number, parent, position, times, asked, same)


def put_back_an_old_version(
    s: State, number: Number, parent: Number, position: Position, times: int, asked: bool, same: bool
) -> State:
    """The half cursor was behind after a restart: a version that was put back before is put back again."""
    applies(parent != s.newest)
    return _check(replace(s, newest=parent), number, parent, position, times, asked, same)


def put_back_beyond_the_limit_of_today(
    s: State, number: Number, parent: Number, position: Position, times: int, asked: bool, same: bool
) -> State:
    """The limit was another when the half was put back: it has been lowered since."""
    return _check(s, number, parent, position, times, asked, same)


def resume(s: State, number: Number, parent: Number, position: Position, times: int, asked: bool, same: bool) -> State:
    """An operator puts the message back to be asked about anew: its counter begins at 0 again."""
    applies(times == 0)
    applies(s.phase > Phase.ABSENT)
    return _opened_again(s, transaction.put_back(s, number, position, times))


def commit_again(s: State, number: Number, half: Position, position: Position, same: bool, twice: bool) -> State:
    """A second final: nothing looks for the first one."""
    applies(s.phase == Phase.COMMITTED)
    return _commit_all_the_same(s, number, half, position, same, twice)


def _commit_all_the_same(
    s: State, number: Number, half: Position, position: Position, same: bool, twice: bool
) -> State:
    """The commit of a half that is not the newest undecided one, and a commit like any other but for that."""
    begin = replace(s, phase=Phase.PREPARED, newest=number)
    return replace(transaction.commit(begin, number, half, position, same, twice), newest=s.newest)


def commit_after_rolling_back(
    s: State, number: Number, half: Position, position: Position, same: bool, twice: bool
) -> State:
    """A producer, or another one of its group, commits what was rolled back."""
    applies(s.phase == Phase.ROLLED_BACK)
    return _commit_all_the_same(s, number, half, position, same, twice)


def commit_after_parking(
    s: State, number: Number, half: Position, position: Position, same: bool, twice: bool
) -> State:
    """A late commit of a half that was set aside: it stays committable."""
    applies(s.phase == Phase.PARKED)
    return _commit_all_the_same(s, number, half, position, same, twice)


def commit_an_old_version(
    s: State, number: Number, half: Position, position: Position, same: bool, twice: bool
) -> State:
    """A decision that was on its way while the half was put back names the version it knows."""
    applies(s.phase == Phase.PREPARED)
    applies(number != s.newest)
    return _commit_all_the_same(s, number, half, position, same, twice)


def commit_a_final(s: State, number: Number, half: Position, position: Position, same: bool, twice: bool) -> State:
    """A producer ends a final, or what was set aside, instead of its half: nothing looks at the topic."""
    applies(twice)
    applies(half != s.positions[number])
    applies(s.phase > Phase.ABSENT)
    return replace(s, phase=Phase.COMMITTED, finals=s.finals + 1)


def _roll_back_all_the_same(s: State, number: Number) -> State:
    """The rollback of a half that is not the newest undecided one, and a rollback like any other but for that."""
    return replace(transaction.roll_back(replace(s, phase=Phase.PREPARED, newest=number), number), newest=s.newest)


def roll_back_again(s: State, number: Number) -> State:
    """A producer rolls back what was rolled back."""
    applies(s.phase == Phase.ROLLED_BACK)
    return _roll_back_all_the_same(s, number)


def roll_back_after_committing(s: State, number: Number) -> State:
    """A producer, or another one of its group, rolls back what was committed; consumers have seen it all the same."""
    applies(s.phase == Phase.COMMITTED)
    return replace(_roll_back_all_the_same(s, number), phase=Phase.COMMITTED)


def roll_back_after_parking(s: State, number: Number) -> State:
    """A late rollback of a half that was set aside."""
    applies(s.phase == Phase.PARKED)
    return _roll_back_all_the_same(s, number)


def roll_back_an_old_version(s: State, number: Number) -> State:
    """A decision that was on its way while the half was put back names the version it knows."""
    applies(s.phase == Phase.PREPARED)
    applies(number != s.newest)
    return _roll_back_all_the_same(s, number)


def mark_again(s: State, number: Number) -> State:
    """Every decision that is accepted has its op: a repeated one names the half again."""
    applies(0 < s.marks[number])
    return transaction.marked(s, number)


def park_for_its_age(s: State, number: Number, position: Position, times: int, same: bool, aged: bool) -> State:
    """The half is older than the broker keeps messages, by its producer's clock: it is given up whatever is left.

    Its counter may have been raised before its age was looked at.
    """
    applies(aged)
    own = s.times[number]
    applies(times == own or times == own + 1)
    after = _park_all_the_same(replace(s, max_checks=0), number, position, own, same, s)
    return replace(after, checks=s.checks if transaction.is_decided(s) else times)


def _park_all_the_same(s: State, number: Number, position: Position, times: int, same: bool, before: State) -> State:
    """What is set aside though something newer is known of it, or for its age; what was decided stays decided."""
    begin = replace(_of_an_earlier_life(s), phase=Phase.PREPARED, newest=number)
    after = transaction.park(begin, number, position, times, same, False)  # noqa: FBT003
    decided = transaction.is_decided(before)
    return replace(
        after,
        max_checks=before.max_checks,
        newest=before.newest,
        checks=before.checks if decided else times,
        phase=before.phase if decided else Phase.PARKED,
    )


def park_after_a_decision(s: State, number: Number, position: Position, times: int, same: bool, aged: bool) -> State:
    """The check service has not seen the op, or the op was lost, and the last check is spent."""
    applies(not aged)
    applies(transaction.is_decided(s))
    return _park_all_the_same(s, number, position, times, same, s)


def park_again(s: State, number: Number, position: Position, times: int, same: bool, aged: bool) -> State:
    """Another version was set aside before, or the half cursor was behind after a restart."""
    applies(not aged)
    applies(s.phase == Phase.PARKED)
    return _park_all_the_same(s, number, position, times, same, s)


def park_an_old_version(s: State, number: Number, position: Position, times: int, same: bool, aged: bool) -> State:
    """A version that was put back before, after a restart say, has its last check behind it."""
    applies(not aged)
    applies(s.phase == Phase.PREPARED)
    applies(number != s.newest)
    return _park_all_the_same(s, number, position, times, same, s)


def park_before_the_limit_of_today(
    s: State, number: Number, position: Position, times: int, same: bool, aged: bool
) -> State:
    """The limit was another when the half was set aside: it has been raised since."""
    return replace(
        transaction.park(_of_an_earlier_life(s), number, position, times, same, aged), max_checks=s.max_checks
    )


DEVIATIONS = (
    Deviation(prepare_again, transaction.prepare, ROCKETMQ,
        "docs/rocketmq.md#n22: a client that was not answered sends the half again"),
    Deviation(outlive_beside, transaction.outlive, ROCKETMQ,
        "docs/rocketmq-transactions.md#n11, #expired-parents: two branches whose beginnings have expired"),
    Deviation(put_back_while_immune, transaction.check, ROCKETMQ,
        "docs/rocketmq-transactions.md#n29: CHECK_IMMUNITY_TIME_IN_SECONDS; apache/rocketmq#8311"),
    Deviation(put_back_after_a_decision, transaction.check, ROCKETMQ,
        "docs/rocketmq-transactions.md#n4, #op-stop: the op was late, or lost in a stop"),
    Deviation(put_back_after_parking, transaction.check, ROCKETMQ,
        "docs/rocketmq-transactions.md#n11: another branch was parked first"),
    Deviation(put_back_an_old_version, transaction.check, ROCKETMQ,
        "docs/rocketmq-transactions.md#n11: an older half cursor after a restart"),
    Deviation(put_back_beyond_the_limit_of_today, transaction.check, ROCKETMQ,
        "docs/rocketmq.md#settings-at-run-time: transactionCheckMax was lowered"),
    Deviation(resume, transaction.check, ROCKETMQ,
        "docs/rocketmq-transactions.md#resume: admin code 323, RESUME_CHECK_HALF_MESSAGE"),
    Deviation(commit_again, transaction.commit, ROCKETMQ,
        "docs/rocketmq-transactions.md#n1: commit is not idempotent; apache/rocketmq#5574"),
    Deviation(commit_after_rolling_back, transaction.commit, ROCKETMQ,
        "docs/rocketmq-transactions.md#n2: nothing looks at the ops; apache/rocketmq#8158"),
    Deviation(commit_after_parking, transaction.commit, ROCKETMQ,
        "docs/rocketmq-transactions.md#n10: what was parked stays committable; apache/rocketmq#8158"),
    Deviation(commit_an_old_version, transaction.commit, ROCKETMQ,
        "docs/rocketmq-transactions.md#n1, #put-back: an old version stays committable"),
    Deviation(commit_a_final, transaction.commit, ROCKETMQ,
        "docs/rocketmq-transactions.md#n6: END_TRANSACTION aimed at a final, up to 5.3.3"),
    Deviation(roll_back_again, transaction.roll_back, ROCKETMQ,
        "docs/rocketmq-transactions.md#n5: each accepted rollback has its op"),
    Deviation(roll_back_after_committing, transaction.roll_back, ROCKETMQ,
        "docs/rocketmq-transactions.md#n2: commit and rollback do not exclude each other"),
    Deviation(roll_back_after_parking, transaction.roll_back, ROCKETMQ,
        "docs/rocketmq-transactions.md#n10: what was parked can still be decided"),
    Deviation(roll_back_an_old_version, transaction.roll_back, ROCKETMQ,
        "docs/rocketmq-transactions.md#put-back: an old version can still be decided"),
    Deviation(mark_again, transaction.mark, ROCKETMQ, "docs/rocketmq-transactions.md#n5: ops repeat a half"),
    Deviation(park_for_its_age, transaction.park, ROCKETMQ,
        "docs/rocketmq-transactions.md#check-5: needSkip, older than fileReservedTime"),
    Deviation(park_after_a_decision, transaction.park, ROCKETMQ,
        "docs/rocketmq-transactions.md#n4; apache/rocketmq#8311"),
    Deviation(park_again, transaction.park, ROCKETMQ, "docs/rocketmq-transactions.md#n11: each branch is parked"),
    Deviation(park_an_old_version, transaction.park, ROCKETMQ,
        "docs/rocketmq-transactions.md#n11: an older half cursor after a restart"),
    Deviation(park_before_the_limit_of_today, transaction.park, ROCKETMQ,
        "docs/rocketmq.md#settings-at-run-time: transactionCheckMax was raised"),
)
GIVEN_UP = (
    transaction.a_final_is_seen_once,
    transaction.there_is_one_outcome,
    transaction.the_newest_version_is_decided_once,
    transaction.the_counter_is_that_of_the_newest_version,
    transaction.a_half_is_parked_after_its_last_check,
    transaction.an_op_names_a_half_once,
    transaction.a_producer_is_asked_step_by_step,
    transaction.an_outcome_is_final,
)
