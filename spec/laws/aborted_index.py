"""Laws of `aborted_index`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import aborted_index
from gapless.spec.aborted_index import NOWHERE, State
from gapless.spec.language import Number, accepts, implies


def an_index_may_be_opened_at_any_offset(s: State, at: Number) -> bool:
    """Otherwise a log whose oldest segments were deleted cannot be judged."""
    return implies(0 <= at, accepts(aborted_index.open, s, at) == (not s.opened))


def _fits(s: State, first: Number, last: Number, stable: Number) -> bool:
    return s.opened and s.end <= last and NOWHERE < first and first < last and NOWHERE < stable and stable <= last + 1


def an_abort_may_follow_one_that_has_its_entry(
    s: State, producer: int, first: Number, last: Number, stable: Number
) -> bool:
    """Otherwise a sound log is accused, or an entry is missing unnoticed."""
    taken = accepts(aborted_index.abort, s, producer, first, last, stable)
    return implies(_fits(s, first, last, stable), taken == (s.hidden == s.end))


def _entered(
    s: State, producer: int, first: Number, last: Number, stable: Number, of: int, begin: Number, marker: Number,
    decided: Number,
) -> State:  # fmt: skip
    return aborted_index.enter(aborted_index.abort(s, producer, first, last, stable), of, begin, marker, decided)


def an_entry_says_what_its_abort_says(
    s: State, producer: int, first: Number, last: Number, stable: Number, of: int, begin: Number, marker: Number,
    decided: Number,
) -> bool:  # fmt: skip
    """Otherwise a sound index is accused, or aborted records are received unnoticed."""
    same = of == producer and begin == first and marker == last and decided == stable
    taken = accepts(_entered, s, producer, first, last, stable, of, begin, marker, decided)
    return implies(_fits(s, first, last, stable) and s.hidden == s.end, taken == same)


def _entered_twice(s: State, producer: int, first: Number, last: Number, stable: Number) -> State:
    entered = _entered(s, producer, first, last, stable, producer, first, last, stable)
    return aborted_index.enter(entered, producer, first, last, stable)


def no_abort_has_two_entries(s: State, producer: int, first: Number, last: Number, stable: Number) -> bool:
    """Otherwise an entry that names committed records may pass for the second of an abort."""
    return not accepts(_entered_twice, s, producer, first, last, stable)


def a_segment_ends_if_its_last_abort_has_its_entry(s: State) -> bool:
    """Otherwise an entry is missing unnoticed."""
    return accepts(aborted_index.close, s) == (s.opened and s.hidden == s.end)


ENABLED = (
    an_index_may_be_opened_at_any_offset,
    an_abort_may_follow_one_that_has_its_entry,
    an_entry_says_what_its_abort_says,
    no_abort_has_two_entries,
    a_segment_ends_if_its_last_abort_has_its_entry,
)
