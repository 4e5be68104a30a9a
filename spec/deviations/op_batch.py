"""RocketMQ's deviations from the design of the op batcher."""

from gapless.spec import op_batch
from gapless.spec.language import Deviation, Number, accepts, applies, implies, replace
from gapless.spec.op_batch import State

ROCKETMQ = frozenset({"rocketmq"})


def enqueue_again(s: State, number: Number, length: int, known: bool) -> State:
    """Every decision that is accepted has its entry: a repeated one names the half again."""
    applies(op_batch.is_entered(s, number))
    free = replace(s, max_size=0, places=s.places.set(number, op_batch.NOWHERE))
    return replace(op_batch.enqueue(free, number, length, known), max_size=s.max_size)


def enqueue_behind_a_full_batch(s: State, number: Number, length: int, known: bool) -> State:
    """An entry wakes the batcher without waiting for it: 20,000 numbers may lie in its queue."""
    applies(s.restarted == 0)
    applies(0 < s.max_size and s.max_size <= s.size)
    return replace(op_batch.enqueue(replace(s, max_size=0), number, length, known), max_size=s.max_size)


def _of_an_earlier_life(s: State) -> State:
    """The state without its limit, if an earlier life of the broker may have had another."""
    return replace(s, max_size=0) if s.restarted > 0 else s


def write_one_alone(s: State, count: int, size: int, last: int, legible: bool, listed: bool) -> State:
    """A broker older than the batches writes one op for each half, and no comma in it."""
    applies(not listed)
    applies(count == 1)
    applies(s.max_size <= 0 or 0 < s.restarted or s.entered == s.written + 1)
    after = op_batch.written(_of_an_earlier_life(s), count, size, last, legible, True)  # noqa: FBT003
    return replace(after, max_size=s.max_size, since=s.clock)


def write_to_another_size(s: State, count: int, size: int, last: int, legible: bool, listed: bool) -> State:
    """The limit was another when the op was written."""
    applies(s.restarted > 0)
    after = op_batch.written(_of_an_earlier_life(s), count, size, last, legible, listed)
    return replace(after, max_size=s.max_size, since=s.clock)


def write_what_fills_an_op(s: State, count: int, size: int, last: int, legible: bool, listed: bool) -> State:
    """The batcher takes numbers until the body is full, and leaves the others for the next op."""
    applies(s.restarted == 0)
    applies(s.max_size <= size and count < s.entered - s.written)
    return replace(op_batch.written(s, count, size, last, legible, listed), since=s.clock)


def wait_for_another_interval(s: State, time: int) -> State:
    """An entry that comes right after a tick misses the next one too."""
    applies(0 < s.interval and s.written < s.entered)
    applies(s.interval < time - s.since)
    return op_batch.tick(replace(s, since=s.since + s.interval), time)


def stop_with_entries_waiting(s: State) -> State:
    """Entries younger than the interval are lost even in an orderly stop."""
    applies(s.written < s.entered)
    return op_batch.crash(s)


def an_op_of_one_life_is_full_or_takes_all(before: State, after: State) -> bool:
    """Otherwise a decided half waits for nothing, and is asked about again."""
    return implies(before.restarted == 0, op_batch.an_op_is_full_or_takes_all(before, after))


def a_body_of_one_life_is_bounded(before: State, after: State) -> bool:
    """Otherwise one op grows until no broker can store it."""
    return implies(before.restarted == 0, op_batch.a_body_is_bounded(before, after))


def who_came_behind_a_full_op_waits_for_the_next(s: State, number: Number) -> bool:
    """Otherwise a broker is accused whose batch was full when one more came, be its number of one byte."""
    full = 0 < s.max_size and s.max_size <= s.size and s.size - s.longest < s.max_size and s.written < s.entered
    new = s.restarted == 0 and not op_batch.is_entered(s, number)
    return implies(full and new, accepts(_fill_an_op_and_leave_one, s, number))


def _fill_an_op_and_leave_one(s: State, number: Number) -> State:
    more = enqueue_behind_a_full_batch(s, number, 1, True)  # noqa: FBT003
    return write_what_fills_an_op(more, s.entered - s.written, s.size, s.longest, True, True)  # noqa: FBT003


def every_decision_is_entered(s: State, number: Number, length: int, known: bool) -> bool:
    """Otherwise a broker is accused of taking numbers behind a full batch, or numbers that it knew."""
    designed = accepts(op_batch.enqueue, s, number, length, known)
    again = accepts(enqueue_again, s, number, length, known)
    behind = accepts(enqueue_behind_a_full_batch, s, number, length, known)
    return (designed or again or behind) == (known and 0 < length)


def an_entry_misses_one_tick_at_most(s: State, time: int) -> bool:
    """Otherwise a broker is accused of its clock, or a decided half may wait for ever."""
    ticks = accepts(op_batch.tick, s, time) or accepts(wait_for_another_interval, s, time)
    in_time = s.written == s.entered or s.interval <= 0 or time - s.since <= s.interval + s.interval
    return ticks == (s.clock <= time and in_time)


def a_broker_may_stop_whatever_waits(s: State) -> bool:
    """Otherwise a stop in order is an anomaly, or one that loses entries is none."""
    return accepts(stop_with_entries_waiting, s) != accepts(op_batch.stop, s)


def an_op_may_be_of_another_size_in_another_life(s: State, last: int) -> bool:
    """Otherwise a broker is accused of a limit that it did not have then."""
    due = s.written < s.entered and 0 < s.restarted and last <= s.longest
    taken = accepts(write_to_another_size, s, s.entered - s.written, s.size, last, True, True)  # noqa: FBT003
    return taken == due


def who_is_left_behind_by_a_full_op_waits_anew(s: State, count: int, size: int, last: int) -> bool:
    """Otherwise a broker is accused of an interval that began with an op that is written.

    Source: docs/rocketmq-transactions.md#op-interval.
    """
    return not accepts(write_what_fills_an_op, s, count, size, last, True, True) or (  # noqa: FBT003
        write_what_fills_an_op(s, count, size, last, True, True).since == s.clock  # noqa: FBT003 - an event's flags
    )


def who_is_left_behind_by_an_op_of_one_waits_anew(s: State, size: int, last: int) -> bool:
    """Otherwise a broker older than the batches is accused of an interval that it does not have."""
    return not accepts(write_one_alone, s, 1, size, last, True, False) or (  # noqa: FBT003
        write_one_alone(s, 1, size, last, True, False).since == s.clock  # noqa: FBT003 - an event's flags
    )


def who_is_left_behind_by_an_op_of_another_size_waits_anew(s: State, count: int, size: int, last: int) -> bool:
    """Otherwise a broker is accused of an interval that began with an op that is written."""
    return not accepts(write_to_another_size, s, count, size, last, True, True) or (  # noqa: FBT003
        write_to_another_size(s, count, size, last, True, True).since == s.clock  # noqa: FBT003 - an event's flags
    )


def an_op_that_is_no_list_names_one_half(s: State, count: int, size: int, last: int) -> bool:
    """Otherwise a broker is excused that forgets to separate what an op names.

    Source: docs/rocketmq-transactions.md#ops.
    """
    return implies(accepts(write_one_alone, s, count, size, last, True, False), count == 1)  # noqa: FBT003


def an_op_for_each_half_leaves_the_others_waiting(s: State) -> bool:
    """Otherwise a broker older than the batches is accused of what its ops do not name.

    Source: docs/rocketmq-transactions.md#ops.
    """
    free = s.max_size <= 0 or 0 < s.restarted
    others = s.written + 1 < s.entered
    return implies(free and others, accepts(write_one_alone, s, 1, 1, s.longest, True, False))  # noqa: FBT003


DEVIATIONS = (
    Deviation(enqueue_again, op_batch.enqueue, ROCKETMQ, "docs/rocketmq-transactions.md#n5: ops repeat a half"),
    Deviation(enqueue_behind_a_full_batch, op_batch.enqueue, ROCKETMQ,
        "docs/rocketmq-transactions.md#batching: the service is woken, and the call returns at once; #op-size"),
    Deviation(write_one_alone, op_batch.write, ROCKETMQ,
        "docs/rocketmq-transactions.md#ops: brokers up to 5.0 write one op for each half"),
    Deviation(write_to_another_size, op_batch.write, ROCKETMQ,
        "docs/rocketmq.md#settings-at-run-time: transactionOpMsgMaxSize was changed"),
    Deviation(write_what_fills_an_op, op_batch.write, ROCKETMQ,
        "docs/rocketmq-transactions.md#op-size: it takes numbers until the body is full"),
    Deviation(wait_for_another_interval, op_batch.tick, ROCKETMQ,
        "docs/rocketmq-transactions.md#op-interval: up to twice the interval; apache/rocketmq#10199"),
    Deviation(stop_with_entries_waiting, op_batch.stop, ROCKETMQ,
        "docs/rocketmq-transactions.md#op-stop: what is younger than the interval is lost in a stop"),
)
GIVEN_UP = (
    op_batch.a_half_is_named_once,
    op_batch.a_batch_is_bounded,
    op_batch.an_op_takes_all_that_waits,
    op_batch.what_an_op_names_it_names_for_ever,
    op_batch.an_op_is_full_or_takes_all,
    op_batch.a_body_is_bounded,
)
ENABLED = (
    who_came_behind_a_full_op_waits_for_the_next, every_decision_is_entered, an_entry_misses_one_tick_at_most,
    a_broker_may_stop_whatever_waits, an_op_may_be_of_another_size_in_another_life,
    who_is_left_behind_by_a_full_op_waits_anew, who_is_left_behind_by_an_op_of_one_waits_anew,
    who_is_left_behind_by_an_op_of_another_size_waits_anew, an_op_that_is_no_list_names_one_half,
    an_op_for_each_half_leaves_the_others_waiting,
)
STEP_PROPERTIES = (an_op_of_one_life_is_full_or_takes_all, a_body_of_one_life_is_bounded)
