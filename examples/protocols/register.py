"""A linearizable memory: each request takes effect at one moment between its beginning and its answer.

As TLA+'s InternalMemory has it (Lamport, "Specifying Systems", chapter 5); with one address it is a register.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, applies, every_map, implies, replace, require

Process = NewType("Process", int)
Address = NewType("Address", int)
Value = NewType("Value", int)
ADDRESSES = 3


class Phase(IntEnum):
    """The phases of a process."""

    READY = 0
    WAITING = 1
    DONE = 2


class Kind(IntEnum):
    """The kinds of what passes between a process and the memory."""

    NONE = 0  # the answer to a write
    READ = 1
    WRITE = 2
    VALUE = 3  # the answer to a read


@dataclass(frozen=True, slots=True)
class State:
    """The memory, what each process asked for or was answered, and what passed last."""

    memory: Map[Address, Value] = Map(Value(0))
    phase: Map[Process, Phase] = Map(Phase.READY)
    kind: Map[Process, Kind] = Map(Kind.NONE)
    address: Map[Process, Address] = Map(Address(0))  # of a request
    value: Map[Process, Value] = Map(Value(0))  # that is written, or was read
    last: Process = Process(0)
    last_kind: Kind = Kind.NONE
    last_address: Address = Address(0)
    last_value: Value = Value(0)


def begin(s: State, memory: Map[Address, Value]) -> State:
    """It begins with any memory."""
    return replace(s, memory=memory)


def ask(s: State, process: Process, kind: Kind, address: Address, value: Value) -> State:
    """A process asks to read an address, or to write a value there."""
    applies((kind == Kind.READ and value == 0) or kind == Kind.WRITE)
    require(
        s.phase[process] == Phase.READY,
        "process-has-its-answer",
        because="the process has the answer to its last request",
        otherwise="it takes an answer for that to another request",
    )
    return replace(
        s,
        phase=s.phase.set(process, Phase.WAITING),
        kind=s.kind.set(process, kind),
        address=s.address.set(process, address),
        value=s.value.set(process, value),
        last=process,
        last_kind=kind,
        last_address=address,
        last_value=value,
    )


def take_effect(s: State, process: Process) -> State:
    """The memory does what the process asked for."""
    require(
        s.phase[process] == Phase.WAITING,
        "process-waits",
        because="the process waits for the memory",
        otherwise="a request takes effect twice",
    )
    if s.kind[process] == Kind.WRITE:
        return replace(
            s,
            memory=s.memory.set(s.address[process], s.value[process]),
            phase=s.phase.set(process, Phase.DONE),
            kind=s.kind.set(process, Kind.NONE),
            address=s.address.set(process, Address(0)),
            value=s.value.set(process, Value(0)),
        )
    return replace(
        s,
        phase=s.phase.set(process, Phase.DONE),
        kind=s.kind.set(process, Kind.VALUE),
        address=s.address.set(process, Address(0)),
        value=s.value.set(process, s.memory[s.address[process]]),
    )


def answer(s: State, process: Process) -> State:
    """The process gets its answer."""
    require(
        s.phase[process] == Phase.DONE,
        "request-has-taken-effect",
        because="the request has taken effect",
        otherwise="a process reads on what was not written yet",
    )
    return replace(
        s,
        phase=s.phase.set(process, Phase.READY),
        last=process,
        last_kind=s.kind[process],
        last_address=Address(0),
        last_value=s.value[process],
    )


def who_waits_has_asked(s: State, process: Process) -> bool:
    """Otherwise the memory does what was not asked for."""
    asks = s.kind[process] == Kind.READ or s.kind[process] == Kind.WRITE
    return asks == (s.phase[process] == Phase.WAITING)


def takes_effect(before: State, after: State, process: Process) -> bool:
    """True if the request of a process takes effect in a step."""
    return before.phase[process] == Phase.WAITING and after.phase[process] == Phase.DONE


def a_read_answers_what_the_memory_has(before: State, after: State, process: Process) -> bool:
    """Otherwise it answers what was there before another write, or never."""
    return implies(
        takes_effect(before, after, process) and before.kind[process] == Kind.READ,
        after.kind[process] == Kind.VALUE and after.value[process] == before.memory[before.address[process]],
    )


def a_write_is_in_the_memory(before: State, after: State, process: Process) -> bool:
    """Otherwise it is answered, and lost."""
    return implies(
        takes_effect(before, after, process) and before.kind[process] == Kind.WRITE,
        after.memory[before.address[process]] == before.value[process],
    )


def an_answer_stays_until_it_is_given(before: State, after: State, process: Process) -> bool:
    """Otherwise a process is answered with what another one asked for."""
    return implies(
        before.phase[process] == Phase.DONE,
        after.kind[process] == before.kind[process] and after.value[process] == before.value[process],
    )


INITIAL = State()
INITIALS = (begin,)
ACTIONS = (ask, take_effect, answer)
INVARIANTS = (who_waits_has_asked,)
STEP_PROPERTIES = (
    a_read_answers_what_the_memory_has,
    a_write_is_in_the_memory,
    an_answer_stays_until_it_is_given,
)
BOUND = Bound(
    says="two processes, two values",
    within=lambda s: True,
    numbers={
        "memory": every_map(range(ADDRESSES), (0, 1), 0),
        "process": range(2),
        "kind": (Kind.READ, Kind.WRITE),
        "address": range(ADDRESSES),
        "value": range(2),
    },
)
