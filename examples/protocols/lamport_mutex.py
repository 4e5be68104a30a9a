"""Lamport's mutual exclusion: the oldest request enters, once all others have acknowledged that they know of it.

After Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System", as TLA+'s LamportMutex has it, with
three processes. Between two of them messages arrive in their order, and at most three are under way.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, applies, implies, replace, require

Process = NewType("Process", int)
CLOCKS = 3
NONE = 0  # no message; a request is its time, from 1 on
ACKNOWLEDGMENT = -1
RELEASE = -2


@dataclass(frozen=True, slots=True)
class State:
    """The processes, and the messages from one to another."""

    clock: Map[Process, int] = Map(1)
    request: Map[Process, Process, int] = Map(0)  # that a process knows of another's, and its own; 0 for none
    acknowledged: Map[Process, Process, bool] = Map(False)  # the process's request, by another
    critical: Map[Process, bool] = Map(False)
    first: Map[Process, Process, int] = Map(0)  # of the messages from one to another
    second: Map[Process, Process, int] = Map(0)
    third: Map[Process, Process, int] = Map(0)


def one_of_others(process: Process) -> Process:
    """One of the two other processes."""
    return Process((process + 1) % 3)


def other_of_others(process: Process) -> Process:
    """The other one."""
    return Process((process + 2) % 3)


def sent(s: State, sender: Process, receiver: Process, message: int) -> State:
    """The message is the last one under way from one process to another."""
    is_first = s.first[sender, receiver] == NONE
    is_second = not is_first and s.second[sender, receiver] == NONE
    is_third = not is_first and not is_second
    return replace(
        s,
        first=s.first.set(sender, receiver, message if is_first else s.first[sender, receiver]),
        second=s.second.set(sender, receiver, message if is_second else s.second[sender, receiver]),
        third=s.third.set(sender, receiver, message if is_third else s.third[sender, receiver]),
    )


def received(s: State, sender: Process, receiver: Process) -> State:
    """The first message from one process to another has arrived."""
    return replace(
        s,
        first=s.first.set(sender, receiver, s.second[sender, receiver]),
        second=s.second.set(sender, receiver, s.third[sender, receiver]),
        third=s.third.set(sender, receiver, NONE),
    )


def ask(s: State, process: Process) -> State:
    """A process sends its request to all others."""
    applies(0 <= process < 3 and s.request[process, process] == NONE)
    one = one_of_others(process)
    other = other_of_others(process)
    asking = replace(
        s,
        request=s.request.set(process, process, s.clock[process]),
        acknowledged=s.acknowledged.set(process, one, False).set(process, other, False),
    )
    return sent(sent(asking, process, one, s.clock[process]), process, other, s.clock[process])


def receive_request(s: State, process: Process, sender: Process) -> State:
    """A process receives a request, and acknowledges it."""
    applies(0 <= process < 3 and 0 <= sender < 3 and process != sender)
    applies(0 < s.first[sender, process])
    time = s.first[sender, process]
    known = replace(
        received(s, sender, process),
        request=s.request.set(process, sender, time),
        clock=s.clock.set(process, time + 1 if s.clock[process] < time else s.clock[process] + 1),
    )
    return sent(known, process, sender, ACKNOWLEDGMENT)


def receive_acknowledgment(s: State, process: Process, sender: Process) -> State:
    """A process receives an acknowledgment of its request."""
    applies(0 <= process < 3 and 0 <= sender < 3 and process != sender)
    applies(s.first[sender, process] == ACKNOWLEDGMENT)
    return replace(received(s, sender, process), acknowledged=s.acknowledged.set(process, sender, True))


def receive_release(s: State, process: Process, sender: Process) -> State:
    """A process receives that another one has left."""
    applies(0 <= process < 3 and 0 <= sender < 3 and process != sender)
    applies(s.first[sender, process] == RELEASE)
    return replace(received(s, sender, process), request=s.request.set(process, sender, NONE))


def is_before(s: State, process: Process, other: Process) -> bool:
    """True if a process knows of no older request of another one."""
    return (
        s.request[process, other] == NONE
        or s.request[process, process] < s.request[process, other]
        or (s.request[process, process] == s.request[process, other] and process < other)
    )


def enter(s: State, process: Process) -> State:
    """A process enters."""
    applies(0 <= process < 3 and s.request[process, process] != NONE)
    one = one_of_others(process)
    other = other_of_others(process)
    require(
        s.acknowledged[process, one] and s.acknowledged[process, other],
        "all-know-of-the-request",
        because="all others have acknowledged the request",
        otherwise="an older request is still under way",
    )
    require(
        is_before(s, process, one) and is_before(s, process, other),
        "no-request-is-older",
        because="no request is older",
        otherwise="two processes enter",
    )
    return replace(s, critical=s.critical.set(process, True))


def leave(s: State, process: Process) -> State:
    """A process leaves, and sends that to all others."""
    applies(0 <= process < 3 and s.critical[process])
    one = one_of_others(process)
    other = other_of_others(process)
    left = replace(
        s,
        critical=s.critical.set(process, False),
        request=s.request.set(process, process, NONE),
        acknowledged=s.acknowledged.set(process, one, False).set(process, other, False),
    )
    return sent(sent(left, process, one, RELEASE), process, other, RELEASE)


def only_one_is_inside(s: State, a: Process, b: Process) -> bool:
    """Otherwise two processes change what one of them reads."""
    return implies(s.critical[a] and s.critical[b], a == b)


INITIAL = State()
ACTIONS = (ask, receive_request, receive_acknowledgment, receive_release, enter, leave)
INVARIANTS = (only_one_is_inside,)
BOUND = Bound(
    says=f"clocks up to {CLOCKS}",
    within=lambda s: s.clock[Process(0)] <= CLOCKS and s.clock[Process(1)] <= CLOCKS and s.clock[Process(2)] <= CLOCKS,
    numbers={"process": range(3), "sender": range(3), "a": range(3), "b": range(3)},
)
