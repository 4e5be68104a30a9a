"""Each process writes 1, then reads its left neighbour: when all are done, one of them has read 1.

After Lamport, "Teaching Concurrency", as TLA+'s Simple has it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace

Process = NewType("Process", int)
PROCESSES = 5


class Place(IntEnum):
    """The places in a process's program."""

    WRITING = 0
    READING = 1
    DONE = 2


@dataclass(frozen=True, slots=True)
class State:
    """A ring of processes."""

    processes: int = PROCESSES  # which no step changes
    place: Map[Process, Place] = Map(Place.WRITING)
    written: Map[Process, bool] = Map(False)
    read: Map[Process, bool] = Map(False)


def write(s: State, process: Process) -> State:
    """A process writes."""
    applies(0 <= process < s.processes and s.place[process] == Place.WRITING)
    return replace(s, place=s.place.set(process, Place.READING), written=s.written.set(process, True))


def look(s: State, process: Process) -> State:
    """A process reads what its left neighbour wrote."""
    applies(0 <= process < s.processes and s.place[process] == Place.READING)
    left = Process(s.processes - 1 if process == 0 else process - 1)
    return replace(s, place=s.place.set(process, Place.DONE), read=s.read.set(process, s.written[left]))


def one_has_read_it(s: State) -> bool:
    """Otherwise all have read nothing, and none knows of the others."""
    return implies(
        s.processes > 0 and all_between(0, s.processes, lambda p: s.place[Process(p)] == Place.DONE),
        not all_between(0, s.processes, lambda p: not s.read[Process(p)]),
    )


def who_reads_has_written(s: State, process: Process) -> bool:
    """Otherwise a process reads first."""
    return implies(s.place[process] != Place.WRITING, s.written[process])


INITIAL = State()
ACTIONS = (write, look)
INVARIANTS = (one_has_read_it, who_reads_has_written)
BOUND = Bound(says="all states", within=lambda s: True, numbers={"process": range(PROCESSES)})
