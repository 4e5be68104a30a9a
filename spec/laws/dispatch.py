"""Laws of `dispatch`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import dispatch
from gapless.spec.dispatch import State
from gapless.spec.language import Number, accepts, all_between, implies


def _two_workers(s: State, number: Number, overlap: int, first: Number, second: Number) -> State:
    found = dispatch.open(s, number, overlap)
    given = dispatch.scan(dispatch.scan(found, found.scanned), Number(found.scanned + 1))
    return dispatch.take(dispatch.take(given, first), second)


def two_workers_are_at_a_queue_only_where_they_may(
    s: State, number: Number, overlap: int, first: Number, second: Number
) -> bool:
    """Otherwise a queue that was built for one worker is built by two, or workers wait for no reason."""
    new = s.lives == 0 and s.scanned == 0 and 0 <= number
    given = number <= first and first < number + 2 and number <= second and second < number + 2 and first != second
    return implies(new, accepts(_two_workers, s, number, overlap, first, second) == (given and 0 < overlap))


def what_stands_before_the_first_gap_may_become_visible(s: State, gap: Number) -> bool:
    """Otherwise a message is written, nothing is missing before it, and its consumers wait."""
    first = s.committed <= gap and all_between(s.committed, gap, lambda n: s.written[Number(n)] == 1)
    return implies(first and s.written[gap] == 0, accepts(dispatch.commit, s, gap))


def what_stands_before_a_gap_may_survive(s: State, kept: Number) -> bool:
    """Otherwise a broker that starts again after a crash is called broken."""
    whole = all_between(s.committed, kept, lambda n: s.written[Number(n)] == 1)
    return implies(s.flushed <= kept and whole, accepts(dispatch.crash, s, kept))


def all_that_is_visible_may_be_flushed(s: State) -> bool:
    """Otherwise a start that trusts the queues finds entries missing."""
    return accepts(dispatch.flush, s, s.committed)


def _flushed_and_crashed(s: State, to: Number, kept: Number) -> State:
    return dispatch.crash(dispatch.flush(s, to), kept)


def what_was_flushed_outlives_a_crash(s: State, to: Number, kept: Number) -> bool:
    """Otherwise a disk forgot what it had stored."""
    return implies(kept < to, not accepts(_flushed_and_crashed, s, to, kept))


def who_is_at_rest_loses_nothing(s: State, kept: Number) -> bool:
    """Otherwise what consumers have seen is gone after a stop in order."""
    rests = dispatch.every_message_is_visible(s) and dispatch.every_entry_is_on_disk(s)
    return implies(rests, accepts(dispatch.crash, s, kept) == (kept == s.scanned))


ENABLED = (
    two_workers_are_at_a_queue_only_where_they_may,
    what_stands_before_the_first_gap_may_become_visible,
    what_stands_before_a_gap_may_survive,
    all_that_is_visible_may_be_flushed,
    what_was_flushed_outlives_a_crash,
    who_is_at_rest_loses_nothing,
)
