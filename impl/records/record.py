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

import numpy as np
import numpy.typing as npt

from gapless.impl.records.errors import Refused

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
HERE = bytes([127, 0, 0, 1]) + struct.pack(">i", 10911)  # who sends and who stores, where nobody says

LONGEST_TOPIC = 255  # bytes
LONGEST_PROPERTIES = 32767  # bytes
LONGEST_V1_TOPIC = 127  # bytes

DELAYS = tuple(1000 * s for s in (1, 5, 10, 30, *range(60, 601, 60), 1200, 1800, 3600, 7200))
"""The delay levels of a broker, from level 1 on, in ms."""

_TOPIC = re.compile(r"[^/\0-\x1f\x7f]+")  # it is a folder's name as well


@dataclass(frozen=True, slots=True)
class Record:
    """One record, read from the log."""

    topic: str
    queue: int
    number: int
    position: int
    size: int  # bytes in the log
    body: bytes
    properties: dict[str, str] = field(default_factory=dict)
    flag: int = 0
    sys_flag: int = 0
    born_time: int = 0  # ms, the sender's clock
    born_host: bytes = HERE
    store_time: int = 0  # ms
    store_host: bytes = HERE
    reconsumed: int = 0
    half: int = 0  # the position of the half that a final names

    @property
    def tag(self) -> str:
        """What consumers choose by."""
        return self.properties.get("TAGS", "")


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
    def of_list(cls, messages: Sequence[tuple[str, int, bytes, Mapping[str, str]]]) -> Messages:
        """Columns from (topic, queue id, body, properties) one by one. Raises Refused."""
        pairs = list(dict.fromkeys((topic, queue) for topic, queue, _, _ in messages))
        index = {pair: number for number, pair in enumerate(pairs)}
        bodies = [body for _, _, body, _ in messages]
        properties = [properties_bytes(given) for _, _, _, given in messages]
        return cls(
            pairs,
            np.array([index[topic, queue] for topic, queue, _, _ in messages], np.int32),
            np.frombuffer(b"".join(bodies), np.uint8),
            _ends(bodies),
            np.frombuffer(b"".join(properties), np.uint8),
            _ends(properties),
        )


def _ends(parts: Sequence[bytes]) -> Ints:
    ends = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=ends[1:])
    return ends


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
        raise Refused(f"properties {dict(properties)!r}: expected text that UTF-8 can hold") from error
    if len(data) > LONGEST_PROPERTIES:
        raise Refused(f"{len(data)} bytes of properties, expected at most {LONGEST_PROPERTIES}; put them into the body")
    return data


def _utf8(text: object) -> bytes:
    """The bytes of a text; without what they cannot be had of."""
    return text.encode(errors="ignore") if isinstance(text, str) else b""


def _is_text(part: object) -> bool:
    """Whether the name or the value of a property can lie in a record."""
    return isinstance(part, str) and bool(part) and not _SEPARATORS & set(part)


_SEPARATORS = {"\0", "\x01", "\x02"}
CHECKSUM = "__CRC32#"
RESERVED = (CHECKSUM, "INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET")
"""Properties that say something of the record, and which readers hold it to: they are the broker's to write."""


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


def encode(record: Record) -> bytes:
    """The record as it lies in the log; hosts are IPv4. `record.size` is not read: it follows."""
    topic, properties = topic_bytes(record.topic), properties_bytes(record.properties)
    wide = len(topic) > LONGEST_V1_TOPIC
    return b"".join(
        (
            HEAD.pack(
                FIXED + len(record.body) + len(topic) + len(properties) + wide,
                MAGIC_V2 if wide else MAGIC_V1,
                zlib.crc32(record.body) & 0x7FFFFFFF,
                record.queue,
                record.flag,
                record.number,
                record.position,
                record.sys_flag,
                record.born_time,
                record.born_host,
                record.store_time,
                record.store_host,
                record.reconsumed,
                record.half,
                len(record.body),
            ),
            record.body,
            len(topic).to_bytes(2 if wide else 1, "big"),
            topic,
            len(properties).to_bytes(2, "big"),
            properties,
        )
    )


def decode(whole: Bytes, at: int) -> Record | None:
    """The record at byte `at`; None where its parts do not add up to its size, or reach beyond the data."""
    data = memoryview(whole)  # type: ignore[arg-type]  # an array has a buffer, whatever its stubs say
    try:
        size, magic, _crc, queue, flag, number, position, kind, born = struct.unpack_from(">iIIiiqqiq", data, at)
        here = at + 48
        born_host, here = bytes(data[here : here + _host(kind, BORN_V6)]), here + _host(kind, BORN_V6)
        (stored,) = struct.unpack_from(">q", data, here)
        store_host, here = bytes(data[here + 8 : here + 8 + _host(kind, STORE_V6)]), here + 8 + _host(kind, STORE_V6)
        reconsumed, half, length = struct.unpack_from(">iqi", data, here)
        body, here = _part(data, here + 16, length)
        wide = magic == MAGIC_V2
        topic, here = _part(data, here + 1 + wide, int.from_bytes(data[here : here + 1 + wide], "big"))
        properties, here = _part(data, here + 2, int.from_bytes(data[here : here + 2], "big"))
    except (struct.error, ValueError):
        return None
    if magic not in (MAGIC_V1, MAGIC_V2) or here - at != size:
        return None
    return Record(
        topic.decode(errors="backslashreplace"),
        queue,
        number,
        position,
        size,
        body,
        read_properties(properties),
        flag,
        kind,
        born,
        born_host,
        stored,
        store_host,
        reconsumed,
        half,
    )


def _host(kind: int, six: int) -> int:
    """Bytes of an address and its port."""
    return 20 if kind & six else 8


def _part(data: memoryview, at: int, length: int) -> tuple[bytes, int]:
    if length < 0 or at + length > len(data):
        raise ValueError("the part reaches beyond the data")
    return bytes(data[at : at + length]), at + length
