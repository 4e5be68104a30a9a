"""Records of batches: unpacked by every codec, within bounds, and read to the last byte."""

import tracemalloc
from pathlib import Path

import pytest

from gapless.native import Native
from gapless.traces.sources.kafka.log import codecs
from gapless.traces.sources.kafka.log import records as reading
from gapless.traces.sources.kafka.log.batches import chunks
from gapless.traces.sources.kafka.log.records import ContentFault, Contents, contents, records
from tests.support.kafka.logs import PACK, SNAPPY, ZSTD, Message, batch, marker, segment, varint

MESSAGES = [
    Message(b"one", b"key", time=5),
    Message(None, b"key", time=90, headers={b"a": b"b", b"": None}),
    Message(b"x" * 3000, None, time=-70),
    Message(b"", b"", time=90),
]
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@pytest.fixture(params=["native", "by Python"], autouse=True)
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is run by native code, and by Python."""
    if request.param == "by Python":
        monkeypatch.setattr(reading, "_walk", reading._walk.by_python)
    else:
        monkeypatch.setattr(Native, "few", -1)


def read(tmp_path: Path, data: bytes) -> Contents:
    """The contents of a segment with these bytes."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data)
    (chunk,) = chunks(path)
    return contents(chunk)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_records_of_every_codec(tmp_path: Path, codec: int) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(segment(3) + batch(3, MESSAGES, codec=codec, time=1000) + segment(2, base=7))
    (chunk,) = chunks(path)
    found = contents(chunk)
    assert found.fault.tolist() == [ContentFault.OK] * 3
    assert (found.parsed.tolist(), found.keyed.tolist()) == ([3, 4, 2], [0, 3, 0])
    assert (found.first.tolist(), found.last.tolist()) == ([0, 0, 0], [2, 3, 1])
    assert found.dense.all()
    assert found.rising.all()
    assert (found.max_time[1], found.max_at[1]) == (1090, 1)
    columns = next(part for part in records(chunk) if 1 in part.batch)
    rows = [row for row in range(len(columns)) if columns.batch[row] == 1]
    assert [columns.key(row) for row in rows] == [message.key for message in MESSAGES]
    assert [columns.value(row) for row in rows] == [message.value for message in MESSAGES]
    assert columns.offset[rows].tolist() == [3, 4, 5, 6]
    assert columns.time[rows].tolist() == [1005, 1090, 930, 1090]
    assert columns.has_value[rows].tolist() == [True, False, True, True]
    first, second, third, fourth = columns.key_hash[rows].tolist()
    assert first == second
    assert third == 0
    assert fourth not in {first, 0}


def test_offsets_that_are_not_dense(tmp_path: Path) -> None:
    cleaned = batch(0, [Message(delta=2), Message(delta=5)], delta=9)
    back = batch(10, [Message(delta=1), Message(delta=1)])
    found = read(tmp_path, cleaned + back)
    assert found.dense.tolist() == [False, False]
    assert found.rising.tolist() == [True, False]
    assert (found.first.tolist(), found.last.tolist()) == ([2, 1], [5, 1])


def test_times_that_a_broker_stamped(tmp_path: Path) -> None:
    found = read(tmp_path, batch(0, [Message(time=5), Message(time=1)], attributes=8, max_time=77))
    assert (found.max_time.tolist(), found.max_at.tolist()) == ([77], [1])


def test_an_emptied_batch_has_no_records(tmp_path: Path) -> None:
    found = read(tmp_path, batch(0, [], delta=4))
    assert (found.fault[0], found.parsed[0], found.first[0], found.max_time[0]) == (ContentFault.OK, 0, -1, -1)


WHOLE = MESSAGES[0].encoded(0)
FAULTS = {
    "one is missing": (batch(count=2, delta=1), ContentFault.COUNT),
    "one too many": (batch(0, [Message(), Message()], count=1, delta=0), ContentFault.COUNT),
    "two thousand million": (batch(count=2**31 - 1, delta=2**31 - 2), ContentFault.COUNT),
    "a byte behind the last": (batch(body=WHOLE + b"\0"), ContentFault.RECORDS),
    "a record that ends too early": (batch(body=WHOLE[:-1]), ContentFault.RECORDS),
    "a record with a byte too many": (batch(body=varint(len(WHOLE)) + WHOLE[1:] + b"\0"), ContentFault.RECORDS),
    "a negative length": (batch(body=varint(-3) + WHOLE[1:]), ContentFault.RECORDS),
    "a key beyond the record": (batch(body=varint(6) + b"\0\0\0" + varint(500) + b"\0\0\0"), ContentFault.RECORDS),
    "a length of eleven bytes": (batch(body=b"\xff" * 11), ContentFault.RECORDS),
    "headers without end": (batch(body=varint(9) + b"\0\0\0\1\1" + varint(2**27)), ContentFault.RECORDS),
    "no gzip": (batch(codec=1, body=b"no gzip at all, but some text"), ContentFault.CODEC),
    "half a zstd": (batch(codec=4, body=PACK[4](bytes(90000))[:20]), ContentFault.RECORDS),
    "no such codec": (batch(attributes=6, body=WHOLE), ContentFault.CODEC),
    "a snappy of another size": (batch(codec=2, body=b"\xff\xff\xff\x7f" + b"\0" * 30), ContentFault.CODEC),
    "a control record": (batch(attributes=0x30), ContentFault.CONTROL),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named_and_others_read(tmp_path: Path, name: str) -> None:
    data, fault = FAULTS[name]
    found = read(tmp_path, segment(2) + data + marker(9, commit=True))
    assert [ContentFault(one) for one in found.fault] == [ContentFault.OK, fault, ContentFault.OK]
    path = tmp_path / "00000000000000000000.log"
    (chunk,) = chunks(path)
    listed = [row for part in records(chunk) for row in part.batch.tolist()]
    assert listed == ([0, 0, 1, 2] if fault == ContentFault.CONTROL else [0, 0, 2])


def test_snappy_without_frames_is_read(tmp_path: Path) -> None:
    packed = PACK[SNAPPY](WHOLE)[20:]
    assert read(tmp_path, batch(codec=SNAPPY, body=packed)).fault.tolist() == [ContentFault.OK]


def test_many_blocks_of_a_codec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "FULL", 2000)
    found = read(tmp_path, segment(*[40] * 30, codec=ZSTD))
    assert found.parsed.tolist() == [40] * 30
    assert not found.fault.any()


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_batch_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, codec: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codecs, "LARGEST", 1 << 20)
    bomb = PACK[codec](bytes(16 << 20))
    tracemalloc.start()
    try:
        found = read(tmp_path, segment(1) + batch(1, body=bomb, codec=codec) + segment(1, base=2))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.fault.tolist() == [ContentFault.OK, ContentFault.LARGE, ContentFault.OK]
    assert most < 8 << 20
