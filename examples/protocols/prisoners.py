"""Prisoners are led into a cell one by one, again and again; one shall know when all were there.

They see nothing but a light. Each turns it on once; one of them, the counter, turns it off, and counts. As TLA+'s
Prisoner has it, in the folder Prisoners_Single_Switch, with a light that is off in the beginning. Prisoner 0 counts.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace

Prisoner = NewType("Prisoner", int)
PRISONERS = 3


@dataclass(frozen=True, slots=True)
class State:
    """The light, what the prisoners know, and what the warden knows."""

    prisoners: int = PRISONERS  # which no step changes
    count: int = 1  # the prisoners of whom the counter knows that they were there, himself among them
    announced: bool = False
    signalled: Map[Prisoner, bool] = Map(False)  # has turned the light on
    light: bool = False
    visited: Map[Prisoner, bool] = Map(False)


def visit(s: State, prisoner: Prisoner) -> State:
    """A prisoner who is not the counter is in the cell."""
    applies(0 < prisoner < s.prisoners)
    signals = not s.light and not s.signalled[prisoner]
    return replace(
        s,
        light=s.light or signals,
        signalled=s.signalled.set(prisoner, s.signalled[prisoner] or signals),
        visited=s.visited.set(prisoner, True),
    )


def count(s: State) -> State:
    """The counter is in the cell: he announces that all were there, as soon as he has counted all."""
    counted = s.count + (1 if s.light else 0)
    return replace(
        s,
        light=False,
        count=counted,
        announced=counted >= s.prisoners,
        visited=s.visited.set(Prisoner(0), True),
    )


def what_is_announced_is_so(s: State) -> bool:
    """Otherwise they stay in prison for ever."""
    return implies(s.announced, all_between(0, s.prisoners, lambda p: s.visited[Prisoner(p)]))


def who_has_signalled_was_there(s: State, prisoner: Prisoner) -> bool:
    """Otherwise the counter counts who was not there."""
    return implies(s.signalled[prisoner], s.visited[prisoner])


INITIAL = State()
ACTIONS = (visit, count)
INVARIANTS = (what_is_announced_is_so, who_has_signalled_was_there)
BOUND = Bound(says="all states", within=lambda s: True, numbers={"prisoner": range(PRISONERS)})
