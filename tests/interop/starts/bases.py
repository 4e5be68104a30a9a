"""Base stores that a real broker made: small files, and something of everything that a start reads."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.interop.broker import Broker, free_port, portable_settings
from tests.interop.layouts import COMPACTED, COMPACTS
from tests.interop.remoting import MAX_NUMBER, Client
from tests.interop.traffic import COMMIT, GROUP, HALF, HEARTBEAT, MAKE_GROUP, ROLLBACK, SAVE_CURSOR, Sender
from tests.support.rocketmq.stores import Queue

ARCHIVES = Path(__file__).parents[2] / "recordings" / "starts"
LINES = ("5.5.0", "5.3.3", "4.9.7")
WITH_WHEEL = "5"  # the first line with messages that wait in a timer wheel
STOPPED, KILLED = ENDINGS = "stopped", "killed"
PENDING = 15  # seconds until delayed messages are due that wait at the stop: every start finds them overdue
FIRST_FLUSH = 11  # seconds until a broker first writes cursors and filters
DELIVERED = 4  # seconds until the first delayed messages are delivered, and that is written down
SMALL: Mapping[str, str | int] = {
    "brokerClusterName": "lab",
    "brokerName": "lab-a",
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 2000,
    "messageIndexEnable": "true",
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    "messageDelayLevel": f"1s {PENDING}s 2h",
    "flushConsumerOffsetInterval": 1000,
    "flushDelayOffsetInterval": 1000,
    "enablePropertyFilter": "true",
    "transactionTimeOut": 3_600_000,
}
WHEEL: Mapping[str, str | int] = {"timerWheelEnable": "true", "mappedFileSizeTimerLog": 416}


@dataclass(frozen=True)
class Base:
    """One kind of base store: its settings, its topics with queues and attributes, and the lines that have it."""

    says: str
    settings: Mapping[str, str | int] = field(default_factory=dict)
    topics: Mapping[str, tuple[int, str]] = field(default_factory=lambda: {"orders": (2, ""), "payments": (1, "")})
    lines: tuple[str, ...] = LINES

    def settings_of(self, line: str) -> dict[str, str | int]:
        """All settings for a broker of this line."""
        return {**SMALL, **(WHEEL if line >= WITH_WHEEL else {}), **self.settings}


BASES = {
    "files": Base("queues in files"),
    "rocksdb": Base("queues in a RocksDB database", {"storeType": "defaultRocksDB"}, lines=("5.5.0", "5.3.3")),
    "compacted": Base(
        "a compacted topic",
        COMPACTED,
        {"orders": (2, ""), "payments": (1, ""), "kv": (1, COMPACTS)},
        lines=("5.5.0", "5.3.3"),
    ),
}


class FullSender(Sender):
    """One whose messages all have a body: without one, a broker refuses them."""

    def body(self) -> bytes:
        """Return a body that is not empty."""
        return super().body() or b"short"

    def send(self, queue: Queue, more: dict[str, str], *, op: str = "send", flags: int = 0) -> dict[str, Any]:
        """Send one message, again where a busy broker refuses it."""
        while not (answer := super().send(queue, more, op=op, flags=flags))["ok"]:
            time.sleep(0.1)
        return answer


def make_base(home: Path, broker: Broker, base: Base, line: str, ending: str) -> None:
    """Have a broker make a store in `home/store`, and end as asked; what waits in it is due when this returns."""
    with broker, broker.client() as client:
        for topic, (queues, attributes) in base.topics.items():
            client.make_topic(topic, queues, attributes)
        sender = FullSender(client, home / "client.ndjson", Random(42), [("orders", 0), ("orders", 1), ("payments", 0)])
        _send(sender, base)
        if ending == KILLED:
            time.sleep(FIRST_FLUSH)
        _delay(sender, line)
        due = time.monotonic() + PENDING + 1
        time.sleep(DELIVERED)
        (broker.stop if ending == STOPPED else broker.kill)()
    time.sleep(max(due - time.monotonic(), 0))


def fresh_base(home: Path, jars: Path, java: str, cell: tuple[str, str, str], jvm: tuple[str, ...]) -> None:
    """Make the base store of a line, a base and an ending."""
    line, base, ending = cell
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    broker = Broker(home, jars, java, free_port(), BASES[base].settings_of(line), jvm=jvm)
    make_base(home, broker, BASES[base], line, ending)


def pack(home: Path, name: str, archives: Path = ARCHIVES) -> None:
    """Pack the store and its settings, for tests that damage it without a broker."""
    archives.mkdir(exist_ok=True)
    settings = portable_settings(home).encode()
    with tarfile.open(archives / f"{name}.tar.xz", "w:xz") as archive:
        entry = tarfile.TarInfo(f"{name}/broker.conf")
        entry.size = len(settings)
        archive.addfile(entry, io.BytesIO(settings))
        archive.add(home / "store", f"{name}/store", filter=_without_owner)


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _send(sender: Sender, base: Base) -> None:
    """Send messages that fill files, four transactions, one of them open, cursors and a filter."""
    client = sender.client
    for queue, count in ((("payments", 0), 80), (("orders", 0), 250), (("orders", 1), 100)):
        for _ in range(count):
            sender.send(queue, {})
    for decision in (ROLLBACK, COMMIT, COMMIT, None):
        half = sender.send(("payments", 0), {"TRAN_MSG": "true", "PGROUP": GROUP}, op="half", flags=HALF)
        if decision is not None:
            sender.end("payments", half, decision)
    for number in range(130 if "kv" in base.topics else 0):
        sender.send(("kv", 0), {"KEYS": f"key{number % 7}"})
    client.ask(MAKE_GROUP, {}, json.dumps({"groupName": "CG_lab", "retryMaxTimes": 5}).encode())
    for topic, number in sender.queues:
        end = client.number(MAX_NUMBER, (topic, number))
        client.ask(
            SAVE_CURSOR, {"consumerGroup": "CG_lab", "topic": topic, "queueId": number, "commitOffset": end // 2}
        )
    _filter(client)


def _delay(sender: Sender, line: str) -> None:
    """Messages of every delay level, and with times of their own: delivered, overdue at the next start, and later."""
    for level in "123":
        for _ in range(5):
            sender.send(("payments", 0), {"DELAY": level})
    for seconds in (2, PENDING, 7200) if line >= WITH_WHEEL else ():
        for _ in range(4):
            sender.send(("payments", 0), {"TIMER_DELIVER_MS": str(int(time.time() * 1000) + seconds * 1000)})


def _filter(client: Client) -> None:
    """A consumer that filters by an expression."""
    asked: dict[str, Any] = {
        "topic": "orders",
        "subString": "a is null or a = 1",
        "expressionType": "SQL92",
        "subVersion": 1,
    }
    asked |= {"tagsSet": [], "codeSet": [], "classFilterMode": False}
    group: dict[str, Any] = {"groupName": "CG_sql", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    group |= {"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "unitMode": False, "subscriptionDataSet": [asked]}
    record: dict[str, Any] = {
        "clientID": "127.0.0.1@lab",
        "producerDataSet": [],
        "heartbeatFingerprint": 0,
        "withoutSub": False,
    }
    client.ask(HEARTBEAT, {}, json.dumps(record | {"consumerDataSet": [group]}).encode())
