"""Laws of `check_service`: what is enabled in every state in which its invariants hold.

A helper's name says which steps it takes, one after the other.
"""

from gapless.spec import check_service, checkpoint, transaction  # noqa: F401 - whose words are spoken here, too
from gapless.spec.check_service import State
from gapless.spec.checkpoint import How
from gapless.spec.language import Number, accepts, implies
from gapless.spec.transaction import Phase


def rest_comes_with_a_decision_and_its_op(s: State) -> bool:
    """Otherwise a half that is left undecided is taken for done, or rest never comes."""
    if not accepts(_prepare_and_commit, s):
        return True
    begun = check_service.the_half_is_decided_or_set_aside(s) and check_service.an_op_names_what_was_decided(s)
    half = check_service.prepare(s)
    final = _prepare_and_commit(s)
    undecided = not check_service.the_half_is_decided_or_set_aside(half)
    unended = not check_service.every_half_is_done_with(half)
    decided = check_service.the_half_is_decided_or_set_aside(final)
    return begun and undecided and unended and decided and not check_service.an_op_names_what_was_decided(final)


def _prepare_and_commit(s: State) -> State:
    return check_service.commit(check_service.prepare(s))


def a_producer_that_answers_is_heard(s: State) -> bool:
    """Otherwise it is asked again, and may say something else."""
    return (accepts(check_service.commit, s) and accepts(check_service.roll_back, s)) == (s.phase == Phase.PREPARED)


def a_half_is_put_back_or_set_aside(s: State) -> bool:
    """Otherwise its producer is never asked again, or it is given up while its producer may still answer."""
    asked = implies(s.phase == Phase.PREPARED, accepts(check_service.put_back, s) or accepts(check_service.park, s))
    both = accepts(check_service.put_back, s) and accepts(check_service.park, s)
    return asked and implies(0 < s.max_checks, not both)


def _opened_twice(s: State, max_checks: int, more: int) -> State:
    return check_service.open(check_service.open(s, max_checks), more)


def a_new_half_queue_is_found_once(s: State, max_checks: int, more: int) -> bool:
    """Otherwise a check service never begins, or two are taken for one."""
    is_new = s.phase == Phase.ABSENT and s.opened == 0 and s.half_end == 0 and s.op_end == 0
    found = accepts(check_service.open, s, max_checks)
    return found == is_new and not accepts(_opened_twice, s, max_checks, more)


def a_half_may_come_in_at_any_time(s: State) -> bool:
    """Otherwise a message cannot be sent, is prepared twice, or is never looked at."""
    prepared = accepts(check_service.prepare, s) == (s.phase == Phase.ABSENT)
    if not accepts(check_service.other_half, s):
        return False
    return prepared and not check_service.every_half_is_done_with(check_service.other_half(s))


def a_producer_commits_or_rolls_back_while_its_half_is_open(s: State) -> bool:
    """Otherwise it is heard too late and says something else, or is asked again.

    Source: docs/proposals.md#phase-end.
    """
    is_open = s.phase == Phase.PREPARED
    return accepts(check_service.commit, s) == is_open and accepts(check_service.roll_back, s) == is_open


def what_is_decided_is_entered_once(s: State, number: Number, length: int) -> bool:
    """Otherwise a decided half is asked about again, or one is forgotten that was never decided.

    Source: docs/proposals.md#batched-ops.
    """
    entered = accepts(check_service.enqueue, s, number, length)
    if length <= 0 or number < 0 or s.half_end <= number:
        return not entered
    place = s.places[number]
    if 0 <= place and place < s.entered and s.entries[Number(place)] == number:
        return not entered  # it was entered before
    if number != s.newest:
        return entered == (not check_service.is_version(s, number))
    return entered == (s.phase == Phase.COMMITTED or s.phase == Phase.ROLLED_BACK)


def _entered_and_written(s: State, number: Number, length: int) -> State:
    return check_service.write(check_service.enqueue(s, number, length))


def who_was_entered_has_its_op(s: State, number: Number, length: int) -> bool:
    """Otherwise it is asked about again."""
    entered = accepts(check_service.enqueue, s, number, length)
    return accepts(_entered_and_written, s, number, length) == entered


def _written_and_resolved(s: State, number: Number) -> State:
    return check_service.resolve(check_service.write(s), number, How.OP, s.op_end)


def an_op_resolves_what_waited_for_it(s: State, number: Number) -> bool:
    """Otherwise a decided half is asked about again.

    Source: docs/proposals.md#one-op-each.
    """
    resolved = accepts(_written_and_resolved, s, number)
    written = accepts(check_service.write, s) == (s.written < s.entered)
    return written and implies(check_service.waits(s, number) and s.half_cursor <= number, resolved)


def an_op_in_the_log_resolves_the_half_that_it_names(s: State, number: Number, by: Number) -> bool:
    """Otherwise a decided half is asked about again, or one is forgotten that was never decided."""
    there = s.half_cursor <= number and number < s.half_end and s.op_cursor <= by and by < s.op_end
    named = number < s.reaches[by] and (not check_service.is_version(s, number) or (number == s.newest and by == s.op))
    return accepts(check_service.resolve, s, number, How.OP, by) == (there and named)


def an_op_of_an_earlier_version_resolves_no_half_that_is_followed(s: State, number: Number, by: Number) -> bool:
    """Otherwise the newest version is asked about for ever, or never."""
    there = s.half_cursor <= number and number < s.half_end and s.op_cursor <= by and by < s.op_end
    ours = check_service.is_version(s, number)
    return accepts(check_service.resolve, s, number, How.EARLIER, by) == (there and not ours)


def a_version_resolves_the_half_that_was_put_back(s: State, number: Number, by: Number) -> bool:
    """Otherwise it is asked about twice, or a transaction is forgotten."""
    there = s.half_cursor <= number and number < by and by < s.half_end
    ours = check_service.is_version(s, number)
    replaced = not ours or (number < s.newest and check_service.is_version(s, by))
    return accepts(check_service.resolve, s, number, How.VERSION, by) == (there and replaced)


def _put_back_and_resolved(s: State) -> State:
    return check_service.resolve(check_service.put_back(s), s.newest, How.VERSION, s.half_end)


def a_half_is_put_back_while_checks_are_left(s: State) -> bool:
    """Otherwise its producer is never asked again, or it is asked for ever.

    Source: docs/proposals.md#back-check.
    """
    left = s.max_checks == 0 or s.checks < s.max_checks
    return accepts(_put_back_and_resolved, s) == (s.phase == Phase.PREPARED and left)


def _parked_and_resolved(s: State, by: Number) -> State:
    return check_service.resolve(check_service.park(s), s.newest, How.COPY, by)


def a_half_is_set_aside_after_its_last_check(s: State, by: Number) -> bool:
    """Otherwise it is given up while its producer may still answer, or asked about after that."""
    spent = s.phase == Phase.PREPARED and s.max_checks <= s.checks
    return accepts(_parked_and_resolved, s, by) == (spent and 0 <= by)


def a_copy_resolves_the_half_that_was_set_aside(s: State, number: Number, by: Number) -> bool:
    """Otherwise what was given up is asked about again, or a transaction is forgotten."""
    there = s.half_cursor <= number and number < s.half_end and 0 <= by
    aside = not check_service.is_version(s, number) or (number == s.newest and s.phase == Phase.PARKED)
    return accepts(check_service.resolve, s, number, How.COPY, by) == (there and aside)


def _replaced_and_passed(s: State, by: Number) -> State:
    return check_service.advance(
        check_service.resolve(s, s.half_cursor, How.VERSION, by), Number(s.half_cursor + 1)
    )


def the_half_cursor_passes_what_is_resolved(s: State, by: Number) -> bool:
    """Otherwise the check service comes to a stand."""
    resolved = accepts(check_service.resolve, s, s.half_cursor, How.VERSION, by)
    return accepts(_replaced_and_passed, s, by) == resolved and accepts(check_service.advance, s, s.half_cursor)


def rest_comes_when_the_last_half_is_passed(s: State, to: Number) -> bool:
    """Otherwise a half is asked about again after the next start, or rest never comes."""
    if not accepts(check_service.advance, s, to):
        return True
    return check_service.every_half_is_done_with(check_service.advance(s, to)) == (to == s.half_end)


def an_op_is_consumed_once_its_halves_are_passed(s: State, number: Number) -> bool:
    """Otherwise ops are read again after each start, or a decided half is asked about again."""
    there = s.op_cursor <= number and number < s.op_end and s.reaches[number] <= s.half_cursor
    return accepts(check_service.consume_op, s, number) == there


def _op_passed(s: State, number: Number) -> State:
    return check_service.advance_ops(check_service.consume_op(s, number), Number(number + 1))


def _op_passed_and_consumed(s: State, number: Number) -> State:
    return check_service.consume_op(_op_passed(s, number), number)


def the_op_cursor_passes_what_is_consumed(s: State) -> bool:
    """Otherwise there are ever more ops to read after each start, or one that was done with counts again."""
    there = s.op_cursor < s.op_end and s.reaches[s.op_cursor] <= s.half_cursor
    passed = accepts(_op_passed, s, s.op_cursor) == there
    return passed and accepts(check_service.advance_ops, s, s.op_cursor) and not accepts(
        _op_passed_and_consumed, s, s.op_cursor
    )


def _saved_and_crashed(s: State) -> State:
    return check_service.crash(check_service.save(s))


def who_starts_again_goes_on_where_it_saved(s: State) -> bool:
    """Otherwise what was done with is done again after each start, or what was not is skipped."""
    if not accepts(check_service.crash, s) or not accepts(_saved_and_crashed, s):
        return False
    after = check_service.crash(s)
    saved = _saved_and_crashed(s)
    kept = after.half_cursor == s.half_saved and after.op_cursor == s.op_saved
    return kept and saved.half_cursor == s.half_cursor and saved.op_cursor == s.op_cursor


def _crashed_and_committed(s: State) -> State:
    return check_service.commit(check_service.crash(s))


def _crashed_and_written(s: State) -> State:
    return check_service.write(check_service.crash(s))


def what_waits_is_lost_in_a_crash(s: State) -> bool:
    """Otherwise a rollback counts that nothing tells of, or a producer that was heard is asked again.

    Source: docs/rocketmq-transactions.md#op-crash.
    """
    if s.phase == Phase.ROLLED_BACK:
        undone = not check_service.is_named(s, s.newest)
        return accepts(_crashed_and_committed, s) == undone
    is_open = s.phase == Phase.PREPARED
    return accepts(_crashed_and_committed, s) == is_open and not accepts(_crashed_and_written, s)


def what_is_at_rest_is_neither_put_back_nor_set_aside(s: State) -> bool:
    """Otherwise a half that waits for its producer is left alone, or one that is over is called open."""
    left = accepts(check_service.put_back, s) or accepts(check_service.park, s)
    return check_service.the_half_is_decided_or_set_aside(s) == (not left)


def what_is_at_rest_needs_no_op(s: State) -> bool:
    """Otherwise a half that was decided is asked about again after the next start."""
    if s.written != s.entered:
        return True  # an op is due
    return check_service.an_op_names_what_was_decided(s) == (not accepts(check_service.enqueue, s, s.newest, 1))


ENABLED = (
    rest_comes_with_a_decision_and_its_op, a_producer_that_answers_is_heard, a_half_is_put_back_or_set_aside,
    a_new_half_queue_is_found_once, a_half_may_come_in_at_any_time,
    a_producer_commits_or_rolls_back_while_its_half_is_open, what_is_decided_is_entered_once,
    who_was_entered_has_its_op, an_op_resolves_what_waited_for_it, an_op_in_the_log_resolves_the_half_that_it_names,
    an_op_of_an_earlier_version_resolves_no_half_that_is_followed, a_version_resolves_the_half_that_was_put_back,
    a_half_is_put_back_while_checks_are_left, a_half_is_set_aside_after_its_last_check,
    a_copy_resolves_the_half_that_was_set_aside, the_half_cursor_passes_what_is_resolved,
    rest_comes_when_the_last_half_is_passed, an_op_is_consumed_once_its_halves_are_passed,
    the_op_cursor_passes_what_is_consumed, who_starts_again_goes_on_where_it_saved, what_waits_is_lost_in_a_crash,
    what_is_at_rest_is_neither_put_back_nor_set_aside, what_is_at_rest_needs_no_op,
)
