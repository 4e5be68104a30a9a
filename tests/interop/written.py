"""Messages as their sender knows them, compared with those of a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

from tests.interop.remoting import PulledMessages
from tests.support.rocketmq.stores import Queue, Record
from tests.support.rocketmq.transactions import CHECKSUM

BROKER = "the broker hands out"
FROM_BROKER = frozenset({"CLUSTER", "MSG_REGION", "TRACE_ON"})  # properties that it adds to what it is sent
NOT_SENT = FROM_BROKER | {CHECKSUM}  # the last one is our implementation's to add; brokers hand it out with the others


@dataclass(frozen=True)
class Message:
    """One message; its number is its place in the list of its queue."""

    position: int
    body: bytes
    properties: Mapping[str, str]

    @property
    def tag(self) -> str:
        """The tag that consumers filter by; empty if it has none."""
        return self.properties.get("TAGS", "")


@dataclass
class WrittenStore:
    """Every queue that there is, with its messages from number 0 on; one that is empty stands here too."""

    queues: dict[Queue, list[Message]] = field(default_factory=dict)
    unindexed: int = 0  # of the last messages: nothing made entries for them

    @property
    def count(self) -> int:
        """Messages in all queues."""
        return sum(map(len, self.queues.values()))

    @property
    def last(self) -> Message:
        """The one that lies last in the log."""
        return max((messages[-1] for messages in self.queues.values() if messages), key=lambda last: last.position)

    def add(self, queue: Queue, message: Message) -> None:
        """Written behind the others of its queue."""
        self.queues.setdefault(queue, []).append(message)


def differences(queue: Queue, messages: list[Message], consumed: PulledMessages, who: str = BROKER) -> list[str]:
    """Describe the first message that differs, and missing, additional or refused messages.

    A line each.
    """
    name = f"{queue[0]}/{queue[1]}"
    wrong = [
        f"{name}: {found}"
        for number, (message, record) in enumerate(zip_longest(messages, consumed.records))
        if message and record
        for found in _difference(queue, number, message, record, who)
    ]
    lines = [f"{wrong[0]} ({len(wrong)} in all)"] if wrong else []
    if len(messages) != len(consumed.records):
        lines.append(f"{name}: {len(messages)} messages were written, {who} {len(consumed.records)}")
    if consumed.stopped:
        lines.append(f"{name}: {consumed.stopped}")
    return lines


def _difference(queue: Queue, number: int, message: Message, record: Record, who: str) -> Iterator[str]:
    """The first thing, if any, in which what is handed out as `number` is not the message."""
    properties = {name: value for name, value in record.property_map.items() if name not in NOT_SENT}
    pairs = (
        ("queue", queue, (record.topic, record.queue)),
        ("number", number, record.number),
        ("position", message.position, record.position),
        ("tag", message.tag, record.property_map.get("TAGS", "")),
        ("properties", dict(message.properties), properties),
    )
    for what, written, found in pairs:
        if written != found:
            yield f"{what} of message {number} was written as {written}, {who} {found}"
            return
    if message.body != record.body:
        yield f"the body of message {number} is not what was written"
