"""Laws of `queue`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import queue
from gapless.spec.language import Number, Position, accepts, all_between, implies
from gapless.spec.queue import State


def _appended(s: State, position: Position, size: int, tag: int) -> State:
    return queue.append(s, s.end, 1, position, size, tag)


def _batch_and_next(s: State, count: int, number: Number, position: Position) -> State:
    return queue.append(queue.append(s, s.end, count, position, 1, 0), number, 1, position, 1, 0)


def an_inner_batch_owns_all_its_numbers(s: State, count: int, number: Number, position: Position) -> bool:
    """Otherwise two messages share a number, and consumers receive one of them."""
    return implies(1 <= count, accepts(_batch_and_next, s, count, number, position) == (number == s.end + count))


def _indexed(
    s: State, position: Position, size: int, tag: int, entry_position: Position, entry_size: int, entry_tag: int
) -> State:
    return queue.index(_appended(s, position, size, tag), s.end, entry_position, entry_size, entry_tag)


def an_entry_is_taken_if_it_is_what_was_sent(
    s: State, position: Position, size: int, tag: int, entry_position: Position, entry_size: int, entry_tag: int
) -> bool:
    """Otherwise a whole store is called broken, or consumers receive something else."""
    same = entry_position == position and entry_size == size and entry_tag == tag
    taken = accepts(_indexed, s, position, size, tag, entry_position, entry_size, entry_tag)
    return implies(s.indexed == s.end, taken == same)


def _batch_indexed(s: State, count: int, size: int, entry_count: int, entry_size: int) -> State:
    appended = queue.append(s, s.end, count, Position(1), size, 0)
    return queue.index_batch(appended, s.end, entry_count, Position(1), entry_size, 0)


def an_entry_stands_for_the_whole_batch_and_no_more(
    s: State, count: int, size: int, entry_count: int, entry_size: int
) -> bool:
    """Otherwise consumers pass over messages, or ask for the same ones again."""
    taken = accepts(_batch_indexed, s, count, size, entry_count, entry_size)
    asked = s.indexed == s.end and 1 <= count and count <= 32767
    return implies(asked, taken == (entry_count == count and entry_size == size))


def _behind_a_batch(s: State, count: int, number: Number) -> State:
    batch = queue.append(_batch_indexed(s, count, 1, count, 1), Number(s.end + count), 1, Position(2), 1, 0)
    return queue.index(batch, number, Position(2), 1, 0)


def an_entry_follows_that_of_a_whole_batch(s: State, count: int, number: Number) -> bool:
    """Otherwise a message behind a batch is never received, or one within it twice."""
    asked = s.indexed == s.end and 1 <= count and count <= 32767
    return implies(asked, accepts(_behind_a_batch, s, count, number) == (number == s.end + count))


def _two_entries(s: State, first: Number, second: Number) -> State:
    two = _appended(_appended(s, Position(0), 1, 0), Position(1), 1, 0)
    one = queue.index(two, first, two.positions[first], two.sizes[first], two.tags[first])
    return queue.index(one, second, two.positions[second], two.sizes[second], two.tags[second])


def entries_come_in_the_order_of_their_messages(s: State, first: Number, second: Number) -> bool:
    """Otherwise a consumer passes a message that has no entry yet, and never comes back."""
    in_order = first == s.end and second == first + 1
    return implies(s.indexed == s.end, accepts(_two_entries, s, first, second) == in_order)


def _stopped(s: State, position: Position, upto: Position) -> State:
    return queue.settle(_appended(s, position, 1, 0), upto)


def a_stop_leaves_no_message_behind(s: State, position: Position, upto: Position) -> bool:
    """Otherwise a message is in the log and no consumer ever receives it."""
    return implies(s.indexed == s.end, accepts(_stopped, s, position, upto) == (upto <= position))


def what_is_at_rest_may_stop(s: State, upto: Position) -> bool:
    """Otherwise a queue with all its entries is called broken, or one of blanks alone is called whole."""
    holds_blanks_alone = 0 < s.blank and s.end <= s.blank
    return implies(queue.every_message_has_its_entry(s), accepts(queue.settle, s, upto) == (not holds_blanks_alone))


def _acknowledged(s: State, position: Position, size: int, claimed: Position, same: bool) -> State:
    return queue.acknowledge(_appended(s, position, size, 0), s.end, claimed, same)


def a_producer_is_told_where_its_message_lies(
    s: State, position: Position, size: int, claimed: Position, same: bool
) -> bool:
    """Otherwise a producer believes that its message is safe, and consumers receive another one, or none."""
    return implies(0 < size, accepts(_acknowledged, s, position, size, claimed, same) == (claimed == position and same))


def nobody_is_told_of_what_is_not_there(s: State, number: Number, position: Position) -> bool:
    """Otherwise a producer believes that its message is safe, and no consumer ever receives it."""
    return implies(s.end <= number, not accepts(queue.acknowledge, s, number, position, True))  # noqa: FBT003 - an event's flag


def what_nobody_sent_is_noticed(s: State, number: Number, sent: bool) -> bool:
    """Otherwise consumers act on a message that was never sent."""
    return accepts(queue.account, s, number, sent) == sent


def _last_claimed(s: State, position: Position, size: int, tag: int, number: Number, claimed: Position) -> State:
    return queue.tell_last(_indexed(s, position, size, tag, position, size, tag), number, claimed)


def the_table_names_the_last_entry_and_no_other(
    s: State, position: Position, size: int, tag: int, number: Number, claimed: Position
) -> bool:
    """Otherwise a whole store is called broken, or the next message gets a number that another one has."""
    is_last = number == s.end and claimed == position
    return implies(s.indexed == s.end, accepts(_last_claimed, s, position, size, tag, number, claimed) == is_last)


def the_table_may_lag_behind_the_first_message(s: State, number: Number) -> bool:
    """Otherwise a table unused since messages expired is called wrong, or one that hides some is not."""
    return accepts(queue.tell_first, s, number) == (number <= s.first)


def a_file_has_neither_more_nor_less_than_its_bytes(s: State, base: Position, more: int, full: int) -> bool:
    """Otherwise a broker that finds it refuses to start, or entries are lost."""
    return accepts(queue.find_file, s, base, full + more, full) == (more == 0)


def all_that_has_entries_may_expire(s: State, start: Position) -> bool:
    """Otherwise a disk runs full of messages that everybody has read."""
    lies_below = all_between(s.first, s.indexed, lambda n: s.positions[Number(n)] < start)
    everything = implies(s.start <= start and lies_below, accepts(queue.expire, s, s.indexed, start))
    return everything and accepts(queue.expire, s, s.first, s.start)


def _outlived(s: State, number: Number, start: Position, old: Number) -> State:
    return queue.outlive(queue.expire(s, number, start), old, s.positions[old])


def an_entry_may_outlive_its_message(s: State, number: Number, start: Position, old: Number) -> bool:
    """Otherwise a file that still holds young entries is called broken."""
    goes = s.first <= old and old < number and accepts(queue.expire, s, number, start)
    return implies(goes, accepts(_outlived, s, number, start, old))


def an_entry_of_what_is_kept_is_not_old(s: State, number: Number, position: Position) -> bool:
    """Otherwise the log has lost a message that its queue still names."""
    return implies(s.first <= number or s.start <= position, not accepts(queue.outlive, s, number, position))


def _continued(s: State, kept: Number, number: Number) -> State:
    return queue.append(queue.truncate(s, kept), number, 1, Position(0), 1, 0)


def a_queue_goes_on_where_it_was_cut_off(s: State, kept: Number, number: Number) -> bool:
    """Otherwise numbers are given to no message, or a broker cannot start again after a crash."""
    was_there = s.first <= kept and kept <= s.end
    return accepts(_continued, s, kept, number) == (was_there and number == kept)


def _found(s: State, number: Number, start: Position, old: Number) -> State:
    return queue.outlive(queue.open(s, number, start), old, Position(start - 1))


def a_log_that_lost_its_beginning_has_a_queue_of_any_number(
    s: State, number: Number, start: Position, old: Number
) -> bool:
    """Otherwise a store whose oldest files were deleted cannot be judged."""
    known = s.end == 0 and start != 0 and 0 <= number
    return implies(known, accepts(_found, s, number, start, old) == (old < number))


def the_first_queue_of_a_log_is_found(s: State, number: Number) -> bool:
    """Otherwise a new store is called broken, or its first messages are lost."""
    return implies(s.end == 0, accepts(queue.open, s, number, Position(0)) == (number == 0))


ENABLED = (
    an_inner_batch_owns_all_its_numbers, an_entry_is_taken_if_it_is_what_was_sent,
    an_entry_stands_for_the_whole_batch_and_no_more, an_entry_follows_that_of_a_whole_batch,
    entries_come_in_the_order_of_their_messages, a_stop_leaves_no_message_behind, what_is_at_rest_may_stop,
    a_producer_is_told_where_its_message_lies, nobody_is_told_of_what_is_not_there, what_nobody_sent_is_noticed,
    the_table_names_the_last_entry_and_no_other, the_table_may_lag_behind_the_first_message,
    a_file_has_neither_more_nor_less_than_its_bytes, all_that_has_entries_may_expire,
    an_entry_may_outlive_its_message, an_entry_of_what_is_kept_is_not_old, a_queue_goes_on_where_it_was_cut_off,
    a_log_that_lost_its_beginning_has_a_queue_of_any_number, the_first_queue_of_a_log_is_found,
)
