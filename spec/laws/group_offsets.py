"""Laws of `group_offsets`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import group_offsets
from gapless.spec.group_offsets import NO_OFFSET, State
from gapless.spec.language import Number, Position, accepts, implies


def a_log_may_be_read_from_anywhere(s: State, at: Position, offset: Number) -> bool:
    """Otherwise a log whose first segments were deleted cannot be judged."""
    return accepts(group_offsets.open, s, at, offset) == (not s.opened and 0 <= at and NO_OFFSET <= offset)


def _opened(s: State, at: Position, offset: Number, then: Position, received: Number) -> State:
    opened = group_offsets.receive(group_offsets.open(s, at, offset), received)
    return group_offsets.commit(opened, then, received)


def _opened_twice(s: State, at: Position, offset: Number) -> State:
    return group_offsets.open(group_offsets.open(s, at, offset), at, offset)


def what_is_claimed_counts(s: State, at: Position, offset: Number, then: Position, received: Number) -> bool:
    """Otherwise a log that is read from the middle on is judged otherwise than as a whole."""
    opened = accepts(group_offsets.open, s, at, offset)
    lawful = received == offset and at <= then and 0 <= offset
    once = not accepts(_opened_twice, s, at, offset)
    return once and implies(opened, accepts(_opened, s, at, offset, then, received) == lawful)


def an_offset_may_be_committed(s: State, at: Position, pid: int, offset: Number) -> bool:
    """Otherwise a group cannot go on."""
    lawful = s.opened and s.end <= at and 0 <= offset
    plain = accepts(group_offsets.commit, s, at, offset) == lawful
    return plain and accepts(group_offsets.commit_in_transaction, s, at, pid, offset) == (lawful and 0 <= pid)


def _committed(s: State, at: Position, offset: Number, then: Position, received: Number) -> State:
    committed = group_offsets.commit(s, at, offset)
    return group_offsets.receive(group_offsets.commit(committed, then, offset), received)


def a_plain_commit_counts_at_once(
    s: State, at: Position, offset: Number, then: Position, received: Number
) -> bool:
    """Otherwise a group receives its records again."""
    taken = accepts(_committed, s, at, offset, then, received)
    asked = accepts(group_offsets.commit, s, at, offset)
    return implies(asked, taken == (at < then and received == offset))


def _waiting(s: State, at: Position, pid: int, offset: Number, then: Position, received: Number) -> State:
    waiting = group_offsets.commit_in_transaction(s, at, pid, offset)
    return group_offsets.tombstone(group_offsets.receive(waiting, received), then)


def _read_on(s: State, at: Position, pid: int, offset: Number, then: Position, received: Number) -> State:
    waiting = group_offsets.commit_in_transaction(s, at, pid, offset)
    return group_offsets.receive(group_offsets.commit_in_transaction(waiting, then, pid, offset), received)


def an_offset_of_a_transaction_waits(
    s: State, at: Position, pid: int, offset: Number, then: Position, received: Number
) -> bool:
    """Otherwise a group passes over records whose results are aborted."""
    asked = accepts(group_offsets.commit_in_transaction, s, at, pid, offset)
    waits = accepts(_read_on, s, at, pid, offset, then, received) == (at < then and received == s.offset)
    counted = 0 <= s.waiting and s.pending[pid] == NO_OFFSET
    return implies(asked, waits and implies(counted, not accepts(_waiting, s, at, pid, offset, then, received)))


def _decided(s: State, at: Position, pid: int, offset: Number, decides: int, commit: bool, received: Number) -> State:
    waiting = group_offsets.commit_in_transaction(s, at, pid, offset)
    marked = group_offsets.mark(waiting, Position(at + 1), decides, commit)
    return group_offsets.receive(marked, received)


def a_marker_makes_it_count(
    s: State, at: Position, pid: int, offset: Number, commit: bool, received: Number
) -> bool:
    """Otherwise a group receives its records again, or passes over records whose results are aborted."""
    asked = accepts(group_offsets.commit_in_transaction, s, at, pid, offset)
    taken = accepts(_decided, s, at, pid, offset, pid, commit, received)
    return implies(asked, taken == (received == (offset if commit else s.offset)))


def _overtaken(s: State, at: Position, pid: int, offset: Number, later: Number, received: Number) -> State:
    waiting = group_offsets.commit_in_transaction(s, at, pid, offset)
    overtaken = group_offsets.commit(waiting, Position(at + 1), later)
    return group_offsets.receive(group_offsets.mark(overtaken, Position(at + 2), pid, True), received)  # noqa: FBT003


def a_later_commit_overtakes(
    s: State, at: Position, pid: int, offset: Number, later: Number, received: Number
) -> bool:
    """Otherwise a group goes back to records that it has done with."""
    asked = accepts(group_offsets.commit_in_transaction, s, at, pid, offset) and 0 <= later
    return implies(asked, accepts(_overtaken, s, at, pid, offset, later, received) == (received == later))


def _crossed(s: State, at: Position, pid: int, other: int, offset: Number, later: Number, received: Number) -> State:
    first = group_offsets.commit_in_transaction(s, at, pid, offset)
    second = group_offsets.commit_in_transaction(first, Position(at + 1), other, later)
    ended = group_offsets.mark(second, Position(at + 2), other, True)  # noqa: FBT003 - an event's flag
    return group_offsets.receive(group_offsets.mark(ended, Position(at + 3), pid, True), received)  # noqa: FBT003


def the_later_of_two_transactions_counts(
    s: State, at: Position, pid: int, other: int, offset: Number, later: Number, received: Number
) -> bool:
    """Otherwise a group goes back to records that it has done with."""
    asked = accepts(group_offsets.commit_in_transaction, s, at, pid, offset) and 0 <= later and 0 <= other
    return implies(asked, accepts(_crossed, s, at, pid, other, offset, later, received) == (received == later))


def a_marker_is_read_in_order(s: State, at: Position, pid: int, commit: bool) -> bool:
    """Otherwise a marker decides about what lies behind it."""
    return accepts(group_offsets.mark, s, at, pid, commit) == (s.opened and s.end <= at and 0 <= pid)


def _marked_and_settled(s: State, at: Position, pid: int, commit: bool, then: Position) -> State:
    marked = group_offsets.mark(s, at, pid, commit)
    return group_offsets.settle(group_offsets.commit(marked, then, Number(0)), pid, False)  # noqa: FBT003


def what_is_decided_waits_no_more(s: State, at: Position, pid: int, commit: bool, then: Position) -> bool:
    """Otherwise a group can commit no more."""
    asked = accepts(group_offsets.mark, s, at, pid, commit)
    return implies(asked, accepts(_marked_and_settled, s, at, pid, commit, then) == (at < then))


def _deleted_behind(s: State, at: Position, pid: int, offset: Number, again: bool, commit: bool) -> State:
    waiting = group_offsets.commit_in_transaction(s, at, pid, offset)
    then = Position(at + 1)
    twice = group_offsets.commit_in_transaction(waiting, then, pid, offset) if again else waiting
    marked = group_offsets.mark(twice, Position(at + 2), pid, commit)
    return group_offsets.tombstone(marked, Position(at + 3))


def what_waited_is_counted_off(
    s: State, at: Position, pid: int, offset: Number, again: bool, commit: bool
) -> bool:
    """Otherwise a group is never deleted, or while its transaction is open."""
    asked = accepts(group_offsets.commit_in_transaction, s, at, pid, offset) and s.pending[pid] == NO_OFFSET
    return implies(asked, accepts(_deleted_behind, s, at, pid, offset, again, commit) == (s.waiting == 0))


def a_group_is_deleted_when_nothing_waits(s: State, at: Position, idle: int, limit: int) -> bool:
    """Otherwise a group is never deleted, or while its transaction is open."""
    lawful = s.opened and s.end <= at and s.waiting == 0
    deleted = accepts(group_offsets.tombstone, s, at) == lawful
    return deleted and accepts(group_offsets.expire, s, at, idle, limit) == (lawful and limit <= idle)


def _deleted(s: State, at: Position, then: Position, received: Number) -> State:
    deleted = group_offsets.receive(group_offsets.tombstone(s, at), received)
    return group_offsets.tombstone(deleted, then)


def what_is_deleted_counts_no_more(s: State, at: Position, then: Position, received: Number) -> bool:
    """Otherwise a group that begins again passes over records."""
    asked = accepts(group_offsets.tombstone, s, at)
    return implies(asked, accepts(_deleted, s, at, then, received) == (at < then and received == NO_OFFSET))


def what_waits_at_the_end_is_undecided(s: State, pid: int, undecided: bool) -> bool:
    """Otherwise an offset that waits for ever is not noticed, or one that may still count is accused."""
    return accepts(group_offsets.settle, s, pid, undecided) == (undecided or s.pending[pid] == NO_OFFSET)


def a_consumer_receives_what_counts(s: State, offset: Number) -> bool:
    """Otherwise a consumer is accused that begins where it should."""
    return accepts(group_offsets.receive, s, offset) == (offset == s.offset)


ENABLED = (
    a_log_may_be_read_from_anywhere, what_is_claimed_counts, an_offset_may_be_committed, a_plain_commit_counts_at_once,
    an_offset_of_a_transaction_waits, a_marker_makes_it_count, a_later_commit_overtakes,
    the_later_of_two_transactions_counts, a_marker_is_read_in_order, what_is_decided_waits_no_more,
    what_waited_is_counted_off, a_group_is_deleted_when_nothing_waits, what_is_deleted_counts_no_more,
    what_waits_at_the_end_is_undecided, a_consumer_receives_what_counts,
)
