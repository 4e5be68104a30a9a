"""Prisoners are led one by one into a room with two switches, and must flip one; one shall know when all were there.

As TLA+'s Prisoners has it. Each moves switch A up twice, if it is down; the counter moves it down, and counts. The
switches are anyhow in the beginning. Prisoner 0 counts.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace

Prisoner = NewType("Prisoner", int)
PRISONERS = 4


@dataclass(frozen=True, slots=True)
class State:
    """The switches, and what the prisoners know."""

    prisoners: int = PRISONERS  # which no step changes
    a_is_up: bool = False
    b_is_up: bool = False
    moved: Map[Prisoner, int] = Map(0)  # how often each has moved A up
    count: int = 0  # how often the counter has moved A down


def begin(s: State, a_is_up: bool, b_is_up: bool) -> State:
    """The switches are anyhow."""
    return replace(s, a_is_up=a_is_up, b_is_up=b_is_up)


def visit(s: State, prisoner: Prisoner) -> State:
    """A prisoner who is not the counter is in the room."""
    applies(0 < prisoner < s.prisoners)
    if not s.a_is_up and s.moved[prisoner] < 2:
        return replace(s, a_is_up=True, moved=s.moved.set(prisoner, s.moved[prisoner] + 1))
    return replace(s, b_is_up=not s.b_is_up)


def count(s: State) -> State:
    """The counter is in the room."""
    if s.a_is_up:
        return replace(s, a_is_up=False, count=s.count + 1)
    return replace(s, b_is_up=not s.b_is_up)


def who_has_counted_enough_has_counted_all(s: State) -> bool:
    """Otherwise they stay in prison for ever."""
    return implies(
        s.count >= 2 * (s.prisoners - 1),
        all_between(1, s.prisoners, lambda p: s.moved[Prisoner(p)] > 0),
    )


def none_moves_it_up_more_than_twice(s: State, prisoner: Prisoner) -> bool:
    """Otherwise the counter counts one for two."""
    return 0 <= s.moved[prisoner] <= 2


INITIAL = State()
INITIALS = (begin,)
ACTIONS = (visit, count)
INVARIANTS = (who_has_counted_enough_has_counted_all, none_moves_it_up_more_than_twice)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={"a_is_up": (0, 1), "b_is_up": (0, 1), "prisoner": range(PRISONERS)},
)
