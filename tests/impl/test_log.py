"""The implementation's log and queues, compared with the plain reader and writer of the tests."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.impl.environment.operating_system import Disk, RealDisk
from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import BLANK_SLOT, ConsumeQueues
from gapless.impl.files.segments import Segments
from gapless.impl.records import kernels
from gapless.impl.records import record as records
from gapless.impl.records.errors import Damaged, NotAStore, Refused, WrongFileSize
from gapless.properties.simulation.simulated_disk import SimulatedDisk
from tests.support.rocketmq import store_builder, stores

FILE = 4096
ALWAYS = 1 << 62  # ms: nothing is doubted that was stored before

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\x01\x02"), min_size=1, max_size=20)
PROPERTIES = st.dictionaries(TEXT.filter(lambda name: name not in records.RESERVED), TEXT, max_size=4)
TOPICS = st.sampled_from(["orders", "x", "a" * 127, "b" * 128, "%RETRY%g_" + "t" * 200, "Ünïcode"])
MESSAGES = st.lists(st.tuples(TOPICS, st.integers(0, 3), st.binary(max_size=300), PROPERTIES), max_size=30)
Message = tuple[str, int, bytes, dict[str, str]]


def new_log(where: Path | Disk, size: int = FILE) -> CommitLog:
    disk = RealDisk(where) if isinstance(where, Path) else where
    return CommitLog(Segments.load(disk, "commitlog", size))


def append(log: CommitLog, queues: ConsumeQueues, message: Message, now: int = 0) -> tuple[int, int]:
    topic, queue, body, properties = message
    return log.append(queues.named(topic, queue), body, records.properties_bytes(properties), now)


def written(log: CommitLog) -> bytes:
    return b"".join(bytes(log.view(base)[0]) for base in log.segments.bases)


def plainly(data: bytes, file_size: int = FILE) -> list[stores.Record]:
    """Every record, as the plain reader finds them; blanks are passed."""
    found, at = [], 0
    while at < len(data):
        record = stores.decode(data, at, at)
        if record is not None:
            found.append(record)
            at += record.size
        elif data[at + 4 : at + 8] == stores.BLANK.to_bytes(4, "big"):
            assert int.from_bytes(data[at : at + 4], "big") == file_size - at % file_size
            at += file_size - at % file_size
        else:
            break
    return found


@given(MESSAGES, st.integers(0, 2**40))
def test_records_are_as_a_broker_writes_them(messages: list[Message], now: int) -> None:
    disk = SimulatedDisk()
    log, queues = new_log(disk), ConsumeQueues(disk, 200)
    for message in messages:
        append(log, queues, message, now)
    found = plainly(written(log))
    assert [(r.topic, r.queue, r.body, r.property_map, r.store_time) for r in found] == [
        (topic, queue, body, properties, now) for topic, queue, body, properties in messages
    ]
    for name in {(record.topic, record.queue) for record in found}:
        numbers = [record.number for record in found if (record.topic, record.queue) == name]
        assert numbers == list(range(len(numbers)))
    assert [log.at(r.position).properties for r in found] == [properties for _, _, _, properties in messages]


@given(MESSAGES)
def test_many_at_once_are_the_same_as_one_by_one(messages: list[Message]) -> None:
    slow, fast, queues = new_log(SimulatedDisk()), new_log(SimulatedDisk()), ConsumeQueues(SimulatedDisk(), 200)
    places = [append(slow, queues, message, 7) for message in messages]
    columns, queues = records.Messages.of_list(messages), ConsumeQueues(SimulatedDisk(), 200)
    placed = fast.append_many([queues.named(*pair) for pair in columns.queues], columns, 7)
    assert [*zip(placed[0].tolist(), placed[1].tolist(), strict=True)] == places
    assert (fast.end, fast.newest, fast.flushed) == (slow.end, slow.newest, slow.flushed)
    assert written(fast) == written(slow)


@given(MESSAGES, st.data())
def test_the_end_is_where_the_first_byte_is_wrong(messages: list[Message], data: st.DataObject) -> None:
    disk = SimulatedDisk()
    log, queues = new_log(disk), ConsumeQueues(disk, 200)
    places = [append(log, queues, message) for message in messages]
    again = new_log(disk)
    assert (again.recover(0, ALWAYS), again.end) == (len(messages), log.end)
    if places:
        number = data.draw(st.integers(0, len(messages) - 1))
        judged = [*range(12), *range(28, 36), *range(84, 89 + len(messages[number][2]))]
        bytes_ = log.view(places[number][0])[0]
        bytes_[places[number][0] % FILE + data.draw(st.sampled_from(judged))] ^= data.draw(st.integers(1, 255))
        changed, plain = new_log(disk), plainly(written(log))
        changed.recover(0, ALWAYS)
        assert len(plain) == number
        assert changed.end == (plain[-1].end if plain else 0) or _begins_a_file(changed.end, plain)


def _begins_a_file(end: int, plain: list[stores.Record]) -> bool:
    """Behind a blank, the end is where the next file begins."""
    return end % FILE == 0 and (end - FILE <= plain[-1].end if plain else end == 0)


@given(MESSAGES.filter(len), st.data())
def test_a_torn_record_is_none(messages: list[Message], data: st.DataObject) -> None:
    """A disk that loses power writes any of the sectors, and leaves zeros in the others."""
    disk = SimulatedDisk()
    log, queues = new_log(disk), ConsumeQueues(disk, 200)
    places = [append(log, queues, message, 100) for message in messages]
    base = log.segments.bases[-1]
    torn, whole = log.view(base)[0], bytes(log.view(base)[0])
    sectors = data.draw(st.sets(st.integers(0, FILE // 512 - 1)))
    for sector in sectors:
        torn[sector * 512 : sector * 512 + 512] = 0
    again = new_log(disk)
    again.recover(0, 0)
    parts = [(at, at - base, at - base + size) for at, size in places if at >= base]
    left = [at for at, low, high in parts if bytes(torn[low:high]) != whole[low:high]]
    assert again.end == min(left, default=log.end)


def test_the_clock_may_step_back_but_store_times_do_not(tmp_path: Path) -> None:
    log, queues = new_log(tmp_path), ConsumeQueues(RealDisk(tmp_path), 200)
    for now in (5, 9, 3, 12):
        append(log, queues, ("orders", 0, b"", {}), now)
    assert [record.store_time for record in plainly(written(log))] == [5, 9, 9, 12]


def test_a_file_ends_in_a_blank_and_is_safe_before_the_next_begins(tmp_path: Path) -> None:
    log, queues = new_log(tmp_path), ConsumeQueues(RealDisk(tmp_path), 200)
    while len(log.segments.bases) < 3:
        append(log, queues, ("orders", 0, bytes(300), {}))
    assert log.flushed == 2 * FILE
    assert len(plainly(written(log))) == queues.named("orders", 0).next


@pytest.mark.parametrize("size", [FILE - 8 - 91 - 6, FILE - 8 - 91 - 5])
def test_a_record_larger_than_a_file_is_refused(tmp_path: Path, size: int) -> None:
    log, queues = new_log(tmp_path), ConsumeQueues(RealDisk(tmp_path), 200)
    many = records.Messages.of_list([("orders", 0, bytes(size), {})])
    if size + 91 + 6 + 8 <= FILE:
        assert append(log, queues, ("orders", 0, bytes(size), {})) == (0, FILE - 8)
        return
    for attempt in (
        lambda: append(log, queues, ("orders", 0, bytes(size), {})),
        lambda: log.append_many([queues.named("orders", 0)], many, 0),
    ):
        with pytest.raises(Refused, match=f"expected at most {FILE - 8}"):
            attempt()
    assert (log.end, queues.named("orders", 0).next) == (0, 0)


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a\0b", "x" * 256, "a\nb"])
def test_a_topic_that_is_no_folder_is_refused(topic: str) -> None:
    with pytest.raises(Refused, match="topic"):
        records.topic_bytes(topic)


@pytest.mark.parametrize(
    "pairs", [{"": "x"}, {"x": ""}, {"a\x01": "b"}, {"a": "b\x02"}, {"a": "\0"}, {"a": "b" * 32766}]
)
def test_properties_that_no_reader_would_see_are_refused(pairs: dict[str, str]) -> None:
    with pytest.raises(Refused, match="propert"):
        records.properties_bytes(pairs)


@given(st.text(max_size=30))
def test_tag_codes_are_javas(text: str) -> None:
    code = stores.java_hash(text)
    data = np.frombuffer(text.encode(), np.uint8)
    assert records.tag_code(text) == code == kernels.java_hash(data, 0, len(data))


@given(store_builder.records())
def test_any_record_of_a_broker_is_read(record: stores.Record) -> None:
    data = np.frombuffer(stores.encode(record), np.uint8)
    found, (record, _) = records.decode(data, 0), stores.fields(bytes(data), 0)  # with its checksum
    assert found is not None
    assert (found.topic, found.queue, found.number, found.position) == (
        record.topic,
        record.queue,
        record.number,
        record.position,
    )
    properties = {name: value for name, value in record.property_map.items() if name != records.CHECKSUM}
    assert (found.body, found.properties, found.sys_flag) == (record.body, properties, record.sys_flag)
    assert (found.born_time, found.born_host) == (record.born_time, record.born_host)
    assert (found.store_time, found.store_host) == (record.store_time, record.store_host)
    assert (found.flag, found.reconsumed, found.half) == (
        record.flag,
        record.reconsume_times,
        record.prepared_position,
    )
    assert kernels.scan(data, record.position, 0, ALWAYS, kernels.CRC_TABLES, ALWAYS, 0)[:3] == (len(data), 0, 1)
    for cut in (len(data) - 1, len(data) // 2, 10):
        assert records.decode(data[:cut], 0) is None


@pytest.mark.parametrize(
    ("name", "length", "error", "words"),
    [
        ("00000000000000000000", 4095, WrongFileSize, "4095 bytes, expected 4096"),
        ("readme", 1, NotAStore, "expected file names of twenty digits"),
        ("00000000000000008192", 4096, Damaged, "expected the file that begins at 4096"),
    ],
)
def test_foreign_files_are_named(tmp_path: Path, name: str, length: int, error: type[Exception], words: str) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / "00000000000000000000").write_bytes(bytes(4096))
    (tmp_path / "commitlog" / name).write_bytes(bytes(length))
    with pytest.raises(error, match=f"commitlog/{name}.*{words}"):
        new_log(tmp_path)


def test_a_file_that_was_being_made_is_none(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / "00000000000000000000").write_bytes(bytes(4096))
    (tmp_path / "commitlog" / "00000000000000004096").write_bytes(b"")
    log = new_log(tmp_path)
    assert log.segments.bases == [0]
    log.truncate()
    assert not (tmp_path / "commitlog" / "00000000000000004096").exists()


def test_a_queue_that_begins_late_says_that_its_first_slots_are_blank(tmp_path: Path) -> None:
    queue = ConsumeQueues(RealDisk(tmp_path), 200).named("orders", 0)
    queue.reserve(23)
    assert queue.segments.bases == [400]
    assert queue.entries(20, 24)["size"].tolist() == [BLANK_SLOT] * 3 + [0]
    with pytest.raises(Damaged, match="expected the file of 600 first"):
        queue.reserve(41)
