"""RocketMQ's deviations with its cursors."""

from gapless.spec import checkpoint
from gapless.spec.checkpoint import State
from gapless.spec.language import Deviation, Number, accepts, applies, replace


def consume_an_op_that_is_still_needed(s: State, number: Number) -> State:
    """An immune half takes its op with it, whatever other halves the op names; so does a round that was cut short."""
    applies(s.half_cursor < s.reaches[number])
    return checkpoint.consume_op(replace(s, reaches=s.reaches.set(number, s.half_cursor)), number)


def save_ahead_of_the_flush(s: State) -> State:
    """The cursors' file is written every five seconds, whatever of the log is on disk by then."""
    applies(not checkpoint.is_flushed(s) or not checkpoint.is_resolved_for_good(s))
    return replace(s, half_saved=s.half_cursor, op_saved=s.op_cursor)


def crash_behind_a_saved_cursor(s: State, half: Number, op: Number) -> State:
    """A cursor that lies beyond the end of its queue is corrected when the broker starts."""
    applies(half < s.half_saved or op < s.op_saved)
    saved = replace(
        s,
        half_saved=half if half < s.half_saved else s.half_saved,
        op_saved=op if op < s.op_saved else s.op_saved,
    )
    return checkpoint.crash(saved, half, op)


# -- what can be done ----------------------------------------------------------------------------------------------


def an_op_is_consumed_in_time_or_too_early(s: State, number: Number) -> bool:
    """Otherwise a broker is accused of what RocketMQ does to ops, or consumes what is not there."""
    consumed = accepts(checkpoint.consume_op, s, number) or accepts(consume_an_op_that_is_still_needed, s, number)
    return consumed == (s.op_cursor <= number and number < s.op_end)


def cursors_are_saved_whatever_is_on_disk(s: State) -> bool:
    """Otherwise it is unknown what the next crash skips."""
    if not accepts(save_ahead_of_the_flush, s):
        return accepts(checkpoint.save, s)
    after = save_ahead_of_the_flush(s)
    return after.half_saved == s.half_cursor and after.op_saved == s.op_cursor


def a_broker_starts_again_wherever_its_cursors_were_saved(s: State, half: Number, op: Number) -> bool:
    """Otherwise a cursor that RocketMQ corrects is blamed on it."""
    left = s.half_flushed <= half and half <= s.half_end and s.op_flushed <= op and op <= s.op_end
    started = accepts(checkpoint.crash, s, half, op) or accepts(crash_behind_a_saved_cursor, s, half, op)
    return started == left


DEVIATIONS = (
    Deviation(consume_an_op_that_is_still_needed, checkpoint.consume_op, frozenset({"rocketmq"}),
        "docs/rocketmq-transactions.md#n16, #aborted-round; apache/rocketmq#7240, apache/rocketmq#9500"),
    Deviation(save_ahead_of_the_flush, checkpoint.save, frozenset({"rocketmq"}),
        "docs/rocketmq-transactions.md#tx9: cursors are stored after records are in the page cache; #n15"),
    Deviation(crash_behind_a_saved_cursor, checkpoint.crash, frozenset({"rocketmq"}),
        "docs/rocketmq-transactions.md#n15: stored cursors are corrected in either direction"),
)
GIVEN_UP = (
    checkpoint.a_half_is_resolved_by_a_record,
    checkpoint.an_op_is_needed_until_its_halves_are_passed,
    checkpoint.an_op_is_read_again_after_a_crash_if_its_halves_are,
    checkpoint.no_saved_cursor_is_ahead_of_what_is_flushed,
    checkpoint.a_crash_leaves_what_resolves_a_half_that_is_passed_for_good,
    checkpoint.cursors_never_step_back,
    checkpoint.what_was_passed_stays_as_it_was,
)
ENABLED = (
    an_op_is_consumed_in_time_or_too_early,
    cursors_are_saved_whatever_is_on_disk,
    a_broker_starts_again_wherever_its_cursors_were_saved,
)
