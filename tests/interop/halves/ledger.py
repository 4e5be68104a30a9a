"""What became of each transaction, as its producers know it, and the log of what clients asked and were told."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.interop.halves.producer import Told
from tests.support.rocketmq import stores
from tests.support.rocketmq.stores import Queue

OPEN, COMMIT, ROLLBACK, PARKED, AWAY = "open", "commit", "rollback", "parked", "away"
CLIENT = "client.ndjson"
GROUP, TOPIC = "billing", "orders"
MAX_CHECKS = 5


def answer(body: bytes) -> str:
    """What the producer of a transaction answers when it is asked: its body says so. Else it does not know."""
    return body.decode().split("/")[1]


@dataclass
class Transaction:
    """`queue`: where its message is to go · `fate`: OPEN, COMMIT, ROLLBACK, PARKED, or AWAY: nobody can be asked."""

    queue: Queue
    fate: str


@dataclass
class Ledger:
    """All messages that were sent, by their bodies, no two of which are equal.

    `told_again`: they were decided, and no op says so: a broker asks again, and a second message is its own habit
    (docs/rocketmq-transactions.md#n1) · `repeated`: what has such a second message · `seen`: by queue, what was
    consumed last.
    """

    home: Path
    transactions: dict[bytes, Transaction] = field(default_factory=dict)
    plain: dict[bytes, Queue] = field(default_factory=dict)
    told_again: set[bytes] = field(default_factory=set)
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
        """The bodies of those that whoever opens the store next asks about, if it looks at the ops alone."""
        return self.of_fate(OPEN) | self.told_again

    def resolve(self, *, parks: bool) -> None:
        """All that were open have been asked about, and are what their producers said; the others are set aside."""
        for body in self.of_fate(AWAY) if parks else ():
            self.transactions[body].fate = PARKED
        for body in self.of_fate(OPEN):
            known = answer(body) in (COMMIT, ROLLBACK)
            self.transactions[body].fate = answer(body) if known else PARKED if parks else OPEN

    def visible(self, queue: Queue) -> Counter[bytes]:
        """What consumers are to see of a queue, and how often."""
        found = Counter(body for body, of in self.plain.items() if of == queue)
        for body, transaction in self.transactions.items():
            if transaction.queue == queue and transaction.fate == COMMIT:
                found[body] = 1
        return found

    @property
    def queues(self) -> list[Queue]:
        """Where anything was sent."""
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
        said = {"decision": decision, "result": result} if known else {"decision": "unknown", "result": "none"}
        self._unkeyed.append(line | said)

    def checked(self, number: int, position: int, times: int) -> None:
        """A back-check came in."""
        self._unkeyed.append({"op": "check", "half": number, "phys": position, "times": str(times)})

    def take(self, told: Iterable[Told], topic: str) -> None:
        """What RocketMQ's producer says. Its decisions are sent oneway: nobody answers them."""
        for line in told:
            if line.what == "sent":
                self.sent("half", (topic, line.where), line.body, line.number, line.position)
            else:
                self.checked(line.number, line.position, line.where)
            self.ended(line.number, line.position, line.decision, "unknown", asked=line.what == "asked")

    def write_client_log(self) -> None:
        """`client.ndjson` beside the store has all that was said so far."""
        keys = {record.position: record.property_map.get("UNIQ_KEY") for record in stores.read_log(self.home / "store")}
        with (self.home / CLIENT).open("a") as log:
            for line in self._unkeyed:
                log.write(json.dumps(line | {"uniq": keys.get(line["phys"])}) + "\n")
        self._unkeyed.clear()
