"""RocketMQ store directories, read and written in plain Python: a second opinion beside the checker's reader.

This page follows `reference/rocketmq-semantics.md`, sections A to C, and imports nothing from gapless: where
the two disagree, one of them is wrong. It is small rather than fast.
"""

import atexit
import ipaddress
import json
import lzma
import shutil
import struct
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from random import Random

from hypothesis import strategies as st

RECORDINGS = Path(__file__).parents[1] / "recordings"

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
        """Where the next record begins, unless a blank lies between."""
        return self.position + self.size

    @property
    def transaction(self) -> int:
        """Which step of a transaction it is: 0, PREPARED, COMMITTED or ROLLED_BACK."""
        return self.sys_flag & TRANSACTION

    @property
    def is_queued(self) -> bool:
        """Whether a simple consume queue has an entry for it."""
        return self.transaction in {0, COMMITTED} and not self.sys_flag & INNER_BATCH

    @cached_property
    def property_map(self) -> dict[str, str]:
        """The properties as a broker reads them."""
        return read_properties(self.properties)

    @cached_property
    def tag_code(self) -> int:
        """What the entry says of the tag: its hash, or, for a delayed message, when to deliver it."""
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
    """What the bytes at `at` say, be it true or not, and where they end."""
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


def properties(pairs: Mapping[str, str], *, sealed: bool = False) -> bytes:
    """The property string; a sealed one ends with a CRC, which `encode` fills in."""
    text = "".join(f"{name}\x01{value}\x02" for name, value in pairs.items())
    return text.encode() + (b"__CRC32#\x010000000000\x02" if sealed else b"")


def read_properties(raw: bytes) -> dict[str, str]:
    """Properties by name: the last of equal names wins, and what is no name and value is skipped."""
    found = {}
    for piece in raw.decode(errors="replace").split("\x02"):
        name, _, value = piece.partition("\x01")
        if name and value:
            found[name] = value
    return found


def java_hash(text: str) -> int:
    """What String.hashCode says; it sees UTF-16 units, and two of them where a character needs two."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + 256 * high + low) & 0xFFFFFFFF
    return code - (1 << 32) if code >> 31 else code


def digest(key: bytes) -> int:
    """What stands for a key in columns: MurmurHash3's steps for one half, word by word."""
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


@cache
def recording(name: str) -> Path:
    """The store of a recording, unpacked once; copy it before you change it."""
    room = _room()
    with tarfile.open(RECORDINGS / f"{name}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(room)  # noqa: S202 - our own archives
    return room / Path(name).name / "store"


@cache
def recording_with_client(name: str) -> Path:
    """A folder with the `store/` of a recording, its `client.ndjson`, and its `broker.conf` if it has one.

    The store is a link to that of `recording`, which thereby stays without a client's word.
    """
    store = recording(name)
    folder = _room() / "with-client" / name
    folder.mkdir(parents=True)
    (folder / "store").symlink_to(store)
    if (store.parent / "broker.conf").exists():
        shutil.copy(store.parent / "broker.conf", folder)
    (folder / "client.ndjson").write_bytes(lzma.decompress((RECORDINGS / "clients" / f"{name}.ndjson.xz").read_bytes()))
    return folder


@cache
def _room() -> Path:
    room = tempfile.TemporaryDirectory(prefix="gapless-recordings-")
    atexit.register(room.cleanup)
    return Path(room.name)


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


# Writing


@dataclass
class StoreBuilder:
    """A store in the making: it gives each record its number, position and time as a broker would.

    `expired` log files, the oldest, are left out when the store is written, and with them the consume queue
    files that hold nothing younger.
    """

    log_file_size: int = 16384
    queue_file_size: int = 600
    end: int = 0  # exclusive end of the records; where a new log begins
    now: int = 1_700_000_000_000
    records: list[Record] = field(default_factory=list)
    queues: dict[Queue, dict[int, Entry]] = field(default_factory=dict)
    numbers: dict[Queue, int] = field(default_factory=dict)  # the number that comes next
    log: dict[int, bytearray] = field(default_factory=dict, repr=False)  # the files by base
    deleted: set[str] = field(default_factory=set)  # topics that were deleted and not made anew
    expired: int = 0

    def append(self, record: Record, *, dispatched: bool = True) -> Record:
        """Lay the record at the end of the log and, if dispatched, make its entries."""
        self.now += 1
        record = self._numbered(replace(record, store_time=self.now))
        position = self._room_for(record.size)
        raw = encode(replace(record, position=position))
        self._lay(position, raw)
        self.end = position + len(raw)
        record, _ = fields(raw, 0)
        self.records.append(record)
        self.deleted.discard(record.topic)
        if dispatched:
            for queue, number, entry in entries_of(record):
                self.queues.setdefault(queue, {})[number] = entry
        return record

    def tear(self, record: Record, written: int) -> None:
        """A crash in the middle of an append: the first `written` bytes are there, the rest is zeros."""
        record = self._numbered(replace(record, store_time=self.now + 1))
        record = replace(record, position=self._room_for(record.size))
        self._lay(record.position, encode(record)[:written])

    def truncate(self, count: int) -> None:
        """Recovery finds the first of the last `count` records torn: the log ends there, later bytes stay."""
        dropped = self.records[-count:]
        del self.records[-count:]
        self.end = dropped[0].position
        self._lay(self.end + 4, bytes(dropped[0].size - 4))
        for base in [base for base in self.log if base > self.end]:
            del self.log[base]
        for record in dropped:
            if record.transaction in {0, COMMITTED}:
                self._give_back(record.topic, record.queue, record.number)
            for (topic, queue), number, _ in entries_of(record):
                self._give_back(topic, queue, number)

    def delete_topic(self, topic: str) -> None:
        """Its queues go, and if it is made anew its numbers start again at 0."""
        self.deleted.add(topic)
        for queue in [queue for queue in self.numbers if queue[0] == topic]:
            del self.numbers[queue]
            self.queues.pop(queue, None)

    def write(self, store: Path, *, clean: bool = True, preallocated: bool = False) -> Path:
        """Lay the store into `store`, a directory that is made for it."""
        start = min(self.log, default=self.end) + self.expired * self.log_file_size
        files = {base: data for base, data in self.log.items() if base >= start}
        (store / "commitlog").mkdir(parents=True)
        if preallocated:
            files[max(files) + self.log_file_size] = bytearray(self.log_file_size)
        for base, data in files.items():
            _write(store / "commitlog" / f"{base:020}", data)
        for queue, entries in self.queues.items():
            self._write_queue(store / "consumequeue" / queue[0] / str(queue[1]), entries, start)
        _write(store / "config" / "topics.json", json.dumps(self._topics(), ensure_ascii=False).encode())
        flushed = self._flushed(clean=clean)
        _write(store / "checkpoint", struct.pack(">qq", flushed, flushed).ljust(4096, b"\0"))
        _write(store / "lock", b"lock")
        if not clean:
            _write(store / "abort", b"4711")
        return store

    def _numbered(self, record: Record) -> Record:
        """The record with the numbers that come next in its queue and in each queue that it names."""
        if record.transaction in {PREPARED, ROLLED_BACK}:
            return replace(record, number=0)
        found = record.property_map
        number = self._take_number((record.topic, record.queue), int(found.get("INNER_NUM", "1")))
        names = found.get("INNER_MULTI_DISPATCH")
        if names is None:
            return replace(record, number=number)
        numbers = [str(self._take_number((name, 0), 1)) for name in names.split(",")]
        named = properties({"INNER_MULTI_QUEUE_OFFSET": ",".join(numbers)})
        return replace(record, number=number, properties=named + record.properties)

    def _take_number(self, queue: Queue, count: int) -> int:
        number = self.numbers.get(queue, 0)
        self.numbers[queue] = number + count
        return number

    def _give_back(self, topic: str, queue: int, number: int) -> None:
        self.queues.get((topic, queue), {}).pop(number, None)
        self.numbers[topic, queue] = min(self.numbers.get((topic, queue), 0), number)

    def _room_for(self, size: int) -> int:
        """Where a record of `size` bytes goes; if the file is full, a blank ends it and the next begins."""
        left = self.log_file_size - self.end % self.log_file_size
        assert size + 8 <= self.log_file_size, "a broker never writes a record that fits into no file"
        if size + 8 <= left:
            return self.end
        self._lay(self.end, struct.pack(">iI", left, BLANK))
        return self.end + left

    def _lay(self, position: int, data: bytes) -> None:
        base = position - position % self.log_file_size
        file = self.log.setdefault(base, bytearray(self.log_file_size))
        file[position - base : position - base + len(data)] = data

    def _write_queue(self, directory: Path, entries: dict[int, Entry], start: int) -> None:
        """Files of one size, the last always kept; slots before the first entry are marked as unused."""
        per_file = self.queue_file_size // 20
        kept = {number // per_file for number, entry in entries.items() if entry.position >= start}
        for index in sorted(kept | {number // per_file for number in [*entries][-1:]}):
            data = bytearray()
            for number in range(index * per_file, (index + 1) * per_file):
                unused = PRE_BLANK if number < min(entries) else bytes(20)
                data += entries[number].encode() if number in entries else unused
            _write(directory / f"{index * self.queue_file_size:020}", data)

    def _topics(self) -> dict[str, object]:
        """The topic table; queues that messages name do not stand in it."""
        sizes: dict[str, int] = {}
        for record in self.records:
            sizes[record.topic] = max(sizes.get(record.topic, 0), record.queue + 1)
        batches = {record.topic for record in self.records if record.sys_flag & INNER_BATCH}
        table = {
            topic: {
                "attributes": {"queue.type": "BatchCQ"} if topic in batches else {},
                "order": False,
                "perm": 6,
                "readQueueNums": size,
                "topicFilterType": "SINGLE_TAG",
                "topicName": topic,
                "topicSysFlag": 0,
                "writeQueueNums": size,
            }
            for topic, size in sizes.items()
            if topic not in self.deleted
        }
        version = {"counter": 1, "stateVersion": 0, "timestamp": self.now}
        return {"dataVersion": version, "topicConfigTable": table}

    def _flushed(self, *, clean: bool) -> int:
        """After a clean stop the time of the last record, after a crash an earlier one."""
        flushed = self.records if clean else self.records[: len(self.records) // 2]
        return flushed[-1].store_time if flushed else 0


def _write(file: Path, data: bytes | bytearray) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


# Valid stores of every kind


@cache
def varied_store(seed: int) -> Path:
    """A varied store, written once; copy it before you change it."""
    return varied(seed).write(_room() / f"varied-{seed}")


def varied(seed: int = 0, count: int = 300) -> StoreBuilder:
    """A small store with many log and queue files and every kind of record; the same for the same seed."""
    choose = Random(seed)
    builder = StoreBuilder(log_file_size=8192, queue_file_size=200)
    for index in range(count):
        tag = choose.choice(("", "TagA", "créé", "😀"))
        usual = Record(
            topic=choose.choice(("orders", "orders", "payments", "订单-😀", "L" * 200)),
            queue=choose.randrange(2),
            body=choose.randbytes(choose.choice((0, 20, 200))),
            properties=properties({"KEYS": f"key-{index}", "TAGS": tag}, sealed=choose.random() < 0.5),
            born_time=1_600_000_000_000 + index,
        )
        builder.now += choose.randrange(3)
        builder.append(usual if choose.random() < 0.7 else _unusual(usual, choose))
    return builder


def _unusual(usual: Record, choose: Random) -> Record:
    """A record of a kind that a store may go without."""
    many = properties({"INNER_MULTI_DISPATCH": choose.choice(("%LMQ%a", "%LMQ%a,%LMQ%b"))})
    level = choose.randrange(1, 4)
    later = properties({"DELAY": str(level), "TAGS": "later"})
    return choose.choice(
        (
            replace(usual, sys_flag=BORN_IPV6 | STORE_IPV6, born_host=IPV6, store_host=IPV6),
            replace(usual, sys_flag=choose.choice((PREPARED, ROLLED_BACK))),
            replace(usual, properties=many),
            replace(usual, properties=choose.choice(ODD_PROPERTIES)),
            Record("batches", sys_flag=INNER_BATCH, properties=properties({"INNER_NUM": "3"})),
            Record(SCHEDULE_TOPIC, queue=level - 1, properties=later),
        )
    )


IPV4, IPV6 = host("127.0.0.1", 10911), host("2001:db8::1", 10911)
ODD_PROPERTIES = (
    b"",
    b"TAGS\x01first\x02TAGS\x01last\x02",
    b"TAGS\x01no end",
    b"TAGS\x01\x02",
    b"\x01no name\x02",
    b"\x02\x02\x02",
    b"TAGS\x01a\x01b\x02",
    b"TAGSX\x01no\x02XTAGS\x01no\x02",
    b"KEYS\x01TAGS\x02",
)

TOPICS = st.sampled_from(("orders", "payments", "créances", "订单", "paid-😀", "%RETRY%group", "L" * 200))
TAGS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02"), max_size=20)
HOSTS = st.sampled_from((IPV4, IPV6))
SYS_FLAGS = st.sampled_from((0, 0, 0, COMPRESSED, MULTI_TAGS, PREPARED, COMMITTED, ROLLED_BACK))


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Any record that a client might send, before the broker gives it number, position and time."""
    born_host, store_host = draw(HOSTS), draw(HOSTS)
    hosts = (BORN_IPV6 if len(born_host) == 20 else 0) | (STORE_IPV6 if len(store_host) == 20 else 0)
    usual = properties({"WAIT": "true", "TAGS": draw(TAGS)}, sealed=draw(st.booleans()))
    return Record(
        topic=draw(TOPICS),
        body=draw(st.binary(max_size=300)),
        properties=draw(st.one_of(st.just(usual), st.sampled_from(ODD_PROPERTIES))),
        queue=draw(st.integers(0, 2)),
        flag=draw(st.integers(-(2**31), 2**31 - 1)),
        sys_flag=draw(SYS_FLAGS) | hosts,
        born_time=draw(st.integers(0, 2**41)),
        born_host=born_host,
        store_host=store_host,
        reconsume_times=draw(st.integers(0, 16)),
        prepared_position=draw(st.integers(0, 2**40)),
    )


@st.composite
def inner_batches(draw: st.DrawFn) -> Record:
    """Several messages in one record: it takes several numbers, and has no simple consume queue entry."""
    count = properties({"INNER_NUM": str(draw(st.integers(1, 5)))})
    return Record("batches", body=draw(st.binary(max_size=300)), properties=count, sys_flag=INNER_BATCH)


@st.composite
def dispatched_to_many(draw: st.DrawFn) -> Record:
    """A record that has an entry in each queue that it names, besides its own."""
    names = draw(st.lists(st.sampled_from(("%LMQ%a", "%LMQ%b", "%LMQ%ü")), min_size=1, unique=True))
    return Record("orders", body=b"to many", properties=properties({"INNER_MULTI_DISPATCH": ",".join(names)}))


@st.composite
def delayed(draw: st.DrawFn) -> Record:
    """A record whose entry says when to deliver it."""
    level = draw(st.integers(1, len(DELAYS)))
    later = properties({"DELAY": str(level), "TAGS": "later"})
    return Record(SCHEDULE_TOPIC, properties=later, queue=level - 1)


ANY_RECORDS = st.one_of(records(), records(), inner_batches(), dispatched_to_many(), delayed())


@st.composite
def builders(draw: st.DrawFn) -> StoreBuilder:
    """Any valid store, ready to be written: small files, at times truncated or without its oldest files."""
    size = draw(st.sampled_from((2048, 4096, 16384)))
    builder = StoreBuilder(
        log_file_size=size,
        queue_file_size=draw(st.sampled_from((20, 60, 600))),
        end=size * draw(st.sampled_from((0, 0, 3))),
    )
    for most in (30, 10):
        lost = draw(st.integers(0, len(builder.records)))
        if lost:
            builder.truncate(lost)
        if draw(st.booleans()):
            _make_anew(builder, "orders")
        for record in draw(st.lists(ANY_RECORDS, min_size=1, max_size=most)):
            builder.append(record)
    builder.expired = draw(st.integers(0, len(builder.log) - 1))
    return builder


def _make_anew(builder: StoreBuilder, topic: str) -> None:
    """Delete a topic, and use each of its queues again: one that stayed away would look like one that was lost."""
    queues = [queue for name, queue in builder.queues if name == topic]
    builder.delete_topic(topic)
    for queue in queues:
        builder.append(Record(topic, queue=queue))
