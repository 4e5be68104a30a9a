"""RocketMQ store directories, written in plain Python: a builder that lays records, and valid stores of every kind."""

import json
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from hypothesis import strategies as st

from tests.support.rocketmq.stores import (
    BLANK,
    BORN_IPV6,
    COMMITTED,
    COMPRESSED,
    DELAYS,
    INNER_BATCH,
    MULTI_TAGS,
    PRE_BLANK,
    PREPARED,
    ROLLED_BACK,
    SCHEDULE_TOPIC,
    SEAL,
    STORE_IPV6,
    Entry,
    Queue,
    Record,
    encode,
    entries_of,
    fields,
    host,
    properties,
)

RESTART = 4000  # ms: a clean stop alone takes three seconds


@dataclass
class StoreBuilder:
    """Builds a store: it gives each record its number, position and time as a broker would.

    `seals`: each record carries a checksum of itself, as the last of its properties · `expired` log files, the oldest,
    are left out when the store is written, and with them the consume queue files without younger entries.
    """

    log_file_size: int = 16384
    queue_file_size: int = 600
    end: int = 0  # exclusive end of the records; where a new log begins
    now: int = 1_700_000_000_000
    records: list[Record] = field(default_factory=list)
    queues: dict[Queue, dict[int, Entry]] = field(default_factory=dict)
    numbers: dict[Queue, int] = field(default_factory=dict)  # the number that comes next
    log: dict[int, bytearray] = field(default_factory=dict, repr=False)  # the files by base
    deleted: set[str] = field(default_factory=set)  # topics that were deleted and not recreated
    expired: int = 0
    seals: bool = False
    recovered: int = 0  # where the last record began when the broker last started

    def append(self, record: Record, *, dispatched: bool = True) -> Record:
        """Lay the record at the end of the log and, if dispatched, make its entries."""
        self.now += 1
        record = self._sealed(self._numbered(replace(record, store_time=self.now)))
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
        record = self._sealed(self._numbered(replace(record, store_time=self.now + 1)))
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

    def restart(self, *, seals: bool) -> None:
        """The broker begins another life, with other settings."""
        self.seals, self.now = seals, self.now + RESTART
        self.recovered = self.records[-1].position if self.records else 0

    def delete_topic(self, topic: str) -> None:
        """Delete its queues; if the topic is recreated, its numbers start again at 0."""
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
        _write(store / "checkpoint", struct.pack(">5q", flushed, flushed, 0, 0, self.recovered).ljust(4096, b"\0"))
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

    def _sealed(self, record: Record) -> Record:
        """The record with the property for its checksum, if this broker writes one."""
        text = record.properties
        if not self.seals or text.endswith(SEAL):
            return record
        return replace(record, properties=text + b"\x02" * (text != b"" and not text.endswith(b"\x02")) + SEAL)

    def _take_number(self, queue: Queue, count: int) -> int:
        number = self.numbers.get(queue, 0)
        self.numbers[queue] = number + count
        return number

    def _give_back(self, topic: str, queue: int, number: int) -> None:
        self.queues.get((topic, queue), {}).pop(number, None)
        self.numbers[topic, queue] = min(self.numbers.get((topic, queue), 0), number)

    def _room_for(self, size: int) -> int:
        """Return the place of a record of `size` bytes; if the file is full, a blank ends it and the next begins."""
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


def varied(seed: int = 0, count: int = 300) -> StoreBuilder:
    """A small store with many log and queue files and every kind of record; the same for the same seed."""
    choose = Random(seed)
    builder = StoreBuilder(log_file_size=8192, queue_file_size=200, seals=seed % 2 == 1)
    for index in range(count):
        tag = choose.choice(("", "TagA", "créé", "😀"))
        usual = Record(
            topic=choose.choice(("orders", "orders", "payments", "订单-😀", "L" * 200)),
            queue=choose.randrange(2),
            body=choose.randbytes(choose.choice((0, 20, 200))),
            properties=properties({"KEYS": f"key-{index}", "TAGS": tag}),
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
    usual = properties({"WAIT": "true", "TAGS": draw(TAGS)})
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
            _make_again(builder, "orders")
        seals = draw(st.booleans())
        if seals != builder.seals:
            builder.restart(seals=seals)
        for record in draw(st.lists(ANY_RECORDS, min_size=1, max_size=most)):
            builder.append(record)
    builder.expired = draw(st.integers(0, len(builder.log) - 1))
    return builder


def _make_again(builder: StoreBuilder, topic: str) -> None:
    """Delete a topic, and use each of its queues again: one that stayed away would look like one that was lost."""
    queues = [queue for name, queue in builder.queues if name == topic]
    builder.delete_topic(topic)
    for queue in queues:
        builder.append(Record(topic, queue=queue))
