"""A client of a RocketMQ broker, no larger than needed: it makes topics, sends, and pulls, one request at a time.

A frame is its length, the length of its header (JSON: the top byte is 0), the header and the body.
"""

from __future__ import annotations

import itertools
import json
import socket
import struct
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.support.rocketmq import stores
from tests.support.rocketmq.stores import Queue, Record

PULL, UPDATE_TOPIC, UPDATE_SETTINGS, SEARCH_BY_TIME, MAX_NUMBER, MIN_NUMBER, SEND = (
    11,
    17,
    25,
    29,
    30,
    31,
    310,
)  # request codes
OK, RETRY_AT_ONCE = 0, 20  # what is answered
INLINE_SUBSCRIPTION = 4  # of the flags of a pull
ANSWER = 1  # of the flags of a frame
WITHIN = 15  # seconds, for an answer
GROUP = "interop"


class Refused(Exception):  # noqa: N818 - it says what happened
    """The broker answered, but not what was asked for."""


@dataclass(frozen=True)
class Answer:
    """A response."""

    code: int
    remark: str
    fields: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class PulledMessages:
    """All that a consumer gets from a queue, in the order in which it gets it.

    `stopped` says why it could not go on to the queue's end, if it could not.
    """

    records: list[Record]
    stopped: str = ""


class Client:
    """One connection. Requests raise `OSError` if it breaks or an answer does not come in time."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self._socket = socket.create_connection((address, port), WITHIN)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")
        self._ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._socket.close()

    def make_topic(self, name: str, queues: int, attributes: str = "") -> None:
        """A new topic, to write and to read; `attributes` as an administrator gives them. Raises `Refused`."""
        wanted = {"topic": name, "defaultTopic": "TBW102", "readQueueNums": queues, "writeQueueNums": queues}
        rest = {"perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false"}
        self._granted(UPDATE_TOPIC, wanted | rest | ({"attributes": attributes} if attributes else {}))

    def configure(self, **settings: int) -> None:
        """The broker has these settings from now on. Raises `Refused`."""
        self._granted(UPDATE_SETTINGS, {}, "".join(f"{name}={value}\n" for name, value in settings.items()).encode())

    def send(self, queue: Queue, body: bytes, properties: dict[str, str]) -> tuple[int, int]:
        """The number and the position that the broker gave the message. Raises `Refused`."""
        topic, index = queue
        fields = {"a": GROUP, "b": topic, "c": "TBW102", "d": 4, "e": index, "f": 0, "g": int(time.time() * 1000)}
        fields |= {"h": 0, "i": stores.properties(properties).decode(), "j": 0, "k": "false", "m": "false"}
        reply = self._granted(SEND, fields, body).fields
        return int(reply["queueOffset"]), int(reply["msgId"][-16:], 16)

    def number(self, code: int, queue: Queue, **more: int) -> int:
        """`MIN_NUMBER`, `MAX_NUMBER` (exclusive), or the first stored at a `timestamp` or later. Raises `Refused`."""
        topic, index = queue
        return int(self._granted(code, {"topic": topic, "queueId": index, **more}).fields["offset"])

    def consume(self, queue: Queue, tag: str = "*") -> PulledMessages:
        """Pull a queue from its first number to its end, or the messages of one tag.

        The broker filters by tag.
        """
        records: list[Record] = []
        number, end = self.number(MIN_NUMBER, queue), self.number(MAX_NUMBER, queue)
        while number < end:
            answer = self._pull(queue, number, tag)
            found, rest = _records(answer.body)
            records += found
            if rest:
                return PulledMessages(records, f"a pull at {number} of {end} brought {rest} bytes that are no record")
            following = int(answer.fields.get("nextBeginOffset", number))
            if answer.code not in (OK, RETRY_AT_ONCE) or following <= number:
                return PulledMessages(
                    records, f"a pull at {number} of {end} was answered {answer.code}: {answer.remark}"
                )
            number = following
        return PulledMessages(records)

    def _pull(self, queue: Queue, number: int, tag: str) -> Answer:
        topic, index = queue
        wanted = {"consumerGroup": GROUP, "topic": topic, "queueId": index, "queueOffset": number, "maxMsgNums": 32}
        how = {"sysFlag": INLINE_SUBSCRIPTION, "subscription": tag, "subVersion": 0, "expressionType": "TAG"}
        return self.ask(PULL, wanted | how | {"commitOffset": 0, "suspendTimeoutMillis": 0})

    def _granted(self, code: int, fields: dict[str, Any], body: bytes = b"") -> Answer:
        answer = self.ask(code, fields, body)
        if answer.code != OK:
            raise Refused(f"request {code} {fields} was answered {answer.code}: {answer.remark}")
        return answer

    def ask(self, code: int, fields: dict[str, Any], body: bytes = b"") -> Answer:
        """Whatever is answered."""
        ours = next(self._ids)
        header = {"code": code, "language": "PYTHON", "version": 453, "opaque": ours, "flag": 0}
        header |= {"extFields": {name: str(value) for name, value in fields.items()}, "serializeTypeCurrentRPC": "JSON"}
        raw = json.dumps(header).encode()
        self._socket.sendall(struct.pack(">II", 4 + len(raw) + len(body), len(raw)) + raw + body)
        while True:
            found, body = self._frame()
            if found["flag"] & ANSWER and found["opaque"] == ours:
                return Answer(found["code"], found.get("remark") or "", found.get("extFields") or {}, body)

    def _frame(self) -> tuple[dict[str, Any], bytes]:
        length, header = struct.unpack(">II", self._exactly(8))
        raw = self._exactly(length - 4)
        return json.loads(raw[: header & 0xFFFFFF]), raw[header & 0xFFFFFF :]

    def _exactly(self, count: int) -> bytes:
        raw = self._file.read(count)
        if len(raw) < count:
            raise ConnectionError("the broker closed the connection")
        return raw


def _records(raw: bytes) -> tuple[list[Record], int]:
    """The records of a pull, as they lie in the log, and how many bytes from the first on that is none."""
    records: list[Record] = []
    at = 0
    while at < len(raw):
        try:
            record, end = stores.fields(raw, at)
        except (struct.error, UnicodeDecodeError):
            break
        if stores.encode(record) != raw[at:end]:
            break
        records.append(record)
        at = end
    return records, len(raw) - at
