"""Laws of `partition_client`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import partition_client
from gapless.spec.language import Number, accepts, implies
from gapless.spec.partition_client import State


def a_client_may_begin_at_any_offset(s: State, at: Number, reads: bool) -> bool:
    """Otherwise a log whose oldest segments were deleted cannot be compared."""
    return accepts(partition_client.open, s, at, reads) == (not s.opened and 0 <= at)


def records_follow_what_was_received(s: State, first: Number, last: Number) -> bool:
    """Otherwise a sound log is accused, or a record is passed over unnoticed."""
    follows = s.opened and s.end <= first and first <= last
    received = not s.reads or s.position == s.end
    return accepts(partition_client.show, s, first, last) == (follows and received)


def what_the_log_has_may_be_acknowledged(s: State, offset: Number) -> bool:
    """Otherwise a right answer is accused, or a lost record is not noticed."""
    return accepts(partition_client.acknowledge, s, offset) == (s.first <= offset and offset < s.end)


def what_comes_next_may_be_received(s: State, first: Number, last: Number) -> bool:
    """Otherwise a right answer is accused, or a record is received twice, or never, unnoticed."""
    comes_next = first == s.position and first <= last and last < s.end
    return accepts(partition_client.receive, s, first, last) == (s.opened and s.reads and comes_next)


def a_reader_may_stop_where_it_has_come(s: State, at: Number) -> bool:
    """Otherwise a right position is accused, or one that passes over records is not noticed."""
    has_all = at <= s.position or s.position == s.end
    return accepts(partition_client.stop, s, at) == (s.opened and s.reads and has_all)


def _read(s: State, first: Number, middle: Number, last: Number, at: Number) -> State:
    """A reader that receives two parts of what the log shows, and stops."""
    shown = partition_client.show(s, first, last)
    half = partition_client.receive(shown, first, middle)
    return partition_client.stop(partition_client.receive(half, Number(middle + 1), last), at)


def a_reader_may_receive_in_parts(s: State, first: Number, middle: Number, last: Number, at: Number) -> bool:
    """Otherwise each poll of a consumer is taken for the first."""
    lawful = s.opened and s.reads and s.position == s.end and s.end <= first and first <= middle and middle < last
    return implies(lawful, accepts(_read, s, first, middle, last, at))


def _begun(s: State, at: Number, reads: bool, last: Number) -> State:
    """A client before which two parts of the log are shown, of which it received nothing."""
    shown = partition_client.show(partition_client.open(s, at, reads), at, last)
    return partition_client.show(shown, Number(last + 1), Number(last + 1))


def only_a_reader_has_to_receive(s: State, at: Number, reads: bool, last: Number) -> bool:
    """Otherwise a producer is accused of what it never asked for, or a reader of nothing."""
    return implies(not s.opened and 0 <= at and at <= last, accepts(_begun, s, at, reads, last) == (not reads))


def _acknowledged(s: State, at: Number, reads: bool, offset: Number) -> State:
    return partition_client.acknowledge(partition_client.open(s, at, reads), offset)


def nothing_is_acknowledged_before_the_log_is_read(s: State, at: Number, reads: bool, offset: Number) -> bool:
    """Otherwise a record counts as being in the log that was never looked for."""
    return not accepts(_acknowledged, s, at, reads, offset)


ENABLED = (
    a_client_may_begin_at_any_offset,
    records_follow_what_was_received,
    what_the_log_has_may_be_acknowledged,
    what_comes_next_may_be_received,
    a_reader_may_stop_where_it_has_come,
    a_reader_may_receive_in_parts,
    only_a_reader_has_to_receive,
    nothing_is_acknowledged_before_the_log_is_read,
)
