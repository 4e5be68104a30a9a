"""The reader and writer of other tests, compared with real brokers' stores, and with each other."""

import json
import struct
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.rocketmq.recordings import COUNTS, RECORDINGS, recording
from tests.support.rocketmq.store_builder import StoreBuilder, builders
from tests.support.rocketmq.stores import (
    BLANK,
    BORN_IPV6,
    INNER_BATCH,
    PREPARED,
    SCHEDULE_TOPIC,
    STORE_IPV6,
    Record,
    encode,
    entries_of,
    expected_queues,
    host,
    java_hash,
    log_files,
    properties,
    queue_files,
    queues_of,
    read_checkpoint,
    read_log,
    read_properties,
    read_queue,
)

HALF, OP = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"

RAW_COMMITS = {"odd_clients": 6}  # records with the commit bits that are no finals: a client sent the bits itself


# What real brokers wrote


def test_every_recording_is_counted() -> None:
    assert {archive.name.removesuffix(".tar.xz") for archive in RECORDINGS.glob("*.tar.xz")} == set(COUNTS)


@pytest.mark.parametrize("name", COUNTS)
def test_a_recording_has_its_records(name: str) -> None:
    records = read_log(recording(name))
    halves = sum(record.topic == HALF for record in records)
    committed = sum(record.transaction == 8 for record in records)
    ops = sum(record.topic == OP for record in records)
    wanted = COUNTS[name]
    assert (len(records), halves, ops) == (wanted.records, wanted.halves, wanted.ops)
    assert committed == wanted.finals + RAW_COMMITS.get(name, 0)


@pytest.mark.parametrize("name", COUNTS)
def test_every_entry_of_a_recording_is_its_message(name: str) -> None:
    """And no message is without one, though the oldest entries may outlive their messages."""
    store = recording(name)
    records = read_log(store)
    start = records[0].position
    kept = {}
    for queue in queues_of(store):
        entries = read_queue(store, queue)
        kept[queue] = {number: entry for number, entry in entries.items() if entry.position >= start}
    assert {queue: entries for queue, entries in kept.items() if entries} == expected_queues(records)


@pytest.mark.parametrize("name", COUNTS)
def test_the_checkpoint_of_a_clean_store_names_its_last_record(name: str) -> None:
    store = recording(name)
    last = read_log(store)[-1].store_time
    if (store / "abort").exists():
        assert read_checkpoint(store) < last
    else:
        assert read_checkpoint(store) == last


def test_midlife_keeps_entries_below_the_start_of_its_log() -> None:
    store = recording("midlife")
    start = int(log_files(store)[0].name)
    entries = [entry for queue in queues_of(store) for entry in read_queue(store, queue).values()]
    assert start == 786432
    assert sum(entry.position < start for entry in entries) == 156


def test_recordings_have_every_kind_of_record() -> None:
    """Otherwise the tests above say less than they seem to."""
    lmq, odd, retry = (read_log(recording(name)) for name in ("lmq", "odd_clients", "pop_retry"))
    assert sum(len(list(entries_of(record))) > 1 for record in lmq) == 200
    assert all("__CRC32#" in record.property_map for record in odd)
    assert {record.transaction for record in odd} == {0, 4, 8, 12}
    assert any(record.topic == SCHEDULE_TOPIC for record in odd)
    assert sum(len(record.topic) == 228 for record in retry) == 40


# What the format says


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("d", 100),
        ("TagA", 2598919),
        ("polygenelubricants", -2147483648),
        ("créé", 3066319),
        ("😀", 1772899),
        ("\ud83d", 55357),
    ],
)
def test_hashes_are_those_of_java(text: str, code: int) -> None:
    assert java_hash(text) == code


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"TAGS\x01a\x02TAGS\x01b\x02", {"TAGS": "b"}),
        (b"TAGS\x01a", {"TAGS": "a"}),
        (b"TAGS\x01a\x01b\x02", {"TAGS": "a\x01b"}),
        (b"TAGS\x01\x02\x01a\x02\x02A\x02", {}),
    ],
)
def test_odd_properties_are_read_as_a_broker_reads_them(raw: bytes, found: dict[str, str]) -> None:
    assert read_properties(raw) == found


def test_a_record_is_its_fixed_part_and_what_varies() -> None:
    assert Record("t").size == 91 + 1
    assert Record("t" * 128).size == 92 + 128
    ipv6 = host("2001:db8::1", 10911)
    both = Record("t", sys_flag=BORN_IPV6 | STORE_IPV6, born_host=ipv6, store_host=ipv6)
    assert both.size == 91 + 24 + 1


def test_the_property_checksum_covers_what_lies_before_it() -> None:
    raw = encode(Record("t", body=b"body", properties=properties({"TAGS": "a"}, sealed=True)))
    digits = raw[-11:-1].decode()
    assert int(digits[::-1]) == zlib.crc32(raw[:-20]) & 0x7FFFFFFF


# What the builder writes


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(builder=builders())
def test_what_is_written_is_read(builder: StoreBuilder) -> None:
    with TemporaryDirectory() as room:
        store = builder.write(Path(room) / "store")
        start = min((int(file.name) for file in log_files(store)), default=0)
        records = [record for record in builder.records if record.position >= start]
        stale = read_log(store)[len(records) :]
        assert read_log(store)[: len(records)] == records
        assert not stale or stale[0].position == builder.end
        for queue, entries in builder.queues.items():
            lost = {number for number, entry in entries.items() if entry.position < start}
            kept = read_queue(store, queue) if entries else {}
            assert kept.items() <= entries.items()
            assert entries.keys() - kept.keys() <= lost


def test_a_full_file_ends_in_a_blank(tmp_path: Path) -> None:
    builder = StoreBuilder(log_file_size=2048)
    for _ in range(10):
        builder.append(Record("orders", body=bytes(300)))
    store = builder.write(tmp_path / "store")
    first, second = log_files(store)[:2]
    last = max(record.end for record in builder.records if record.end <= 2048)
    assert struct.unpack_from(">iI", first.read_bytes(), last) == (2048 - last, BLANK)
    assert int(second.name) == 2048
    assert read_log(store) == builder.records


def test_a_topic_recreated_starts_at_zero(tmp_path: Path) -> None:
    builder = StoreBuilder()
    for _ in range(5):
        builder.append(Record("orders"))
    builder.delete_topic("orders")
    recreated = builder.append(Record("orders"))
    store = builder.write(tmp_path / "store")
    assert [record.number for record in read_log(store)] == [0, 1, 2, 3, 4, 0]
    assert list(read_queue(store, ("orders", 0))) == [0]
    assert read_queue(store, ("orders", 0))[0].position == recreated.position


def test_stale_bytes_stay_behind_the_end(tmp_path: Path) -> None:
    """Here a new record ends where an old one did, so that the old one behind it still looks valid."""
    builder = StoreBuilder()
    for _ in range(4):
        builder.append(Record("orders", body=b"old"))
    builder.truncate(2)
    builder.append(Record("orders", body=b"new"))
    store = builder.write(tmp_path / "store")
    assert [record.body for record in builder.records] == [b"old", b"old", b"new"]
    assert [record.body for record in read_log(store)] == [b"old", b"old", b"new", b"old"]
    assert len(read_queue(store, ("orders", 0))) == 3
    assert read_checkpoint(store) == builder.records[-1].store_time


def test_a_torn_record_is_not_read(tmp_path: Path) -> None:
    builder = StoreBuilder()
    builder.append(Record("orders", body=b"whole"))
    builder.tear(Record("orders", body=b"torn apart"), written=95)
    store = builder.write(tmp_path / "store", clean=False)
    assert read_log(store) == builder.records
    assert (store / "abort").exists()


def test_an_expired_store_starts_late_and_keeps_old_entries(tmp_path: Path) -> None:
    builder = StoreBuilder(log_file_size=2048, queue_file_size=200, expired=2)
    for _ in range(40):
        builder.append(Record("orders", body=bytes(200)))
    store = builder.write(tmp_path / "store")
    numbers = [record.number for record in read_log(store)]
    entries = read_queue(store, ("orders", 0))
    assert int(log_files(store)[0].name) == 4096
    assert numbers == list(range(numbers[0], 40))
    assert list(entries) == list(range(numbers[0] - numbers[0] % 10, 40))


def test_slots_before_the_first_entry_are_marked_unused(tmp_path: Path) -> None:
    builder = StoreBuilder(end=16384, numbers={("orders", 0): 17})
    builder.append(Record("orders"))
    store = builder.write(tmp_path / "store")
    assert read_queue(store, ("orders", 0)).keys() == {17}
    assert queue_files(store, ("orders", 0))[0].read_bytes()[:20] == struct.pack(">qiq", 0, 0x7FFFFFFF, 0)


def test_what_has_no_entry_takes_no_place_in_the_queue(tmp_path: Path) -> None:
    builder = StoreBuilder()
    builder.append(Record("orders", sys_flag=PREPARED))
    builder.append(Record("orders"))
    builder.append(Record("batches", sys_flag=INNER_BATCH, properties=properties({"INNER_NUM": "5"})))
    batch = builder.append(Record("batches", sys_flag=INNER_BATCH, properties=properties({"INNER_NUM": "1"})))
    store = builder.write(tmp_path / "store")
    assert [record.number for record in read_log(store)] == [0, 0, 0, 5]
    assert batch.number == 5
    assert queues_of(store) == [("orders", 0)]


def test_a_record_for_many_queues_has_an_entry_in_each(tmp_path: Path) -> None:
    builder = StoreBuilder()
    for names in ("%LMQ%a,%LMQ%b", "%LMQ%b"):
        builder.append(Record("orders", properties=properties({"INNER_MULTI_DISPATCH": names})))
    store = builder.write(tmp_path / "store")
    assert {queue: list(read_queue(store, queue)) for queue in queues_of(store)} == {
        ("%LMQ%a", 0): [0],
        ("%LMQ%b", 0): [0, 1],
        ("orders", 0): [0, 1],
    }
    assert list(json.loads((store / "config" / "topics.json").read_text())["topicConfigTable"]) == ["orders"]


def test_a_store_may_have_thousands_of_queues(tmp_path: Path) -> None:
    builder = StoreBuilder(queue_file_size=20)
    for queue in range(3000):
        builder.append(Record("orders", queue=queue))
    store = builder.write(tmp_path / "store", preallocated=True)
    assert len(queues_of(store)) == 3000
    assert not any(log_files(store)[-1].read_bytes())
    assert read_log(store) == builder.records
