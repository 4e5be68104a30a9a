"""A queue with retries: a message that was taken too often is set aside. A spec as users write them."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, implies, replace, require

Message = NewType("Message", int)


class Status(IntEnum):
    """The states of a message."""

    NONE = 0
    READY = 1
    TAKEN = 2
    DELETED = 3
    DEAD = 4


@dataclass(frozen=True, slots=True)
class State:
    """The queue."""

    sent: Message = Message(0)
    status: Map[Message, Status] = Map(Status.NONE)
    tries: Map[Message, int] = Map(0)


def send(s: State, message: Message) -> State:
    """A producer sends a message."""
    require(message == s.sent, "numbers-are-counted", because="numbers are counted", otherwise="one is overwritten")
    return replace(s, sent=Message(s.sent + 1), status=s.status.set(message, Status.READY))


def receive(s: State, message: Message) -> State:
    """A consumer takes a message."""
    require(
        s.status[message] == Status.READY,
        "message-is-ready",
        because="the message is ready",
        otherwise="two have it",
    )
    return replace(s, status=s.status.set(message, Status.TAKEN), tries=s.tries.set(message, s.tries[message] + 1))


def time_out(s: State, message: Message) -> State:
    """A consumer did not answer in time."""
    require(
        s.status[message] == Status.TAKEN,
        "message-is-taken",
        because="the message is taken",
        otherwise="it comes twice",
    )
    if s.tries[message] >= 2:
        return replace(s, status=s.status.set(message, Status.DEAD))
    return replace(s, status=s.status.set(message, Status.READY))


def delete(s: State, message: Message) -> State:
    """A consumer is done with a message."""
    require(
        s.status[message] == Status.TAKEN,
        "message-is-taken",
        because="the message is taken",
        otherwise="it comes twice",
    )
    return replace(s, status=s.status.set(message, Status.DELETED))


def only_sent_messages_have_a_status(s: State, message: Message) -> bool:
    """Otherwise a message exists that no producer sent."""
    return 0 <= s.sent and implies(message < 0 or s.sent <= message, s.status[message] == Status.NONE)


def a_message_is_done_or_set_aside(s: State, message: Message) -> bool:
    """Otherwise a message is left."""
    done = s.status[message] == Status.DELETED or s.status[message] == Status.DEAD
    return implies(0 <= message < s.sent, done)


def no_message_is_taken(s: State, message: Message) -> bool:
    """Otherwise a consumer works on it still."""
    return s.status[message] != Status.TAKEN


INITIAL = State()
ACTIONS = (send, receive, time_out, delete)
INVARIANTS = (only_sent_messages_have_a_status,)
AT_REST = (a_message_is_done_or_set_aside,)
BOUND = Bound(says="two messages", within=lambda s: s.sent <= 2, numbers={"message": range(-1, 4)})
