"""Queues that a broker writes twice, to files and to a database: both are judged, and what one has the other has."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless import check
from tests.support.rocketmq.queue_databases import changed, end_key, folder_of, key, opened, value_of
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording_as_left

RECORDED = {  # records, and entries in the database, as another reader counts them
    "both_lives_5.3.3": (1156, 1156),
    "both_lives_5.5.0": (1157, 1157),
    "both_killed_5.3.3": (683, 371),
    "both_killed_5.5.0": (687, 372),
}
ENTRY_RULE = "queue/entry-points-at-its-message"
TOPIC, QUEUE, NUMBER = "orders", 2, 41


def test_every_recording_is_judged_here() -> None:
    there = {path.name.removesuffix(".tar.xz") for path in (RECORDINGS / "layouts").glob("both_*.tar.xz")}
    assert there == RECORDED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_queues_that_a_broker_writes_twice_conform(name: str, tmp_path: Path) -> None:
    records, entries = RECORDED[name]
    report = check([recording_as_left(f"layouts/{name}")])
    assert (report.verdict, report.sources[0].records) == ("conforms", records)
    assert f"{entries:,} entries in" in " ".join(report.sources[0].notes)
    assert report.coverage["queue.tell_last"] == 12
    with opened(copy_of(f"layouts/{name}", tmp_path)) as (database, _):
        assert len(list(database.keys())) == entries


@pytest.mark.parametrize("name", RECORDED)
def test_without_settings_the_files_tell_that_they_count(name: str, tmp_path: Path) -> None:
    store = copy_of(f"layouts/{name}", tmp_path)
    (store.parent / "broker.conf").unlink()
    report = check(store)
    assert report.verdict == "conforms"
    assert f"{RECORDED[name][1]:,} entries in" in " ".join(report.sources[0].notes)


def with_entry(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """A fault: one entry of the database is another."""

    def fault(store: Path) -> None:
        with opened(store) as (database, _):
            name = key(TOPIC, QUEUE, NUMBER)
            database[name] = change(value_of(database, name))

    return fault


def foreign(store: Path) -> None:
    with opened(store) as (database, _):
        database[key(TOPIC, QUEUE, NUMBER)] = value_of(database, key("payments", 1, 3))


WRONG: dict[str, tuple[Callable[[Path], None], str]] = {
    "position": (with_entry(lambda value: changed(value, position=1)), ENTRY_RULE),
    "size": (with_entry(lambda value: changed(value, size=-1)), "queue/entry-has-the-size-of-its-message"),
    "tag": (with_entry(lambda value: changed(value, tag=7)), "queue/entry-has-the-tag-code-of-its-message"),
    "another queue's": (foreign, ENTRY_RULE),
}


@pytest.mark.parametrize("store", ["both_lives_5.3.3", "both_lives_5.5.0"])
@pytest.mark.parametrize("name", WRONG)
def test_an_entry_that_differs_in_the_database_is_found_there(name: str, store: str, tmp_path: Path) -> None:
    fault, rule = WRONG[name]
    damaged = copy_of(f"layouts/{store}", tmp_path)
    fault(damaged)
    (found,) = check(damaged).violations
    assert (found.rule, found.trace) == (rule, f"{TOPIC}/{QUEUE}")
    assert found.where.file == f"{folder_of(damaged).name}/RocksDB:{TOPIC}/{QUEUE}"
    assert found.where.offset == NUMBER
    assert len(found.story) <= 12


def test_an_entry_that_differs_in_the_files_is_found_there(tmp_path: Path) -> None:
    store = copy_of("layouts/both_lives_5.5.0", tmp_path)
    (file,) = [f for f in (store / f"consumequeue/{TOPIC}/{QUEUE}").iterdir() if int(f.name) == 0]
    data = bytearray(file.read_bytes())
    (position,) = struct.unpack_from(">q", data, NUMBER * 20)
    struct.pack_into(">q", data, NUMBER * 20, position + 8)
    file.write_bytes(data)
    (found,) = check(store).violations
    assert (found.rule, found.where.file) == (ENTRY_RULE, f"consumequeue/{TOPIC}/{QUEUE}/{0:020}")


def test_a_table_that_is_wrong_is_found(tmp_path: Path) -> None:
    store = copy_of("layouts/both_lives_5.5.0", tmp_path)
    with opened(store) as (_, table):
        name = end_key(TOPIC, QUEUE, "max")
        value = value_of(table, name)
        table[name] = value[:8] + (int.from_bytes(value[8:], "big") + 1).to_bytes(8, "big")
    (found,) = check(store).violations
    assert found.rule == "queue/table-names-the-last-entry"
    assert found.where.file == f"consumequeue_rocksdb/RocksDB:offset/{TOPIC}/{QUEUE}/max"


def test_an_entry_that_the_database_lacks_is_no_accusation_and_no_pass(tmp_path: Path) -> None:
    """The broker may have written files alone for a time."""
    store = copy_of("layouts/both_lives_5.3.3", tmp_path)
    with opened(store) as (database, _):
        del database[key(TOPIC, QUEUE, NUMBER)]
    report = check(store)
    assert (report.verdict, report.violations) == ("inconclusive", [])
    assert "lacks entries between others (orders/2 from 41 on)" in report.sources[0].reasons[0]


def test_a_database_that_began_later_than_the_files_conforms(tmp_path: Path) -> None:
    store = copy_of("layouts/both_lives_5.3.3", tmp_path)
    with opened(store) as (database, _):
        for queue in range(3):
            database.delete_range(key(TOPIC, queue, 0), key(TOPIC, queue, 20))
    assert check(store).verdict == "conforms"


def test_what_was_left_in_the_database_by_a_crash_is_not_compared(tmp_path: Path) -> None:
    store = copy_of("layouts/both_killed_5.5.0", tmp_path)
    with opened(store) as (database, _):
        database[key(TOPIC, QUEUE, 1000)] = value_of(database, key(TOPIC, QUEUE, 3))
    assert check(store).verdict == "conforms"


def test_a_database_that_is_not_written_any_more_is_only_named(tmp_path: Path) -> None:
    store = copy_of("layouts/both_lives_5.3.3", tmp_path)
    config = store.parent / "broker.conf"
    config.write_text(config.read_text().replace("rocksdbCQDoubleWriteEnable=true", ""))
    with opened(store) as (database, _):
        database[key(TOPIC, QUEUE, NUMBER)] = bytes(28)
    report = check(store)
    assert report.verdict == "conforms"
    assert any(
        "which are not judged: the broker does not write it any more" in note for note in report.sources[0].notes
    )


def test_a_database_from_which_consumers_are_served_is_judged_by_itself(tmp_path: Path) -> None:
    store = copy_of("layouts/both_lives_5.5.0", tmp_path)
    config = store.parent / "broker.conf"
    config.write_text(f"{config.read_text()}\ncombineCQPreferCQType=defaultRocksDB\n")
    assert check(store).verdict == "conforms"
    with opened(store) as (database, _):
        del database[key(TOPIC, QUEUE, NUMBER)]
    (found,) = check(store).violations
    assert found.rule == "queue/no-entry-before-it-is-missing"
