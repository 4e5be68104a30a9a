"""Laws of `cursor`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import cursor
from gapless.spec.cursor import State
from gapless.spec.language import Number, accepts, implies


def whoever_has_everything_may_say_so(s: State, to: Number) -> bool:
    """Otherwise a group that lags, or has all, is called wrong, or one that is beyond the end is not."""
    within = 0 <= to and to <= s.end
    return accepts(cursor.save, s, to) == within and accepts(cursor.deliver, s, to) == within


def _came(s: State, end: Number, to: Number) -> State:
    return cursor.save(cursor.open(s, end), to)


def who_has_come_to_the_end_may_say_so(s: State, end: Number, to: Number) -> bool:
    """Otherwise a queue that was found has another end."""
    there = s.reached <= end and 0 <= end
    return implies(there, accepts(_came, s, end, to) == (0 <= to and to <= end))


ENABLED = (
    whoever_has_everything_may_say_so,
    who_has_come_to_the_end_may_say_so,
)
