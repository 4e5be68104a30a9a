"""Traffic of clients while a store is recorded, and their log of it: `client.ndjson`.

Each kind of traffic is a function of a sender and of how many messages it may send; `KINDS` has them by name.
"""

from __future__ import annotations

import json
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.interop.remoting import MAX_NUMBER, OK, PULL, SEND, Answer, Client
from tests.support.rocketmq import stores

END, SEND_BATCH, SAVE_CURSOR, MAKE_GROUP, HEARTBEAT, POP = 37, 320, 15, 200, 34, 200050
COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
DECISIONS = {COMMIT: "commit", ROLLBACK: "rollback", UNKNOWN: "unknown"}
STORED = (OK, 10, 11, 12)  # answers to a message that is in the log, flushed and replicated or not
GROUP, HALF = "PG_lab", 4  # a producer's group; of a message's flags, that it is a half
TAGS = ("", "TagA", "TagB", "créé", "a-rather-long-tag-name-for-hashing")


class Sender:
    """One producer. What it asks and is answered is written down; a connection that breaks raises `OSError`."""

    def __init__(self, client: Client, log: Path, choose: Random, queues: list[stores.Queue]) -> None:
        self.client = client
        self.log = log
        self.choose = choose
        self.queues = queues
        self.sent = 0

    def key(self) -> str:
        """Return the key of the next message, unlike that of any other of any life."""
        self.sent += 1
        return f"{self.choose.getrandbits(96):024X}{self.sent:08X}"

    def body(self) -> bytes:
        """No two are alike, and a compressor likes them."""
        size = self.choose.choice((0, 20, 100, 100, 300, 900))
        return (f"{self.choose.getrandbits(48):012x}|".encode() + b"alpha-omega-" * (size // 12 + 1))[:size]

    def properties(self, **more: str) -> dict[str, str]:
        """Return properties of a message: its keys, often a tag, and more."""
        key = self.key()
        found = {"UNIQ_KEY": key, "KEYS": f"k{self.sent} a{self.sent % 17}", "WAIT": "true"}
        tag = self.choose.choice(TAGS)
        return found | ({"TAGS": tag} if tag else {}) | more

    def send(self, queue: stores.Queue, more: dict[str, str], *, op: str = "send", flags: int = 0) -> dict[str, Any]:
        """One message."""
        properties, body = self.properties(**more), self.body()
        fields = self._fields(queue, stores.properties(properties).decode(), flags, batch=False)
        known = {"topic": queue[0], "key": properties["KEYS"], "uniq": properties["UNIQ_KEY"], "sysflag": flags}
        known |= {"queue": queue[1], "len": len(body), "crc": zlib.crc32(body) & 0x7FFFFFFF}
        return self._asked(op, SEND, fields, body, known)

    def batch(self, queue: stores.Queue, count: int, *, keys: str | None = None, bodies: bool = True) -> None:
        """Some messages at once; with these keys, or each with its own."""
        more = {} if keys is None else {"KEYS": keys}
        parts, uniqs = [], []
        for _ in range(count):
            properties, body = self.properties(**more), self.body() if bodies else b""
            encoded = stores.properties(properties)
            uniqs.append(properties["UNIQ_KEY"])
            parts.append(struct.pack(">IIIiI", 22 + len(body) + len(encoded), 0, 0, 0, len(body)) + body)
            parts.append(struct.pack(">H", len(encoded)) + encoded)
        fields = self._fields(queue, stores.properties({"WAIT": "true"}).decode(), 0, batch=True)
        known = {"topic": queue[0], "queue": queue[1], "n": count, "uniqs": uniqs}
        self._asked("batch", SEND_BATCH, fields, b"".join(parts), known)

    def end(self, topic: str, half: dict[str, Any], decision: int) -> None:
        """Decide a transaction."""
        fields = {"topic": topic, "producerGroup": GROUP, "tranStateTableOffset": half["qoff"], "bname": "lab-a"}
        fields |= {"commitLogOffset": half["phys"], "commitOrRollback": decision, "fromTransactionCheck": "false"}
        fields |= {"msgId": half["uniq"], "transactionId": half["uniq"]}
        known = {"uniq": half["uniq"], "half": half["qoff"], "phys": half["phys"], "from_check": False}
        self._asked("end", END, fields, b"", known | {"decision": DECISIONS[decision]})

    def _fields(self, queue: stores.Queue, properties: str, flags: int, *, batch: bool) -> dict[str, Any]:
        fields = {"a": GROUP, "b": queue[0], "c": "TBW102", "d": 4, "e": queue[1], "f": flags, "h": 0, "j": 0}
        return fields | {"g": int(time.time() * 1000), "i": properties, "k": "false", "m": str(batch).lower()}

    def _asked(self, op: str, code: int, fields: dict[str, Any], body: bytes, known: dict[str, Any]) -> dict[str, Any]:
        began = time.time() * 1000
        try:
            answer = self.client.ask(code, fields, body)
        except (OSError, ValueError):
            self._write(op=op, t0=began, t1=time.time() * 1000, client="c0", result="unknown", **known)
            raise
        known |= self._placed(op, answer)
        result = "ok" if answer.code in STORED else "fail"
        self._write(op=op, t0=began, t1=time.time() * 1000, client="c0", result=result, code=answer.code, **known)
        return known | {"ok": result == "ok"}

    def _placed(self, op: str, answer: Answer) -> dict[str, Any]:
        """Return the places of messages that the broker reports."""
        if op == "end" or "msgId" not in answer.fields:
            return {}
        places = [int(one[-16:], 16) for one in answer.fields["msgId"].split(",")]
        number = int(answer.fields["queueOffset"])
        return {
            "queue": int(answer.fields["queueId"]), "qoff": number, "phys": places if op == "batch" else places[0]
        }  # fmt: skip

    def _write(self, **line: Any) -> None:
        with self.log.open("a") as log:
            log.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")


def _each(sender: Sender, count: int, more: Callable[[int], dict[str, str]]) -> None:
    for number in range(count):
        sender.send(sender.choose.choice(sender.queues), more(number))


def _plain(sender: Sender, count: int) -> None:
    _each(sender, count, lambda _: {})


def _batches(sender: Sender, count: int) -> None:
    for _ in range(count // 6):
        sender.batch(sender.choose.choice(sender.queues), sender.choose.randint(2, 9))


def _delayed(sender: Sender, count: int) -> None:
    _each(sender, count // 3, lambda number: {"DELAY": str(1 + number % 3)})


def _timed(sender: Sender, count: int) -> None:
    """For a time in the next seconds, soon or later than a round of the wheel; some are cancelled."""
    cancelled = f"{sender.choose.getrandbits(128):032X}"
    for number in range(count // 2):
        due = str(int(time.time() * 1000) + sender.choose.choice((700, 2500, 6000, 50_000)))
        more = {"TIMER_DELIVER_MS": due} | ({"UNIQ_KEY": cancelled} if number % 11 == 5 else {})
        sender.send(sender.choose.choice(sender.queues), more)


def _light(sender: Sender, count: int) -> None:
    def named(_: int) -> dict[str, str]:
        some = sender.choose.sample(range(7), sender.choose.randint(1, 4))
        return {"INNER_MULTI_DISPATCH": ",".join(f"%LMQ%q{queue}" for queue in some)}

    _each(sender, count, named)


def _transactions(sender: Sender, count: int) -> None:
    """Send transactions: two thirds are decided at once, the others are abandoned."""
    for number in range(count // 3):
        queue = sender.choose.choice(sender.queues)
        half = sender.send(queue, {"TRAN_MSG": "true", "PGROUP": GROUP}, op="half", flags=HALF)
        if half["ok"] and number % 3:
            sender.end(queue[0], half, COMMIT if number % 6 < 4 else ROLLBACK)


def _filtered(sender: Sender, count: int) -> None:
    """A consumer that filters by an expression, so that bitmaps are made from now on."""
    record: dict[str, Any] = {
        "clientID": "127.0.0.1@lab",
        "producerDataSet": [],
        "heartbeatFingerprint": 0,
        "withoutSub": False,
    }
    asked: dict[str, Any] = {"topic": sender.queues[0][0], "subString": "a is null or a = 1", "expressionType": "SQL92"}
    asked |= {"subVersion": int(time.time() * 1000), "tagsSet": [], "codeSet": [], "classFilterMode": False}
    group: dict[str, Any] = {"groupName": "CG_sql", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    group |= {"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "unitMode": False, "subscriptionDataSet": [asked]}
    sender.client.ask(HEARTBEAT, {}, json.dumps(record | {"consumerDataSet": [group]}).encode())
    _plain(sender, count)


def _popped(sender: Sender, count: int) -> None:
    """A group takes messages by pop and acknowledges none."""
    sender.client.ask(MAKE_GROUP, {}, json.dumps({"groupName": "CG_pop"}).encode())
    topics = sorted({topic for topic, _ in sender.queues})
    for _ in range(max(count // 12, 2)):
        for topic in topics:
            wanted = {"consumerGroup": "CG_pop", "topic": topic, "queueId": -1, "maxMsgNums": 8, "pollTime": 0}
            wanted |= {"invisibleTime": 10_000, "bornTime": int(time.time() * 1000), "initMode": 0, "order": "false"}
            sender.client.ask(POP, wanted | {"expType": "TAG", "exp": "*"})


def _keyed(sender: Sender, count: int) -> None:
    """Messages of few keys, some without any; in client batches some without a body, for alone brokers refuse these."""
    for number in range(count):
        queue = sender.choose.choice(sender.queues)
        key = sender.choose.choice((*(f"key{n}" for n in range(14)), "a b", "b a", "schlüssel", ""))
        if number % 12:
            sender.send(queue, {"KEYS": key} | ({"DELAY": "1"} if number % 40 == 7 else {}))
        else:
            sender.batch(queue, 1, keys=key, bodies=False)


KINDS: dict[str, Callable[[Sender, int], None]] = {
    "send": _plain,
    "batch": _batches,
    "delay": _delayed,
    "timer": _timed,
    "light": _light,
    "transaction": _transactions,
    "filter": _filtered,
    "pop": _popped,
    "keyed": _keyed,
}


def consume(sender: Sender, group: str = "CG_lab") -> None:
    """A consumer takes some of every queue, and says how far it is."""
    for topic, queue in sender.queues:
        end = sender.client.number(MAX_NUMBER, (topic, queue))
        wanted = {"consumerGroup": group, "topic": topic, "queueId": queue, "queueOffset": 0, "maxMsgNums": 8}
        rest = {"sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 0}
        sender.client.ask(PULL, wanted | rest | {"expressionType": "TAG"})
        reached = {"consumerGroup": group, "topic": topic, "queueId": queue, "commitOffset": end // 2}
        sender.client.ask(SAVE_CURSOR, reached)
