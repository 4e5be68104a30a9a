"""A channel with a handshake: a sender puts a value on it, and waits until the receiver has acknowledged it.

As TLA+'s Channel has it, in "Specifying Systems". It begins with 0 on the channel: every other beginning is reached
from there.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, applies, implies, replace, require

Data = NewType("Data", int)
VALUES = 3


@dataclass(frozen=True, slots=True)
class State:
    """The channel's lines."""

    data: Data = Data(0)
    ready: bool = False
    acknowledged: bool = False


def send(s: State, data: Data) -> State:
    """The sender puts a value on the channel."""
    applies(0 <= data < VALUES)
    require(
        s.ready == s.acknowledged,
        "last-value-was-received",
        because="the last value was received",
        otherwise="a value is lost",
    )
    return replace(s, data=data, ready=not s.ready)


def receive(s: State) -> State:
    """The receiver takes the value."""
    require(s.ready != s.acknowledged, "value-is-new", because="the value is new", otherwise="a value is taken twice")
    return replace(s, acknowledged=not s.acknowledged)


def values_are_in_their_range(s: State) -> bool:
    """Otherwise the receiver takes what was never sent."""
    return 0 <= s.data < VALUES


def a_value_stays_until_it_is_received(before: State, after: State) -> bool:
    """Otherwise a value is lost."""
    return implies(before.ready != before.acknowledged, after.data == before.data)


INITIAL = State()
ACTIONS = (send, receive)
INVARIANTS = (values_are_in_their_range,)
STEP_PROPERTIES = (a_value_stays_until_it_is_received,)
BOUND = Bound(says="all states", within=lambda s: True, numbers={"data": range(VALUES)})
