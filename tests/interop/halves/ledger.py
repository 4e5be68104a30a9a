"""The fate of each transaction, as its producers know it, and the log of requests and answers."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.interop.halves.producer import ProducerLine
from tests.support.rocketmq import stores
from tests.support.rocketmq.stores import Queue

OPEN, COMMIT, ROLLBACK, PARKED, AWAY = "open", "commit", "rollback", "parked", "away"
CLIENT = "client.ndjson"
GROUP, TOPIC = "billing", "orders"
MAX_CHECKS = 5


def answer(body: bytes) -> str:
    """Return the producer's answer to a back-check: its body states it, or else it is unknown."""
    return body.decode().split("/")[1]


@dataclass
class Transaction:
    """A transaction: `queue`: that of its message · `fate`: OPEN, COMMIT, ROLLBACK, PARKED, or AWAY: no producer."""

    queue: Queue
    fate: str


@dataclass
class Ledger:
    """All messages that were sent, by their bodies, which are all different.

    `asked_again`: they were decided, and no op says so: a broker asks again, and a second message is its own habit
    (docs/rocketmq-transactions.md#n1) · `repeated`: messages with such a second one · `seen`: by queue, the last
    consumed messages.
    """

    home: Path
    transactions: dict[bytes, Transaction] = field(default_factory=dict)
    plain: dict[bytes, Queue] = field(default_factory=dict)
    asked_again: set[bytes] = field(default_factory=set)
    repeated: set[bytes] = field(default_factory=set)
    seen: dict[Queue, list[bytes]] = field(default_factory=dict)
    serial: int = 0
    _unkeyed: list[dict[str, Any]] = field(default_factory=list)

    def body(self, first: str, asked: str = "none") -> bytes:
        """A new body: what its producer decides at first, and what it answers when asked."""
        self.serial += 1
        return f"{first}/{asked}/{self.serial}".encode()

    def of_fate(self, fate: str) -> set[bytes]:
        """The bodies of the transactions that have it."""
        return {body for body, transaction in self.transactions.items() if transaction.fate == fate}

    def asked_now(self) -> set[bytes]:
        """Return the bodies that the next opener of the store asks about, if it reads the ops alone."""
        return self.of_fate(OPEN) | self.asked_again

    def resolve(self, *, parks: bool) -> None:
        """Resolve all open transactions that were asked about as their producers answered; the others are set aside."""
        for body in self.of_fate(AWAY) if parks else ():
            self.transactions[body].fate = PARKED
        for body in self.of_fate(OPEN):
            known = answer(body) in (COMMIT, ROLLBACK)
            self.transactions[body].fate = answer(body) if known else PARKED if parks else OPEN

    def visible(self, queue: Queue) -> Counter[bytes]:
        """Count the messages of a queue that consumers must see."""
        found = Counter(body for body, of in self.plain.items() if of == queue)
        for body, transaction in self.transactions.items():
            if transaction.queue == queue and transaction.fate == COMMIT:
                found[body] = 1
        return found

    @property
    def queues(self) -> list[Queue]:
        """List the queues that messages were sent to."""
        return sorted({*self.plain.values(), *(each.queue for each in self.transactions.values())})

    # -- the client log (traces/README.md) ---------------------------------------------------------------------------

    def sent(self, op: str, queue: Queue, body: bytes, number: int, position: int) -> None:
        """A message or a half was taken; its key is looked up in the log by `write_client_log`."""
        line = {"op": op, "topic": queue[0], "queue": queue[1], "len": len(body), "crc": zlib.crc32(body) & 0x7FFFFFFF}
        self._unkeyed.append({**line, "result": "ok", "qoff": number, "phys": position})

    def ended(self, number: int, position: int, decision: str, result: str, *, asked: bool = False) -> None:
        """A decision was sent about this version of a half."""
        known = decision in (COMMIT, ROLLBACK)
        line = {"op": "end", "half": number, "phys": position, "from_check": asked}
        outcome = {"decision": decision, "result": result} if known else {"decision": "unknown", "result": "none"}
        self._unkeyed.append(line | outcome)

    def checked(self, number: int, position: int, times: int) -> None:
        """A back-check came in."""
        self._unkeyed.append({"op": "check", "half": number, "phys": position, "times": str(times)})

    def take(self, events: Iterable[ProducerLine], topic: str) -> None:
        """Add the lines of RocketMQ's producer. Its decisions are sent oneway: they get no answer."""
        for line in events:
            if line.what == "sent":
                self.sent("half", (topic, line.where), line.body, line.number, line.position)
            else:
                self.checked(line.number, line.position, line.where)
            self.ended(line.number, line.position, line.decision, "unknown", asked=line.what == "asked")

    def write_client_log(self) -> None:
        """Write `client.ndjson` next to the store, with all lines so far."""
        keys = {record.position: record.property_map.get("UNIQ_KEY") for record in stores.read_log(self.home / "store")}
        with (self.home / CLIENT).open("a") as log:
            for line in self._unkeyed:
                log.write(json.dumps(line | {"uniq": keys.get(line["phys"])}) + "\n")
        self._unkeyed.clear()
