"""Laws of `half_table`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import half_table
from gapless.spec.half_table import NOWHERE, State
from gapless.spec.language import Position, accepts, implies


def a_half_is_told_of_once(s: State, position: Position, size: int) -> bool:
    """Otherwise two halves are taken for one."""
    return accepts(half_table.prepare, s, position, size) == (s.position == NOWHERE and 0 <= position and 0 < size)


def a_row_is_taken_if_it_is_that_of_an_open_half(
    s: State, size: int, checks: int, limit: int, owned: bool, within: bool
) -> bool:
    """Otherwise a whole table is called broken, or its broker asks about what is decided."""
    is_open = 0 <= s.position and s.rows == 0 and s.decisions == 0
    right = size == s.size and owned and within and 0 <= checks and (limit == 0 or checks <= limit)
    return accepts(half_table.find_row, s, size, checks, limit, owned, within) == (is_open and right)


def a_decided_half_is_the_only_one_without_a_row(s: State, spent: bool) -> bool:
    """Otherwise a transaction is forgotten."""
    return accepts(half_table.miss_row, s, spent) == (0 < s.decisions)


def a_table_ends_at_a_half(s: State, position: Position, there: bool) -> bool:
    """Otherwise halves are left out."""
    return accepts(half_table.find_end, s, position, there) == there


def a_half_can_be_decided_once_it_is_there(s: State) -> bool:
    """Otherwise it is open for ever."""
    return accepts(half_table.decide, s) == (0 <= s.position)


def _rows(s: State, position: Position, size: int, its_size: int) -> State:
    return half_table.find_row(half_table.prepare(s, position, size), its_size, 0, 0, True, True)  # noqa: FBT003 - an event's flags


def a_half_has_a_row_of_its_size(s: State, position: Position, size: int, its_size: int) -> bool:
    """Otherwise the broker cannot read the half, and forgets it."""
    new = s.position == NOWHERE and s.rows == 0 and s.decisions == 0 and 0 <= position and 0 < size
    return implies(new, accepts(_rows, s, position, size, its_size) == (its_size == size))


def _two_rows(s: State, size: int) -> State:
    return half_table.find_row(half_table.find_row(s, size, 0, 0, True, True), size, 0, 0, True, True)  # noqa: FBT003 - an event's flags


def a_second_row_is_noticed(s: State, size: int) -> bool:
    """Otherwise its producer is asked twice."""
    return not accepts(_two_rows, s, size)


def _decided(s: State) -> State:
    return half_table.miss_row(half_table.decide(s), False)  # noqa: FBT003 - an event's flags


def a_half_that_is_decided_needs_no_row(s: State) -> bool:
    """Otherwise a lawful decision is called broken."""
    return accepts(_decided, s) == (0 <= s.position)


ENABLED = (
    a_half_is_told_of_once, a_row_is_taken_if_it_is_that_of_an_open_half, a_decided_half_is_the_only_one_without_a_row,
    a_table_ends_at_a_half, a_half_can_be_decided_once_it_is_there,
    a_half_has_a_row_of_its_size, a_second_row_is_noticed, a_half_that_is_decided_needs_no_row,
)
