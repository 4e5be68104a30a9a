"""Trace messages, written and read in plain Python, and stores with clients that trace.

The layout is that of docs/rocketmq-traces.md#layout; nothing is imported from gapless.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record, encode, log_files, properties, read_log

TRACES = "RMQ_SYS_TRACE_TOPIC"
NORMAL, HALF, FINAL, DELAYED, ORDERED = range(5)


def offset_id(host: bytes, position: int) -> str:
    """The id of a stored message: who stored it, and where."""
    return (host + position.to_bytes(8, "big")).hex().upper()


def pub(
    topic: str, key: str, place: str | None, *, kind: int = NORMAL, success: bool = True, time: int = 1_700_000_000_000,
    tags: str = "null", keys: str = "null", more: tuple[str, ...] = (),
) -> str:  # fmt: skip
    """Format a producer's trace of an answer; `place`: the offset message id, None if the client omits it."""
    fields = [
        "Pub",
        str(time),
        "DefaultRegion",
        "group",
        topic,
        key,
        tags,
        keys,
        "127.0.0.1:10911",
        "12",
        "3",
        str(kind),
    ]
    fields += [*([] if place is None else [place]), str(success).lower(), *more]
    return "\x01".join(fields) + "\x02"


def end(key: str, decision: str = "COMMIT_MESSAGE", *, asked: bool = False) -> str:
    """Format a producer's trace of a decision."""
    fields = ["EndTransaction", "1700000000000", "DefaultRegion", "group", "orders", key, "null", "null"]
    fields += ["127.0.0.1:10911", "2", key, decision, str(asked).lower()]
    return "\x01".join(fields) + "\x02"


def handed(key: str, request: str = "A0") -> str:
    """Format a consumer's trace before it processes a message."""
    fields = ["SubBefore", "1700000000000", "DefaultRegion", "readers", request, key, "0", "null"]
    return "\x01".join(fields) + "\x02"


def nothing(size: int) -> bytes:
    """A trace message of `size` bytes, at least 40, that tells of nothing."""
    head, tail = "Recall\x011\x01R\x01G\x01T\x01", "\x01true\x02"
    return (head + "k" * (size - len(head) - len(tail)) + tail).encode()


@dataclass(frozen=True)
class Answer:
    """A message that was answered, as a trace tells: another reader than ours."""

    position: int
    host: bytes
    key: str
    topic: str
    is_half: bool


def answers(store: Path, topic: str = TRACES) -> list[Answer]:
    """The successful answers that the trace messages of a store tell of."""
    return [answer for record in read_log(store) if record.topic == topic for answer in answers_in(text_of(record))]


def text_of(record: Record) -> str:
    """The body of a trace message."""
    body = zlib.decompress(record.body) if record.sys_flag & 1 else record.body
    return body.decode(errors="replace")


def answers_in(text: str) -> Iterator[Answer]:
    """The same of one body."""
    for context in text.split("\x02"):
        fields = context.split("\x01")
        if fields[0] == "Pub" and fields[13] == "true":
            for key, place in zip(fields[5].split(","), fields[12].split(","), strict=True):
                raw = bytes.fromhex(place)
                yield Answer(int.from_bytes(raw[-8:], "big"), raw[:-8], key, fields[4], fields[11] == str(HALF))


# -- stores with traces ------------------------------------------------------------------------------------------------


@dataclass
class TracedBuilder:
    """A store in the making whose clients trace what they are answered."""

    builder: StoreBuilder = field(default_factory=StoreBuilder)
    sent: int = 0

    def send(self, topic: str = "orders", queue: int = 0, **fields: object) -> Record:
        """A message of a client."""
        self.sent += 1
        key = f"{self.sent:032X}"
        found = Record(topic, f"message {self.sent}".encode(), properties({"UNIQ_KEY": key}), queue, **fields)  # type: ignore[arg-type]
        return self.builder.append(found)

    def trace(self, *contexts: str, topic: str = TRACES, body: bytes | None = None, flags: int = 0) -> Record:
        """A trace message with these contexts."""
        content = "".join(contexts).encode() if body is None else body
        return self.builder.append(Record(topic, content, properties({"KEYS": "k"}), sys_flag=flags))

    def acknowledged(self, record: Record, **other: object) -> str:
        """Format its producer's trace."""
        place = offset_id(record.store_host, record.position)
        return pub(record.topic, record.property_map["UNIQ_KEY"], place, **other)  # type: ignore[arg-type]


def rewrite(store: Path, record: Record, **changed: object) -> None:
    """Put another record of the same size into a record's place, with checksums that are right."""
    data = encode(replace(record, **changed))  # type: ignore[arg-type]
    assert len(data) == record.size
    write_at(store, record.position, data)


def write_at(store: Path, position: int, data: bytes) -> None:
    """Bytes at a log position."""
    file = next(file for file in reversed(log_files(store)) if int(file.name) <= position)
    with file.open("r+b") as out:
        out.seek(position - int(file.name))
        out.write(data)
