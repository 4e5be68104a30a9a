"""A lock: what Peterson's algorithm implements by reading and writing only.

As TLA+'s Lock has it, for any number of processes.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, applies, implies, replace, require

Process = NewType("Process", int)
PROCESSES = 2


class Place(IntEnum):
    """The places in a process's program."""

    RESTING = 0
    WAITING = 1
    CRITICAL = 2
    LEAVING = 3


@dataclass(frozen=True, slots=True)
class State:
    """The processes, and the lock."""

    processes: int = PROCESSES  # which no step changes
    place: Map[Process, Place] = Map(Place.RESTING)
    locked: bool = False


def want(s: State, process: Process) -> State:
    """A process wants to enter."""
    applies(0 <= process < s.processes and s.place[process] == Place.RESTING)
    return replace(s, place=s.place.set(process, Place.WAITING))


def enter(s: State, process: Process) -> State:
    """A process takes the lock."""
    applies(s.place[process] == Place.WAITING)
    require(not s.locked, "lock-is-free", because="the lock is free", otherwise="two processes have it")
    return replace(s, place=s.place.set(process, Place.CRITICAL), locked=True)


def finish(s: State, process: Process) -> State:
    """A process has done its work."""
    applies(s.place[process] == Place.CRITICAL)
    return replace(s, place=s.place.set(process, Place.LEAVING))


def leave(s: State, process: Process) -> State:
    """A process gives the lock back."""
    applies(s.place[process] == Place.LEAVING)
    return replace(s, place=s.place.set(process, Place.RESTING), locked=False)


def inside(place: Place) -> bool:
    """True in the critical section, and on the way out of it."""
    return place == Place.CRITICAL or place == Place.LEAVING


def only_one_is_inside(s: State, a: Process, b: Process) -> bool:
    """Otherwise two processes write at once."""
    return a == b or not (inside(s.place[a]) and inside(s.place[b]))


def who_is_inside_has_the_lock(s: State, process: Process) -> bool:
    """Otherwise another process takes it."""
    return implies(inside(s.place[process]), s.locked)


INITIAL = State()
ACTIONS = (want, enter, finish, leave)
INVARIANTS = (only_one_is_inside, who_is_inside_has_the_lock)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={"process": range(PROCESSES), "a": range(PROCESSES), "b": range(PROCESSES)},
)
