"""The check service's two cursors over one half queue and its ops: neither passes what is still needed."""

from dataclasses import dataclass

from gapless.spec.language import Map, Number, all_between, implies, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """The halves and ops as far as they are written, what became of each, and how far the cursors are."""

    opened: int = 0  # 1 once the queues are found
    half_end: Number = Number(0)  # exclusive end of the halves
    half_cursor: Number = Number(0)  # exclusive end of the halves that the check service is done with
    op_end: Number = Number(0)  # exclusive end of the ops
    op_cursor: Number = Number(0)  # exclusive end of the ops that the check service is done with
    resolved: Map[Number, int] = Map(0)  # of half n: 1 where an op names it, or it was put back or set aside
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
    return replace(s, opened=s.opened + 1, half_end=half, half_cursor=half, op_end=op, op_cursor=op)


def half(s: State, number: Number) -> State:
    """A half is in the log, new or put back.

    Source: docs/rocketmq-transactions.md#prepare, #put-back.
    """
    require(number == s.half_end, "numbers-of-halves-follow-one-another",
        because="the numbers of halves follow one another", otherwise="a half is lost, or two share a number")
    return replace(s, half_end=Number(number + 1))


def resolve(s: State, number: Number) -> State:
    """The half needs no check: an op names it, a newer version takes its place, or it is set aside.

    Source: docs/rocketmq-transactions.md#tx9.
    """
    require(s.half_cursor <= number and number < s.half_end, "half-is-in-the-log-and-not-done-with",
        because="the half is in the log, and not done with",
        otherwise="a half counts as resolved that the check service has passed, or has yet to see")
    return replace(s, resolved=s.resolved.set(number, 1))


def advance(s: State, to: Number) -> State:
    """The half cursor moves on: every half before `to` is done with.

    Source: docs/rocketmq-transactions.md#check, #tx9, #tx11.
    """
    require(s.half_cursor <= to, "half-cursor-moves-on",
        because="the half cursor moves on", otherwise="halves that were done with are asked about again")
    require(to <= s.half_end, "half-cursor-stays-within-the-halves-of-the-log",
        because="the half cursor stays within the halves of the log",
        otherwise="halves to come are never asked about, and stay open for ever")
    require(all_between(s.half_cursor, to, lambda n: s.resolved[Number(n)] == 1),
        "half-cursor-passes-no-undecided-half",
        because="the half cursor passes no undecided half",
        otherwise="the transaction is forgotten: nobody asks its producer any more")
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
        otherwise="an op decides about halves that nobody wrote, or that counts no more")
    require(s.reaches[number] <= s.half_cursor, "half-cursor-has-passed-all-that-the-op-names",
        because="the half cursor has passed all that the op names",
        otherwise="a decided half is asked about again, for nobody remembers its op")
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
        otherwise="a decided half is asked about again, for nobody remembers its op")
    return replace(s, op_cursor=to)


def cursors_stay_within_their_queues(s: State) -> bool:
    """Otherwise halves and ops to come are skipped."""
    return 0 <= s.half_cursor and s.half_cursor <= s.half_end and 0 <= s.op_cursor and s.op_cursor <= s.op_end


def the_queues_are_found_once(s: State) -> bool:
    """Otherwise two check services are taken for one."""
    return 0 <= s.opened and s.opened <= 1


def only_halves_of_the_log_are_resolved(s: State, number: Number) -> bool:
    """Otherwise a half is skipped that is yet to come."""
    return implies(s.resolved[number] != 0, 0 <= number and number < s.half_end)


def only_ops_of_the_log_are_consumed(s: State, number: Number) -> bool:
    """Otherwise an op is skipped that is yet to come."""
    return implies(s.consumed[number] != 0, 0 <= number and number < s.op_end)


def an_op_is_needed_until_its_halves_are_passed(s: State, number: Number) -> bool:
    """Otherwise a decided half is asked about again, for nobody remembers its op."""
    return implies(s.consumed[number] != 0, s.reaches[number] <= s.half_cursor)


def cursors_never_step_back(before: State, after: State) -> bool:
    """Otherwise what was done with is done again."""
    return implies(0 < before.opened, before.half_cursor <= after.half_cursor and before.op_cursor <= after.op_cursor)


def what_was_passed_stays_as_it_was(before: State, after: State, number: Number) -> bool:
    """Otherwise nobody can tell any more why a cursor passed it."""
    return implies(0 < before.opened and number < before.half_cursor, after.resolved[number] == before.resolved[number])


def what_the_half_cursor_passes_is_resolved(before: State, after: State, number: Number) -> bool:
    """Otherwise a transaction is forgotten: nobody asks its producer any more."""
    return implies(
        before.opened > 0 and before.half_cursor <= number and number < after.half_cursor, before.resolved[number] == 1
    )


def what_the_op_cursor_passes_is_consumed(before: State, after: State, number: Number) -> bool:
    """Otherwise a decided half is asked about again."""
    return implies(
        before.opened > 0 and before.op_cursor <= number and number < after.op_cursor, before.consumed[number] == 1
    )


def every_half_is_done_with(s: State) -> bool:
    """Otherwise a half is left that nobody decided, or that is asked about again after the next start."""
    return s.half_cursor == s.half_end


def every_op_is_done_with(s: State) -> bool:
    """Otherwise ops are read again after each start, and there are ever more of them."""
    return s.op_cursor == s.op_end


INITIAL = State()
ACTIONS = (open, half, resolve, advance, op, consume_op, advance_ops)
INVARIANTS = (
    cursors_stay_within_their_queues,
    the_queues_are_found_once,
    only_halves_of_the_log_are_resolved,
    only_ops_of_the_log_are_consumed,
    an_op_is_needed_until_its_halves_are_passed,
)
STEP_PROPERTIES = (
    cursors_never_step_back,
    what_the_half_cursor_passes_is_resolved,
    what_the_op_cursor_passes_is_consumed,
    what_was_passed_stays_as_it_was,
)
AT_REST = (every_half_is_done_with, every_op_is_done_with)
