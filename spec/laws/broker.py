"""Laws of `broker`: what is enabled in every state in which its invariants hold.

A helper's name says which steps it takes, one after the other.
"""

from gapless.spec import broker
from gapless.spec.broker import Counter, State
from gapless.spec.language import Number, Position, accepts, implies


def one_half_is_taken_wherever_a_record_is(
    s: State, number: Number, position: Position, group: int, queue: int
) -> bool:
    """Otherwise a producer cannot send, or one message is prepared twice."""
    has_room = accepts(broker.append, s, position)
    taken = accepts(broker.prepare, s, number, position, group, queue)
    return taken == (has_room and s.newest < 0 and 0 <= number)


def _prepared_and_answered(s: State, number: Number, group: int, queue: int) -> State:
    return broker.answer(broker.prepare(s, number, s.end, group, queue))


def a_producer_is_told_that_its_half_is_on_disk_and_of_nothing_else(
    s: State, number: Number, group: int, queue: int
) -> bool:
    """Otherwise it waits for ever, or pays for a message that a crash takes away.

    Source: docs/proposals.md#phase-answer.
    """
    answered = accepts(broker.answer, s) == (0 < s.stored)
    too_early = accepts(_prepared_and_answered, s, number, group, queue)
    return implies(s.acknowledged == 0, answered and not too_early)


def _answered_and_run(s: State) -> State:
    return broker.run(broker.answer(s))


def _run_twice(s: State) -> State:
    return broker.run(broker.run(s))


def who_was_told_runs_its_local_transaction_once(s: State) -> bool:
    """Otherwise nothing is paid although the half is safe, or twice.

    Source: docs/proposals.md#phase-local.
    """
    waits = s.acknowledged == 0 and s.runs == 0 and s.gave_up == 0
    return implies(waits, accepts(_answered_and_run, s) == (0 < s.stored)) and not accepts(_run_twice, s)


def a_broker_that_runs_may_crash_at_any_time(s: State) -> bool:
    """Otherwise a broker that loses nothing which it owes is accused.

    Source: docs/rocketmq.md#recovery.
    """
    return accepts(broker.crash, s) == (0 < s.lives)


def what_is_at_rest_is_neither_asked_about_nor_set_aside(s: State, number: Number) -> bool:
    """Otherwise a waiting transaction is left alone, or a finished one is called open.

    Source: docs/proposals.md#back-check.
    """
    asked = accepts(broker.check, s, number, s.end, Counter(s.checks + 1), s.group)
    left = asked or accepts(broker.park, s, s.end, s.checks)
    has_room = accepts(broker.append, s, s.end) and s.newest < number
    return implies(has_room, broker.the_transaction_is_decided_or_set_aside(s) == (not left))


def what_is_at_rest_needs_no_op(s: State) -> bool:
    """Otherwise a half that was decided is asked about again after the next start.

    Source: docs/proposals.md#one-op-each.
    """
    has_room = accepts(broker.append, s, s.end)
    return implies(has_room, broker.an_op_names_what_was_decided(s) == (not accepts(broker.mark, s, s.end)))


def what_is_at_rest_needs_no_entry(s: State) -> bool:
    """Otherwise a message was promised that no consumer receives, or one is missed that consumers have.

    Source: docs/proposals.md#commit.
    """
    on_disk = s.final < s.flushed
    return implies(on_disk, broker.consumers_see_what_was_committed(s) == (not accepts(broker.dispatch, s, s.final)))


def what_is_at_rest_needs_no_flush(s: State) -> bool:
    """Otherwise what was decided can still be lost, or a broker flushes for ever."""
    return broker.every_record_is_on_disk(s) == (not accepts(broker.flush, s))


ENABLED = (
    one_half_is_taken_wherever_a_record_is, a_producer_is_told_that_its_half_is_on_disk_and_of_nothing_else,
    who_was_told_runs_its_local_transaction_once, a_broker_that_runs_may_crash_at_any_time,
    what_is_at_rest_is_neither_asked_about_nor_set_aside, what_is_at_rest_needs_no_op,
    what_is_at_rest_needs_no_entry, what_is_at_rest_needs_no_flush,
)
