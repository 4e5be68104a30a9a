"""A broker, end to end: one transaction and its producer, the log, and the queue in which consumers find the final.

What the other specs say of each is said here of all together, by calling them. Every record takes one place of the log,
so a position is a count of records; a half that is put back keeps its number and its place, and only its counter goes
up. A crash takes what lies beyond the end that survived: so a commit is as durable as its final, and a rollback as its
op. Source: docs/proposals.md#transactions, docs/rocketmq-transactions.md#end, #n14, docs/rocketmq.md#recovery.
"""

from dataclasses import dataclass

from gapless.spec import log, transaction
from gapless.spec.language import Map, Number, Position, implies, replace, require
from gapless.spec.transaction import NOBODY, NOWHERE, Phase


@dataclass(frozen=True, slots=True)
class State:
    """The log's end, the transaction with its records, and what consumers see of it."""

    lives: int = 0  # how often the broker started; 0 until it is found
    flushed: Position = Position(0)  # exclusive end of what survives a crash
    end: Position = Position(0)  # exclusive end of the records
    max_checks: int = 0  # how often the half is put back at most; 0 where that is not known
    phase: int = Phase.ABSENT
    newest: Number = NOBODY  # the half
    checks: int = 0  # how often it was put back
    finals: int = 0  # finals in the log
    positions: Map[Number, Position] = Map(NOWHERE)  # of half n: where its record lies
    times: Map[Number, int] = Map(0)  # of half n: its counter
    commits: Map[Number, int] = Map(0)  # of half n: the finals that name it
    rollbacks: Map[Number, int] = Map(0)  # of half n: how often it was rolled back
    marks: Map[Number, int] = Map(0)  # of half n: the ops that name it
    final: Position = NOWHERE  # where the final lies
    op: Position = NOWHERE  # where the op lies
    parked: Position = NOWHERE  # where the copy lies that was set aside
    visible: int = 0  # entries of the final in the user's queue
    seen: int = 0  # 1 once consumers could see the message, whatever happens then
    group: int = 0  # the group of the producer that sent the half
    asked: int = 0  # the group of the producer that was asked last
    meant: int = 0  # the queue that the message was sent to: the half keeps it, and lies elsewhere
    went: int = 0  # the queue that the final lies in
    told: int = 0  # 1 once the producer was told that its half is safe
    runs: int = 0  # how often the producer ran its local transaction


def open(s: State, max_checks: int) -> State:  # noqa: A001 - the step's name in every trace.
    """A broker with an empty log is found, which puts a half back so often at most, if that is known."""
    require(s.lives == 0 and s.end == 0, "broker-is-new",
        because="the broker is new", otherwise="two brokers are taken for one")
    return replace(s, lives=1, max_checks=max_checks)


def prepare(s: State, number: Number, position: Position, group: int, queue: int) -> State:
    """The half is in the log, where no consumer looks; it keeps the queue that it was sent to.

    Source: docs/proposals.md#invisible-half (the original topic and queue are kept).
    """
    require(0 <= number, "numbers-begin-at-0", because="numbers begin at 0", otherwise="a half can never be asked for")
    after = transaction.prepare(_transaction(s), number, position, True)  # noqa: FBT003
    return replace(_with(_written(s, position), after), group=group, asked=group, meant=queue, went=queue)


def answer(s: State) -> State:
    """The producer is told that its half is safe.

    Source: docs/proposals.md#phase-answer.
    """
    require(s.phase > Phase.ABSENT and s.positions[s.newest] < s.flushed, "half-is-on-disk",
        because="the half is on disk", otherwise="the producer goes on, and the message about it is lost")
    return replace(s, told=1)


def run(s: State) -> State:
    """The producer runs its local transaction: it pays, say.

    Source: docs/proposals.md#phase-local (it is not run when the half failed).
    """
    require(s.told == 1, "half-is-safe", because="the half is safe", otherwise="money is paid, and nobody is ever told")
    require(s.runs == 0, "local-transaction-was-not-run-yet",
        because="the local transaction was not run yet", otherwise="money is paid twice")
    return replace(s, runs=s.runs + 1)


def _written(s: State, position: Position) -> State:
    """The log with one more record, at `position`."""
    require(position == s.end, "record-begins-where-the-last-one-ends",
        because="the record begins where the last one ends", otherwise="two records share a place, or nobody owns one")
    return replace(s, end=Position(position + 1))


def _transaction(s: State) -> transaction.State:
    """The transaction as its own spec sees it."""
    return replace(
        transaction.INITIAL,
        max_checks=s.max_checks,
        phase=s.phase,
        newest=s.newest,
        checks=s.checks,
        finals=s.finals,
        positions=s.positions,
        times=s.times,
        commits=s.commits,
        rollbacks=s.rollbacks,
        marks=s.marks,
    )


def _with(s: State, after: transaction.State) -> State:
    """The broker in which the transaction has become `after`."""
    return replace(
        s,
        phase=after.phase,
        newest=after.newest,
        checks=after.checks,
        finals=after.finals,
        positions=after.positions,
        times=after.times,
        commits=after.commits,
        rollbacks=after.rollbacks,
        marks=after.marks,
    )


def check(s: State, position: Position, times: int, group: int) -> State:
    """The half is put back with its counter raised, and a producer of the same group is asked.

    Source: docs/proposals.md#back-check.
    """
    here = s.positions[s.newest]
    after = transaction.check(_transaction(s), s.newest, s.newest, here, times, True, True)  # noqa: FBT003
    require(group == s.group, "who-is-asked-is-of-the-group-that-sent-the-half",
        because="who is asked is of the group that sent the half", otherwise="a stranger decides, who does not know")
    return replace(_with(_written(s, position), after), asked=group)


def commit(s: State, position: Position, queue: int) -> State:
    """The final is in the log; consumers see it once it is on disk and has its entry.

    Source: docs/proposals.md#commit (the real queue is put back).
    """
    half = s.positions[s.newest]
    after = transaction.commit(_transaction(s), s.newest, half, position, True, False)  # noqa: FBT003
    require(s.runs == 1, "local-transaction-was-run",
        because="the local transaction was run", otherwise="consumers hear of what never was")
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
    require(times == s.checks, "copy-has-the-counter-of-its-half",
        because="the copy has the counter of its half",
        otherwise="a message is given up while its producer may still answer")
    after = transaction.park(_transaction(s), s.newest, position, times, True, False)  # noqa: FBT003
    return replace(_with(_written(s, position), after), parked=position)


def flush(s: State, to: Position) -> State:
    """Everything before `to` is on disk."""
    return replace(s, flushed=log.flush(_log(s), to).flushed)


def _log(s: State) -> log.State:
    """The log as its own spec sees it: no file of it is full beyond what was flushed."""
    return replace(log.INITIAL, base=s.flushed, end=s.end, flushed=s.flushed)


def dispatch(s: State, position: Position) -> State:
    """The final gets its entry in the user's queue: from now on consumers see it. After a crash it gets it again.

    Source: docs/rocketmq.md#confirm-offset, #recovery.
    """
    require(0 <= position and position == s.final, "entry-points-at-the-final",
        because="the entry points at the final", otherwise="consumers receive a message that nobody committed")
    require(position < s.flushed, "final-is-on-disk",
        because="the final is on disk",
        otherwise="a crash takes the final back, and what consumers have acted on is rolled back")
    require(s.visible == 0, "final-has-no-entry-yet",
        because="the final has no entry yet", otherwise="consumers receive the message twice")
    return replace(s, visible=s.visible + 1, seen=1)


def crash(s: State, kept: Position) -> State:
    """The broker starts again with the records before `kept`; the user's queue is built anew.

    Source: docs/rocketmq.md#recovery, docs/rocketmq-transactions.md#n14.
    """
    after = log.crash(_log(s), kept)
    begun = replace(s, lives=s.lives + 1, end=after.end, flushed=after.flushed, visible=0)
    left = _without_copy(_without_final(_without_op(begun)))
    return _without_half(_with(left, transaction.crash(_transaction(left))))


def _without_op(s: State) -> State:
    lost = replace(s, op=NOWHERE, marks=s.marks.set(s.newest, 0))
    return s if s.op < s.end else lost


def _without_final(s: State) -> State:
    lost = replace(s, phase=Phase.PREPARED, finals=0, commits=s.commits.set(s.newest, 0), final=NOWHERE)
    return s if s.final < s.end else lost


def _without_copy(s: State) -> State:
    return s if s.parked < s.end else replace(s, phase=Phase.PREPARED, parked=NOWHERE)


def _without_half(s: State) -> State:
    lost = replace(
        s,
        phase=Phase.ABSENT,
        newest=NOBODY,
        checks=0,
        positions=s.positions.set(s.newest, NOWHERE),
        times=s.times.set(s.newest, 0),
        group=0,
        asked=0,
        meant=0,
        went=0,
    )
    return s if s.positions[s.newest] < s.end else lost


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
    return 0 <= s.flushed and s.flushed <= s.end


def a_transaction_has_its_half_in_the_log(s: State) -> bool:
    """Otherwise a message is committed that nobody prepared."""
    known = Phase.PREPARED <= s.phase and s.phase <= Phase.PARKED and 0 <= s.newest
    there = 0 <= s.positions[s.newest] and s.positions[s.newest] < s.end
    return (known and there) or (s.phase == Phase.ABSENT and s.newest == NOBODY)


def a_commit_is_its_final(s: State) -> bool:
    """Otherwise a crash takes a commit back that has its final, or leaves one that has none."""
    there = s.positions[s.newest] < s.final and s.final < s.end
    return there if s.phase == Phase.COMMITTED else s.final == NOWHERE


def a_transaction_has_one_outcome(s: State) -> bool:
    """Otherwise one message is both committed and rolled back, or committed twice."""
    commits = 1 if s.phase == Phase.COMMITTED else 0
    rollbacks = 1 if s.phase == Phase.ROLLED_BACK else 0
    return s.finals == commits and s.commits[s.newest] == commits and s.rollbacks[s.newest] == rollbacks


def an_op_follows_its_decision(s: State) -> bool:
    """Otherwise the check service forgets a transaction that is open, or a crash leaves the op without its final."""
    decided = s.phase == Phase.ROLLED_BACK or (s.phase == Phase.COMMITTED and s.final < s.op)
    there = s.positions[s.newest] < s.op and s.op < s.end
    return s.op == NOWHERE or (decided and there)


def a_mark_is_its_op(s: State) -> bool:
    """Otherwise a half has two ops, or none and is never asked about."""
    return s.marks[s.newest] == (0 if s.op == NOWHERE else 1)


def a_half_is_parked_after_its_last_check(s: State) -> bool:
    """Otherwise a message is given up while its producer may still answer."""
    there = s.positions[s.newest] < s.parked and s.parked < s.end
    return (there and s.max_checks <= s.checks) if s.phase == Phase.PARKED else s.parked == NOWHERE


def checks_are_limited(s: State) -> bool:
    """Otherwise a producer is asked for ever."""
    limited = implies(0 < s.max_checks, s.checks <= s.max_checks)
    return s.times[s.newest] == s.checks and 0 <= s.checks and limited


def nothing_is_known_of_other_halves(s: State, number: Number) -> bool:
    """Otherwise a half that comes later finds itself decided."""
    undecided = s.commits[number] == 0 and s.rollbacks[number] == 0 and s.marks[number] == 0
    unknown = s.positions[number] == NOWHERE and s.times[number] == 0
    return implies(number != s.newest or number == NOBODY, unknown and undecided)


def a_local_transaction_has_its_half(s: State) -> bool:
    """Otherwise money is paid, and nobody is ever told."""
    safe = s.phase > Phase.ABSENT and s.positions[s.newest] < s.flushed
    return 0 <= s.runs and s.runs <= 1 and implies(s.runs > 0, s.told == 1) and implies(s.told == 1, safe)


def what_is_committed_was_done(s: State) -> bool:
    """Otherwise consumers hear of what never was."""
    return implies(s.phase == Phase.COMMITTED, s.runs == 1)


def the_message_goes_where_it_was_sent(s: State) -> bool:
    """Otherwise those who wait for it do not receive it, and others do."""
    return s.went == s.meant


def who_is_asked_knows(s: State) -> bool:
    """Otherwise a stranger decides."""
    return s.asked == s.group


def what_consumers_saw_is_never_taken_back(before: State, after: State) -> bool:
    """Otherwise a consumer has acted on a message that never was."""
    stays = after.seen > 0 and after.phase == Phase.COMMITTED and after.final == before.final
    return implies(before.seen > 0, stays)


def a_decision_is_as_durable_as_its_op(before: State, after: State) -> bool:
    """Otherwise a producer that was heard is asked again, and may say something else."""
    safe = before.op != NOWHERE and before.op < before.flushed
    return implies(safe, after.op == before.op and after.phase == before.phase)


def a_flushed_half_is_not_forgotten(before: State, after: State) -> bool:
    """Otherwise a transaction is lost, and nobody asks its producer."""
    safe = before.phase > Phase.ABSENT and before.positions[before.newest] < before.flushed
    return implies(safe, after.newest == before.newest and after.phase > Phase.ABSENT)


def a_crash_invents_nothing(before: State, after: State) -> bool:
    """Otherwise consumers receive what nobody sent."""
    return implies(0 < before.lives and before.lives < after.lives, after.end <= before.end)


def nothing_flushed_is_lost(before: State, after: State) -> bool:
    """Otherwise a disk forgot what it had stored."""
    return before.flushed <= after.flushed


def nobody_is_asked_about_what_is_decided(before: State, after: State) -> bool:
    """Otherwise a producer is asked what it has said already, and may say something else."""
    return implies(before.checks < after.checks, before.phase == Phase.PREPARED)


def the_transaction_is_decided_or_set_aside(s: State) -> bool:
    """Otherwise it is left undecided: nobody asks its producer any more, and no consumer ever sees its message."""
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
ACTIONS = (open, prepare, answer, run, check, commit, roll_back, mark, park, flush, dispatch, crash)
INVARIANTS = (
    consumers_see_committed_messages_only,
    consumers_receive_the_message_once,
    what_consumers_saw_survives_every_crash,
    the_log_is_flushed_from_its_beginning,
    a_transaction_has_its_half_in_the_log,
    a_commit_is_its_final,
    a_transaction_has_one_outcome,
    an_op_follows_its_decision,
    a_mark_is_its_op,
    a_half_is_parked_after_its_last_check,
    checks_are_limited,
    nothing_is_known_of_other_halves,
    a_local_transaction_has_its_half,
    what_is_committed_was_done,
    the_message_goes_where_it_was_sent,
    who_is_asked_knows,
)
STEP_PROPERTIES = (
    nobody_is_asked_about_what_is_decided,
    what_consumers_saw_is_never_taken_back,
    a_decision_is_as_durable_as_its_op,
    a_flushed_half_is_not_forgotten,
    a_crash_invents_nothing,
    nothing_flushed_is_lost,
)
AT_REST = (
    the_transaction_is_decided_or_set_aside,
    an_op_names_what_was_decided,
    consumers_see_what_was_committed,
    every_record_is_on_disk,
)
