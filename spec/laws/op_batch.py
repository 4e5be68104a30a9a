"""Laws of `op_batch`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import op_batch
from gapless.spec.language import Number, accepts, implies
from gapless.spec.op_batch import State


def a_batcher_is_held_against_its_own_settings(s: State, max_size: int, interval: int) -> bool:
    """Otherwise a full batch continues to grow, or a decided half waits for longer than it should."""
    if not accepts(op_batch.open, s, max_size, interval):
        return True
    after = op_batch.open(s, max_size, interval)
    return after.max_size == max_size and after.interval == interval


def a_batcher_is_opened_once(s: State, max_size: int, interval: int) -> bool:
    """Otherwise two batchers are taken for one."""
    if not accepts(op_batch.open, s, max_size, interval):
        return True
    return not accepts(op_batch.open, op_batch.open(s, max_size, interval), 0, 0)


def what_was_decided_is_heard(s: State, number: Number, length: int) -> bool:
    """Otherwise it has no op, and is asked about again."""
    room = s.max_size <= 0 or s.size < s.max_size
    is_new = 0 < length and not op_batch.is_entered(s, number)
    return implies(room and is_new, accepts(op_batch.enqueue, s, number, length, True))  # noqa: FBT003


def who_was_heard_waits(s: State, number: Number, length: int, known: bool) -> bool:
    """Otherwise no op ever names it, and it is asked about again."""
    if not accepts(op_batch.enqueue, s, number, length, known):
        return True
    return op_batch.waits(op_batch.enqueue(s, number, length, known), number)


def only_what_is_in_the_log_is_entered(s: State, number: Number, length: int) -> bool:
    """Otherwise the check service skips a half that is yet to come."""
    return not accepts(op_batch.enqueue, s, number, length, False)  # noqa: FBT003


def a_limit_of_another_life_holds_nobody_up(s: State, number: Number, length: int) -> bool:
    """Otherwise a broker is accused of a limit that it did not have then."""
    is_new = 0 < length and not op_batch.is_entered(s, number)
    return implies(is_new, accepts(op_batch.enqueue, op_batch.restart(s), number, length, True))  # noqa: FBT003


def what_waits_can_be_written(s: State) -> bool:
    """Otherwise it waits for ever, though its op is full or its time has come."""
    ready = s.written < s.entered and s.restarted == 0
    return implies(ready, accepts(op_batch.write, s, s.entered - s.written, s.size, s.longest, True, True))  # noqa: FBT003


def an_op_names_what_was_taken_into_it(s: State, count: int, size: int, last: int, number: Number) -> bool:
    """Otherwise the check service skips a half that was never decided, or asks about one that was."""
    if not accepts(op_batch.write, s, count, size, last, True, True):  # noqa: FBT003
        return True
    return accepts(op_batch.name, op_batch.write(s, count, size, last, True, True), number) == op_batch.waits(s, number)  # noqa: FBT003


def who_comes_behind_an_op_is_not_named_by_it(s: State, number: Number, length: int) -> bool:
    """Otherwise the check service skips a half whose op is not in the log yet."""
    return not accepts(enqueue_and_name, s, number, length)


def enqueue_and_name(s: State, number: Number, length: int) -> State:
    """A decided half waits for its op, and is looked for in the op before that."""
    return op_batch.name(op_batch.enqueue(s, number, length, True), number)  # noqa: FBT003


def an_op_that_nobody_can_read_is_none(s: State, count: int, size: int, last: int) -> bool:
    """Otherwise decided halves are asked about again."""
    torn = accepts(op_batch.write, s, count, size, last, True, False)  # noqa: FBT003
    return not torn and not accepts(op_batch.write, s, count, size, last, False, True)  # noqa: FBT003


def time_goes_on_where_nobody_waits(s: State, time: int, later: int) -> bool:
    """Otherwise a broker is accused of what it does not owe, or a clock that steps back is not noticed."""
    if (s.written < s.entered and 0 < s.interval) or time < s.clock or later < time:
        return True
    back = accepts(two_ticks, s, later, time)
    return accepts(two_ticks, s, time, later) and (later == time or not back)


def two_ticks(s: State, time: int, later: int) -> State:
    """The clock is looked at twice."""
    return op_batch.tick(op_batch.tick(s, time), later)


def the_clock_may_be_read_again(s: State) -> bool:
    """Otherwise two looks within one millisecond are an accusation."""
    return accepts(op_batch.tick, s, s.clock)


def who_has_come_to_rest_may_stop(s: State) -> bool:
    """Otherwise decided halves are lost in an orderly stop, or there is none."""
    waiting = s.written < s.entered
    return accepts(op_batch.stop, s) != waiting and op_batch.no_half_waits_for_its_op(s) != waiting


ENABLED = (
    a_batcher_is_held_against_its_own_settings,
    a_batcher_is_opened_once,
    what_was_decided_is_heard,
    who_was_heard_waits,
    only_what_is_in_the_log_is_entered,
    a_limit_of_another_life_holds_nobody_up,
    what_waits_can_be_written,
    an_op_names_what_was_taken_into_it,
    who_comes_behind_an_op_is_not_named_by_it,
    an_op_that_nobody_can_read_is_none,
    time_goes_on_where_nobody_waits,
    the_clock_may_be_read_again,
    who_has_come_to_rest_may_stop,
)
