"""The contents that a broker serves: flat, comparable, and summed up in one line where two differ."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from tests.interop.remoting import MAX_NUMBER, MIN_NUMBER, OK, PULL, RETRY_AT_ONCE, Client
from tests.support.rocketmq import stores

TOPICS, CURSORS, DELAYS, TIMER_METRICS, GROUPS, BY_KEY = 21, 43, 45, 61, 201, 12
LOOKING = "CG_look"  # the group by which messages are pulled
CHECKING = "CID_RMQ_SYS_TRANS"  # the group of the broker itself: its cursors move in time
LARGE = 1 << 62

Seen = dict[str, str]


def observe(connect: Callable[[], Client], queues: list[stores.Queue], keys: list[tuple[str, str]]) -> Seen:
    """Everything that a client can ask for, by name."""
    with connect() as client:
        found = [*_tables(client), *_keys(client, keys)]
    for topic, queue in queues:
        with connect() as client:  # one of its own, for a pull may get no answer
            found += _queue(client, topic, queue)
    return dict(found)


def _json(body: bytes) -> Any:
    """Parse JSON in which numbers are keys, as brokers write it."""
    return json.loads(re.sub(rb"([{,]\s*)(\d+)\s*:", rb'\1"\2":', body) or b"{}")


def _tables(client: Client) -> Iterator[tuple[str, str]]:
    """The contents of the files in `config/`, as a broker has them."""
    for name, topic in _table(client, TOPICS, "topicConfigTable", topicSeq=0, maxTopicNum=1000):
        kinds = ",".join(sorted(topic.get("attributes") or {}))
        queues = f"{topic['readQueueNums']}/{topic['writeQueueNums']} perm {topic['perm']}"
        yield f"topic {name}", f"{queues} {kinds}".strip()
    for name, group in _table(client, GROUPS, "subscriptionGroupTable", groupSeq=0, maxGroupNum=1000):
        if name != LOOKING:
            yield f"group {name}", f"retries {group['retryMaxTimes']}"
    for name, numbers in _table(client, CURSORS, "offsetTable"):
        for queue, number in numbers.items() if CHECKING not in name else ():
            yield f"cursor {name}/{queue}", str(number)
    for level, number in _table(client, DELAYS, "offsetTable"):
        yield f"delay-level {level}", str(number)
    for topic, metric in _table(client, TIMER_METRICS, "timingCount"):
        yield f"timer-count {topic}", str(metric["count"])


def _table(client: Client, code: int, name: str, **fields: int) -> Iterator[tuple[str, Any]]:
    """The items of a table; none where the broker does not answer."""
    answer = client.ask(code, fields)
    if answer.code == OK:
        yield from _json(answer.body).get(name, {}).items()


def _queue(client: Client, topic: str, queue: int) -> Iterator[tuple[str, str]]:
    fields = {"topic": topic, "queueId": queue}
    least, most = client.ask(MIN_NUMBER, fields), client.ask(MAX_NUMBER, fields)
    if least.code or most.code:
        yield f"ends {topic}/{queue}", f"refused with {least.code or most.code}"
        return
    first, end = int(least.fields["offset"]), int(most.fields["offset"])
    yield f"ends {topic}/{queue}", f"{first}..{end}"
    yield f"messages {topic}/{queue}", _pulled(client, topic, queue, first, end)


def _pulled(client: Client, topic: str, queue: int, first: int, end: int) -> str:
    """The number of messages, and a checksum of them that does not depend on their order."""
    number, count, digest = first, 0, 0
    while number < end:
        wanted = {"consumerGroup": LOOKING, "topic": topic, "queueId": queue, "queueOffset": number, "maxMsgNums": 32}
        rest = {"sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 0}
        try:
            answer = client.ask(PULL, wanted | rest | {"expressionType": "TAG"})
        except TimeoutError:
            return f"{count} {digest % (1 << 32):08x}, stuck at {number} of {end} (no answer)"
        following = int((answer.fields or {}).get("nextBeginOffset", number))
        at = 0
        while at < len(answer.body):
            record, at = stores.fields(answer.body, at)
            count += 1
            key = re.search(rb"UNIQ_KEY\x01([^\x02]*)", record.properties)
            digest += zlib.crc32(record.body + (key[1] if key else b""))
        if answer.code not in (OK, RETRY_AT_ONCE) or following <= number:
            return f"{count} {digest % (1 << 32):08x}, stuck at {number} of {end} ({answer.code})"
        number = following
    return f"{count} {digest % (1 << 32):08x}"


def _keys(client: Client, keys: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for topic, key in keys:
        fields = {"topic": topic, "key": key, "maxNum": 64, "beginTimestamp": 0, "endTimestamp": LARGE}
        answer = client.ask(BY_KEY, fields)
        count, at = 0, 0
        while answer.code == OK and at < len(answer.body):
            at += int.from_bytes(answer.body[at : at + 4], "big")
            count += 1
        yield f"key {topic} {key}", str(count)


def differences(sound: Seen, seen: Seen) -> list[str]:
    """One line for each kind of thing that differs."""
    lines = []
    for kind in dict.fromkeys(name.split(" ")[0] for name in sound):
        was = {name.partition(" ")[2]: value for name, value in sound.items() if name.split(" ")[0] == kind}
        now = {name.partition(" ")[2]: value for name, value in seen.items() if name.split(" ")[0] == kind}
        gone = [name for name in was if name not in now]
        other = [
            f"{name} {was[name]} -> {now[name]}" for name in was if _less(kind, was[name], now.get(name, was[name]))
        ]
        parts = [f"{how} {_few(names)}" for how, names in (("gone", gone), ("changed", other)) if names]
        if parts:
            lines.append(f"{kind}: {', '.join(parts)}")
    return lines


def _less(kind: str, was: str, now: str) -> bool:
    """True if a value is not what it was; a key that finds more messages, of an index built again, is no loss."""
    return int(now) < int(was) if kind == "key" else now != was


def _few(names: list[str], most: int = 4) -> str:
    shown = " + ".join(sorted(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
