"""The check service of one half queue, with its op batcher and its cursors, followed for one half.

This spec composes `op_batch` (the batcher) and `checkpoint` (the cursors) by calling their steps: an op names the
entries of the batcher, and a half is passed only because an op in the log names it, a newer version took its place, or
it was set aside. A crash ends the process: the log keeps its records, and what waits in memory is lost.

The half is followed through all its versions; other halves come in, are decided and named next to it. Settings and
clocks of the batcher are left out. Source: docs/proposals.md#batched-ops, #back-check,
docs/rocketmq-transactions.md#batching, #check, #tx9, #op-crash.
"""

from dataclasses import dataclass

from gapless.spec import checkpoint, op_batch, transaction  # noqa: F401 - whose words are spoken here, too
from gapless.spec.checkpoint import How
from gapless.spec.language import Map, Number, implies, replace, require
from gapless.spec.transaction import NO_NUMBER, Phase

OTHER = -1  # the counter of what is no version of the half that is followed


@dataclass(frozen=True, slots=True)
class State:
    """The half with its versions, what waits for an op, and how far the cursors are."""

    opened: int = 0  # 1 once the queues are found
    max_checks: int = 0  # how often a half is put back at most; 0 where that is not known
    phase: int = Phase.ABSENT
    newest: Number = NO_NUMBER  # the newest version of the half
    checks: int = 0  # how often it was put back
    op: Number = NO_NUMBER  # the op that names it
    times: Map[Number, int] = Map(OTHER)  # of version n: its counter
    written: int = 0  # exclusive end of the places that ops took
    entered: int = 0  # exclusive end of the places that were given
    size: int = 0  # bytes that the entries which wait take in a body
    longest: int = 0  # bytes of the longest entry so far
    reach: Number = Number(0)  # exclusive end of the halves that were entered
    entries: Map[Number, Number] = Map(NO_NUMBER)  # of place k: the half that took it
    places: Map[Number, int] = Map(op_batch.NOWHERE)  # of half n: the place that it took last
    half_end: Number = Number(0)  # exclusive end of the halves
    half_cursor: Number = Number(0)  # exclusive end of the halves that the check service is done with
    half_saved: Number = Number(0)  # the half cursor in the file
    op_end: Number = Number(0)  # exclusive end of the ops
    op_cursor: Number = Number(0)  # exclusive end of the ops that the check service is done with
    op_saved: Number = Number(0)  # the op cursor in the file
    copy_end: Number = Number(0)  # exclusive end of the copies that the check service knows
    how: Map[Number, int] = Map(0)  # of half n: how it is resolved; 0 where it is not
    by: Map[Number, Number] = Map(NO_NUMBER)  # of half n: the number of the op, version or copy that resolves it
    reaches: Map[Number, Number] = Map(Number(0))  # of op n: exclusive end of the halves that it names
    consumed: Map[Number, int] = Map(0)  # of op n: 1 where the check service needs it no more


def _batcher(s: State) -> op_batch.State:
    """The batcher as its own spec sees it."""
    return replace(
        op_batch.INITIAL,
        latest=s.written,
        written=s.written,
        entered=s.entered,
        size=s.size,
        longest=s.longest,
        entries=s.entries,
        places=s.places,
    )


def _with_batcher(s: State, after: op_batch.State) -> State:
    """The check service whose batcher has become `after`."""
    return replace(
        s,
        written=after.written,
        entered=after.entered,
        size=after.size,
        longest=after.longest,
        entries=after.entries,
        places=after.places,
    )


def _cursors(s: State) -> checkpoint.State:
    """The cursors as their own spec sees them: whatever is in the log survives the end of a process."""
    return replace(
        checkpoint.INITIAL,
        opened=s.opened,
        half_end=s.half_end,
        half_cursor=s.half_cursor,
        half_flushed=s.half_end,
        half_saved=s.half_saved,
        op_end=s.op_end,
        op_cursor=s.op_cursor,
        op_flushed=s.op_end,
        op_saved=s.op_saved,
        copy_end=s.copy_end,
        copy_flushed=s.copy_end,
        how=s.how,
        by=s.by,
        reaches=s.reaches,
        consumed=s.consumed,
    )


def _with_cursors(s: State, after: checkpoint.State) -> State:
    """The check service whose cursors have become `after`."""
    return replace(
        s,
        opened=after.opened,
        half_end=after.half_end,
        half_cursor=after.half_cursor,
        half_saved=after.half_saved,
        op_end=after.op_end,
        op_cursor=after.op_cursor,
        op_saved=after.op_saved,
        copy_end=after.copy_end,
        how=after.how,
        by=after.by,
        reaches=after.reaches,
        consumed=after.consumed,
    )


def is_named(s: State, number: Number) -> bool:
    """True if an op in the log names the half."""
    return op_batch.is_named(_batcher(s), number)


def waits(s: State, number: Number) -> bool:
    """True if the half waits for its op."""
    return op_batch.waits(_batcher(s), number)


def is_version(s: State, number: Number) -> bool:
    """True if this is a version of the half that is followed."""
    return OTHER < s.times[number]


def open(s: State, max_checks: int) -> State:  # noqa: A001 - the step's name in every trace.
    """The queues of a new broker are found, which puts a half back so often at most, if that is known."""
    require(s.phase == Phase.ABSENT, "half-is-new",
        because="the half is new", otherwise="two transactions are taken for one")
    found = checkpoint.open(_cursors(s), Number(0), Number(0))
    return replace(_with_cursors(s, found), max_checks=max_checks)


def prepare(s: State) -> State:
    """The half is in the log."""
    require(s.phase == Phase.ABSENT, "half-is-new",
        because="the half is new", otherwise="two transactions are taken for one")
    return _newest(replace(s, phase=Phase.PREPARED), 0)


def _newest(s: State, times: int) -> State:
    """The half is in the log again, at the end of its queue."""
    after = checkpoint.half(_cursors(s), s.half_end)
    return replace(_with_cursors(s, after), newest=s.half_end, checks=times, times=s.times.set(s.half_end, times))


def other_half(s: State) -> State:
    """Another half is in the log, or another is put back."""
    return _with_cursors(s, checkpoint.half(_cursors(s), s.half_end))


def put_back(s: State) -> State:
    """The check service puts the half back, its counter raised, and asks its producer.

    Source: docs/proposals.md#back-check, docs/rocketmq-transactions.md#put-back.
    """
    require(s.phase == Phase.PREPARED, "half-is-undecided",
        because="the half is undecided",
        otherwise="the producer is asked again, and may answer otherwise")
    require(s.max_checks == 0 or s.checks < s.max_checks, "check-is-left",
        because="a check is left", otherwise="the producer is asked for ever")
    return _newest(s, s.checks + 1)


def commit(s: State) -> State:
    """The final is in the log. The op comes later."""
    require(s.phase == Phase.PREPARED, "half-is-undecided",
        because="the half is undecided",
        otherwise="the producer is asked again, and may answer otherwise")
    return replace(s, phase=Phase.COMMITTED)


def roll_back(s: State) -> State:
    """The message will never be seen. The op that comes later is all that tells of it."""
    require(s.phase == Phase.PREPARED, "half-is-undecided",
        because="the half is undecided",
        otherwise="the producer is asked again, and may answer otherwise")
    return replace(s, phase=Phase.ROLLED_BACK)


def enqueue(s: State, number: Number, length: int) -> State:
    """A decided half waits for its op: the one that is followed, or another.

    Source: docs/rocketmq-transactions.md#batching.
    """
    decided = number == s.newest and (s.phase == Phase.COMMITTED or s.phase == Phase.ROLLED_BACK)
    require(decided or not is_version(s, number), "half-that-waits-for-its-op-is-decided",
        because="the half that waits for its op is decided",
        otherwise="the check service forgets a transaction that was never decided")
    known = 0 <= number and number < s.half_end
    after = op_batch.enqueue(_batcher(s), number, length, known)
    return replace(_with_batcher(s, after), reach=Number(number + 1) if s.reach <= number else s.reach)


def write(s: State) -> State:
    """An op is in the log, and names all that waits.

    Source: docs/proposals.md#batched-ops-size, docs/rocketmq-transactions.md#op-size.
    """
    count = s.entered - s.written
    after = op_batch.write(_batcher(s), count, s.size, s.longest, True, True)  # noqa: FBT003
    logged = checkpoint.op(_cursors(s), s.op_end, s.reach)
    return replace(_with_cursors(_with_batcher(s, after), logged), op=s.op_end if waits(s, s.newest) else s.op)


def park(s: State) -> State:
    """All checks are spent: the half is set aside.

    Source: docs/proposals.md#back-check, docs/rocketmq-transactions.md#park.
    """
    require(s.phase == Phase.PREPARED, "half-is-undecided",
        because="the half is undecided", otherwise="an operator is shown a problem that is none")
    require(s.max_checks <= s.checks, "all-checks-are-spent",
        because="all checks are spent", otherwise="a message is given up while its producer may still answer")
    return replace(s, phase=Phase.PARKED)


def resolve(s: State, number: Number, how: int, by: Number) -> State:
    """The check service finds that a half needs no check: `how` says why, `by` names the op, the version or the copy.

    Source: docs/rocketmq-transactions.md#tx9, #fill.
    """
    after = checkpoint.resolve(_cursors(s), number, how, by)
    ours = is_version(s, number)
    require(not ours or how != How.OP or (number == s.newest and by == s.op), "op-that-resolves-the-half-names-it",
        because="the op that resolves the half names it",
        otherwise="the transaction is forgotten: its producer is never asked again")
    require(not ours or how != How.VERSION or (number < s.newest and is_version(s, by)),
        "half-that-a-version-replaces-was-put-back",
        because="the half that a version replaces was put back",
        otherwise="the transaction is forgotten: its producer is never asked again")
    require(not ours or how != How.COPY or (number == s.newest and s.phase == Phase.PARKED),
        "half-that-has-a-copy-was-set-aside",
        because="the half that has a copy was set aside",
        otherwise="the transaction is forgotten: its producer is never asked again")
    require(not ours or how != How.EARLIER, "half-is-resolved-by-what-names-it",
        because="the half is resolved by what names it",
        otherwise="the newest version is asked about for ever, or never")
    return _with_cursors(s, after)


def advance(s: State, to: Number) -> State:
    """The half cursor moves on."""
    return _with_cursors(s, checkpoint.advance(_cursors(s), to))


def consume_op(s: State, number: Number) -> State:
    """The check service is done with an op."""
    return _with_cursors(s, checkpoint.consume_op(_cursors(s), number))


def advance_ops(s: State, to: Number) -> State:
    """The op cursor moves on."""
    return _with_cursors(s, checkpoint.advance_ops(_cursors(s), to))


def save(s: State) -> State:
    """Both cursors are written to their file."""
    return _with_cursors(s, checkpoint.save(_cursors(s)))


def crash(s: State) -> State:
    """The process ends: what waits is lost, and a rollback that no op tells of; the cursors are as they were saved.

    Source: docs/rocketmq-transactions.md#op-crash, #n14.
    """
    undone = s.phase == Phase.ROLLED_BACK and not is_named(s, s.newest)
    again = checkpoint.crash(_cursors(s), s.half_end, s.op_end)
    after = _with_cursors(_with_batcher(s, op_batch.crash(_batcher(s))), again)
    return replace(after, phase=Phase.PREPARED if undone else s.phase)


def the_queues_are_found_once(s: State) -> bool:
    """Otherwise two check services are taken for one."""
    return 0 <= s.opened and s.opened <= 1


def a_transaction_has_its_half_in_the_log(s: State) -> bool:
    """Otherwise a message is decided that was never prepared."""
    there = 0 <= s.newest and s.newest < s.half_end and is_version(s, s.newest)
    known = Phase.PREPARED <= s.phase and s.phase <= Phase.PARKED
    return (known and there) or (s.phase == Phase.ABSENT and s.newest == NO_NUMBER)


def versions_follow_one_another(s: State, number: Number) -> bool:
    """Otherwise there are two halves, each of which can be decided."""
    one = 0 <= number and number <= s.newest and s.times[number] <= s.checks
    return OTHER <= s.times[number] and implies(is_version(s, number), one)


def checks_are_limited(s: State) -> bool:
    """Otherwise a producer is asked for ever."""
    counted = s.checks == (0 if s.phase == Phase.ABSENT else s.times[s.newest])
    return counted and 0 <= s.checks and implies(0 < s.max_checks, s.checks <= s.max_checks)


def a_half_is_parked_after_its_last_check(s: State) -> bool:
    """Otherwise a message is given up while its producer may still answer."""
    return implies(s.phase == Phase.PARKED, s.max_checks <= s.checks)


def an_op_follows_a_decision(s: State, number: Number) -> bool:
    """Otherwise the check service forgets a transaction that was never decided."""
    decided = s.phase == Phase.COMMITTED or s.phase == Phase.ROLLED_BACK
    return implies(is_version(s, number) and op_batch.is_entered(_batcher(s), number), decided and number == s.newest)


def what_waits_has_bytes(s: State) -> bool:
    """Otherwise an op is written that names nothing, or a half is dropped from it."""
    count = s.entered - s.written
    counted = 0 <= s.written and 0 <= count and count <= s.size and (0 < count or s.size == 0)
    return counted and implies(0 < count, 0 < s.longest)


def an_op_names_what_it_took(s: State) -> bool:
    """Otherwise a decided half is asked about again, for its op is not found."""
    named = 0 <= s.op and s.op < s.op_end and s.newest < s.reaches[s.op]
    return named if is_named(s, s.newest) else s.op == NO_NUMBER


def what_was_entered_is_a_half_of_the_log(s: State, number: Number) -> bool:
    """Otherwise the check service skips a half that is yet to come."""
    place = s.places[number]
    ours = 0 <= place and place < s.entered and s.entries[Number(place)] == number
    return op_batch.NOWHERE <= place and implies(ours, 0 <= number and number < s.half_end and number < s.reach)


def cursors_stay_within_their_queues(s: State) -> bool:
    """Otherwise halves and ops to come are skipped."""
    halves = 0 <= s.half_saved and s.half_saved <= s.half_cursor and s.half_cursor <= s.half_end
    return halves and 0 <= s.op_saved and s.op_saved <= s.op_cursor and s.op_cursor <= s.op_end and 0 <= s.copy_end


def every_half_that_was_passed_is_resolved(s: State, number: Number) -> bool:
    """Otherwise its transaction is forgotten: its producer is never asked again."""
    known = implies(s.how[number] != 0, 0 <= number and number < s.half_end)
    return known and implies(0 <= number and number < s.half_cursor, s.how[number] != 0)


def a_half_is_resolved_by_a_record(s: State, number: Number) -> bool:
    """Otherwise a half is passed that was never decided."""
    how = s.how[number]
    by = s.by[number]
    version = how != How.VERSION or (number < by and by < s.half_end)
    copy = how != How.COPY or (0 <= by and by < s.copy_end)
    op = (how != How.OP and how != How.EARLIER) or (0 <= by and by < s.op_end)
    return 0 <= how and how <= How.EARLIER and version and copy and op


def a_half_is_resolved_by_what_became_of_it(s: State, number: Number) -> bool:
    """Otherwise the transaction is forgotten: its producer is never asked again."""
    how = s.how[number]
    op = how == How.OP and number == s.newest and is_named(s, number)
    copy = how == How.COPY and number == s.newest and s.phase == Phase.PARKED
    version = how == How.VERSION and number < s.newest
    return implies(is_version(s, number) and how != 0, op or copy or version)


def an_op_is_needed_until_its_halves_are_passed(s: State, number: Number) -> bool:
    """Otherwise a decided half is asked about again, for its op is forgotten."""
    known = implies(s.consumed[number] != 0, 0 <= number and number < s.op_end and s.reaches[number] <= s.half_cursor)
    return known and implies(s.consumed[number] != 0 and number < s.op_saved, s.reaches[number] <= s.half_saved)


def no_transaction_is_forgotten(s: State) -> bool:
    """Otherwise its producer is never asked again, and its message is never seen."""
    done = is_named(s, s.newest) or s.phase == Phase.PARKED
    return implies(Phase.ABSENT < s.phase and s.newest < s.half_cursor, done)


def a_decision_waits_or_has_its_op_until_a_crash(before: State, after: State) -> bool:
    """Otherwise it is dropped, and its producer is asked again."""
    return implies(is_named(before, before.newest), is_named(after, after.newest) and after.op == before.op)


def what_an_op_tells_is_final(before: State, after: State) -> bool:
    """Otherwise a producer that was heard is asked again, and may say something else."""
    settled = is_named(before, before.newest) or before.phase == Phase.PARKED or before.phase == Phase.COMMITTED
    return implies(settled, after.phase == before.phase and after.newest == before.newest)


def nobody_is_asked_about_what_is_decided(before: State, after: State) -> bool:
    """Otherwise a producer is asked again, and may answer otherwise."""
    return implies(before.checks < after.checks, before.phase == Phase.PREPARED)


def the_half_is_decided_or_set_aside(s: State) -> bool:
    """Otherwise it is left undecided: its producer is never asked again, and no consumer ever sees its message."""
    return s.phase != Phase.PREPARED


def an_op_names_what_was_decided(s: State) -> bool:
    """Otherwise a half that was decided is asked about again after the next start."""
    return implies(s.phase == Phase.COMMITTED or s.phase == Phase.ROLLED_BACK, is_named(s, s.newest))


def every_half_is_done_with(s: State) -> bool:
    """Otherwise a half is asked about again after the next start."""
    return s.half_cursor == s.half_end


INITIAL = State()
ACTIONS = (
    open,
    prepare,
    other_half,
    put_back,
    commit,
    roll_back,
    enqueue,
    write,
    park,
    resolve,
    advance,
    consume_op,
    advance_ops,
    save,
    crash,
)
INVARIANTS = (
    the_queues_are_found_once,
    a_transaction_has_its_half_in_the_log,
    versions_follow_one_another,
    checks_are_limited,
    a_half_is_parked_after_its_last_check,
    an_op_follows_a_decision,
    what_waits_has_bytes,
    an_op_names_what_it_took,
    what_was_entered_is_a_half_of_the_log,
    cursors_stay_within_their_queues,
    every_half_that_was_passed_is_resolved,
    a_half_is_resolved_by_a_record,
    a_half_is_resolved_by_what_became_of_it,
    an_op_is_needed_until_its_halves_are_passed,
    no_transaction_is_forgotten,
)
STEP_PROPERTIES = (
    a_decision_waits_or_has_its_op_until_a_crash,
    what_an_op_tells_is_final,
    nobody_is_asked_about_what_is_decided,
)
AT_REST = (the_half_is_decided_or_set_aside, an_op_names_what_was_decided, every_half_is_done_with)
