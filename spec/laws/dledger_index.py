"""Laws of `dledger_index`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import dledger_index
from gapless.spec.dledger_index import State
from gapless.spec.language import Number, Position, accepts, implies


def an_index_may_begin_anywhere(s: State, first: Number) -> bool:
    """Otherwise a log whose oldest files have expired cannot be judged."""
    return implies(0 <= first, accepts(dledger_index.open, s, first) == (not s.begun))


def a_unit_is_taken_if_it_is_what_its_entry_says(
    s: State, number: Number, position: Position, size: int, term: int, known: bool,
    its_number: Number, its_position: Position, its_size: int, its_term: int,
) -> bool:
    """Otherwise a whole index is called broken, or replicas part by one that is not."""
    follows = s.begun and number == s.end and s.missing == 0
    fits = its_number == number and its_position == position and its_size == size and its_term == term
    taken = accepts(
        dledger_index.find_unit, s, number, position, size, term, known, its_number, its_position, its_size, its_term
    )
    return implies(0 < size, taken == (follows and known and fits))


def the_last_units_may_be_missing_where_a_broker_was_killed(s: State, number: Number, killed: bool) -> bool:
    """Otherwise a broker that was killed is called broken, or one that lost units is not."""
    return accepts(dledger_index.miss_units, s, number, killed) == (s.begun and number == s.end and killed)


def a_start_takes_files_of_one_length_that_are_called_by_numbers(s: State, numbered: bool, sized: bool) -> bool:
    """Otherwise a broker that starts is reported as not starting, or the other way round."""
    return accepts(dledger_index.start, s, numbered, sized) == (numbered and sized)


def _unit(s: State, number: Number, position: Position) -> State:
    return dledger_index.find_unit(s, number, position, 1, 0, True, number, position, 1, 0)  # noqa: FBT003 - an event's flags


def _two_units(s: State, number: Number, position: Position) -> State:
    return _unit(_unit(s, s.end, Position(0)), number, position)


def units_come_one_behind_the_other(s: State, number: Number, position: Position) -> bool:
    """Otherwise an entry is passed over, or looked for twice."""
    going = s.begun and s.missing == 0
    return implies(going, accepts(_two_units, s, number, position) == (number == s.end + 1))


def _unit_behind_a_gap(s: State, number: Number) -> State:
    return _unit(dledger_index.miss_units(s, s.end, True), number, Position(0))  # noqa: FBT003 - an event's flags


def nothing_comes_behind_units_that_are_missing(s: State, number: Number) -> bool:
    """Otherwise an entry between others cannot be found, unnoticed."""
    return not accepts(_unit_behind_a_gap, s, number)


ENABLED = (
    an_index_may_begin_anywhere,
    a_unit_is_taken_if_it_is_what_its_entry_says,
    the_last_units_may_be_missing_where_a_broker_was_killed,
    a_start_takes_files_of_one_length_that_are_called_by_numbers,
    units_come_one_behind_the_other,
    nothing_comes_behind_units_that_are_missing,
)
