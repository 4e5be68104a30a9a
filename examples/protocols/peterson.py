"""Peterson's algorithm: two processes exclude each other from a critical section by reading and writing only.

As TLA+'s Peterson has it, with its labels a0, a1, a2, a3, cs and a4 in words.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Claim, Helpful, Map, applies, implies, replace, require

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


def a_place_is_one_of_the_program(s: State, process: Process) -> bool:
    """Otherwise a process is where it never comes from again."""
    return Place.RESTING <= s.place[process] <= Place.LEAVING


def the_turn_is_one_of_two(s: State) -> bool:
    """Otherwise neither may enter."""
    return 0 <= s.turn < 2


def flags_show_who_wants(s: State, process: Process) -> bool:
    """Otherwise the other process overlooks this one."""
    return s.flag[process] == (s.place[process] >= Place.YIELDING)


def who_is_inside_was_let_in(s: State, process: Process) -> bool:
    """Otherwise the other process may still pass by."""
    return implies(inside(s.place[process]), s.turn == process or s.place[Process(1 - process)] <= Place.YIELDING)


def wants_to_enter(s: State, process: Process) -> bool:
    """True from when a process wants to enter, until it does."""
    return Place.WANTING <= s.place[process] <= Place.WAITING


def is_inside(s: State, process: Process) -> bool:
    """True if a process has entered."""
    return inside(s.place[process])


def other(process: Process) -> Process:
    """The process that is not this one."""
    return Process(1 - process)


def may_enter(s: State, process: Process) -> bool:
    """True if a process waits, and the other one does not go first."""
    return s.place[process] == Place.WAITING and (not s.flag[other(process)] or s.turn == process)


def is_in_the_way(s: State, process: Process, place: Place) -> bool:
    """True if a process waits for the other one, which is at this place."""
    return s.place[process] == Place.WAITING and not may_enter(s, process) and s.place[other(process)] == place


def wants(s: State, process: Process) -> bool:
    """True if a process has not shown yet that it wants to enter."""
    return s.place[process] == Place.WANTING


def yields(s: State, process: Process) -> bool:
    """True if a process has not let the other one go first yet."""
    return s.place[process] == Place.YIELDING


def other_yields(s: State, process: Process) -> bool:
    """True if the other process is about to let this one go first."""
    return is_in_the_way(s, process, Place.YIELDING)


def other_may_enter(s: State, process: Process) -> bool:
    """True if it is the other process that goes first."""
    return is_in_the_way(s, process, Place.WAITING)


def other_is_critical(s: State, process: Process) -> bool:
    """True if the other process is in the critical section."""
    return is_in_the_way(s, process, Place.CRITICAL)


def other_leaves(s: State, process: Process) -> bool:
    """True if the other process is on the way out."""
    return is_in_the_way(s, process, Place.LEAVING)


def steps_before(s: State, process: Process) -> int:
    """The steps, at most, before a process has entered: its own, and those of the other one's way round."""
    there = s.place[other(process)]
    if s.place[process] < Place.WAITING:
        return 10 - s.place[process]
    if there >= Place.CRITICAL:
        return 10 - there
    return 7 if there == Place.WAITING and s.turn != process else 4 - there


INITIAL = State()
ACTIONS = (want, raise_flag, give_way, enter, finish, lower_flag)
INVARIANTS = (
    only_one_is_inside,
    there_are_two_processes,
    a_place_is_one_of_the_program,
    the_turn_is_one_of_two,
    flags_show_who_wants,
    who_is_inside_was_let_in,
)
CLAIMS = (
    Claim(
        "who wants to enter does",
        otherwise="a process waits for ever while the other one comes and goes",
        pending=wants_to_enter,
        done=is_inside,
        fair={
            raise_flag: "a process that wants to enter shows it",
            give_way: "a process that has raised its flag lets the other one go first",
            enter: "a process that may enter does",
            finish: "work in the critical section comes to an end",
            lower_flag: "a process that has done its work lowers its flag",
        },
        rank=steps_before,
        helpful=(
            Helpful(raise_flag, when=wants),
            Helpful(give_way, when=yields),
            Helpful(enter, when=may_enter),
            Helpful(give_way, when=other_yields, args={"process": other}),
            Helpful(enter, when=other_may_enter, args={"process": other}),
            Helpful(finish, when=other_is_critical, args={"process": other}),
            Helpful(lower_flag, when=other_leaves, args={"process": other}),
        ),
    ),
)
BOUND = Bound(says="all states", within=lambda s: True, numbers={"process": range(2)})
