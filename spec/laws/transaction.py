"""Laws of `transaction`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import transaction
from gapless.spec.language import Number, Position, accepts, implies
from gapless.spec.transaction import NOWHERE, Phase, State


def _rolled_back(s: State) -> State:
    return transaction.roll_back(transaction.ask_to_roll_back(s, s.newest), s.newest)


def _crashed_and_rolled_back(s: State) -> State:
    return _rolled_back(transaction.crash(_rolled_back(s)))


def _marked_and_crashed_and_rolled_back(s: State) -> State:
    return _rolled_back(transaction.crash(transaction.mark(_rolled_back(s), s.newest)))


def a_rollback_is_as_durable_as_its_op(s: State) -> bool:
    """Otherwise a producer that was not heard is never asked again, or one that was heard is."""
    undone = accepts(_crashed_and_rolled_back, s)
    return undone == (s.phase == Phase.PREPARED) and not accepts(_marked_and_crashed_and_rolled_back, s)


def _reported(s: State, number: Number) -> State:
    asked = transaction.ask_to_commit(s, s.newest)
    committed = transaction.commit(asked, s.newest, s.positions[s.newest], NOWHERE, True, False)  # noqa: FBT003
    return transaction.acknowledge(committed, number)


def _reported_again(s: State, number: Number) -> State:
    return transaction.acknowledge(_reported(s, number), number)


def a_producer_is_told_of_its_commit(s: State, number: Number) -> bool:
    """Otherwise it waits for ever, or believes that consumers see messages they never will."""
    may_be_reported = s.phase == Phase.PREPARED and number == s.newest
    return accepts(_reported, s, number) == may_be_reported and accepts(_reported_again, s, number) == may_be_reported


def nobody_is_asked_about_what_is_not_there(s: State, number: Number, half: Position) -> bool:
    """Otherwise the producer's answer finds no half, and the transaction stays open."""
    return implies(s.positions[number] < 0, not accepts(transaction.ask_back, s, number, half))


def what_is_at_rest_is_neither_asked_about_nor_set_aside(s: State, number: Number, position: Position) -> bool:
    """Otherwise a waiting transaction is left alone, or a finished one is called open."""
    asked = accepts(transaction.check, s, number, s.newest, position, s.checks + 1, True, True)  # noqa: FBT003
    left = asked or accepts(transaction.park, s, s.newest, position, s.checks, True, False)  # noqa: FBT003
    may_lie_there = s.positions[number] < 0 and s.positions[s.newest] < position
    return implies(may_lie_there, transaction.the_transaction_is_decided_or_set_aside(s) == (not left))


def what_is_at_rest_needs_no_op(s: State) -> bool:
    """Otherwise a half that was decided is asked about again after the next start."""
    return transaction.an_op_names_what_was_decided(s) == (not accepts(transaction.mark, s, s.newest))

def _begun(s: State, max_checks: int, witnessed: int, number: Number, position: Position, marked: bool) -> State:
    return transaction.prepare(transaction.open(s, Position(0), max_checks, witnessed), number, position, marked)


def a_half_is_prepared_once_and_carries_its_marker(s: State, number: Number, position: Position, marked: bool) -> bool:
    """Otherwise a producer cannot begin, or is asked about a message that was never prepared."""
    taken = accepts(_begun, s, 0, 0, number, position, marked)
    return taken == (s.phase == Phase.ABSENT and 0 <= position and marked)


def _outlived(s: State, start: Position, number: Number, position: Position, times: int) -> State:
    return transaction.outlive(transaction.open(s, start, 0, 0), number, position, times)


def _asked_back(s: State, start: Position, number: Number, position: Position, times: int, half: Position) -> State:
    return transaction.ask_back(_outlived(s, start, number, position, times), number, half)


def a_version_may_outlive_the_ones_before_it(
    s: State, start: Position, number: Number, position: Position, times: int, half: Position
) -> bool:
    """Otherwise a store without its oldest files cannot be judged, or a stranger's message is asked about."""
    known = s.phase == Phase.ABSENT and 0 < start and 0 <= position and 0 <= times
    found = accepts(_outlived, s, start, number, position, times) == known
    asked = accepts(_asked_back, s, start, number, position, times, half)
    return found and asked == (known and 0 < times and half == position)


def _checked(s: State, max_checks: int, number: Number, position: Position, asked: bool, same: bool) -> State:
    begun = _begun(s, max_checks, 0, Number(0), Position(0), True)  # noqa: FBT003 - an event's flag
    return transaction.check(begun, number, Number(0), position, 1, asked, same)


def a_half_is_put_back_behind_itself_and_its_producer_asked(
    s: State, max_checks: int, number: Number, position: Position, asked: bool, same: bool
) -> bool:
    """Otherwise a producer is never asked, or about something else than it sent."""
    due = number != 0 and 0 < position and asked and same and (max_checks == 0 or 1 <= max_checks)
    return implies(s.phase == Phase.ABSENT, accepts(_checked, s, max_checks, number, position, asked, same) == due)


def _committed(s: State, witnessed: int, number: Number, position: Position, half: Position, same: bool) -> State:
    begun = _begun(s, 0, witnessed, Number(0), position, True)  # noqa: FBT003 - an event's flag
    asked = transaction.ask_to_commit(begun, number)
    return transaction.commit(asked, Number(0), half, NOWHERE, same, False)  # noqa: FBT003


def what_was_asked_for_is_committed(
    s: State, witnessed: int, number: Number, position: Position, half: Position, same: bool
) -> bool:
    """Otherwise a producer is not heard, or consumers receive what it did not send."""
    asked = witnessed == 0 or number == 0 or 0 < s.commits_asked[Number(0)]
    taken = accepts(_committed, s, witnessed, number, position, half, same)
    known = s.phase == Phase.ABSENT and 0 <= position
    return implies(known, taken == (asked and half == position and same))


def _begun_and_rolled_back(s: State, witnessed: int, number: Number, position: Position) -> State:
    begun = _begun(s, 0, witnessed, Number(0), position, True)  # noqa: FBT003 - an event's flag
    return transaction.roll_back(transaction.ask_to_roll_back(begun, number), Number(0))


def what_was_asked_for_is_rolled_back(s: State, witnessed: int, number: Number, position: Position) -> bool:
    """Otherwise a producer is not heard, or what it committed is lost."""
    asked = witnessed == 0 or number == 0 or 0 < s.rollbacks_asked[Number(0)]
    rolled_back = accepts(_begun_and_rolled_back, s, witnessed, number, position) == asked
    return implies(s.phase == Phase.ABSENT and 0 <= position, rolled_back)


def what_is_set_aside_stays_so_in_a_crash(s: State) -> bool:
    """Otherwise a producer is asked again after its last check."""
    return implies(s.phase == Phase.PARKED, transaction.the_transaction_is_decided_or_set_aside(transaction.crash(s)))


ENABLED = (
    a_rollback_is_as_durable_as_its_op, a_producer_is_told_of_its_commit, nobody_is_asked_about_what_is_not_there,
    what_is_at_rest_is_neither_asked_about_nor_set_aside, what_is_at_rest_needs_no_op,
)
ENABLED_AFTER_DEVIATIONS = (
    a_half_is_prepared_once_and_carries_its_marker,
    a_version_may_outlive_the_ones_before_it,
    a_half_is_put_back_behind_itself_and_its_producer_asked,
    what_was_asked_for_is_committed,
    what_was_asked_for_is_rolled_back,
    what_is_set_aside_stays_so_in_a_crash,
)
