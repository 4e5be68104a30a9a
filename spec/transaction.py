"""One transaction: a half that no consumer sees, put back until its producer decides, and decided once.

A half that is put back gets a new number and a new position: it is another *version* of the same half, and a decision
names the version that it was asked about. Maps are by half number.
"""

from dataclasses import dataclass
from enum import IntEnum

from gapless.spec.language import Map, Number, Position, implies, replace, require

NOWHERE = Position(-1)  # the position of a version that is not in the log
NO_NUMBER = Number(-1)  # the number of a version that is not there
CHECKS = 15  # how often a half is put back at most, by default: docs/proposals.md#back-check


class Phase(IntEnum):
    """The phase of the transaction."""

    ABSENT = 0
    PREPARED = 1
    COMMITTED = 2
    ROLLED_BACK = 3
    PARKED = 4


@dataclass(frozen=True, slots=True)
class State:
    """The half with all its versions, the decisions about each, and the answers of its producer."""

    start: Position = Position(0)  # where the log begins: versions below have expired
    max_checks: int = 0  # how often a half is put back at most; 0 where that is not known
    witnessed: int = 0  # 1 where all that producers asked for is known
    restarted: int = 0  # 1 where the broker may have been set otherwise in an earlier life
    phase: int = Phase.ABSENT
    newest: Number = NO_NUMBER  # the newest version
    checks: int = 0  # the counter of the newest version: how often the half was put back
    finals: int = 0  # messages of this transaction that consumers can see
    positions: Map[Number, Position] = Map(NOWHERE)  # of version n: where its record lies
    times: Map[Number, int] = Map(0)  # of version n: its counter
    commits: Map[Number, int] = Map(0)  # of version n: the finals that name it
    rollbacks: Map[Number, int] = Map(0)  # of version n: how often it was rolled back
    marks: Map[Number, int] = Map(0)  # of version n: the ops that name it
    commits_asked: Map[Number, int] = Map(0)  # of version n: how often its producer asked to commit it
    rollbacks_asked: Map[Number, int] = Map(0)  # of version n: how often its producer asked to roll it back
    commits_reported: Map[Number, int] = Map(0)  # of version n: 1 if its commit was reported to its producer


def open(s: State, start: Position, max_checks: int, witnessed: int) -> State:  # noqa: A001 - the name in every trace.
    """A transaction is found in a log that begins at `start`, with its settings and clients.

    Source: docs/design.md#evidence.
    """
    require(s.phase == Phase.ABSENT, "transaction-is-new",
        because="the transaction is new", otherwise="two transactions are taken for one")
    return replace(s, start=start, max_checks=max_checks, witnessed=witnessed)


def restart(s: State) -> State:
    """The broker has been started again since, or set otherwise while it ran: `max_checks` is its limit of today.

    Source: docs/rocketmq.md#settings-at-run-time.
    """
    return replace(s, restarted=1)


def ask_to_commit(s: State, number: Number) -> State:
    """The producer asks to commit version `number`; whether it was heard is not known.

    Source: docs/rocketmq-transactions.md#end; docs/proposals.md#half-cache, #two-phases.
    """
    return replace(s, commits_asked=s.commits_asked.set(number, s.commits_asked[number] + 1))


def ask_to_roll_back(s: State, number: Number) -> State:
    """The producer asks to roll version `number` back; whether it was heard is not known.

    Source: docs/rocketmq-transactions.md#end.
    """
    return replace(s, rollbacks_asked=s.rollbacks_asked.set(number, s.rollbacks_asked[number] + 1))


def prepare(s: State, number: Number, position: Position, marked: bool) -> State:
    """The half is in the log, where no consumer looks; `marked` says that it carries the marker of a half.

    Source: docs/rocketmq-transactions.md#prepare, #tx1; TransactionalMessageBridge.parseHalfMessageInner.
    """
    require(s.phase == Phase.ABSENT, "half-is-the-first-of-its-transaction",
        because="the half is the first of its transaction",
        otherwise="one message is prepared twice, and can be committed twice")
    require(0 <= position, "half-has-its-place-in-the-log",
        because="the half has its place in the log", otherwise="no decision can ever name it")
    require(marked, "half-carries-its-marker",
        because="the half carries its marker",
        otherwise="a message that was never prepared waits for a decision, and its producer is asked for one")
    return replace(
        s,
        phase=Phase.PREPARED,
        newest=number,
        checks=0,
        positions=s.positions.set(number, position),
        times=s.times.set(number, 0),
    )


def outlive(s: State, number: Number, position: Position, times: int) -> State:
    """The oldest version that is left was put back: the ones before it have expired with the log's first files.

    Source: docs/rocketmq-transactions.md#expired-parents.
    """
    require(s.phase == Phase.ABSENT, "transaction-is-new",
        because="the transaction is new", otherwise="two transactions are taken for one")
    require(0 < s.start, "version-without-the-one-before-it-stands-in-a-log-whose-beginning-has-expired",
        because="a version without the one before it stands in a log whose beginning has expired",
        otherwise="a half was put back that was never prepared: its producer is asked about a stranger's message")
    require(0 <= times, "counter-counts-from-0",
        because="the counter counts from 0", otherwise="the producer is asked more often than it should")
    return put_back(replace(s, phase=Phase.PREPARED), number, position, times)


def put_back(s: State, number: Number, position: Position, times: int) -> State:
    """Version `number` takes the place of those before it."""
    require(0 <= position, "version-has-its-place-in-the-log",
        because="the version has its place in the log", otherwise="no decision can ever name it")
    require(s.positions[number] < 0, "version-has-a-number-of-its-own",
        because="the version has a number of its own",
        otherwise="a decision about the version that had the number before is taken for one about this")
    return replace(
        s,
        newest=number,
        checks=times,
        positions=s.positions.set(number, position),
        times=s.times.set(number, times),
    )


def is_decided(s: State) -> bool:
    """True if the transaction was committed or rolled back."""
    return s.phase == Phase.COMMITTED or s.phase == Phase.ROLLED_BACK


def check(s: State, number: Number, parent: Number, position: Position, times: int, asked: bool, same: bool) -> State:
    """The half is put back with its counter raised, and its producer is asked.

    Version `parent` becomes version `number`; `asked` says that the producer is asked, `same` that everything but the
    counter is as it was.

    Source: docs/rocketmq-transactions.md#check, #put-back, #tx7; TransactionalMessageServiceImpl.check,
    renewHalfMessageInner.
    """
    require(0 <= s.positions[parent], "half-that-is-put-back-is-in-the-log",
        because="the half that is put back is in the log",
        otherwise="a half was put back that was never prepared: its producer is asked about a stranger's message")
    require(s.positions[parent] < position, "version-lies-behind-the-one-that-is-put-back",
        because="the version lies behind the one that is put back", otherwise="it was written before it was due")
    require(times == s.times[parent] + 1, "counter-goes-up-by-one",
        because="the counter goes up by one", otherwise="the producer is asked for ever, or given up too early")
    require(same, "half-is-put-back-as-it-was",
        because="the half is put back as it was", otherwise="what is committed later is not what the producer sent")
    require(s.max_checks == 0 or times <= s.max_checks, "check-is-left",
        because="a check is left", otherwise="the producer is asked for ever")
    require(asked, "producer-is-asked",
        because="the producer is asked", otherwise="a check is used up, and no producer was asked")
    require(s.phase == Phase.PREPARED, "transaction-is-undecided",
        because="the transaction is undecided",
        otherwise="the producer is asked again, and may answer otherwise")
    require(parent == s.newest, "newest-version-is-put-back",
        because="the newest version is put back", otherwise="there are two halves now, each of which can be committed")
    return put_back(s, number, position, times)


def commit(s: State, number: Number, half: Position, position: Position, same: bool, twice: bool) -> State:
    """The final message is in the user's queue: from now on consumers see it.

    The final at `position` names the half at `half`, which is version `number`; `same` says that it carries what that
    half carries, `twice` that what lies at `half` is a final itself, or a copy that was set aside.

    Source: docs/rocketmq-transactions.md#end, #tx3, #tx6, #tx14; EndTransactionProcessor.endMessageTransaction.
    """
    require(0 <= half and half == s.positions[number], "final-names-a-version-of-its-half",
        because="the final names a version of its half",
        otherwise="consumers receive a message that was never prepared")
    require(same, "final-carries-what-its-half-carries",
        because="the final carries what its half carries",
        otherwise="consumers receive something else than the producer sent, or in another queue")
    require(s.witnessed == 0 or s.commits[number] < s.commits_asked[number], "producer-asked-to-commit-it",
        because="the producer asked to commit it",
        otherwise="consumers act on what was never decided, or was decided against")
    require(s.phase == Phase.PREPARED, "transaction-is-undecided",
        because="the transaction is undecided",
        otherwise="consumers receive the message twice, or one that was rolled back or set aside")
    require(number == s.newest, "decision-names-the-newest-version",
        because="the decision names the newest version",
        otherwise="the newest version stays open, and may be committed too")
    return replace(s, phase=Phase.COMMITTED, finals=s.finals + 1, commits=s.commits.set(number, s.commits[number] + 1))


def roll_back(s: State, number: Number) -> State:
    """The message will never be seen. It leaves no trace in a log but the op that follows.

    Source: docs/rocketmq-transactions.md#end, #tx4; EndTransactionProcessor.
    """
    require(0 <= s.positions[number], "half-that-is-rolled-back-is-in-the-log",
        because="the half that is rolled back is in the log",
        otherwise="the producer believes that a message is gone which it may still be asked about")
    require(s.witnessed == 0 or s.rollbacks[number] < s.rollbacks_asked[number], "producer-asked-to-roll-it-back",
        because="the producer asked to roll it back",
        otherwise="a message is lost that its producer committed, or has yet to decide about")
    require(s.phase == Phase.PREPARED, "transaction-is-undecided",
        because="the transaction is undecided", otherwise="what consumers have seen is taken back")
    require(number == s.newest, "decision-names-the-newest-version",
        because="the decision names the newest version",
        otherwise="the newest version stays open, and may be committed too")
    return replace(s, phase=Phase.ROLLED_BACK, rollbacks=s.rollbacks.set(number, s.rollbacks[number] + 1))


def mark(s: State, number: Number) -> State:
    """An op names the half: the check service need not look at it again.

    Source: docs/rocketmq-transactions.md#ops, #tx2, #tx4, #tx5; TransactionalMessageServiceImpl.deletePrepareMessage.
    """
    require(s.marks[number] == 0, "no-op-names-the-half-yet",
        because="no op names the half yet", otherwise="the op cursor waits for a half that was done with before")
    return marked(s, number)


def marked(s: State, number: Number) -> State:
    """One more op names the half."""
    require(0 <= s.positions[number], "half-that-the-op-names-is-in-the-log",
        because="the half that the op names is in the log",
        otherwise="the check service skips a half that it has never seen")
    require(s.marks[number] < s.commits[number] + s.rollbacks[number], "decision-came-before-the-op",
        because="a decision came before the op",
        otherwise="the check service forgets a transaction that was never decided")
    return replace(s, marks=s.marks.set(number, s.marks[number] + 1))


def park(s: State, number: Number, position: Position, times: int, same: bool, aged: bool) -> State:
    """All checks are spent: the message is set aside, and stays invisible.

    A copy of version `number` lies at `position`, with counter `times`; `same` says that it carries what else the half
    carries, `aged` that the half is older than the broker keeps messages.

    Source: docs/rocketmq-transactions.md#park, #tx8; DefaultTransactionalMessageCheckListener.resolveDiscardMsg.
    """
    require(0 <= s.positions[number], "what-is-set-aside-is-a-half-of-the-log",
        because="what is set aside is a half of the log",
        otherwise="an operator is shown a message that was never sent")
    require(same, "half-is-set-aside-as-it-was",
        because="the half is set aside as it was",
        otherwise="an operator who resumes it commits something else than the producer sent")
    require(s.max_checks == 0 or s.max_checks <= times, "all-checks-are-spent",
        because="all checks are spent", otherwise="a message is given up while its producer may still answer")
    require(not aged, "half-is-not-older-than-messages-are-kept",
        because="the half is not older than messages are kept", otherwise="it is given up for its age")
    require(times == s.times[number], "copy-has-the-counter-of-its-half",
        because="the copy has the counter of its half",
        otherwise="a message is given up before its last check")
    require(s.phase == Phase.PREPARED, "transaction-is-undecided",
        because="the transaction is undecided", otherwise="an operator is shown a problem that is none")
    require(number == s.newest, "newest-version-is-set-aside",
        because="the newest version is set aside", otherwise="the newest version is asked about all the same")
    return replace(s, phase=Phase.PARKED)


def crash(s: State) -> State:
    """The broker loses what it had not written: a rollback that no op tells of is undone.

    Source: docs/design.md#specs; docs/rocketmq-transactions.md#op-stop, #op-crash, #n14.
    """
    lost = s.phase == Phase.ROLLED_BACK and s.marks[s.newest] == 0 and 0 < s.rollbacks[s.newest]
    if not lost:
        return s
    return replace(s, phase=Phase.PREPARED, rollbacks=s.rollbacks.set(s.newest, s.rollbacks[s.newest] - 1))


def acknowledge(s: State, number: Number) -> State:
    """The broker reports to the producer that version `number` is committed, again if it is asked again.

    Source: docs/rocketmq-transactions.md#tx6, #n14.
    """
    require(0 < s.commits[number], "commit-that-was-acknowledged-has-its-final",
        because="the commit that was acknowledged has its final",
        otherwise="the producer believes that consumers see what they never will")
    return replace(s, commits_reported=s.commits_reported.set(number, 1))


def ask_back(s: State, number: Number, half: Position) -> State:
    """The producer received a back-check that names version `number`, at `half`.

    Source: docs/rocketmq-transactions.md#back-check, #tx12.
    """
    require(0 <= half and half == s.positions[number], "check-names-a-version-of-its-half",
        because="the check names a version of its half",
        otherwise="the producer's answer finds no half, and the transaction stays open")
    require(0 < s.times[number], "half-was-put-back-before-its-producer-is-asked",
        because="the half was put back before its producer is asked",
        otherwise="a broker that fails now asks again without counting")
    return s


def consumers_see_committed_messages_only(s: State) -> bool:
    """Otherwise a consumer acts on money that was never paid."""
    return implies(s.finals > 0, s.phase == Phase.COMMITTED)


def consumers_see_what_is_committed(s: State) -> bool:
    """Otherwise a producer committed, and nothing came of it."""
    return 0 <= s.finals and implies(s.phase == Phase.COMMITTED, 0 < s.finals)


def a_final_is_seen_once(s: State) -> bool:
    """Otherwise money is paid twice."""
    return s.finals <= 1


def an_op_follows_a_decision(s: State, number: Number) -> bool:
    """Otherwise the check service forgets an undecided transaction."""
    return s.marks[number] <= s.commits[number] + s.rollbacks[number]


def there_is_one_outcome(s: State, number: Number, other: Number) -> bool:
    """Otherwise some consumers act on a message that others must forget."""
    return implies(s.commits[number] > 0, s.rollbacks[other] == 0)


def a_decision_names_a_half(s: State, number: Number) -> bool:
    """Otherwise a message appears that was never prepared."""
    return implies(s.commits[number] + s.rollbacks[number] > 0, 0 <= s.positions[number])


def all_is_counted_from_zero(s: State, number: Number) -> bool:
    """Otherwise a decision is undone that was never made."""
    decided = 0 <= s.commits[number] and 0 <= s.rollbacks[number]
    asked = 0 <= s.commits_asked[number] and 0 <= s.rollbacks_asked[number]
    return decided and asked and 0 <= s.times[number] and 0 <= s.marks[number]


def a_phase_is_one_of_five(s: State) -> bool:
    """Otherwise the phase of the transaction is unknown."""
    return Phase.ABSENT <= s.phase and s.phase <= Phase.PARKED


def nothing_is_decided_of_what_is_absent(s: State, number: Number) -> bool:
    """Otherwise a transaction is decided before it is there."""
    return implies(s.phase == Phase.ABSENT, s.commits[number] + s.rollbacks[number] == 0)


def nothing_is_in_the_log_of_what_is_absent(s: State, number: Number) -> bool:
    """Otherwise a version is set aside, or decided, that is not known to exist."""
    return implies(s.phase == Phase.ABSENT, s.positions[number] < 0)


def the_newest_version_is_decided_once(s: State, number: Number) -> bool:
    """Otherwise a version stays open, and may be decided too, and otherwise."""
    return s.commits[number] + s.rollbacks[number] == (1 if is_decided(s) and number == s.newest else 0)


def the_newest_version_can_be_found(s: State) -> bool:
    """Otherwise it can neither be decided nor put back."""
    return implies(s.phase > Phase.ABSENT, 0 <= s.positions[s.newest])


def the_counter_is_that_of_the_newest_version(s: State) -> bool:
    """Otherwise the producer is asked for ever, or given up too early."""
    return implies(s.phase > Phase.ABSENT and s.phase < Phase.PARKED, s.checks == s.times[s.newest])


def a_half_is_parked_after_its_last_check(s: State) -> bool:
    """Otherwise a message is given up while its producer may still answer."""
    return implies(s.phase == Phase.PARKED, s.max_checks == 0 or s.max_checks <= s.checks)


def an_op_names_a_half_once(s: State, number: Number) -> bool:
    """Otherwise the op cursor waits for a half that was done with before."""
    return s.marks[number] <= 1


def nothing_is_decided_unasked(s: State, number: Number) -> bool:
    """Otherwise the broker decides in its producer's place."""
    return implies(
        s.witnessed > 0,
        s.commits[number] <= s.commits_asked[number] and s.rollbacks[number] <= s.rollbacks_asked[number],
    )


def a_producer_is_told_the_truth(s: State, number: Number) -> bool:
    """Otherwise a producer believes that consumers see what they never will."""
    return implies(0 < s.commits_reported[number], 0 < s.commits[number])


def what_was_seen_stays_seen(before: State, after: State) -> bool:
    """Otherwise a message that a consumer has acted on is gone."""
    return before.finals <= after.finals


def a_producer_is_asked_step_by_step(before: State, after: State) -> bool:
    """Otherwise the producer is asked for ever, or given up too early."""
    asked = before.phase == Phase.PREPARED and after.phase == Phase.PREPARED and before.newest != after.newest
    return implies(
        asked,
        after.checks == before.checks + 1 and (after.max_checks == 0 or after.checks <= after.max_checks),
    )


def an_outcome_is_final(before: State, after: State) -> bool:
    """Otherwise consumers and producer act on what is then taken back. A crash may undo what no op tells of."""
    return implies(
        before.phase == Phase.COMMITTED or before.phase == Phase.PARKED or 0 < before.marks[before.newest],
        after.phase == before.phase,
    )


def the_transaction_is_decided_or_set_aside(s: State) -> bool:
    """Otherwise it is left undecided: its producer is never asked again, and no consumer ever sees its message."""
    return s.phase != Phase.PREPARED


def an_op_names_what_was_decided(s: State) -> bool:
    """Otherwise a half that was decided is asked about again after the next start."""
    return implies(is_decided(s), 0 < s.marks[s.newest])


# What can be done: of what becomes of the newest version. A helper's name says which steps it takes.


INITIAL = State()
ACTIONS = (
    open, restart, ask_to_commit, ask_to_roll_back, prepare, outlive, check, commit, roll_back, mark, park, crash,
    acknowledge, ask_back,
)
INVARIANTS = (
    consumers_see_committed_messages_only, consumers_see_what_is_committed, a_final_is_seen_once,
    an_op_follows_a_decision, there_is_one_outcome, a_decision_names_a_half, all_is_counted_from_zero,
    a_phase_is_one_of_five, nothing_is_decided_of_what_is_absent, nothing_is_in_the_log_of_what_is_absent,
    the_newest_version_is_decided_once, the_newest_version_can_be_found, the_counter_is_that_of_the_newest_version,
    a_half_is_parked_after_its_last_check, an_op_names_a_half_once, nothing_is_decided_unasked,
    a_producer_is_told_the_truth,
)
STEP_PROPERTIES = (what_was_seen_stays_seen, a_producer_is_asked_step_by_step, an_outcome_is_final)
AT_REST = (the_transaction_is_decided_or_set_aside, an_op_names_what_was_decided)
