"""Laws of `tiered`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import tiered
from gapless.spec.language import Number, Position, accepts, implies
from gapless.spec.tiered import State


def a_tiered_queue_may_begin_anywhere(s: State, start: Position, number: Number) -> bool:
    """Otherwise a queue whose oldest files have expired cannot be judged."""
    is_new = s.log_end == 0 and s.end == 0
    return accepts(tiered.open, s, start, number) == (is_new and 0 <= start and 0 <= number)


def a_log_file_is_taken_where_the_last_one_ends(s: State, base: Position, committed: int, length: int) -> bool:
    """Otherwise a whole tiered log is called broken, or one with a gap is not."""
    fits = 0 <= committed and committed <= length
    return accepts(tiered.find_log_file, s, base, committed, length) == (base == s.log_end and fits)


def a_queue_file_is_taken_where_the_last_one_ends(s: State, number: Number, committed: int, length: int) -> bool:
    """Otherwise a whole tiered queue is called broken, or one with a gap is not."""
    fits = 0 <= committed and committed <= length
    return accepts(tiered.find_queue_file, s, number, committed, length) == (number == s.end and fits)


def an_entry_is_taken_if_it_is_what_its_message_says(
    s: State, number: Number, position: Position, size: int, tag: int, lies: bool, whole: bool, owned: bool,
    its_number: Number, its_position: Position, its_size: int, its_tag: int, same: bool, intact: bool,
) -> bool:
    """Otherwise whole messages are called broken, or consumers receive what is not theirs."""
    due = number == s.read and number < s.end
    fits = its_number == number and its_position == position and its_size == size and its_tag == tag
    right = due and s.reached <= position and lies and whole and owned and fits and same and intact
    taken = accepts(
        tiered.find_entry, s, number, position, size, tag, lies, whole, owned,
        its_number, its_position, its_size, its_tag, same, intact,
    )  # fmt: skip
    return implies(0 < size, taken == right)


def an_old_entry_comes_before_all_others(s: State, number: Number, position: Position) -> bool:
    """Otherwise a file with young entries is called broken, or one that lost its message is not."""
    old = number == s.read and number < s.end and position < s.start and s.reached == s.start
    return accepts(tiered.outlive, s, number, position) == old


def _grown(s: State, base: Position, committed: int, more: Position) -> State:
    return tiered.find_log_file(tiered.find_log_file(s, base, committed, committed), more, 0, 0)


def log_files_follow_one_another(s: State, committed: int, more: Position) -> bool:
    """Otherwise messages between them are lost, or two lie at one place."""
    return implies(0 <= committed, accepts(_grown, s, s.log_end, committed, more) == (more == s.log_end + committed))


def _old(s: State, start: Position, number: Number, committed: int, position: Position) -> State:
    found = tiered.find_queue_file(tiered.open(s, start, number), number, committed, committed)
    return tiered.outlive(tiered.outlive(found, number, Position(start - 1)), Number(number + 1), position)


def entries_that_outlive_their_messages_come_one_by_one(
    s: State, start: Position, number: Number, committed: int, position: Position
) -> bool:
    """Otherwise a file that still holds young entries is called broken."""
    new = s.log_end == 0 and s.end == 0 and 0 <= start and 0 <= number and 0 <= committed
    return implies(new, accepts(_old, s, start, number, committed, position) == (2 <= committed and position < start))


def _named(s: State, number: Number, position: Position, size: int) -> State:
    return tiered.find_entry(s, number, position, size, 0, True, True, True, number, position, size, 0, True, True)  # noqa: FBT003 - an event's flags


def _two_named(s: State, size: int, number: Number, position: Position) -> State:
    return _named(_named(s, s.read, s.reached, size), number, position, 1)


def entries_name_messages_one_behind_the_other(s: State, size: int, number: Number, position: Position) -> bool:
    """Otherwise consumers receive a message twice, and another one never."""
    next_one = number == s.read + 1 and number < s.end and s.reached + size <= position
    return implies(0 < size, accepts(_two_named, s, size, number, position) == next_one)


ENABLED = (
    a_tiered_queue_may_begin_anywhere, a_log_file_is_taken_where_the_last_one_ends,
    a_queue_file_is_taken_where_the_last_one_ends, an_entry_is_taken_if_it_is_what_its_message_says,
    an_old_entry_comes_before_all_others,
    log_files_follow_one_another, entries_that_outlive_their_messages_come_one_by_one,
    entries_name_messages_one_behind_the_other,
)
