"""RocketMQ store directories, read and written in plain Python: a second opinion on the checker's reader.

This page follows docs/rocketmq.md, and imports nothing from gapless: where the two disagree, one of them is wrong. It
is small rather than fast.
"""

import ipaddress
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

V1, V2, BLANK = 0xDAA320A7, 0xDAA320AB, 0xCBD43194
COMPRESSED, MULTI_TAGS, BORN_IPV6, STORE_IPV6, INNER_BATCH = 0x1, 0x2, 0x10, 0x20, 0x80
TRANSACTION, PREPARED, COMMITTED, ROLLED_BACK = 0xC, 0x4, 0x8, 0xC

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
SECONDS = (1, 5, 10, 30, *range(60, 601, 60), 1200, 1800, 3600, 7200)
DELAYS: tuple[int, ...] = tuple(1000 * seconds for seconds in SECONDS)  # ms, by delay level

ENTRY = struct.Struct(">qiq")
PRE_BLANK = ENTRY.pack(0, 0x7FFFFFFF, 0)

Queue = tuple[str, int]


# Records


@dataclass(frozen=True)
class Record:
    """One record of the commit log, field by field; sizes, magic number and checksums follow from them."""

    topic: str
    body: bytes = b""
    properties: bytes = b""
    queue: int = 0
    number: int = 0
    position: int = 0
    flag: int = 0
    sys_flag: int = 0
    born_time: int = 0
    born_host: bytes = b"\x7f\0\0\x01\0\0\x30\x39"
    store_time: int = 0
    store_host: bytes = b"\x7f\0\0\x01\0\0\x2a\x9f"
    reconsume_times: int = 0
    prepared_position: int = 0

    @cached_property
    def size(self) -> int:
        """Bytes in the log."""
        return len(encode(self))

    @property
    def end(self) -> int:
        """The beginning of the next record, unless a blank lies between."""
        return self.position + self.size

    @property
    def transaction(self) -> int:
        """The step of a transaction: 0, PREPARED, COMMITTED or ROLLED_BACK."""
        return self.sys_flag & TRANSACTION

    @property
    def is_queued(self) -> bool:
        """True if a simple consume queue has an entry for it."""
        return self.transaction in {0, COMMITTED} and not self.sys_flag & INNER_BATCH

    @cached_property
    def property_map(self) -> dict[str, str]:
        """The properties as a broker reads them."""
        return read_properties(self.properties)

    @cached_property
    def tag_code(self) -> int:
        """The tag code of its entry: the tag's hash, or, for a delayed message, the time of its delivery."""
        found = self.property_map
        level = int(found.get("DELAY", "0")) if self.topic == SCHEDULE_TOPIC else 0
        if level > 0:
            return self.store_time + DELAYS[min(level, len(DELAYS)) - 1]
        return java_hash(found.get("TAGS", ""))


def encode(record: Record) -> bytes:
    """The record as it lies in the log, with every checksum right."""
    topic = record.topic.encode()
    assert len(record.born_host) == (20 if record.sys_flag & BORN_IPV6 else 8)
    assert len(record.store_host) == (20 if record.sys_flag & STORE_IPV6 else 8)
    after_size = b"".join(
        (
            struct.pack(">II", V2 if len(topic) > 127 else V1, zlib.crc32(record.body) & 0x7FFFFFFF),
            struct.pack(">iiqqi", record.queue, record.flag, record.number, record.position, record.sys_flag),
            struct.pack(">q", record.born_time),
            record.born_host,
            struct.pack(">q", record.store_time),
            record.store_host,
            struct.pack(">iq", record.reconsume_times, record.prepared_position),
            struct.pack(">i", len(record.body)),
            record.body,
            len(topic).to_bytes(2 if len(topic) > 127 else 1, "big"),
            topic,
            struct.pack(">h", len(record.properties)),
            record.properties,
        )
    )
    return seal(struct.pack(">i", 4 + len(after_size)) + after_size)


def seal(raw: bytes) -> bytes:
    """The record with its property CRC set right, if its properties end in one.

    The ten digits stand with the least significant first, and cover all that lies before the entry.
    """
    covered, entry = raw[:-20], raw[-20:]
    if not (entry.startswith(b"__CRC32#\x01") and entry.endswith(b"\x02")):
        return raw
    digits = str(zlib.crc32(covered) & 0x7FFFFFFF)[::-1].ljust(10, "0")
    return covered + b"__CRC32#\x01" + digits.encode() + b"\x02"


def decode(data: bytes, at: int, position: int) -> Record | None:
    """The record at byte `at` of `data`, which is `position` in the log; None if it is not valid there."""
    try:
        record, end = fields(data, at)
    except (struct.error, UnicodeDecodeError):
        return None
    whole = record.position == position and data[at:end] == encode(record)
    return record if whole else None


def fields(data: bytes, at: int) -> tuple[Record, int]:
    """Parse the bytes at `at`, true or not; also return their end."""
    here = at

    def take(layout: str) -> tuple[int, ...]:
        nonlocal here
        values = struct.unpack_from(">" + layout, data, here)
        here += struct.calcsize(">" + layout)
        return values

    def take_bytes(count: int) -> bytes:
        nonlocal here
        here += max(count, 0)
        return data[here - max(count, 0) : here]

    _, magic, _, queue, flag, number, position, sys_flag, born_time = take("iIIiiqqiq")
    born_host = take_bytes(20 if sys_flag & BORN_IPV6 else 8)
    (store_time,) = take("q")
    store_host = take_bytes(20 if sys_flag & STORE_IPV6 else 8)
    reconsume_times, prepared_position, body_length = take("iqi")
    body = take_bytes(body_length)
    (topic_length,) = take("H" if magic == V2 else "B")
    topic = take_bytes(topic_length).decode()
    (properties_length,) = take("h")
    record = Record(
        topic=topic,
        body=body,
        properties=take_bytes(properties_length),
        queue=queue,
        number=number,
        position=position,
        flag=flag,
        sys_flag=sys_flag,
        born_time=born_time,
        born_host=born_host,
        store_time=store_time,
        store_host=store_host,
        reconsume_times=reconsume_times,
        prepared_position=prepared_position,
    )
    return record, here


SEAL = b"__CRC32#\x010000000000\x02"
"""The property that becomes a record's checksum of itself, when `encode` fills it in."""


def properties(pairs: Mapping[str, str], *, sealed: bool = False) -> bytes:
    """The property string; a sealed one ends with a CRC, which `encode` fills in."""
    text = "".join(f"{name}\x01{value}\x02" for name, value in pairs.items())
    return text.encode() + (SEAL if sealed else b"")


def read_properties(raw: bytes) -> dict[str, str]:
    """Properties by name: the last of equal names wins, and what is no name and value is skipped."""
    found = {}
    for piece in raw.decode(errors="replace").split("\x02"):
        name, _, value = piece.partition("\x01")
        if name and value:
            found[name] = value
    return found


def java_hash(text: str) -> int:
    """Compute String.hashCode; it sees UTF-16 units, and two of them for some characters."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + 256 * high + low) & 0xFFFFFFFF
    return code - (1 << 32) if code >> 31 else code


def digest(key: bytes) -> int:
    """Hash a key for columns: MurmurHash3's steps for one half, word by word."""
    if not key:
        return 0
    most = (1 << 64) - 1
    code = len(key)
    for at in range(0, len(key), 8):
        word = int.from_bytes(key[at : at + 8], "little")
        word = _turned(word * 0x87C37B91114253D5 & most, 31) * 0x4CF5AD432745937F & most
        code = _turned(code ^ word, 27) * 5 + 0x52DCE729 & most
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 1):
        code = (code ^ code >> 33) * factor & most
    code = code or 1
    return code - (1 << 64) if code >> 63 else code


def _turned(word: int, by: int) -> int:
    """A word of 64 bits, turned left."""
    return (word << by | word >> 64 - by) & ((1 << 64) - 1)


def host(address: str, port: int) -> bytes:
    return ipaddress.ip_address(address).packed + port.to_bytes(4, "big")


# Entries


@dataclass(frozen=True)
class Entry:
    """Twenty bytes of a consume queue: where a message lies, how long it is, and the code of its tag."""

    position: int
    size: int
    tag_code: int

    def encode(self) -> bytes:
        """The entry as it lies in its file."""
        return ENTRY.pack(self.position, self.size, self.tag_code)


@dataclass(frozen=True)
class Slot:
    """An entry and its place: `offset` bytes into `file`, a path relative to the store."""

    queue: Queue
    file: str
    offset: int
    number: int
    entry: Entry


def entries_of(record: Record) -> Iterator[tuple[Queue, int, Entry]]:
    """Every entry that dispatch makes of a record: one in its queue, and one in each queue that it names."""
    if not record.is_queued:
        return
    entry = Entry(record.position, record.size, record.tag_code)
    yield (record.topic, record.queue), record.number, entry
    found = record.property_map
    names = found.get("INNER_MULTI_DISPATCH", "")
    numbers = found.get("INNER_MULTI_QUEUE_OFFSET", "")
    if names and numbers:
        for name, number in zip(names.split(","), numbers.split(","), strict=True):
            queue = 0 if name.startswith("%LMQ%") else record.queue
            yield (name, queue), int(number), entry


def expected_queues(records: Iterable[Record]) -> dict[Queue, dict[int, Entry]]:
    """The consume queues that these records ought to have."""
    queues: dict[Queue, dict[int, Entry]] = {}
    for record in records:
        for queue, number, entry in entries_of(record):
            queues.setdefault(queue, {})[number] = entry
    return queues


# Reading


def log_files(store: Path) -> list[Path]:
    return sorted((store / "commitlog").iterdir())


def queue_files(store: Path, queue: Queue) -> list[Path]:
    return sorted((store / "consumequeue" / queue[0] / str(queue[1])).iterdir())


def queues_of(store: Path) -> list[Queue]:
    found = (store / "consumequeue").glob("*/*")
    return sorted((directory.parent.name, int(directory.name)) for directory in found)


def read_log(store: Path) -> list[Record]:
    """Every record from the log's first byte to the first that is not valid."""
    return list(_scan(tuple((int(file.name), file.read_bytes()) for file in log_files(store))))


@lru_cache(maxsize=16)
def _scan(files: tuple[tuple[int, bytes], ...]) -> list[Record]:
    records: list[Record] = []
    for base, data in files:
        at = 0
        while (record := decode(data, at, base + at)) is not None:
            records.append(record)
            at = record.end - base
        if data[at + 4 : at + 8] != BLANK.to_bytes(4, "big"):
            break
    return records


def read_slots(store: Path, queue: Queue) -> list[Slot]:
    """The entries of a queue up to its first unused slot, with their places."""
    slots: list[Slot] = []
    for file in queue_files(store, queue):
        data, name = file.read_bytes(), str(file.relative_to(store))
        for offset in range(0, len(data) - 19, 20):
            entry = Entry(*ENTRY.unpack_from(data, offset))
            if entry.size <= 0:
                return slots
            if entry.size != 0x7FFFFFFF:
                slots.append(Slot(queue, name, offset, (int(file.name) + offset) // 20, entry))
    return slots


def read_queue(store: Path, queue: Queue) -> dict[int, Entry]:
    return {slot.number: slot.entry for slot in read_slots(store, queue)}


def read_checkpoint(store: Path) -> int:
    """The store time up to which the checkpoint calls the log safe."""
    return int.from_bytes((store / "checkpoint").read_bytes()[:8], "big")
