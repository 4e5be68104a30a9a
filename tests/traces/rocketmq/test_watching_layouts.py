"""Stores with queues or logs elsewhere are watched as far as their broker writes to disk."""

import shutil
import struct
from pathlib import Path
from random import Random

import pytest

from gapless.traces.watch import StoreWatch
from tests.support.night import by_day
from tests.support.rocketmq.played_database import PlayedDatabase
from tests.support.rocketmq.played_store import PlayedStore
from tests.support.rocketmq.queue_databases import changed
from tests.support.rocketmq.recordings import recording
from tests.support.rocketmq.watched import Clock, Heard, checked, same, until_idle, watch, watch_all_of

POINTS = "queue/entry-points-at-its-message"
CHECKSUM = "log/body-has-its-checksum"
IN_DATABASE = "layouts/rocksdb_lives_5.5.0"
WITH_DLEDGER = "layouts/dledger_lives_5.5.0"
WITH_UNITS = "layouts/ext_first_5.5.0"


def flip(played: PlayedStore, position: int) -> tuple[str, int]:
    """Another byte at a log position: in which file that is, and its offset."""
    name, at = next((name, position - base) for base, name, data in played.logs if 0 <= position - base < len(data))
    with (played.folder / name).open("r+b") as out:
        out.seek(at)
        byte = out.read(1)[0]
        out.seek(at)
        out.write(bytes([byte ^ 1]))
    return name, at


def played_of(name: str, folder: Path) -> PlayedStore:
    return PlayedDatabase(recording(name), folder) if "rocksdb" in name else PlayedStore(recording(name), folder)


@pytest.mark.parametrize(
    "name",
    by_day(
        [
            *("dledger_lives_5.5.0", "rocksdb_lives_5.5.0", "dledger_lives_4.9.7", "dledger_killed_5.3.3"),
            *("rocksdb_expired_5.5.0", "rocksdb_killed_5.3.3", "rocksdb_killed_5.5.0", "rocksdb_lives_5.3.3"),
            *("both_lives_5.5.0", "ext_first_5.5.0", "ext_lives_4.9.7", "batchcq_lives_5.5.0", "batchcq_killed_5.3.3"),
        ],
        1 / 4,
    ),
)
def test_the_report_is_that_of_a_check_wherever_the_store_is_cut(name: str, tmp_path: Path) -> None:
    chance, clock, heard = Random(name), Clock(), Heard()
    played = played_of(f"layouts/{name}", tmp_path / "store")

    def behind(written: int) -> None:
        played.dispatch(written - chance.choice((0, 300, 20_000)))
        if isinstance(played, PlayedDatabase) and chance.random() < 0.3:
            played.flush()

    watched = watch_all_of(played, heard, clock, chance, behind, most=120_000)
    played.stop()
    until_idle(watched)
    same(watched.end(), checked(tmp_path / "store"))
    assert not heard.found


# -- queues in RocksDB -------------------------------------------------------------------------------------------------


def flushed_once(tmp_path: Path, heard: Heard, clock: Clock) -> tuple[PlayedDatabase, StoreWatch]:
    """A store of which half of the records are written, and half of these have entries on disk; and its watch."""
    played = PlayedDatabase(recording(IN_DATABASE), tmp_path / "store")
    records = played.records()
    played.append(records[600])
    played.dispatch(records[300])
    played.flush()
    watched = watch(tmp_path / "store", heard, clock)
    until_idle(watched)
    return played, watched


def test_the_log_is_judged_ahead_of_entries_that_are_not_on_disk(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = flushed_once(tmp_path, heard, clock)
    status, records = watched.status, played.records()
    assert (status.position, status.entries_position) == (records[600], records[300])
    assert (status.lag_bytes, status.entries_lag_bytes) == (0, records[600] - records[300])
    assert "entries that the broker has in memory, and not on disk yet" in status.left
    clock.now += 100
    played.append(records[610])
    watched.look()
    (report,) = heard.reports
    assert status.records == 610
    assert (report.verdict, report.sources[0].records) == ("conforms", status.records)
    assert any(f"entries are judged up to {records[300]:,} of the log" in note for note in report.sources[0].notes)
    played.dispatch(records[500])
    played.flush()
    clock.now += 1
    until_idle(watched)
    assert status.entries_position == records[300]  # the database is not read every time
    clock.now += 3
    until_idle(watched)
    assert status.entries_position == records[500]
    assert not heard.found


def test_a_wrong_entry_in_a_database_is_reported_once_it_is_on_disk(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = flushed_once(tmp_path, heard, clock)
    at = played.indexed + 20
    _position, name, number, value = played.entries[at]
    played.dispatch(played.written)
    played.flush({at: changed(value, position=1)})
    until_idle(watched)
    assert not heard.found
    clock.now += 3
    until_idle(watched)
    (found,) = heard.found
    assert (found.rule, found.trace, found.where.offset) == (POINTS, name, number)
    assert found.where.file == f"consumequeue/RocksDB:{name}"
    assert heard.reports[-1].verdict == "departs"


def test_a_damaged_record_is_reported_before_its_entry_is_on_disk(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = flushed_once(tmp_path, heard, clock)
    damaged = played.records()[650]
    played.append(played.records()[700])
    file, offset = flip(played, damaged + 88)  # the first byte of its body
    clock.now += 1
    until_idle(watched)
    (found,) = heard.found
    assert (found.rule, found.where.file, found.where.offset) == (CHECKSUM, file, offset - 88)
    assert (heard.reports[-1].verdict, watched.status.conforms) == ("departs", False)
    played.dispatch(played.written)
    played.flush()
    clock.now += 3
    until_idle(watched)
    assert watched.status.entries_position == played.written
    assert len(heard.found) == 1


def test_a_database_that_is_damaged_meanwhile_is_stated_and_looked_at_again(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = flushed_once(tmp_path, heard, clock)
    current = tmp_path / "store/consumequeue/CURRENT"
    kept = current.read_bytes()
    current.write_bytes(b"MANIFEST-999999\n")
    clock.now += 3
    watched.look()
    assert "names 'MANIFEST-999999', which is not there" in heard.says[-1]
    up = [watched.status.up]
    current.write_bytes(kept)
    played.dispatch(played.written)
    played.flush()
    clock.now += 3
    until_idle(watched)
    assert [*up, watched.status.up] == [False, True]
    assert watched.status.entries_position == played.written


# -- DLedger -----------------------------------------------------------------------------------------------------------


def test_what_another_leader_takes_back_is_judged_again_and_is_no_violation(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played = PlayedStore(recording(WITH_DLEDGER), tmp_path / "store")
    header = struct.calcsize(">iiqqqiiii")
    records = played.records()
    watched = watch(tmp_path / "store", heard, clock)
    played.append(records[300] - header)
    played.dispatch(played.written)
    until_idle(watched)
    watched.keep()
    played.append(records[400] - header)
    played.dispatch(played.written)
    until_idle(watched)
    assert watched.status.position == records[400] - header
    played.cut_off(records[350] - header)
    until_idle(watched)
    assert [line for line in heard.says if "was cut off below" in line]
    played.append(played.end)
    played.dispatch(played.end)
    played.stop()
    until_idle(watched)
    same(watched.end(), checked(tmp_path / "store"))
    assert not heard.found


def test_a_damaged_entry_of_a_dledger_log_is_reported(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played = PlayedStore(recording(WITH_DLEDGER), tmp_path / "store")
    watched = watch(tmp_path / "store", heard, clock)
    records = played.records()
    played.append(records[200])
    played.dispatch(records[200])
    file, offset = flip(played, records[150] - 48 + 15)  # the last byte of its index
    until_idle(watched)
    (found,) = heard.found
    assert found.rule == "log/parts-of-the-record-add-up-to-its-size"
    assert (found.where.file, found.where.offset) == (file, offset - 15)


# -- unreadable while it is written -----------------------------------------------------------------------------


def test_a_store_with_units_is_watched_but_for_its_entries(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    store = tmp_path / "store"
    shutil.copytree(recording(WITH_UNITS), store)
    watched = watch(store, heard, clock)
    until_idle(watched)
    whole = checked(store)
    assert watched.status.records == whole.sources[0].records
    assert watched.status.entries_position == 0
    assert "consumequeue_ext/, which are read as they are once" in heard.says[-1]
    same(watched.end(), whole)


def test_units_that_begin_while_a_store_is_followed_are_no_violation(tmp_path: Path) -> None:
    heard = Heard()
    played = PlayedStore(recording(WITH_UNITS), tmp_path / "store")
    shutil.rmtree(tmp_path / "store/consumequeue_ext")
    watched = watch(tmp_path / "store", heard)
    played.append(played.end // 4)
    until_idle(watched)
    (tmp_path / "store/consumequeue_ext").mkdir()
    played.append(played.end)
    played.dispatch(played.end)
    until_idle(watched)
    assert [line for line in heard.says if "it is opened again" in line]
    assert watched.status.position == played.end
    played.stop()
    until_idle(watched)
    same(watched.end(), checked(tmp_path / "store"))
    assert not heard.found


# -- batch queues ------------------------------------------------------------------------------------------------------


def test_batch_queues_that_come_while_the_store_is_watched_are_judged_at_the_end(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played = PlayedStore(recording("odd/batchcq_5.3.3"), tmp_path / "store")
    watched = watch(tmp_path / "store", heard, clock)
    for upto in played.records()[::20]:
        played.append(upto)
        played.dispatch(upto)
        clock.now += 10
        until_idle(watched)
    assert any("entries of queues (those in batchconsumequeue/" in message for message in heard.says)
    played.stop()
    until_idle(watched)
    report = watched.end()
    same(report, checked(tmp_path / "store"))
    assert report.coverage["queue.index"] == 60
    assert not heard.found
