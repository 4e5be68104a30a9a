"""Heads of batches: the columns are what was written, and the end is where whole batches end."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from gapless.native import Native
from gapless.traces.sources.kafka.log import batches as heads
from gapless.traces.sources.kafka.log.batches import Scan, Stop, chunks, scan
from gapless.traces.sources.kafka.log.control import DATA, EMPTIED, MALFORMED
from tests.support.kafka.logs import Message, batch, marker, segment

CHECKSUM = 17
"""The byte at which a batch's checksum begins, and what it covers behind that."""


@pytest.fixture(params=["native", "by Python"], autouse=True)
def reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is run by native code, and by Python."""
    if request.param == "by Python":
        monkeypatch.setattr(heads, "_scan", heads._scan.by_python)
    else:
        monkeypatch.setattr(Native, "few", -1)


def scanned(tmp_path: Path, data: bytes, begin: int = 0, end: int | None = None) -> Scan:
    """The scan of a segment with these bytes."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data)
    return scan(path, begin, end)


def test_every_field_is_read(tmp_path: Path) -> None:
    ours = {"attributes": 0x10, "producer": 7, "epoch": 3, "sequence": 2**31 - 1}
    first = batch(5, [Message(time=3), Message(time=9)], leader=4, time=1000, **ours)
    found = scanned(tmp_path, first + marker(7, commit=True, producer=7, epoch=3, coordinator=11) + batch(8, codec=3))
    (one, end, last), of = [0, 1, 2], found.batches
    assert (found.stop, found.end, len(of)) == (Stop.END, found.size, 3)
    assert of.position.tolist() == [0, len(first), len(first) + 78]
    assert (of.base.tolist(), of.last.tolist(), of.count.tolist()) == ([5, 7, 8], [6, 7, 8], [2, 1, 1])
    assert (of.leader_epoch[one], of.base_time[one], of.max_time[one]) == (4, 1000, 1009)
    assert (of.producer.tolist(), of.producer_epoch.tolist()) == ([7, 7, -1], [3, 3, -1])
    assert (of.sequence.tolist(), of.last_sequence.tolist()) == ([2**31 - 1, -1, -1], [0, -1, -1])
    assert (of.marker.tolist(), of.coordinator[end]) == ([DATA, 1, DATA], 11)
    assert (of.is_transactional.tolist(), of.is_control.tolist()) == ([True, True, False], [False, True, False])
    assert of.codec[last] == 3
    assert of.is_sound.all()
    assert of.fits.all()


def test_numbers_that_cannot_be_together_do_not_fit(tmp_path: Path) -> None:
    odd = [
        batch(delta=-1),
        batch(count=-1),
        batch(count=3),
        batch(attributes=5),
        batch(attributes=0x80),
        batch(producer=3),
    ]
    found = scanned(tmp_path, b"".join(odd) + batch())
    assert found.batches.fits.tolist() == [False] * len(odd) + [True]


def test_a_bit_that_the_checksum_covers_is_missed_nowhere(tmp_path: Path) -> None:
    for bit in range(8 * CHECKSUM, 8 * 90, 7):
        data = bytearray(batch(0, [Message(b"x" * 30)]) + batch(1))
        data[bit // 8] ^= 1 << bit % 8
        assert scanned(tmp_path, bytes(data)).batches.is_sound.tolist() == [False, True]


def test_control_batches(tmp_path: Path) -> None:
    odd = batch(0, [Message(b"", b"\0\0")], attributes=0x30)
    emptied = batch(1, [], attributes=0x30, delta=0)
    two = batch(2, [Message(), Message()], attributes=0x30)
    header = batch(4, [Message(b"\0\0\0\0", struct.pack(">hh", 0, 3))], attributes=0x20)
    miscounted = batch(4, [Message(b"\0" * 6, bytes(4))], attributes=0x30, count=2, delta=1)
    found = scanned(tmp_path, odd + emptied + two + header + miscounted + marker(6, commit=False))
    assert found.batches.marker.tolist() == [MALFORMED, EMPTIED, MALFORMED, 3, MALFORMED, 0]


OLD = struct.pack(">bbii", 0, 0, -1, 1) + b"x"
ENDS = {
    "a head that is torn": (batch(9)[:30], Stop.SHORT),
    "a batch that is torn": (batch(9)[:-1], Stop.SHORT),
    "zeros": (bytes(5000), Stop.ZEROS),
    "few zeros": (bytes(5), Stop.ZEROS),
    "a head that ends in zeros": (batch(9)[:14] + bytes(5000), Stop.SHORT),
    "a head whose magic number is lost": (batch(9)[:16] + bytes(50), Stop.SHORT),
    "zeros and a byte": (bytes(5000) + b"\1", Stop.LENGTH),
    "a length that cannot be": (batch(9, length=48), Stop.LENGTH),
    "a negative length": (batch(9, length=-5), Stop.LENGTH),
    "another format": (batch(9, magic=3), Stop.MAGIC),
    "text": (b"no batch, but some text that goes further than the head of one does", Stop.MAGIC),
    "an old message": (struct.pack(">qiI", 9, 4 + len(OLD), zlib.crc32(OLD)) + OLD + bytes(61), Stop.OLD),
    "an old message with another checksum": (struct.pack(">qiI", 9, 4 + len(OLD), 1) + OLD + b"\1" * 61, Stop.MAGIC),
}


@pytest.mark.parametrize("name", ENDS)
def test_whole_batches_end(tmp_path: Path, name: str) -> None:
    rest, stop = ENDS[name]
    whole = segment(3, 4)
    found = scanned(tmp_path, whole + rest)
    assert (found.stop, found.end, len(found.batches)) == (stop, len(whole), 2)
    assert scanned(tmp_path, rest).stop == stop


def test_a_batch_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(batch() + batch(length=heads.LARGEST + 1))
    with path.open("r+b") as file:
        file.truncate(heads.LARGEST + 1000)
    assert scan(path).stop == Stop.LARGE


def test_chunks_of_any_size_give_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(segment(1, 40, 2, 3, 5, 90, 1) + bytes(300))
    whole = scan(path)
    for size in (1, 61, 100, 777, 4000):
        parts = list(chunks(path, chunk=size))
        assert (np.concatenate([part.batches.table for part in parts], 1) == whole.batches.table).all()
        assert (parts[-1].stop, parts[-1].end) == (whole.stop, whole.end) == (Stop.ZEROS, whole.size - 300)
        assert len(parts) > 1


def test_a_part_begins_and_ends_between_batches(tmp_path: Path) -> None:
    data = segment(1, 2, 3, 4)
    places = scanned(tmp_path, data).batches.position.tolist()
    found = scanned(tmp_path, data, places[1], places[3])
    assert (found.batches.position.tolist(), found.stop, found.end) == (places[1:3], Stop.END, places[3])


def test_a_file_that_is_cut_while_it_is_read_is_short(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    data = segment(*[9] * 20)
    path.write_bytes(data)
    parts = chunks(path, chunk=1000)
    next(parts)
    path.write_bytes(data[: len(data) // 2 - 7])
    rest = list(parts)
    assert rest[-1].stop == Stop.SHORT
    assert rest[-1].size == len(data) // 2 - 7


def test_an_empty_segment(tmp_path: Path) -> None:
    found = scanned(tmp_path, b"")
    assert (found.stop, found.end, len(found.batches), found.batches.end) == (Stop.END, 0, 0, 0)
