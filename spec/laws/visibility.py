"""Laws of `visibility`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import visibility
from gapless.spec.language import Number, Position, accepts
from gapless.spec.visibility import State


def a_half_can_be_read_once_it_is_committed(s: State, number: Number, position: Position) -> bool:
    """Otherwise consumers read what may be taken back, or a copy of what they may read is called a fault."""
    return accepts(visibility.show, s, number, position) == (0 < s.finals)


def _committed(s: State, number: Number, position: Position) -> State:
    return visibility.show(visibility.commit(visibility.prepare(s, position)), number, position)


def _only_rolled_back(s: State, number: Number, position: Position) -> State:
    return visibility.show(visibility.roll_back(visibility.prepare(s, position)), number, position)


def a_commit_makes_visible_and_nothing_else_does(s: State, number: Number, position: Position) -> bool:
    """Otherwise a commit comes to nothing, or a message that was rolled back is delivered."""
    taken = accepts(_committed, s, number, position)
    return taken and accepts(_only_rolled_back, s, number, position) == (0 < s.finals)


ENABLED = (a_half_can_be_read_once_it_is_committed, a_commit_makes_visible_and_nothing_else_does)
