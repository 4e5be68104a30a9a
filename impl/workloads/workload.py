"""What producers send to a store in a trial, the same for the same seed; and the log of the answers they got."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Self

import numpy as np

from gapless.impl.records.record import Messages

BEGIN = 1_700_000_000_000  # ms since 1970, when the first message is sent
PACE = 10_000  # messages per second of the senders' clock, where no rate is asked for
TOPICS = ("orders", "payments", "audit", "shipments")
TAGS = ("", "new", "paid", "cancelled")
TOGETHER = 1 << 12  # messages that are drawn at once

Result = Literal["ok", "fail", "unknown"]


class Sending(NamedTuple):
    """A message that a producer sends, and when, in ms."""

    topic: str
    queue: int
    body: bytes
    tag: str
    key: str
    time: int

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the message: its tag if it has one, and the key that identifies it."""
        return {"TAGS": self.tag, "UNIQ_KEY": self.key} if self.tag else {"UNIQ_KEY": self.key}


@dataclass(frozen=True)
class Workload:
    """Messages to be sent. `queues`: of each topic · `shortest`, `longest`: bytes of a body · `rate`: a second."""

    messages: int
    topics: int = 2
    queues: int = 4
    shortest: int = 100
    longest: int = 2000
    rate: float | None = None
    seed: int = 0

    def sends(self) -> Iterator[Sending]:
        """The messages, in order: topic, queue, size, content and tag of each are drawn from the seed."""
        random = np.random.default_rng(self.seed)
        content = random.bytes(2 * self.longest + 1)
        for low in range(0, self.messages, TOGETHER):
            count = min(TOGETHER, self.messages - low)
            columns = random.integers(0, [self.topics, self.queues, self.longest + 1, len(TAGS)], size=(count, 4))
            sizes = random.integers(self.shortest, self.longest, count, endpoint=True)
            for at, (drawn, size) in enumerate(zip(columns.tolist(), sizes.tolist(), strict=True), low):
                topic, queue, begin, tag = drawn
                yield Sending(
                    topic_name(topic),
                    queue,
                    content[begin : begin + size],
                    TAGS[tag],
                    f"{self.seed:08X}{at:024X}",
                    BEGIN + int(at * 1000 / (self.rate or PACE)),
                )


def messages_of(sends: Sequence[Sending]) -> Messages:
    """The messages in columns, to be appended together."""
    return Messages.of_list([(send.topic, send.queue, send.body, send.properties) for send in sends])


def topic_name(number: int) -> str:
    """The name of a topic, by its number from 0."""
    return TOPICS[number] if number < len(TOPICS) else f"topic-{number}"


class ClientLogWriter:
    """Writes the producers' requests and answers as lines of JSON (traces/README.md). A whole file gets its name.

    `counts`: how often each result was written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: dict[Result, int] = {"ok": 0, "fail": 0, "unknown": 0}
        self._unfinished = path.with_name(f".{path.name}.tmp")
        self._file = self._unfinished.open("w", encoding="utf-8")

    def __enter__(self) -> Self:
        """The log."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The file has its name. It has none if the system refused to write it. Raises OSError."""
        try:
            self._file.close()
            self._unfinished.replace(self.path)
        finally:
            self._unfinished.unlink(missing_ok=True)

    def tell(self, send: Sending, result: Result, number: int | None = None, position: int | None = None) -> None:
        """The outcome of one send, and the place that the answer gave."""
        self.counts[result] += 1
        place: Mapping[str, int] = {} if number is None or position is None else {"qoff": number, "phys": position}
        line = {
            "op": "send",
            "topic": send.topic,
            "queue": send.queue,
            "uniq": send.key,
            "len": len(send.body),
            "crc": zlib.crc32(send.body),
            "result": result,
            **place,
        }
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
