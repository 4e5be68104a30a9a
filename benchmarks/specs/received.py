"""Messages that each consumer receives once: a Map of two keys."""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Map, Number, implies, replace, require

Consumer = NewType("Consumer", int)


@dataclass(frozen=True, slots=True)
class State:
    """The messages that each consumer has received."""

    sent: Number = Number(0)
    received: Map[Consumer, Number, bool] = Map(False)


def send(s: State) -> State:
    """A message is sent."""
    return replace(s, sent=Number(s.sent + 1))


def receive(s: State, consumer: Consumer, number: Number) -> State:
    """A consumer receives a message."""
    require(
        0 <= number < s.sent, "message-was-sent", because="the message was sent", otherwise="a consumer gets a ghost"
    )
    require(
        not s.received[consumer, number],
        "message-is-new-to-the-consumer",
        because="the message is new to the consumer",
        otherwise="it is received twice",
    )
    return replace(s, received=s.received.set(consumer, number, True))


def only_sent_messages_are_received(s: State, consumer: Consumer, number: Number) -> bool:
    """Otherwise a consumer received what no producer sent."""
    return implies(s.received[consumer, number], 0 <= number < s.sent)


INITIAL = State()
ACTIONS = (send, receive)
INVARIANTS = (only_sent_messages_are_received,)
