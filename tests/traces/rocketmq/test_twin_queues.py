"""Queues that a broker writes twice, to files and to a database: both are judged, and what one has the other has."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless import Report, check
from gapless.traces.sources.rocketmq.store.names import SCHEDULE_TOPIC
from tests.support.night import by_day
from tests.support.rocketmq.queue_databases import changed, end_key, folder_of, key, opened, value_of
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording_as_left
from tests.support.rocketmq.stores import queues_of, read_slots

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
    assert f"as in the files: {entries:,} entries" in " ".join(report.sources[0].notes)
    assert report.coverage["queue.tell_last"] == 12
    with opened(copy_of(f"layouts/{name}", tmp_path)) as (database, _):
        assert len(list(database.keys())) == entries


@pytest.mark.parametrize("name", RECORDED)
def test_without_settings_the_files_tell_that_they_count(name: str, tmp_path: Path) -> None:
    store = copy_of(f"layouts/{name}", tmp_path)
    (store.parent / "broker.conf").unlink()
    report = check(store)
    assert report.verdict == "conforms"
    assert f"as in the files: {RECORDED[name][1]:,} entries" in " ".join(report.sources[0].notes)


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


@pytest.mark.parametrize("tag", [7, 2**63])  # 2**63: the address of the first unit
def test_a_tag_code_that_differs_from_that_of_the_extension_is_found(tag: int, tmp_path: Path) -> None:
    """Files name a unit of the extension where the database has the tag code itself."""
    store = copy_of("odd/extended_twins_5.3.3", tmp_path)
    assert check(store).verdict == "conforms"
    with opened(store) as (database, _):
        name = key(TOPIC, 1, 3)
        database[name] = changed(value_of(database, name), tag=tag)
    (found,) = check(store).violations
    assert (found.rule, found.trace) == ("queue/entry-has-the-tag-code-of-its-message", f"{TOPIC}/1")
    assert (found.where.file, found.where.offset) == (f"{folder_of(store).name}/RocksDB:{TOPIC}/1", 3)


OTHER_TIMES: dict[int, list[int]] = {
    1000: [],
    -1000: [],
    1: [1],
    -10_000: [1],
    2**60: [1],
}


@pytest.mark.parametrize("later", OTHER_TIMES)
def test_a_time_of_delivery_that_no_delay_explains_is_found(later: int, tmp_path: Path) -> None:
    """Rebuilt entries have the delays of that start, which are whole seconds, and more than none."""
    store = copy_of("odd/delayed_twins_5.3.3", tmp_path)
    with opened(store) as (database, _):
        name = key(SCHEDULE_TOPIC, 1, 1)
        database[name] = changed(value_of(database, name), tag=later)
    found = check(store).violations
    assert [one.where.offset for one in found] == OTHER_TIMES[later]
    assert {one.rule for one in found} <= {"queue/entry-has-the-tag-code-of-its-message"}


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


# -- where files of queues are not there -------------------------------------------------------------------------------

LEFT = [f"consumequeue/{TOPIC}", f"consumequeue/{TOPIC}/{QUEUE}", f"consumequeue/{TOPIC}/{QUEUE}/{0:020}"]


def linked(store: Path, name: str) -> None:
    """In place of what lies there, a link that leads nowhere."""
    shutil.rmtree(store / name) if (store / name).is_dir() else (store / name).unlink()
    (store / name).symlink_to("/nowhere")


def entries_of_queues(report: Report) -> dict[str, int]:
    """Count the judged entries of each queue."""
    return {f"{row.topic}/{row.queue}": row.indexed - row.first for row in report.queues}


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.parametrize("store", by_day(["both_lives_5.3.3", "both_lives_5.5.0", "both_killed_5.5.0"], 1 / 3))
def test_a_link_in_one_queue_leaves_all_others_judged(store: str, name: str, tmp_path: Path) -> None:
    """In files and in the database, which tells nothing of what lies behind the link."""
    linked_store = copy_of(f"layouts/{store}", tmp_path)
    before = entries_of_queues(check(linked_store))
    linked(linked_store, name)
    report = check(linked_store)
    behind = {trace for trace in before if trace.startswith(TOPIC if name == LEFT[0] else f"{TOPIC}/{QUEUE}")}
    assert (report.verdict, report.violations) == ("inconclusive", [])
    assert any(f"{name} is a link to /nowhere, which is not there: entries of {TOPIC}" in r for r in reasons(report))
    assert entries_of_queues(report) == {trace: 0 if trace in behind else count for trace, count in before.items()}
    with opened(linked_store) as (database, _):
        first = key("payments", 1, 3)
        database[first] = changed(value_of(database, first), position=1)
    (found,) = check(linked_store).violations
    assert (found.trace, found.where.offset) == ("payments/1", 3)


def reasons(report: Report) -> list[str]:
    return report.sources[0].reasons


def test_a_link_among_unread_files_is_reported_and_no_more(tmp_path: Path) -> None:
    store = copy_of("layouts/both_lives_5.5.0", tmp_path)
    config = store.parent / "broker.conf"
    config.write_text(f"{config.read_text()}\ncombineCQPreferCQType=defaultRocksDB\n")
    linked(store, LEFT[0])
    report = check(store)
    assert report.verdict == "conforms"
    assert f"{LEFT[0]} is a link to /nowhere, which is not there" in report.sources[0].notes


def test_without_settings_the_files_may_be_too_few_to_tell_that_they_count(tmp_path: Path) -> None:
    """The queue that reaches furthest lies behind the link: the broker may read the files, or the database."""
    store = copy_of("layouts/both_lives_5.5.0", tmp_path)
    (store.parent / "broker.conf").unlink()
    last = max(queues_of(store), key=lambda queue: max(slot.entry.position for slot in read_slots(store, queue)))
    linked(store, f"consumequeue/{last[0]}")
    report = check(store)
    assert (report.verdict, report.violations) == ("inconclusive", [])
    assert any("the files do not show which of them the broker reads" in reason for reason in reasons(report))


@pytest.mark.parametrize("serves", ["files", "unknown", "the database"])
def test_a_link_in_place_of_a_file_of_the_database_leaves_the_files_judged_if_they_count(
    serves: str, tmp_path: Path
) -> None:
    """Otherwise no queue is judged: the broker's choice is unknown, or it reads missing files."""
    store = copy_of("layouts/both_lives_5.3.3", tmp_path)
    before, config = entries_of_queues(check(store)), store.parent / "broker.conf"
    if serves == "unknown":
        config.unlink()
    elif serves == "the database":
        config.write_text(f"{config.read_text()}\ncombineCQPreferCQType=defaultRocksDB\n")
    table = f"consumequeue/{min((store / 'consumequeue').glob('*.sst')).name}"
    linked(store, table)
    report, what = check(store), "what that database holds of" if serves == "files" else "entries of"
    assert (report.verdict, report.violations) == ("inconclusive", [])
    assert f"{table} is a link to /nowhere, which is not there: {what} queues " in reasons(report)[0]
    assert entries_of_queues(report) == (before if serves == "files" else dict.fromkeys(before, 0))
