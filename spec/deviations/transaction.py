"""RocketMQ's deviations from the design of a transaction: mostly, it decides twice."""

from gapless.spec import transaction
from gapless.spec.language import Deviation, Number, Position, accepts, applies, implies, replace
from gapless.spec.transaction import NOWHERE, Phase, State

ROCKETMQ = frozenset({"rocketmq"})


def _of_an_earlier_life(s: State) -> State:
    """The state without its limit, if an earlier life of the broker may have had another."""
    return replace(s, max_checks=0) if s.restarted > 0 else s


def _check(s: State, number: Number, parent: Number, position: Position, times: int, asked: bool, same: bool) -> State:
    """A check like any other, by the limit of whichever life."""
    after = transaction.check(_of_an_earlier_life(s), number, parent, position, times, asked, same)
    return replace(after, max_checks=s.max_checks)


def prepare_again(s: State, number: Number, position: Position, marked: bool) -> State:
    """The producer sends a half again under the same key, as clients do without an answer."""
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
    """The half is immune to checks for a time: it is put back, a check is used up, and no producer is asked."""
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
    """An operator puts the message back to be asked about again: its counter begins at 0 again."""
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
    """The rollback of a half that is not the newest undecided one; otherwise it is an ordinary rollback."""
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
    """A half is set aside for its age or behind a newer version; a decision stays a decision."""
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


# What can be done: of a transaction from its beginning on. A helper's name says which steps it takes.


# What deviations are for, and what stays as it was with them.


def _in_place(s: State, number: Number, parent: Number, position: Position) -> bool:
    """True if `parent` can be put back as `number`, at `position`."""
    return 0 <= s.positions[parent] and s.positions[parent] < position and s.positions[number] < 0


def _within(s: State, times: int) -> bool:
    """True if today's limit allows this many checks, or an earlier one may have."""
    return s.max_checks == 0 or times <= s.max_checks or 0 < s.restarted


def a_half_is_put_back_once_more(s: State, number: Number, parent: Number, position: Position, asked: bool) -> bool:
    """Otherwise what RocketMQ does is called something else than it is, or not noticed."""
    times = s.times[parent] + 1
    immune = accepts(put_back_while_immune, s, number, parent, position, times, asked, True)  # noqa: FBT003
    old = accepts(put_back_an_old_version, s, number, parent, position, times, True, True)  # noqa: FBT003
    open_still = s.phase == Phase.PREPARED and parent != s.newest
    as_designed = immune == (_within(s, times) and not asked) and old == (_within(s, times) and open_still)
    return implies(_in_place(s, number, parent, position), as_designed)


def a_half_is_put_back_late(s: State, number: Number, parent: Number, position: Position) -> bool:
    """Otherwise what RocketMQ does is called something else than it is, or not noticed."""
    times = s.times[parent] + 1
    decided = accepts(put_back_after_a_decision, s, number, parent, position, times, True, True)  # noqa: FBT003
    parked = accepts(put_back_after_parking, s, number, parent, position, times, True, True)  # noqa: FBT003
    as_designed = decided == (_within(s, times) and transaction.is_decided(s))
    by_age_too = parked == (_within(s, times) and s.phase == Phase.PARKED)
    return implies(_in_place(s, number, parent, position), as_designed and by_age_too)


def _restarted(s: State, number: Number, position: Position) -> State:
    times = s.times[s.newest] + 1
    later = transaction.restart(s)
    return put_back_beyond_the_limit_of_today(later, number, s.newest, position, times, True, True)  # noqa: FBT003


def _restarted_and_checked(s: State, number: Number, position: Position, other: Number, after: Position) -> State:
    times = s.times[s.newest] + 2
    return transaction.check(_restarted(s, number, position), other, number, after, times, True, True)  # noqa: FBT003


def a_life_has_a_limit_of_its_own(s: State, number: Number, position: Position, other: Number, after: Position) -> bool:
    """Otherwise a broker is accused of a limit that it had not, or asks beyond the one that it has."""
    known = s.phase == Phase.PREPARED and _in_place(s, number, s.newest, position)
    beyond = s.max_checks != 0 and s.max_checks < s.times[s.newest] + 2
    checked = accepts(_restarted_and_checked, s, number, position, other, after)
    return implies(known, accepts(_restarted, s, number, position) and implies(beyond, not checked))


def a_half_may_come_twice(s: State, number: Number, position: Position, times: int, marked: bool) -> bool:
    """Otherwise what RocketMQ does is called something else than it is, or not noticed."""
    known = s.phase != Phase.ABSENT and 0 <= position
    again = accepts(prepare_again, s, number, position, marked) == (known and marked)
    new = known and s.positions[number] < 0
    resumed = accepts(resume, s, number, s.newest, position, times, True, True) == (new and times == 0)  # noqa: FBT003
    old = accepts(outlive_beside, s, number, position, times)
    return again and resumed and old == (new and 0 < s.start and 0 <= times)


def a_half_is_committed_late(s: State, number: Number, half: Position, same: bool, twice: bool) -> bool:
    """Otherwise what RocketMQ does is called something else than it is, or not noticed."""
    place = s.positions[number]
    old = accepts(commit_an_old_version, s, number, place, NOWHERE, same, twice)
    asked = s.witnessed == 0 or s.commits[number] < s.commits_asked[number]
    open_still = s.phase == Phase.PREPARED and number != s.newest
    other = accepts(commit_a_final, s, number, half, NOWHERE, same, twice)
    is_final = twice and half != place and s.phase != Phase.ABSENT
    return other == is_final and old == (open_still and asked and same and 0 <= place)


def a_half_is_rolled_back_and_has_its_op_late(s: State, number: Number) -> bool:
    """Otherwise what RocketMQ does is called something else than it is, or not noticed."""
    asked = s.witnessed == 0 or s.rollbacks[number] < s.rollbacks_asked[number]
    open_still = s.phase == Phase.PREPARED and number != s.newest
    old = accepts(roll_back_an_old_version, s, number) == (open_still and asked and 0 <= s.positions[number])
    decided = 0 <= s.positions[number] and s.marks[number] < s.commits[number] + s.rollbacks[number]
    return old and accepts(mark_again, s, number) == (decided and s.marks[number] != 0)


def a_half_is_set_aside_whatever_has_become_of_it(
    s: State, number: Number, position: Position, times: int, same: bool, aged: bool
) -> bool:
    """Otherwise what RocketMQ does is called something else than it is, or not noticed."""
    own = s.times[number]
    there = 0 <= s.positions[number] and same
    late = there and times == own and not aged and (s.max_checks == 0 or s.max_checks <= own or 0 < s.restarted)
    for_its_age = accepts(park_for_its_age, s, number, position, times, same, aged)
    decided = accepts(park_after_a_decision, s, number, position, times, same, aged)
    old = accepts(park_an_old_version, s, number, position, times, same, aged)
    open_still = s.phase == Phase.PREPARED and number != s.newest
    as_designed = for_its_age == (there and aged and (times == own or times == own + 1))
    return as_designed and decided == (late and transaction.is_decided(s)) and old == (late and open_still)


def _resumed_and_set_aside(s: State, number: Number, position: Position) -> State:
    asked_again = resume(s, number, s.newest, position, 0, True, True)  # noqa: FBT003
    return transaction.park(asked_again, number, position, 0, True, False)  # noqa: FBT003 - an event's flags


def _aged_and_resumed(s: State, number: Number, position: Position) -> State:
    parked = park_for_its_age(s, s.newest, position, s.times[s.newest], True, True)  # noqa: FBT003
    return _resumed_and_set_aside(parked, number, position)


def _parked_and_resumed(s: State, number: Number, position: Position) -> State:
    parked = park_before_the_limit_of_today(s, s.newest, position, s.times[s.newest], True, False)  # noqa: FBT003
    return _resumed_and_set_aside(parked, number, position)


def what_is_resumed_has_all_its_checks(s: State, number: Number, position: Position) -> bool:
    """Otherwise a message is given up a second time, without a question in between."""
    again = accepts(_aged_and_resumed, s, number, position) or accepts(_parked_and_resumed, s, number, position)
    return implies(0 < s.max_checks, not again)


def _in_order(s: State) -> bool:
    """True if the newest version has its op if it was decided, and the counter is its own."""
    return transaction.an_op_names_what_was_decided(s) and s.checks == s.times[s.newest]


def what_comes_late_leaves_the_newest_version_as_it_was(s: State, number: Number, position: Position) -> bool:
    """Otherwise an old version counts as the newest, and what was over is asked about again."""
    half = s.positions[number]
    committed = not accepts(commit_again, s, number, half, NOWHERE, True, False) or _in_order(  # noqa: FBT003
        commit_again(s, number, half, NOWHERE, True, False)  # noqa: FBT003 - an event's flags
    )
    rolled_back = not accepts(roll_back_after_committing, s, number) or _in_order(roll_back_after_committing(s, number))
    times = s.times[number]
    parked = not accepts(park_after_a_decision, s, number, position, times, True, False) or _in_order(  # noqa: FBT003
        park_after_a_decision(s, number, position, times, True, False)  # noqa: FBT003 - an event's flags
    )
    return implies(_in_order(s), committed and rolled_back and parked)


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
    transaction.a_final_is_seen_once, transaction.there_is_one_outcome, transaction.the_newest_version_is_decided_once,
    transaction.the_counter_is_that_of_the_newest_version, transaction.a_half_is_parked_after_its_last_check,
    transaction.an_op_names_a_half_once, transaction.a_producer_is_asked_step_by_step, transaction.an_outcome_is_final,
)
ENABLED = (
    a_half_is_put_back_once_more,
    a_half_is_put_back_late,
    a_life_has_a_limit_of_its_own,
    a_half_may_come_twice,
    a_half_is_committed_late,
    a_half_is_rolled_back_and_has_its_op_late,
    a_half_is_set_aside_whatever_has_become_of_it,
    what_is_resumed_has_all_its_checks,
    what_comes_late_leaves_the_newest_version_as_it_was,
)
