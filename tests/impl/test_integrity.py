"""Bytes that are not what they were: what is on disk and changes there, or goes, is noticed and not used."""

import json
import os
import random
import re
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gapless import check
from gapless.impl.environment.operating_system import RealDisk
from gapless.impl.files.checkpoint import NOWHERE, CheckpointFile
from gapless.impl.files.store_settings import NAMES
from gapless.impl.records.errors import Damaged, Refused, StoreError
from gapless.impl.records.record import LONGEST_PROPERTIES, Messages
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from tests.support.visible_messages import visible

SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False)
FLIPS = max(1, int(os.environ.get("GAPLESS_FUZZ", "150")) // 10)  # bits; `make night` flips a thousand


# -- the checkpoint ----------------------------------------------------------------------------------------------------


def stepped_back(folder: Path, *, clean: bool) -> list[int]:
    """A store whose clock was set back by an hour; returns where its last ten records begin."""
    now = 10**12
    store = Store.open(folder, SMALL, clock=lambda: now)
    for number in range(10):
        store.append("orders", 0, b"before %d" % number)
    now -= 3_600_000
    ends = [store.append("orders", 0, b"after %d" % number).position for number in range(10)]
    assert {store.at(end).store_time for end in ends} == {10**12}
    store.flush()
    visible(store)
    store.core.flush_queues()
    store.core.write_checkpoint(now)
    store.close() if clean else store.abandon()
    return ends


def overwrite(file: Path, at: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(data)


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("left", range(10))
def test_a_log_that_lost_its_end_does_not_open_whatever_the_clock_did(
    tmp_path: Path, left: int, *, clean: bool
) -> None:
    ends = stepped_back(tmp_path, clean=clean)
    overwrite(tmp_path / "commitlog" / f"{0:020d}", ends[left], bytes(8192 - ends[left]))
    with pytest.raises(Damaged, match=rf"\+{ends[left]}: no whole record begins here"):
        Store.open(tmp_path)
    with Store.open(tmp_path, Settings(salvage=True)) as store:
        assert store.range("orders", 0) == (0, 10 + left)
        store.append("orders", 0, b"later")
    Store.open(tmp_path).close()


def test_the_checkpoint_says_up_to_which_position_all_is_on_disk(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        for number in range(200):
            store.append("orders", 0, b"%d" % number)
        end = store.core.log.end
    found = CheckpointFile.read(RealDisk(tmp_path))
    assert (found.flushed, found.built, found.sealed) == (end, end, 0)
    data = (tmp_path / "checkpoint").read_bytes()
    assert len(data) == 4096
    assert not any(data[40:2048])  # where brokers may come to write more


@pytest.mark.parametrize("time", range(5))
def test_positions_are_not_believed_once_a_broker_wrote_the_file(tmp_path: Path, time: int) -> None:
    """It maps the file, writes its own times, and leaves all other bytes as they are."""
    stepped_back(tmp_path, clean=True)
    before = CheckpointFile.read(RealDisk(tmp_path))
    overwrite(tmp_path / "checkpoint", 8 * time, struct.pack(">q", 7))
    after = CheckpointFile.read(RealDisk(tmp_path))
    assert (after.flushed, after.built, after.sealed) == (0, 0, NOWHERE)
    assert after != before
    Store.open(tmp_path).close()


@pytest.mark.parametrize("at", [2048, 2060, 2090, 2100, 2119, 2123])
def test_positions_are_not_believed_once_they_are_damaged(tmp_path: Path, at: int) -> None:
    stepped_back(tmp_path, clean=True)
    before = (tmp_path / "checkpoint").read_bytes()
    overwrite(tmp_path / "checkpoint", at, bytes([before[at] ^ 1]))
    assert CheckpointFile.read(RealDisk(tmp_path)).flushed == 0
    overwrite(tmp_path / "checkpoint", 2048, bytes(2048))  # as an older implementation writes it
    assert CheckpointFile.read(RealDisk(tmp_path)).flushed == 0


# -- checksums of records ----------------------------------------------------------------------------------------------


def sealed_whole(raw: bytes) -> bool:
    """True if a record has its checksum, as docs/rocketmq.md#property-crc describes it."""
    name, digits, end = raw[-20:-11], raw[-11:-1], raw[-1:]
    return name == b"__CRC32#\x01" and end == b"\x02" and int(digits[::-1]) == zlib.crc32(raw[:-20]) & 0x7FFFFFFF


@pytest.mark.parametrize("size", [0, 1, 7, 200, 4095, 4096, 5000, 70_000])
@pytest.mark.parametrize("topic", ["orders", "t" * 200])
@pytest.mark.parametrize("properties", [{}, {"TAGS": "new", "KEYS": "a b"}, {"long": "x" * 30_000}])
def test_every_record_carries_its_checksum(tmp_path: Path, size: int, topic: str, properties: dict[str, str]) -> None:
    body = random.Random(size).randbytes(size)
    with Store.open(tmp_path, replace(SMALL, file_size=1 << 20)) as store:
        one = store.append(topic, 3, body, properties=properties)
        many, _ = store.append_batch(Messages.of_list([(topic, 3, body, properties)] * 2))
        for position in (one.position, *many.tolist()):
            data, base = store.core.log.view(position)
            raw = data[position - base : position - base + one.size].tobytes()
            assert sealed_whole(raw)
            found = store.at(position)
            assert (found.body, found.properties, found.size) == (body, properties, one.size)
    assert check([tmp_path], profile="strict").verdict == "conforms"


def test_without_checksums_records_are_twenty_bytes_shorter(tmp_path: Path) -> None:
    with Store.open(tmp_path / "with", SMALL) as store:
        size = store.append("orders", 0, b"body").size
    with Store.open(tmp_path / "without", replace(SMALL, checksums=False)) as store:
        assert store.append("orders", 0, b"body").size == size - 20
        assert store.core.log.sealed == NOWHERE


def test_properties_leave_room_for_the_checksum(tmp_path: Path) -> None:
    with Store.open(tmp_path, replace(SMALL, file_size=1 << 20)) as store:
        for more, fits in ((0, True), (1, False)):
            value = "v" * (LONGEST_PROPERTIES - 20 - len("n\x01\x02") + more)
            messages = Messages.of_list([("orders", 0, b"", {"n": value})])
            end = store.core.log.end
            if fits:
                store.append("orders", 0, b"", properties={"n": value})
                store.append_batch(messages)
                continue
            with pytest.raises(Refused, match="32748 bytes of properties, expected at most 32747"):
                store.append("orders", 0, b"", properties={"n": value})
            with pytest.raises(Refused, match="32748 bytes of properties, expected at most 32747"):
                store.append_batch(messages)
            assert store.core.log.end == end


# -- flipped bits ------------------------------------------------------------------------------------------------------


class Kept(NamedTuple):
    """A store that was stopped, and can be had again as it was. `ends`: exclusive ends of its records."""

    folder: Path
    log: dict[Path, bytes]
    positions: list[int]
    end: int

    def flip(self, bit: int) -> int:
        """The bit of the log is another one; returns the position of its byte."""
        position = bit // 8
        file, data = list(self.log.items())[position // SMALL_FILE]
        at = position % SMALL_FILE
        overwrite(file, at, bytes([data[at] ^ 1 << bit % 8]))
        return position

    def restore(self) -> None:
        """Everything is as it was."""
        for file, data in self.log.items():
            file.write_bytes(data)


SMALL_FILE = 8192


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A store of four files, with single records and batches, of two queues, with and without properties."""
    folder = tmp_path_factory.mktemp("kept")
    choose = random.Random(15)
    positions: list[int] = []
    with Store.open(folder, SMALL) as store:
        while store.core.log.end < 3.5 * SMALL_FILE:
            body = choose.randbytes(choose.choice([0, 5, 100, 700]))
            properties = choose.choice([{}, {"TAGS": "new"}, {"KEYS": "k" * 40, "TAGS": "Ünï"}])
            positions.append(store.append("orders", choose.randrange(2), body, properties=properties).position)
            batch = [("orders", k % 2, body, properties) for k in range(3)]
            positions += store.append_batch(Messages.of_list(batch))[0].tolist()
        end = store.core.log.end
    files = sorted((folder / "commitlog").iterdir())
    return Kept(folder, {file: file.read_bytes() for file in files}, positions, end)


def opened(kept: Kept, settings: Settings) -> bool:
    """True if the store opens. It is released before anything is written to its log."""
    try:
        Store.open(kept.folder, settings).close()
    except Damaged:
        return False
    return True


def is_read(kept: Kept, position: int) -> bool:
    """True if a store that opens without a scan of its whole log reads the position, in both ways."""
    begins = max((begin for begin in kept.positions if begin <= position), default=0)
    try:
        with Store.open(kept.folder) as store:
            found = store.at(begins)
            store.read(found.topic, found.queue, found.number)
    except StoreError:
        return False
    return True


def test_a_flipped_bit_is_noticed_by_opening_with_verification(kept: Kept) -> None:
    choose = random.Random(FLIPS)
    assert opened(kept, Settings(verify=True))
    for bit in [choose.randrange(8 * kept.end) for _ in range(FLIPS)]:
        kept.flip(bit)
        assert not opened(kept, Settings(verify=True)), f"bit {bit}"
        kept.restore()
    assert opened(kept, Settings(verify=True))


def a_record(kept: Kept) -> range:
    """The bytes of a record that has properties, and is not in the last file."""
    begin = kept.positions[4]
    return range(begin, kept.positions[5])


def test_a_flip_of_any_bit_of_a_record_is_noticed_by_reading_it(kept: Kept) -> None:
    with Store.open(kept.folder) as store:
        log = store.core.log
        for begin, end in ((kept.positions[4], kept.positions[5]), (kept.positions[-5], kept.positions[-4])):
            file = log.segments.file(begin, write=True)
            expected = log.at(begin)
            for bit in range(8 * (begin % SMALL_FILE), 8 * (end % SMALL_FILE)):
                file.data[bit // 8] ^= np.uint8(1 << bit % 8)
                for read in (store.get, store.read_batch, store.read):
                    with pytest.raises(StoreError):
                        read(expected.topic, expected.queue, expected.number)
                with pytest.raises(StoreError):
                    log.at(begin)
                file.data[bit // 8] ^= np.uint8(1 << bit % 8)
            assert log.at(begin) == expected


def test_what_has_lost_its_checksum_is_noticed(kept: Kept) -> None:
    """Every bit of the name of the property at once: it is another property then, and the record is sound by itself."""
    begin, end = kept.positions[4:6]
    file = kept.folder / "commitlog" / f"{0:020d}"
    raw = kept.log[file][begin:end]
    overwrite(file, end - 20, b"AnyOther\x01")
    assert not opened(kept, Settings(verify=True))
    with (
        Store.open(kept.folder) as store,
        pytest.raises(Damaged, match="the record has lost the checksum that it was written with"),
    ):
        store.at(begin)
    kept.restore()
    assert sealed_whole(raw)


def test_a_damaged_log_is_cut_off_where_the_damage_is_if_that_is_wanted(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        positions = [store.append("orders", 0, b"%d" % number * 99).position for number in range(100)]
    overwrite(tmp_path / "commitlog" / f"{0:020d}", positions[10] + 90, b"?")
    with pytest.raises(Damaged, match=f"{positions[10]}: no whole record begins here"):
        Store.open(tmp_path, Settings(verify=True))
    with Store.open(tmp_path, Settings(verify=True, salvage=True)) as store:
        assert store.range("orders", 0) == (0, 10)
        assert len(store.read("orders", 0, 0)) == 10
    Store.open(tmp_path, Settings(verify=True)).close()


def test_what_a_broker_appended_carries_no_checksum_and_is_no_damage(tmp_path: Path) -> None:
    """The broker may die before it writes the checkpoint again; then not all records after it are ours."""
    Store.open(tmp_path, SMALL).close()
    store = Store.open(tmp_path)
    ours = store.append("orders", 0, b"ours")
    store.flush()
    store.core.write_checkpoint(0)
    store.core.log.sealing, store.core.log._seal = False, 0  # it plays the broker
    theirs = store.append("orders", 0, b"theirs")
    store.abandon()
    for settings in (None, Settings(verify=True)):
        with Store.open(tmp_path, settings) as store:
            assert store.core.log.sealed == theirs.position + theirs.size
            assert [record.body for record in store.read("orders", 0, 0)] == [b"ours", b"theirs"]
            assert store.at(theirs.position).size == ours.size + 2 - 20


def test_the_strict_check_notices_a_flip_of_every_bit_of_a_record(kept: Kept) -> None:
    choose, record = random.Random(3), a_record(kept)
    seal = range(8 * (record.stop - 20), 8 * record.stop)
    assert check([kept.folder], profile="strict").verdict == "conforms"
    bits = [*choose.sample(seal, min(FLIPS, len(seal))), *(8 * choose.choice(record) for _ in range(FLIPS))]
    for bit in bits:
        kept.flip(bit)
        assert check([kept.folder], profile="strict").verdict != "conforms", f"bit {bit - 8 * record.start}"
        kept.restore()


# -- files that another program cuts off -------------------------------------------------------------------------------

CHILD = """
import os, sys
from gapless.impl.records.errors import StoreError
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store

folder, name, length, verb = sys.argv[1:]
store = Store.open(folder, Settings(file_size=1 << 20, queue_file_size=400_000, pre_allocate=False, synchronous=True))
for number in range(3000):
    appended = store.core.append(store.core.queues.named("orders", 0), b"%d" % number * 20, b"", 0)
store.flush()
assert store.wait_for("orders", 0, 2999, 60)
store.core.flush_queues()
os.truncate(os.path.join(folder, name), int(length))
try:
    if verb == "at":
        store.at(appended[0])
    elif verb == "read":
        store.read("orders", 0, 2990)
    elif verb == "append":  # into a page that is in the file yet
        store.append("orders", 0, b"new")
    else:
        from gapless.impl.records.record import Messages
        store.append_batch(Messages.of_list([("orders", 0, b"new", {})]))
    print("done", flush=True)
except StoreError as error:
    print(type(error).__name__, error, flush=True)
store.abandon()
os._exit(0)
"""

LOG_FILE, QUEUE_FILE = f"commitlog/{0:020d}", f"consumequeue/orders/0/{0:020d}"


@pytest.mark.parametrize(
    ("file", "length", "verb", "words"),
    [
        (
            LOG_FILE,
            4096,
            "at",
            f"StoreError {LOG_FILE}: the file was cut from outside to 4096 of its 1048576 bytes; restore",
        ),
        (LOG_FILE, 4096, "read", f"StoreError {LOG_FILE}: the file was cut from outside to 4096"),
        (LOG_FILE, 4096, "append_batch", f"StoreError {LOG_FILE}: the file was cut from outside to 4096"),
        (
            LOG_FILE,
            (1 << 20) - 1,
            "append",
            "Stopped commitlog.*the disk failed .*the file was cut from outside to 1048575",
        ),
        (QUEUE_FILE, 4096, "read", f"StoreError {QUEUE_FILE}: the file was cut from outside to 4096"),
    ],
)
def test_a_file_that_another_program_cut_off_is_an_error(
    tmp_path: Path, file: str, length: int, verb: str, words: str
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), file, str(length), verb],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr  # SIGBUS would be -7
    assert re.match(words, ran.stdout), ran.stdout


# -- settings that are kept with the store -----------------------------------------------------------------------------


def test_settings_are_kept_with_the_store(tmp_path: Path) -> None:
    made = Settings(
        file_size=8192, queue_file_size=400, synchronous=True, delays=(1000, 5000), reserved_hours=1,
        reserved_bytes=1 << 20, expire_interval=60_000, checksums=False,
    )  # fmt: skip
    Store.open(tmp_path, made).close()
    with Store.open(tmp_path) as store:
        for name in NAMES:
            assert getattr(store.core.settings, name) == getattr(made, name)
        appended = store.append("orders", 0, b"x")
        assert store.core.log.flushed == appended.position + appended.size
        assert len(store.core.log.view(0)[0]) == 8192
    with Store.open(tmp_path, replace(made, delays=[1000, 5000])):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"synchronous": False}, "synchronous=False, and the store was made with True"),
        ({"delays": (1000,)}, r"delays=\(1000,\), and the store was made with \(1000, 5000\)"),
        ({"reserved_hours": 0}, "reserved_hours=0, and the store was made with 1 .*leave it out, or say change=True"),
        ({"checksums": True}, "checksums=True, and the store was made with False"),
    ],
)
def test_a_setting_that_contradicts_the_store_is_refused_until_it_is_changed(
    tmp_path: Path, given: dict[str, Any], words: str
) -> None:
    Store.open(tmp_path, Settings(synchronous=True, delays=(1000, 5000), reserved_hours=1, checksums=False)).close()
    before = (tmp_path / "config/gapless.json").read_bytes()
    with pytest.raises(Refused, match=words):
        Store.open(tmp_path, Settings(**given))
    assert (tmp_path / "config/gapless.json").read_bytes() == before
    Store.open(tmp_path, Settings(change=True, **given)).close()
    with Store.open(tmp_path) as store:
        for name, value in given.items():
            assert getattr(store.core.settings, name) == value


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        "[]",
        '{"synchronous": 1}',
        '{"delays": []}',
        '{"delays": [0.5]}',
        '{"file_size": 0}',
        '{"checksums": null}',
    ],
)
def test_kept_settings_that_are_none_are_damage(tmp_path: Path, content: str) -> None:
    Store.open(tmp_path).close()
    (tmp_path / "config/gapless.json").write_text(content)
    with pytest.raises(Damaged, match=r"config/gapless.json: .*; restore the file, or remove it"):
        Store.open(tmp_path)
    (tmp_path / "config/gapless.json").unlink()
    Store.open(tmp_path).close()


def test_what_others_keep_there_stays(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    file = tmp_path / "config/gapless.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "more": [1]}))
    Store.open(tmp_path, Settings(change=True, reserved_hours=5)).close()
    assert (json.loads(file.read_text())["more"], json.loads(file.read_text())["reserved_hours"]) == ([1], 5)


def test_checksums_go_on_where_the_settings_are_lost(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        store.append("orders", 0, b"x")
    (tmp_path / "config/gapless.json").unlink()
    with Store.open(tmp_path) as store:
        assert store.core.log.sealing
