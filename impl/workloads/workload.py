"""Messages that producers send to a store in a trial, the same for the same seed; and the client log."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import count, repeat
from pathlib import Path
from random import Random
from threading import Lock
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from gapless.impl.records.record import Messages

BEGIN = 1_700_000_000_000  # ms since 1970, when the first message is sent
PACE = 10_000  # messages per second of the senders' clock, where no rate is asked for
TOPICS = ("orders", "payments", "audit", "shipments")
TAGS = ("", "new", "paid", "cancelled")
TOGETHER = 1 << 12  # messages that are drawn at once

Result = Literal["ok", "fail", "unknown"]
Decision = Literal["commit", "rollback", "unknown"]


class Fate(Enum):
    """The decision of its producer about a message."""

    SEND = auto()  # without a transaction: consumers see it at once
    COMMIT = auto()
    ROLL_BACK = auto()
    COMMIT_WHEN_ASKED = auto()
    ROLL_BACK_WHEN_ASKED = auto()
    NEVER_KNOW = auto()


SHARES = {
    Fate.SEND: 0.5,
    Fate.COMMIT: 0.275,
    Fate.ROLL_BACK: 0.075,
    Fate.COMMIT_WHEN_ASKED: 0.075,
    Fate.ROLL_BACK_WHEN_ASKED: 0.05,
    Fate.NEVER_KNOW: 0.025,
}
"""Of the messages of a workload with transactions."""


class PlannedSend(NamedTuple):
    """A message that a producer sends, and when, in ms."""

    topic: str
    queue: int
    body: bytes
    tag: str
    key: str
    time: int
    fate: Fate = Fate.SEND

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the message: its tag if it has one, and the key that identifies it.

        A half is identified by the key that the store gives it.
        """
        key = {"UNIQ_KEY" if self.fate is Fate.SEND else "KEYS": self.key}
        return {"TAGS": self.tag, **key} if self.tag else key


@dataclass(frozen=True)
class Workload:
    """Messages to be sent. `queues`: of each topic · `shortest`, `longest`: bytes of a body · `rate`: a second.

    `transactions`: half of the messages are sent as halves.
    """

    messages: int
    topics: int = 2
    queues: int = 4
    shortest: int = 100
    longest: int = 2000
    rate: float | None = None
    seed: int = 0
    transactions: bool = False

    def sends(self) -> Iterator[PlannedSend]:
        """The messages, in order: topic, queue, size, content and tag of each are drawn from the seed."""
        random = np.random.default_rng(self.seed)
        content = random.bytes(2 * self.longest + 1)
        fates = self._fates()
        for low in range(0, self.messages, TOGETHER):
            count = min(TOGETHER, self.messages - low)
            columns = random.integers(0, [self.topics, self.queues, self.longest + 1, len(TAGS)], size=(count, 4))
            sizes = random.integers(self.shortest, self.longest, count, endpoint=True)
            for at, (drawn, size) in enumerate(zip(columns.tolist(), sizes.tolist(), strict=True), low):
                topic, queue, begin, tag = drawn
                yield PlannedSend(
                    topic_name(topic),
                    queue,
                    content[begin : begin + size],
                    TAGS[tag],
                    f"{self.seed:08X}{at:024X}",
                    BEGIN + int(at * 1000 / (self.rate or PACE)),
                    next(fates),
                )

    def _fates(self) -> Iterator[Fate]:
        """One for each message, drawn apart from the rest: without transactions, a seed gives what it always gave."""
        if not self.transactions:
            return repeat(Fate.SEND)
        chance = Random(self.seed)  # noqa: S311 - a seed is no secret
        return (chance.choices([*SHARES], [*SHARES.values()])[0] for _ in count())


def messages_of(sends: Sequence[PlannedSend]) -> Messages:
    """The messages in columns, to be appended together."""
    return Messages.of_list([(send.topic, send.queue, send.body, send.properties) for send in sends])


def topic_name(number: int) -> str:
    """The name of a topic, by its number from 0."""
    return TOPICS[number] if number < len(TOPICS) else f"topic-{number}"


class ClientLogWriter:
    """Writes the producers' requests and answers as lines of JSON (traces/README.md). A whole file gets its name.

    `counts`: how often each result was written for a message or a half · `decisions`: what was asked for halves,
    `asked`: how often the store asked. Any thread may write a line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: dict[Result, int] = {"ok": 0, "fail": 0, "unknown": 0}
        self.decisions: Counter[Decision] = Counter()
        self.asked = 0
        self._unfinished = path.with_name(f".{path.name}.tmp")
        self._file = self._unfinished.open("w", encoding="utf-8")
        self._writing = Lock()

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

    def tell(
        self,
        send: PlannedSend,
        result: Result,
        number: int | None = None,
        position: int | None = None,
        *,
        half_key: str | None = None,
    ) -> None:
        """The outcome of one send, and the place that the answer gave. `half_key`: it is a half, with this key."""
        self.counts[result] += 1
        place: Mapping[str, int] = {} if number is None or position is None else {"qoff": number, "phys": position}
        self._write(
            op="send" if half_key is None else "half",
            topic=send.topic,
            queue=send.queue,
            uniq=half_key or send.key,
            len=len(send.body),
            crc=zlib.crc32(send.body),
            result=result,
            **place,
        )

    def tell_check(self, key: str, number: int, position: int, times: int) -> None:
        """The store asked about this version of a half."""
        self.asked += 1
        self._write(op="check", uniq=key, half=number, phys=position, times=str(times))

    def tell_end(
        self, key: str, number: int, position: int, decision: Decision, result: Result, *, asked: bool = False
    ) -> None:
        """Log a producer's decision about this version of a half, and the answer. `asked`: by a check.

        That it does not know is never answered.
        """
        self.decisions[decision] += 1
        outcome = "none" if decision == "unknown" else result
        self._write(op="end", uniq=key, half=number, phys=position, decision=decision, from_check=asked, result=outcome)

    def _write(self, **line: Any) -> None:
        with self._writing:
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
