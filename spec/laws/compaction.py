"""Laws of `compaction`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import compaction
from gapless.spec.compaction import State
from gapless.spec.language import Number, Position, accepts, implies


def a_file_is_taken_behind_the_one_before_it(s: State, base: Position, records: bool, entries: bool) -> bool:
    """Otherwise a whole compacted log is called broken, or one with half a file is not."""
    right = (s.files == 0 or s.reached <= base) and records and entries
    return implies(0 <= base and s.missed == 0, accepts(compaction.find_files, s, base, records, entries) == right)


def an_entry_is_taken_if_it_is_what_its_message_says(
    s: State, number: Number, position: Position, size: int, tag: int, time: int, count: int, lies: bool, whole: bool,
    owned: bool, its_number: Number, its_position: Position, its_size: int, its_tag: int, its_time: int, keyed: bool,
    same: bool, intact: bool,
) -> bool:
    """Otherwise whole messages are called broken, or consumers receive what is not theirs."""
    follows = 0 < s.files and s.end <= number and position == s.reached
    fits = its_number == number and its_position == position and its_size == size and its_tag == tag
    right = follows and lies and whole and owned and fits and count == 1 and its_time == time
    taken = accepts(
        compaction.find_entry, s, number, position, size, tag, time, count, lies, whole, owned,
        its_number, its_position, its_size, its_tag, its_time, keyed, same, intact,
    )  # fmt: skip
    return implies(0 < size and 0 <= number and s.missed == 0, taken == (right and keyed and same and intact))


def what_was_compacted_ends_before_the_last_file(s: State, number: Number, given: bool, hollow: bool) -> bool:
    """Otherwise a broker that was killed is called broken, or messages count as compacted that are not."""
    right = given and (hollow or not s.begun or number < s.first)
    return accepts(compaction.find_position, s, number, given, hollow) == right


def only_what_is_old_or_empty_may_be_missed(s: State, number: Number, hollow: bool, later: Number) -> bool:
    """Otherwise a compaction is called a loss, or a loss is not."""
    compacted = not s.begun or number < s.first
    old = 0 <= later and (not s.begun or later < s.first)
    return accepts(compaction.miss, s, number, hollow, later) == (compacted and (hollow or old))


def a_start_takes_files_of_one_length_that_are_called_by_numbers(s: State, numbered: bool, sized: bool) -> bool:
    """Otherwise a broker that starts is reported as not starting, or the other way round."""
    return accepts(compaction.start, s, numbered, sized) == (numbered and sized)


def _kept(s: State, number: Number, position: Position) -> State:
    return compaction.find_entry(
        s, number, position, 1, 0, 0, 1, True, True, True, number, position, 1, 0, 0, True, True, True  # noqa: FBT003
    )  # fmt: skip


def _missed(s: State, base: Position, number: Number, missed: Number) -> State:
    return compaction.miss(_kept(compaction.find_files(s, base, True, True), number, base), missed, True, Number(-1))  # noqa: FBT003 - an event's flags


def only_what_lies_before_the_last_file_may_be_missed(
    s: State, base: Position, number: Number, missed: Number
) -> bool:
    """Otherwise consumers never receive what was not compacted."""
    follows = 0 <= base and (s.files == 0 or s.reached <= base) and s.end <= number and 0 <= number
    return implies(follows and s.missed == 0, accepts(_missed, s, base, number, missed) == (missed < number))


def _none_kept(s: State, base: Position, missed: Number) -> State:
    return compaction.miss(compaction.find_files(s, base, True, True), missed, True, Number(-1))  # noqa: FBT003 - an event's flags


def where_the_last_file_has_no_message_all_may_be_old(s: State, base: Position, missed: Number) -> bool:
    """Otherwise a compaction is called a loss."""
    follows = 0 <= base and (s.files == 0 or s.reached <= base)
    return implies(follows and s.missed == 0, accepts(_none_kept, s, base, missed))


def _two_kept(s: State, number: Number, position: Position) -> State:
    return _kept(_kept(s, s.end, s.reached), number, position)


def messages_lie_one_behind_the_other(s: State, number: Number, position: Position) -> bool:
    """Otherwise an entry names another message, or none."""
    next_one = s.end < number and position == s.reached + 1
    return implies(0 < s.files and s.missed == 0, accepts(_two_kept, s, number, position) == next_one)


ENABLED = (
    a_file_is_taken_behind_the_one_before_it,
    an_entry_is_taken_if_it_is_what_its_message_says,
    what_was_compacted_ends_before_the_last_file,
    only_what_is_old_or_empty_may_be_missed,
    a_start_takes_files_of_one_length_that_are_called_by_numbers,
    only_what_lies_before_the_last_file_may_be_missed,
    where_the_last_file_has_no_message_all_may_be_old,
    messages_lie_one_behind_the_other,
)
