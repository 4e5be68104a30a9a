"""Laws of `log`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import log
from gapless.spec.language import Position, accepts, implies
from gapless.spec.log import BLANK, RESTART, State


def _record(s: State, position: Position, size: int, time: int) -> State:
    return log.append(s, position, size, position, True, True, True, True, time)


def _has_room(s: State, size: int) -> bool:
    """True if a record of `size` bytes, and the blank, fit into the rest of the file."""
    return 0 < size and s.end - s.base + size + BLANK <= s.file_size


def _two_records(s: State, first: Position, size: int, time: int, second: Position, more: int, later: int) -> State:
    return _record(_record(s, first, size, time), second, more, later)


def records_are_laid_end_to_end(
    s: State, first: Position, size: int, time: int, second: Position, more: int, later: int
) -> bool:
    """Otherwise a record that fits its file is refused, or bytes between two records belong to no record."""
    end_to_end = first == s.end and second == s.end + size
    in_order = s.clock <= time and time <= later
    fit = 0 < size and 0 < more and _has_room(s, size + more)
    taken = accepts(_two_records, s, first, size, time, second, more, later)
    return taken == (end_to_end and in_order and fit)


def a_record_is_taken_if_it_is_whole(
    s: State, size: int, claimed: Position, known: bool, fits: bool, intact: bool, sealed: bool
) -> bool:
    """Otherwise consumers receive other bytes than the producer sent, or a whole record is called broken."""
    whole = claimed == s.end and known and fits and intact and sealed
    taken = accepts(log.append, s, s.end, size, claimed, known, fits, intact, sealed, s.clock)
    return implies(_has_room(s, size), taken == whole)


def _opened(s: State, begin: Position, file_size: int, position: Position, size: int) -> State:
    return _record(log.open(s, begin, file_size), position, size, s.clock)


def the_first_file_holds_what_fits_beside_its_blank(
    s: State, begin: Position, file_size: int, position: Position, size: int
) -> bool:
    """Otherwise no record can ever be appended to a new log, or one that spans two files."""
    fits = position == begin and 0 < size and size + BLANK <= file_size
    return accepts(_opened, s, begin, file_size, position, size) == (s.file_size == 0 and fits)


def _next_file(s: State, blank: Position, rest: int, marked: bool, position: Position, size: int) -> State:
    return _record(log.roll(s, blank, rest, marked), position, size, s.clock)


def the_next_file_begins_where_a_blank_ends_the_last(
    s: State, blank: Position, rest: int, marked: bool, position: Position, size: int
) -> bool:
    """Otherwise a reader that steps from record to record never comes to the next file."""
    left = s.base + s.file_size - s.end
    ended = 0 < s.file_size and blank == s.end and rest == left and marked
    begun = position == s.end + left and 0 < size and size + BLANK <= s.file_size
    return accepts(_next_file, s, blank, rest, marked, position, size) == (ended and begun)


def _acknowledged(s: State, to: Position, claimed: Position, more: Position) -> State:
    return log.acknowledge(log.acknowledge(log.flush(s, to), claimed), more)


def a_producer_is_told_of_what_is_on_disk_and_of_nothing_else(
    s: State, to: Position, claimed: Position, more: Position
) -> bool:
    """Otherwise a producer waits for ever for what is safe, or is promised what a crash takes away."""
    written = s.flushed <= to and to <= s.end
    in_order = s.acknowledged <= claimed and claimed <= more and more <= to
    return accepts(_acknowledged, s, to, claimed, more) == (written and in_order)


def _crashed(s: State, kept: Position, to: Position) -> State:
    return log.flush(log.crash(s, kept), to)


def what_a_crash_leaves_is_the_log_and_is_on_disk(s: State, kept: Position, to: Position) -> bool:
    """Otherwise a broker cannot start again, or takes for safe what is gone."""
    left = s.flushed <= kept and s.base <= kept and kept <= s.end
    return accepts(_crashed, s, kept, to) == (left and to == kept)


def a_log_at_rest_loses_nothing(s: State, kept: Position) -> bool:
    """Otherwise a message that was taken can still be lost."""
    lost = accepts(log.crash, s, kept) and kept < s.end
    return log.every_record_is_on_disk(log.flush(s, s.end)) and implies(log.every_record_is_on_disk(s), not lost)


def _checkpointed(s: State, size: int, time: int, claimed: int) -> State:
    return log.checkpoint(_record(s, s.end, size, time), claimed)


def a_checkpoint_may_name_the_newest_record(s: State, size: int, time: int, claimed: int) -> bool:
    """Otherwise a whole log is called cut off, or one that lost its end is called whole."""
    appended = _has_room(s, size) and s.clock <= time
    return implies(appended, accepts(_checkpointed, s, size, time, claimed) == (claimed <= s.newest or claimed <= time))


def _referred(s: State, size: int, position: Position) -> State:
    return log.refer(_record(s, s.end, size, s.clock), position)


def a_queue_may_name_the_last_record(s: State, size: int, position: Position) -> bool:
    """Otherwise a whole log is called cut off, or a consumer is sent beyond its end."""
    return implies(_has_room(s, size), accepts(_referred, s, size, position) == (position < s.end + size))


def a_record_without_a_checksum_is_of_another_life(
    s: State, position: Position, since: Position, until: Position, pause: int
) -> bool:
    """Otherwise a change of a setting is called damage, or properties that were changed are called whole."""
    promised = since <= position and position < until
    return accepts(log.omit, s, position, since, until, pause) == (not promised and RESTART <= pause)


ENABLED = (
    records_are_laid_end_to_end,
    a_record_is_taken_if_it_is_whole,
    the_first_file_holds_what_fits_beside_its_blank,
    the_next_file_begins_where_a_blank_ends_the_last,
    a_producer_is_told_of_what_is_on_disk_and_of_nothing_else,
    what_a_crash_leaves_is_the_log_and_is_on_disk,
    a_log_at_rest_loses_nothing,
    a_checkpoint_may_name_the_newest_record,
    a_queue_may_name_the_last_record,
    a_record_without_a_checksum_is_of_another_life,
)
