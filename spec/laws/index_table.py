"""Laws of `index_table`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import index_table
from gapless.spec.index_table import NOWHERE, State
from gapless.spec.language import Position, accepts, implies


def a_record_is_told_of_once(s: State, position: Position, keys: int) -> bool:
    """Otherwise two records are taken for one."""
    return accepts(index_table.store, s, position, keys) == (s.position == NOWHERE and 0 <= position and 0 <= keys)


def a_row_is_taken_if_a_key_lacks_one(s: State, owned: bool, timely: bool, in_hour: bool) -> bool:
    """Otherwise a whole table is called broken, or a key leads to other messages."""
    lacks = 0 <= s.position and s.rows < s.keys
    return accepts(index_table.find_row, s, owned, timely, in_hour) == (lacks and owned and timely and in_hour)


def a_record_is_passed_by_once_all_its_keys_have_rows(s: State) -> bool:
    """Otherwise the message is not found by its key."""
    return accepts(index_table.pass_by, s) == (s.rows == s.keys)


def a_table_of_keys_ends_at_a_record(s: State, position: Position, there: bool, timely: bool) -> bool:
    """Otherwise records are never put into it."""
    return accepts(index_table.find_last, s, position, there, timely) == (there and timely)


def _passed(s: State, position: Position, keys: int) -> State:
    return index_table.pass_by(index_table.store(s, position, keys))


def _passed_with_a_row(s: State, position: Position, keys: int) -> State:
    return index_table.pass_by(index_table.find_row(index_table.store(s, position, keys), True, True, True))  # noqa: FBT003 - an event's flags


def as_many_rows_are_looked_for_as_there_are_keys(s: State, position: Position, keys: int) -> bool:
    """Otherwise a message is not found by one of its keys."""
    new = s.position == NOWHERE and s.rows == 0 and 0 <= position and 0 <= keys
    without = accepts(_passed, s, position, keys)
    with_one = accepts(_passed_with_a_row, s, position, keys)
    return implies(new, without == (keys == 0) and with_one == (keys == 1))


ENABLED = (
    a_record_is_told_of_once, a_row_is_taken_if_a_key_lacks_one, a_record_is_passed_by_once_all_its_keys_have_rows,
    a_table_of_keys_ends_at_a_record,
    as_many_rows_are_looked_for_as_there_are_keys,
)
