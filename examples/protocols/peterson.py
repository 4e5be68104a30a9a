"""Peterson's algorithm: two processes exclude each other from a critical section by reading and writing only.

As TLA+'s Peterson has it, with its labels a0, a1, a2, a3, cs and a4 in words.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, applies, implies, replace, require

Process = NewType("Process", int)


class Place(IntEnum):
    """The places in a process's program."""

    RESTING = 0
    WANTING = 1
    YIELDING = 2
    WAITING = 3
    CRITICAL = 4
    LEAVING = 5


@dataclass(frozen=True, slots=True)
class State:
    """Two processes, their flags, and whose turn it is."""

    place: Map[Process, Place] = Map(Place.RESTING)
    flag: Map[Process, bool] = Map(False)
    turn: Process = Process(0)


def want(s: State, process: Process) -> State:
    """A process wants to enter."""
    applies(0 <= process < 2 and s.place[process] == Place.RESTING)
    return replace(s, place=s.place.set(process, Place.WANTING))


def raise_flag(s: State, process: Process) -> State:
    """A process shows that it wants to enter."""
    applies(s.place[process] == Place.WANTING)
    return replace(s, place=s.place.set(process, Place.YIELDING), flag=s.flag.set(process, True))


def give_way(s: State, process: Process) -> State:
    """A process lets the other one go first."""
    applies(s.place[process] == Place.YIELDING)
    return replace(s, place=s.place.set(process, Place.WAITING), turn=Process(1 - process))


def enter(s: State, process: Process) -> State:
    """A process enters the critical section."""
    applies(s.place[process] == Place.WAITING)
    require(
        not s.flag[Process(1 - process)] or s.turn == process,
        "the-other-one-does-not-go-first",
        because="the other process does not want to enter, or it is this one's turn",
        otherwise="both are in the critical section",
    )
    return replace(s, place=s.place.set(process, Place.CRITICAL))


def finish(s: State, process: Process) -> State:
    """A process has done its work."""
    applies(s.place[process] == Place.CRITICAL)
    return replace(s, place=s.place.set(process, Place.LEAVING))


def lower_flag(s: State, process: Process) -> State:
    """A process leaves the critical section."""
    applies(s.place[process] == Place.LEAVING)
    return replace(s, place=s.place.set(process, Place.RESTING), flag=s.flag.set(process, False))


def inside(place: Place) -> bool:
    """True in the critical section, and on the way out of it."""
    return place == Place.CRITICAL or place == Place.LEAVING


def only_one_is_inside(s: State) -> bool:
    """Otherwise two processes write at once."""
    return not (inside(s.place[Process(0)]) and inside(s.place[Process(1)]))


def there_are_two_processes(s: State, process: Process) -> bool:
    """Otherwise a third one enters."""
    return 0 <= process < 2 or (s.place[process] == Place.RESTING and not s.flag[process])


def the_turn_is_one_of_two(s: State) -> bool:
    """Otherwise neither may enter."""
    return 0 <= s.turn < 2


def flags_show_who_wants(s: State, process: Process) -> bool:
    """Otherwise the other process overlooks this one."""
    return s.flag[process] == (s.place[process] >= Place.YIELDING)


def who_is_inside_was_let_in(s: State, process: Process) -> bool:
    """Otherwise the other process may still pass by."""
    return implies(inside(s.place[process]), s.turn == process or s.place[Process(1 - process)] <= Place.YIELDING)


INITIAL = State()
ACTIONS = (want, raise_flag, give_way, enter, finish, lower_flag)
INVARIANTS = (
    only_one_is_inside,
    there_are_two_processes,
    the_turn_is_one_of_two,
    flags_show_who_wants,
    who_is_inside_was_let_in,
)
BOUND = Bound(says="all states", within=lambda s: True, numbers={"process": range(2)})
