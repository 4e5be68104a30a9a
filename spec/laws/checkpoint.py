"""Laws of `checkpoint`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import checkpoint
from gapless.spec.checkpoint import NO_NUMBER, How, State
from gapless.spec.language import Number, accepts, implies


def a_check_service_begins_at_rest(s: State, half: Number, op: Number) -> bool:
    """Otherwise it is found twice, or begins behind what it has yet to look at."""
    if not accepts(checkpoint.open, s, half, op):
        return implies(0 <= half and 0 <= op, 0 < s.opened or 0 < s.half_end or 0 < s.op_end)
    after = checkpoint.open(s, half, op)
    begins = after.half_end == half and after.op_end == op and not accepts(checkpoint.open, after, half, op)
    return begins and checkpoint.every_half_is_done_with(after) and checkpoint.every_op_is_done_with(after)


def what_has_begun_is_on_disk(s: State, half: Number, op: Number) -> bool:
    """Otherwise a crash takes what is done with, or begins with what has expired."""
    if not accepts(checkpoint.open, s, half, op):
        return True
    if not accepts(begin_and_crash, s, half, op):
        return False
    after = begin_and_crash(s, half, op)
    return after.half_cursor == half and after.op_cursor == op and (after.expired != 0) == (0 < half)


def begin_and_crash(s: State, half: Number, op: Number) -> State:
    """The queues are found, the cursors are saved, and the broker starts again."""
    return checkpoint.crash(checkpoint.save(checkpoint.open(s, half, op)), half, op)


def halves_come_one_by_one(s: State) -> bool:
    """Otherwise a half is lost, or two share a number."""
    if not accepts(checkpoint.half, s, s.half_end):
        return False
    after = checkpoint.half(s, s.half_end)
    return not accepts(checkpoint.half, after, s.half_end) and not accepts(checkpoint.half, s, Number(s.half_end + 1))


def ops_come_one_by_one(s: State, reach: Number) -> bool:
    """Otherwise an op is lost, or two share a number."""
    if not accepts(checkpoint.op, s, s.op_end, reach):
        return False
    after = checkpoint.op(s, s.op_end, reach)
    return not accepts(checkpoint.op, after, s.op_end, reach) and after.reaches[s.op_end] == reach


def an_op_resolves_the_halves_up_to_its_reach(s: State, number: Number, by: Number) -> bool:
    """Otherwise a decided half is asked about again, or one is passed that was never decided."""
    there = s.half_cursor <= number and number < s.half_end and s.op_cursor <= by and by < s.op_end
    return accepts(checkpoint.resolve, s, number, How.OP, by) == (there and number < s.reaches[by])


def a_version_resolves_the_halves_before_it(s: State, number: Number, by: Number) -> bool:
    """Otherwise a half that was put back is asked about twice, or lost."""
    there = s.half_cursor <= number and number < by and by < s.half_end
    return accepts(checkpoint.resolve, s, number, How.VERSION, by) == there


def a_copy_resolves_its_half(s: State, number: Number, by: Number) -> bool:
    """Otherwise what was given up is asked about again."""
    there = s.half_cursor <= number and number < s.half_end
    return accepts(checkpoint.resolve, s, number, How.COPY, by) == (there and 0 <= by)


def a_round_that_finds_nothing_is_one(s: State) -> bool:
    """Otherwise a check service that has nothing to do is accused."""
    return accepts(checkpoint.advance, s, s.half_cursor) and accepts(checkpoint.advance_ops, s, s.op_cursor)


def all_that_is_in_the_log_can_be_flushed(s: State) -> bool:
    """Otherwise no cursor can ever be saved."""
    return accepts(flush_and_save, s)


def flush_and_save(s: State) -> State:
    """All is flushed, and the cursors are saved."""
    return checkpoint.save(checkpoint.flush(s, s.half_end, s.op_end, s.copy_end))


def a_broker_starts_again_with_what_is_left(s: State, half: Number, op: Number) -> bool:
    """Otherwise a broker that lost nothing which it owes is accused."""
    left = s.half_flushed <= half and half <= s.half_end and s.op_flushed <= op and op <= s.op_end
    return accepts(checkpoint.crash, s, half, op) == left


def who_has_passed_all_is_at_rest(s: State) -> bool:
    """Otherwise halves are left undecided where all seems to be done."""
    halves = checkpoint.every_half_is_done_with(s) != (s.half_cursor < s.half_end)
    return halves and checkpoint.every_op_is_done_with(s) != (s.op_cursor < s.op_end)

def what_was_never_saved_begins_where_the_queues_were_found(s: State, half: Number, op: Number) -> bool:
    """Otherwise a crash before the first save begins with what has expired."""
    if not accepts(checkpoint.open, s, half, op):
        return True
    return accepts(_open_and_crash, s, half, op) and _open_and_crash(s, half, op).op_cursor == op


def _open_and_crash(s: State, half: Number, op: Number) -> State:
    return checkpoint.crash(checkpoint.open(s, half, op), half, op)


def a_broker_starts_again_where_it_saved(s: State) -> bool:
    """Otherwise what was done with is done again after each start."""
    if not accepts(checkpoint.save, s):
        return True
    if not accepts(_save_and_crash, s):
        return False
    after = _save_and_crash(s)
    return after.half_cursor == s.half_cursor and after.op_cursor == s.op_cursor


def _save_and_crash(s: State) -> State:
    return checkpoint.crash(checkpoint.save(s), s.half_end, s.op_end)


def _crash_twice(s: State, half: Number, op: Number, halves: Number, ops: Number) -> State:
    return checkpoint.crash(checkpoint.crash(s, half, op), halves, ops)


def what_a_crash_leaves_is_on_disk(s: State, half: Number, op: Number, halves: Number, ops: Number) -> bool:
    """Otherwise a broker starts with records that the next crash takes, or cannot save its cursor.

    Source: docs/rocketmq.md#recovery.
    """
    left = accepts(checkpoint.crash, s, half, op)
    return accepts(_crash_twice, s, half, op, halves, ops) == (left and halves == half and ops == op)


def an_op_of_an_earlier_version_resolves_the_half(s: State, number: Number, by: Number) -> bool:
    """Otherwise a half decided before it came back is asked about again, or an undecided one is not."""
    there = s.half_cursor <= number and number < s.half_end
    left = (s.op_cursor <= by and by < s.op_end) or (by == NO_NUMBER and s.expired != 0)
    return accepts(checkpoint.resolve, s, number, How.EARLIER, by) == (there and left)


def _named_and_flushed(s: State, number: Number, by: Number, copy: Number) -> State:
    return checkpoint.flush(checkpoint.resolve(s, number, How.OP, by), s.half_end, s.op_end, copy)


def _replaced_and_flushed(s: State, number: Number, by: Number, copy: Number) -> State:
    return checkpoint.flush(checkpoint.resolve(s, number, How.VERSION, by), s.half_end, s.op_end, copy)


def _found_decided_and_flushed(s: State, number: Number, by: Number, copy: Number) -> State:
    return checkpoint.flush(checkpoint.resolve(s, number, How.EARLIER, by), s.half_end, s.op_end, copy)


def only_copies_count_as_set_aside(s: State, number: Number, by: Number, copy: Number) -> bool:
    """Otherwise a copy that was never written counts as on disk."""
    named = accepts(_named_and_flushed, s, number, by, copy)
    replaced = accepts(_replaced_and_flushed, s, number, by, copy)
    earlier = accepts(_found_decided_and_flushed, s, number, by, copy)
    return implies(s.copy_end < copy, not named and not replaced and not earlier)


ENABLED = (
    a_check_service_begins_at_rest,
    what_has_begun_is_on_disk,
    halves_come_one_by_one,
    ops_come_one_by_one,
    an_op_resolves_the_halves_up_to_its_reach,
    a_version_resolves_the_halves_before_it,
    a_copy_resolves_its_half,
    a_round_that_finds_nothing_is_one,
    all_that_is_in_the_log_can_be_flushed,
    a_broker_starts_again_with_what_is_left,
    who_has_passed_all_is_at_rest,
)
ENABLED_AFTER_DEVIATIONS = (
    what_was_never_saved_begins_where_the_queues_were_found,
    a_broker_starts_again_where_it_saved,
    what_a_crash_leaves_is_on_disk,
    an_op_of_an_earlier_version_resolves_the_half,
    only_copies_count_as_set_aside,
)
