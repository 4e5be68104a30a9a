"""A broker, end to end: one transaction and its producer, the log, and the queue in which consumers find the final.

This spec composes the others by calling their steps. Every record takes one byte of the log,
and other topics' records lie between those of the transaction; the file is never full. A version that is put back has a
new number and a new place. A crash takes what was not flushed: the half falls back to its newest version on disk, so a
commit is as durable as its final, and a rollback as its op. What survives beyond what was flushed is flushed just
before. Source: docs/proposals.md#transactions, docs/rocketmq-transactions.md#end, #n14, docs/rocketmq.md#recovery.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec import log, transaction
from gapless.spec.language import Map, Number, Position, assume, implies, replace, require
from gapless.spec.transaction import NO_NUMBER, NOWHERE, Phase

Counter = NewType("Counter", int)
"""How often a version was put back: its place in the order of versions."""


@dataclass(frozen=True, slots=True)
class State:
    """State of the log, of the transaction and its records, of its producer and of the consumers.

    A version is known by its number, and by its counter, which is its place in the order of versions.
    """

    lives: int = 0  # how often the broker started; 0 until it is found
    file_size: int = 0  # bytes of the log's file; 0 until the broker is found, then no step changes it
    flushed: Position = Position(0)  # exclusive end of what survives a crash
    end: Position = Position(0)  # exclusive end of the records
    acknowledged: Position = Position(0)  # exclusive end of what is reported safe to the producer
    max_checks: int = 0  # how often the half is put back at most; 0 where that is not known
    phase: int = Phase.ABSENT
    newest: Number = NO_NUMBER  # the newest version
    checks: Counter = Counter(0)  # its counter: how often the half was put back
    stored: Counter = Counter(0)  # how many versions are on disk
    on_disk: int = Phase.ABSENT  # the phase that its records on disk tell of
    versions: Map[Counter, Number] = Map(NO_NUMBER)  # with counter k: the number of the version
    finals: int = 0  # finals in the log
    positions: Map[Number, Position] = Map(NOWHERE)  # of version n: where its record lies
    times: Map[Number, int] = Map(0)  # of version n: its counter
    commits: Map[Number, int] = Map(0)  # of version n: the finals that name it
    rollbacks: Map[Number, int] = Map(0)  # of version n: how often it was rolled back
    marks: Map[Number, int] = Map(0)  # of version n: the ops that name it
    commits_asked: Map[Number, int] = Map(0)  # of version n: how often its producer asked to commit it
    rollbacks_asked: Map[Number, int] = Map(0)  # of version n: how often its producer asked to roll it back
    final: Position = NOWHERE  # where the final lies
    op: Position = NOWHERE  # where the op lies
    parked: Position = NOWHERE  # where the copy lies that was set aside
    visible: int = 0  # entries of the final in the user's queue
    seen: int = 0  # 1 once consumers could see the message, whatever happens then
    group: int = 0  # the group of the producer that sent the half
    asked: int = 0  # the group of the producer that was asked last
    meant: int = 0  # the queue that the message was sent to: the half keeps it, and lies elsewhere
    went: int = 0  # the queue that the final lies in
    runs: int = 0  # how often the producer ran its local transaction
    gave_up: int = 0  # 1 once the producer has given up its local transaction


def _log(s: State) -> log.State:
    """The log as its own spec sees it."""
    return replace(log.INITIAL, file_size=s.file_size, end=s.end, flushed=s.flushed, acknowledged=s.acknowledged)


def _logged(s: State, after: log.State) -> State:
    """The broker in which the log has become `after`."""
    return replace(s, file_size=after.file_size, end=after.end, flushed=after.flushed, acknowledged=after.acknowledged)


def _written(s: State, position: Position) -> State:
    """The log with one more record, at `position`."""
    return _logged(s, log.append(_log(s), position, 1, position, True, True, True, True, 0))


def _transaction(s: State) -> transaction.State:
    """The transaction as its own spec sees it, with all that its producer asked for."""
    return replace(
        transaction.INITIAL, max_checks=s.max_checks, witnessed=1, phase=s.phase, newest=s.newest, checks=s.checks,
        finals=s.finals, positions=s.positions, times=s.times, commits=s.commits, rollbacks=s.rollbacks,
        marks=s.marks, commits_asked=s.commits_asked, rollbacks_asked=s.rollbacks_asked,
    )


def _with(s: State, after: transaction.State) -> State:
    """The broker in which the transaction has become `after`."""
    return replace(
        s, max_checks=after.max_checks, phase=after.phase, newest=after.newest, checks=Counter(after.checks),
        finals=after.finals, positions=after.positions, times=after.times, commits=after.commits,
        rollbacks=after.rollbacks, marks=after.marks, commits_asked=after.commits_asked,
        rollbacks_asked=after.rollbacks_asked,
    )


def open(s: State, max_checks: int, file_size: int) -> State:  # noqa: A001 - the step's name in every trace.
    """A broker with an empty log is found, which puts a half back so often at most, if that is known."""
    begun = _logged(s, log.open(_log(s), Position(0), file_size))
    after = transaction.open(_transaction(s), Position(0), max_checks, True)  # noqa: FBT003
    return replace(_with(begun, after), lives=1)


def append(s: State, position: Position) -> State:
    """A record of another topic is in the log."""
    return _written(s, position)


def prepare(s: State, number: Number, position: Position, group: int, queue: int) -> State:
    """The half is in the log, where no consumer looks; it keeps the queue that it was sent to.

    Source: docs/proposals.md#invisible-half (the original topic and queue are kept).
    """
    require(0 <= number, "numbers-begin-at-0", because="numbers begin at 0", otherwise="a half can never be asked for")
    after = transaction.prepare(_transaction(s), number, position, True)  # noqa: FBT003
    begun = replace(_with(_written(s, position), after), versions=s.versions.set(Counter(0), number))
    return replace(begun, group=group, asked=group, meant=queue, went=queue)


def answer(s: State) -> State:
    """The broker reports to the producer that its half is safe.

    Source: docs/proposals.md#phase-answer.
    """
    require(0 < s.stored, "half-is-on-disk",
        because="the half is on disk", otherwise="the producer continues, and the message about it is lost")
    return _logged(s, log.acknowledge(_log(s), Position(s.positions[s.versions[Counter(0)]] + 1)))


def run(s: State) -> State:
    """The producer runs its local transaction: it pays, say.

    Source: docs/proposals.md#phase-local (it is not run when the half failed).
    """
    require(0 < s.acknowledged, "half-is-safe",
        because="the half is safe", otherwise="money is paid, and no consumer ever hears of it")
    assume(s.runs == 0 and s.gave_up == 0, because="a producer runs its local transaction once, or gives it up")
    return replace(s, runs=s.runs + 1)


def ask_to_commit(s: State, number: Number) -> State:
    """The producer asks to commit version `number`; whether it was heard is not known.

    Source: docs/proposals.md#phase-end, #back-check.
    """
    assume(s.runs == 1, because="a producer commits what it has done")
    return _with(s, transaction.ask_to_commit(_transaction(s), number))


def ask_to_roll_back(s: State, number: Number) -> State:
    """The producer asks to roll version `number` back, and has given up its local transaction.

    Source: docs/proposals.md#phase-end, #back-check.
    """
    assume(s.runs == 0, because="a producer rolls back what it has not done")
    return replace(_with(s, transaction.ask_to_roll_back(_transaction(s), number)), gave_up=1)


def check(s: State, number: Number, position: Position, times: Counter, group: int) -> State:
    """The half is put back as version `number`, its counter raised, and a producer of its group is asked.

    Source: docs/proposals.md#back-check.
    """
    require(s.newest < number, "numbers-rise",
        because="numbers rise", otherwise="a decision about a record that was there before is taken for one about this")
    after = transaction.check(_transaction(s), number, s.newest, position, times, True, True)  # noqa: FBT003
    require(group == s.group, "who-is-asked-is-of-the-group-that-sent-the-half",
        because="who is asked is of the group that sent the half", otherwise="a stranger decides, who does not know")
    return replace(_with(_written(s, position), after), versions=s.versions.set(times, number), asked=group)


def commit(s: State, position: Position, queue: int) -> State:
    """The final is in the log; consumers see it once it is on disk and has its entry.

    Source: docs/proposals.md#commit (the real queue is put back).
    """
    half = s.positions[s.newest]
    after = transaction.commit(_transaction(s), s.newest, half, position, True, False)  # noqa: FBT003
    require(queue == s.meant, "final-goes-where-its-half-was-meant-to-go",
        because="the final goes where its half was meant to go",
        otherwise="those who wait for the message do not receive it, and others do")
    return replace(_with(_written(s, position), after), final=position, went=queue)


def roll_back(s: State) -> State:
    """The message will never be seen. It leaves no record but the op that follows."""
    return _with(s, transaction.roll_back(_transaction(s), s.newest))


def mark(s: State, position: Position) -> State:
    """An op names the half: the check service need not look at it again."""
    return replace(_with(_written(s, position), transaction.mark(_transaction(s), s.newest)), op=position)


def park(s: State, position: Position, times: int) -> State:
    """All checks are spent: a copy is set aside, and stays invisible."""
    after = transaction.park(_transaction(s), s.newest, position, times, True, False)  # noqa: FBT003
    return replace(_with(_written(s, position), after), parked=position)


def flush(s: State) -> State:
    """One more record is on disk. A flush of many is so many of these: a crash may come between any two."""
    here = s.flushed
    after = _logged(s, log.flush(_log(s), Position(here + 1)))
    if s.positions[s.versions[s.stored]] == here:
        return replace(after, stored=Counter(s.stored + 1), on_disk=Phase.PREPARED)
    return replace(after, on_disk=s.phase) if here == s.final or here == s.op or here == s.parked else after


def dispatch(s: State, position: Position) -> State:
    """The final gets its entry in the user's queue: from now on consumers see it. After a crash it gets it again.

    Source: docs/rocketmq.md#confirm-offset, #recovery.
    """
    require(0 <= position and position == s.final, "entry-points-at-the-final",
        because="the entry points at the final", otherwise="consumers receive a message that was never committed")
    require(position < s.flushed, "final-is-on-disk",
        because="the final is on disk",
        otherwise="a crash takes the final back, and what consumers have acted on is rolled back")
    require(s.visible == 0, "final-has-no-entry-yet",
        because="the final has no entry yet", otherwise="consumers receive the message twice")
    return replace(s, visible=s.visible + 1, seen=1)


def crash(s: State) -> State:
    """The broker starts again with the flushed records, and builds the user's queue again.

    The newest version on disk is the newest; a decision is what its final or its op tells of.

    Source: docs/rocketmq.md#recovery, docs/rocketmq-transactions.md#n14.
    """
    assume(0 < s.lives, because="a broker that crashes was started")
    begun = _logged(replace(s, lives=s.lives + 1, visible=0), log.crash(_log(s), s.flushed))
    newest = s.versions[Counter(s.stored - 1)]
    commits = 1 if s.on_disk == Phase.COMMITTED else 0
    left = replace(
        begun, phase=s.on_disk, newest=newest, checks=Counter(s.times[newest]), finals=commits,
        versions=s.versions.forget_from(s.stored),
        positions=s.positions.forget_from(Number(newest + 1)), times=s.times.forget_from(Number(newest + 1)),
        commits=s.commits.set(s.newest, commits),
        rollbacks=s.rollbacks.set(s.newest, 1 if s.on_disk == Phase.ROLLED_BACK else 0),
        marks=s.marks.set(s.newest, 1 if _is_on_disk(s, s.op) else 0),
        final=s.final if s.final < s.flushed else NOWHERE, op=s.op if s.op < s.flushed else NOWHERE,
        parked=s.parked if s.parked < s.flushed else NOWHERE,
    )
    return left if 0 < s.stored else replace(left, group=0, asked=0, meant=0, went=0)


def _is_on_disk(s: State, position: Position) -> bool:
    """True if the record exists and is flushed."""
    return position != NOWHERE and position < s.flushed


def consumers_see_committed_messages_only(s: State) -> bool:
    """Otherwise a consumer acts on money that was never paid."""
    return implies(s.visible > 0, s.seen > 0) and implies(s.seen > 0, s.phase == Phase.COMMITTED)


def consumers_receive_the_message_once(s: State) -> bool:
    """Otherwise they act on it twice."""
    return 0 <= s.visible and s.visible <= 1


def what_consumers_saw_survives_every_crash(s: State) -> bool:
    """Otherwise a consumer has acted on a message that the broker then rolls back, or sends again."""
    return implies(s.seen > 0, 0 <= s.final and s.final < s.flushed)


def the_log_is_flushed_from_its_beginning(s: State) -> bool:
    """Otherwise records count as safe that were never written."""
    return 0 <= s.acknowledged and log.positions_are_ordered(_log(s))


def the_log_fits_its_file(s: State) -> bool:
    """Otherwise a record spans files, and no reader finds it whole."""
    return log.the_log_ends_in_its_last_file(_log(s)) and log.a_file_has_room(_log(s))


def a_broker_that_never_started_has_no_log(s: State) -> bool:
    """Otherwise a transaction begins before there is anybody to ask about it."""
    begun = 0 < s.lives and 0 < s.file_size
    return begun or (s.lives == 0 and s.file_size == 0 and s.end == 0 and s.phase == Phase.ABSENT)


def a_transaction_has_its_half_in_the_log(s: State) -> bool:
    """Otherwise a message is committed that was never prepared."""
    known = Phase.PREPARED <= s.phase and s.phase <= Phase.PARKED and 0 <= s.checks
    there = 0 <= s.newest and s.newest == s.versions[s.checks]
    return (known and there) or (s.phase == Phase.ABSENT and s.newest == NO_NUMBER and s.checks == 0)


def every_version_is_a_record_of_the_log(s: State, times: Counter) -> bool:
    """Otherwise a producer is asked about a record that is not there, or was put back out of turn."""
    number = s.versions[times]
    there = 0 <= number and s.times[number] == times and 0 <= s.positions[number] and s.positions[number] < s.end
    return there if s.phase > Phase.ABSENT and 0 <= times and times <= s.checks else number == NO_NUMBER


def a_number_belongs_to_one_version(s: State, number: Number) -> bool:
    """Otherwise a decision is taken for one about another record."""
    times = Counter(s.times[number])
    known = 0 <= number and 0 <= times and times <= s.checks and s.versions[times] == number
    return known if s.positions[number] != NOWHERE else s.times[number] == 0


def versions_follow_one_another(s: State, times: Counter, later: Counter) -> bool:
    """Otherwise a crash leaves a version whose parent it took."""
    one = s.versions[times]
    other = s.versions[later]
    both = 0 <= times and times < later and later <= s.checks
    return implies(both, one < other and s.positions[one] < s.positions[other])


def what_is_stored_is_on_disk(s: State) -> bool:
    """Otherwise a crash falls back to a version that it took, or past one that it left."""
    counted = 0 <= s.stored and s.stored <= s.checks + 1 and implies(s.phase == Phase.ABSENT, s.stored == 0)
    last = s.positions[s.versions[Counter(s.stored - 1)]]
    coming = s.positions[s.versions[s.stored]]
    return counted and last < s.flushed and (coming == NOWHERE or s.flushed <= coming)


def a_decision_is_on_disk_with_its_record(s: State) -> bool:
    """Otherwise a crash takes back what the disk tells of, or leaves what it does not."""
    other = s.final if s.phase == Phase.COMMITTED else s.op
    record = s.parked if s.phase == Phase.PARKED else other
    decided = s.phase if _is_on_disk(s, record) else Phase.PREPARED
    return s.on_disk == (decided if 0 < s.stored else Phase.ABSENT)


def a_commit_is_its_final(s: State) -> bool:
    """Otherwise a crash takes a commit back that has its final, or leaves one that has none."""
    there = s.positions[s.newest] < s.final and s.final < s.end
    return there if s.phase == Phase.COMMITTED else s.final == NOWHERE


def a_transaction_has_one_outcome(s: State, number: Number) -> bool:
    """Otherwise one message is both committed and rolled back, or committed twice."""
    commits = 1 if s.phase == Phase.COMMITTED else 0
    rollbacks = 1 if s.phase == Phase.ROLLED_BACK else 0
    mine = number == s.newest and number != NO_NUMBER
    one = s.commits[number] == (commits if mine else 0) and s.rollbacks[number] == (rollbacks if mine else 0)
    return s.finals == commits and one


def an_op_follows_its_decision(s: State) -> bool:
    """Otherwise an open transaction is forgotten, or a crash leaves the op without its final."""
    decided = s.phase == Phase.ROLLED_BACK or (s.phase == Phase.COMMITTED and s.final < s.op)
    there = s.positions[s.newest] < s.op and s.op < s.end
    return s.op == NOWHERE or (decided and there)


def a_mark_is_its_op(s: State, number: Number) -> bool:
    """Otherwise a half has two ops, or none and is never asked about."""
    return s.marks[number] == (1 if number == s.newest and s.op != NOWHERE else 0)


def a_half_is_parked_after_its_last_check(s: State) -> bool:
    """Otherwise a message is given up while its producer may still answer."""
    there = s.positions[s.newest] < s.parked and s.parked < s.end
    return (there and s.max_checks <= s.checks) if s.phase == Phase.PARKED else s.parked == NOWHERE


def checks_are_limited(s: State) -> bool:
    """Otherwise a producer is asked for ever."""
    return s.checks == 0 or s.max_checks == 0 or s.checks <= s.max_checks


def a_local_transaction_has_its_half(s: State) -> bool:
    """Otherwise money is paid, and no consumer ever hears of it."""
    once = 0 <= s.runs and s.runs <= 1
    return once and implies(s.runs > 0, 0 < s.acknowledged) and implies(0 < s.acknowledged, 0 < s.stored)


def nothing_is_decided_unasked(s: State, number: Number) -> bool:
    """Otherwise the broker decides in its producer's place."""
    counted = 0 <= s.commits_asked[number] and 0 <= s.rollbacks_asked[number]
    asked = s.commits[number] <= s.commits_asked[number] and s.rollbacks[number] <= s.rollbacks_asked[number]
    return counted and asked


def a_producer_says_what_it_did(s: State, number: Number) -> bool:
    """Otherwise what consumers hear of is not what became of it."""
    committed = implies(0 < s.commits_asked[number], s.runs == 1)
    rolled_back = implies(0 < s.rollbacks_asked[number], s.gave_up == 1)
    return committed and rolled_back and implies(s.gave_up == 1, s.runs == 0) and 0 <= s.gave_up and s.gave_up <= 1


def what_is_committed_was_done(s: State) -> bool:
    """Otherwise consumers hear of what never was."""
    return implies(s.phase == Phase.COMMITTED, s.runs == 1)


def what_was_done_is_not_rolled_back(s: State) -> bool:
    """Otherwise money is paid, and no consumer ever hears of it."""
    return implies(s.phase == Phase.ROLLED_BACK, s.runs == 0 and s.gave_up == 1)


def the_message_goes_where_it_was_sent(s: State) -> bool:
    """Otherwise those who wait for it do not receive it, and others do."""
    return s.went == s.meant


def who_is_asked_knows(s: State) -> bool:
    """Otherwise a stranger decides, or a producer is asked about a half that is gone."""
    return s.asked == s.group and implies(s.phase == Phase.ABSENT, s.group == 0)


def what_consumers_saw_is_never_taken_back(before: State, after: State) -> bool:
    """Otherwise a consumer has acted on a message that never was."""
    stays = after.seen > 0 and after.phase == Phase.COMMITTED and after.final == before.final
    return implies(before.seen > 0, stays)


def a_decision_is_as_durable_as_its_op(before: State, after: State) -> bool:
    """Otherwise a producer that was heard is asked again, and may say something else."""
    safe = before.op != NOWHERE and before.op < before.flushed
    return implies(safe, after.op == before.op and after.phase == before.phase)


def a_flushed_half_is_not_forgotten(before: State, after: State) -> bool:
    """Otherwise a transaction is lost, its producer is never asked, or its message goes elsewhere."""
    known = after.group == before.group and after.meant == before.meant
    return before.stored <= after.stored and implies(0 < before.stored, known)


def a_crash_invents_nothing(before: State, after: State) -> bool:
    """Otherwise consumers receive messages never sent, or records are lost that were reported safe."""
    crashed = 0 < before.lives and before.lives < after.lives
    return implies(crashed, after.end == before.flushed and after.flushed == before.flushed)


def records_are_lost_in_a_crash_only(before: State, after: State) -> bool:
    """Otherwise a broker that runs forgets what it knows."""
    return implies(after.end < before.end or after.checks < before.checks, after.lives == before.lives + 1)


def a_queue_is_built_anew_after_every_start(before: State, after: State) -> bool:
    """Otherwise consumers are shown what is not in the log."""
    return implies(before.lives < after.lives, after.visible == 0)


def nothing_flushed_is_lost(before: State, after: State) -> bool:
    """Otherwise a disk forgot what it had stored."""
    return before.flushed <= after.flushed


def nobody_is_asked_about_what_is_decided(before: State, after: State) -> bool:
    """Otherwise a producer is asked again, and may answer otherwise."""
    return implies(before.checks < after.checks, before.phase == Phase.PREPARED)


def what_was_done_stays_done(before: State, after: State) -> bool:
    """Otherwise money is paid twice, or not at all."""
    return before.runs <= after.runs and before.gave_up <= after.gave_up and before.acknowledged <= after.acknowledged


def the_transaction_is_decided_or_set_aside(s: State) -> bool:
    """Otherwise it is left undecided: its producer is never asked again, and no consumer ever sees its message."""
    return s.phase != Phase.PREPARED


def an_op_names_what_was_decided(s: State) -> bool:
    """Otherwise a half that was decided is asked about again after the next start."""
    return implies(s.phase == Phase.COMMITTED or s.phase == Phase.ROLLED_BACK, s.op != NOWHERE)


def consumers_see_what_was_committed(s: State) -> bool:
    """Otherwise the message was promised, and no consumer ever receives it."""
    return implies(s.phase == Phase.COMMITTED, 0 < s.visible)


def every_record_is_on_disk(s: State) -> bool:
    """Otherwise what was decided can still be lost."""
    return s.flushed == s.end


INITIAL = State()
ACTIONS = (
    open, append, prepare, answer, run, ask_to_commit, ask_to_roll_back, check, commit, roll_back, mark, park,
    flush, dispatch, crash,
)
INVARIANTS = (
    consumers_see_committed_messages_only, consumers_receive_the_message_once,
    what_consumers_saw_survives_every_crash, the_log_is_flushed_from_its_beginning, the_log_fits_its_file,
    a_broker_that_never_started_has_no_log, a_transaction_has_its_half_in_the_log,
    every_version_is_a_record_of_the_log, a_number_belongs_to_one_version, versions_follow_one_another,
    what_is_stored_is_on_disk, a_decision_is_on_disk_with_its_record, a_commit_is_its_final,
    a_transaction_has_one_outcome, an_op_follows_its_decision, a_mark_is_its_op,
    a_half_is_parked_after_its_last_check, checks_are_limited, a_local_transaction_has_its_half,
    nothing_is_decided_unasked, a_producer_says_what_it_did, what_is_committed_was_done,
    what_was_done_is_not_rolled_back, the_message_goes_where_it_was_sent, who_is_asked_knows,
)
STEP_PROPERTIES = (
    nobody_is_asked_about_what_is_decided, what_consumers_saw_is_never_taken_back,
    a_decision_is_as_durable_as_its_op, a_flushed_half_is_not_forgotten, a_crash_invents_nothing,
    records_are_lost_in_a_crash_only, a_queue_is_built_anew_after_every_start, nothing_flushed_is_lost,
    what_was_done_stays_done,
)
AT_REST = (
    the_transaction_is_decided_or_set_aside, an_op_names_what_was_decided, consumers_see_what_was_committed,
    every_record_is_on_disk,
)
