"""A record of the commit log: its bytes, and as a Python object.

Byte layout: docs/rocketmq.md#record, #flags.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.impl.records.errors import Refused
from gapless.impl.records.list_kernel import columns_of

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

MAGIC_V1 = 0xDAA320A7
MAGIC_V2 = 0xDAA320AB  # the topic's length takes two bytes
MAGIC_BLANK = 0xCBD43194
BLANK = 8  # bytes: the size and magic number that end every file but the last
FIXED = 91  # bytes of a V1 record with IPv4 hosts, and neither body, topic nor properties

BORN_V6, STORE_V6, INNER_BATCH = 0x10, 0x20, 0x80
OUTSIDE = 0x4  # transaction types 4 (prepared) and 12 (rolled back) have this bit, and no place in a queue
ENTRY_BYTES = 20  # of an entry in a consume queue

HEAD = struct.Struct(">iIIiiqqiq8sq8siqi")  # all that comes before the body, with IPv4 hosts
HERE = bytes([127, 0, 0, 1]) + struct.pack(">i", 10911)  # the default host of senders and stores

LONGEST_TOPIC = 255  # bytes
LONGEST_PROPERTIES = 32767  # bytes
LONGEST_V1_TOPIC = 127  # bytes

DELAYS = tuple(1000 * s for s in (1, 5, 10, 30, *range(60, 601, 60), 1200, 1800, 3600, 7200))
"""The delay levels of a broker, from level 1 on, in ms."""

_TOPIC = re.compile(r"[^/\0-\x1f\x7f]+")  # it is a folder's name as well


class Record(NamedTuple):
    """One record, read from the log.

    What is asked for most is there; what its header and properties say besides is taken from `rest` when it is asked
    for: its bytes in the log, without the body. `known_tag`: the tag, if its reader has looked for it.
    """

    number: int
    position: int
    body: bytes
    store_time: int  # ms
    rest: bytes
    known_tag: str | None = None

    @property
    def tag(self) -> str:
        """The tag, by which consumers select."""
        return self.properties.get("TAGS", "") if self.known_tag is None else self.known_tag

    @property
    def topic(self) -> str:
        """The topic that the message is of."""
        low, high = self._topic()
        return self.rest[low:high].decode(errors="backslashreplace")

    @property
    def queue(self) -> int:
        """The queue of its topic."""
        return int.from_bytes(self.rest[12:16], "big", signed=True)

    @property
    def size(self) -> int:
        """Bytes in the log."""
        return len(self.rest) + len(self.body)

    @property
    def properties(self) -> dict[str, str]:
        """All of them, the tag among them."""
        return read_properties(self.packed)

    @property
    def packed(self) -> bytes:
        """The properties as they lie in the record."""
        return self.rest[self._topic()[1] + 2 :]

    @property
    def flag(self) -> int:
        """32 bits of the sender's."""
        return int.from_bytes(self.rest[16:20], "big", signed=True)

    @property
    def sys_flag(self) -> int:
        """The flags for reading the record (docs/rocketmq.md#flags)."""
        return int.from_bytes(self.rest[36:40], "big", signed=True)

    @property
    def born_time(self) -> int:
        """The send time, in ms, by the sender's clock."""
        return int.from_bytes(self.rest[40:48], "big", signed=True)

    @property
    def born_host(self) -> bytes:
        """The sender's address and port."""
        return self.rest[48 : 48 + _host(self.sys_flag, BORN_V6)]

    @property
    def store_host(self) -> bytes:
        """The broker's address and port."""
        end = _head(self.sys_flag) - 16
        return self.rest[end - _host(self.sys_flag, STORE_V6) : end]

    @property
    def reconsumed(self) -> int:
        """The number of times that consumers gave it back."""
        end = _head(self.sys_flag) - 16
        return int.from_bytes(self.rest[end : end + 4], "big", signed=True)

    def sent(self) -> tuple[int, int, bytes, bytes, int]:
        """The flag, the birth time and hosts, and the number of times that consumers gave it back.

        Of a record whose addresses are IPv4; all at once, which costs as much as one of them.
        """
        flag, born, host, store_host, reconsumed = _SENT(self.rest)
        return flag, born, host, store_host, reconsumed

    @property
    def half(self) -> int:
        """The position of the half that a final names."""
        end = _head(self.sys_flag) - 4
        return int.from_bytes(self.rest[end - 8 : end], "big", signed=True)

    def _topic(self) -> tuple[int, int]:
        """The place of the topic in the rest."""
        at, wide = _head(self.sys_flag), self.rest[7] == MAGIC_V2 & 0xFF
        low = at + 1 + wide
        return low, low + int.from_bytes(self.rest[at:low], "big")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self[:5] == other[:5]

    def __hash__(self) -> int:
        return hash(self[:5])

    def __repr__(self) -> str:
        body = f"{self.body[:40]!r}{'…' * (len(self.body) > 40)}"
        return f"Record({self.topic}/{self.queue} number={self.number} position={self.position} body={body})"


ListedMessage = tuple[str, int, bytes, Mapping[str, str]]
"""A message by itself: topic, queue id, body, properties."""

Listed = Sequence[ListedMessage]


@dataclass(frozen=True, slots=True)
class Messages:
    """Many messages as columns, to be appended in one native pass.

    `queues`: the (topic, queue id) pairs that occur · `queue_index`: int32 [n], where in `queues` each message's is ·
    `bodies`: uint8, one after the other; body *i* is `bodies[body_ends[i]:body_ends[i + 1]]`, with `body_ends` int64
    [n + 1] · `properties`, `property_ends`: likewise, in the form of `properties_bytes`; without them there are none.
    """

    queues: Sequence[tuple[str, int]]
    queue_index: npt.NDArray[np.int32]
    bodies: Bytes
    body_ends: Ints
    properties: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    property_ends: Ints | None = None

    @classmethod
    def of_list(cls, messages: Listed) -> Messages:
        """Columns from (topic, queue id, body, properties) one by one. Raises Refused."""
        rows = tuple(messages)  # no change can come meanwhile
        found = columns_of(rows, RESERVED, LONGEST_PROPERTIES)
        if found is None:  # rarer types, or something is wrong
            rows = _plain(rows)
            found = columns_of(rows, RESERVED, LONGEST_PROPERTIES)
        if found is None:
            return _of_each(rows)
        return cls([rows[first][:2] for first in found.firsts.tolist()], *found[1:])


def _plain(rows: tuple[ListedMessage, ...]) -> tuple[ListedMessage, ...]:
    """The same messages in the types that native code takes; `rows` as they are where one of them is no message."""
    try:
        return tuple(
            (topic, queue, bytes(memoryview(body)), dict(properties.items())) for topic, queue, body, properties in rows
        )
    except (TypeError, ValueError, AttributeError):
        return rows


def _of_each(rows: Listed) -> Messages:
    """Their columns, in plain Python, which says what is wrong. Raises Refused."""
    index, which, bodies, extras = _QueueIndex(), [], [], []
    try:
        for topic, queue, body, properties in rows:
            which.append(index[topic, queue])
            bodies.append(bytes(memoryview(body)))
            extras.append(properties_bytes(properties))
    except (TypeError, ValueError, AttributeError) as error:
        raise Refused(f"expected messages as (topic, queue id, body, properties): {error}") from error
    return Messages(list(index), np.array(which, np.int32), *_joined(bodies), *_joined(extras))


class _QueueIndex(dict[tuple[str, int], int]):
    """Queues are numbered as they come."""

    def __missing__(self, queue: tuple[str, int]) -> int:
        return self.setdefault(queue, len(self))


def _joined(texts: Sequence[bytes]) -> tuple[Bytes, Ints]:
    """Texts one after the other, and where each of them ends, and a 0 before."""
    return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)], dtype=np.int64)


# -- names and properties --------------------------------------------------------------------------------------------


@lru_cache(1 << 12)
def topic_bytes(topic: str) -> bytes:
    """A topic's name as it lies in a record. Raises Refused where it cannot be a folder's name."""
    name = _utf8(topic)
    if name.decode() != topic or not _TOPIC.fullmatch(topic) or topic in {".", ".."} or len(name) > LONGEST_TOPIC:
        raise Refused(
            f"topic {topic!r}: expected 1 to {LONGEST_TOPIC} bytes without slashes and control characters, as it names "
            "a folder too; choose another name"
        )
    return name


def properties_bytes(properties: Mapping[str, str]) -> bytes:
    """Properties as they lie in a record: `name 0x01 value 0x02`, one after the other.

    Raises Refused where a name or a value is empty, which no reader would see, or holds one of the two separators or a
    NUL, by which a torn record is known.
    """
    parts = []
    for name, value in properties.items():
        if not _is_text(name) or not _is_text(value) or name in RESERVED:
            raise Refused(
                f"property {name!r}={value!r}: expected text, neither of the two empty, no 0x00, 0x01, 0x02 in them, "
                f"and none of {', '.join(RESERVED)}"
            )
        parts.append(f"{name}\x01{value}\x02")
    try:
        data = "".join(parts).encode()
    except UnicodeEncodeError as error:
        raise Refused(f"properties {dict(properties)!r}: expected text that UTF-8 can encode") from error
    if len(data) > LONGEST_PROPERTIES:
        raise Refused(f"{len(data)} bytes of properties, expected at most {LONGEST_PROPERTIES}; put them into the body")
    return data


def _utf8(text: object) -> bytes:
    """The bytes of a text; without what they cannot be had of."""
    return text.encode(errors="ignore") if isinstance(text, str) else b""


def _is_text(part: object) -> bool:
    """True if the name or the value of a property can be part of a record."""
    return isinstance(part, str) and bool(part) and not _SEPARATORS & set(part)


_SEPARATORS = {"\0", "\x01", "\x02"}


CHECKSUM = "__CRC32#"
RESERVED = (CHECKSUM, "INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET")
"""Properties by which readers check the record: they are the broker's to write."""


def read_properties(data: bytes) -> dict[str, str]:
    """The properties of a record but its checksum; what is empty is left out, as brokers do."""
    pairs = (pair.partition("\x01") for pair in data.decode(errors="backslashreplace").split("\x02"))
    return {name: value for name, _, value in pairs if name and value and name != CHECKSUM}


def tag_code(tag: str) -> int:
    """The code by which a consume queue's entry stands for a tag: Java's `String.hashCode`, 0 for none."""
    code = 0
    units = tag.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code


# -- records ---------------------------------------------------------------------------------------------------------


def encode(
    topic: str,
    queue: int,
    number: int,
    position: int,
    body: bytes,
    *,
    properties: Mapping[str, str] | None = None,
    flag: int = 0,
    sys_flag: int = 0,
    born_time: int = 0,
    store_time: int = 0,
    reconsumed: int = 0,
    half: int = 0,
) -> bytes:
    """A record as it lies in the log; hosts are IPv4."""
    name, extra = topic_bytes(topic), properties_bytes(properties or {})
    wide = len(name) > LONGEST_V1_TOPIC
    return b"".join(
        (
            HEAD.pack(
                FIXED + len(body) + len(name) + len(extra) + wide,
                MAGIC_V2 if wide else MAGIC_V1,
                zlib.crc32(body) & 0x7FFFFFFF,
                queue,
                flag,
                number,
                position,
                sys_flag,
                born_time,
                HERE,
                store_time,
                HERE,
                reconsumed,
                half,
                len(body),
            ),
            body,
            len(name).to_bytes(2 if wide else 1, "big"),
            name,
            len(extra).to_bytes(2, "big"),
            extra,
        )
    )


def decode(whole: Bytes, at: int) -> Record | None:
    """The record at byte `at`; None where its parts do not add up to its size, or reach beyond the data."""
    size = int.from_bytes(whole[at : at + 4].tobytes(), "big")
    return of_bytes(whole[at : at + size].tobytes())


def of_bytes(raw: bytes) -> Record | None:
    """The record that these bytes are; None where its parts do not add up to them. No checksum is looked at."""
    try:
        size, magic, number, position, kind = _PARTS(raw)
        head = 88 if not kind & (BORN_V6 | STORE_V6) else _head(kind)
        end = head + int.from_bytes(raw[head - 4 : head], "big", signed=True)
        topic_end = end + 1 + raw[end] if magic == MAGIC_V1 else end + 2 + int.from_bytes(raw[end : end + 2], "big")
        stop = topic_end + 2 + (raw[topic_end] << 8 | raw[topic_end + 1])
    except (struct.error, IndexError):
        return None
    if not (head <= end and stop == size == len(raw) and magic in (MAGIC_V1, MAGIC_V2)):
        return None
    stored = raw[head - 32 : head - 24] if not kind & STORE_V6 else raw[head - 44 : head - 36]
    time = int.from_bytes(stored, "big", signed=True)
    return _record(Record, (number, position, raw[head:end], time, raw[:head] + raw[end:], None))


_PARTS = struct.Struct(">iI12xqqi").unpack_from
_SENT = struct.Struct(">16xi20xq8s8x8si").unpack_from
_record = tuple.__new__


def _head(kind: int) -> int:
    """Bytes of a record before its body."""
    return 72 + _host(kind, BORN_V6) + _host(kind, STORE_V6)


def _host(kind: int, six: int) -> int:
    """Bytes of an address and its port."""
    return 20 if kind & six else 8
