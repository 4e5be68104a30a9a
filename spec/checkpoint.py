"""The check service's two cursors over one half queue and its ops: neither passes what is still needed.

A half is resolved by a record: an op that names it, a newer version of it, or a copy that was set aside. What resolves
the halves that a cursor has passed must be on disk before the cursor is saved: otherwise a crash takes the record, and
leaves the cursor. A round of the check service works in memory, and after a crash begins at the saved cursors.
"""

from dataclasses import dataclass
from enum import IntEnum

from gapless.spec.language import Map, Number, all_between, greatest, implies, replace, require

NO_NUMBER = Number(-1)  # the number of an op that has expired with the log's first files


class How(IntEnum):
    """The means by which a half is resolved."""

    OP = 1  # an op names it
    VERSION = 2  # it was put back: a newer version takes its place
    COPY = 3  # it was set aside after its last check
    EARLIER = 4  # an op names an earlier version of it, which its broker put back before the op came


@dataclass(frozen=True, slots=True)
class State:
    """The halves and ops as far as they are written, what became of each, and how far the cursors are."""

    opened: int = 0  # 1 once the queues are found
    expired: int = 0  # 1 where the first halves have expired with the log's first files
    first: Number = Number(0)  # the first half that is left
    half_end: Number = Number(0)  # exclusive end of the halves
    half_cursor: Number = Number(0)  # exclusive end of the halves that the check service is done with
    op_end: Number = Number(0)  # exclusive end of the ops
    op_cursor: Number = Number(0)  # exclusive end of the ops that the check service is done with
    copy_end: Number = Number(0)  # exclusive end of the copies that the check service knows
    half_flushed: Number = Number(0)  # exclusive end of the halves that are on disk
    op_flushed: Number = Number(0)  # exclusive end of the ops that are on disk
    copy_flushed: Number = Number(0)  # exclusive end of the copies that are on disk
    half_saved: Number = Number(0)  # the half cursor in the file, from which a broker starts again
    op_saved: Number = Number(0)  # the op cursor in the file
    crashes: int = 0  # how often the broker crashed
    how: Map[Number, int] = Map(0)  # of half n: `How` it is resolved; 0 where it is not
    by: Map[Number, Number] = Map(NO_NUMBER)  # of half n: the number of the op, version or copy that resolves it
    reaches: Map[Number, Number] = Map(Number(0))  # of op n: exclusive end of the halves that it names
    consumed: Map[Number, int] = Map(0)  # of op n: 1 where the check service needs it no more


def open(s: State, half: Number, op: Number) -> State:  # noqa: A001 - the step's name in every trace.
    """The queues are found: all halves before `half` and all ops before `op` are done with, or have expired.

    Source: docs/rocketmq.md#config, docs/rocketmq-transactions.md#tx11.
    """
    require(s.opened == 0 and s.half_end == 0 and s.op_end == 0, "cursors-are-new",
        because="the cursors are new", otherwise="two check services are taken for one")
    require(0 <= half and 0 <= op, "numbers-begin-at-0",
        because="numbers begin at 0", otherwise="a half can never be asked for")
    return replace(
        s,
        opened=s.opened + 1,
        expired=1 if 0 < half else 0,
        first=half,
        half_end=half,
        half_cursor=half,
        half_flushed=half,
        half_saved=half,
        op_end=op,
        op_cursor=op,
        op_flushed=op,
        op_saved=op,
    )


def half(s: State, number: Number) -> State:
    """A half is in the log, new or put back.

    Source: docs/rocketmq-transactions.md#prepare, #put-back.
    """
    require(number == s.half_end, "numbers-of-halves-follow-one-another",
        because="the numbers of halves follow one another", otherwise="a half is lost, or two share a number")
    return replace(s, half_end=Number(number + 1))


def resolve(s: State, number: Number, how: int, by: Number) -> State:
    """The half needs no check: `how` says why, `by` names the op, the version or the copy.

    Source: docs/rocketmq-transactions.md#tx9, #fill, #put-back, #park; for the op of an earlier version, #immunity.
    """
    require(s.half_cursor <= number and number < s.half_end, "half-is-in-the-log-and-not-done-with",
        because="the half is in the log, and not done with",
        otherwise="a half counts as resolved that the check service has passed, or has yet to see")
    require(How.OP <= how and how <= How.EARLIER, "half-is-resolved-by-a-record",
        because="an op, a newer version or a copy that was set aside resolves the half",
        otherwise="the transaction is forgotten: its producer is never asked again")
    of_op = how == How.OP or (how == How.EARLIER and not (by == NO_NUMBER and s.expired != 0))
    require(not of_op or (s.op_cursor <= by and by < s.op_end), "op-that-resolves-the-half-is-in-the-log",
        because="the op that resolves the half is in the log, and not done with",
        otherwise="a half is passed that was never decided, or whose op is not read again after a crash")
    require(how != How.OP or number < s.reaches[by], "op-that-resolves-the-half-reaches-it",
        because="the op that resolves the half reaches it",
        otherwise="the transaction is forgotten: its producer is never asked again")
    require(how != How.VERSION or (number < by and by < s.half_end), "newer-version-is-in-the-log",
        because="the newer version is in the log", otherwise="the half that was put back is lost with its transaction")
    require(how != How.COPY or 0 <= by, "copy-that-was-set-aside-has-its-number",
        because="the copy that was set aside has its number",
        otherwise="no operator ever sees the message that was given up")
    copies = greatest(s.copy_end, Number(by + 1)) if how == How.COPY else s.copy_end
    return replace(s, copy_end=Number(copies), how=s.how.set(number, how), by=s.by.set(number, by))


def advance(s: State, to: Number) -> State:
    """The half cursor moves on: every half before `to` is done with.

    Source: docs/rocketmq-transactions.md#check, #tx9, #tx11.
    """
    require(s.half_cursor <= to, "half-cursor-moves-on",
        because="the half cursor moves on", otherwise="halves that were done with are asked about again")
    require(to <= s.half_end, "half-cursor-stays-within-the-halves-of-the-log",
        because="the half cursor stays within the halves of the log",
        otherwise="halves to come are never asked about, and stay open for ever")
    require(all_between(s.half_cursor, to, lambda n: s.how[Number(n)] != 0),
        "half-cursor-passes-no-undecided-half",
        because="the half cursor passes no undecided half",
        otherwise="the transaction is forgotten: its producer is never asked again")
    return replace(s, half_cursor=to)


def op(s: State, number: Number, reach: Number) -> State:
    """An op is in the log; the halves that it names end before `reach`.

    Source: docs/rocketmq-transactions.md#ops.
    """
    require(number == s.op_end, "numbers-of-ops-follow-one-another",
        because="the numbers of ops follow one another", otherwise="an op is lost, or two share a number")
    return replace(s, op_end=Number(number + 1), reaches=s.reaches.set(number, reach))


def consume_op(s: State, number: Number) -> State:
    """The check service is done with an op: it has passed every half that the op names.

    Source: docs/rocketmq-transactions.md#fill, #tx10.
    """
    require(s.op_cursor <= number and number < s.op_end, "op-is-in-the-log-and-not-done-with",
        because="the op is in the log, and not done with",
        otherwise="an op decides about halves that were never written, or that counts no more")
    require(s.reaches[number] <= s.half_cursor, "half-cursor-has-passed-all-that-the-op-names",
        because="the half cursor has passed all that the op names",
        otherwise="a decided half is asked about again, for its op is forgotten")
    return replace(s, consumed=s.consumed.set(number, 1))


def advance_ops(s: State, to: Number) -> State:
    """The op cursor moves on: every op before `to` is done with.

    Source: docs/rocketmq-transactions.md#check, #tx10, #tx11.
    """
    require(s.op_cursor <= to, "op-cursor-moves-on",
        because="the op cursor moves on", otherwise="ops that were done with count again")
    require(to <= s.op_end, "op-cursor-stays-within-the-ops-of-the-log",
        because="the op cursor stays within the ops of the log",
        otherwise="ops to come are never read, and decided halves are asked about again")
    require(all_between(s.op_cursor, to, lambda n: s.consumed[Number(n)] == 1),
        "op-cursor-passes-no-op-that-is-still-needed",
        because="the op cursor passes no op that is still needed",
        otherwise="a decided half is asked about again, for its op is forgotten")
    return replace(s, op_cursor=to)


def flush(s: State, half: Number, op: Number, copy: Number) -> State:
    """The halves before `half`, the ops before `op` and the copies before `copy` are on disk.

    Source: docs/rocketmq.md#checkpoint, docs/rocketmq-transactions.md#n14.
    """
    require(s.half_flushed <= half and s.op_flushed <= op and s.copy_flushed <= copy, "what-was-flushed-stays-flushed",
        because="what was flushed stays flushed", otherwise="a disk forgot what it had stored")
    require(half <= s.half_end and op <= s.op_end and copy <= s.copy_end, "what-is-flushed-is-in-the-log",
        because="what is flushed is in the log", otherwise="records count as safe that were never written")
    return replace(s, half_flushed=half, op_flushed=op, copy_flushed=copy)


def is_safe(s: State, number: Number) -> bool:
    """True if the record that resolves the half is on disk."""
    by = s.by[number]
    if s.how[number] == How.VERSION:
        return by < s.half_flushed
    return by < s.copy_flushed if s.how[number] == How.COPY else by < s.op_flushed


def is_flushed(s: State) -> bool:
    """True if all that the cursors have passed is on disk."""
    return s.half_cursor <= s.half_flushed and s.op_cursor <= s.op_flushed


def is_resolved_for_good(s: State) -> bool:
    """True if the records that resolve the halves passed since the cursor was saved are on disk."""
    return all_between(s.half_saved, s.half_cursor, lambda n: is_safe(s, Number(n)))


def save(s: State) -> State:
    """Both cursors are written to their file, from which a broker starts again.

    Source: docs/rocketmq-transactions.md#cursors, #tx9, #n15; docs/rocketmq.md#config (consumerOffset.json).
    """
    require(is_flushed(s), "what-the-saved-cursors-passed-is-on-disk",
        because="what the saved cursors passed is on disk",
        otherwise="a crash leaves cursors beyond the end of the log: halves and ops to come are skipped")
    require(is_resolved_for_good(s), "what-resolves-the-halves-that-were-passed-is-on-disk",
        because="what resolves the halves that were passed is on disk",
        otherwise="a crash takes it, and the transaction is forgotten: its producer is never asked again")
    return replace(s, half_saved=s.half_cursor, op_saved=s.op_cursor)


def crash(s: State, half: Number, op: Number) -> State:
    """The broker starts from its saved cursors, with the halves before `half` and the ops before `op`.

    Source: docs/rocketmq.md#recovery, docs/rocketmq-transactions.md#n14, #n15.
    """
    require(s.half_flushed <= half and s.op_flushed <= op, "what-was-flushed-survives",
        because="what was flushed survives", otherwise="a transaction is lost that was reported safe to its producer")
    require(half <= s.half_end and op <= s.op_end, "crash-invents-nothing",
        because="a crash invents nothing", otherwise="producers are asked about messages that were never sent")
    require(s.half_saved <= half and s.op_saved <= op, "no-saved-cursor-is-beyond-what-the-crash-left",
        because="no saved cursor is beyond what the crash left",
        otherwise="halves and ops to come are skipped: their transactions are forgotten")
    return replace(
        s,
        crashes=s.crashes + 1,
        half_end=half,
        half_cursor=s.half_saved,
        half_flushed=half,
        op_end=op,
        op_cursor=s.op_saved,
        op_flushed=op,
        how=s.how.forget_from(s.half_saved),
        by=s.by.forget_from(s.half_saved),
        reaches=s.reaches.forget_from(op),
        consumed=s.consumed.forget_from(s.op_saved),
    )


def cursors_stay_within_their_queues(s: State) -> bool:
    """Otherwise halves and ops to come are skipped."""
    halves = 0 <= s.half_saved and s.half_saved <= s.half_cursor and s.half_cursor <= s.half_end
    return halves and 0 <= s.op_saved and s.op_saved <= s.op_cursor and s.op_cursor <= s.op_end


def the_queues_are_found_once(s: State) -> bool:
    """Otherwise two check services are taken for one."""
    return 0 <= s.opened and s.opened <= 1 and 0 <= s.first and s.first <= s.half_saved


def flushes_stay_within_the_log(s: State) -> bool:
    """Otherwise records count as safe that were never written."""
    halves = s.first <= s.half_flushed and s.half_flushed <= s.half_end
    ops = 0 <= s.op_flushed and s.op_flushed <= s.op_end
    return halves and ops and 0 <= s.copy_flushed and s.copy_flushed <= s.copy_end


def only_halves_of_the_log_are_resolved(s: State, number: Number) -> bool:
    """Otherwise a half is skipped that is yet to come, or is taken for one that is gone."""
    if s.how[number] == 0:
        return s.by[number] == NO_NUMBER
    return 0 < s.how[number] and 0 <= number and number < s.half_end


def a_half_is_resolved_by_a_record(s: State, number: Number) -> bool:
    """Otherwise a half is passed that was never decided, and its transaction is forgotten."""
    how = s.how[number]
    by = s.by[number]
    version = how != How.VERSION or (number < by and by < s.half_end)
    copy = how != How.COPY or (0 <= by and by < s.copy_end)
    op = how != How.OP or (0 <= by and by < s.op_end and number < s.reaches[by])
    earlier = how != How.EARLIER or (NO_NUMBER <= by and by < s.op_end and (0 <= by or s.expired != 0))
    return 0 <= how and how <= How.EARLIER and version and copy and op and earlier


def every_half_that_was_passed_is_resolved(s: State, number: Number) -> bool:
    """Otherwise its transaction is forgotten: its producer is never asked again."""
    return implies(s.first <= number and number < s.half_cursor, s.how[number] != 0)


def only_ops_of_the_log_are_consumed(s: State, number: Number) -> bool:
    """Otherwise an op is skipped that is yet to come."""
    return implies(s.consumed[number] != 0, 0 <= number and number < s.op_end)


def an_op_is_needed_until_its_halves_are_passed(s: State, number: Number) -> bool:
    """Otherwise a decided half is asked about again, for its op is forgotten."""
    return implies(s.consumed[number] != 0, s.reaches[number] <= s.half_cursor)


def an_op_is_read_again_after_a_crash_if_its_halves_are(s: State, number: Number) -> bool:
    """Otherwise a decided half is asked about again after a crash, for its op is not read."""
    return implies(s.consumed[number] != 0 and number < s.op_saved, s.reaches[number] <= s.half_saved)


def no_saved_cursor_is_ahead_of_what_is_flushed(s: State) -> bool:
    """Otherwise a crash leaves it beyond the end of the log, and halves and ops to come are skipped."""
    return s.half_saved <= s.half_flushed and s.op_saved <= s.op_flushed


def a_crash_leaves_what_resolves_a_half_that_is_passed_for_good(s: State, number: Number) -> bool:
    """Otherwise the transaction is forgotten: its producer is never asked again."""
    return implies(s.how[number] != 0 and number < s.half_saved, is_safe(s, number))


def cursors_never_step_back(before: State, after: State) -> bool:
    """Otherwise what was done with is done again. After a crash they are as they were saved."""
    begun = 0 < before.opened
    halves = before.half_cursor <= after.half_cursor and before.half_saved <= after.half_saved
    ops = before.op_cursor <= after.op_cursor and before.op_saved <= after.op_saved
    saved = after.half_cursor == before.half_saved and after.op_cursor == before.op_saved
    return implies(begun, saved if before.crashes < after.crashes else halves and ops)


def what_was_passed_stays_as_it_was(before: State, after: State, number: Number) -> bool:
    """Otherwise the reason why a cursor passed it is lost."""
    passed = number < (before.half_saved if before.crashes < after.crashes else before.half_cursor)
    same = after.how[number] == before.how[number] and after.by[number] == before.by[number]
    return implies(0 < before.opened and passed, same)


def what_the_half_cursor_passes_is_resolved(before: State, after: State, number: Number) -> bool:
    """Otherwise a transaction is forgotten: its producer is never asked again."""
    return implies(
        before.opened > 0 and before.half_cursor <= number and number < after.half_cursor, before.how[number] != 0
    )


def what_the_op_cursor_passes_is_consumed(before: State, after: State, number: Number) -> bool:
    """Otherwise a decided half is asked about again."""
    return implies(
        before.opened > 0 and before.op_cursor <= number and number < after.op_cursor, before.consumed[number] == 1
    )


def no_number_is_skipped(before: State, after: State) -> bool:
    """Otherwise a half or an op is lost, or two share a number."""
    return implies(
        0 < before.opened,
        after.half_end <= before.half_end + 1 and after.op_end <= before.op_end + 1,
    )


def nothing_flushed_is_lost(before: State, after: State) -> bool:
    """Otherwise a disk forgot what it had stored."""
    kept = before.half_flushed <= after.half_end and before.op_flushed <= after.op_end
    return implies(0 < before.opened, kept and before.copy_flushed <= after.copy_flushed)


def what_a_crash_took_is_forgotten(before: State, after: State, number: Number) -> bool:
    """Otherwise what comes later finds itself resolved, or done with."""
    lost = before.crashes < after.crashes and after.op_end <= number
    return implies(lost, after.reaches[number] == 0)


def every_half_is_done_with(s: State) -> bool:
    """Otherwise a half is left that was never decided, or that is asked about again after the next start."""
    return s.half_cursor == s.half_end


def every_op_is_done_with(s: State) -> bool:
    """Otherwise ops are read again after each start, and there are ever more of them."""
    return s.op_cursor == s.op_end


INITIAL = State()
ACTIONS = (open, half, resolve, advance, op, consume_op, advance_ops, flush, save, crash)
INVARIANTS = (
    cursors_stay_within_their_queues,
    the_queues_are_found_once,
    flushes_stay_within_the_log,
    only_halves_of_the_log_are_resolved,
    a_half_is_resolved_by_a_record,
    every_half_that_was_passed_is_resolved,
    only_ops_of_the_log_are_consumed,
    an_op_is_needed_until_its_halves_are_passed,
    an_op_is_read_again_after_a_crash_if_its_halves_are,
    no_saved_cursor_is_ahead_of_what_is_flushed,
    a_crash_leaves_what_resolves_a_half_that_is_passed_for_good,
)
STEP_PROPERTIES = (
    cursors_never_step_back,
    what_the_half_cursor_passes_is_resolved,
    what_the_op_cursor_passes_is_consumed,
    what_was_passed_stays_as_it_was,
    no_number_is_skipped,
    nothing_flushed_is_lost,
    what_a_crash_took_is_forgotten,
)
AT_REST = (every_half_is_done_with, every_op_is_done_with)
